"""The plain step in each mode, and recompute, clipping, accumulation, a sink, changing shapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from mindpulse import open_run
from mindpulse.mindspore import attach
from nets import WORDS, Encoder, Training, batches, weights
from ways import HOWS, as_numpy, assert_same, builder, expected, seed, stacked, train, twins
from ways_cells import MICRO, Accumulating, Clipping, Inheriting, Sink
from ways_nets import Decoder

STEPS = 3


@pytest.mark.parametrize("how", HOWS)
def test_a_plain_step(how: str, tmp_path: Path) -> None:
    run, _ = twins(builder(how), batches(STEPS), tmp_path)
    expected(builder("pynative"), batches(STEPS)).check(run)


needs_bytecode = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="MindSpore captures no later bytecode"
)
BEFORE = """
import sys
import mindspore as ms
from nets import batches
from ways import builder
training = builder("bytecode")()
from mindpulse.mindspore import attach
monitor = attach(training.net, training.optimizer, summary_dir=sys.argv[1])
for batch in batches(8):
    monitor.step(training.step(*batch))
monitor.close()
"""


@needs_bytecode
def test_a_step_that_bytecode_capture_compiles(tmp_path: Path) -> None:
    """Its code is captured, ours is not."""
    run, _ = twins(builder("bytecode"), batches(8), tmp_path)
    expected(builder("pynative"), batches(8)).check(run)
    assert not [note for note in run.notes() if "error" in note.kind]


@needs_bytecode
def test_a_step_that_was_decorated_before_the_monitor_came(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEFORE, str(tmp_path / "run")]
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    run = open_run(tmp_path / "run")
    assert run.series("grad_norm").steps.tolist() == list(range(1, 9))
    plain = train(builder("pynative"), batches(8))
    np.testing.assert_allclose(run.series("train_loss").values, plain.results, rtol=1e-4)
    assert not [note for note in run.notes() if "error" in note.kind]


def test_a_step_compiled_by_the_monitor_is_thinned(tmp_path: Path) -> None:
    plain = train(builder("jit"), batches(7))
    training = builder("pynative")()
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path,
        interval={"attention": 3},
        snapshot_every=0,
    )
    step = monitor.jit(training.step)
    for result, batch in zip(plain.results, batches(7), strict=True):
        loss = step(*batch)
        monitor.step(loss)
        np.testing.assert_array_equal(as_numpy(loss), result)
    monitor.close()
    assert monitor.problem == ""
    assert_same(plain.weights, weights(training.net))
    run = open_run(tmp_path)
    assert run.series("attn_focus").steps.tolist() == [1, 4, 7]
    assert run.series("grad_norm").steps.tolist() == list(range(1, 8))
    wanted = expected(builder("pynative"), batches(7))
    np.testing.assert_allclose(run.series("attn_focus").values, wanted.focus[::3], rtol=2e-3)


def recomputed() -> Any:
    net = Encoder(layers=1)
    net.layers[0].recompute()
    return net


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_recompute_counts_a_layer_once(how: str, tmp_path: Path) -> None:
    """PyNative runs a recomputed layer twice; the numbers are those of a net without recompute."""
    run, _ = twins(builder(how, net=recomputed), batches(STEPS), tmp_path)
    expected(builder("pynative"), batches(STEPS)).check(run)


@pytest.mark.parametrize("how", HOWS)
def test_clipping_before_the_optimizer(how: str, tmp_path: Path) -> None:
    """What is reported is the norm that the optimizer gets."""
    build = builder(how, cell=Clipping, clip=Clipping.limit)
    run, _ = twins(build, batches(STEPS), tmp_path)
    wanted = expected(builder("pynative"), batches(STEPS), clip=Clipping.limit)
    wanted.check(run)
    np.testing.assert_allclose(run.series("grad_norm").values, Clipping.limit, rtol=1e-5)


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_a_cell_that_calls_its_base_class(how: str, tmp_path: Path) -> None:
    """The graph compiler takes `super()` for the class behind the instance's own."""
    run, _ = twins(builder(how, cell=Inheriting), batches(STEPS), tmp_path)
    expected(builder("pynative"), batches(STEPS)).check(run)


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_accumulation_in_a_cell(how: str, tmp_path: Path) -> None:
    """Rows are optimizer steps; loss and attention are means over the micro-steps."""
    data = batches(3 * MICRO)
    run, _ = twins(builder(how, cell=Accumulating), data, tmp_path, micro=MICRO)
    expected(builder("pynative"), data, micro=MICRO).check(run)


def accumulating(how: str) -> Training:
    """The functional way: a step is a list of micro-batches."""
    seed(how)
    training = builder("pynative")()
    net, optimizer = training.net, training.optimizer
    gradients = ms.value_and_grad(net, None, optimizer.parameters)
    if how == "jit":
        gradients = ms.jit(gradients)

    def step(*micro: Any) -> Any:
        losses, total = [], None
        for batch in micro:
            loss, grads = gradients(*batch)
            losses.append(loss)
            total = grads if total is None else [a + b for a, b in zip(total, grads, strict=True)]
        optimizer(tuple(grad / len(micro) for grad in total))
        return ops.stack(losses).mean()

    training.step = step
    return training


@pytest.mark.parametrize("how", ["jit", "pynative"])
def test_accumulation_in_a_function(how: str, tmp_path: Path) -> None:
    flat = batches(2 * MICRO)
    run, _ = twins(lambda: accumulating(how), [flat[:MICRO], flat[MICRO:]], tmp_path)
    expected(builder("pynative"), flat, micro=MICRO).check(run)


def test_a_sink_has_a_row_for_every_step(tmp_path: Path) -> None:
    """One call of the graph, several steps: the ring keeps them all."""
    run, _ = twins(builder("graph", cell=Sink), stacked(2, 3), tmp_path)
    expected(builder("pynative"), batches(6)).check(run)


def of_shapes() -> list[Any]:
    """Batches of two lengths, and a last one that is smaller."""
    rng = np.random.default_rng(11)
    shapes = [(4, 12), (4, 7), (4, 12), (4, 7), (3, 12)]
    return [tuple(Tensor(rng.integers(0, WORDS, s), ms.int32) for _ in range(2)) for s in shapes]


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_changing_shapes(how: str, tmp_path: Path) -> None:
    """The graph is compiled anew for each shape, and the rows go on."""
    run, _ = twins(builder(how, net=Decoder), of_shapes(), tmp_path)
    expected(builder("pynative", net=Decoder), of_shapes()).check(run)
    assert [note.kind for note in run.notes()].count("precision") == 1


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_evaluation_between_steps_is_not_training(how: str, told: bool, tmp_path: Path) -> None:
    """By `set_train(False)`, or where the user forgets it by `monitor.paused()`."""
    data, other = of_shapes()[:3], of_shapes()[4]
    training = builder(how, net=Decoder)()
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=tmp_path,
        train_cell=training.cell,
        interval=1,
        snapshot_every=0,
    )
    for batch in data:
        loss = training.step(*batch)
        monitor.step(loss if training.cell is None else None)
        if told:
            with monitor.paused():
                training.net(*other)
        else:
            training.net.set_train(False)
            training.net(*other)
            training.net.set_train()
    monitor.close()
    assert monitor.problem == ""
    expected(builder("pynative", net=Decoder), data).check(open_run(tmp_path))
