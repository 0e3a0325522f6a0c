"""The tables that `query --sql` offers, filled only as far as a query names them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.cli.exports.files import column_names
from mindpulse.cli.sql.parse import Parsed, TableName
from mindpulse.cli.sql.records import RECORDS, as_text
from mindpulse.cli.sql.text import (
    NO_POINTS,
    POINTS,
    Loaded,
    pointer,
    quoted,
    select_long,
    select_wide,
)
from mindpulse.errors import UsageError
from mindpulse.series import Series
from mindpulse.store.run import Attempt, Run

FIXED = ("points", *RECORDS)


class Tables:
    """Makes the views of a query on a connection; NumPy arrays are handed over as they are.

    Args:
        connection: of `locked_database`.
        run: what is read.
        ranks, attempt: which part of it.
    """

    def __init__(self, connection: Any, run: Run, ranks: Sequence[int], attempt: Attempt) -> None:
        self._connection, self._run = connection, run
        self._ranks, self._attempt = ranks, attempt
        self._specs = run.specs()
        self._loaded: dict[str, list[Loaded]] = {}
        self._numbers = count()

    def make(self, parsed: Parsed, query: str) -> None:
        """Makes every table that the query names.

        Raises:
            UsageError: there is no such table; the message points at it and names the nearest.
        """
        chosen: dict[str, str] = {}
        for table in parsed.tables:
            tag = self._resolve(table, parsed, query)
            if tag and chosen.setdefault(table.name.casefold(), tag) != tag:
                raise UsageError(
                    f"SQL: {tag!r} and {chosen[table.name.casefold()]!r} differ in case only, "
                    "which SQL does not see; use: select ... from points where tag = '...'"
                )
        for name in chosen.values():
            if name == "points":
                self._points(parsed.point_tags)
            elif name in RECORDS:
                self._records(name)
            else:
                parts = [select_wide(loaded) for loaded in self._load(name)]
                self._view(name, " UNION ALL BY NAME ".join(parts))

    def _resolve(self, table: TableName, parsed: Parsed, query: str) -> str:
        """The series or fixed table of a name: as it stands, else whatever its case."""
        name = table.name
        if name.casefold() in FIXED:
            return name.casefold()
        known = [name] if name in self._specs else []
        known = known or [tag for tag in self._specs if tag.casefold() == name.casefold()]
        if len(known) == 1:
            return known[0]
        if name.casefold() in parsed.own:
            return ""
        near = known or difflib.get_close_matches(name, [*FIXED, *self._specs], n=3, cutoff=0.7)
        names = " or ".join(map(quoted, near))
        hint = f"did you mean {names}?" if near else "'select tag from series' lists them"
        raise UsageError(f"SQL: no table {name!r}; {hint}{pointer(query, table.offset)}")

    def _load(self, tag: str) -> list[Loaded]:
        if tag not in self._loaded:
            self._loaded[tag] = list(self._read(tag))
        return self._loaded[tag]

    def _read(self, tag: str) -> Iterator[Loaded]:
        missing: UsageError | None = None
        found = False
        for rank in self._ranks:
            try:
                series = self._run.series(tag, rank, self._attempt)
            except UsageError as error:  # not every rank has every series
                missing = error
                continue
            found = True
            source = self._source()
            attempts = attempts_of_rows(self._run, tag, rank, self._attempt, series)
            keys = {"attempt": attempts, "step": series.steps, "wall_time": series.wall_times}
            columns = zip(column_names(series.spec), series.rows.values.T, strict=True)
            self._connection.register(source, {**keys, **dict(columns)})
            yield Loaded(series.spec, rank, source)
        if missing and not found:
            raise missing

    def _source(self) -> str:
        return f"_mindpulse_{next(self._numbers)}"

    def _points(self, wanted: frozenset[str] | None) -> None:
        tags = [tag for tag in self._specs if wanted is None or tag in wanted]
        parts = [select_long(loaded) for tag in tags for loaded in self._load(tag)]
        self._view("points", " UNION ALL ".join(parts or [NO_POINTS]), POINTS)

    def _records(self, name: str) -> None:
        kinds, read = RECORDS[name]
        found = list(read(self._run, self._ranks, self._attempt))
        columns = {key: np.array([as_text(one.get(key)) for one in found], object) for key in kinds}
        source = self._source()
        self._connection.register(source, columns)
        chosen = ", ".join(f"{quoted(k)}::{kind} AS {quoted(k)}" for k, kind in kinds.items())
        self._view(name, f"SELECT {chosen} FROM {source}")

    def _view(self, name: str, body: str, columns: Sequence[str] = ()) -> None:
        head = f" ({', '.join(map(quoted, columns))})" if columns else ""
        self._connection.execute(f"CREATE VIEW {quoted(name)}{head} AS {body}")


def attempts_of_rows(
    run: Run, tag: str, rank: int, attempt: Attempt, series: Series
) -> NDArray[np.int32]:
    """(T,) which attempt wrote each row; of two attempts with the same row the later one."""
    numbers = [attempt] if isinstance(attempt, int) else list(run.attempts) or [1]
    found = np.full(len(series), numbers[0], np.int32)
    if len(numbers) == 1:
        return found
    rows, start = _stamps(series), 0
    for number in numbers:
        try:
            own = run.series(tag, rank, number)
        except UsageError:  # this attempt did not write the series
            continue
        here = slice(start, start + len(own)) if attempt == "all" else np.isin(rows, _stamps(own))
        found[here] = number
        start += len(own)
    return found


def _stamps(series: Series) -> NDArray[np.uint64]:
    """(T,) step and wall time of each row, mixed into one number that tells rows apart."""
    wall_times = np.ascontiguousarray(series.wall_times).view(np.uint64)
    steps = np.ascontiguousarray(series.steps).view(np.uint64)
    return steps * np.uint64(0x9E3779B97F4A7C15) + wall_times
