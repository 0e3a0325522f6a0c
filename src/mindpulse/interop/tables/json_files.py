"""JSON files of one object: golden values of Megatron, a wandb summary, columns, our export."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse import jsonlines
from mindpulse.errors import FormatError, UsageError
from mindpulse.interop.aliases import KERAS, MEGATRON
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected
from mindpulse.interop.numbers import step_of, step_text
from mindpulse.interop.tables.exported import attempts_in, rank_and_tag
from mindpulse.interop.tables.huggingface import as_number, load_json
from mindpulse.interop.tables.rows import STEP_NAMES, flat, pick, time_of
from mindpulse.series import Rows, Series, SeriesSpec

TITLE = "a JSON file of curves"
_EXPORT = re.compile(rb'\s*\{\s*"tag":\s*"')
_GOLDEN = re.compile(rb'"start_step":|"step_interval":')
_COLUMNS = re.compile(rb'\s*\{\s*"[^"]{1,200}":\s*\[\s*(?:-?[\d.]|NaN)')


def sniff(head: bytes, path: Path) -> bool:
    """Whether it is one of the shapes that `read` knows."""
    start = head.lstrip()
    if not start.startswith(b"{"):
        return False
    if _is_our_export(head):
        return True
    if _GOLDEN.search(head) and b'"values":' in head:
        return True
    return _is_summary(head, path) or _COLUMNS.match(head) is not None


def read(path: Path) -> LoadedRun:
    """The run.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no JSON, cut, or of none of these shapes.
    """
    content = load_json(path)
    if not isinstance(content, dict):
        raise FormatError(f"{path} is JSON, but no object with curves")
    if {"tag", "steps", "values"} <= content.keys():
        return _read_export(path, content)
    if any(isinstance(v, dict) and "values" in v for v in content.values()):
        return _read_golden(path, content)
    if content and all(isinstance(value, list) for value in content.values()):
        return _read_columns(path, content)
    return _read_summary(path, content)


def _is_our_export(head: bytes) -> bool:
    return _EXPORT.match(head) is not None and b'"unit":' in head and b'"axes":' in head


def _is_summary(head: bytes, path: Path) -> bool:
    if path.name == "wandb-summary.json":
        return True
    alone = b"\n{" not in head.strip()
    return alone and b'"_step"' in head and b'"_runtime"' in head and b"}" in head[-8:]


def _read_export(path: Path, content: dict[str, Any]) -> LoadedRun:
    """What `mindpulse export --format json` wrote."""
    rank, _ = rank_and_tag(path)
    collector = collected(path, "", "mindpulse-json")
    try:
        spec = SeriesSpec(
            str(content["tag"]),
            plugin=str(content.get("plugin", "vector" if content.get("axes") else "scalar")),
            unit=str(content.get("unit", "")),
            axes=tuple(content.get("axes", ())),
            columns=tuple(tuple(labels) for labels in content.get("columns", ())),
            dtype=str(content.get("dtype", "float64")),
            reduction=str(content.get("reduction", "mean")),
        )
        steps = np.array(content["steps"], np.int64)
        wall_times = _floats(content.get("wall_times", [math.nan] * len(steps)))
        values = _floats(content["values"]).reshape(len(steps), spec.width)
        if wall_times.shape != steps.shape or steps.ndim != 1:
            raise ValueError(f"{len(steps)} steps and {wall_times.size} wall times")
    except (UsageError, ValueError, TypeError, OverflowError) as error:
        raise FormatError(f"{path}: the series in it does not fit together: {error}") from None
    whole = Series(spec, Rows(steps, wall_times, values.astype(spec.dtype)))
    for attempt, series in attempts_in(whole):
        collector.add_wide(series, rank, attempt)
    return collector.finish()


def _floats(values: Any) -> Any:
    """Nested lists of numbers, and of the texts that stand for NaN and infinity, as an array."""
    if isinstance(values, list) and values and isinstance(values[0], list):
        return np.array([_floats(row) for row in values], np.float64)
    found = [jsonlines.number(value) for value in values]
    if None in found:
        raise ValueError(f"{values[found.index(None)]!r} is no number")
    return np.array(found, np.float64)


def _read_golden(path: Path, content: dict[str, Any]) -> LoadedRun:
    """Values by step, as Megatron-LM keeps them of its own tests; older files hold a list."""
    collector = collected(path, MEGATRON, "megatron-golden")
    for name, curve in content.items():
        if not isinstance(curve, dict):
            continue
        for step, value in _steps_of(curve):
            found = as_number(value)
            if step is None:
                collector.refuse("values without a step", f"{name}: {value}")
            elif found is not None:
                collector.add(step, {name: found}, leads=False)
            elif value is not None and value != "nan":
                collector.refuse("values", f"{name}, step {step}: {value}")
            elif value == "nan":
                collector.remark(f"{name!r} has no value in its first steps")
    return collector.finish()


def _steps_of(curve: dict[str, Any]) -> Iterator[tuple[int | None, object]]:
    values = curve.get("values")
    if isinstance(values, dict):
        for text, value in values.items():
            yield step_text(str(text)), value
    elif isinstance(values, list):
        first = as_number(curve.get("start_step", 0)) or 0.0
        apart = as_number(curve.get("step_interval", 1)) or 1.0
        for position, value in enumerate(values):
            yield step_of(first + position * apart), value


def _read_columns(path: Path, content: dict[str, Sequence[object]]) -> LoadedRun:
    """Lists of equal meaning, as Keras' `History.history` is dumped."""
    collector = collected(path, KERAS, "json-columns")
    step_name = pick(content, STEP_NAMES)
    steps = content[step_name] if step_name else ()
    length = max((len(values) for values in content.values()), default=0)
    if step_name is None:
        collector.remark("no list holds the steps: rows are numbered from 1 up")
    for position in range(length):
        row = {n: v[position] for n, v in content.items() if n != step_name and position < len(v)}
        step = position + 1
        if step_name:
            found = step_of(as_number(steps[position])) if position < len(steps) else None
            if found is None:
                collector.refuse("rows without a step", f"row {position + 1}")
                continue
            step = found
        numbers = {name: as_number(value) for name, value in row.items()}
        collector.add(step, {name: value for name, value in numbers.items() if value is not None})
    return collector.finish()


def _read_summary(path: Path, content: dict[str, Any]) -> LoadedRun:
    """The last values of a run, as wandb keeps them: one row."""
    collector = collected(path, "", "wandb-summary")
    row = flat(content)
    found = {name: as_number(value) for name, value in row.items()}
    values = {name: value for name, value in found.items() if value is not None}
    step = step_of(values.pop("_step", None))
    wall_time = time_of(values.pop("_timestamp", None))
    collector.remark("the last values only, not the curves")
    if values:
        collector.add(step or 0, values, math.nan if wall_time is None else wall_time)
    return collector.finish()
