"""Does acting heal? Faults and healthy controls, each with and without, from the same seed.

    python benchmarks/healing.py --quick
    python benchmarks/healing.py --subject healing_faults --seeds 5 --json build/healing.json

The watcher looks each few steps, between two of them, and asks for a step that lies a few steps
ahead, as it does live when a step takes half a second: so the figures do not depend on how quick
this machine is.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import common
from healing_score import Harm, Healing, Trial, harm, healing, target_of
from mindpulse.control.verbs import CHANGING
from mindpulse.rules.load import load_rules
from mindpulse.testing import ScriptedWaiter
from mindpulse.watcher import Limits, watch
from mindpulse.watcher.by_hand import read_ledger

LOOK_EVERY, AHEAD_STEPS = 2, 6
VERBS = frozenset(CHANGING)
RULES = Path(__file__).with_name("healing.toml")
SAVED_TARGET = 0.22


class Session(Protocol):
    """One training, step by step.

    Attributes:
        monitor: the `mindpulse.mindspore.Monitor` that watches it.
        stopped: whether a stop was asked for.
    """

    monitor: Any
    stopped: bool

    def step(self) -> float:
        """Trains one step; returns its loss."""

    def final_loss(self) -> float:
        """Clean held-out loss; ends the training."""


class Subject(Protocol):
    """What can be trained again and again, with faults and without.

    Attributes:
        faults: names of faults that a human would cure by what can be asked for.
        controls: names of healthy trainings.
        steps: that a training makes.
    """

    faults: Sequence[str]
    controls: Sequence[str]
    steps: int

    def begin(self, case: str, seed: int, folder: Path) -> Session:
        """A training that is ready for its first step."""


def run(subject: Subject, case: str, seed: int, folder: Path, act: bool, rules: Any) -> Trial:
    """One training; with `act` a watcher may change it."""
    session, losses = subject.begin(case, seed, folder), []

    def some() -> None:
        for _ in range(LOOK_EVERY):
            if session.stopped or len(losses) >= subject.steps:
                return
            losses.append(session.step())
        session.monitor.flush()

    if act:
        turns = -(-subject.steps // LOOK_EVERY)
        for _ in _watched(folder, rules, [some] * turns):
            pass
    else:
        while not session.stopped and len(losses) < subject.steps:
            some()
    final = session.final_loss()
    ledger = read_ledger(folder)
    done = [r.verb for r in ledger.requests.values() if ledger.done(r.seq) and r.verb != "keep"]
    return Trial(case, case in subject.faults, seed, act, tuple(losses), final, tuple(done))


def _watched(folder: Path, rules: Any, script: Sequence[Callable[[], None]]) -> Iterator[object]:
    """The watcher, whose waiting for rows is the training itself."""
    stop = threading.Event()
    waiter = ScriptedWaiter(stop, script)
    limits = Limits(ahead_s=0.0, ahead_steps=AHEAD_STEPS)
    return watch(folder, rules, act=VERBS, stop=stop, waiter=lambda *_: waiter, limits=limits)


def compare(
    subject: Subject, faults: Sequence[str], seeds: int, controls: int, rules: Any
) -> list[Trial]:
    """All trainings; tells each on the way."""
    cases = [(case, seed) for seed in range(seeds) for case in faults]
    cases += [(case, 1000 + seed) for seed in range(controls) for case in subject.controls]
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        for case, seed in cases:
            for act in (False, True):
                began = time.monotonic()
                place = Path(folder) / f"{case}-{seed}-{'act' if act else 'plain'}"
                trial = run(subject, case, seed, place, act, rules)
                trials.append(trial)
                how = "acting" if act else "alone "
                did = ", ".join(trial.actions) or "nothing"
                print(
                    f"{case} seed {seed} {how}: {len(trial.losses)} steps, final loss "
                    f"{trial.final_loss:.3f}, did {did} ({time.monotonic() - began:.0f} s)",
                    flush=True,
                )
    return trials


def show(found: Sequence[Healing], harmed: Harm, target: float) -> None:
    """The tables."""
    print(f"\ntarget loss {target:.3f}\n")
    head = ("fault", "seeds", "reached alone", "acting", "steps alone", "acting", "saved",
            "final loss alone", "acting", "did")  # fmt: skip
    rows = [
        (h.case, h.seeds, h.reached[0], h.reached[1], f"{h.steps[0]:.0f}", f"{h.steps[1]:.0f}",
         f"{h.saved:.0%}", f"{h.final_losses[0]:.3f}", f"{h.final_losses[1]:.3f}",
         ", ".join(f"{verb} {count}" for verb, count in h.actions.items()) or "nothing")
        for h in found
    ]  # fmt: skip
    print(common.table(head, rows))
    middle = sorted(h.saved for h in found)[len(found) // 2] if found else 0.0
    print(f"\nsaved in the median over faults: {middle:.0%} (target: {SAVED_TARGET:.0%})")
    print(
        f"controls: {harmed.pairs} pairs, {harmed.touched} touched, final loss "
        f"{harmed.mean_difference:+.4f} on average, p = {harmed.p_value:.3f}; significantly worse: "
        f"{', '.join(harmed.worse) or 'none'}"
    )


def main() -> None:
    """Runs what the options say."""
    options = common.parser(__doc__ or "")
    options.add_argument("--subject", default="healing_demo", help="module with the trainings")
    options.add_argument("--seeds", type=int, default=5, help="of each fault")
    options.add_argument("--controls", type=int, default=50, help="seeds of each healthy training")
    options.add_argument("--steps", type=int, default=300, help="of a training")
    options.add_argument("--faults", default="", help="names with commas between them")
    options.add_argument("--rules", type=Path, default=RULES, help="beside those that ship")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.seeds, chosen.controls, chosen.steps = 1, 1, 60
        chosen.faults = chosen.faults or "lr-explosion"
    subject = importlib.import_module(chosen.subject).subject(chosen.steps)
    faults = chosen.faults.split(",") if chosen.faults else subject.faults
    rules = load_rules(chosen.rules)
    trials = compare(subject, faults, chosen.seeds, chosen.controls, rules)
    target = target_of(t for t in trials if not t.fault and not t.act)
    found, harmed = healing(trials, target, subject.steps), harm(trials)
    show(found, harmed, target)
    if chosen.json:
        told = {
            "machine": common.machine(),
            "target_loss": target,
            "faults": [asdict(h) for h in found],
            "controls": asdict(harmed),
            "trials": [asdict(trial) | {"losses": None} for trial in trials],
        }
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
