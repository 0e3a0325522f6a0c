"""Carries out what is asked for between two steps, and says what it did."""

from __future__ import annotations

from collections.abc import Mapping

from mindpulse.control import Answer, Request
from mindpulse.control.verbs import CHANGING
from mindpulse.mindspore.acting.keeping import Keeper
from mindpulse.mindspore.acting.looking import Stop
from mindpulse.mindspore.acting.profiling import Profile
from mindpulse.mindspore.acting.skip import SkipStep
from mindpulse.mindspore.acting.verb import Data, RefusedError, Verb

# What MindSpore's operators, the file system and the host's memory raise.
ERRORS = (RuntimeError, TypeError, ValueError, OSError, MemoryError, AttributeError)


class Actions:
    """The verbs of a training; `carry_out` turns a request into its answer.

    Args:
        rank, attempt: of this process.
        ranks: how many ranks train together.
        verbs: name -> what it does; "undo" is added.
        skip, keeper, profile: those that go on for more than one step.
        stop: whether the loop is to end.
    """

    def __init__(
        self,
        rank: int,
        attempt: int,
        ranks: int,
        verbs: Mapping[str, Verb],
        skip: SkipStep,
        keeper: Keeper,
        profile: Profile,
        stop: Stop,
    ) -> None:
        self.rank = rank
        self.attempt = attempt
        self.ranks = ranks
        self.skip = skip
        self.keeper = keeper
        self.profile = profile
        self._stop = stop
        self._done: dict[int, tuple[str, Mapping[str, float], Data]] = {}
        self._verbs: dict[str, Verb] = {**verbs, "undo": _Undo(self._done, dict(verbs))}

    @property
    def stop_asked(self) -> bool:
        """Whether the loop is to end."""
        return self._stop.asked

    @property
    def busy(self) -> bool:
        """Whether something goes on between steps: then `step_ended` has to be called."""
        return bool(self.skip.left or self.keeper.every or self.profile.until)

    def step_ended(self, next_step: int) -> None:
        """Puts back what a skipped step changed; keeps a state, marks a profiled step if due."""
        self.skip.step_ended()
        self.keeper.between(next_step)
        self.profile.step_ended(next_step)

    def give_up(self) -> None:
        """Something that goes on failed: nothing goes on any more."""
        self.skip.give_up()
        self.keeper.give_up()
        self.profile.give_up()

    def consider(self, request: Request, step: int, now: float) -> Answer:
        """Says whether it could be done: "ready" or "refused"."""
        try:
            data = self._verb(request).consider(request.args)
        except RefusedError as why:
            return self.answer(request, step, now, "refused", str(why))
        except ERRORS as error:
            return self.answer(request, step, now, "refused", _text(error))
        return self.answer(request, step, now, "ready", "", data)

    def carry_out(self, request: Request, step: int, now: float) -> Answer:
        """Does what is asked before optimizer step `step`; anything it cannot do is refused."""
        try:
            detail, data = self._verb(request).do(request.args, step)
        except RefusedError as why:
            return self.answer(request, step, now, "refused", str(why))
        except ERRORS as error:
            return self.answer(request, step, now, "failed", _text(error))
        self._done[request.seq] = (request.verb, request.args, data)
        return self.answer(request, step, now, "done", detail, data)

    def _verb(self, request: Request) -> Verb:
        verb = self._verbs.get(request.verb)
        if verb is None:
            raise RefusedError(f"{request.verb!r}: can do {', '.join(sorted(self._verbs))}")
        if request.verb in CHANGING and request.ranks < self.ranks:
            raise RefusedError(
                f"{self.ranks} ranks train together, and the request speaks to {request.ranks}: "
                "watch where the files of all ranks are"
            )
        return verb

    def answer(
        self,
        request: Request,
        step: int,
        now: float,
        status: str,
        detail: str,
        data: Mapping[str, float] | None = None,
    ) -> Answer:
        """The answer of this rank."""
        return Answer(request.seq, now, self.rank, self.attempt, step, status, detail, data or {})


class _Undo:
    """Args: seq, the number of a request that this process carried out."""

    def __init__(
        self,
        done: dict[int, tuple[str, Mapping[str, float], Data]],
        verbs: Mapping[str, Verb],
    ) -> None:
        self._done = done
        self._verbs = verbs

    def consider(self, args: Mapping[str, float]) -> Data:
        """Refuses what this process did not do, or has taken back already."""
        seq = int(args["seq"])
        if seq not in self._done:
            raise RefusedError(
                f"request {seq} was not carried out by this process, or was taken back already"
            )
        if self._done[seq][0] == "undo":
            raise RefusedError(f"request {seq} is an undo: ask for the action again")
        return {}

    def do(self, args: Mapping[str, float], step: int) -> tuple[str, Data]:
        """Takes it back."""
        self.consider(args)
        seq = int(args["seq"])
        verb, asked, data = self._done[seq]
        words, told = self._verbs[verb].undo(asked, data)
        del self._done[seq]
        return f"request {seq} ({verb}) is taken back: {words}", told

    def undo(self, args: Mapping[str, float], data: Data) -> tuple[str, Data]:
        """An undo is not undone."""
        raise RefusedError("an undo cannot be taken back: ask for the action again")


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
