"""Pieces of SQL: names, texts, and the views over the arrays of a series.

DuckDB takes a NaN in a NumPy array for NULL, so every view turns NULL back into NaN: a series has
no missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.cli.exports.files import column_names
from mindpulse.series import SeriesSpec

POINTS = ("tag", "rank", "attempt", "step", "wall_time", "column", "value")
NO_POINTS = "SELECT '', 0, 0, 0::BIGINT, 0::DOUBLE, '', 0::DOUBLE WHERE false"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A series of one rank as DuckDB sees it: `source` is the name of its arrays."""

    spec: SeriesSpec
    rank: int
    source: str


def select_wide(loaded: Loaded) -> str:
    """A row per step, a column per column of the series."""
    spec = loaded.spec
    values = ", ".join(f"{_value(spec, n)} AS {quoted(n)}" for n in column_names(spec))
    return f"SELECT {_keys(loaded)}, {values} FROM {loaded.source}"


def select_long(loaded: Loaded) -> str:
    """A row per step and column, as the table `points` has them."""
    spec = loaded.spec
    keys = f"{text(spec.tag)} AS tag, {_keys(loaded)}"
    values = [f"{_value(spec, name)}::DOUBLE" for name in column_names(spec)]
    if not spec.columns:
        return f"SELECT {keys}, '' AS \"column\", {values[0]} AS value FROM {loaded.source}"
    names = ", ".join(text(name) for name in column_names(spec))
    return (
        f'SELECT {keys}, unnest([{names}]) AS "column", unnest([{", ".join(values)}]) AS value '
        f"FROM {loaded.source}"
    )


def quoted(name: str) -> str:
    """An identifier of SQL.

    Example:
        >>> quoted('a"b')
        '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _keys(loaded: Loaded) -> str:
    return f"{loaded.rank}::INTEGER AS rank, attempt, step, coalesce(wall_time, 'nan') AS wall_time"


def _value(spec: SeriesSpec, name: str) -> str:
    kind = "FLOAT" if spec.dtype == "float32" else "DOUBLE"
    return f"coalesce({quoted(name)}, 'nan'::{kind})"


def pointer(query: str, offset: int) -> str:
    """Two lines: that of the query in which the place is, and a mark below it."""
    if offset < 0:
        return ""
    before = query.encode()[:offset].decode(errors="replace")
    line = query.splitlines()[before.count("\n")]
    return f"\n  {line}\n  {' ' * (len(before) - before.rfind(chr(10)) - 1)}^"
