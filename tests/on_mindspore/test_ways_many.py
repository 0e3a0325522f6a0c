"""Two models in one process, a teacher inside a step, and a training that is taken up again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from mindpulse import open_run
from mindpulse.mindspore import attach
from nets import HEADS, LENGTH, WIDTH, Training, batches, weights
from ways import Focus, as_numpy, assert_same, builder, expected, seed, train, twins
from ways_nets import Critic, CriticLoss, Distillation, Generator, GeneratorLoss, Scorer

ROUNDS = 3


# -- a GAN -----------------------------------------------------------------------------------------


def gan(how: str) -> tuple[Training, Training]:
    """The critic's training and the generator's."""
    seed(how)
    generator, critic = Generator(), Critic()
    parts = []
    for net, loss in (
        (critic, CriticLoss(generator, critic)),
        (generator, GeneratorLoss(generator, critic)),
    ):
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        if how == "graph":
            cell = nn.TrainOneStepCell(loss, optimizer)
            cell.set_train()
            parts.append(Training(net, optimizer, cell, cell))
            continue
        loss.set_train()
        gradients = ms.value_and_grad(loss, None, optimizer.parameters)
        step = one_step(gradients, optimizer)
        parts.append(Training(net, optimizer, None, ms.jit(step) if how == "jit" else step))
    return parts[0], parts[1]


def one_step(gradients: Any, optimizer: Any) -> Any:
    def step(*batch: Any) -> Any:
        loss, grads = gradients(*batch)
        optimizer(grads)
        return loss

    return step


def rounds() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(13)
    shape = (ROUNDS, 2, 4, LENGTH, WIDTH)
    return [(Tensor(a), Tensor(b)) for a, b in rng.normal(0, 1, shape).astype(np.float32)]


def train_gan(how: str, folder: Path | None) -> tuple[Any, list[Any]]:
    both = gan(how)
    monitors: list[Any] = []
    if folder is not None:
        for training, name in zip(both, ("critic", "generator"), strict=True):
            monitors.append(
                attach(
                    training.net,
                    training.optimizer,
                    summary_dir=folder / name,
                    train_cell=training.cell,
                    interval=1,
                    snapshot_every=0,
                )
            )
    losses = []
    for real, noise in rounds():
        for index, batch in enumerate([(real, noise), (noise,)]):
            loss = both[index].step(*batch)
            losses.append(as_numpy(loss))
            if monitors:
                monitors[index].step(loss if both[index].cell is None else None)
    for monitor in monitors:
        monitor.close()
        assert monitor.problem == ""
    return weights(both[0].net) | weights(both[1].net), losses


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_a_gan_has_two_runs(how: str, tmp_path: Path) -> None:
    """Each run has its own model's gradients and losses; each monitor leaves the other's alone."""
    plain, losses = train_gan(how, None)
    watched, seen = train_gan(how, tmp_path)
    assert_same(plain, watched)
    np.testing.assert_array_equal(losses, seen)
    wanted = gan_norms()
    for index, name in enumerate(("critic", "generator")):
        run = open_run(tmp_path / name)
        assert run.series("train_loss").steps.tolist() == list(range(1, ROUNDS + 1))
        np.testing.assert_allclose(run.series("train_loss").values, losses[index::2], rtol=1e-5)
        norms = run.series("grad_norm_param")
        assert all(label.startswith(name) for label in norms.labels[:, 0])
        np.testing.assert_allclose(norms.values, wanted[index::2], rtol=5e-3, atol=2e-5)
        assert run.series("attn_focus").steps.tolist() == list(range(1, ROUNDS + 1))
        assert run.series("attn_focus").values.shape == (ROUNDS, HEADS)


def gan_norms() -> list[list[float]]:
    """Gradient norms of critic, generator, critic, ... of a PyNative twin, by NumPy."""
    both, norms = gan("pynative"), []
    losses = (
        CriticLoss(both[1].net, both[0].net),
        GeneratorLoss(both[1].net, both[0].net),
    )
    for real, noise in rounds():
        for index, batch in enumerate([(real, noise), (noise,)]):
            optimizer = both[index].optimizer
            _, grads = ms.value_and_grad(losses[index], None, optimizer.parameters)(*batch)
            norms.append([float(np.linalg.norm(as_numpy(g).astype(np.float64))) for g in grads])
            optimizer(grads)
    return norms


# -- distillation ----------------------------------------------------------------------------------


def distillation() -> Any:
    student, teacher = Scorer(layers=1), Scorer(layers=2)
    return Distillation(student, teacher)


@pytest.mark.parametrize("choice", ["student only", "exclude", "teacher in eval mode"])
@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_the_teacher_is_not_the_student(how: str, choice: str, tmp_path: Path) -> None:
    """Attach to the student, or exclude the teacher, or leave the teacher in evaluation mode."""

    def build() -> Training:
        training = builder(how, net=distillation)()
        training.net.teacher.set_train(False)
        return training

    plain = train(build, batches(3))
    training = build()
    student = choice == "student only"
    monitor = attach(
        training.net.student if student else training.net,
        training.optimizer,
        summary_dir=tmp_path,
        train_cell=training.cell,
        interval=1,
        snapshot_every=0,
        exclude="teacher.*" if choice == "exclude" else "",
    )
    for batch in batches(3):
        loss = training.step(*batch)
        monitor.step(loss if training.cell is None else None)
    monitor.close()
    assert monitor.problem == ""
    assert_same(plain.weights, weights(training.net))
    run = open_run(tmp_path)
    focus = run.series("attn_focus")
    assert focus.values.shape == (3, HEADS)  # the student's one layer
    wanted = student_focus()
    np.testing.assert_allclose(focus.values, wanted, rtol=2e-3)
    assert all("teacher" not in name for name in run.series("grad_norm_param").labels[:, 0])


def student_focus() -> list[Any]:
    training = builder("pynative", net=distillation)()
    focus, found = Focus(training.net.student), []
    for batch in batches(3):
        training.step(*batch)
        found.append(focus.take())
    return found


# -- resume ----------------------------------------------------------------------------------------


def test_a_training_is_taken_up_from_a_checkpoint(tmp_path: Path) -> None:
    """Steps 1 to 4, then again from 3: the second attempt hides what it repeats."""
    data, plain = batches(6), train(builder("graph"), batches(6))
    first = builder("graph")()
    options = {"summary_dir": tmp_path, "interval": 1, "snapshot_every": 0}
    with attach(first.net, first.optimizer, train_cell=first.cell, **options) as monitor:
        for number, batch in enumerate(data[:4], start=1):
            first.step(*batch)
            monitor.step()
            if number == 2:
                ms.save_checkpoint(first.cell, str(tmp_path / "two.ckpt"))
    kept = ms.load_checkpoint(str(tmp_path / "two.ckpt"))
    assert set(kept) == {parameter.name for parameter in first.cell.get_parameters()}
    second = builder("graph")()
    monitor = attach(second.net, second.optimizer, train_cell=second.cell, first_step=3, **options)
    assert ms.load_param_into_net(second.cell, kept) == ([], [])
    for batch in data[2:]:
        second.step(*batch)
        monitor.step()
    monitor.close()
    assert monitor.problem == ""
    assert_same(plain.weights, weights(second.net))
    run = open_run(tmp_path)
    assert run.attempts == [1, 2]
    expected(builder("pynative"), data).check(run)


def test_two_monitors_of_two_trainings_one_after_the_other(tmp_path: Path) -> None:
    """The second training in a process starts from nothing."""
    for name in ("first", "second"):
        run, _ = twins(builder("graph"), batches(2), tmp_path / name)
        expected(builder("pynative"), batches(2)).check(run)


class KeepsACopyOfItsRate(nn.TrainOneStepCell):
    """As MindFormers' training cell: a second Parameter of the name `learning_rate`."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer)
        self.learning_rate = copy.deepcopy(optimizer.learning_rate)

    def construct(self, *inputs: Any) -> Any:
        loss = super().construct(*inputs)
        return loss + 0.0 * self.learning_rate


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_a_cell_with_two_parameters_of_one_name_is_watched(how: str, tmp_path: Path) -> None:
    run, _ = twins(builder(how, cell=KeepsACopyOfItsRate), batches(4), tmp_path)
    assert run.series("grad_norm").steps.tolist() == [1, 2, 3, 4]
    assert not [n for n in run.notes() if n.kind == "monitor_error"]


def test_jit_that_is_switched_off_for_a_debugger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MS_JIT=0: a step under jit runs line by line, so that breakpoints stop."""
    monkeypatch.setenv("MS_JIT", "0")
    run, _ = twins(builder("jit"), batches(4), tmp_path)
    monkeypatch.delenv("MS_JIT")
    train(builder("jit"), batches(4), tmp_path / "compiled")
    reference = open_run(tmp_path / "compiled")
    for tag in ("train_loss", "grad_norm", "attn_entropy", "learning_rate"):
        assert run.series(tag).steps.tolist() == [1, 2, 3, 4], tag
        np.testing.assert_allclose(
            run.series(tag).values, reference.series(tag).values, rtol=1e-4, atol=1e-6
        )
