"""keep and rollback: states of late in host memory, and the way back to one of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mindpulse.mindspore.acting.skip import SkipStep
from mindpulse.mindspore.acting.state import Copies, TrainingState, check_room
from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.mindspore.learning_rate import LearningRate, in_words, put, value_of

MOST_STATES = 3


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The state before a step.

    Attributes:
        step: the step that ran next.
        taken_s: when, by a clock that only runs forward.
        scaled_by: by what actions had multiplied the learning rate.
    """

    step: int
    taken_s: float
    copies: Copies
    scaled_by: float


class Keeper:
    """The states that were kept, oldest first; at most three, and half of the free host memory.

    Attributes:
        every: a state is kept before each step that is a multiple of this; 0 for none.
    """

    def __init__(
        self,
        state: TrainingState,
        rate: LearningRate | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.every = 0
        self.states: deque[Kept] = deque(maxlen=MOST_STATES)
        self.rate = rate
        self.clock = clock
        self._state = state

    def check(self) -> None:
        """Raises `RefusedError` where not even one state fits into the host's memory."""
        if not self.states:
            check_room(self._state.bytes)

    def between(self, next_step: int) -> None:
        """Keeps the state if it is time; drops the oldest where there is no room for one more."""
        if not self.every or next_step % self.every:
            return
        while True:
            try:
                copies = self._state.copy()
            except RefusedError:
                if not self.states:
                    raise
                self.states.popleft()
            else:
                break
        scaled_by = self.rate.scaled_by if self.rate is not None else 1.0
        self.states.append(Kept(next_step, self.clock(), copies, scaled_by))

    def choose(self, before: int) -> Kept:
        """The newest state before step `before` (0: of all) in which every value is finite.

        Raises:
            RefusedError: there is none.
        """
        if not self.states:
            raise RefusedError(
                "no state was kept: ask for `keep every=100` first, or train with keep_every=100"
            )
        young = [kept for kept in self.states if not before or kept.step <= before]
        if not young:
            oldest = self.states[0].step
            raise RefusedError(f"the oldest state kept is that before step {oldest}, not {before}")
        found = next((kept for kept in reversed(young) if kept.copies.finite), None)
        if found is None:
            raise RefusedError("there are NaN or infinite values in every state that was kept")
        return found

    def forget_after(self, step: int) -> None:
        """Drops the states of a branch that was left."""
        while self.states and self.states[-1].step > step:
            self.states.pop()

    def give_up(self) -> None:
        """Keeps nothing any more."""
        self.every = 0
        self.states.clear()


class Keep:
    """Args: every."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def consider(self, args: Args) -> Data:
        """Refuses where the host has no room."""
        if args["every"]:
            self._keeper.check()
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Sets how often; what was kept stays."""
        self.consider(args)
        before, self._keeper.every = self._keeper.every, int(args["every"])
        told = {"every_before": float(before), "every_after": args["every"]}
        kept = ", ".join(str(state.step) for state in self._keeper.states) or "none"
        how = f"each {self._keeper.every} steps" if self._keeper.every else "no more"
        return f"states are kept {how}; kept are those before step {kept}", told

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """As often as before."""
        return self.do({"every": data["every_before"]}, 0)


class Rollback:
    """Args: factor (of the learning rate), before (a step; 0 for the newest state)."""

    def __init__(self, keeper: Keeper, skip: SkipStep) -> None:
        self._keeper = keeper
        self._skip = skip

    def consider(self, args: Args) -> Data:
        """Says which state it would be; refuses where there is none."""
        if args["factor"] != 1.0 and self._keeper.rate is None:
            raise RefusedError("this optimizer's learning rate cannot be changed: use factor=1")
        return {"state_step": float(self._keeper.choose(int(args["before"])).step)}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Puts the state back. Data and steps go on; what actions did to the rate stays done."""
        self.consider(args)
        keeper = self._keeper
        kept, rate = keeper.choose(int(args["before"])), keeper.rate
        kept.copies.put_back()
        told: Data = {}
        if rate is not None:
            if rate.scaled_by != kept.scaled_by:
                for constant in rate.constants:
                    put(constant, value_of(constant) * rate.scaled_by / kept.scaled_by)
            if args["factor"] != 1.0:
                told = rate.scale(args["factor"])
        keeper.forget_after(kept.step)
        self._skip.renew()
        age_s = keeper.clock() - kept.taken_s
        told |= {
            "state_step": float(kept.step),
            "age_steps": float(step - kept.step),
            "age_s": round(age_s, 3),
        }
        words = f"back to the state before step {kept.step}, {step - kept.step} steps "
        words += f"and {age_s:.1f} s old"
        changed = {name: x for name, x in told.items() if name.endswith(("_before", "_after"))}
        return f"{words}; {in_words(changed)}" if changed else words, told

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Gives the rate back; the weights of before are not kept."""
        rate = self._keeper.rate
        if args["factor"] == 1.0 or rate is None:
            raise RefusedError("the weights from before a rollback are not kept")
        told = rate.undo(data, args["factor"])
        return f"{in_words(told)}; the weights from before the rollback are not kept", told
