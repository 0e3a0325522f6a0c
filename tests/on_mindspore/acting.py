"""A training that is asked for something, and its unwatched twin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.control import Answer, ControlLog
from mindpulse.mindspore import attach
from mindpulse.mindspore.acting.state import parameters_in
from nets import Training
from ways import Builder, tell

Asked = tuple[str, dict[str, float], int]  # verb, arguments, step


@dataclass
class Asking:
    """What came of a training that was asked for something.

    Attributes:
        state: every Parameter of model, optimizer and training cell at the end, in a fixed order.
    """

    training: Training
    state: list[Any] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    monitor: Any = None

    @property
    def told(self) -> list[tuple[int, str, int]]:
        """(number, status, step) of each answer."""
        return [(answer.seq, answer.status, answer.step) for answer in self.answers]


def state_of(training: Training) -> list[Any]:
    """Copies of all Parameters that a step may change."""
    found: dict[int, Any] = {}
    for cell in (training.net, training.optimizer, training.cell):
        for parameter in parameters_in(cell) if cell is not None else ():
            found.setdefault(id(parameter), parameter)
    return [(p.name, np.array(p.asnumpy(), copy=True)) for p in found.values()]


def plain(build: Builder, data: Iterable[Any]) -> Asking:
    """Trains unwatched."""
    training = build()
    for batch in data:
        training.step(*batch)
    return Asking(training, state_of(training))


def asked(
    build: Builder,
    data: Sequence[Any],
    folder: Path,
    requests: Sequence[Asked],
    *,
    micro: int = 1,
    at: Callable[[int, Asking], None] = lambda step, out: None,
    **options: Any,
) -> Asking:
    """Trains watched; all requests are in the log, and heard, before the first step.

    Args:
        at: called after each call of the training with its number.
    """
    training = build()
    out = Asking(training)
    options = {"measures": "cheap", "snapshot_every": 0, "train_cell": training.cell} | options
    out.monitor = attach(training.net, training.optimizer, summary_dir=folder, **options)
    assert out.monitor.problem == ""
    log = ControlLog(folder)
    for verb, args, step in requests:
        log.request(verb, args, step=step, expires_step=step + 50)
    wait_until(lambda: len(out.monitor.requests_heard) >= len(requests))
    for number, batch in enumerate(data, start=1):
        result = training.step(*batch)
        if training.cell is not None or number % micro == 0:
            tell(out.monitor, result if training.cell is None else None)
        at(number, out)
    out.monitor.close()
    assert out.monitor.problem == ""
    assert out.monitor._guard.failures == 0
    out.state = state_of(training)
    out.answers = [m for m in log.poll() if isinstance(m, Answer)]
    return out


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_same_state(one: Asking, other: Asking, but: Sequence[str] = ()) -> None:
    """Every Parameter bit for bit; `but`: names that may differ."""
    assert [name for name, _ in one.state] == [name for name, _ in other.state]
    for (name, mine), (_, others) in zip(one.state, other.state, strict=True):
        if name not in but:
            assert mine.tobytes() == others.tobytes(), name


def differing(one: Asking, other: Asking) -> set[str]:
    """Names of the Parameters that differ in any bit."""
    return {
        name
        for (name, mine), (_, others) in zip(one.state, other.state, strict=True)
        if mine.tobytes() != others.tobytes()
    }
