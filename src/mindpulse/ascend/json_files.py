"""The JSON files of a profile: what was asked of the profiler, communication, the timeline."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindpulse.ascend.csv_file import head_of
from mindpulse.errors import FormatError, StoreError

MOST_BYTES = 256 << 20  # a timeline of minutes is larger: it is named, and not read


@dataclass(frozen=True, slots=True)
class Transfer:
    """One communication operator of one step.

    Attributes:
        elapse_ms, wait_ms: NaN where it is not told.
        bandwidth: link -> GB/s, of the links that carried anything.
    """

    name: str
    step: str
    elapse_ms: float
    wait_ms: float
    bandwidth: dict[str, float]


@dataclass(slots=True)
class Told:
    """What the JSON files say.

    Attributes:
        settings: of the profiler: "level", "aic_metrics", "l2_cache".
        versions: "cann", "torch_npu".
        rank: as the profiler knew it; None where it is not told.
        transfers: communication operators.
        events: how many the timelines hold.
    """

    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    rank: int | None = None
    transfers: list[Transfer] = field(default_factory=list)
    events: int = 0


def read_json(path: Path) -> Any:
    """The content of a JSON file; NaN is allowed, as these tools write it.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is empty, too large, or no JSON; the message says where it breaks.
    """
    head_of(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FormatError(f"{path}: {size / 1e6:.0f} MB of JSON are not read")
        return json.loads(path.read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{path}: no JSON: {error}") from error
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path}: {error.strerror or error}") from error


def take(content: Any, told: Told) -> str:
    """Adds what a file says; returns its kind, "" where it is none that is known."""
    if isinstance(content, list):
        told.events += sum(isinstance(e, dict) and e.get("ph") == "X" for e in content)
        return "timeline" if content and isinstance(content[0], dict) else ""
    if not isinstance(content, dict):
        return ""
    if "config" in content and ("rank_id" in content or "end_info" in content):
        _take_info(content, told)
        return "profiler_info"
    if "distributed_args" in content or "parallel_group_info" in content:
        return "profiler_metadata"
    if "traceEvents" in content and isinstance(content["traceEvents"], list):
        return take(content["traceEvents"], told)
    if "FLOPs" in content or "FLOPS" in content:
        return "flops_summary"
    if "jobInfo" in content and "devices" in content:
        return "device_info"
    return _take_communication(content, told)


def _take_info(content: Mapping[str, Any], told: Told) -> None:
    config = content.get("config")
    for part in config.values() if isinstance(config, dict) else ():
        if isinstance(part, dict):
            for name, value in part.items():
                told.settings[str(name).strip("_").removeprefix("profiler_")] = str(value)
    for ours, theirs in (("cann", "cann_version"), ("torch_npu", "torch_npu_version")):
        if isinstance(content.get(theirs), str):
            told.versions[ours] = content[theirs]
    text = str(content.get("rank_id", "")).strip()
    if text.isdecimal():
        told.rank = int(text)


def _take_communication(content: Mapping[str, Any], told: Told) -> str:
    found, matrix = False, False
    for step, groups in content.items():
        if not isinstance(groups, dict) or not {"p2p", "collective"} & set(groups):
            continue
        for operators in groups.values():
            for name, data in operators.items() if isinstance(operators, dict) else ():
                if not isinstance(data, dict) or str(name).startswith("Total Op Info"):
                    continue
                info = data.get("Communication Time Info")
                matrix |= info is None
                if isinstance(info, dict):
                    found = True
                    told.transfers.append(_transfer(str(name), str(step), info, data))
    return "communication" if found else "communication_matrix" if matrix else ""


def _transfer(name: str, step: str, info: Mapping[str, Any], data: Mapping[str, Any]) -> Transfer:
    links = data.get("Communication Bandwidth Info")
    bandwidth = {}
    for link, values in links.items() if isinstance(links, dict) else ():
        speed = _number(values.get("Bandwidth(GB/s)")) if isinstance(values, dict) else math.nan
        if speed > 0:
            bandwidth[str(link)] = speed
    elapse, wait = (_number(info.get(key)) for key in ("Elapse Time(ms)", "Wait Time(ms)"))
    return Transfer(name, step, elapse, wait, bandwidth)


def _number(value: Any) -> float:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    )
