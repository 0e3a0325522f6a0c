"""The demo's trainings, its faults, and a whole demo with its watcher as a second process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from mindpulse import open_run
from mindpulse.control import Answer, ControlLog
from mindpulse.demo.bert import bert_task
from mindpulse.demo.encoder import EncoderConfig
from mindpulse.demo.faults import COLLAPSE_FACTOR, FAULTS, LR_FACTOR, Fault, assign
from mindpulse.demo.loop import functional_step, set_mode, train_functional, train_model
from mindpulse.demo.outcome import LAST_STEPS
from mindpulse.demo.task import Task, WarmUp, build_optimizer
from mindpulse.demo.vit import SIDE, load_digits, vit_task
from mindpulse.errors import UsageError
from processes import running

STEPS, FAULT_STEP = 8, 4
SMALL = EncoderConfig(layers=2, hidden=16, heads=2)


class Losses:
    """Keeps the losses and lets a fault strike."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.seen: list[float] = []
        self.fault = fault

    def before_step(self, step: int) -> None:
        if self.fault is not None and step == self.fault.step:
            self.fault.strike()

    def after_step(self, step: int, loss: float) -> None:
        assert step == len(self.seen) + 1
        self.seen.append(loss)


def small_vit(seed: int = 0) -> Task:
    task = vit_task(seed, SMALL)
    task.batches = replace(task.batches, batch=16)  # type: ignore[type-var]
    return task


def train(mode: str, fault: str = "", seed: int = 0) -> list[float]:
    """Losses of a short training without a monitor."""
    set_mode(mode)
    task = small_vit(seed)
    optimizer = build_optimizer(task, STEPS)
    losses = Losses(FAULTS[fault](task, optimizer, FAULT_STEP) if fault else None)
    if mode == "graph":
        train_model(task, optimizer, STEPS, losses, [])
    else:
        train_functional(task, optimizer, STEPS, losses, lambda loss: False, jit=mode == "jit")
    return losses.seen


@cache
def healthy(mode: str) -> list[float]:
    return train(mode)


@pytest.mark.parametrize("mode", ["jit", "pynative"])
def test_every_mode_trains_alike(mode: str) -> None:
    assert len(healthy(mode)) == STEPS
    np.testing.assert_allclose(healthy(mode), healthy("graph"), rtol=1e-4)


def test_the_same_seed_gives_the_same_losses() -> None:
    assert train("graph") == healthy("graph")
    assert train("graph", seed=6) != healthy("graph")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="mode 'sink': use one of graph, jit, pynative"):
        set_mode("sink")


def test_patches_hold_the_pixels_of_their_square() -> None:
    from sklearn import datasets

    image = datasets.load_digits().images[0] / 16.0
    patches = load_digits().patches[0]
    side = SIDE // 2
    for number in range(side**2):
        row, column = divmod(number, side)
        square = image[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        np.testing.assert_allclose(patches[number], square.ravel())


def test_schedule_rises_and_stays() -> None:
    set_mode("pynative")
    schedule = WarmUp(peak=1.0, steps=100)

    def rate(step: int) -> float:
        return float(schedule(Tensor([step], ms.int32)).asnumpy()[0])

    assert [rate(step) for step in (0, 4, 9, 99)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assign(schedule.factor, 2.0)
    assert rate(99) == pytest.approx(2.0)


@pytest.mark.parametrize("mode", ["graph", "jit", "pynative"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_changes_nothing_before_its_step(mode: str, fault: str) -> None:
    struck = train(mode, fault)
    # A layer that can be frozen is another graph: the same to rounding, not to the bit.
    np.testing.assert_allclose(struck[: FAULT_STEP - 1], healthy(mode)[: FAULT_STEP - 1], rtol=1e-5)
    assert not np.allclose(struck[FAULT_STEP:], healthy(mode)[FAULT_STEP:], rtol=1e-5)


def test_lr_explosion_multiplies_the_schedule() -> None:
    set_mode("pynative")
    task = small_vit()
    optimizer = build_optimizer(task, STEPS)
    step = Tensor([3], ms.int32)
    before = optimizer.learning_rate(step).asnumpy()
    FAULTS["lr-explosion"](task, optimizer, FAULT_STEP).strike()
    after = optimizer.learning_rate(step).asnumpy()
    np.testing.assert_allclose(after, before * LR_FACTOR, rtol=1e-6)


def test_nan_batch_spoils_one_batch_and_then_all_losses() -> None:
    task = small_vit()
    FAULTS["nan-batch"](task, build_optimizer(task, STEPS), FAULT_STEP)
    spoilt = [bool(np.isnan(task.batches[index][0]).any()) for index in range(STEPS)]
    assert spoilt == [index == FAULT_STEP - 1 for index in range(STEPS)]
    losses = np.array(train("graph", "nan-batch"))
    assert np.isnan(losses).tolist() == [step >= FAULT_STEP for step in range(1, STEPS + 1)]


def test_nan_batch_leaves_whole_numbers_alone() -> None:
    task = bert_task(0)
    clean = task.batches[1]
    FAULTS["nan-batch"](task, build_optimizer(task, STEPS), 2)
    ids, visible, positions, targets = task.batches[1]
    assert np.isnan(visible[0]).all()
    assert not np.isnan(visible[1:]).any()
    for ours, theirs in zip((ids, positions, targets), (clean[0], *clean[2:]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def gradients(task: Task, optimizer: Any) -> tuple[float, dict[str, float]]:
    """Loss, and the largest absolute gradient of each parameter."""
    batch = [Tensor(array) for array in task.batches[0]]
    loss, found = ms.value_and_grad(task.network, None, optimizer.parameters)(*batch)
    names = [parameter.name for parameter in optimizer.parameters]
    peaks = [float(np.abs(gradient.asnumpy()).max()) for gradient in found]
    return float(loss.asnumpy()), dict(zip(names, peaks, strict=True))


def test_frozen_layer_gets_exactly_no_gradient_and_changes_no_loss() -> None:
    set_mode("pynative")
    task = small_vit()
    optimizer = build_optimizer(task, STEPS)
    fault = FAULTS["frozen-layer"](task, optimizer, FAULT_STEP)
    loss_before, before = gradients(task, optimizer)
    fault.strike()
    loss_after, after = gradients(task, optimizer)
    assert loss_after == loss_before
    frozen = {name for name in after if name.startswith("encoder.layers.0.")}
    assert len(frozen) == 16
    assert {name for name in after if after[name] == 0.0} >= frozen
    assert all(after[name] > 0.0 for name in after if before[name] > 1e-6 and name not in frozen)


def attention_logits(task: Task) -> np.ndarray:
    """The query-key products of the first layer, recomputed in NumPy."""
    attention = task.layers[0].attention
    x = np.random.default_rng(0).normal(size=(32, SMALL.hidden))
    query = x @ attention.query.weight.asnumpy().T.copy()
    key = x @ attention.key.weight.asnumpy().T.copy()
    return query @ key.T


def test_attention_collapse_multiplies_the_logits() -> None:
    task = small_vit()
    before = attention_logits(task)
    FAULTS["attention-collapse"](task, build_optimizer(task, STEPS), FAULT_STEP).strike()
    np.testing.assert_allclose(attention_logits(task), before * COLLAPSE_FACTOR**2, rtol=1e-4)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_compiles_nothing_anew(fault: str) -> None:
    set_mode("graph")
    task = small_vit()
    optimizer = build_optimizer(task, STEPS)
    ready = FAULTS[fault](task, optimizer, 2)
    cell = ms.nn.TrainOneStepCell(task.network, optimizer).set_train()
    cell(*[Tensor(array) for array in task.batches[0]])
    assert len(cell.compile_cache) == 1
    ready.strike()
    cell(*[Tensor(array) for array in task.batches[1]])
    assert len(cell.compile_cache) == 1


def test_the_functional_step_returns_the_loss_before_the_update() -> None:
    set_mode("pynative")
    task = small_vit()
    batch = [Tensor(array) for array in task.batches[0]]
    expected = float(task.network(*batch).asnumpy())
    train_step = functional_step(task.network, build_optimizer(task, STEPS))
    assert float(train_step(*batch).asnumpy()) == pytest.approx(expected, rel=1e-6)
    assert float(task.network(*batch).asnumpy()) < expected


@pytest.mark.slow
def test_bert_learns_more_than_word_frequencies() -> None:
    """0.3 nats below the unigram entropy; 300 steps reach about 1.0, see docs/demo.md."""
    set_mode("graph")
    task = bert_task(0)
    losses = Losses()
    train_model(task, build_optimizer(task, 100), 100, losses, [])
    assert float(np.mean(losses.seen[-LAST_STEPS:])) < task.reference[1] - 0.3


def demo(folder: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, outcome and progress of `mindpulse demo vit --json`."""
    command = [sys.executable, "-m", "mindpulse.cli", "demo", "vit", "--json", "--dir", str(folder)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, env=dict(os.environ), timeout=300
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def told(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings but those about the speed: other tests run on this machine."""
    busy = {"throughput-drop", "data-stall"}
    return [finding for finding in found["findings"] if finding["rule"] not in busy]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "jit", "pynative"])
def test_a_healthy_demo_finds_nothing(mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, found, progress = demo(folder, "--steps", "40", "--mode", mode)
    assert (code, told(found)) == (0, []), progress
    assert found["final_loss"] < found["reference"]["value"]
    assert found["findings"] or found["score"] == found["score_at_best"]
    assert "step 40/40" in progress
    run = open_run(folder)
    assert run.series("train_loss").steps.tolist() == list(range(1, 41))
    assert Path(found["report"]).is_file()
    assert not (folder / "watcher.json").exists()


@pytest.mark.slow
def test_a_demo_with_a_fault_is_stopped_by_its_watcher(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, found, progress = demo(folder, "--steps", "600", "--fault", "nan-batch", "--act")
    assert code == 1, progress
    assert [finding["rule"] for finding in told(found)] == ["nonfinite"]
    assert told(found)[0]["since_step"] == found["fault"]["step"] == 200
    assert found["steps"] < 600
    answers = [item for item in ControlLog(folder).poll() if isinstance(item, Answer)]
    assert [(answer.status, answer.step > 200) for answer in answers] == [("done", True)]


@pytest.mark.slow
def test_ctrl_c_ends_the_watcher_too(tmp_path: Path) -> None:
    """MindSpore's own handler would end the process before its watcher."""
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "mindpulse.cli", "demo", "vit", "--dir", str(folder)]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step 20/"):
                assert (folder / "watcher.json").exists()
                process.send_signal(signal.SIGINT)
        process.wait(60)
    assert process.returncode == 130
    assert not (folder / "watcher.json").exists()
    assert open_run(folder).series("train_loss").steps[-1] >= 20
