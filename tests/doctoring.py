"""What tests of the doctor share: findings by name, each able to speak, and runs to look at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mindpulse.doctor.result import Result
from mindpulse.messages import CATALOGUE
from mindpulse.recorder import Recorder

PLANTED = {"what": "attention", "state": "planted", "reason": "probabilities of attention"}


def findings(results: Iterable[Result]) -> dict[str, Result]:
    """By finding, the first of each; each can be said in both languages and has a title."""
    found: dict[str, Result] = {}
    for result in results:
        for lang in ("en", "zh"):
            assert result.evidence(lang)
            assert bool(result.cure(lang)) == (result.status != "ok")
        assert f"doctor.check.{result.check}" in CATALOGUE
        assert 0 < result.weight <= 1
        found.setdefault(result.finding, result)
    return found


def problems(results: Iterable[Result]) -> dict[str, Result]:
    """Those findings that are problems."""
    return {name: r for name, r in findings(results).items() if r.status == "problem"}


def record(
    run: Path,
    steps: int = 3,
    rank: int = 0,
    first_step: int = 1,
    close: bool = True,
    **attached: Any,
) -> Recorder:
    """A start of a training as the monitor records it."""
    recorder = Recorder(run, rank=rank, fingerprint={"mindspore": "2.10.0", "python": "3.11.7"})
    said = {"compiled": [], "optimizer_steps": 0, "intervals": {}, "flush_interval_s": 120.0}
    recorder.note("attached", **{**said, **attached})
    recorder.note("start", step=first_step)
    recorder.note("probe", path="layers.0", **PLANTED)
    for step in range(first_step, first_step + steps):
        recorder.add_scalars(step, {"train_loss": 1.0 / step, "grad_norm": 1.0})
    recorder.flush()
    if close:
        recorder.close()
    return recorder
