"""What one rank still has to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mindpulse.control.message import Answer, Decision, Message, Request


class Agenda:
    """What one rank still has to do in this attempt. Pure: it neither reads files nor the time.

    Requests that this rank answered already, in an earlier life of the process, are left out. A
    request that several ranks do together is first answered with "ready" (or "refused"), and is due
    at the step of the decision.

    Example:
        >>> agenda = Agenda(rank=0, attempt=1)
        >>> agenda.add([Request(1, 0.0, "stop", {}, "", "", {}, step=7, expires_step=9, attempt=1)])
        >>> [len(part) for part in agenda.due(6)], [len(part) for part in agenda.due(7)]
        ([0, 0], [1, 0])
    """

    def __init__(self, rank: int, attempt: int) -> None:
        self.rank = rank
        self.attempt = attempt
        self._waiting: dict[int, Request] = {}
        self._undecided: dict[int, Request] = {}
        self._asked: set[int] = set()
        self._answered: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._undecided)

    @property
    def undecided(self) -> bool:
        """Whether a decision is awaited: then the log is worth a look before each step."""
        return bool(self._undecided)

    def add(self, messages: Iterable[Message]) -> None:
        """Takes in what `ControlLog.poll` returned."""
        for message in messages:
            if isinstance(message, Answer) and message.rank == self.rank:
                self._heard_own(message)
            elif isinstance(message, Request) and self._concerns(message):
                waiting = self._undecided if message.needs_go else self._waiting
                waiting[message.seq] = message
            elif isinstance(message, Decision):
                self._decide(message)

    def _heard_own(self, answer: Answer) -> None:
        if answer.status != "ready":
            self.drop(answer.seq)

    def _decide(self, decision: Decision) -> None:
        request = self._undecided.pop(decision.seq, None)
        if request is None:
            return
        if not decision.go:
            self._answered.add(decision.seq)
            return
        self._waiting[decision.seq] = replace(
            request, step=decision.step, expires_step=decision.expires_step
        )

    def _concerns(self, request: Request) -> bool:
        return request.attempt == self.attempt and request.seq not in self._answered

    def drop(self, seq: int) -> None:
        """A request was answered for good."""
        self._answered.add(seq)
        self._waiting.pop(seq, None)
        self._undecided.pop(seq, None)

    def to_consider(self) -> list[Request]:
        """Requests that want to know whether this rank could; each is given once."""
        fresh = [r for r in self._undecided.values() if r.seq not in self._asked]
        self._asked.update(request.seq for request in fresh)
        return fresh

    def due(self, step: int) -> tuple[list[Request], list[Request]]:
        """(to carry out before optimizer step `step`, expired before it); each is given once."""
        ready = [request for request in self._waiting.values() if request.step <= step]
        never = [r for r in self._undecided.values() if step > r.expires_step]
        for request in (*ready, *never):
            self.drop(request.seq)
        expired = [request for request in ready if step > request.expires_step]
        return [r for r in ready if step <= r.expires_step], [*expired, *never]
