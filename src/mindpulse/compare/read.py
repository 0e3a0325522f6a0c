"""The sides of a comparison out of runs of any kind, read in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindpulse.compare.curve import Curve, curve_of
from mindpulse.compare.result import Side
from mindpulse.errors import UsageError
from mindpulse.series import SeriesSpec
from mindpulse.store.asked import near_names, our_tag
from mindpulse.store.run import Run

STEP_TIME = "step_time_s"
TOKENS = ("consumed_tokens", "tokens_seen", "num_input_tokens_seen", "tokens")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """Which series of a run is compared; `column` names a column of a wide series."""

    tag: str
    column: str | None = None
    rank: int | None = None
    attempt: int | None = None

    def rank_of(self, run: Run) -> int:
        """The rank asked for, else the first that the run has.

        Raises:
            UsageError: the run has no such rank.
        """
        if self.rank is None:
            return min(run.ranks, default=0)
        if self.rank not in run.ranks:
            raise UsageError(f"rank {self.rank}: {run.path} has no such rank; it has {run.ranks}")
        return self.rank


def read_side(run: Run, choice: Choice, name: str) -> Side:
    """The curve of a run with its step time and its count of tokens, where it recorded them.

    Raises:
        UsageError: the run has no such series, column, rank or attempt.
    """
    specs = run.specs()
    curve = read_curve(run, choice, name)
    times = _optional(run, choice, STEP_TIME, specs)
    tokens = next((found for tag in TOKENS if (found := _optional(run, choice, tag, specs))), None)
    step_time = float(np.median(times.values)) if times is not None and len(times) else None
    return Side(curve, step_time, tokens if tokens is not None and len(tokens) else None)


def _optional(run: Run, choice: Choice, tag: str, specs: dict[str, SeriesSpec]) -> Curve | None:
    if tag not in specs or specs[tag].columns:
        return None
    try:
        return read_curve(run, Choice(tag, None, choice.rank, choice.attempt), tag)
    except UsageError:  # another rank or attempt recorded it
        return None


def read_curve(run: Run, choice: Choice, name: str) -> Curve:
    """One column of one series, finite rows and others apart.

    Raises:
        UsageError: as `read_side`.
    """
    rank = choice.rank_of(run)
    specs = run.specs()
    tag = our_tag(choice.tag, specs, run.tags)
    column = _column(specs[tag], choice.column)
    pieces = [
        (rows.steps, rows.wall_times, rows.values[:, column].astype(np.float64))
        for block in run.blocks(tag, rank=rank, attempt=choice.attempt)
        if len(rows := block.rows)
    ]
    if not pieces:
        empty = np.empty(0)
        return curve_of(name, np.empty(0, np.int64), empty, empty)
    steps, times, values = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return curve_of(name, steps, times, values)


def _column(spec: SeriesSpec, name: str | None) -> int:
    if not spec.columns:
        return 0
    names = [spec.column_name(index) for index in range(spec.width)]
    if name in names:
        return names.index(name)
    told = "choose one with --column" if name is None else f"it has no column {name!r}"
    raise UsageError(f"{spec.tag!r} has {spec.width} columns: {told}; they are {_listed(names)}")


def check_tags(a: Run, b: Run, tag_a: str, tag_b: str) -> None:
    """Refuses a tag that a run does not have.

    Raises:
        UsageError: names what is near on both sides, and what both have.
    """
    specs_a, specs_b = a.specs(), b.specs()
    tag_a, tag_b = our_tag(tag_a, specs_a, a.tags), our_tag(tag_b, specs_b, b.tags)
    if tag_a in specs_a and tag_b in specs_b:
        return
    both = [tag for tag in specs_a if tag in specs_b]
    lines = [
        f"no series {tag!r} in {run.path}; {_near(tag, list(specs))}"
        for run, tag, specs in ((a, tag_a, specs_a), (b, tag_b, specs_b))
        if tag not in specs
    ]
    shared = f"both have {_listed(both)}" if both else "they have no series in common"
    raise UsageError("\n  ".join([*lines, f"{shared}; see --tag and --tag-b"]))


def _near(tag: str, tags: list[str]) -> str:
    near = near_names(tag, tags)
    return f"near it: {_listed(near)}" if near else f"it has {_listed(tags)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    rest = len(names) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown or "no series"
