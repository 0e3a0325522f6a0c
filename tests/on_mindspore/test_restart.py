"""`Monitor.restart`: the next run with the same probes, and numbers of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.mindspore import attach
from nets import batches, make_training, weights


def train(training: Any, monitor: Any, steps: int, step: Any = None) -> None:
    for ids, labels in batches(steps):
        loss = (step or training.step)(ids, labels)
        monitor.step(loss)


def watched(mode: str, folder: Path) -> tuple[Any, Any, Any]:
    training = make_training(mode)
    monitor = attach(
        training.net,
        training.optimizer,
        summary_dir=folder,
        train_cell=training.cell,
        interval=4,
        measures=["loss", "gradient", "attn_entropy"],
    )
    return training, monitor, monitor.jit(training.step) if mode == "jit" else training.step


@pytest.mark.parametrize("mode", ["graph", "jit", "pynative"])
def test_the_next_run_has_its_own_folder_and_steps(mode: str, tmp_path: Path) -> None:
    training, monitor, step = watched(mode, tmp_path / "one")
    train(training, monitor, 10, step)
    monitor.restart(tmp_path / "two")
    train(training, monitor, 6, step)
    monitor.restart(tmp_path / "three", first_step=6)
    train(training, monitor, 4, step)
    monitor.close()
    one, two, three = (open_run(tmp_path / name) for name in ("one", "two", "three"))
    for tag in ("grad_norm", "train_loss", "step_time_s"):
        assert one.series(tag).steps.tolist() == list(range(1, 11))
        assert two.series(tag).steps.tolist() == list(range(1, 7))
        assert three.series(tag).steps.tolist() == [6, 7, 8, 9]
    # No row of the run before, though its steps had the same numbers and other variants.
    assert one.series("attn_entropy").steps.tolist() == [1, 5, 9]
    assert two.series("attn_entropy").steps.tolist() == [1, 5]
    assert three.series("attn_entropy").steps.tolist() == [9]
    assert not np.array_equal(one.series("grad_norm").values[:6], two.series("grad_norm").values)


def test_a_restart_changes_no_weight_and_compiles_nothing(tmp_path: Path) -> None:
    """Plain, and restarted between two steps: the same bits."""
    plain = make_training("graph")
    for ids, labels in batches(6):
        plain.step(ids, labels)
    training, monitor, _ = watched("graph", tmp_path / "one")
    for number, (ids, labels) in enumerate(batches(6)):
        if number == 3:
            compiled = set(training.cell.compile_cache)
            monitor.restart(tmp_path / "two")
        training.step(ids, labels)
        monitor.step()
    monitor.close()
    assert set(training.cell.compile_cache) == compiled
    expected = weights(plain.net)
    assert all(expected[name].tobytes() == w.tobytes() for name, w in weights(training.net).items())


def test_intervals_are_those_of_the_beginning(tmp_path: Path) -> None:
    training, monitor, _ = watched("graph", tmp_path / "one")
    monitor.set_interval("attention", 1)
    train(training, monitor, 5)
    monitor.restart(tmp_path / "two")
    train(training, monitor, 6)
    monitor.close()
    assert open_run(tmp_path / "one").series("attn_entropy").steps.tolist() == [1, 2, 3, 4, 5]
    assert open_run(tmp_path / "two").series("attn_entropy").steps.tolist() == [1, 5]


def test_a_closed_monitor_cannot_begin_anew(tmp_path: Path) -> None:
    training, monitor, _ = watched("pynative", tmp_path / "one")
    train(training, monitor, 2)
    monitor.close()
    with pytest.raises(UsageError, match="attach a new one"):
        monitor.restart(tmp_path / "two")


def test_a_folder_that_cannot_be_written_does_not_stop_the_training(tmp_path: Path) -> None:
    training, monitor, _ = watched("pynative", tmp_path / "one")
    train(training, monitor, 3)
    (tmp_path / "file").write_text("no folder")
    monitor.restart(tmp_path / "file")
    train(training, monitor, 2)
    monitor.close()
    assert "StoreError" in monitor.problem
    assert open_run(tmp_path / "one").series("train_loss").steps.tolist() == [1, 2, 3]


def test_numbers_of_ones_own(tmp_path: Path) -> None:
    training, monitor, _ = watched("pynative", tmp_path / "run")
    train(training, monitor, 3)
    monitor.add_scalars({"eval_loss": 2.5})
    train(training, monitor, 2)
    monitor.add_scalars({"eval_loss": 2.25, "eval_accuracy": 0.5}, step=7)
    monitor.close()
    run = open_run(tmp_path / "run")
    assert run.series("eval_loss").steps.tolist() == [3, 7]
    assert run.series("eval_loss").values.tolist() == [2.5, 2.25]
    assert run.series("eval_accuracy").steps.tolist() == [7]
