"""What a reader of a run asks for: whether it can be, and what to say where the run lacks it."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mindpulse.errors import UsageError

ALIAS = "alias."
_SHOWN = 5
_NEAR = 3


def asked_attempt(attempt: Any) -> int | Literal["all"] | None:
    """Which attempt is meant; a NumPy integer is a number too.

    Raises:
        UsageError: neither None nor "all" nor a whole number.

    Example:
        >>> asked_attempt(2), asked_attempt("all"), asked_attempt(None)
        (2, 'all', None)
    """
    if attempt is None:
        return None
    if isinstance(attempt, str):
        if attempt == "all":
            return "all"
        raise UsageError(f"attempt {attempt!r}: use its number, 'all', or None for the latest rows")
    try:
        return operator.index(attempt)
    except TypeError:
        raise UsageError(f"attempt {attempt!r}: use its number, 'all' or None") from None


def asked_limit(limit: Any) -> int:
    """How many rows are meant.

    Raises:
        UsageError: it is negative, or no whole number.
    """
    try:
        number = operator.index(limit)
    except TypeError:
        number = -1
    if number < 0:
        raise UsageError(f"limit {limit!r}: use a whole number of rows, 0 or more")
    return number


def our_tag(tag: str, known: Container[str], run_tags: Mapping[str, str]) -> str:
    """The series that is meant: another tool's name for it is understood too.

    Args:
        run_tags: texts of the run; under "alias.train_loss" stands what the tool calls it.

    Example:
        >>> our_tag("train/loss", {"train_loss"}, {"alias.train_loss": "train/loss"})
        'train_loss'
    """
    if tag in known:
        return tag
    told = (key for key, name in run_tags.items() if name == tag and key.startswith(ALIAS))
    ours = (key.removeprefix(ALIAS) for key in told)
    return next((name for name in ours if name in known), tag)


def near_names(wanted: str, known: Iterable[str]) -> list[str]:
    """The names that look alike, then those that have a word in common; the nearest first.

    Example:
        >>> near_names("train_los", ["grad_norm", "train_loss"])
        ['train_loss']
        >>> near_names("loss", ["train_loss", "eval_loss", "grad_norm"])
        ['eval_loss', 'train_loss']
    """
    names = list(known)
    near = difflib.get_close_matches(wanted, names, n=_NEAR, cutoff=0.6)
    words = _words(wanted)
    near += [name for name in names if name not in near and words & _words(name)]
    return near[:_NEAR]


def _words(name: str) -> set[str]:
    """The words of a name; "train" stands in too many to mean anything."""
    return set(name.lower().replace("/", "_").replace(" ", "_").split("_")) - {"train", ""}


def no_series(tag: str, place: Path, known: Sequence[str]) -> str:
    """What to say where a run has no such series.

    Example:
        >>> print(no_series("train_los", Path("run"), ["grad_norm", "train_loss"]))
        run has no series 'train_los'; did you mean 'train_loss'?
    """
    near = near_names(tag, known) if isinstance(tag, str) else []
    if near:
        return f"{place} has no series {tag!r}; did you mean {' or '.join(map(repr, near))}?"
    return f"{place} has no series {tag!r}; it has {listed(known) if known else 'none yet'}"


def no_rows(tag: str, rank: int, attempt: object, place: Path, there: tuple[object, object]) -> str:
    """What to say where a series has no file of this rank and attempt.

    Args:
        there: the ranks and attempts of the run.
    """
    wanted = f"rank {rank!r}" if attempt is None else f"rank {rank!r}, attempt {attempt!r}"
    return f"{place} has no {tag!r} of {wanted}; ranks are {there[0]}, attempts {there[1]}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are.

    Example:
        >>> listed(["a", "b"]), listed([])
        ("'a', 'b'", 'none')
    """
    shown = ", ".join(map(repr, names[:_SHOWN]))
    rest = len(names) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"
