"""Taps in odd places: `super()`, several on one cell, stand-ins, marks, mixed precision."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, amp, nn, ops

import zoo
from mindpulse.errors import PlantError
from mindpulse.mindspore.mark import Mark
from mindpulse.mindspore.structure import Place, find_places
from mindpulse.mindspore.tap import tap
from zoo.parts import CallAttention, ReluNet
from zoo.watching import Slots, planted, same_but_for_the_order_of_sums, train

_numbers = itertools.count()
MODES = ("graph", "jit", "pynative")


class Slot:
    """Keeps the means of what a tap shows, and whether the cell trained; counts the calls."""

    def __init__(self) -> None:
        name = f"row{next(_numbers)}"
        self.row = Parameter(Tensor(np.zeros(4), ms.float32), name=name, requires_grad=False)

    def watch(self) -> Callable[[Any, Any, Any], None]:
        row, one = self.row, Tensor([0.0, 0.0, 0.0, 1.0], ms.float32)

        def watch(training: Any, before: Any, after: Any) -> None:
            flag = ops.ones((), ms.float32) * (1.0 if training else 2.0)
            count = row[3].reshape(())
            means = (before.mean().astype(ms.float32), after.mean().astype(ms.float32))
            ops.assign(row, ops.stop_gradient(ops.stack((*means, flag, count)) + one))

        return watch

    def read(self) -> tuple[float, float, float, float]:
        return tuple(self.row.asnumpy().tolist())


def run(net: Any, mode: str, *inputs: Any) -> Any:
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    if mode == "jit":

        @ms.jit
        def call(*args: Any) -> Any:
            return net(*args)

        return call(*inputs)
    return net(*inputs)


def x(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape), ms.float32)


def place(net: Any, kind: str) -> Place:
    return next(p for p in find_places(net) if p.kind == kind and p.state == "planted")


class Doubled(nn.LayerNorm):
    """Calls its base's construct; the graph compiler looks that up from the instance's class."""

    def construct(self, x: Any) -> Any:
        return super().construct(x) * 2


class Spelt(nn.LayerNorm):
    def construct(self, x: Any) -> Any:
        return super(Spelt, self).construct(x) * 2  # noqa: UP008 (people write it)


class WithKeyword(nn.Cell):
    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.norm = norm

    def construct(self, x: Any) -> Any:
        return self.norm(x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [Doubled, Spelt])
def test_a_cell_that_calls_super(make: Any, mode: str) -> None:
    net, slot = WithKeyword(make((8,))), Slot()
    net.set_train()
    data = x(2, 3, 8)
    before = type(net.norm)
    on = tap(place(net, "norm"), slot.watch())
    on.on()
    out = run(net, mode, data).asnumpy()
    on.off()
    assert type(net.norm) is before
    assert slot.read() == pytest.approx((data.asnumpy().mean(), out.mean(), 1.0, 1.0), abs=1e-6)
    deviation = data.asnumpy() - data.asnumpy().mean(-1, keepdims=True)
    expected = 2 * deviation / np.sqrt((deviation**2).mean(-1, keepdims=True))
    np.testing.assert_allclose(out, expected, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trains", [True, False])
def test_watch_is_told_whether_the_cell_trains(mode: str, trains: bool) -> None:
    net, slot = ReluNet(), Slot()
    net.set_train(trains)
    on = tap(place(net, "ffn"), slot.watch())
    on.on()
    run(net, mode, x(2, 16))
    assert slot.read()[2] == (1.0 if trains else 2.0)


class Inherits(CallAttention):
    """Its softmax is called in the base's construct."""

    def construct(self, x: Any, mask: Any) -> Any:
        return super().construct(x, mask) * 1.0


def attend(q: Any, k: Any, v: Any, scale: float = 1.0) -> Any:
    return ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * scale), v)


class HoldsFunction(CallAttention):
    """The function that calls the softmax is an attribute of the cell."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = attend

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(self.attend(q, k, v, scale=0.5))


class Static(CallAttention):
    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(self.mix(q, k, v))

    @staticmethod
    def mix(q: Any, k: Any, v: Any) -> Any:
        return attend(q, k, v)


class InConstruct(CallAttention):
    """A primitive made on the spot."""

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(ops.matmul(ops.Softmax(axis=-1)(self.scores(q, k, mask)), v))


class Wraps(nn.Cell):
    """MindSpore's own attention, whose softmax is two functions deep in the framework."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def construct(self, x: Any, mask: Any) -> Any:
        return self.attention(x, x, x, attn_mask=mask)[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [Inherits, HoldsFunction, Static, InConstruct, Wraps])
def test_functions_are_reached(make: Any, mode: str) -> None:
    """The mean probability of five keys is 1/5, and the result is that of an untapped model."""
    ms.set_seed(1)
    np.random.seed(1)
    net, slot = make(), Slot()
    net.set_train()
    inputs = x(2, 5, 16), Tensor(np.zeros((5, 5)), ms.float32)
    found = place(net, "attention")
    assert found.how == "function"
    kept = dict(vars(found.owner))
    on = tap(found, slot.watch())
    on.on()
    tapped = run(net, mode, *inputs).asnumpy().copy()
    on.off()
    row = slot.read()
    assert row[1:] == pytest.approx((0.2, 1.0, 1.0), abs=1e-6)
    assert type(net) is make
    assert {name: value for name, value in vars(found.owner).items() if callable(value)} == {
        name: value for name, value in kept.items() if callable(value)
    }
    assert not shadows()
    plain = run(net, "pynative", *inputs).asnumpy()
    np.testing.assert_allclose(tapped, plain, atol=1e-6)
    assert slot.read() == row  # off is off


class BothLosses(nn.Cell):
    """One cell whose construct calls a softmax of attention and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Dense(8, 8), nn.Dense(8, 8)
        self.value, self.pooler = nn.Dense(8, 8), nn.Dense(8, 8)

    def construct(self, x: Any, labels: Any) -> Any:
        q, k, v = self.query(x), self.key(x), self.value(x)
        p = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)), -1)
        return ops.cross_entropy(self.pooler(ops.matmul(p, v)).reshape(-1, 8), labels)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_several_taps_on_one_cell(order: tuple[int, ...], mode: str) -> None:
    """Two functions and the cell itself, on and off in any order."""
    ms.set_seed(2)
    net = BothLosses()
    net.set_train()
    inputs = x(2, 4, 8), Tensor(np.arange(8), ms.int32)
    loss = Place("", "norm", net)
    places = [place(net, "attention"), place(net, "logits"), loss]
    slots = [Slot() for _ in places]
    taps = [tap(p, slot.watch()) for p, slot in zip(places, slots, strict=True)]
    for number in order:
        taps[number].on()
    out = float(run(net, mode, *inputs).asnumpy())
    assert [slot.read()[3] for slot in slots] == [1.0, 1.0, 1.0]
    assert slots[0].read()[1] == pytest.approx(0.25, abs=1e-6)
    assert slots[1].read()[1] == pytest.approx(out, abs=1e-6)
    assert slots[2].read()[:2] == pytest.approx((inputs[0].asnumpy().mean(), out), abs=1e-6)
    for left, number in zip((2, 1, 0), (order[1], order[0], order[2]), strict=True):
        taps[number].off()
        assert sum(each.is_on() for each in taps) == left
    assert type(net) is BothLosses
    assert not shadows()


@pytest.fixture(autouse=True)
def _no_shadows_of_other_tests() -> Iterator[None]:
    yield
    for name in shadows():
        del sys.modules[name]


def shadows() -> list[str]:
    return [name for name in sys.modules if name.startswith("mindpulse_shadow")]


class Marked(nn.Cell):
    """A softmax that cannot be reached, pointed out by the user."""

    def __init__(self) -> None:
        super().__init__()
        self.query = self.key = self.value = nn.Dense(8, 8)
        self.mark, self.inner = Mark("attention", heads=1), Mark("ffn")

    def construct(self, x: Any) -> Any:
        logits = ops.matmul(self.query(x), self.key(x).swapaxes(-1, -2))
        p = self.mark(logits.softmax(-1), logits)
        return self.inner(ops.matmul(p, self.value(x)))


@pytest.mark.parametrize("mode", MODES)
def test_marks(mode: str) -> None:
    ms.set_seed(3)
    net = Marked()
    data = x(2, 4, 8)
    slots = Slot(), Slot()
    taps = [
        tap(place(net, kind), slot.watch())
        for kind, slot in zip(("attention", "ffn"), slots, strict=True)
    ]
    for each in taps:
        each.on()
    out = run(net, mode, data).asnumpy()
    q = data.asnumpy() @ net.query.weight.asnumpy().T + net.query.bias.asnumpy()
    assert slots[0].read()[:2] == pytest.approx(((q @ q.swapaxes(1, 2)).mean(), 0.25), abs=1e-5)
    assert slots[1].read()[:2] == pytest.approx((out.mean(), out.mean()), abs=1e-6)
    assert [p.how for p in find_places(net) if p.kind == "attention"] == ["function", "mark"]


class FlashAttentionScore(nn.Cell):
    """Stands for the fused operator: (row maxima, row sums, reserved, result)."""

    def construct(self, q: Any, k: Any, v: Any) -> Any:
        logits = ops.matmul(q, k.swapaxes(-1, -2))
        largest = ops.amax(logits, -1, True)
        powers = ops.exp(logits - largest)
        sums = powers.sum(-1, keepdims=True)
        wide = (*logits.shape[:-1], 8)
        return largest.broadcast_to(wide), sums.broadcast_to(wide), q, ops.matmul(powers / sums, v)


class Fused(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.flash_attention = FlashAttentionScore()

    def construct(self, x: Any) -> Any:
        return self.flash_attention(x, x, x)[3]


@pytest.mark.parametrize("mode", MODES)
def test_fused_attention_shows_row_maxima_and_sums(mode: str) -> None:
    net, slot = Fused(), Slot()
    data = x(2, 3, 4, 8)
    on = tap(place(net, "attention"), slot.watch())
    on.on()
    run(net, mode, data)
    on.off()
    logits = data.asnumpy() @ data.asnumpy().swapaxes(-1, -2)
    largest = logits.max(-1, keepdims=True)
    sums = np.exp(logits - largest).sum(-1)
    assert slot.read()[:2] == pytest.approx((largest.mean(), sums.mean()), rel=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("model", ["vit_call", "vit_primitive"])
def test_mixed_precision(model: str, level: str, mode: str) -> None:
    net, batches = zoo.build(model)
    net = amp.auto_mixed_precision(net, level)
    net.set_train()
    slot = Slot()
    on = tap(place(net, "attention"), slot.watch())
    on.on()
    run(net, mode, *batches[0])
    assert slot.read()[1:] == pytest.approx((1 / 5, 1.0, 1.0), abs=1e-3)
    on.off()


class Framework(nn.Cell):
    """The framework's own encoder, and its decoder reading from it; parts called by keyword."""

    def __init__(self) -> None:
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True}
        self.embedding = nn.Embedding(10, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, **options), 1)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, **options), 1)
        self.norm, self.head = nn.LayerNorm((8,)), nn.Dense(8, 10)

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.embedding(ids)
        x = self.norm(input_x=self.decoder(x, self.encoder(x)))
        return ops.cross_entropy(self.head(x=x).reshape(-1, 10), labels.reshape(-1))


@pytest.mark.parametrize("mode", MODES)
def test_the_frameworks_own_layers(mode: str) -> None:
    """Each of the places is shown something, and the weights are those of an untapped model.

    The embedding goes into both stacks: in a graph its gradients may be added in another order.
    """
    rng = np.random.default_rng(4)
    batches = [tuple(Tensor(ids, ms.int32) for ids in rng.integers(0, 10, (2, 2, 5)))] * 2
    trained = []
    for tapped in (True, False):
        ms.set_seed(6)
        np.random.seed(6)
        net = Framework()
        net.set_train()
        slots = Slots(planted(net) if tapped else [])
        for each in slots.taps:
            each.on()
        trained.append(train(net, batches, mode, lambda: None)[1])
        for each in slots.taps:
            each.off()
        shown = slots.read()
        assert len(shown) == (13 if tapped else 0)
        assert all(numbers[2] > 0 for numbers in shown.values())
    if mode == "pynative":
        assert trained[0] == trained[1]
    same_but_for_the_order_of_sums(*trained)


def test_a_skipped_place_cannot_be_tapped() -> None:
    skipped = next(p for p in find_places(ReluNet()) if p.state == "skipped")
    with pytest.raises(PlantError, match="cannot be tapped: no softmax"):
        tap(skipped, Slot().watch())
