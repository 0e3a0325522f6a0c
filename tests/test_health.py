"""The health score: what it is made of, and that missing data is not health."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindpulse import open_run
from mindpulse.alerts import AlertEvent
from mindpulse.health import Reason, replay, score
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import PARTS
from mindpulse.store.run import Run
from mindpulse.testing import write_run
from mindpulse.watcher import watch

RULES = load_rules()


def falling(steps: int) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, 0.05, steps)
    return 4 + 4 * np.exp(-np.arange(steps) / 40) + noise


def healthy(path: Path, steps: int = 200) -> Run:
    random = np.random.default_rng(1)
    write_run(
        path,
        train_loss=falling(steps),
        grad_norm=np.exp(random.normal(0.5, 0.2, steps)),
        step_time_s=random.normal(0.3, 0.01, steps),
    )
    return open_run(path)


def test_a_healthy_run_has_a_high_score_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    health = score(healthy(tmp_path), RULES)
    assert health.score == 100.0
    assert health.calibrated is False
    assert set(health.parts) == set(PARTS)
    assert health.parts["memory"].score is None
    assert health.parts["attention"].state == "unknown"
    assert health.parts["attention"].reasons
    assert any(entry.startswith("entropy-collapse: nobody writes") for entry in health.unknown)


def test_an_empty_run_has_no_score(tmp_path: Path) -> None:
    write_run(tmp_path)
    health = score(open_run(tmp_path), RULES)
    assert health.score is None
    assert all(part.state == "unknown" for part in health.parts.values())
    assert len(health.unknown) == len(RULES)


def test_a_few_rows_are_not_health_but_a_fault_in_them_counts(tmp_path: Path) -> None:
    write_run(tmp_path / "few", train_loss=[3.0] * 9, grad_norm=[1.0] * 9)
    few = score(open_run(tmp_path / "few"), RULES)
    assert few.score is None
    assert "nonfinite: only 9 rows were recorded" in few.unknown
    write_run(tmp_path / "ten", train_loss=[3.0] * 10, grad_norm=[1.0] * 10)
    assert score(open_run(tmp_path / "ten"), RULES).parts["numerics"].score == 100.0
    write_run(tmp_path / "nan", train_loss=[3.0, np.nan], grad_norm=[1.0, 1.0])
    assert score(open_run(tmp_path / "nan"), RULES).parts["numerics"].state == "critical"


def test_one_bad_part_is_not_outweighed_by_sound_ones(tmp_path: Path) -> None:
    loss = falling(200)
    loss[150:] = np.nan
    write_run(tmp_path, train_loss=loss, grad_norm=np.ones(200), step_time_s=np.full(200, 0.3))
    health = score(open_run(tmp_path), RULES)
    assert health.parts["numerics"].score == pytest.approx(10.0)
    assert health.parts["numerics"].state == "critical"
    assert health.parts["numerics"].reasons == (
        Reason("alert", {"rule": "nonfinite", "since": 151}),
    )
    assert health.score is not None
    assert health.score <= 35.0


def test_what_was_resolved_weighs_less(tmp_path: Path) -> None:
    norms = np.ones(200)
    norms[100:110] = 90.0
    write_run(tmp_path / "over", grad_norm=norms)
    write_run(tmp_path / "firing", grad_norm=norms[:110])
    over = score(open_run(tmp_path / "over"), RULES).parts["gradient"]
    firing = score(open_run(tmp_path / "firing"), RULES).parts["gradient"]
    assert over.score is not None
    assert firing.score is not None
    assert firing.score < over.score < 100.0
    assert any("over at step" in reason.text() for reason in over.reasons)


def test_a_loss_that_does_not_fall_costs_points(tmp_path: Path) -> None:
    write_run(tmp_path, train_loss=5 + np.random.default_rng(0).normal(0, 0.05, 200))
    part = score(open_run(tmp_path), RULES).parts["loss"]
    assert (part.score, part.state) == (75.0, "warning")
    assert "has not fallen" in part.reasons[0].text()
    assert "损失没有下降" in part.reasons[0].text("zh")


def test_a_replay_tells_what_the_watcher_told(tmp_path: Path) -> None:
    norms = np.ones(120)
    norms[50:55] = 90.0
    write_run(tmp_path, grad_norm=norms, train_loss=falling(120))
    write_run(tmp_path, grad_norm=norms, train_loss=falling(120), first_step=40)
    said = [e for e in watch(tmp_path, RULES, once=True) if isinstance(e, AlertEvent)]
    key = lambda e: (e.attempt, e.step, e.id, e.state)  # noqa: E731
    assert sorted(replay(open_run(tmp_path), RULES), key=key) == sorted(said, key=key)
    assert len(said) >= 4


def test_alerts_of_a_watcher_with_other_rules_count_too(tmp_path: Path) -> None:
    run = healthy(tmp_path)
    (tmp_path / "rules.toml").write_text(
        "[[rule]]\nname = 'mine'\nexpr = 'last(grad_norm) > 0'\n"
        "severity = 'error'\npart = 'hardware'\n"
    )
    before = score(run, RULES)
    assert list(watch(tmp_path, load_rules(tmp_path / "rules.toml"), once=True))
    after = score(run, RULES)
    assert before.parts["hardware"].score is None
    assert after.parts["hardware"].score == pytest.approx(55.0)
