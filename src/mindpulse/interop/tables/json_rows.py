"""JSON lines and JSON arrays of objects: one object a row, as wandb, trackio and scripts write."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from mindpulse import jsonlines
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected
from mindpulse.interop.numbers import step_of
from mindpulse.interop.source import HEAD_BYTES, lines
from mindpulse.interop.tables.huggingface import as_number, load_json
from mindpulse.interop.tables.rows import (
    RANK_NAMES,
    STEP_NAMES,
    TAG_NAMES,
    TIME_NAMES,
    VALUE_NAME,
    flat,
    pick,
    rank_of,
    time_of,
)

TITLE = "JSON lines, an object a row"
_ARRAY = re.compile(rb"\s*\[\s*\{")
_TRACE = re.compile(rb'\s*(?:\[\s*\{|\{\s*"traceEvents")')


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first line is a JSON object of its own, or the file an array of objects.

    A lone object is a row only if something in it says so: settings and summaries are objects too.
    """
    if is_trace(head):
        return False
    if _ARRAY.match(head):
        return True
    first, _, rest = head.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not first.rstrip().endswith(b"}"):
        return False
    found = _object(first.decode("utf-8", "replace"))
    alone = not rest.strip() and len(head) < HEAD_BYTES
    return isinstance(found, dict) and (not alone or _is_row(found))


def is_trace(head: bytes) -> bool:
    """Whether these are events of a profiler, as Chrome's trace viewer reads them."""
    return _TRACE.match(head) is not None and b'"ph"' in head and b'"pid"' in head


def _is_row(found: dict[str, object]) -> bool:
    row = flat(found)
    told = pick(row, STEP_NAMES) or pick(row, TIME_NAMES)
    return told is not None or any("loss" in name.lower() for name in row)


def read(path: Path) -> LoadedRun:
    """The run.

    The step is the first of `rows.STEP_NAMES` that an object has, else its number from 1 up. Keys
    of nested objects are joined by dots; texts, lists, true and false are no values.

    Raises:
        StoreError: the file cannot be read.
        FormatError: there is no number in it.
    """
    taker = _Taker(collected(path, "", "json-lines"))
    with_array = _ARRAY.match(_start(path)) is not None
    if with_array:
        taker.collector.tags["source_format"] = "json-array"
        for entry in load_json(path):
            taker.take(entry)
    else:
        _read_lines(path, taker)
    return taker.collector.finish()


def _start(path: Path) -> bytes:
    first = next(iter(lines(path)), None)
    text = first.text if first else ""
    return (text if text.strip() != "[" else "[{").encode("utf-8", "replace")


def _read_lines(path: Path, taker: _Taker) -> None:
    collector = taker.collector
    for line in lines(path):
        if not line.text.strip():
            continue
        entry = _object(line.text)
        if entry is not None:
            taker.take(entry)
        elif line.whole:
            collector.refuse("lines that are no JSON", f"line {line.number}: {line.text}")
        else:
            collector.torn(line.text)


class _Taker:
    """Takes objects and counts those without a step."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._number = 0

    def take(self, entry: object) -> None:
        self._number += 1
        if not isinstance(entry, dict):
            self.collector.refuse("rows that are no objects", repr(entry))
            return
        row = flat({str(key): value for key, value in entry.items()})
        step_name = _step_name(row)
        step = self._number if step_name is None else step_of(as_number(row[step_name]))
        if step is None:
            self.collector.refuse("rows without a step", f"{step_name}: {row[step_name or '']}")
            return
        if step_name is None:
            self.collector.remark("no field is a step: rows are numbered from 1 up")
        time_name, rank_name = pick(row, TIME_NAMES), pick(row, RANK_NAMES)
        wall_time = time_of(row[time_name], time_name) if time_name else None
        rank = rank_of(as_number(row[rank_name])) if rank_name else None
        used = {step_name, time_name if wall_time is not None else None}
        used.add(rank_name if rank is not None else None)
        moment = math.nan if wall_time is None else wall_time
        values = {key: value for key, value in row.items() if key not in used}
        if (point := _point(values)) is not None:
            self.collector.add_alone(point[0], step, point[1], moment, rank or 0)
        else:
            self.collector.add(step, _numbers(values), moment, rank or 0)


def _step_name(row: dict[str, object]) -> str | None:
    """The field that counts the rows. A fraction of an epoch does not, other odd steps are told."""
    name = pick(row, STEP_NAMES)
    if name is not None and name.lower() == "epoch" and step_of(as_number(row[name])) is None:
        return None
    return name


def _point(row: dict[str, object]) -> tuple[str, float] | None:
    """Tag and value of a row that holds one value, as `mindpulse query --follow --json` does."""
    tag_name, value_name = pick(row, TAG_NAMES), pick(row, (VALUE_NAME,))
    if not tag_name or not value_name or not isinstance(row[tag_name], str):
        return None
    value = jsonlines.number(row[value_name])
    return None if value is None else (str(row[tag_name]), value)


def _numbers(row: dict[str, object]) -> dict[str, float]:
    found = {name: as_number(value) for name, value in row.items()}
    return {name: value for name, value in found.items() if value is not None}


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
