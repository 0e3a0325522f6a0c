"""The same two runs in every format that benchmarks/read.py compares.

narrow  steps x 10 tags: a loss with a spike and a NaN, and nine more scalars
wide    steps x 200 columns: a gradient norm per parameter, as one wide series, and once more
        as 200 scalars
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mindpulse.interop.events.encode import numeric_events, scalar_part
from mindpulse.interop.events.messages import version_event
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter

BLOCK = 20_000
EVENTS_NAME = "events.out.tfevents.1700000000.host"
SPIKE = 99.0


@dataclass(frozen=True)
class Table:
    """One of the runs.

    Attributes:
        name: of its files.
        steps: number of rows.
        tags: names of the columns.
    """

    name: str
    steps: int
    tags: tuple[str, ...]

    def blocks(self) -> Iterator[Rows]:
        """The rows, in single precision: each call gives the same."""
        rng = np.random.default_rng(len(self.tags))
        for start in range(0, self.steps, BLOCK):
            steps = np.arange(start, min(start + BLOCK, self.steps), dtype=np.int64)
            falling = 8 * np.exp(-steps / (self.steps / 5))[:, None]
            values = falling + rng.normal(0, 0.05, (len(steps), len(self.tags)))
            for at, odd in ((self.steps // 3, SPIKE), (self.steps // 2, np.nan)):
                values[steps == at, 0] = odd
            times = 1.7e9 + steps * 0.25 + rng.uniform(0, 0.01, len(steps))
            yield Rows(steps, times, values.astype(np.float32))


def narrow(steps: int) -> Table:
    """`steps` x 10."""
    return Table("narrow", steps, ("loss", *(f"metric{index}" for index in range(1, 10))))


def wide(steps: int) -> Table:
    """`steps` x 200."""
    names = (f"layers.{index // 8}.{'qkvofudn'[index % 8]}" for index in range(200))
    return Table("wide", steps, tuple(names))


def wide_spec(table: Table) -> SeriesSpec:
    """The columns of a table as one series."""
    labels = tuple((tag,) for tag in table.tags)
    return SeriesSpec("grad_norm", "vector", "", ("param",), labels, "float32")


def write_store(folder: Path, table: Table, *, as_one: bool) -> None:
    """A run folder of ours: one wide series, or a scalar for each tag."""
    writer = RankWriter(create_attempt(folder), 0, 1)
    spec = wide_spec(table)
    for rows in table.blocks():
        if as_one:
            writer.append(spec, rows)
        else:
            for index, tag in enumerate(table.tags):
                column = rows.values[:, index : index + 1].astype(np.float64)
                writer.append(SeriesSpec(tag), Rows(rows.steps, rows.wall_times, column))
        writer.flush()
    writer.close()


def write_events(folder: Path, table: Table) -> None:
    """A TensorBoard event file, one event a step."""
    folder.mkdir(parents=True)
    parts = [scalar_part("tensorboard", tag) for tag in table.tags]
    with (folder / EVENTS_NAME).open("wb") as file:
        file.write(version_event("tensorboard", 1.7e9))
        for rows in table.blocks():
            lengths = np.searchsorted(2 ** (7 * np.arange(1, 9)), rows.steps, side="right")
            cuts = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(rows)]
            for first, last in pairwise(cuts):
                file.writelines(numeric_events(parts, rows[first:last]))


def write_parquet(path: Path, table: Table) -> None:
    """A column for each tag, compressed as pyarrow does by default."""
    fields = [("step", pa.int64()), ("wall_time", pa.float64())]
    schema = pa.schema(fields + [(tag, pa.float32()) for tag in table.tags])
    with pq.ParquetWriter(path, schema) as writer:
        for rows in table.blocks():
            columns = [rows.steps, rows.wall_times, *rows.values.T]
            writer.write_table(pa.table([pa.array(c) for c in columns], schema=schema))


def write_sqlite(path: Path, table: Table) -> None:
    """One row a point, in the order of tags and steps, as such tables are keyed."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT)")
    database.execute(
        "CREATE TABLE points (tag INTEGER, step INTEGER, wall_time REAL, value REAL,"
        " PRIMARY KEY (tag, step)) WITHOUT ROWID"
    )
    database.executemany("INSERT INTO tags VALUES (?, ?)", enumerate(table.tags))
    whole = Rows.concat(list(table.blocks()))
    steps, times = whole.steps.tolist(), whole.wall_times.tolist()
    for index in range(len(table.tags)):
        values = whole.values[:, index].astype(np.float64).tolist()
        points = zip([index] * len(steps), steps, times, values, strict=True)
        database.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", points)
    database.commit()
    database.close()
