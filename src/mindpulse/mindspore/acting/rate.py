"""scale_lr: multiply the learning rate, in all groups."""

from __future__ import annotations

from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.mindspore.learning_rate import LearningRate, in_words


class ScaleRate:
    """Args: factor."""

    def __init__(self, rate: LearningRate | None) -> None:
        self._rate = rate

    def consider(self, args: Args) -> Data:
        """Refuses where the optimizer's rate is a Python number."""
        self._known()
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Multiplies."""
        told = self._known().scale(args["factor"])
        return in_words(told), told

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Divides; exactly, where nothing changed the rate since."""
        told = self._known().undo(data, args["factor"])
        return in_words(told), told

    def _known(self) -> LearningRate:
        if self._rate is None:
            raise RefusedError(
                "this optimizer's learning rate cannot be changed from outside: it is neither a "
                "Parameter nor a schedule"
            )
        return self._rate
