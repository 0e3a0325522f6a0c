"""Plants probes into cells and takes them out again.

What works in graph mode, under jit and in PyNative alike (docs/mindspore-notes.md):

* forward values: a *class swap*. `cell.__class__` becomes a subclass whose `construct` calls
  `super().construct` and then writes a row. No name and no checkpoint changes.
* gradients: a forward hook on the optimizer, whose first input is the tuple of gradients.

The closures below hold Parameters and numbers, never the objects around them: the graph compiler
resolves a Parameter in a closure, but not every Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import Parameter, ops

from mindpulse.mindspore import measures
from mindpulse.mindspore.ring import Slot, write_row

Undo = Callable[[], None]


class Swap:
    """A cell's class, exchanged for a subclass; `on` and `off` may alternate as often as needed."""

    def __init__(self, cell: Any, make: Callable[[type], type]) -> None:
        self.cell = cell
        self.plain = type(cell)
        self.probed = make(self.plain)
        # The compiler and amp tell cells apart by these names.
        self.probed.__name__ = self.plain.__name__
        self.probed.__qualname__ = self.plain.__qualname__

    def on(self) -> None:
        """The cell measures."""
        self.cell.__class__ = self.probed

    def off(self) -> None:
        """The cell is as the user made it."""
        self.cell.__class__ = self.plain


def attention_probe(
    cell: Any, slot: Slot, heads: int, cap: int, attention_map: Parameter | None
) -> Swap:
    """Measures a softmax whose output is (batch, head, query, key).

    The slot's row is (heads, queries, keys, focus (cap,), entropy (cap,)): the shape is known only
    when the graph is compiled, so it travels as data, and the state keeps its final shape from the
    start.
    """
    rows, counter, capacity = slot.rows, slot.counter, slot.capacity

    def make(plain: type) -> type:
        class Probed(plain):  # type: ignore[misc]
            def construct(self, *args: Any) -> Any:
                out = super().construct(*args)
                p = measures.four_axes(ops.stop_gradient(out).astype(ms.float32), heads)
                logits = ops.stop_gradient(args[0]).astype(ms.float32)
                visible = measures.visible_keys(measures.four_axes(logits, heads))
                write_row(rows, counter, capacity, _attention_row(p, visible, cap))
                if attention_map is not None:
                    ops.assign(attention_map, _small_map(p))
                return out

        return Probed

    return Swap(cell, make)


def _attention_row(p: Any, visible: Any, cap: int) -> Any:
    if p.shape[1] > cap:  # a slice that keeps everything would still cost a fifth of the step
        p, visible = p[:, :cap], visible[:, :cap]
    heads = p.shape[1]
    shape = ms.Tensor([heads, p.shape[2], p.shape[3]], ms.float32)
    focus, entropy = measures.attention_focus(p), measures.attention_entropy(p, visible)
    if cap == heads:
        return ops.concat((shape, focus, entropy))
    filler = ops.zeros((cap - heads,), ms.float32)
    return ops.concat((shape, focus, filler, entropy, filler))


def _small_map(p: Any) -> Any:
    """The first sample's attention, at most MAP_HEADS x MAP_SIDE x MAP_SIDE, padded with zeros."""
    part = p[0, : measures.MAP_HEADS, : measures.MAP_SIDE, : measures.MAP_SIDE]
    heads, queries, keys = part.shape
    pad = (
        0,
        measures.MAP_SIDE - keys,
        0,
        measures.MAP_SIDE - queries,
        0,
        measures.MAP_HEADS - heads,
    )
    return ops.pad(part, pad)


def loss_probe(cell: Any, slot: Slot) -> Swap:
    """Measures the loss that `cell` returns: its output, or the first of a tuple."""
    rows, counter, capacity = slot.rows, slot.counter, slot.capacity

    def make(plain: type) -> type:
        class Probed(plain):  # type: ignore[misc]
            def construct(self, *args: Any, **kwargs: Any) -> Any:
                out = super().construct(*args, **kwargs)
                loss = out[0] if isinstance(out, (tuple, list)) else out
                loss = ops.stop_gradient(loss).astype(ms.float32).mean().reshape(1)
                write_row(rows, counter, capacity, loss)
                return out

        return Probed

    return Swap(cell, make)


def schedule_probe(cell: Any, factor: Parameter, used: Parameter) -> Swap:
    """Multiplies a learning-rate schedule by `factor` and keeps in `used` what came out.

    Both are float32 of shape (1,). The factor is 1.0 until an action changes it; multiplying by 1.0
    changes no bit.
    """

    def make(plain: type) -> type:
        class Probed(plain):  # type: ignore[misc]
            def construct(self, global_step: Any) -> Any:
                rate = super().construct(global_step)
                rate = rate * factor.reshape(()).astype(rate.dtype)
                ops.assign(used, rate.astype(ms.float32).reshape(1))
                return rate

        return Probed

    return Swap(cell, make)


def optimizer_probe(optimizer: Any, slot: Slot, rates: tuple[Parameter, ...]) -> Undo:
    """Measures sum(g ** 2) / 2 of each gradient and the learning rates; ends the step.

    The slot's row is (one value per parameter, one per rate).
    """
    rows, counter, capacity = slot.rows, slot.counter, slot.capacity
    half_square = measures.squared_norm_half()
    one = ms.Tensor([1], ms.int32)

    def probe(cell: Any, inputs: Any, output: Any) -> None:
        row: tuple[Any, ...] = ()
        for gradient in inputs[0]:
            row = (*row, half_square(gradient.astype(ms.float32)).reshape(1))
        for rate in rates:
            row = (*row, rate.astype(ms.float32).reshape(1))
        write_row(rows, counter, capacity, ops.concat(row))
        ops.assign_add(counter, one)

    handle = optimizer.register_forward_hook(probe)
    return handle.remove  # type: ignore[no-any-return]
