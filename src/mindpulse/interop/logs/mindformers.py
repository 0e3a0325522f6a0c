"""Logs of MindFormers, and of MindSpore's LossMonitor and TimeMonitor, in their generations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.interop.aliases import MINDFORMERS
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import NUMBER, number, whole
from mindpulse.interop.source import Line

TITLE = "a log of MindFormers or MindSpore"
_BRACKETS = r"[Ee]poch:\[\s*(?P<epoch>\d+)/\s*\d+\],\s*step:\[\s*(?P<step>\d+)/\s*(?P<total>\d+)\],"
_RECORD = re.compile(
    rf"{_BRACKETS}(?P<fields>.*)"
    r"|\bstep (?P<plain_step>\d+)/\s*\d+, (?P<plain_fields>loss: .*)"
    r"|\bEpoch (?P<yolo_epoch>\d+)/\d+, Step (?P<yolo_step>\d+)/(?P<yolo_total>\d+), (?P<yolo>.*)"
    r"|\bepoch:? (?P<monitor_epoch>\d+),? step:? (?P<monitor_step>\d+)(?:/(?P<monitor_total>\d+))?"
    rf",? loss(?: is|:)\s*\[?\s*(?P<loss>{NUMBER})(?![\w.])"
    r"|\bEpoch: (?P<bar_epoch>\d+) \| Step: (?P<bar_step>\d+) \| (?P<bars>.*)"
    r"|\bepoch: \d+, current epoch percent: [\d.]+, step: (?P<all_step>\d+), "
    r"outputs are (?P<outputs>.*)"
)
_EPOCH_TIME = re.compile(r"\b[Ee]poch time: ([\d.]+) ms, per step time: ([\d.]+) ms")
_PER_EPOCH = re.compile(r"\bsteps_per_epoch: (\d+)")
_LOCAL_NORM = re.compile(rf"\bembedding_local_norm: ({NUMBER})(?![\w.])")
_TENSOR = re.compile(rf"value=\s*\[?\s*({NUMBER}|True|False)(?![\w.])")
_FIELD = re.compile(
    rf"\s*(?P<name>[A-Za-z_][\w /-]*?)\s*(?::|(?=\[))\s*\[?\s*"
    rf"(?P<value>\d+\.(?=\s*\])|{NUMBER}|True|False)"  # NumPy prints a whole number as [0.]
    rf"\s*(?:/\s*{NUMBER}\s*)?\]?\s*(?:ms|T|s)?\s*\}}?\s*"
)
_RATE = re.compile(r"\| ([\d.]+) samples/s/p ")
# "None", "Not Set LR.": a value without a digit is not known, and none was lost.
_UNKNOWN = re.compile(r"\s*[\w /-]+:[^\d]*")
_OUTPUTS = ("loss", "overflow cond", "loss_scale")


@dataclass(slots=True)
class _Record:
    """What one step printed. `step` counts within the epoch unless `epoch` is None."""

    epoch: int | None
    step: int
    total: int | None
    wall_time: float
    values: dict[str, float] = field(default_factory=dict)


def sniff(head: bytes, path: Path) -> bool:
    """Whether a step is printed in these lines."""
    if b"poch" not in head and b"step " not in head:
        return False
    return _RECORD.search(head.decode("utf-8", "replace")) is not None


def read(path: Path) -> LoadedRun:
    """The run.

    `epoch` and `step in epoch` keep what was printed; the steps count on over the epochs.

    Raises:
        StoreError: the file cannot be read.
        FormatError: no step is printed in it.
    """
    log = _Log(collected(path, MINDFORMERS, "mindformers-log"))
    read_log(log.collector, log.take)
    return log.finish()


class _Log:
    """The record that lines are still added to, and the steps of an epoch once they are known."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._last: _Record | None = None
        self._counter = _StepCounter(collector)
        self._held: tuple[_Record, float] | None = None

    def take(self, line: Line) -> None:
        self._release()
        text = line.text
        if found := _RECORD.search(text):
            self._take_record(found, line)
        elif (found := _EPOCH_TIME.search(text)) and self._last:
            self._take_times(found, self._last)
        elif (found := _LOCAL_NORM.search(text)) and self._last:
            self._last.values["embedding_local_norm"] = float(found[1])
        elif (found := _RATE.search(text)) and self._last and (rate := number(found[1])):
            self._last.values["samples/s/p"] = rate
        elif found := _PER_EPOCH.search(text):
            self._counter.lengths.add(whole(found[1]))

    def finish(self) -> LoadedRun:
        if self._held is not None:
            # mindyolo prints the time of a step behind it: without it the line was cut.
            self.collector.refuse("values", f"cur_lr: {self._held[1]} at the end of the file")
        if self._last is not None:
            self._counter.add(self._last)
        self._counter.flush()
        return self.collector.finish()

    def _take_record(self, found: re.Match[str], line: Line) -> None:
        part = found.groupdict()
        wall_time = stamp(line.text)
        if part["outputs"] is not None:
            record = _Record(None, whole(part["all_step"]), None, wall_time)
            record.values = _tensors(part["outputs"])
        elif part["plain_step"] is not None:
            record = _Record(None, whole(part["plain_step"]), None, wall_time)
            self._take_fields(record, part["plain_fields"])
        elif part["bars"] is not None:
            record = _Record(whole(part["bar_epoch"]), whole(part["bar_step"]), None, wall_time)
            self._take_fields(record, part["bars"].replace(" | ", ","))
        elif part["loss"] is not None:
            total = part["monitor_total"]
            record = _Record(
                whole(part["monitor_epoch"]), whole(part["monitor_step"]), _int(total), wall_time
            )
            record.values["loss"] = float(part["loss"])
        else:
            kind = "yolo_" if part["yolo"] is not None else ""
            epoch, step, total = (whole(part[kind + name]) for name in ("epoch", "step", "total"))
            record = self._same(_Record(epoch, step, total, wall_time), bool(kind))
            self._take_fields(record, part["yolo"] if kind else part["fields"])
            if kind:
                self._hold(record)
        if self._last is not None and self._last is not record:
            self._counter.add(self._last)
        self._last = record

    def _same(self, record: _Record, joins: bool) -> _Record:
        """The record before where this line goes on with it: mindyolo prints two lines a step."""
        last = self._last
        if joins and last and (last.epoch, last.step) == (record.epoch, record.step):
            return last
        return record

    def _hold(self, record: _Record) -> None:
        if "cur_lr" in record.values:
            self._held = record, record.values.pop("cur_lr")

    def _release(self) -> None:
        if self._held is not None:
            self._held[0].values["cur_lr"] = self._held[1]
            self._held = None

    def _take_fields(self, record: _Record, text: str) -> None:
        for part in text.split(","):
            found = _FIELD.fullmatch(part)
            if found:
                record.values[found["name"]] = _value(found["value"])
            elif ":" in part and part.strip() and not _UNKNOWN.fullmatch(part):
                self.collector.refuse("values", part.strip())

    def _take_times(self, found: re.Match[str], record: _Record) -> None:
        whole, one = number(found[1]), number(found[2])
        if whole is None or one is None or one <= 0:
            self.collector.refuse("values", found[0])
            return
        record.values["per step time"] = one
        steps = round(whole / one)
        # Both are rounded to a microsecond: the quotient is a whole number or no count of steps.
        if steps and abs(whole / one - steps) < 0.01:
            self._counter.lengths.add(steps)


class _StepCounter:
    """Gives records to the collector with steps that count on over the epochs.

    Attributes:
        lengths: steps of an epoch, as the log told them.
    """

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.lengths: set[int] = set()
        self._length: int | None = None
        self._base: int | None = None
        self._highest = 0
        self._waiting: list[_Record] = []

    def add(self, record: _Record) -> None:
        """Takes the next record; keeps it while nobody knows how many steps come before it."""
        if record.epoch is None:
            self.flush()
            self.collector.add(record.step, record.values, record.wall_time)
            return
        if self._base is None:
            self._base = min(1, record.epoch)
        before = max(0, record.epoch - self._base)
        if before and record.total is None and self._length is None:
            self._find_length(record)
        if before and record.total is None and self._length is None:
            self._waiting.append(record)
        else:
            self.flush()
            self._give(record, before)
        if record.total is None:
            self._highest = max(self._highest, record.step)

    def flush(self) -> None:
        """Gives what waits; the highest step that was printed is taken for the length."""
        if not self._waiting or self._base is None:
            return
        if self._length is None:
            self._guess()
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self._give(record, max(0, (record.epoch or 0) - self._base))

    def _find_length(self, record: _Record) -> None:
        if len(self.lengths) == 1 and max(self.lengths) >= self._highest:
            self._length = max(self.lengths)
        elif self._highest and (not self._waiting or self._waiting[0].epoch != record.epoch):
            self._guess()

    def _guess(self) -> None:
        self._length = self._highest
        self.collector.remark(
            f"the log does not say how many steps an epoch has: taken as {self._highest}, the "
            "highest that it prints"
        )

    def _give(self, record: _Record, before: int) -> None:
        length = self._length if record.total is None else record.total
        told = {"epoch": float(record.epoch or 0), "step in epoch": float(record.step)}
        step = record.step + before * (length or 0)
        self.collector.add(step, {**record.values, **told}, record.wall_time)


def _tensors(text: str) -> dict[str, float]:
    """Loss, overflow flag and loss scale out of the tensors of a step's output, or its loss."""
    found = [_value(value) for value in _TENSOR.findall(text)]
    if not found and (alone := number(text.strip(" [](),"))) is not None:
        found = [alone]
    return dict(zip(_OUTPUTS, found, strict=False))


def _value(text: str) -> float:
    return float(text == "True") if text in ("True", "False") else float(text)


def _int(text: str | None) -> int | None:
    return None if text is None else whole(text)
