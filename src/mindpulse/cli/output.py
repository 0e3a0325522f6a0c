"""Where text, JSON and progress go: results to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from mindpulse.errors import StoreError
from mindpulse.jsonlines import plain

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
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


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items, with a progress bar on standard error while it is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=label, total=total, console=console(stderr=True))


@contextmanager
def busy(label: str) -> Iterator[None]:
    """A spinner on standard error for work of unknown length, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(label):
        yield


@contextmanager
def draft(path: Path) -> Iterator[TextIO]:
    """A text file that takes its name when it is complete: nobody ever sees half of it.

    Raises:
        StoreError: the place cannot be written; says the path, the reason and what to do.
    """
    hidden = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with hidden.open("w", encoding="utf-8", newline="") as file:
            yield file
        hidden.replace(path)
    except OSError as error:
        with suppress(OSError):
            hidden.unlink()
        reason = error.strerror or str(error)
        raise StoreError(f"{path}: {reason}; choose a place that can be written") from error


def as_scalar(value: Any) -> Any:
    """A NumPy number as the Python number that prints alike (float32 0.1 stays 0.1).

    Example:
        >>> import numpy as np
        >>> as_scalar(np.float32(0.1)), as_scalar(np.int64(3))
        (0.1, 3)
    """
    return float(str(value)) if hasattr(value, "dtype") and value.dtype.kind == "f" else int(value)
