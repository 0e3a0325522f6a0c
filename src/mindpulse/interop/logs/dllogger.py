"""Console lines of NVIDIA's DLLogger: `DLL TIME - Training Epoch: E ... name : value`."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import DLLOGGER
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import number, whole
from mindpulse.interop.source import Line

TITLE = "a DLLogger log"
_RECORD = re.compile(
    r"^DLL \d{4}-\S+ \S+ - (?P<place>(?:[A-Za-z ]+:\s*\d+\s+)+)(?P<values>\w[\w ]*? : .*)$"
)
_STEP = re.compile(r"\b(?:Iteration|Step)\s*:\s*(\d+)", re.IGNORECASE)
_EPOCH = re.compile(r"\bEpoch\s*:\s*(\d+)", re.IGNORECASE)
_PAIR = re.compile(r"(\w[\w.-]*) : (\S+)")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a step is printed in these lines."""
    if b"DLL " not in head:
        return False
    return any(_RECORD.match(line) for line in head.decode("utf-8", "replace").splitlines())


def read(path: Path) -> LoadedRun:
    """The run.

    Raises:
        StoreError: the file cannot be read.
        FormatError: no step is printed in it.
    """
    collector = collected(path, DLLOGGER, "dllogger-log")

    def take(line: Line) -> None:
        record = _RECORD.match(line.text)
        step = record and _STEP.search(record["place"])
        if not record or not step:
            return
        values: dict[str, float] = {}
        if epoch := _EPOCH.search(record["place"]):
            values["epoch"] = float(epoch[1])
        for name, text in _PAIR.findall(record["values"]):
            value = number(text)
            if value is None:
                collector.refuse("values", f"{name} : {text}")
            else:
                values[name] = value
        collector.add(whole(step[1]), values, stamp(line.text))

    read_log(collector, take)
    return collector.finish()
