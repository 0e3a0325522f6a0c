"""What all text logs have in common: lines, a cut end, errors that a program died of."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mindpulse.interop.collect import Collector
from mindpulse.interop.numbers import wall_time
from mindpulse.interop.source import MAX_LOG_LINE_BYTES, Line, lines

# A number at the very end of a line that has no end may have lost its last digits.
_CUT_NUMBER = re.compile(r"(?:[-+]?[\d.][\w.+-]*|\b(?:n|na|nan|i|in|inf))$", re.IGNORECASE)
_ERROR = re.compile(r"^(?:\[[\w ]+\]:?\s*)?((?:\w+\.)*\w*(?:Error|Exception)): ")
_OVERFLOW = re.compile(r"\boverflow\b", re.IGNORECASE)
MAX_NOTES = 1000
_STAMP_WITHIN = 60


def read_log(collector: Collector, take: Callable[[Line], None]) -> None:
    """Hands each line to `take`; keeps errors and overflows as notes.

    A last line without an end loses its last number, and is taken.
    """
    for line in lines(collector.path, MAX_LOG_LINE_BYTES):
        if not line.whole:
            line = _without_cut(line, collector)
        take(line)
        if len(collector.notes) < MAX_NOTES:
            _note(line, collector)


def _without_cut(line: Line, collector: Collector) -> Line:
    kept = _CUT_NUMBER.sub("", line.text)
    if kept != line.text:
        collector.torn(line.text)
    return Line(line.number, kept, line.whole)


def _note(line: Line, collector: Collector) -> None:
    if _ERROR.match(line.text):
        collector.note("error", line.text, wall_time=stamp(line.text))
    elif _OVERFLOW.search(line.text) and "scale" in line.text and "overflow cond" not in line.text:
        collector.note("overflow", line.text, wall_time=stamp(line.text))


def stamp(text: str) -> float:
    """The time at the beginning of a line in seconds since 1970, NaN where there is none."""
    return wall_time(text[:_STAMP_WITHIN])


def collected(path: Path, tool: str, kind: str) -> Collector:
    """A collector that says what kind of file it was filled from."""
    collector = Collector(path, tool)
    collector.tags["source_format"] = kind
    return collector
