"""What was asked in a run so far, what was answered, decided and judged. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mindpulse.control import Answer, Decision, Judgement, Message, Request
from mindpulse.control.verbs import MOVING

WORST_FIRST = ("failed", "refused", "expired", "done")


class Ledger:
    """The control log of a run, whoever asked.

    Attributes:
        requests: by number.
        replies: of each request, the last answer of each rank.
        decisions, judgements: by the number of the request.

    Example:
        >>> ledger = Ledger()
        >>> ledger.add([Request(1, 0.0, "stop", {}, "", "", {}, 7, 9, 1),
        ...             Answer(1, 0.0, 0, 1, 7, "done")])
        >>> ledger.outcome(1).status
        'done'
    """

    def __init__(self) -> None:
        self.requests: dict[int, Request] = {}
        self.replies: dict[int, dict[int, Answer]] = {}
        self.decisions: dict[int, Decision] = {}
        self.judgements: dict[int, Judgement] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Takes in messages of the control log."""
        for message in messages:
            if isinstance(message, Request):
                self.requests[message.seq] = message
            elif isinstance(message, Answer):
                self.replies.setdefault(message.seq, {})[message.rank] = message
            elif isinstance(message, Decision):
                self.decisions.setdefault(message.seq, message)  # the ranks obey the first one
            elif isinstance(message, Judgement):
                self.judgements[message.seq] = message

    def of(self, verb: str) -> list[Request]:
        """The requests of one kind, oldest first."""
        return [request for request in self.requests.values() if request.verb == verb]

    def asked_for(self, alert: str) -> int:
        """How many requests an alert has led to, those that took one back aside."""
        return sum(r.alert == alert and r.verb != "undo" for r in self.requests.values())

    def moves(self, attempt: int) -> list[Request]:
        """The requests of an attempt that change weights, rate or clipping, oldest first."""
        return [
            request
            for request in self.requests.values()
            if request.verb in MOVING and request.attempt == attempt
        ]

    def moved_since(self, step: int, attempt: int) -> bool:
        """Whether anything was changed at a step or after it."""
        outcomes = (self.outcome(request.seq) for request in self.moves(attempt))
        return any(o is not None and o.status == "done" and o.step >= step for o in outcomes)

    def outcome(self, seq: int) -> Answer | None:
        """What became of a request: the worst answer of its ranks; None while some are awaited.

        A request that was decided against counts as refused.
        """
        decision = self.decisions.get(seq)
        if decision is not None and not decision.go:
            return Answer(
                seq, decision.wall_time, 0, 1, decision.step, "refused", decision.reason
            )  # fmt: skip
        replies = self.replies.get(seq, {})
        final = [answer for answer in replies.values() if answer.status != "ready"]
        wanted = self.requests[seq].ranks if seq in self.requests else 1
        if len(final) < wanted:
            return None
        return min(final, key=lambda answer: (WORST_FIRST.index(answer.status), -answer.step))

    def done(self, seq: int) -> bool:
        """Whether all ranks carried it out."""
        outcome = self.outcome(seq)
        return outcome is not None and outcome.status == "done"

    @property
    def undone(self) -> set[int]:
        """Numbers of the requests that were taken back, or are asked to be."""
        return {
            int(request.args["seq"])
            for request in self.of("undo")
            if (outcome := self.outcome(request.seq)) is None or outcome.status == "done"
        }

    def scale(self) -> float:
        """By what the learning rate was multiplied so far, open requests included."""
        product, undone = 1.0, self.undone
        for request in (*self.of("scale_lr"), *self.of("rollback")):
            outcome = self.outcome(request.seq)
            if (outcome is None or outcome.status == "done") and request.seq not in undone:
                product *= request.args.get("factor", 1.0)
        return product
