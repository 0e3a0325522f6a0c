"""All ranks act at the same step, or none does. Pure.

A request to several ranks is answered twice. First each rank says whether it could ("ready"); when
all have said so, whoever asked writes the decision with the step. If one refuses, if one is not
heard, or if they would go back to different states, the decision is that nobody acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mindpulse.control import Answer, Request
from mindpulse.watcher.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether all ranks go; if not, why not.

    Attributes:
        heard_step: the newest step that a rank was at when it answered.
    """

    go: bool
    heard_step: int
    reason: str = ""


def choose(request: Request, ledger: Ledger, step: int) -> Choice | None:
    """What to decide about a request now; None while it is too early, or if nothing is to be.

    Args:
        step: the newest one that is known.
    """
    if not request.needs_go or request.seq in ledger.decisions:
        return None
    replies = ledger.replies.get(request.seq, {})
    heard = max((answer.step for answer in replies.values()), default=step)
    against = [answer for answer in replies.values() if answer.status != "ready"]
    if against:
        first = min(against, key=lambda answer: answer.rank)
        return Choice(False, heard, f"rank {first.rank}: {first.detail or first.status}")
    if len(replies) >= request.ranks:
        apart = _apart(replies)
        return Choice(not apart, heard, apart)
    if max(step, heard) > request.expires_step:
        missing = request.ranks - len(replies)
        return Choice(False, heard, f"{missing} of {request.ranks} ranks did not answer")
    return None


def _apart(replies: Mapping[int, Answer]) -> str:
    """How what the ranks would do differs; "" if it does not."""
    told = {rank: dict(answer.data) for rank, answer in sorted(replies.items())}
    if all(data == next(iter(told.values())) for data in told.values()):
        return ""
    words = [
        f"rank {rank}: " + ", ".join(f"{key} {value:g}" for key, value in data.items())
        for rank, data in told.items()
    ]
    return f"the ranks would do different things ({'; '.join(words[:8])})"


def acted_apart(request: Request, ledger: Ledger) -> str:
    """How the ranks that acted differ: in the step, or because some did not; "" if all is well."""
    if not request.needs_go:
        return ""
    replies = [a for a in ledger.replies.get(request.seq, {}).values() if a.status != "ready"]
    if len(replies) < request.ranks:
        return ""
    acted = [answer for answer in replies if answer.status == "done"]
    if not acted or (len(acted) == len(replies) and len({a.step for a in acted}) == 1):
        return ""
    return "; ".join(
        f"rank {answer.rank}: {answer.status} at step {answer.step}"
        for answer in sorted(replies, key=lambda answer: answer.rank)[:8]
    )
