"""Which measures are due on a step, and the smallest variant of the step that takes them all.

Probes stand in slots; a slot takes all its measures at once. The step is compiled in *tiers*: tier
0 holds the slots that run on each step, each further tier adds those of the next longer interval.
The tiers are fixed at construction. Intervals may change at any time after that: a tier that holds
more than is due costs time, and the rows that nobody asked for are left out when they are drained.

All measures count steps from the same origin (1, 1 + n, 1 + 2n...), so that dear steps coincide, on
all ranks, and a longer interval that is a multiple of a shorter one needs no step of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.errors import UsageError
from mindpulse.schedule.every import Every, whole_steps


@dataclass(frozen=True, slots=True)
class _Plan:
    """What holds from step `start` on: the intervals asked for, and by what some are stretched."""

    start: int
    asked: Mapping[str, int]
    factor: int
    every: Mapping[str, int]


class Density:
    """Decides for each step what is due, and remembers it until the rows are drained.

    Args:
        slots: slot -> the tags that it measures. A tag may stand in many slots; a slot without
            tags is in every tier.
        intervals: tag -> steps between two measurements. Tags that stand in no slot (what the host
            measures) have intervals too.

    Attributes:
        tiers: slots of each variant of the step, each tier a superset of the one before.

    Raises:
        UsageError: an interval is no whole number from 1 up, or a tag of a slot has none.

    Example:
        >>> density = Density({"norm": ["grad_norm"], "softmax": ["attn_focus"]},
        ...                   {"grad_norm": 1, "attn_focus": 10})
        >>> [sorted(tier) for tier in density.tiers]
        [['norm'], ['norm', 'softmax']]
        >>> density.set("attn_focus", 5, step=12)
        >>> [step for step in range(1, 25) if density.choose(step) == 1]
        [1, 11, 16, 21]
    """

    def __init__(self, slots: Mapping[str, Sequence[str]], intervals: Mapping[str, int]) -> None:
        for interval in intervals.values():
            Every(interval)
        for slot, tags in slots.items():
            if missing := [tag for tag in tags if tag not in intervals]:
                raise UsageError(f"slot {slot!r} measures {missing[0]!r}, which has no interval")
        first = {
            slot: min((intervals[tag] for tag in tags), default=1) for slot, tags in slots.items()
        }
        rungs = sorted({1, *first.values()})
        self.tiers = tuple(frozenset(s for s in slots if first[s] <= rung) for rung in rungs)
        self._tier = dict.fromkeys(intervals, 0)
        for slot, tags in slots.items():
            for tag in tags:
                self._tier[tag] = max(self._tier[tag], rungs.index(first[slot]))
        self._plans = [_Plan(0, dict(intervals), 1, dict(intervals))]
        self._bursts: list[tuple[int, int]] = []

    @property
    def intervals(self) -> dict[str, int]:
        """Tag -> steps between two measurements, as of the last change."""
        return dict(self._plans[-1].every)

    # -- changing -----------------------------------------------------------------------------

    def set(self, tags: str | Iterable[str], interval: int, step: int) -> None:
        """Changes the interval of a tag, or of several, from `step` on.

        Tags that are not measured are passed over, so that a whole family may be given. The
        caller chooses the tier of `step` again if it did so before the change.

        Raises:
            UsageError: no tag is measured, or the interval is no whole number from 1 up.
        """
        whole_steps("interval", interval)
        names = [tags] if isinstance(tags, str) else list(tags)
        known = [tag for tag in names if tag in self._tier]
        if not known:
            raise UsageError(
                f"{', '.join(map(repr, names)) or 'nothing'}: not measured in this run; "
                f"measured are {', '.join(sorted(self._tier)) or 'no tags'}"
            )
        self._change(step, dict.fromkeys(known, interval))

    def stretch(self, factor: int, step: int) -> None:
        """Multiplies the intervals of the dear measures from `step` on; 1 is as the user asked.

        Measures of tier 0 keep theirs: they run on each step, so leaving out their rows would
        save nothing.

        Raises:
            UsageError: the factor is no whole number from 1 up.
        """
        whole_steps("factor", factor)
        self._change(step, {}, factor)

    def burst(self, first_step: int, steps: int) -> None:
        """Everything is due on `steps` steps from `first_step` on; one step is a snapshot.

        Raises:
            UsageError: `steps` is no whole number from 1 up.
        """
        self._bursts.append((first_step, first_step + whole_steps("burst", steps)))

    def forget(self, before: int) -> None:
        """Drops what is only needed for steps before this one; their rows have been drained."""
        while len(self._plans) > 1 and self._plans[1].start <= before:
            del self._plans[0]
        self._bursts = [(first, end) for first, end in self._bursts if end > before]

    def _change(self, step: int, asked: Mapping[str, int], factor: int | None = None) -> None:
        index = self._index(step)
        if self._plans[index].start < step:
            index += 1
            self._plans.insert(index, replace(self._plans[index - 1], start=step))
        self._plans[index:] = [
            self._plan(plan.start, {**plan.asked, **asked}, factor or plan.factor)
            for plan in self._plans[index:]
        ]

    def _plan(self, start: int, asked: Mapping[str, int], factor: int) -> _Plan:
        every = {tag: n * factor if self._tier[tag] else n for tag, n in asked.items()}
        return _Plan(start, asked, factor, every)

    # -- asking -------------------------------------------------------------------------------

    def choose(self, step: int) -> int:
        """The smallest tier whose slots cover everything that is due on a step."""
        if self.bursting(step):
            return len(self.tiers) - 1
        every = self._plans[self._index(step)].every
        return max((self._tier[tag] for tag, n in every.items() if (step - 1) % n == 0), default=0)

    def due(self, tag: str, step: int) -> bool:
        """Whether a tag is measured on a step; also of steps past, whatever changed since then."""
        return bool(self.due_rows(tag, [step])[0])

    def due_rows(self, tag: str, steps: ArrayLike) -> NDArray[np.bool_]:
        """`due` of many steps.

        Args:
            steps: (T,).

        Returns:
            (T,).

        Raises:
            UsageError: the tag is not measured in this run.
        """
        if tag not in self._tier:
            raise UsageError(f"{tag!r}: not measured in this run")
        asked = np.asarray(steps, np.int64)
        starts = [plan.start for plan in self._plans[1:]]
        every = np.array([plan.every[tag] for plan in self._plans])
        found: NDArray[np.bool_] = (asked - 1) % every[np.searchsorted(starts, asked, "right")] == 0
        for first, end in self._bursts:
            found |= (first <= asked) & (asked < end)
        return found

    def bursting(self, step: int) -> bool:
        """Whether a burst makes everything due on a step."""
        return any(first <= step < end for first, end in self._bursts)

    def _index(self, step: int) -> int:
        """The plan that a step falls into; before the first one remembered, that one."""
        return bisect_right(self._plans[1:], step, key=lambda plan: plan.start)
