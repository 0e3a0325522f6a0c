"""A hand on the wheel: one request made by a person, followed until all ranks have answered.

It needs no watcher. Where one is at work both keep the same contract: the first decision in the log
is the one that the ranks obey.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mindpulse.control import Answer, ControlLog, Decision, Request
from mindpulse.control.verbs import VERBS, check_args
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.store.folder_run import open_folder
from mindpulse.store.holding import held_elsewhere
from mindpulse.watcher.aftercare import decision_of
from mindpulse.watcher.agreement import choose
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import Limits
from mindpulse.watcher.presence import Presence

PATIENCE_STEPS = 100_000  # rows may be two minutes old where nobody watches
STEP_TIME_ROWS = 20
TAKEN_BACK = ("scale_lr", "skip_step", "rollback", "keep", "set_clip")
LOOK_S = 0.1
FRESH_S = 8.0


@dataclass(frozen=True, slots=True)
class Now:
    """Where a run is.

    Attributes:
        ranks: how many write in the newest attempt.
        step: the newest one that was written, 0 for none.
        step_time_s: 0.0 where it is not recorded.
        alive: whether a training holds the folder; None where the file system cannot tell.
    """

    attempt: int
    ranks: int
    step: int
    step_time_s: float
    alive: bool | None


def look(run_dir: Path, wait_s: float = FRESH_S) -> Now:
    """Where a run is now.

    Args:
        wait_s: so long a run of several ranks is waited for until it tells how long its steps take:
            a training writes each second while somebody is present.

    Raises:
        UsageError: the folder is no run, or no training has begun in it.
    """
    attempts = attempts_of(run_dir)
    if not attempts:
        raise UsageError(f"{run_dir}: no training has written here; give its summary_dir")
    attempt, folder = list(attempts.items())[-1]
    ranks = ranks_of(folder)
    alive = _alive(list(ranks.values()))
    step, seconds = _newest(run_dir, list(ranks), attempt)
    if len(ranks) > 1 and alive is not False and not seconds:
        with _present(run_dir):
            until = time.monotonic() + wait_s
            while not seconds and time.monotonic() < until:
                time.sleep(LOOK_S)
                step, seconds = _newest(run_dir, list(ranks), attempt)
    return Now(attempt, max(1, len(ranks)), step, seconds, alive)


@contextmanager
def _present(run_dir: Path) -> Iterator[None]:
    """A sign for the training that somebody waits for rows; a watcher gives it already."""
    try:
        presence = Presence(run_dir, time.time())
    except UsageError:
        yield
        return
    with presence:
        yield


def _newest(run_dir: Path, ranks: list[int], attempt: int) -> tuple[int, float]:
    run, step, seconds = open_folder(run_dir), 0, 0.0
    for rank in ranks:
        for tag in ("step_time_s", "train_loss"):
            try:
                rows = run.last(tag, STEP_TIME_ROWS, rank, attempt).rows
            except MindPulseError:
                continue
            if len(rows):
                step = max(step, int(rows.steps[-1]))
                if tag == "step_time_s":
                    seconds = max(seconds, float(sorted(rows.values[:, 0])[len(rows) // 2]))
    return step, seconds


def _alive(folders: list[Path]) -> bool | None:
    known = [held_elsewhere(folder) for folder in folders]
    return True if True in known else False if False in known else None


def read_ledger(run_dir: Path) -> Ledger:
    """Everything that was asked and answered in a run."""
    ledger = Ledger()
    ledger.add(ControlLog(run_dir).poll())
    return ledger


def last_undoable(ledger: Ledger) -> int:
    """The number of the last request that was carried out and can be taken back.

    Raises:
        UsageError: there is none.
    """
    undone = ledger.undone
    for seq, request in sorted(ledger.requests.items(), reverse=True):
        if request.verb in TAKEN_BACK and seq not in undone and ledger.done(seq):
            return seq
    raise UsageError("nothing was carried out in this run that could be taken back: see --list")


def args_of(verb: str, words: tuple[str, ...]) -> dict[str, float]:
    """The arguments of a verb from words such as "0.5" or "factor=0.5".

    Raises:
        UsageError: a word is no number, or belongs to no argument; the message quotes it.

    Example:
        >>> args_of("rollback", ("0.5", "before=120"))
        {'factor': 0.5, 'before': 120.0}
    """
    if verb not in VERBS:
        raise UsageError(f"{verb!r}: no such action; there are {', '.join(VERBS)}")
    free = list(VERBS[verb])
    found: dict[str, float] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        if not equals:
            left = [each for each in free if each not in found]
            if not left:
                raise UsageError(f"{word!r}: {verb} takes {', '.join(free) or 'no arguments'}")
            name = left[0]
        try:
            found[name] = float(number)
        except ValueError:
            raise UsageError(f"{word!r}: want a number for {name} of {verb}") from None
    return check_args(verb, found)


def ask(
    control: ControlLog,
    now: Now,
    verb: str,
    args: dict[str, float],
    step: int | None,
    limits: Limits,
) -> Request:
    """Writes the request; it is for the step given, or for one that all ranks can still meet."""
    wanted = step if step is not None else now.step + limits.ahead(now.step_time_s)
    return control.request(
        verb,
        args,
        step=wanted,
        expires_step=wanted + PATIENCE_STEPS,
        attempt=now.attempt,
        reason="by hand",
        ranks=now.ranks,
    )


def follow(
    control: ControlLog,
    request: Request,
    now: Now,
    limits: Limits,
    wait_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Answer | Decision]:
    """What becomes of a request, as it comes; ends when all ranks have answered, or after `wait_s`.

    Once all ranks are ready the decision is written here, with a step that all can meet.
    """
    ledger, until = Ledger(), clock() + wait_s
    ledger.add([request])
    while True:
        messages = control.poll()
        ledger.add(messages)
        yield from (
            m for m in messages if isinstance(m, Answer | Decision) and m.seq == request.seq
        )
        if ledger.outcome(request.seq) is not None or clock() >= until:
            return
        choice = choose(request, ledger, now.step)
        if choice is not None:
            ahead = choice.heard_step + limits.ahead(now.step_time_s, now.ranks)
            made = decision_of(request, choice.go, choice.reason, ahead, limits, time.time())
            control.answer(made)
            continue
        sleep(LOOK_S)
