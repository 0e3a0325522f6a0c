"""The last rows of a run, as much as a rule wants to see."""

from __future__ import annotations

from collections.abc import Iterator

from mindpulse.errors import UsageError
from mindpulse.rules.rule import Rule
from mindpulse.series import Series
from mindpulse.store.reader import Chunk
from mindpulse.store.run import Run
from mindpulse.window import View, Window

STALLED_STEPS = 1000  # a series that is so far behind is not waited for


def newest_views(run: Run, rule: Rule) -> Iterator[View]:
    """What the rule sees at the newest step that its series have reached, rank by rank.

    A rank without any of its series is left out.
    """
    for rank in run.ranks:
        ends = {tag: _last(run, tag, 1, rank) for tag in rule.needs}
        newest = {tag: int(s.steps[-1]) for tag, s in ends.items() if s is not None and len(s)}
        read = [newest[tag] for tag in rule.expression.series if tag in newest]
        if not read:
            continue
        step = min(end for end in read if end >= max(read) - STALLED_STEPS)
        window = Window({})
        for tag, end in newest.items():
            found = _last(run, tag, rule.needs[tag] + max(0, end - step), rank)
            if found is not None:
                window.extend(Chunk(rank, 1, found.spec, found.rows))
        yield window.view(step, rank)


def _last(run: Run, tag: str, rows: int, rank: int) -> Series | None:
    try:
        return run.last(tag, rows, rank)
    except UsageError:  # this rank does not write it
        return None
