"""A training watched with a mirror leaves the same numbers for TensorBoard and MindInsight."""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np

from mindpulse import open_run
from mindpulse.interop.events.run import EventsRun
from mindpulse.mindspore import TransformerMonitor, attach
from mindpulse.series import SeriesSpec
from nets import batches, make_training
from test_callback import train

BOTH = ("tensorboard", "mindspore")


def assert_mirrored(run: Path) -> None:
    """Every series of ours, in single precision."""
    ours = open_run(run)
    assert {"train_loss", "attn_entropy", "grad_norm"} <= set(ours.specs())
    for name in BOTH:
        mirror = EventsRun(run / name)
        for tag, spec in ours.specs().items():
            mine, theirs = ours.series(tag), mirror.series(tag)
            assert mine.steps.tolist() == theirs.steps.tolist(), tag
            assert mine.wall_times.tolist() == theirs.wall_times.tolist(), tag
            assert np.array_equal(mine.values.astype(np.float32), theirs.values, equal_nan=True)
            assert columns(spec) == columns(theirs.spec)


def columns(spec: SeriesSpec) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    return spec.axes, spec.columns


def test_model_train(tmp_path: Path) -> None:
    train(ms.GRAPH_MODE, [TransformerMonitor(tmp_path / "run", interval=2, mirror=BOTH)])
    assert_mirrored(tmp_path / "run")
    assert [report.problem for report in open_run(tmp_path / "run").files() if report.foreign] == []


def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    training = make_training("pynative")
    net, optimizer = training.net, training.optimizer
    with attach(net, optimizer, summary_dir=tmp_path / "run", mirror=BOTH) as monitor:
        for ids, labels in batches(4):
            monitor.step(training.step(ids, labels))
    assert_mirrored(tmp_path / "run")
