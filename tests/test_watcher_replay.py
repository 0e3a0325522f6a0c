"""`watch --replay` and `selftest`: judging what was recorded, as it is and with faults in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.errors import UsageError
from mindpulse.interop import open_run
from mindpulse.rules.load import load_rules
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.testing import write_run
from mindpulse.watcher import watch
from mindpulse.watcher.faults import FAULTS
from mindpulse.watcher.selftest import Fired, selftest
from test_cli_group import call


def steady(count: int = 400) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "train_loss": 3.0 + random.normal(0, 0.05, count),
        "grad_norm": np.exp(random.normal(0, 0.1, count)),
        "learning_rate": np.full(count, 1e-3),
        "grad_norm_param": np.exp(random.normal(0, 0.1, (count, 4))),
    }


@pytest.fixture
def exploded(tmp_path: Path) -> Path:
    series = steady()
    series["grad_norm"][300:320] = 80.0
    write_run(tmp_path, **series)
    return tmp_path


def test_a_replay_tells_what_a_watcher_told(exploded: Path) -> None:
    lines = call("watch", exploded, "--replay", "--json").stdout.splitlines()
    replayed = [(e["id"], e["state"], e["step"]) for e in map(json.loads, lines)]
    assert ("gradient-explosion/a1/r0/s301", "firing", 301) in replayed
    assert sorted(p.name for p in exploded.iterdir()) == ["attempt-0001", "run.json"]
    live = [e for e in watch(exploded, load_rules(), once=True) if isinstance(e, AlertEvent)]
    assert replayed == [(e.id, e.state, e.step) for e in live]


def test_a_replay_exits_with_findings_and_journals_if_told_to(exploded: Path) -> None:
    result = call("watch", exploded, "--replay", "--journal")
    assert result.exit_code == 1
    assert "gradient-explosion" in result.stdout
    assert "gradient-explosion" in {event.rule for event in read_alerts(exploded)}
    assert not (exploded / "watcher.json").exists()


def test_another_tools_run_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{step},{1.0 if step < 50 else 'nan'}" for step in range(1, 60)]
    path.write_text("step,loss\n" + "\n".join(rows) + "\n")
    assert "train_loss" in open_run(path).specs()
    result = call("watch", path, "--replay")
    assert (result.exit_code, "nonfinite" in result.stdout) == (1, True)
    refused = call("watch", path, "--replay", "--journal")
    assert refused.exit_code == 2
    assert "run folders only" in refused.stderr


def test_ranks_are_compared_in_a_replay_too(tmp_path: Path) -> None:
    for rank in range(3):
        norms = np.exp(np.random.default_rng(3).normal(0, 0.1, 2500))
        norms[1500:] += rank == 1
        write_run(tmp_path, rank=rank, grad_norm=norms)
    lines = call("watch", tmp_path, "--replay", "--json").stdout.splitlines()
    replayed = [(e["rule"], e["rank"], e["step"]) for e in map(json.loads, lines)]
    assert replayed == [("ranks-out-of-step", 1, 1503)]
    live = [e for e in watch(tmp_path, load_rules(), once=True) if isinstance(e, AlertEvent)]
    assert replayed == [(e.rule, e.rank, e.step) for e in live]


def test_journal_alone_is_refused(exploded: Path) -> None:
    result = call("watch", exploded, "--once", "--journal")
    assert result.exit_code == 2
    assert "--journal goes with --replay" in result.stderr


# The self-test.


def recorded(series: dict[str, np.ndarray]) -> dict[str, Series]:
    steps = np.arange(1, len(series["train_loss"]) + 1)
    found = {}
    for tag, values in series.items():
        table = values[:, None] if values.ndim == 1 else values
        columns = tuple((str(i),) for i in range(values.shape[1])) if values.ndim > 1 else ()
        spec = SeriesSpec(tag, axes=("param",) if columns else (), columns=columns)
        found[tag] = Series(spec, Rows(steps, 0.5 * steps, table))
    return found


def test_faults_are_told_with_their_delay_and_what_cannot_be_told_with_its_reason() -> None:
    found = selftest(recorded(steady()), load_rules())
    assert found.step == 1 + round(0.6 * 399)
    told = {(t.fault, t.severity): t for t in found.tried}
    assert len(told) == 3 * len(FAULTS)
    assert told["nan", "low"].fired[0] == Fired("nonfinite", 0)
    assert told["gradient-explosion", "high"].fired[0].rule == "gradient-explosion"
    frozen = {fired.rule: fired.after_steps for fired in told["frozen-weights", "low"].fired}
    assert frozen["frozen-weights"] == 9
    assert told["loss-spike", "low"].series == ("train_loss",)
    assert told["attention-collapse", "high"].series == ()
    assert told["attention-collapse", "high"].fired == ()
    assert "attn_focus" in found.unknown["attention-converged"]
    assert found.stalled_after_s == 180.0


def test_graver_faults_are_told_by_no_fewer_rules() -> None:
    found = selftest(recorded(steady()), load_rules())
    for fault in ("nan", "loss-divergence", "learning-rate-jump", "gradient-explosion"):
        counts = [len(t.fired) for t in found.tried if t.fault == fault]
        assert counts[0] <= counts[2]
        assert counts[2] > 0


def test_what_fires_anyway_is_no_proof() -> None:
    series = steady()
    series["grad_norm"][:] = 80.0
    found = selftest(recorded(series), load_rules())
    assert "gradient-explosion" in found.before
    rules = {f.rule for t in found.tried if t.fault == "gradient-explosion" for f in t.fired}
    assert "gradient-explosion" not in rules


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_nothing_before_its_step_and_not_the_rows_it_is_given(fault) -> None:
    tag = next(iter(fault.changes))
    table = np.random.default_rng(1).normal(0.5, 0.1, (50, 4))
    rows = Rows(np.arange(50), np.arange(50.0), table.copy())
    for strength in fault.strengths:
        changed = fault.put_in(tag, rows, 20, strength)
        assert np.array_equal(changed.values[:20], table[:20])
        assert not np.array_equal(changed.values[20:], table[20:], equal_nan=True)
        assert np.array_equal(rows.values, table)
        assert fault.put_in("other", rows, 20, strength) is rows


@pytest.mark.parametrize("step", [1, 0, 401])
def test_a_step_that_was_not_recorded_is_refused(step: int) -> None:
    with pytest.raises(UsageError, match="faults can begin at steps 2 to 400"):
        selftest(recorded(steady()), load_rules(), step)


def test_nothing_recorded_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to test with"):
        selftest({}, load_rules())


def test_the_command(exploded: Path) -> None:
    shown = call("selftest", exploded)
    assert shown.exit_code == 0
    assert "learning-rate-jump +0" in shown.stdout
    assert "cannot tell here: entropy-collapse" in shown.stdout
    assert "not recorded" in shown.stdout
    told = json.loads(call("selftest", exploded, "--at", "200", "--json").stdout)
    assert told["step"] == 200
    assert {t["fault"] for t in told["tried"]} == {fault.name for fault in FAULTS}
    assert not (exploded / "alerts.jsonl").exists()
