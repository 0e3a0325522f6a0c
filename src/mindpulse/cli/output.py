"""Where text, JSON and progress go: results to standard output, the rest to standard error."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

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

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_COLUMNS
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def print_json(value: object, indent: int | None = 2) -> None:
    """The value as strict JSON; NaN and infinities become the texts "nan", "inf", "-inf"."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=indent, allow_nan=False))


@contextmanager
def busy(label: str) -> Iterator[None]:
    """A spinner on standard error for work of unknown length, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(label):
        yield


@contextmanager
def progress_rows(label: str, total: Callable[[], int | None]) -> Iterator[Callable[[int], None]]:
    """A function that counts rows into a progress bar, which shows on a terminal only.

    Args:
        total: tells how many rows are to come, None if that is not known; asked only if shown.
    """
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    text = TextColumn("{task.description}")
    shown = (text, BarColumn(), MofNCompleteColumn(), TextColumn("rows"), Remaining())
    with Progress(*shown, console=console(stderr=True)) as bar:
        task = bar.add_task(label, total=total())
        yield lambda rows: bar.advance(task, rows)


@contextmanager
def hidden_path(path: Path) -> Iterator[Path]:
    """A name beside `path` to write under; the file takes its real name when all is written.

    Nobody ever sees half of a file: whatever ends the writing early removes what there is.

    Raises:
        StoreError: the place cannot be written; says the path, the reason and what to do.
    """
    hidden = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield hidden
        hidden.replace(path)
    except OSError as error:
        if isinstance(error, MindPulseError):
            raise
        reason = error.strerror or str(error)
        raise StoreError(f"{path}: {reason}; {_advice(error)}") from error
    finally:
        with suppress(OSError):
            hidden.unlink()


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
