"""keep and rollback: the state of an earlier step comes back whole; time goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from acting import Asking, asked, assert_same_state, plain
from mindpulse import open_run
from mindpulse.mindspore.acting import state
from nets import batches
from test_act_skip import adam, grouped
from ways import HOWS, builder
from ways_cells import scaled

BACK = {"factor": 1.0, "before": 0.0}


@pytest.mark.parametrize("how", HOWS)
def test_the_state_of_an_earlier_step_comes_back(how: str, tmp_path: Path) -> None:
    """Kept before steps 3 and 6; back to the latter before step 8: batches 6 and 7 never were."""
    data = batches(9)
    watched = asked(builder(how), data, tmp_path, [("rollback", BACK, 8)], keep_every=3)
    assert watched.told == [(1, "done", 8)]
    assert watched.answers[0].data["state_step"] == 6
    assert watched.answers[0].data["age_steps"] == 2
    assert watched.answers[0].detail.startswith("back to the state before step 6, 2 steps and ")
    assert_same_state(watched, plain(builder(how), [*data[:5], *data[7:]]))
    assert open_run(tmp_path).series("train_loss").steps.tolist() == list(range(1, 10))


@pytest.mark.parametrize(
    ("how", "optimizer", "cell"),
    [("graph", adam, nn.TrainOneStepCell), ("jit", grouped, None), ("graph", adam, scaled)],
)
def test_with_schedules_groups_and_loss_scales(
    how: str, optimizer: Any, cell: Any, tmp_path: Path
) -> None:
    build = builder(how, optimizer=optimizer, **({"cell": cell} if cell else {}))
    data = batches(8)
    watched = asked(build, data, tmp_path, [("rollback", BACK, 7)], keep_every=4)
    assert watched.told == [(1, "done", 7)]
    assert_same_state(watched, plain(build, [*data[:3], *data[6:]]))


@pytest.mark.parametrize("schedule", [False, True])
def test_the_rate_is_lowered_with_it_and_stays_lowered(schedule: bool, tmp_path: Path) -> None:
    """What an action did to the rate since the state was kept, is not lost by going back."""
    rate = nn.ExponentialDecayLR(1e-2, 1.0, 5) if schedule else 1e-2
    build = builder("jit", optimizer=lambda p: nn.AdamWeightDecay(p, rate))
    requests = [
        ("scale_lr", {"factor": 0.5}, 4),
        ("rollback", {"factor": 0.5, "before": 3.0}, 6),
    ]
    watched = asked(build, batches(8), tmp_path, requests, keep_every=3)
    assert watched.told == [(1, "done", 4), (2, "done", 6)]
    assert watched.answers[1].data["state_step"] == 3
    rates = open_run(tmp_path).series("learning_rate").values
    np.testing.assert_allclose(rates, [1e-2] * 3 + [5e-3] * 2 + [2.5e-3] * 3, rtol=1e-6)


def test_a_rate_that_exploded_by_itself_comes_back(tmp_path: Path) -> None:
    def explode(number: int, out: Asking) -> None:
        if number == 4:
            rate = out.training.optimizer.learning_rate
            ops.assign(rate, Tensor(10.0, ms.float32))

    watched = asked(
        builder("jit"), batches(8), tmp_path, [("rollback", BACK, 7)], keep_every=4, at=explode
    )
    rates = open_run(tmp_path).series("learning_rate").values
    np.testing.assert_allclose(rates, [1e-2] * 4 + [10.0] * 2 + [1e-2] * 2, rtol=1e-6)
    assert watched.told == [(1, "done", 7)]


def test_states_with_nan_are_passed_over(tmp_path: Path) -> None:
    def poison(number: int, out: Asking) -> None:
        if number == 4:
            weight = out.training.net.head.weight
            ops.assign(weight, Tensor(np.full(weight.shape, np.nan), ms.float32))

    watched = asked(
        builder("pynative"), batches(8), tmp_path, [("rollback", BACK, 7)], keep_every=3, at=poison
    )
    assert watched.answers[0].data["state_step"] == 3
    assert all(np.isfinite(array).all() for _, array in watched.state)


def test_refusals_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early = [("rollback", BACK, 2), ("keep", {"every": 2.0}, 3), ("rollback", {"before": 3.0}, 6)]
    watched = asked(builder("pynative"), batches(7), tmp_path / "a", early)
    assert watched.told == [(1, "refused", 2), (2, "done", 3), (3, "refused", 6)]
    assert "ask for `keep every=100` first" in watched.answers[0].detail
    assert "the oldest state kept is that before step 4, not 3" in watched.answers[2].detail
    monkeypatch.setattr(state, "host_free_bytes", lambda: 1000)
    late = [("keep", {"every": 2.0}, 2), ("skip_step", {"steps": 1.0}, 3)]
    watched = asked(builder("pynative"), batches(4), tmp_path / "b", late)
    assert [answer.status for answer in watched.answers] == ["refused", "refused"]
    assert "of the host's memory 0 MB are free" in watched.answers[0].detail


def test_states_are_few_and_those_of_a_left_branch_are_dropped(tmp_path: Path) -> None:
    requests = [("rollback", {"factor": 1.0, "before": 8.0}, 12)]
    watched = asked(builder("pynative"), batches(13), tmp_path, requests, keep_every=2)
    # Before step 12 those of 8, 10 and 12 are held; back at 8, the younger two are of no use.
    assert watched.answers[0].data["state_step"] == 8
    assert [kept.step for kept in watched.monitor._actions.keeper.states] == [8, 14]


def test_a_rollback_in_the_middle_of_a_skip(tmp_path: Path) -> None:
    """Steps 5 to 7 are skipped; before step 6 it goes back to step 4: that is what remains."""
    data = batches(9)
    requests = [("skip_step", {"steps": 3.0}, 5), ("rollback", {"factor": 1.0, "before": 4.0}, 6)]
    watched = asked(builder("pynative"), data, tmp_path, requests, keep_every=4)
    assert_same_state(watched, plain(builder("pynative"), [*data[:3], *data[7:]]))


def test_a_failing_copy_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(parameter: Any) -> Any:
        raise RuntimeError("the device does not answer")

    build, data = builder("pynative"), batches(5)
    unwatched = plain(build, data)
    monkeypatch.setattr(state, "_as_array", fail)
    watched = asked(build, data, tmp_path, [("skip_step", {"steps": 1.0}, 3)])
    assert watched.told == [(1, "failed", 3)]
    assert "the device does not answer" in watched.answers[0].detail
    assert_same_state(watched, unwatched)
