"""For tests of rules and watchers, ours and yours: rows, runs and clocks without a training.

Example:
    >>> from mindpulse.rules.compiler import compile_expression
    >>> rule = compile_expression("max(grad_norm[3]) > 50")
    >>> rule.evaluate(view(grad_norm=[1.0, 70.0, 2.0])).state
    'fired'
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.reader import Chunk
from mindpulse.store.writer import RankWriter
from mindpulse.window import View, Window

AXES: Mapping[str, tuple[str, ...]] = {
    "attn_focus": ("layer", "head"),
    "attn_entropy": ("layer", "head"),
    "grad_norm_param": ("param",),
}


def rows(values: ArrayLike, first_step: int = 1, every: int = 1, second: float = 0.1) -> Rows:
    """Rows at steps first_step, first_step + every...; a step takes `second` seconds.

    Args:
        values: (T,) or (T, W).
    """
    table = np.asarray(values, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    steps = first_step + every * np.arange(len(table), dtype=np.int64)
    return Rows(steps, second * steps, table)


def spec(tag: str, width: int, columns: Sequence[tuple[str, ...]] = ()) -> SeriesSpec:
    """A series of that width; a made-up label for each column unless `columns` gives them."""
    if width == 1 and not columns and tag not in AXES:
        return SeriesSpec(tag)
    axes = AXES.get(tag, ("column",))
    made_up = [(str(i // 4), str(i % 4)) if len(axes) == 2 else (f"p{i}",) for i in range(width)]
    return SeriesSpec(tag, "vector", axes=axes, columns=tuple(columns or made_up), dtype="float32")


def chunk(
    tag: str,
    values: ArrayLike,
    *,
    first_step: int = 1,
    every: int = 1,
    rank: int = 0,
    attempt: int = 1,
) -> Chunk:
    """A chunk as the reader would hand it out."""
    block = rows(values, first_step, every)
    return Chunk(rank, attempt, spec(tag, block.values.shape[1]), block)


def view(*, first_step: int = 1, **series: ArrayLike) -> View:
    """What a rule sees after the last row of these series."""
    window = Window({})
    last = 0
    for tag, values in series.items():
        part = chunk(tag, values, first_step=first_step)
        window.extend(part)
        last = max(last, int(part.rows.steps[-1]) if len(part.rows) else 0)
    return window.view(last)


def write_run(
    run_dir: Path | str, *, rank: int = 0, first_step: int = 1, every: int = 1, **series: ArrayLike
) -> Path:
    """Writes a new attempt of a run with these series and returns the folder of the rank.

    Args:
        series: (T,) or (T, W) each, by tag.

    Example:
        >>> import tempfile
        >>> folder = write_run(Path(tempfile.mkdtemp()), train_loss=[3.0, 2.0])
        >>> folder.parent.name, sorted(path.name for path in folder.glob("*.ms"))
        ('attempt-0001', ['train_loss.ms'])
    """
    folder = create_attempt(Path(run_dir), rank)
    writer = RankWriter(folder, rank, attempt_of(folder))
    for tag, values in series.items():
        part = chunk(tag, values, first_step=first_step, every=every)
        writer.append(part.spec, part.rows)
    writer.close()
    return folder


def attempt_of(folder: Path) -> int:
    """Number of the attempt that the folder of a rank belongs to."""
    return int(folder.parent.name.rpartition("-")[2])


class ScriptedWaiter:
    """Instead of waiting does one thing after the other, then sets `stop`.

    Example:
        >>> stop = threading.Event()
        >>> waiter = ScriptedWaiter(stop, [lambda: print("rows come")])
        >>> waiter.wait(1.0), waiter.wait(1.0), stop.is_set()
        rows come
        (None, None, True)
    """

    def __init__(self, stop: threading.Event, script: Iterable[Callable[[], object]]) -> None:
        self._stop = stop
        self._script = iter(script)

    def wait(self, timeout_s: float) -> None:
        """Does the next thing of the script."""
        act = next(self._script, None)
        if act is None:
            self._stop.set()
        else:
            act()

    def peek(self) -> dict[Path, set[str]]:
        """Nothing has changed in the meantime."""
        return {}

    def follow(self, folder: Path) -> None:
        """Nothing to do: after each wait all is looked at."""

    def close(self) -> None:
        """Nothing to give back."""


class FakeClock:
    """A clock that goes on by `tick_s` each time it is read."""

    def __init__(self, start_s: float = 1e9, tick_s: float = 0.0) -> None:
        self.now_s = start_s
        self._tick_s = tick_s

    def __call__(self) -> float:
        """Seconds since the epoch."""
        self.now_s += self._tick_s
        return self.now_s
