"""Arguments that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from mindpulse.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])
Attempt = int | Literal["all"] | None

run_dir = click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


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
