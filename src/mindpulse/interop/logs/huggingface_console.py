"""Lines that the Hugging Face Trainer prints: `{'loss': 0.61, 'grad_norm': nan, ...}`."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import HUGGING_FACE
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import NUMBER, number, step_of
from mindpulse.interop.source import Line

TITLE = "console lines of the Hugging Face Trainer"
# Newer versions print the numbers as texts: {'loss': '0.61'}.
_PAIR = rf"'[\w/ .@-]+': '?(?:{NUMBER})'?"
_ONE_OF = r"(?=[^{}]*'(?:loss|eval_loss|train_runtime)':)"
_RECORD = re.compile(rf"\{{{_ONE_OF}({_PAIR}(?:, {_PAIR})*)\}}")
_ITEM = re.compile(rf"'([\w/ .@-]+)': '?({NUMBER})'?")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a log of the Trainer stands in these lines."""
    return b"{'" in head and _RECORD.search(head.decode("utf-8", "replace")) is not None


def read(path: Path) -> LoadedRun:
    """The run. The lines carry no step, so they are numbered; `epoch` is what they say.

    Raises:
        StoreError: the file cannot be read.
        FormatError: the Trainer printed nothing in it.
    """
    log = _Log(collected(path, HUGGING_FACE, "hugging-face-console"))
    read_log(log.collector, log.take)
    return log.collector.finish()


class _Log:
    """The number of the training line that was read last."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._row = 0
        self._epoch = 0.0

    def take(self, line: Line) -> None:
        for record in _RECORD.findall(line.text):
            found = {name: number(text) for name, text in _ITEM.findall(record)}
            self._take_values({k: v for k, v in found.items() if v is not None}, line)

    def _take_values(self, values: dict[str, float], line: Line) -> None:
        step = step_of(values.pop("step", None))
        if step is None:
            self.collector.remark("the lines carry no step: they are numbered from 1 up")
            self._row += "loss" in values
            step = max(1, self._row)
        leads = "loss" in values
        if leads and values.get("epoch", self._epoch) < self._epoch:
            self.collector.remark("the epoch goes back: the training was started again")
        self._epoch = values.get("epoch", self._epoch)
        self.collector.add(step, values, stamp(line.text), leads=leads)
