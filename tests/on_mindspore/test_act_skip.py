"""skip_step: the update really does not happen, in every mode and for every kind of optimizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from acting import Asking, asked, assert_same_state, differing, plain, state_of, wait_until
from mindpulse import open_run
from mindpulse.control import ControlLog
from mindpulse.mindspore import attach
from nets import batches
from ways import HOWS, builder, small_net, stacked
from ways_cells import Accumulating, Sink, scaled

SKIP = ("skip_step", {"steps": 1.0}, 3)


def adam(parameters: Any) -> Any:
    return nn.Adam(parameters, nn.ExponentialDecayLR(1e-2, 0.9, 2))


def momentum(parameters: Any) -> Any:
    return nn.Momentum(parameters, 1e-2, 0.9)


def grouped(parameters: Any) -> Any:
    some = [p for p in parameters if "attention" in p.name]
    rest = [p for p in parameters if "attention" not in p.name]
    groups = [{"params": some, "lr": 1e-3}, {"params": rest, "lr": 1e-2, "weight_decay": 0.1}]
    return nn.AdamWeightDecay(groups, 1e-2)


def experimental(parameters: Any) -> Any:
    return ms.experimental.optim.AdamW(parameters, 1e-2)


def check(build: Any, folder: Path, **options: Any) -> None:
    """Step 3 of 6 leaves no trace but its rows."""
    data = batches(6)
    watched = asked(build, data, folder, [SKIP], **options)
    assert watched.told == [(1, "done", 3)]
    assert "the update of step 3 does not happen" in watched.answers[0].detail
    assert_same_state(watched, plain(build, [*data[:2], *data[3:]]))
    losses = open_run(folder).series("train_loss")
    assert losses.steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(losses.values).all()


@pytest.mark.parametrize("how", HOWS)
def test_in_every_mode(how: str, tmp_path: Path) -> None:
    check(builder(how), tmp_path)


@pytest.mark.parametrize(
    ("how", "optimizer"),
    [("graph", adam), ("pynative", adam), ("jit", momentum), ("graph", grouped), ("jit", grouped),
     ("jit", experimental)],
)  # fmt: skip
def test_for_every_kind_of_optimizer(how: str, optimizer: Any, tmp_path: Path) -> None:
    check(builder(how, optimizer=optimizer), tmp_path)


def test_under_the_monitors_own_jit(tmp_path: Path) -> None:
    """Dear measures on every second step: two variants of the step, and a skip in between."""
    data = batches(6)
    training = builder("pynative")()
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path, interval=2, snapshot_every=0
    )
    step = monitor.jit(training.step)
    ControlLog(tmp_path).request("skip_step", {"steps": 1}, step=3, expires_step=9)
    wait_until(lambda: bool(monitor.requests_heard))
    for batch in data:
        monitor.step(step(*batch))
    monitor.close()
    watched = Asking(training, state_of(training))
    assert_same_state(watched, plain(builder("jit"), [*data[:2], *data[3:]]))


def test_several_steps_and_an_update_after_them(tmp_path: Path) -> None:
    data = batches(7)
    build = builder("jit", optimizer=adam)
    watched = asked(build, data, tmp_path, [("skip_step", {"steps": 3.0}, 2)])
    assert_same_state(watched, plain(build, [data[0], *data[4:]]))
    assert watched.monitor._actions.skip.left == 0
    assert watched.monitor._actions.skip._before is None


def test_with_a_dynamic_loss_scale(tmp_path: Path) -> None:
    """Scale and counters, too, are those of a training that never saw the batch."""
    build = builder("graph", cell=scaled)
    data = batches(6)
    watched = asked(build, data, tmp_path, [SKIP])
    without = plain(build, [*data[:2], *data[3:]])
    assert_same_state(watched, without)
    assert {"scale_sense"} & {name.split(".")[-1] for name, _ in watched.state}


def test_accumulated_gradients_are_left_out_as_a_whole(tmp_path: Path) -> None:
    """Three calls make a step: from the fourth on the monitor knows it, and skips calls 7 to 9."""
    build = builder("cell", cell=Accumulating)
    data = batches(18)
    watched = asked(build, data, tmp_path, [("skip_step", {"steps": 1.0}, 5)])
    assert watched.told == [(1, "done", 5)]
    assert_same_state(watched, plain(build, [*data[:12], *data[15:]]))


def test_a_sink_is_refused(tmp_path: Path) -> None:
    build = builder("graph", cell=Sink)
    data = stacked(4, 2)
    watched = asked(build, data, tmp_path, [("skip_step", {"steps": 1.0}, 6)])
    assert [status for _, status, _ in watched.told] == ["refused"]
    assert "one call runs 2 steps" in watched.answers[0].detail
    assert_same_state(watched, plain(build, data))


def test_the_test_would_see_an_update(tmp_path: Path) -> None:
    """Without the request the twins differ, in weights, moments and counters."""
    data = batches(4)
    build = builder("pynative", net=small_net, optimizer=adam)
    watched = asked(build, data, tmp_path, [])
    found = differing(watched, plain(build, [*data[:2], *data[3:]]))
    assert {"global_step", "beta1_power"} <= found
    assert any("moment1" in name for name in found)
    assert any(name.endswith("head.weight") for name in found)
