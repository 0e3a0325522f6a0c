"""Puts together what a training can be asked for, from what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mindpulse.mindspore.acting.actions import Actions
from mindpulse.mindspore.acting.clip import SetClip, find_limits
from mindpulse.mindspore.acting.keeping import Keep, Keeper, Rollback
from mindpulse.mindspore.acting.looking import Burst, Sampler, Snapshot, Stop
from mindpulse.mindspore.acting.profiling import Profile
from mindpulse.mindspore.acting.rate import ScaleRate
from mindpulse.mindspore.acting.saving import Checkpoint, FreeMemory
from mindpulse.mindspore.acting.skip import SkipStep
from mindpulse.mindspore.acting.state import TrainingState
from mindpulse.mindspore.acting.verb import Verb
from mindpulse.mindspore.environment import ranks_of_launcher
from mindpulse.mindspore.learning_rate import LearningRate

if TYPE_CHECKING:
    from mindpulse.mindspore.planting import Options
    from mindpulse.recorder import Recorder


def actions_of(
    cells: Sequence[Any],
    rate: LearningRate | None,
    sampler: Sampler,
    recorder: Recorder,
    rank: int,
    options: Options,
    steps_per_call: Callable[[], int],
) -> Actions:
    """All actions of one training.

    Args:
        cells: the model, its optimizers, the training cell; None is passed over.
        rate: its learning rates; None where they cannot be changed.
        sampler: measures more densely.
        recorder: knows the folder and the attempt.
        steps_per_call: how many optimizer steps a call of the training makes.
    """
    limits = find_limits(cells, options.clip)
    state = TrainingState(cells, without=limits)
    skip, keeper, stop = SkipStep(state, rate, steps_per_call), Keeper(state, rate), Stop()
    keeper.every = options.keep_every
    profile = Profile(recorder.directory, rank, recorder.note)
    verbs: dict[str, Verb] = {
        "scale_lr": ScaleRate(rate),
        "skip_step": skip,
        "rollback": Rollback(keeper, skip),
        "keep": Keep(keeper),
        "set_clip": SetClip(limits),
        "free_memory": FreeMemory(),
        "burst": Burst(sampler),
        "snapshot": Snapshot(sampler),
        "checkpoint": Checkpoint(TrainingState(cells), recorder.directory),
        "profile": profile,
        "stop": stop,
    }
    return Actions(rank, recorder.attempt, ranks_of_launcher(), verbs, skip, keeper, profile, stop)
