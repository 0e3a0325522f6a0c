"""Where text, JSON and progress go: results to standard output, the rest to standard error."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from mindpulse.errors import MindPulseError, StoreError
from mindpulse.jsonlines import plain

if TYPE_CHECKING:
    from rich.console import Console

# A pipe has no width; wide enough for our tables, and for a page of a log.
PIPE_COLUMNS = 120


def console(stderr: bool = False) -> Console:
    """A rich console: colours and the window's width on a terminal, neither in a pipe."""
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            """Told like any other error; the exit code 1 of rich says that there are findings."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_COLUMNS
    return PipedConsole(file=stream, width=width, highlight=False, soft_wrap=False)


def print_json(value: object, indent: int | None = 2) -> None:
    """The value as strict JSON; NaN and infinities become the texts "nan", "inf", "-inf"."""
    click.echo(json_text(value, indent))


def json_text(value: object, indent: int | None = 2) -> str:
    """The value as strict JSON that the encoding of standard output can hold."""
    plainly = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    return json.dumps(plain(value), ensure_ascii=plainly, indent=indent, allow_nan=False)


@contextmanager
def busy(label: str) -> Iterator[None]:
    """A spinner on standard error for work of unknown length, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(label):
        yield


@contextmanager
def progress(
    label: str, total: Callable[[], int | None], unit: Literal["rows", "bytes"] = "rows"
) -> Iterator[Callable[[int], None]]:
    """A function that counts rows or bytes into a progress bar, which shows on a terminal only.

    Args:
        total: tells how many are to come, None if that is not known; asked only if shown.
    """
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    counts = (DownloadColumn(),) if unit == "bytes" else (MofNCompleteColumn(), TextColumn("rows"))
    shown = (TextColumn("{task.description}"), BarColumn(), *counts, Remaining())
    with Progress(*shown, console=console(stderr=True)) as bar:
        task = bar.add_task(label, total=total())
        yield lambda count: bar.advance(task, count)


@contextmanager
def hidden_path(path: Path) -> Iterator[Path]:
    """A name beside `path` to write under; the file takes its real name when all is written.

    Nobody ever sees half of a file: whatever ends the writing early removes what there is. A link
    stays one, and a device or a pipe (`/dev/null`, `/dev/stdout`) is written as it is.

    Raises:
        StoreError: the place cannot be written; says the path, the reason and what to do.
    """
    with _worded_errors(path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            yield path
            return
        place = Path(os.path.realpath(path))
        hidden = place.with_name(f".{place.name}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            yield hidden
            hidden.replace(place)
        finally:
            with suppress(OSError):
                hidden.unlink()


@contextmanager
def _worded_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, MindPulseError) or error.errno == errno.EPIPE:
            raise
        reason = error.strerror or str(error)
        raise StoreError(f"{path}: {reason}; {_advice(error)}") from error


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "nothing was left there; make room or choose another place"
    if error.errno == errno.ENAMETOOLONG:
        return "choose a place with a shorter name"
    return "choose a place that can be written"


@contextmanager
def draft(path: Path) -> Iterator[TextIO]:
    """A text file that takes its name when it is complete.

    Raises:
        StoreError: as `hidden_path`.
    """
    with hidden_path(path) as hidden, hidden.open("w", encoding="utf-8", newline="") as file:
        yield file


def as_scalar(value: Any) -> Any:
    """A NumPy number as the Python number that prints alike (float32 0.1 stays 0.1).

    Example:
        >>> import numpy as np
        >>> as_scalar(np.float32(0.1)), as_scalar(np.int64(3))
        (0.1, 3)
    """
    return float(str(value)) if hasattr(value, "dtype") and value.dtype.kind == "f" else int(value)
