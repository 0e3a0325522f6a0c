"""Attention: one value per head of what a softmax gives, over batch and query.

A key is *hidden* where its logit is below -`MASKED_BY`: every usual mask (-1e4, -1e9, the lowest
number, -inf) puts it there, and no trained logit comes near. The probabilities cannot tell: those
of sharp attention underflow to 0, and the modes disagree on which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import ops

from mindpulse.catalogue.attention import MASKED_BY
from mindpulse.mindspore.measures.reduce import (
    TINY,
    keep_nan,
    max_last,
    mean_last,
    require,
    sum_first,
    sum_last,
)

MAP_HEADS = 8
_BELOW_SPARSE = 0.00099999993  # the largest float32 below 1e-3
_STEEP = 1e11  # takes the distance to the next float32 above the limit beyond 6


def rows(wanted: tuple[str, ...]) -> Callable[..., Any]:
    """The function f(p, logits, padding) -> (len(wanted), head).

    f takes p and logits (batch, head, query, key), and padding (batch, key), 1 where the key is a
    padding token, or None if nobody knows (its measure is then NaN). A head in which p holds a NaN
    has NaN in all its measures.

    Raises:
        UsageError: an unknown tag.
    """
    require(wanted, (*_OF_QUERIES, *_OF_HEADS))
    of_queries = tuple(_OF_QUERIES[tag] for tag in wanted if tag in _OF_QUERIES)
    of_heads = tuple(_OF_HEADS[tag] for tag in wanted if tag in _OF_HEADS)
    found = [tag for tag in wanted if tag in _OF_QUERIES]
    found += [tag for tag in wanted if tag in _OF_HEADS]
    order = None if found == list(wanted) else ms.Tensor([found.index(tag) for tag in wanted])
    needs_visible = "attn_entropy" in wanted or "attn_sparsity" in wanted
    needs_peak, needs_top = "attn_focus" in wanted, "attn_max_logit" in wanted
    largest = _pooled if ms.get_context("device_target") == "CPU" else max_last

    def measure(p: Any, logits: Any, padding: Any) -> Any:
        mass = sum_last(p)
        visible = visible_keys(logits) if needs_visible else mass
        peak = largest(p) if needs_peak else mass
        top = largest(logits) if needs_top else mass
        queries: tuple[Any, ...] = (mass,)
        for part in of_queries:
            queries = (*queries, part(p, mass, visible, peak))
        means = _over_batch_and_query(ops.stack(queries))
        heads: tuple[Any, ...] = ()
        for part in of_heads:
            heads = (*heads, part(p, top, padding))
        values = ops.concat((means[1:], ops.stack(heads))) if of_heads else means[1:]
        values = keep_nan(values, means[:1])
        return values if order is None else ops.gather(values, order, 0)

    return measure


def visible_keys(logits: Any) -> Any:
    """(batch, head, query) number of keys that the mask leaves visible.

    As min(max(logit + 5000, 0), 6) / 6, which is 0 or 1 for every real logit: half the time of a
    comparison and a cast on the CPU.

    Args:
        logits: (batch, head, query, key), what goes into the softmax, mask added.
    """
    return _count_positive(logits + MASKED_BY)


def four_axes(p: Any, heads: int) -> Any:
    """p as (batch, head, query, key): folded heads are unfolded, missing leading axes are added."""
    shape = p.shape
    if len(shape) == 3 and heads > 0 and shape[0] % heads == 0:
        return p.reshape(-1, heads, shape[1], shape[2])
    if len(shape) == 4:
        return p
    return p.reshape(-1, 1, shape[-2], shape[-1])


def _over_batch_and_query(x: Any) -> Any:
    """(..., batch, head, query) -> (..., head), the mean."""
    return mean_last(x).mean(-2)


def _count_positive(x: Any) -> Any:
    """Number along the last axis of what is positive; x is nowhere between 0 and 6."""
    return sum_last(ops.relu6(x)) / 6.0


def _pooled(x: Any) -> Any:
    """Maximum over the keys by a pooling window: half the time of `max_last` on the CPU."""
    window = (1, x.shape[3])
    pool = ops.MaxPool(kernel_size=window, strides=window, pad_mode="valid")
    return pool(x).reshape(x.shape[:-1])


def _focus(p: Any, mass: Any, visible: Any, peak: Any) -> Any:
    return peak / (mass + 1e-8)


def _entropy(p: Any, mass: Any, visible: Any, peak: Any) -> Any:
    nats = -sum_last(p * ops.log(p + TINY))
    return ops.minimum(nats / ops.log(ops.maximum(visible, 2.0)), 1.0)


def _sparsity(p: Any, mass: Any, visible: Any, peak: Any) -> Any:
    large = _count_positive((p - _BELOW_SPARSE) * _STEEP)
    return ops.maximum(visible - large, 0.0) / ops.maximum(visible, 1.0)


def _max_logit(p: Any, top: Any, padding: Any) -> Any:
    return ops.amax(top, (0, 2))


def _sink(p: Any, top: Any, padding: Any) -> Any:
    return _sum_of_queries(p)[:, :, 0].mean(0) / p.shape[2]


def _future(p: Any, top: Any, padding: Any) -> Any:
    batch, heads, queries, keys = p.shape
    if queries > keys:
        return ops.full((heads,), float("nan"), dtype=ms.float32)
    summed = sum_first(p.reshape(batch, -1)).reshape(heads, queries, keys)
    after = ops.triu(ops.ones((queries, keys), ms.float32), keys - queries + 1)
    return mean_last(sum_last(summed * after)) / batch


def _padding(p: Any, top: Any, padding: Any) -> Any:
    if padding is None:
        return ops.full((p.shape[1],), float("nan"), dtype=ms.float32)
    found = ops.matmul(_sum_of_queries(p), padding.reshape(p.shape[0], -1, 1))
    return found.reshape(p.shape[:2]).mean(0) / p.shape[2]


def _sum_of_queries(p: Any) -> Any:
    """(batch, head, key)."""
    summed = ops.matmul(ops.ones((1, p.shape[2]), p.dtype), p)
    return summed.reshape(p.shape[0], p.shape[1], p.shape[3])


_OF_QUERIES: dict[str, Callable[..., Any]] = {
    "attn_focus": _focus,
    "attn_entropy": _entropy,
    "attn_sparsity": _sparsity,
}
_OF_HEADS: dict[str, Callable[..., Any]] = {
    "attn_max_logit": _max_logit,
    "attn_sink_mass": _sink,
    "attn_future_mass": _future,
    "attn_padding_mass": _padding,
}
