"""Real small trainings under MindPulse, healthy or with a fault; `mindpulse demo` calls `run`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from mindpulse.demo.require import check_packages
from mindpulse.errors import UsageError
from mindpulse.jsonlines import plain

KINDS = ("bert", "vit")
STEPS = 300
FAULT_SHARE = 3  # a fault strikes after a third of the steps


def run(
    kind: str,
    *,
    mode: str = "graph",
    steps: int | None = None,
    seed: int = 0,
    fault: str | None = None,
    act: bool = False,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Trains, shows how it goes, writes a report and says where it is.

    Args:
        kind: "bert" (English text) or "vit" (handwritten digits).
        mode: "graph" (`Model.train` in GRAPH_MODE), "jit" (a step under `@jit`) or "pynative".
        steps: number of optimizer steps; None for 300.
        seed: of weights and data; the same seed gives the same losses.
        fault: name of a fault that strikes after a third of the steps, None for none.
        act: let the watcher change the learning rate or stop the training.
        directory: the run folder; None for a new one below `demo-runs`.
        as_json: print the outcome as JSON on standard output, all else on standard error.

    Returns:
        0 if no alert above "info" was raised, other than about the speed, else 1.

    Raises:
        UsageError: a package is missing, or an argument is not one of those above.
    """
    if kind not in KINDS:
        raise UsageError(f"demo {kind!r}: use one of {', '.join(KINDS)}")
    check_packages(kind)
    os.environ.setdefault("GLOG_v", "3")  # MindSpore's warnings would hide the progress
    from mindpulse.demo import outcome, session

    count = STEPS if steps is None else steps
    plan = session.Plan(
        kind=kind,
        mode=mode,
        steps=count,
        seed=seed,
        directory=directory or new_directory(kind, fault),
        fault=fault or "",
        fault_step=max(2, count // FAULT_SHARE) if fault else 0,
        act=act,
    )
    found = session.carry_out(plan, sys.stderr if as_json else sys.stdout)
    told = plain(outcome.as_object(found))
    words = outcome.summary(found, program(), again(plan.kind, plan.fault))
    print(json.dumps(told, indent=2, allow_nan=False) if as_json else "\n".join(words))
    return 0 if found.is_sound else 1


def new_directory(kind: str, fault: str | None) -> Path:
    """A folder of its own for each run: demo-runs/bert-lr-explosion-20260131-235959."""
    name = "-".join([kind, *([fault] if fault else []), time.strftime("%Y%m%d-%H%M%S")])
    return Path("demo-runs") / name


def program() -> str:
    """How to call MindPulse from here: by its name, or by the path of a virtual environment."""
    if shutil.which("mindpulse"):
        return "mindpulse"
    script = Path(sys.executable).parent / "mindpulse"
    return os.path.relpath(script) if script.exists() else f"{sys.executable} -m mindpulse.cli"


def again(kind: str, fault: str) -> str:
    """The command that ran this demo, as it is typed here."""
    return f"{program()} demo {kind}" + (f" --fault {fault}" if fault else "")
