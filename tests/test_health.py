"""The health score: what it is made of, and that missing data is not health."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindpulse import open_run
from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import Journal
from mindpulse.health import Health, Reason, load_fit, replay, score
from mindpulse.health.fitted import fingerprint
from mindpulse.report.words import Words
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
    assert health.score == health.at_best
    assert health.score is not None
    assert 50 < health.score < 100  # not every fault is found
    assert health.parts["loss"].score == 100.0
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
    assert health.parts["numerics"].score is not None
    assert health.parts["numerics"].score < 20.0
    assert health.parts["numerics"].state == "critical"
    assert health.parts["numerics"].reasons == (
        Reason("alert", {"rule": "nonfinite", "since": 151}),
    )
    assert health.score is not None
    assert health.score < 10.0


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
    assert part.score is not None
    assert (part.score < 100.0, part.state) == (True, "warning")
    assert "has not fallen" in part.reasons[0].text()
    assert "损失没有下降" in part.reasons[0].text("zh")


def test_a_replay_tells_what_the_watcher_told(tmp_path: Path) -> None:
    norms = np.ones(120)
    norms[50:55] = 90.0
    write_run(tmp_path, grad_norm=norms, train_loss=falling(120))
    write_run(tmp_path, grad_norm=norms, train_loss=falling(120), first_step=40)
    said = [e for e in watch(tmp_path, RULES, once=True) if isinstance(e, AlertEvent)]
    key = lambda e: (e.attempt, e.step, e.id, e.state)  # noqa: E731
    told = [event for event in replay(open_run(tmp_path), RULES) if event.delivered]
    assert sorted(told, key=key) == sorted(said, key=key)
    assert len(said) >= 4


def test_ranks_are_compared_as_the_watcher_compares_them(tmp_path: Path) -> None:
    norms = np.ones(120)
    for rank, factor in enumerate((1.0, 1.0, 1.5)):
        own = np.r_[norms[:60], factor * norms[60:]]
        write_run(tmp_path, rank=rank, grad_norm=own, train_loss=falling(120))
    run = open_run(tmp_path)
    told = {event.id: event.rule for event in replay(run, RULES)}
    assert "ranks-out-of-step" in told.values()
    before = score(run, RULES)
    said = {e.id for e in watch(tmp_path, RULES, once=True) if isinstance(e, AlertEvent)}
    assert said == set(told)
    assert score(run, RULES) == before
    assert before.score is not None
    assert before.score < 50


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
    assert after.parts["hardware"].state == "error"
    assert before.score is not None
    assert after.score is not None
    assert after.score < before.score
    assert after.calibrated is False


@pytest.fixture
def fit_of_these_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    current = replace(load_fit(), rules=fingerprint(RULES))
    monkeypatch.setattr("mindpulse.health.scoring.load_fit", lambda: current)


@pytest.mark.usefixtures("fit_of_these_rules")
def test_the_score_is_measured_for_the_rules_that_were_fitted_only(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    assert score(run, RULES).calibrated is True
    assert score(run, RULES[1:]).calibrated is False
    changed = tmp_path / "rules.toml"
    changed.write_text("[[rule]]\nname = 'gradient-explosion'\nexpr = 'last(grad_norm) > 40'\n")
    assert score(run, load_rules(changed)).calibrated is False
    changed.write_text("[[rule]]\nname = 'gradient-explosion'\naction = { request = 'stop' }\n")
    assert score(run, load_rules(changed)).calibrated is True


@pytest.mark.usefixtures("fit_of_these_rules")
def test_alerts_of_the_watcher_itself_leave_it_measured(tmp_path: Path) -> None:
    run = healthy(tmp_path)
    gone = AlertEvent("x", "stalled-run", "firing", "error", "hardware", 200, 200, 0.0, 0, 1)
    Journal(tmp_path, RULES).add([gone])
    health = score(run, RULES)
    assert health.parts["hardware"].state == "error"
    assert health.calibrated is True


def test_the_words_say_what_the_number_means() -> None:
    measured = Health(70.0, {}, at_best=80.4, calibrated=True)
    runs = str(load_fit().runs)
    for lang in ("en", "zh"):
        words = Words(lang)
        assert "80" in words.score_note(measured)
        assert runs in words.score_meaning(measured)
        assert words.score_note(replace(measured, calibrated=False)) == words.say(
            "score.uncalibrated"
        )
        assert words.score_note(Health(None, {})) == ""
        assert runs not in words.score_meaning(Health(None, {}))
