"""What a demo shows while it trains: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_EVERY = 20
PIPE_COLUMNS = 120


class Display(Protocol):
    """Shows lines and how far the training is."""

    def say(self, line: str) -> None:
        """Shows a line; may be called from any thread."""

    def advance(self, step: int, loss: float, health: str) -> None:
        """Step `step` is done."""


class Bar:
    """A bar that stays at the bottom while lines scroll by above it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def say(self, line: str) -> None:
        """Prints above the bar."""
        self._progress.console.print(escape(line))

    def advance(self, step: int, loss: float, health: str) -> None:
        """Moves the bar."""
        self._progress.update(self._task, completed=step, loss=f"{loss:.3f}", health=escape(health))


class PlainLines:
    """One line each 20 steps: for a pipe or a log file."""

    def __init__(self, stream: TextIO, steps: int) -> None:
        self._stream = stream
        self._steps = steps

    def say(self, line: str) -> None:
        """Prints the line."""
        print(line, file=self._stream, flush=True)

    def advance(self, step: int, loss: float, health: str) -> None:
        """Prints the first, each 20th and the last step."""
        if step == 1 or step % PLAIN_EVERY == 0 or step == self._steps:
            self.say(f"step {step}/{self._steps}  loss {loss:.3f}  health: {health}")


@contextmanager
def open_display(stream: TextIO, steps: int) -> Iterator[Display]:
    """A bar if `stream` is a terminal, plain lines if it is not."""
    if not stream.isatty():
        yield PlainLines(stream, steps)
        return
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn("health: {task.fields[health]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream)) as progress:
        task = progress.add_task("", total=steps, loss="...", health="compiling the first step")
        yield Bar(progress, task)
