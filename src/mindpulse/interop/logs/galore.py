"""Console logs of the GaLore family of training scripts (GaLore, SPAM): `loss at N VALUE`.

N counts micro steps and the loss is divided by the number of them in an update. Where the log
says that number (`gradient_accumulation`) the loss of the update is given under our name.
"""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import GALORE
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import NUMBER, whole
from mindpulse.interop.source import Line

TITLE = "a log of a GaLore training script"
_LOSS = re.compile(rf"\bloss at (\d+) ({NUMBER})(?![\w.])")
_EVAL = re.compile(rf"\bEval loss at step (\d+): ({NUMBER})(?![\w.])")
_FINAL = re.compile(rf"\bFinal eval loss: ({NUMBER})(?![\w.])")
_MICRO_STEPS = re.compile(r"\bgradient_accumulation\s+(\d+)\s*$")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a loss is printed in these lines."""
    if b"loss at" not in head:
        return False
    text = head.decode("utf-8", "replace")
    return _LOSS.search(text) is not None or _EVAL.search(text) is not None


def read(path: Path) -> LoadedRun:
    """The run; `loss at` keeps what was printed, at the micro steps.

    Raises:
        StoreError: the file cannot be read.
        FormatError: no loss is printed in it.
    """
    log = _Log(collected(path, GALORE, "galore-log"))
    read_log(log.collector, log.take)
    return log.collector.finish()


class _Log:
    """The number of micro steps in an update, as the log told it."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._micro_steps = 0

    def take(self, line: Line) -> None:
        text = line.text
        if found := _LOSS.search(text):
            self._take_loss(whole(found[1]), float(found[2]))
        elif found := _EVAL.search(text):
            self.collector.add(
                whole(found[1]), {"Eval loss": float(found[2])}, stamp(text), leads=False
            )
        elif found := _FINAL.search(text):
            self.collector.tags["final_eval_loss"] = found[1]
        elif found := _MICRO_STEPS.search(text):
            self._micro_steps = whole(found[1])
            self.collector.tags["gradient_accumulation"] = found[1]

    def _take_loss(self, micro_step: int, loss: float) -> None:
        self.collector.add(micro_step, {"loss at": loss})
        if not self._micro_steps or micro_step % self._micro_steps:
            self.collector.remark("'loss at' has no place among the updates: it counts micro steps")
            return
        step = micro_step // self._micro_steps
        self.collector.add(step, {"loss": loss * self._micro_steps}, leads=False)
