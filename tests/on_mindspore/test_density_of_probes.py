"""How densely probes measure, changed while training runs; what is not training is not recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from click.testing import CliRunner
from mindspore import nn, ops

import mindpulse
from mindpulse import open_run
from mindpulse.catalogue import attention as reference
from mindpulse.catalogue.user import forget
from mindpulse.cli import main
from mindpulse.errors import UsageError
from mindpulse.mindspore import attach, draining
from nets import MODES, WIDTH, Attention, Encoder, Training, batches, make_training, weights


def start(mode: str, folder: Path, **options: Any) -> tuple[Training, Any, Any]:
    """A training, its monitor, and the function that runs one step."""
    training = make_training(mode)
    monitor = attach(
        training.net, training.optimizer, summary_dir=folder, train_cell=training.cell, **options
    )
    step = monitor.jit(training.step) if mode == "jit" else training.step
    return training, monitor, step


def steps_of(folder: Path, tag: str) -> list[int]:
    found: list[int] = open_run(folder).series(tag).steps.tolist()
    return found


@pytest.mark.parametrize("mode", MODES)
def test_intervals_change_without_compiling(mode: str, tmp_path: Path) -> None:
    training, monitor, step = start(
        mode, tmp_path, interval={"attention": 4, "norm_input_rms": 8}, measures="default"
    )
    compiled = []
    for number, (ids, labels) in enumerate(batches(20), start=1):
        monitor.step(step(ids, labels))
        if training.cell is not None:
            compiled.append(len(training.cell.compile_cache))
        if number == 9:
            monitor.set_interval("attention", 2)
        if number == 14:
            monitor.burst(3)
    monitor.close()
    assert len(set(compiled)) <= 1
    assert steps_of(tmp_path, "attn_focus") == [1, 5, 9, 11, 13, 15, 16, 17, 19]
    assert steps_of(tmp_path, "norm_input_rms") == [1, 9, 15, 16, 17]
    assert steps_of(tmp_path, "grad_norm") == list(range(1, 21))
    assert monitor.problem == ""


@pytest.mark.parametrize("mode", MODES)
def test_snapshots_on_demand(mode: str, tmp_path: Path) -> None:
    _, monitor, step = start(mode, tmp_path, interval=50, snapshot_every=1000)
    for number, (ids, labels) in enumerate(batches(9), start=1):
        monitor.step(step(ids, labels))
        if number == 5:
            monitor.snapshot()
    monitor.close()
    names = sorted(path.name for path in open_run(tmp_path).snapshots())
    assert [name for name in names if "L00" in name] == [
        "attn_L00_s000001.npz", "attn_L00_s000006.npz",
    ]  # fmt: skip


def test_unknown_names_and_bad_numbers_are_refused(tmp_path: Path) -> None:
    _, monitor, _ = start("pynative", tmp_path)
    with pytest.raises(UsageError, match=r"attenton.*attention"):
        monitor.set_interval("attenton", 3)
    with pytest.raises(UsageError, match="0"):
        monitor.set_interval("attention", 0)
    with pytest.raises(UsageError, match="not measured in this run"):
        monitor.set_interval("grad_max_abs", 3)
    with pytest.raises(UsageError, match="-1"):
        monitor.burst(-1)
    monitor.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("told", [True, False])
def test_evaluation_is_no_training(mode: str, told: bool, tmp_path: Path) -> None:
    """Told by `paused()`, or seen by the mode of the cells."""
    training, monitor, step = start(mode, tmp_path / "run", interval=1)
    (other_ids, other_labels) = batches(1, seed=99)[0]
    plain = make_training("pynative")
    focus = []
    seen: list[Any] = []
    for layer in plain.net.layers:
        layer.attention.softmax.register_forward_hook(
            lambda cell, inputs, out: seen.append(out.asnumpy().copy())
        )
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)

    def evaluate() -> None:
        training.net.set_train(False)
        training.net(other_ids, other_labels)
        training.net.set_train(True)
        if training.cell is not None:
            training.cell.set_train(True)

    for ids, labels in batches(3):
        if told:
            with monitor.paused():
                evaluate()
        else:
            evaluate()
        monitor.step(step(ids, labels))
    evaluate()
    monitor.close()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for ids, labels in batches(3):
        seen.clear()
        plain.step(ids, labels)
        focus.append(np.concatenate([reference.attention_focus(p) for p in seen]))
    series = open_run(tmp_path / "run").series("attn_focus")
    assert series.steps.tolist() == [1, 2, 3]
    np.testing.assert_allclose(series.values, focus, rtol=2e-4)


class Albert(Encoder):
    """One layer, passed three times."""

    def __init__(self) -> None:
        super().__init__(layers=1)

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.embedding(ids) + self.position
        for _ in range(3):
            x = self.layers[0](x)
        logits = self.head(x).reshape(-1, self.head.out_channels)
        return ops.cross_entropy(logits, labels.reshape(-1))


def albert_step(mode: str, net: Any, optimizer: Any) -> tuple[Any, Any]:
    if mode == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
        cell = nn.TrainOneStepCell(net, optimizer).set_train()
        return cell, cell
    gradients = ms.value_and_grad(net, None, optimizer.parameters)

    def step(ids: Any, labels: Any) -> Any:
        loss, grads = gradients(ids, labels)
        optimizer(grads)
        return loss

    return (ms.jit(step) if mode == "jit" else step), None


@pytest.mark.parametrize("mode", MODES)
def test_a_cell_used_three_times_counts_three_times(mode: str, tmp_path: Path) -> None:
    ms.set_seed(3)
    np.random.seed(3)
    net = Albert()
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 1e-2)
    seen: list[Any] = []
    inputs_seen: list[Any] = []
    softmax, norm = net.layers[0].attention.softmax, net.layers[0].norm1
    handles = [
        softmax.register_forward_hook(lambda c, i, out: seen.append(out.asnumpy().copy())),
        norm.register_forward_hook(lambda c, i, out: inputs_seen.append(i[0].asnumpy().copy())),
    ]
    ids, labels = batches(1)[0]
    net(ids, labels)
    for handle in handles:
        handle.remove()
    assert len(seen) == 3
    step, cell = albert_step(mode, net, optimizer)
    with attach(net, optimizer, summary_dir=tmp_path, interval=1, train_cell=cell) as monitor:
        monitor.step(step(ids, labels))
    run = open_run(tmp_path)
    focus = np.mean([reference.attention_focus(p) for p in seen], axis=0)
    np.testing.assert_allclose(run.series("attn_focus").values[0], focus, rtol=1e-4)
    largest = max(np.abs(x).max() for x in inputs_seen)
    columns = run.series("norm_input_max_abs").labels[:, 0].tolist()
    found = run.series("norm_input_max_abs").values[0][columns.index("layers.0.norm1")]
    assert found == pytest.approx(largest, rel=1e-4)


# The user's own measures.


@pytest.fixture
def own() -> Any:
    """Two measures of the user's; the second one fails on the second step in PyNative."""

    @mindpulse.measure("attn_second", place="attention")
    def attn_second(p: Any) -> Any:
        return ops.topk(p, 2)[0][..., 1].mean((0, 2))

    @mindpulse.measure("grad_mean_abs", place="gradient", cost="cheap")
    def grad_mean_abs(g: Any) -> Any:
        return ops.abs(g).mean()

    yield
    for tag in ("attn_second", "grad_mean_abs", "bad"):
        forget(tag)


@pytest.mark.parametrize("mode", MODES)
def test_own_measures_are_series_like_any(mode: str, tmp_path: Path, own: Any) -> None:
    plain = make_training("pynative")
    seen: list[Any] = []
    for layer in plain.net.layers:
        layer.attention.softmax.register_forward_hook(
            lambda cell, inputs, out: seen.append(out.asnumpy().copy())
        )
    gradients = ms.value_and_grad(plain.net, None, plain.optimizer.parameters)
    ids, labels = batches(1)[0]
    _, grads = gradients(ids, labels)
    _, monitor, step = start(mode, tmp_path, measures="cheap", interval={"attn_second": 2})
    for _ in range(3):
        monitor.step(step(ids, labels))
    monitor.close()
    run = open_run(tmp_path)
    second = run.series("attn_second")
    assert second.steps.tolist() == [1, 3]
    wanted = np.concatenate([np.sort(p)[..., -2].mean((0, 2)) for p in seen])
    np.testing.assert_allclose(second.values[0], wanted, rtol=1e-4)
    means = [np.abs(g.asnumpy()).mean() for g in grads]
    np.testing.assert_allclose(run.series("grad_mean_abs").values[0], means, rtol=1e-3, atol=1e-9)
    assert run.series("grad_mean_abs").steps.tolist() == [1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_an_own_measure_that_fails_costs_itself_only(mode: str, tmp_path: Path, own: Any) -> None:
    @mindpulse.measure("bad", place="attention", cost="cheap")
    def bad(p: Any) -> Any:
        return ops.matmul(p, ops.ones((7, 7), ms.float32)).mean((0, 2, 3))

    plain = make_training(mode)
    for ids, labels in batches(3):
        plain.step(ids, labels)
    training, monitor, step = start(mode, tmp_path, interval=1)
    for ids, labels in batches(3):
        monitor.step(step(ids, labels))
    monitor.close()
    assert monitor.problem == ""
    run = open_run(tmp_path)
    assert run.series("attn_focus").steps.tolist() == [1, 2, 3]
    assert run.series("grad_norm").steps.tolist() == [1, 2, 3]
    if "bad" in run.specs():
        assert np.isnan(run.series("bad").values).all()
    errors = [note.data for note in run.notes() if note.kind == "monitor_error"]
    assert len(errors) <= 2
    assert errors
    for name, value in weights(plain.net).items():
        assert value.tobytes() == weights(training.net)[name].tobytes(), name


def test_an_attention_that_nobody_trains_is_told(tmp_path: Path) -> None:
    class Unused(Encoder):
        def __init__(self) -> None:
            super().__init__()
            self.spare = Attention(0)

    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = Unused()
    net.set_train()
    optimizer = nn.SGD(net.trainable_params()[:-8], 1e-2)
    gradients = ms.value_and_grad(net, None, optimizer.parameters)
    monitor = attach(net, optimizer, summary_dir=tmp_path, interval=1)
    for ids, labels in batches(5):
        loss, grads = gradients(ids, labels)
        optimizer(grads)
        monitor.step(loss)
    states = {place.path: place.state for place in monitor.probes}
    monitor.close()
    assert states["spare.softmax"] == "never ran"
    assert states["layers.0.attention.softmax"] == "planted"
    assert WIDTH == 16


def test_an_own_measure_that_would_spoil_the_gradients_is_left_out(
    tmp_path: Path, own: Any
) -> None:
    """In PyNative an operator that refuses its types takes the gradients of the step with it."""

    @mindpulse.measure("bad", place="attention")
    def bad(p: Any) -> Any:
        mean = p.mean((0, 2, 3))
        return ops.stack((mean, mean.astype(ms.float16))).sum(0)

    _, monitor, step = start("pynative", tmp_path, interval=1)
    for ids, labels in batches(2):
        monitor.step(step(ids, labels))
    monitor.close()
    run = open_run(tmp_path)
    assert "bad" not in run.specs()
    assert run.series("attn_second").steps.tolist() == [1, 2]
    assert any("bad" in note.data["what"] for note in run.notes() if note.kind == "monitor_error")


def test_calls_without_an_optimizer_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "MOST_PENDING", 10)
    training, monitor, step = start("pynative", tmp_path)
    ids, labels = batches(1)[0]
    monitor.step(step(ids, labels))
    monitor.step(step(ids, labels))
    drains = []
    read = monitor._planted.ring.read
    monkeypatch.setattr(monitor._planted.ring, "read", lambda: drains.append(1) or read())
    for _ in range(100):  # gradients overflow, and nobody tells
        monitor.step(training.net(ids, labels))
    assert len(drains) < 20
    assert len(monitor._drain_all._pending) < 50
    monitor.step(step(ids, labels))
    monitor.close()
    run = open_run(tmp_path)
    assert run.series("grad_norm").steps.tolist() == [1, 2, 3]
    assert sum(note.data["count"] for note in run.notes() if note.kind == "calls_lost") > 50


def test_the_command_line_lists_the_probes(tmp_path: Path) -> None:
    _, monitor, step = start("pynative", tmp_path / "run", measures="cheap")
    ids, labels = batches(1)[0]
    for _ in range(3):
        monitor.step(step(ids, labels))
    monitor.close()
    short = CliRunner().invoke(main, ["probe", str(tmp_path / "run")])
    assert short.exit_code == 0, short.output
    assert "optimizer" in short.output
    assert "layers.0.attention.softmax" not in short.output
    told = CliRunner().invoke(main, ["probe", str(tmp_path / "run"), "--list", "--json"])
    places = {place["path"]: place for place in json.loads(told.stdout)["places"]}
    assert places["layers.0.attention.softmax"]["state"] == "skipped"
    assert "no measure of attention is wanted" in places["layers.0.attention.softmax"]["reason"]
    assert places["optimizer"]["state"] == "planted"
