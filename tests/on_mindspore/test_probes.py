"""Probes in real trainings: right numbers, the same in each mode, and not a bit of difference."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from mindpulse import open_run
from mindpulse.alerts import AlertEvent
from mindpulse.catalogue import attention as reference
from mindpulse.errors import UsageError
from mindpulse.mindspore import attach
from mindpulse.rules.load import load_rules
from mindpulse.watcher import watch
from nets import HEADS, LENGTH, MODES, batches, make_training, weights

STEPS = 5
SHOWN = np.arange(LENGTH) < LENGTH - 3  # the nets hide the last three keys


def watched_run(mode: str, folder: Path, steps: int = STEPS, **options: Any) -> Any:
    training = make_training(mode)
    monitor = attach(
        training.net, training.optimizer, summary_dir=folder, train_cell=training.cell, **options
    )
    for ids, labels in batches(steps):
        loss = training.step(ids, labels)
        monitor.step(loss if mode != "graph" else None)
    monitor.close()
    assert monitor.problem == ""
    return training


def unwatched_weights(mode: str, steps: int = STEPS) -> dict[str, np.ndarray[Any, Any]]:
    training = make_training(mode)
    for ids, labels in batches(steps):
        training.step(ids, labels)
    return weights(training.net)


class Reference:
    """The same training in PyNative, each tensor copied to NumPy: what probes should have seen."""

    def __init__(self, steps: int) -> None:
        self.losses: list[float] = []
        self.focus: list[Any] = []
        self.entropy: list[Any] = []
        self.norms: list[list[float]] = []
        training = make_training("pynative")
        seen: list[Any] = []
        for layer in training.net.layers:
            layer.attention.softmax.register_forward_hook(
                lambda cell, inputs, output: seen.append(output.asnumpy().copy())
            )
        gradients = ms.value_and_grad(training.net, None, training.optimizer.parameters)
        for ids, labels in batches(steps):
            loss, grads = gradients(ids, labels)
            self.losses.append(float(loss.asnumpy()))
            self.norms.append(
                [float(np.linalg.norm(g.asnumpy().astype(np.float64))) for g in grads]
            )
            self.focus.append(np.concatenate([reference.attention_focus(p) for p in seen]))
            self.entropy.append(
                np.concatenate([reference.attention_entropy(p, SHOWN) for p in seen])
            )
            seen.clear()
            training.optimizer(grads)
        self.names = [p.name for p in training.optimizer.parameters]


@pytest.fixture(scope="module")
def expected() -> Reference:
    return Reference(STEPS)


# The modes round differently (fused kernels), and the weights drift apart a little with each step.
CLOSE = {"rtol": 2e-4, "atol": 2e-6}


@pytest.mark.parametrize("mode", MODES)
def test_numbers_are_those_of_numpy(mode: str, tmp_path: Path, expected: Reference) -> None:
    watched_run(mode, tmp_path / "run", interval=1)
    run = open_run(tmp_path / "run")
    loss = run.series("train_loss")
    assert loss.steps.tolist() == list(range(1, STEPS + 1))
    np.testing.assert_allclose(loss.values, expected.losses, **CLOSE)
    norms = run.series("grad_norm_param")
    assert norms.labels[:, 0].tolist() == expected.names
    np.testing.assert_allclose(norms.values, expected.norms, rtol=2e-3, atol=1e-6)
    total = np.sqrt(np.square(expected.norms).sum(1))
    np.testing.assert_allclose(run.series("grad_norm").values, total, **CLOSE)
    focus, entropy = run.series("attn_focus"), run.series("attn_entropy")
    assert focus.labels.tolist() == [[str(i), str(h)] for i in range(2) for h in range(HEADS)]
    np.testing.assert_allclose(focus.values, expected.focus, **CLOSE)
    np.testing.assert_allclose(entropy.values, expected.entropy, **CLOSE)
    np.testing.assert_allclose(run.series("learning_rate").values, 1e-2, rtol=1e-6)
    times = run.series("step_time_s")
    assert len(times) == STEPS
    assert (times.values > 0).all()


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_weights_are_bit_identical(mode: str, every: int, tmp_path: Path) -> None:
    plain = unwatched_weights(mode, 8)
    probed = weights(watched_run(mode, tmp_path / "run", 8, interval=every).net)
    assert list(probed) == list(plain)
    for name, value in plain.items():
        assert value.tobytes() == probed[name].tobytes(), name


def test_checkpoints_are_unchanged(tmp_path: Path) -> None:
    kept = {}
    for watched in (False, True):
        training = make_training("graph")
        monitor = (
            attach(training.net, training.optimizer, summary_dir=tmp_path / "run")
            if watched
            else None
        )
        for ids, labels in batches(2):
            training.step(ids, labels)
        path = str(tmp_path / f"{watched}.ckpt")
        ms.save_checkpoint(training.cell, path)
        kept[watched] = ms.load_checkpoint(path)
        if monitor:
            assert monitor.problem == ""
            monitor.close()
    assert list(kept[True]) == list(kept[False])
    assert not any("mindpulse" in name for name in kept[True])
    for name, parameter in kept[False].items():
        assert np.array_equal(parameter.asnumpy(), kept[True][name].asnumpy()), name


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_attention_is_thinned(mode: str, tmp_path: Path) -> None:
    watched_run(mode, tmp_path / "run", 9, interval=4)
    run = open_run(tmp_path / "run")
    assert run.series("attn_focus").steps.tolist() == [1, 5, 9]
    assert run.series("grad_norm").steps.tolist() == list(range(1, 10))


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_attention_stays_thinned_whenever_the_ring_is_read(mode: str, tmp_path: Path) -> None:
    """Here it is read for the first time when attention was already measured twice."""
    training = make_training(mode)
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path,
        train_cell=training.cell,
        interval=4,
    )
    for step, (ids, labels) in enumerate(batches(13), start=1):
        loss = training.step(ids, labels)
        monitor._drained_at = time.monotonic()  # no drain but this one
        monitor.step(loss if mode != "graph" else None)
        if step == 6:
            monitor.drain()
    monitor.close()
    assert open_run(tmp_path).series("attn_focus").steps.tolist() == [1, 5, 9, 13]


def test_a_jit_function_measures_always_and_what_is_due_is_kept(tmp_path: Path) -> None:
    """A jit function keeps its probes: the monitor finds out and stops swapping classes."""
    training = make_training("jit")
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path / "run", interval=4, capacity=4
    )
    for ids, labels in batches(9):
        monitor.step(training.step(ids, labels))
    assert monitor._planted.variants.fixed
    monitor.close()
    run = open_run(tmp_path / "run")
    assert run.series("attn_focus").steps.tolist() == [1, 5, 9]
    assert run.series("grad_norm").steps.tolist() == list(range(1, 10))


def test_nothing_is_compiled_after_the_first_step(tmp_path: Path) -> None:
    training = make_training("graph")
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path,
        train_cell=training.cell,
        interval=3,
    )
    assert monitor.problem == ""
    compiled = []
    for ids, labels in batches(8):
        training.step(ids, labels)
        monitor.step()
        compiled.append(len(training.cell.compile_cache))
    monitor.close()
    assert compiled == [2] * 8


def test_nothing_is_compiled_when_the_rate_changes(tmp_path: Path) -> None:
    training = make_training("graph", nn.ExponentialDecayLR(1e-2, 0.9, 4))
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path / "run",
        train_cell=training.cell,
        interval=1,
    )
    for number, (ids, labels) in enumerate(batches(6)):
        if number == 3:
            monitor._planted.learning_rate.scale(0.5)
        training.step(ids, labels)
        monitor.step()
    monitor.close()
    assert len(training.cell.compile_cache) == 1
    rates = open_run(tmp_path / "run").series("learning_rate").values
    plain = 1e-2 * 0.9 ** (np.arange(6) / 4)
    np.testing.assert_allclose(rates, plain * np.where(np.arange(6) < 3, 1.0, 0.5), rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_close_removes_what_was_planted(mode: str, tmp_path: Path) -> None:
    training = make_training(mode, nn.ExponentialDecayLR(1e-2, 0.9, 4))
    cells = {name: type(cell) for name, cell in training.net.cells_and_names()}
    others = [training.optimizer, training.optimizer.learning_rate, training.cell]
    types = [type(cell) for cell in others]
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path,
        train_cell=training.cell,
        interval=2,
    )
    assert monitor.problem == ""
    assert type(training.net.layers[0].attention.softmax) is not nn.Softmax
    for ids, labels in batches(2):
        training.step(ids, labels)
        monitor.step()
    monitor.close()
    monitor.close()
    assert {name: type(cell) for name, cell in training.net.cells_and_names()} == cells
    assert [type(cell) for cell in others] == types
    assert not training.optimizer._forward_hook


def test_nothing_is_read_from_an_unfinished_step(tmp_path: Path) -> None:
    """The ring is read in the middle of step 3: its attention is there, and is not taken."""
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", interval=1)
    taken: list[int] = []

    def in_the_middle(cell: Any, inputs: Any, output: Any) -> None:
        if monitor.steps_seen == 2 and not taken:
            reading = monitor._planted.ring.read()
            layer = reading.tables["attention.0"]
            slot = monitor._planted.ring.slots["attention.0"]
            assert (
                layer[3 % monitor._planted.ring.capacity, 0] == 4
            )  # step 3 (stamp 4) has written its row
            taken.extend(reading.rows_of(slot, 1, 99).steps.tolist())

    training.net.head.register_forward_hook(in_the_middle)
    for ids, labels in batches(4):
        training.step(ids, labels)
        monitor.step()
    monitor.close()
    assert taken == [1, 2]


def test_reading_waits_for_the_device(tmp_path: Path) -> None:
    """With the asynchronous queue on, a drain right behind a step brings that step's values."""
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", interval=1)
    expected = Reference(4)
    with Asynchronous():
        for ids, labels in batches(4):
            monitor.step(training.step(ids, labels))
            monitor.drain()
    monitor.close()
    np.testing.assert_allclose(
        open_run(tmp_path / "run").series("train_loss").values, expected.losses, **CLOSE
    )


class Asynchronous:
    """PyNative with its queue, as users have it."""

    def __enter__(self) -> None:
        ms.set_context(pynative_synchronize=False)

    def __exit__(self, *exc: object) -> None:
        ms.set_context(pynative_synchronize=True)


def test_small_ring_counts_what_it_loses(tmp_path: Path) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", capacity=4)
    for number, (ids, labels) in enumerate(batches(9)):
        training.step(ids, labels)
        if number == 8:
            monitor.step()
    monitor.close()
    run = open_run(tmp_path / "run")
    assert run.series("grad_norm").steps.tolist() == [6, 7, 8, 9]
    assert [note.data["count"] for note in run.notes() if note.kind == "steps_lost"] == [5]


def test_nonfinite_is_recorded_and_the_next_value_is_right(tmp_path: Path) -> None:
    training = make_training("pynative")
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / "run", interval=1)
    healthy = weights(training.net)
    for number, (ids, labels) in enumerate(batches(3)):
        for parameter in training.net.get_parameters():
            parameter.set_data(Tensor(healthy[parameter.name]))
        if number == 1:
            training.net.head.weight.set_data(Tensor(np.full_like(healthy["head.weight"], np.nan)))
        monitor.step(training.step(ids, labels))
    monitor.close()
    run = open_run(tmp_path / "run")
    assert np.isfinite(run.series("train_loss").values).tolist() == [True, False, True]
    assert np.isfinite(run.series("grad_norm").values).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("causal", "told"), [(True, ["causal-mask-leak"]), (False, []), (None, [])]
)
def test_what_the_model_was_declared_to_be_is_a_row_that_rules_judge_by(
    causal: bool | None, told: list[str], tmp_path: Path
) -> None:
    watched_run("pynative", tmp_path, 2, measures="all", causal=causal)  # nothing hides the future
    run = open_run(tmp_path)
    assert run.series("attn_future_mass").values.min() > 0.1
    if causal is None:
        assert "model_causal" not in run.tags
    else:
        row = run.series("model_causal")
        assert (row.steps.tolist(), row.values.tolist()) == ([1], [float(causal)])
    alerts = [e for e in watch(tmp_path, load_rules(), once=True) if isinstance(e, AlertEvent)]
    assert [alert.rule for alert in alerts if alert.part == "attention"] == told


def test_causal_is_true_false_or_none(tmp_path: Path) -> None:
    training = make_training("pynative")
    with pytest.raises(UsageError, match="causal='yes': use True, False, or None for not told"):
        attach(training.net, training.optimizer, summary_dir=tmp_path, causal="yes")


@pytest.mark.parametrize("interval_s", [1.0, 1e9])
def test_memory_is_read_every_ten_steps_however_fast_they_are(
    interval_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindpulse.mindspore.monitor.DRAIN_INTERVAL_S", interval_s)
    watched_run("pynative", tmp_path, 32)
    steps = open_run(tmp_path).series("host_memory_rss").steps
    assert {11, 21, 31} <= set(steps.tolist())
    assert (np.diff(steps) > 0).all()
