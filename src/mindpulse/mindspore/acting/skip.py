"""skip_step: the update of a step does not happen.

The step runs, and is recorded; then everything that it changed is put back from a copy that was
taken before it. That works whatever was compiled how, and costs nothing while nobody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable

from mindpulse.mindspore.acting.state import Copies, TrainingState
from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.mindspore.learning_rate import LearningRate


class SkipStep:
    """Args: steps.

    Args:
        state: what a step changes.
        rate: its constant rates are left alone: a callback may set them while a step is skipped.
        steps_per_call: how many optimizer steps a call of the training makes.

    Attributes:
        left: steps that are still to be skipped.
    """

    def __init__(
        self,
        state: TrainingState,
        rate: LearningRate | None,
        steps_per_call: Callable[[], int] = lambda: 1,
    ) -> None:
        self.left = 0
        self._state = state
        self._rates = rate.constants if rate is not None else ()
        self._steps_per_call = steps_per_call
        self._before: Copies | None = None

    def consider(self, args: Args) -> Data:
        """Refuses where several steps run in one call."""
        many = self._steps_per_call()
        if many > 1:
            raise RefusedError(
                f"one call runs {many} steps (a data sink), and none of them can be left out: "
                "train with dataset_sink_mode=False or sink_size=1"
            )
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Copies the state; what the next steps change will be put back."""
        self.consider(args)
        steps = int(args["steps"])
        if not self.left:
            self._before = self._state.copy(self._rates)
        self.left = max(self.left, steps)
        last = step + self.left - 1
        which = f"step {step} does" if last == step else f"steps {step} to {last} do"
        return f"the update of {which} not happen", {"first_step": step, "last_step": last}

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Skips no more; what was skipped stays skipped."""
        if not self.left:
            raise RefusedError("the steps are over: what was not learnt from them cannot be put in")
        left, self.left, self._before = self.left, 0, None
        return f"{left} steps that were to be skipped are not", {"left": float(left)}

    def step_ended(self) -> None:
        """Puts back what the step changed."""
        if not self.left or self._before is None:
            return
        self._before.put_back()
        self.left -= 1
        if not self.left:
            self._before = None

    def renew(self) -> None:
        """The state was changed on purpose: that is what the steps to be skipped start from."""
        if self.left:
            self._before = self._state.copy(self._rates)

    def give_up(self) -> None:
        """Skips nothing any more."""
        self.left, self._before = 0, None
