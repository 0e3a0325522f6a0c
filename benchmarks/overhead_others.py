"""Other tools beside ours: who pays how many milliseconds more on a step that is measured."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import common
from overhead_environments import HERE, MINDFORMERS, MSPROBE, Tool, interpreter
from overhead_processes import told_by
from overhead_turns import AGAIN, PLAIN

TARGET_TIMES = 5.0
LEAST_MS = 0.1  # below that nothing is told apart, however quiet the machine
WARM_UP = 8
COLLECTOR_WARM_UP = 20  # its first 19 steps also save checkpoints


@dataclass(frozen=True, slots=True)
class Contest:
    """A tool, what both it and we measure, and the worker that lets them take turns.

    Attributes:
        arguments: of the worker, before the numbers of steps.
    """

    tool: str
    what: str
    mode: str
    worker: str
    arguments: tuple[str, ...]
    environment: Tool = HERE


FETCHED = "loss, norms of gradients and weights, attention, norm inputs"
STATE = "loss, norms of gradients, moments and weights"
PROBED = {
    "activations": "norm inputs",
    "gradients": "gradient per parameter",
    "weights": "weights, their change",
}
CONTESTS = (
    *(
        Contest(f"fetching, {size}", FETCHED, mode, "overhead_naive.py", (mode, size))
        for size in ("tiny", "demo")
        for mode in ("graph", "pynative")
    ),
    *(
        Contest("MindFormers", STATE, mode, "overhead_mindformers.py", (mode,), MINDFORMERS)
        for mode in ("graph", "pynative")
    ),
    *(
        Contest("msprobe", what, "pynative", "overhead_msprobe.py", (key, "tiny"), MSPROBE)
        for key, what in PROBED.items()
    ),
)
COLLECTED = {  # ours, theirs
    "loss": ("ours: loss", "collector: loss"),
    "loss, weights": ("ours: loss, weights", "collector: loss, weights"),
    "its default, each 10th step": ("ours: loss, weights", "collector: default"),
    "its default, each step": ("ours: loss, weights", "collector: default, each step"),
}


def run_contest(contest: Contest, steps: int) -> dict[str, Any]:
    """One line of the table; with "error" instead of figures where it does not run."""
    found = {"tool": contest.tool, "what": contest.what, "mode": contest.mode}
    try:
        python = interpreter(contest.environment)
    except subprocess.CalledProcessError:
        return {**found, "error": f"{contest.environment.name} cannot be installed"}
    numbers = (str(steps), str(WARM_UP))
    told = told_by(contest.worker, *contest.arguments, *numbers, python=python)
    if isinstance(told, str):
        return {**found, "error": told}
    extra = told["extra_ms"]
    figures = judged(told["plain_ms"], extra["ours"], extra["theirs"], extra[AGAIN])
    return {**found, **figures}


def judged(plain: float, ours: float, theirs: float, noise: float) -> dict[str, Any]:
    """Figures of a line. What costs less than the noise is taken to cost the noise.

    Example:
        >>> judged(100.0, 1.0, 12.0, noise=-2.0)["times_less"]
        6.0
    """
    least = max(abs(noise), LEAST_MS)
    return {
        "plain_ms": plain,
        "ours_ms": ours,
        "theirs_ms": theirs,
        "noise_ms": abs(noise),
        "times_less": theirs / max(ours, least),
        "at_least": ours < least,
    }


def run_collector(size: str, rounds: int, steps: int) -> list[dict[str, Any]]:
    """MindSpore's collector: a process for each subject, in turn; means of a step."""
    subjects = [PLAIN, *dict.fromkeys(name for pair in COLLECTED.values() for name in pair)]
    means: dict[str, list[float]] = {name: [] for name in subjects}
    errors: dict[str, str] = {}
    for number in range(rounds):
        for subject in subjects:
            print(f"collector {number + 1}/{rounds}: {subject}", file=sys.stderr)
            total = str(COLLECTOR_WARM_UP + steps)
            told = told_by("overhead_collector.py", subject, size, total)
            if isinstance(told, str):
                errors[subject] = told
            else:
                means[subject].append(1000 * mean(told[COLLECTOR_WARM_UP:]))
    return [_collected(what, pair, means, errors) for what, pair in COLLECTED.items()]


def _collected(
    what: str, pair: tuple[str, str], means: dict[str, list[float]], errors: dict[str, str]
) -> dict[str, Any]:
    line = {"tool": "SummaryCollector", "what": what, "mode": "graph"}
    failed = [errors[name] for name in (PLAIN, *pair) if name in errors]
    if failed:
        return {**line, "error": failed[0]}
    plain = means[PLAIN]
    ours, theirs = (
        median(one - base for one, base in zip(means[name], plain, strict=True)) for name in pair
    )
    return {**line, **judged(median(plain), ours, theirs, noise=max(plain) - min(plain))}


def run_all(rounds: int, steps: int) -> list[dict[str, Any]]:
    """All contests; the collector's processes run `rounds` times."""
    lines = []
    for contest in CONTESTS:
        print(f"{contest.tool}, {contest.mode}: {contest.what}", file=sys.stderr)
        lines.append(run_contest(contest, steps))
    return [*lines, *run_collector("tiny", rounds, steps)]


def show(lines: list[dict[str, Any]]) -> None:
    """Prints the table and what did not run."""
    head = (
        "tool",
        "measured on every step",
        "mode",
        "plain ms",
        "noise",
        "ours",
        "theirs",
        "times",
    )
    rows = [
        (
            *(line[key] for key in ("tool", "what", "mode")),
            *(f"{line[key]:.1f}" for key in ("plain_ms", "noise_ms", "ours_ms", "theirs_ms")),
            ("at least " if line["at_least"] else "") + f"{line['times_less']:.1f}",
        )
        for line in lines
        if "error" not in line
    ]
    print(common.table(head, rows))
    print(f"milliseconds more than a plain step; target: {TARGET_TIMES:.0f} times less")
    for line in lines:
        if "error" in line:
            print(f"{line['tool']}, {line['mode']}, {line['what']}: did not run: {line['error']}")
