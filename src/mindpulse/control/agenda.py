"""What one rank still has to do."""

from __future__ import annotations

from collections.abc import Iterable

from mindpulse.control.message import Answer, Message, Request


class Agenda:
    """What one rank still has to do in this attempt. Pure: it neither reads files nor the time.

    Requests that this rank answered already, in an earlier life of the process, are left out.

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
        self._answered: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, messages: Iterable[Message]) -> None:
        """Takes in what `ControlLog.poll` returned."""
        for message in messages:
            if isinstance(message, Answer) and message.rank == self.rank:
                self._answered.add(message.seq)
                self._waiting.pop(message.seq, None)
            elif isinstance(message, Request) and self._concerns(message):
                self._waiting[message.seq] = message

    def _concerns(self, request: Request) -> bool:
        return request.attempt == self.attempt and request.seq not in self._answered

    def due(self, step: int) -> tuple[list[Request], list[Request]]:
        """(to carry out before optimizer step `step`, expired before it); each is given once."""
        ready = [request for request in self._waiting.values() if request.step <= step]
        for request in ready:
            del self._waiting[request.seq]
            self._answered.add(request.seq)
        expired = [request for request in ready if step > request.expires_step]
        return [request for request in ready if step <= request.expires_step], expired
