"""Console lines of DeepSpeed: the step, the pipeline engine's loss, the throughput."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import DEEPSPEED
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log, stamp
from mindpulse.interop.numbers import NUMBER, number, whole
from mindpulse.interop.source import Line

TITLE = "a DeepSpeed log"
_STEP = re.compile(
    rf"\bstep=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[(?P<lr>{NUMBER})[,\]]"
    r"|\bsteps?: +(?P<pipe>\d+) (?:/ +\d+ )?(?P<fields>loss: .* iter time \(s\): .*)"
    r"|\bglobal_step=(?P<global>\d+), (?P<pairs>RunningAvgSamplesPerSec=.*)"
)
_FIELD = re.compile(rf"([a-z][a-z ()/]*): ({NUMBER})(?=[\s,]|$)")
_PAIR = re.compile(rf"(\w+)=({NUMBER})(GB)?(?=,|\s|$)")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a step is printed in these lines."""
    return b"step" in head and _STEP.search(head.decode("utf-8", "replace")) is not None


def read(path: Path) -> LoadedRun:
    """The run.

    Raises:
        StoreError: the file cannot be read.
        FormatError: no step is printed in it.
    """
    collector = collected(path, DEEPSPEED, "deepspeed-log")

    def take(line: Line) -> None:
        found = _STEP.search(line.text)
        if found is None:
            return
        step, values = _values(found.groupdict())
        collector.add(step, values, stamp(line.text.lstrip("[")))

    read_log(collector, take)
    return collector.finish()


def _values(part: dict[str, str | None]) -> tuple[int, dict[str, float]]:
    if part["step"] is not None:
        found = {name: number(part[name] or "") for name in ("skipped", "lr")}
        step = whole(part["step"])
    elif part["pipe"] is not None:
        fields = _FIELD.findall(part["fields"] or "")
        found = {name.strip(): number(text) for name, text in fields}
        step = whole(part["pipe"])
    else:
        step = whole(part["global"] or "0")
        found = {
            f"{name} (GB)" if unit else name: number(text)
            for name, text, unit in _PAIR.findall(part["pairs"] or "")
        }
    return step, {name: value for name, value in found.items() if value is not None}
