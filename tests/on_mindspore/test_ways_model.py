"""`Model.train` and `Model.fit`: evaluation, data sink, amp, training cells of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.train import Callback, Model

from mindpulse import open_run
from mindpulse.mindspore import TransformerMonitor
from nets import BATCH, LENGTH, WORDS, Encoder, weights
from ways import adam, as_numpy, assert_same, builder, expected, seed, small_net
from ways_cells import MICRO, Accumulating, scaled
from ways_nets import Decoder

STEPS = 6
ODD = 2  # samples of the last, smaller batch of an epoch


def samples(count: int, number: int = 5) -> Any:
    return np.random.default_rng(number).integers(0, WORDS, (count, 2, LENGTH)).astype(np.int32)


def dataset(rows: Any) -> Any:
    columns = {"ids": rows[:, 0], "labels": rows[:, 1]}
    return ds.NumpySlicesDataset(columns, shuffle=False).batch(BATCH)


def as_batches(rows: Any, epochs: int = 1) -> list[Any]:
    """The batches of `epochs` epochs over `rows`, for the reference."""
    parts = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)] * epochs
    return [(Tensor(part[:, 0]), Tensor(part[:, 1])) for part in parts]


class Outputs(Callback):
    """What each call of the training cell returned."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.seen.append(as_numpy(run_context.original_args().net_outputs))


class Evaluated(nn.Cell):
    """The model as `Model.eval` wants it; the cells are those of the training."""

    def __init__(self, network: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, ids: Any, labels: Any) -> Any:
        return self.network(ids, labels), ids, labels


@dataclass
class Fitted:
    weights: dict[str, Any]
    outputs: list[Any]
    monitor: Any


def fit(mode: str, rows: Any, folder: Path | None, sink: bool = False, **options: Any) -> Fitted:
    """Two epochs with an evaluation behind each, or one where `cell` makes the training cell."""
    seed(mode)
    net = options.pop("net", small_net)()
    make, cell = options.pop("optimizer", adam), options.pop("cell", None)
    optimizer, outputs = make(net.trainable_params()), Outputs()
    monitor = None
    if folder is not None:
        monitor = TransformerMonitor(folder, interval=1, snapshot_every=0)
    callbacks = [outputs] if monitor is None else [monitor, outputs]
    if cell is not None:
        Model(cell(net, optimizer)).train(1, dataset(rows), callbacks, sink)
    else:
        model = Model(
            net,
            loss_fn=None,
            optimizer=optimizer,
            metrics={"loss": nn.Loss()},
            eval_network=Evaluated(net),
            eval_indexes=[0, 1, 2],
            **options,
        )
        model.fit(
            2,
            dataset(rows),
            dataset(samples(8, 9)),
            1,
            callbacks,
            sink,
            valid_dataset_sink_mode=False,
        )
    return Fitted(weights(net), outputs.seen, monitor)


def fit_twins(mode: str, rows: Any, folder: Path, **options: Any) -> tuple[Any, Fitted]:
    plain, watched = fit(mode, rows, None, **options), fit(mode, rows, folder, **options)
    assert watched.monitor.monitor.problem == ""
    assert_same(plain.weights, watched.weights)
    for one, other in zip(plain.outputs, watched.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    return open_run(folder), plain


@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_evaluation_and_sink(mode: str, sink: bool, tmp_path: Path) -> None:
    """Evaluation is never recorded; asked to sink, the CPU goes on step by step."""
    rows = samples(2 * BATCH + ODD)
    run, plain = fit_twins(mode, rows, tmp_path, sink=sink)
    assert len(plain.outputs) == 2 * 3
    expected(builder("pynative"), as_batches(rows, epochs=2)).check(run)
    np.testing.assert_allclose(run.series("train_loss").values, plain.outputs, rtol=1e-6)


@pytest.mark.parametrize("level", ["O2", "O3", "auto"])
def test_mixed_precision(level: str, tmp_path: Path) -> None:
    rows = samples(3 * BATCH)
    options = {"amp_level": level, "loss_scale_manager": None, "net": Decoder}
    run, _ = fit_twins("graph", rows, tmp_path, **options)

    def net() -> Any:
        return ms.amp.auto_mixed_precision(Decoder(), level)

    wanted = expected(builder("pynative", net=net), as_batches(rows, epochs=2))
    wanted.check(run, rtol=2e-2, atol=2e-3)


def test_fixed_loss_scale(tmp_path: Path) -> None:
    """The optimizer divides by the scale: the gradient that is reported is the unscaled one."""
    scale, rows = 1024.0, samples(3 * BATCH)
    run, _ = fit_twins(
        "graph",
        rows,
        tmp_path,
        optimizer=lambda p: nn.Momentum(p, 0.1, 0.9, loss_scale=scale),
        loss_scale_manager=ms.amp.FixedLossScaleManager(scale, drop_overflow_update=False),
    )
    plain = builder("pynative", optimizer=lambda p: nn.Momentum(p, 0.1, 0.9))
    expected(plain, as_batches(rows, epochs=2)).check(run)


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_a_cell_that_accumulates(mode: str, tmp_path: Path) -> None:
    """`Model` counts micro-steps; the run counts optimizer steps."""
    rows = samples(2 * MICRO * BATCH)
    run, plain = fit_twins(mode, rows, tmp_path, cell=Accumulating)
    assert len(plain.outputs) == 2 * MICRO
    expected(builder("pynative"), as_batches(rows), micro=MICRO).check(run)


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_a_cell_that_scales_the_loss(mode: str, tmp_path: Path) -> None:
    def half() -> Any:
        return Encoder(layers=1, hidden=0).to_float(ms.float16)

    run, plain = fit_twins(
        mode,
        samples(STEPS * BATCH),
        tmp_path,
        net=half,
        cell=lambda net, optimizer: scaled(net, optimizer, 2.0**17),
    )
    flags = [bool(output[1]) for output in plain.outputs]
    assert flags == [True, True, False, False, True, False]
    assert run.series("overflow").values.tolist() == [float(flag) for flag in flags]
    norms = run.series("grad_norm")
    assert norms.steps[np.isfinite(norms.values)].tolist() == [3, 4, 6]
