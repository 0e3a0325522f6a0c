"""Summaries by hand: write values under tags, read them back as arrays."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.series import MAX_STEP, MIN_STEP, Rows, Series, SeriesSpec, check_tag
from mindpulse.store.folder_run import TAG_NOTE, open_folder

# Names of the axes of each kind of value.
KINDS: Mapping[str, tuple[str, ...]] = {
    "scalar": (),
    "vector": ("index",),
    "histogram": ("bin",),
    "map": ("row", "column"),
}


@dataclass(slots=True)
class _Tag:
    spec: SeriesSpec
    shape: tuple[int, ...]
    next_step: int


class SummaryRecord:
    """Writes values into a run folder, in the background.

    Args:
        summary_dir: the run folder; each SummaryRecord begins a new attempt in it.
        flush_interval: seconds between writes.
        clock: the time in seconds since the epoch.

    Raises:
        StoreError: the folder cannot be written.

    Example:
        >>> with SummaryRecord(folder) as record:
        ...     record.add_value("scalar", "train_loss", 2.5, step=1)
        ...     record.add_value("vector", "load", [0.2, 0.8])
    """

    def __init__(
        self,
        summary_dir: Path | str,
        flush_interval: float = 120.0,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._recorder = Recorder(summary_dir, flush_interval=flush_interval, clock=clock)
        self._clock = clock
        self._tags: dict[str, _Tag] = {}
        self._closed = False

    def add_value(self, kind: str, tag: str, value: Any, step: int | None = None) -> None:
        """Records one value.

        Args:
            kind: "scalar" (a number), "vector" (W,), "histogram" (bins,) or "map" (rows, columns).
            tag: name of the series; its kind and shape stay as they were the first time.
            value: a number or an array; NaN and infinity are kept as they are. It is copied.
            step: a whole number; None for the next one of this tag, from 1 up.

        Raises:
            UsageError: kind, tag, value or step cannot be used.
        """
        if self._closed:
            raise UsageError(f"{tag!r}: this SummaryRecord is closed; make a new one")
        array = _as_array(kind, tag, value)
        known = self._known(kind, tag, array)
        number = _as_step(tag, known.next_step if step is None else step)
        known.next_step = number + 1
        rows = Rows(
            np.array([number], np.int64),
            np.array([self._clock()], np.float64),
            array.reshape(1, -1),
        )
        self._recorder.write(known.spec, rows)

    def add_tag(self, key: str, text: str) -> None:
        """Records a text about the run, for example the name of a data set.

        Raises:
            UsageError: key or text is no string.
        """
        if not isinstance(key, str) or not isinstance(text, str):
            raise UsageError(f"add_tag({key!r}, {text!r}): give two strings")
        self._recorder.note(TAG_NOTE, key=key, text=text)

    def flush(self) -> bool:
        """Returns when the rows are with the operating system; False if it refused them."""
        return self._recorder.flush()

    def close(self) -> None:
        """Writes what is left."""
        self._closed = True
        self._recorder.close()

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _known(self, kind: str, tag: str, array: NDArray[Any]) -> _Tag:
        known = self._tags.get(tag)
        if known is None:
            known = self._tags[tag] = _Tag(_spec(kind, tag, array), array.shape, 1)
        elif (known.spec.plugin, known.shape) != (kind, array.shape):
            raise UsageError(
                f"{tag!r} is a {known.spec.plugin} of shape {known.shape}, not a {kind} of shape "
                f"{array.shape}; use another tag"
            )
        return known


class SummaryReader:
    """Reads a run folder back as arrays.

    Raises:
        UsageError: the folder is missing or no run.

    Example:
        >>> SummaryReader(run).series("train_loss").values
        array([2.5])
    """

    def __init__(self, summary_dir: Path | str) -> None:
        self._run = open_folder(summary_dir)

    def tags(self) -> list[str]:
        """The tags of all series, in alphabetical order."""
        return list(self._run.specs())

    def series(
        self, tag: str, rank: int = 0, attempt: int | Literal["all"] | None = None
    ) -> Series:
        """A series, as `Run.series`.

        Raises:
            UsageError: there is no such series.
        """
        return self._run.series(tag, rank, attempt)


def _as_array(kind: str, tag: str, value: Any) -> NDArray[Any]:
    if kind not in KINDS:
        raise UsageError(f"kind {kind!r} of {tag!r}: use one of {', '.join(KINDS)}")
    check_tag(tag)
    try:
        raw = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{tag!r}: value {value!r:.80} is no array: {error}") from None
    if raw.dtype.kind not in "fiub":
        raise UsageError(f"{tag!r}: value {value!r:.80} is of type {raw.dtype}; give numbers")
    array = np.array(raw, np.float32 if raw.dtype == np.float32 else np.float64)
    wanted = len(KINDS[kind])
    if kind == "scalar" and array.size == 1:
        return array.reshape(()).astype(np.float64)
    if array.ndim != wanted or not array.size:
        raise UsageError(f"{tag!r}: a {kind} has {wanted} axes, not a shape of {array.shape}")
    return array


def _as_step(tag: str, step: Any) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise UsageError(f"{tag!r}: step {step!r} is no whole number") from None
    if not MIN_STEP <= number <= MAX_STEP:
        raise UsageError(f"{tag!r}: step {step!r} does not fit 64 bits")
    return number


def _spec(kind: str, tag: str, array: NDArray[Any]) -> SeriesSpec:
    axes = KINDS[kind]
    columns = tuple(tuple(str(i) for i in at) for at in np.ndindex(array.shape)) if axes else ()
    return SeriesSpec(tag, kind, "", axes, columns, str(array.dtype))
