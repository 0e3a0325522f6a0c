"""scale_lr, set_clip, checkpoint, free_memory, undo: what they do, and when they refuse."""

from __future__ import annotations

import timeit
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from acting import Asking, asked, assert_same_state, plain
from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.mindspore import ClipNorm, attach
from mindpulse.mindspore.acting.saving import FreeMemory
from mindpulse.mindspore.acting.verb import RefusedError
from nets import Training, batches
from test_act_skip import grouped
from ways import builder, seed, small_net


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_an_undo_gives_the_rate_back_bit_for_bit(how: str, tmp_path: Path) -> None:
    requests = [("scale_lr", {"factor": 0.3}, 2), ("undo", {"seq": 1.0}, 4)]
    watched = asked(builder(how), batches(5), tmp_path, requests)
    assert watched.told == [(1, "done", 2), (2, "done", 4)]
    rates = open_run(tmp_path).series("learning_rate").values
    assert rates[0] == rates[3] == rates[4]
    np.testing.assert_allclose(rates[1:3], 3e-3, rtol=1e-6)


def test_an_undo_leaves_what_came_later(tmp_path: Path) -> None:
    """In groups, and where another change came in between: divided, not set back."""
    requests = [
        ("scale_lr", {"factor": 0.5}, 2), ("scale_lr", {"factor": 0.1}, 3),
        ("undo", {"seq": 1.0}, 4), ("undo", {"seq": 1.0}, 5), ("undo", {"seq": 3.0}, 6),
    ]  # fmt: skip
    watched = asked(builder("jit", optimizer=grouped), batches(6), tmp_path, requests)
    rates = open_run(tmp_path).series("learning_rate").values
    np.testing.assert_allclose(rates[-1], [1e-4, 1e-3], rtol=1e-5)
    assert [answer.status for answer in watched.answers] == [
        "done", "done", "done", "refused", "refused",
    ]  # fmt: skip
    assert "was taken back already" in watched.answers[3].detail
    assert "is an undo" in watched.answers[4].detail


class Clipped(nn.TrainOneStepCell):
    """Clips with our helper."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer)
        self.clip = ClipNorm(1e-1)

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.clip(self.grad_no_sens(self.network, self.weights)(*inputs))
        return ops.depend(loss, self.optimizer(grads))


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_a_clip_in_the_training_cell_is_found(how: str, tmp_path: Path) -> None:
    requests = [("set_clip", {"limit": 0.05}, 3), ("undo", {"seq": 1.0}, 5)]
    build = builder(how, cell=Clipped)
    watched = asked(build, batches(6), tmp_path, requests)
    assert watched.told == [(1, "done", 3), (2, "done", 5)]
    norms = open_run(tmp_path).series("grad_norm").values
    np.testing.assert_allclose(norms, [0.1, 0.1, 0.05, 0.05, 0.1, 0.1], rtol=1e-4)


@pytest.mark.parametrize("how", ["jit", "pynative"])
def test_a_clip_of_a_step_function_is_handed_over(how: str, tmp_path: Path) -> None:
    clip = ClipNorm(0.1)
    watched = asked(
        functional_clip(how, clip), batches(4), tmp_path, [("set_clip", {"limit": 0.05}, 3)],
        clip=clip,
    )  # fmt: skip
    assert watched.answers[0].detail == "clipping at 0.1 -> 0.05"
    norms = open_run(tmp_path).series("grad_norm").values
    np.testing.assert_allclose(norms, [0.1, 0.1, 0.05, 0.05], rtol=1e-4)


def functional_clip(how: str, clip: Any) -> Any:
    def build() -> Training:
        seed(how)
        net = small_net()
        net.set_train()
        optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
        gradients = ms.value_and_grad(net, None, optimizer.parameters)

        def step(*batch: Any) -> Any:
            loss, grads = gradients(*batch)
            optimizer(clip(grads))
            return loss

        return Training(net, optimizer, None, ms.jit(step) if how == "jit" else step)

    return build


def test_clipping_is_that_of_numpy_and_leaves_small_gradients_alone() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (5,))]
    norm = np.sqrt(sum(np.square(a.astype(np.float64)).sum() for a in arrays))
    for limit in (norm / 2, norm * 2):
        clipped = ClipNorm(float(limit))(tuple(Tensor(a) for a in arrays))
        for got, array in zip(clipped, arrays, strict=True):
            want = array * min(1.0, limit / norm)
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5)
            assert limit < norm or got.asnumpy().tobytes() == array.tobytes()


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), "1"])
def test_a_wrong_limit_is_quoted(limit: Any) -> None:
    with pytest.raises(UsageError, match="use a finite number above 0"):
        ClipNorm(limit)


def test_what_cannot_be_done_here_is_refused_with_the_way_out(tmp_path: Path) -> None:
    build, data = builder("pynative"), batches(5)
    requests = [
        ("set_clip", {"limit": 1.0}, 2), ("free_memory", {}, 2), ("undo", {"seq": 9.0}, 3),
        ("stop", {}, 5),
    ]  # fmt: skip
    watched = asked(build, data, tmp_path, requests)
    details = [answer.detail for answer in watched.answers]
    assert [answer.status for answer in watched.answers] == ["refused"] * 3 + ["done"]
    assert "clip with mindpulse.mindspore.ClipNorm" in details[0]
    assert "on Ascend only" in details[1]
    assert "request 9 was not carried out by this process" in details[2]
    assert watched.monitor.step(0.0) is True
    assert_same_state(watched, plain(build, data))


def test_something_that_is_no_threshold_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"clip=1\.0: give a ClipNorm"):
        attach(small_net(), None, summary_dir=tmp_path, clip=1.0)


def test_memory_is_freed_where_there_is_a_pool() -> None:
    pool = {"total_reserved_memory": 8_000_000}
    verb = FreeMemory(lambda: "Ascend", lambda: pool.update(total_reserved_memory=3_000_000),
                      lambda: pool)  # fmt: skip
    assert verb.do({}, 1) == (
        "the pool held 8 MB, now 3 MB", {"reserved_before": 8e6, "reserved_after": 3e6},
    )  # fmt: skip
    with pytest.raises(RefusedError, match="runs on CPU"):
        FreeMemory(lambda: "CPU").do({}, 1)


@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_checkpoints_hold_the_whole_state_and_are_few(how: str, tmp_path: Path) -> None:
    build, data = builder(how), batches(7)
    requests = [("checkpoint", {}, step) for step in (2, 3, 4, 6)]
    watched = asked(build, data, tmp_path, requests)
    assert [answer.status for answer in watched.answers] == ["done"] * 4
    folder = tmp_path / "attempt-0001" / "rank-0000" / "checkpoints"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["step-000003.ckpt", "step-000004.ckpt", "step-000006.ckpt"]
    loaded = ms.load_checkpoint(str(folder / "step-000006.ckpt"))
    before = plain(build, data[:5])
    assert len(loaded) == len(before.state)
    for name, value in before.state:
        assert loaded[name].asnumpy().tobytes() == value.tobytes(), name
    assert_same_state(watched, plain(build, data))  # saving changes nothing
    assert open_run(tmp_path).series("train_loss").steps.tolist() == list(range(1, 8))


def test_a_rank_of_several_does_not_act_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK_SIZE", "8")
    requests = [("scale_lr", {"factor": 0.5}, 2), ("burst", {"steps": 2.0}, 2)]
    watched = asked(builder("pynative"), batches(3), tmp_path, requests)
    assert watched.told == [(1, "refused", 2), (2, "done", 2)]
    assert "8 ranks train together, and the request speaks to 1" in watched.answers[0].detail


def test_nothing_goes_on_once_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that cannot be kept costs itself only."""

    def broken(number: int, out: Asking) -> None:
        if number == 2:
            monkeypatch.setattr(out.monitor._actions.keeper._state, "_cells", [object()])

    build, data = builder("pynative"), batches(6)
    with pytest.raises(AssertionError):  # `asked` counts failures; here one is wanted
        asked(build, data, tmp_path, [], keep_every=3, at=broken)
    notes = [n for n in open_run(tmp_path).notes() if n.kind == "monitor_error"]
    assert [note.data["what"] for note in notes] == ["what was asked for"]


def test_it_costs_nothing_while_nothing_is_asked(tmp_path: Path) -> None:
    training = builder("pynative")()
    with attach(training.net, training.optimizer, summary_dir=tmp_path) as monitor:
        for batch in batches(3):
            monitor.step(training.step(*batch))
        seconds = min(timeit.repeat(monitor._act, number=2000, repeat=5)) / 2000
    assert seconds < 20e-6  # measured: 0.4 microseconds
