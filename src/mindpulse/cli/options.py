"""Arguments that several commands share, so that they read alike everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import click
import numpy as np

from mindpulse.errors import MindPulseError, UsageError
from mindpulse.series import Rows

Command = TypeVar("Command", bound=Callable[..., Any])
Attempt = int | Literal["all"] | None

run_dir = click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class _Finite(click.FloatRange):
    """A number within a range; NaN, which lies in none, and infinity are refused."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r}: use a finite number", param, ctx)
        return number


def finite(least: float | None = None, most: float | None = None) -> click.FloatRange:
    """The type of an option that takes a finite number."""
    return _Finite(least, most)


def rank(default: str) -> Callable[[Command], Command]:
    """The option --rank; `default` says what is read without it."""
    text = f"Rank to read [default: {default}]."
    return click.option("--rank", type=click.IntRange(min=0), metavar="N", help=text)


rules = click.option(
    "--rules",
    "rules_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file of rules, added to those that ship; the same name changes one.",
)

lang = click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the messages.",
)


def parse_attempt(ctx: click.Context, param: click.Parameter, value: str | None) -> Attempt:
    """The number of an attempt, or "all"."""
    if value is None or value == "all":
        return None if value is None else "all"
    if not (value.isdecimal() and int(value) > 0):
        raise click.BadParameter(f"{value!r}: use the number of an attempt (1, 2, ...) or 'all'")
    return int(value)


attempt = click.option(
    "--attempt",
    callback=parse_attempt,
    metavar="N|all",
    help="One attempt, or all rows [default: each step from the latest attempt that reached it].",
)


class StepRange(NamedTuple):
    """Steps from `first` to `last`, both included; an end that is None is open."""

    first: int | None = None
    last: int | None = None

    def pick(self, rows: Rows) -> Rows:
        """The rows of these steps, in their order."""
        if self == (None, None):
            return rows
        inside = np.ones(len(rows), np.bool_)
        if self.first is not None:
            inside &= rows.steps >= self.first
        if self.last is not None:
            inside &= rows.steps <= self.last
        return rows if inside.all() else rows[inside]


def parse_steps(ctx: click.Context, param: click.Parameter, value: str | None) -> StepRange:
    """A range of steps: "100:200", "100:", ":200", or a single step."""
    if value is None:
        return StepRange()
    found = re.fullmatch(r"(-?\d+)?(:)?(-?\d+)?", value.strip())
    if not found or not any(found.groups()[::2]):
        raise click.BadParameter(f"{value!r}: use A:B, A:, :B or a single step")
    first, colon, last = found.groups()
    steps = StepRange(int(first) if first else None, int(last) if last else None)
    steps = steps if colon else StepRange(steps.first, steps.first)
    if steps.first is not None and steps.last is not None and steps.first > steps.last:
        raise click.BadParameter(f"{value!r}: the first step is above the last")
    return steps


steps = click.option(
    "--steps",
    callback=parse_steps,
    metavar="A:B",
    help="Only steps from A to B, both included; either may be left out.",
)


def only_run_folder(path: Path, what: str) -> None:
    """Refuses what another tool wrote where rows are waited for; a missing folder may come yet.

    Raises:
        UsageError: the path is a file, or a folder of another tool.
    """
    from mindpulse.interop import OURS, identify

    if not path.exists():
        return
    try:
        kind = identify(path).kind
    except MindPulseError:  # nothing that is known: a training may be about to begin in it
        kind = OURS if path.is_dir() else ""
    if kind != OURS:
        raise UsageError(
            f"{path} was not written by MindPulse: {what} waits for rows in a run folder; "
            "query, analyze, report, compare and export read it as it is"
        )


def pick_rank(wanted: int | None, ranks: list[int]) -> int:
    """The rank to read: the one asked for, else the first that the run has.

    Raises:
        UsageError: the run has no such rank; the message lists those it has.
    """
    if wanted is None:
        return ranks[0] if ranks else 0
    if wanted not in ranks:
        have = ", ".join(map(str, ranks)) or "none"
        raise UsageError(f"rank {wanted}: this run has no such rank; it has: {have}")
    return wanted
