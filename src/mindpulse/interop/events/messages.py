"""Events that are written one by one: histograms, images, texts, and what begins a file."""

from __future__ import annotations

import numpy as np

from mindpulse.interop.events.frame import frame
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.values import MINDSPORE, TENSORBOARD
from mindpulse.store.wire import chunk, double, number, text

VERSIONS = {TENSORBOARD: "brain.Event:2", MINDSPORE: "MindSpore.Event:1"}
_ALL = 0xFFFFFFFFFFFFFFFF
_DOUBLE, _TEXT = 2, 7


def event(step: int, wall_time: float, *values: bytes) -> bytes:
    """An event, framed, with value messages."""
    body = double(1, wall_time) + number(2, step & _ALL)
    return frame(body + chunk(5, b"".join(chunk(1, value) for value in values)))


def version_event(dialect: str, wall_time: float) -> bytes:
    """The first event of a file."""
    return frame(double(1, wall_time) + text(3, VERSIONS[dialect]))


def restart_event(step: int, wall_time: float) -> bytes:
    """Tells TensorBoard that what earlier files say from this step on is superseded."""
    return frame(double(1, wall_time) + number(2, step & _ALL) + chunk(7, number(1, 1)))


def histogram_value(dialect: str, tag: str, found: Histogram, *, newer: bool = False) -> bytes:
    """A histogram as a value message.

    Args:
        newer: TensorBoard's form as a tensor (k, 3), which keeps all edges.
    """
    if dialect == MINDSPORE:
        return text(1, tag) + chunk(9, _mindspore_histogram(found))
    if newer:
        table = np.stack([found.left, found.edges, found.counts], axis=1).astype("<f8")
        shape = b"".join(chunk(2, number(1, size)) for size in table.shape)
        message = number(1, _DOUBLE) + chunk(2, shape) + chunk(4, table.tobytes())
        return text(1, tag) + chunk(8, message) + chunk(9, chunk(1, text(1, "histograms")))
    return text(1, tag) + chunk(5, _old_histogram(found))


def _old_histogram(found: Histogram) -> bytes:
    said = _statistics(found)
    names = ("min", "max", "count", "sum", "sum_squares")
    numbers = b"".join(double(field, said[name]) for field, name in enumerate(names, 1))
    limits, counts = (array.astype("<f8").tobytes() for array in (found.edges, found.counts))
    return numbers + chunk(6, limits) + chunk(7, counts)


def _mindspore_histogram(found: Histogram) -> bytes:
    said = _statistics(found)
    widths = found.right if found.widths else found.right - found.left
    table = zip(found.left.tolist(), widths.tolist(), found.counts.tolist(), strict=True)
    buckets = b"".join(
        chunk(1, double(1, left) + double(2, width) + number(3, _whole(count)))
        for left, width, count in table
    )
    counted = ("nan_count", "pos_inf_count", "neg_inf_count")
    return (
        buckets
        + b"".join(number(field, _whole(said[name])) for field, name in enumerate(counted, 2))
        + b"".join(double(field, said[name]) for field, name in enumerate(("max", "min", "sum"), 5))
        + number(8, _whole(said["count"]))
    )


def _whole(count: float) -> int:
    return int(count) if 0 <= count < 2**63 else 0


def _statistics(found: Histogram) -> dict[str, float]:
    """What is said of the values; where nothing was, what the bins say."""
    filled = np.flatnonzero(found.counts > 0)
    right = found.edges
    middle = (found.left + right) / 2
    known = {
        "min": float(found.left[filled[0]]) if len(filled) else 0.0,
        "max": float(right[filled[-1]]) if len(filled) else 0.0,
        "count": float(np.nansum(found.counts)),
        "sum": float(np.nansum(found.counts * middle)),
        "sum_squares": float(np.nansum(found.counts * middle**2)),
        "nan_count": 0.0,
        "pos_inf_count": 0.0,
        "neg_inf_count": 0.0,
    }
    return {**known, **found.statistics}


def image_value(tag: str, height: int, width: int, channels: int, encoded: bytes) -> bytes:
    """An image (PNG) as a value message; the two formats agree."""
    message = number(1, height) + number(2, width) + number(3, channels) + chunk(4, encoded)
    return text(1, tag) + chunk(4, message)


def text_value(tag: str, told: str) -> bytes:
    """A text as a value message of TensorBoard."""
    shape = chunk(2, number(1, 1))
    message = (
        number(1, _TEXT) + chunk(2, shape) + chunk(8, told.encode("utf-8", "backslashreplace"))
    )
    return text(1, tag) + chunk(8, message) + chunk(9, chunk(1, text(1, "text")))
