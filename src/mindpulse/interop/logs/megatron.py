"""Text logs of Megatron-LM and Megatron-DeepSpeed: `iteration N/ M | name: value | ...`."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import MEGATRON
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import NUMBER, number, whole
from mindpulse.interop.source import Line

TITLE = "a Megatron log"
_BEGIN = re.compile(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|")
_VALIDATION = re.compile(r"\bvalidation loss at iteration (\d+)(?P<set> on (\w+) set)? \|(.*)")
_MEMORY = re.compile(
    r"\[Rank (\d+)\] \(after (\d+) iterations\) memory \(MB\)"
    rf"((?: \| [a-z ]+: {NUMBER}(?=\s*(?:\||\[|$)))+)"
)
_TIMES = re.compile(r"^\s*(?:\[\w+\]:\s*)?time \(ms\) \|")
_FIELD = re.compile(
    rf"\s*(?P<name>[A-Za-z][\w ()/-]*?)\s*(?::\s*|\s)(?P<value>{NUMBER})\s*(?:/\s*{NUMBER}\s*)?"
)
_LAST_FIELD = re.compile(r"nan\s+iterations:")
_GOES_ON = re.compile(rf"\s*(?:\[\w+\]:\s*)?(?:[A-Za-z][\w ()/-]*:\s*{NUMBER}\s*\|\s*)+")
_MAX_LINES = 6
_UNKNOWN_SCALE = -1.0


def sniff(head: bytes, path: Path) -> bool:
    """Whether an iteration is printed in these lines."""
    return b"iteration" in head and _BEGIN.search(head.decode("utf-8", "replace")) is not None


def read(path: Path) -> LoadedRun:
    """The run. Iterations count for rank 0, whoever printed them; memory for the rank it names.

    Raises:
        StoreError: the file cannot be read.
        FormatError: no iteration is printed in it.
    """
    log = _Log(collected(path, MEGATRON, "megatron-log"))
    read_log(log.collector, log.take)
    log.end_record(cut=True)
    return log.collector.finish()


class _Log:
    """The record that is being put together, which may go over several lines."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._step: int | None = None
        self._record = ""
        self._wall_time = 0.0
        self._lines = 0

    def take(self, line: Line) -> None:
        text = line.text
        begins = list(_BEGIN.finditer(text))
        if self._record and not begins and self._continues(text):
            self._record += " " + text
            self._lines += 1
            if self._is_whole():
                self.end_record()
        elif begins:
            self._take_records(line, begins)
        else:
            self._take_other(text)

    def end_record(self, cut: bool = False) -> None:
        """Hands on the record as far as it goes."""
        if not self._record or self._step is None:
            return
        whole, _, rest = self._record.rpartition("|")
        if rest.strip() and ":" in rest and cut:
            self.collector.remark(f"the last record is cut: {rest.strip()[:60]!r} is left out")
        values = self._fields(whole)
        if values.get("loss scale") == _UNKNOWN_SCALE:
            del values["loss scale"]
            if values.get("grad norm") == 0.0:
                del values["grad norm"]
            self.collector.remark("loss scale -1.0 and grad norm 0.000 mean not known: left out")
        self.collector.add(self._step, values, self._wall_time)
        self._record = ""

    def _take_records(self, line: Line, begins: list[re.Match[str]]) -> None:
        ends = [*(found.start() for found in begins[1:]), len(line.text)]
        for found, end in zip(begins, ends, strict=True):
            self.end_record()
            self._step = whole(found[1])
            self._wall_time = stamp(line.text)
            self._record = line.text[found.end() : end] or " "
            self._lines = 1
            if self._is_whole():
                self.end_record()

    def _is_whole(self) -> bool:
        return self._record.rstrip().endswith("|") and bool(_LAST_FIELD.search(self._record))

    def _continues(self, text: str) -> bool:
        """Whether a line belongs to a record that has not ended: mails and terminals wrap them."""
        if self._lines >= _MAX_LINES or _TIMES.match(text):
            return False
        if self._record.rstrip().endswith("|"):
            return _GOES_ON.fullmatch(text) is not None
        return "|" in text and not _VALIDATION.search(text) and not _MEMORY.search(text)

    def _take_other(self, text: str) -> None:
        if found := _VALIDATION.search(text):
            name = found[3] or "validation"
            values = {f"{name} {key}": value for key, value in self._fields(found[4]).items()}
            self.collector.add(whole(found[1]), values, stamp(text), leads=False)
        elif "memory (MB)" in text:
            for rank, step, fields in _MEMORY.findall(text):
                values = {f"memory (MB) {k}": v for k, v in self._fields(fields).items()}
                self.collector.add(whole(step), values, stamp(text), rank=whole(rank), leads=False)
        elif _TIMES.match(text) and self._step is not None:
            self.end_record()
            fields = self._fields(text.split("|", 1)[1])
            values = {f"time (ms) {name}": value for name, value in fields.items()}
            self.collector.add(self._step, values, leads=False)

    def _fields(self, text: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in " ".join(text.split()).split("|"):
            field = _FIELD.fullmatch(part)
            value = number(field["value"]) if field else None
            if field and value is not None:
                found[field["name"]] = value
            elif ":" in part:
                self.collector.refuse("values", part.strip())
        return found
