"""`TransformerMonitor` in `Model.train`, the actions, and what must never break a training."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import Model

from mindpulse import open_run
from mindpulse.control import Answer, ControlLog
from mindpulse.errors import UsageError
from mindpulse.mindspore import TransformerMonitor, attach
from mindpulse.mindspore.monitor import MAX_FAILURES
from mindpulse.mindspore.ring import Ring
from nets import BATCH, HEADS, LENGTH, WORDS, Encoder, batches, make_training, weights


def dataset(steps: int) -> Any:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, WORDS, (steps * BATCH, 2, LENGTH)).astype(np.int32)
    return ds.NumpySlicesDataset({"ids": rows[:, 0], "labels": rows[:, 1]}, shuffle=False).batch(
        BATCH
    )


def wait_for_requests(monitor: Any, count: int) -> None:
    """Until the recorder's thread has read that many requests."""
    deadline = time.monotonic() + 20
    while len(monitor.requests_heard) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def train(mode: int, callbacks: list[Any], steps: int = 6, rate: Any = 1e-2) -> Any:
    ms.set_context(mode=mode)
    ms.set_seed(7)
    np.random.seed(7)
    net = Encoder()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), rate)
    Model(net, loss_fn=None, optimizer=optimizer).train(
        1, dataset(steps), callbacks=callbacks, dataset_sink_mode=False
    )
    return net


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_one_line_is_enough(mode: int, tmp_path: Path) -> None:
    plain = weights(train(mode, []))
    probed = weights(train(mode, [TransformerMonitor(tmp_path / "run", interval=2)]))
    assert all(plain[name].tobytes() == probed[name].tobytes() for name in plain)
    run = open_run(tmp_path / "run")
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert run.series("attn_entropy").steps.tolist() == [1, 3, 5]
    assert run.tags["mode"] == ("graph" if mode == ms.GRAPH_MODE else "pynative")


def test_loss_is_that_of_model_train(tmp_path: Path) -> None:
    class Losses(ms.train.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[float] = []

        def on_train_step_end(self, run_context: Any) -> None:
            self.seen.append(float(run_context.original_args().net_outputs.asnumpy()))

    losses = Losses()
    train(ms.GRAPH_MODE, [TransformerMonitor(tmp_path / "run"), losses])
    np.testing.assert_array_equal(
        open_run(tmp_path / "run").series("train_loss").values, np.float64(losses.seen)
    )


def test_second_training_goes_on_counting(tmp_path: Path) -> None:
    monitor = TransformerMonitor(tmp_path / "run")
    train(ms.GRAPH_MODE, [monitor], steps=3)
    train(ms.GRAPH_MODE, [monitor], steps=2)
    run = open_run(tmp_path / "run")
    assert run.attempts == [1, 2]
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4, 5]


def test_the_same_model_trained_twice(tmp_path: Path) -> None:
    """The second training must not run the graphs of the first monitor."""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Encoder()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
    model = Model(net, loss_fn=None, optimizer=optimizer)
    monitor = TransformerMonitor(tmp_path / "run", interval=2)
    for steps in (3, 4):
        model.train(1, dataset(steps), callbacks=[monitor], dataset_sink_mode=False)
    run = open_run(tmp_path / "run")
    assert run.series("grad_norm").steps.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert run.series("attn_focus").steps.tolist() == [1, 3, 5, 7]


def test_no_probe_runs_after_close(tmp_path: Path) -> None:
    training = make_training("graph")
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path / "run", train_cell=training.cell
    )
    ids, labels = batches(1)[0]
    training.step(ids, labels)
    monitor.step()
    monitor.close()
    ring = monitor._planted.ring
    before = ring.read().counter
    training.step(ids, labels)
    assert ring.read().counter == before == 2


@pytest.mark.parametrize("mode", ["graph", "pynative"])
@pytest.mark.parametrize("schedule", [False, True])
def test_a_lowered_rate_stays_lowered_after_close(
    mode: str, schedule: bool, tmp_path: Path
) -> None:
    training = make_training(mode, nn.ExponentialDecayLR(1e-2, 1.0, 5) if schedule else 1e-2)
    net, optimizer, cell = training.net, training.optimizer, training.cell
    ids, labels = batches(1)[0]
    for number in range(3):
        with attach(net, optimizer, summary_dir=tmp_path / str(number), train_cell=cell) as monitor:
            monitor._planted.learning_rate.scale(0.5)
            training.step(ids, labels)
            monitor.step()
        rate = open_run(tmp_path / str(number)).series("learning_rate").values
        assert rate[-1] == pytest.approx(1e-2 * 0.5 ** (number + 1), rel=1e-5)


def test_probes_are_told(tmp_path: Path) -> None:
    monitor = TransformerMonitor(tmp_path / "run", exclude="layers.1.*")
    train(ms.GRAPH_MODE, [monitor], steps=2)
    told = {place.path: (place.state, place.reason) for place in monitor.probes}
    assert told["layers.0.attention.softmax"][0] == "planted"
    assert told["layers.1.attention.softmax"] == ("skipped", "matches exclude='layers.1.*'")
    assert told["optimizer"] == ("planted", "36 gradients")
    notes = [n for n in open_run(tmp_path / "run").notes() if n.kind == "probe"]
    assert {note.data["path"] for note in notes} == set(told)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("schedule", [False, True])
def test_requests_are_carried_out_at_the_step_asked_for(
    mode: int, schedule: bool, tmp_path: Path
) -> None:
    rate = nn.ExponentialDecayLR(1e-2, 1.0, 5) if schedule else 1e-2

    class Watcher(ms.train.Callback):
        """Asks in the middle of the training, and lets the recorder's thread see it."""

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 2:
                log = ControlLog(tmp_path / "run")
                log.request("scale_lr", {"factor": 0.5}, step=5, expires_step=50)
                log.request("stop", {}, step=8, expires_step=50)
                wait_for_requests(monitor.monitor, 2)

    monitor = TransformerMonitor(tmp_path / "run")
    train(mode, [monitor, Watcher()], steps=12, rate=rate)
    run = open_run(tmp_path / "run")
    np.testing.assert_allclose(
        run.series("learning_rate").values, [1e-2] * 4 + [5e-3] * 3, rtol=1e-6
    )
    answers = [m for m in ControlLog(tmp_path / "run").poll() if isinstance(m, Answer)]
    assert [(a.seq, a.step, a.status) for a in answers] == [(1, 5, "done"), (2, 8, "done")]
    name = "schedule_factor" if schedule else "learning_rate"
    assert answers[0].data[f"{name}_after"] == pytest.approx(answers[0].data[f"{name}_before"] / 2)


def test_late_request_expires(tmp_path: Path) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run")
    log = ControlLog(tmp_path / "run")
    for number, (ids, labels) in enumerate(batches(4)):
        if number == 3:
            log.request("scale_lr", {"factor": 0.5}, step=1, expires_step=2)
            wait_for_requests(monitor, 1)
        training.step(ids, labels)
        monitor.step()
    monitor.close()
    answers = [m for m in log.poll() if isinstance(m, Answer)]
    assert [(a.status, a.step) for a in answers] == [("expired", 5)]


def test_functional_stop(tmp_path: Path) -> None:
    training = make_training("jit")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run")
    ControlLog(tmp_path / "run").request("stop", {}, step=4, expires_step=40)
    steps = 0
    for ids, labels in batches(10):
        steps += 1
        loss = training.step(ids, labels)
        wait_for_requests(monitor, 1 if steps == 1 else 0)
        if monitor.step(loss):
            break
    monitor.close()
    assert steps == 3


def test_a_step_compiled_before_attach_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A jit function keeps what it was compiled with; losses given to `step` are still kept."""
    training = make_training("jit")
    steps = batches(5)
    training.step(*steps[0])
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run")
    with caplog.at_level(logging.WARNING, "mindpulse"):
        for ids, labels in steps:
            monitor.step(training.step(ids, labels))
        monitor.close()
    assert "attach before the step is first compiled" in caplog.text
    run = open_run(tmp_path / "run")
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4, 5]
    told = {note.data["path"] for note in run.notes() if note.data.get("state") == "never ran"}
    assert told >= {"optimizer", *(f"layers.{i}.attention.softmax" for i in range(2))}


def test_unwritable_folder_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with caplog.at_level(logging.ERROR, "mindpulse"):
        net = train(ms.GRAPH_MODE, [TransformerMonitor(blocked / "run")], steps=3)
    assert "does not watch this training" in caplog.text
    assert str(blocked) in caplog.text
    plain = weights(train(ms.GRAPH_MODE, [], steps=3))
    assert all(plain[k].tobytes() == v.tobytes() for k, v in weights(net).items())


def broken(*args: Any) -> Any:
    return args[0].no_such_method()


@pytest.mark.parametrize(
    ("module", "maker", "lost", "kept"),
    [
        ("attention", "rows", {"attn_focus"}, {"grad_norm", "norm_input_rms", "train_loss"}),
        ("norm", "row", {"norm_input_rms"}, {"grad_norm", "attn_focus", "train_loss"}),
        ("tensors", "half_squares", {"grad_norm"}, {"attn_focus", "norm_input_rms", "train_loss"}),
    ],
)
def test_a_probe_that_does_not_compile_is_taken_out(
    module: str, maker: str, lost: set[str], kept: set[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    from mindpulse.mindspore import measures

    monkeypatch.setattr(getattr(measures, module), maker, lambda wanted: broken)
    with caplog.at_level(logging.WARNING, "mindpulse"):
        net = train(ms.GRAPH_MODE, [TransformerMonitor(tmp_path / "run")], steps=3)
    assert "compiling the step with probes failed, the training goes on" in caplog.text
    run = open_run(tmp_path / "run")
    assert kept <= set(run.specs())
    assert not lost & set(run.specs())
    assert "failed" in {note.data["state"] for note in run.notes() if note.kind == "probe"}
    monkeypatch.undo()
    plain = weights(train(ms.GRAPH_MODE, [], steps=3))
    assert all(plain[k].tobytes() == v.tobytes() for k, v in weights(net).items())


def test_failing_monitor_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", capacity=4)
    monkeypatch.setattr(monitor._drain_all.harvest, "take", lambda *a: 1 / 0)
    for ids, labels in batches(6):
        assert monitor.step(training.step(ids, labels)) is False
    monitor.close()
    assert monitor.problem == ""
    notes = open_run(tmp_path / "run").notes()
    assert next(n.data["error"] for n in notes if n.kind == "monitor_error").startswith(
        "ZeroDivision"
    )


def test_a_monitor_that_fails_again_and_again_takes_itself_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", capacity=4)
    monkeypatch.setattr(monitor._drain_all.harvest, "take", lambda *a: 1 / 0)
    for ids, labels in batches(2 * MAX_FAILURES + 4):
        assert monitor.step(training.step(ids, labels)) is False
    assert monitor.problem.startswith("ZeroDivisionError")
    assert type(training.net.layers[0].attention.softmax) is nn.Softmax
    assert type(training.optimizer) is nn.AdamWeightDecay
    monitor.close()
    notes = open_run(tmp_path / "run").notes()
    assert len([n for n in notes if n.kind == "monitor_error"]) == MAX_FAILURES


def test_a_stop_that_was_answered_is_kept_though_the_monitor_gives_up(tmp_path: Path) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run")
    monitor._stop_asked = True
    monitor._guard.failures = MAX_FAILURES
    assert monitor.step() is True
    assert monitor._recorder is None
    monitor.close()


def test_a_monitor_that_cannot_start_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ring, "read", lambda ring: 1 / 0)
    training = make_training("graph")
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path / "run", train_cell=training.cell
    )
    assert monitor.problem.startswith("ZeroDivisionError")
    assert type(training.net.layers[0].attention.softmax) is nn.Softmax
    assert type(training.cell) is nn.TrainOneStepCell
    assert monitor.step(0.5) is False


@pytest.mark.parametrize("bad", [{"interval": 0}, {"capacity": 1}, {"snapshot_every": -1}])
def test_bad_options_are_refused_before_training(bad: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=str(next(iter(bad.values())))):
        TransformerMonitor(tmp_path, **bad)


def test_snapshots(tmp_path: Path) -> None:
    train(
        ms.GRAPH_MODE,
        [TransformerMonitor(tmp_path / "run", interval=2, snapshot_every=4)],
        12,
    )
    names = [path.name for path in open_run(tmp_path / "run").snapshots()]
    assert "attn_L00_s000011.npz" in names
    with np.load(tmp_path / "run/attempt-0001/rank-0000/snapshots/attn_L01_s000011.npz") as arrays:
        attention = arrays["attention"]
        assert arrays["path"].item() == "layers.1.attention.softmax"
    assert attention.shape == (HEADS, LENGTH, LENGTH)
    np.testing.assert_allclose(attention.sum(-1), 1.0, atol=1e-5)
    assert not attention[..., LENGTH - 3 :].any()  # the masked keys
