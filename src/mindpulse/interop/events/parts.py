"""What a series is in an event file: numbers, a tensor or histograms, and under which names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mindpulse.interop.aliases import our_name
from mindpulse.interop.events.encode import Part, scalar_part, tensor_part
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.values import TENSORBOARD
from mindpulse.series import Rows, SeriesSpec

# A wide series becomes one number a column up to here, beyond it one tensor.
MAX_SCALARS = 256


def parts_of(spec: SeriesSpec, dialect: str, *, newer: bool) -> list[Part]:
    """The values that an event has for a row of a series."""
    dtype = np.dtype(spec.dtype)
    if not spec.columns:
        return [scalar_of(spec.tag, dtype, dialect, newer=newer)]
    if spec.width > MAX_SCALARS:
        return [tensor_part(dialect, spec.tag, shape_of(spec), dtype.str)]
    names = [f"{spec.tag}/{spec.column_name(index)}" for index in range(spec.width)]
    return [scalar_of(name, dtype, dialect, newer=newer) for name in names]


def scalar_of(tag: str, dtype: np.dtype[np.generic], dialect: str, *, newer: bool) -> Part:
    """A number; in the newer form in the precision of `dtype`."""
    kind = ("<f8" if dtype.itemsize == 8 else "<f4") if newer else None
    return scalar_part(dialect, name_in(dialect, tag), kind)


def name_in(dialect: str, tag: str) -> str:
    """The tag as the readers of the format know it."""
    return tensorboard_name(tag) if dialect == TENSORBOARD else tag


def tensorboard_name(tag: str) -> str:
    """One of our measures as TensorBoard groups it: `/` after the first word.

    Example:
        >>> tensorboard_name("train_loss"), tensorboard_name("my_value")
        ('train/loss', 'my_value')
    """
    grouped = tag.replace("_", "/", 1)
    return grouped if grouped != tag and our_name(grouped).ours == tag else tag


def shape_of(spec: SeriesSpec) -> tuple[int, ...]:
    """The shape of a row: that of its axes where the columns are a whole grid in order."""
    axes = list(zip(*spec.columns, strict=True))
    sizes = tuple(len(dict.fromkeys(labels)) for labels in axes)
    labels = [list(dict.fromkeys(names)) for names in axes]
    if int(np.prod(sizes)) != spec.width:
        return (spec.width,)
    grid = [tuple(labels[a][i] for a, i in enumerate(at)) for at in np.ndindex(sizes)]
    return sizes if grid == list(spec.columns) else (spec.width,)


def is_histogram(spec: SeriesSpec) -> bool:
    """Whether its columns are the bins of a histogram."""
    return spec.plugin == "histogram" and spec.axes == ("bin",)


def bars_of(rows: Rows) -> Iterable[Histogram]:
    """Counts by bin as histograms whose edges are the numbers of the bins."""
    left = np.arange(rows.values.shape[1], dtype=np.float64)
    for values in rows.values:
        there = ~np.isnan(values)
        yield Histogram(left[there], left[there] + 1, values[there].astype(np.float64))
