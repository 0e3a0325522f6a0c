"""Probes of forward values: each makes a slot and the closure that fills it.

The closures are called right behind the tapped operator with (training, before, after): the cell's
mode, the operator's first input and its output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from mindpulse.mindspore.measures import four_axes
from mindpulse.mindspore.ring import Ring, Slot

Watch = Callable[[Any, Any, Any], None]
Measure = Callable[[Any], Any]
# Known only when the graph is compiled, so they travel as data: heads, queries, keys, batch, and
# the bits of a logit as the model computes it.
SHAPE = 5
BITS = 1  # the bits of a value, behind the values of a plain node
PADDING_CELLS = 65536


def attention(
    slot: Slot,
    heads: int,
    cap: int,
    rows: Callable[[Any, Any, Any], Any] | None,
    extra: list[Measure],
    padding: Padding | None,
    attention_map: Parameter | None,
) -> Watch:
    """Measures a softmax: before are the logits, after the probabilities.

    The slot's values are (heads, queries, keys, batch, bits, then `cap` for each measure), so the
    state keeps its final shape from the start.

    Args:
        heads: number of heads where the model tells it, else 0.
        cap: heads kept.
        rows: (p, logits, padding) -> (measures, heads), see `measures.attention`; None for none.
        extra: the user's own measures, p -> (heads,).
    """
    put = slot.put
    measures = (slot.width - SHAPE) // cap
    hidden = padding.of if padding is not None else _nothing

    def watch(training: Any, before: Any, after: Any) -> None:
        p = four_axes(ops.stop_gradient(after).astype(ms.float32), heads)
        logits = four_axes(ops.stop_gradient(before).astype(ms.float32), heads)
        if p.shape[1] > cap:  # a slice that keeps everything would still cost a fifth of the step
            p, logits = p[:, :cap], logits[:, :cap]
        found = p.shape[1]
        parts: tuple[Any, ...] = ()
        if rows is not None:
            parts = (rows(p, logits, hidden(p.shape[0], p.shape[3])),)
        for measure in extra:
            parts = (*parts, measure(p).astype(ms.float32).reshape(1, found))
        table = ops.concat(parts) if len(parts) > 1 else parts[0]
        if cap > found:
            table = ops.pad(table, (0, cap - found))
        sizes = [found, p.shape[2], p.shape[3], p.shape[0], _bits(before)]
        shape = ms.Tensor(sizes, ms.float32)
        flat = table.reshape(-1)
        missing = measures * cap - flat.shape[0]
        if missing > 0:  # a user's measure that did not compile was left out
            flat = ops.pad(flat, (0, missing), "constant", float("nan"))
        put(training, ops.concat((shape, flat)))
        if attention_map is not None:
            ops.assign(attention_map, _map_of(p, attention_map.shape))

    return watch


def _bits(x: Any) -> int:
    """Of a number of a floating tensor; known when the graph is compiled."""
    if x.dtype == ms.float32:
        return 32
    return 64 if x.dtype == ms.float64 else 16


def _nothing(batch: int, keys: int) -> None:
    return None


def _map_of(p: Any, size: tuple[int, ...]) -> Any:
    """The first sample's attention, cut to `size` (head, query, key), padded with zeros."""
    part = p[0, : size[0], : size[1], : size[2]]
    heads, queries, keys = part.shape
    pad = (0, size[2] - keys, 0, size[1] - queries, 0, size[0] - heads)
    return ops.pad(part, pad)


def values(slot: Slot, after_it: bool, row: Measure | None, extra: list[Measure]) -> Watch:
    """Measures a node with `row`, node -> (values,); `extra` are the user's own, node -> ().

    The slot's values are those, then the bits of a number of the node.

    Args:
        after_it: whether the node is the operator's output; else its first input.
    """
    put, width = slot.put, slot.width - BITS

    def watch(training: Any, before: Any, after: Any) -> None:
        node = after if after_it else before
        bits = _bits(node)
        node = ops.stop_gradient(node).astype(ms.float32)
        parts: tuple[Any, ...] = ()
        if row is not None:
            parts = (row(node),)
        for measure in extra:
            parts = (*parts, measure(node).astype(ms.float32).reshape(1))
        flat = ops.concat(parts) if len(parts) > 1 else parts[0]
        missing = width - flat.shape[0]
        if missing > 0:
            flat = ops.pad(flat, (0, missing), "constant", float("nan"))
        put(training, ops.concat((flat, ms.Tensor([bits], ms.float32))))

    return watch


def loss(slot: Slot) -> Watch:
    """Measures the loss that a cell returns: its output, or the first of a tuple."""
    put = slot.put

    def watch(training: Any, before: Any, after: Any) -> None:
        put(training, ops.stop_gradient(after).astype(ms.float32).mean().reshape(1))

    return watch


class Padding:
    """Which tokens of the batch are padding, kept for the attention probes of the same step.

    Args:
        ring: names the Parameters.
        pad_id: the id of the padding token.

    Attributes:
        of: (batch, keys) -> (batch, key) float32 1 = padding; NaN where the ids of the step do not
            have that shape (cross attention to something else).
    """

    def __init__(self, ring: Ring, pad_id: int) -> None:
        cells = Parameter(
            Tensor(np.zeros(PADDING_CELLS), ms.float32), f"{ring.name}.padding", requires_grad=False
        )
        shape = Parameter(
            Tensor(np.zeros(2), ms.float32), f"{ring.name}.padding_shape", requires_grad=False
        )

        def watch(training: Any, before: Any, after: Any) -> None:
            ids = before
            if len(ids.shape) == 2 and ids.shape[0] * ids.shape[1] <= PADDING_CELLS:
                flat = ops.equal(ids, pad_id).astype(ms.float32).reshape(-1)
                ops.assign(cells, ops.pad(flat, (0, PADDING_CELLS - flat.shape[0])))
                ops.assign(shape, ms.Tensor([ids.shape[0], ids.shape[1]], ms.float32))

        def of(batch: int, keys: int) -> Any:
            if batch * keys > PADDING_CELLS:
                return ops.full((batch, keys), float("nan"), dtype=ms.float32)
            same = ops.equal(shape, ms.Tensor([batch, keys], ms.float32)).all()
            # `value()`: a graph reads a slice of a Parameter before this step has written it.
            known = cells.value()[: batch * keys].reshape(batch, keys)
            nan = ops.full((batch, keys), float("nan"), dtype=ms.float32)
            return ops.select(same.broadcast_to((batch, keys)), known, nan)

        self.watch: Watch = watch
        self.of = of
