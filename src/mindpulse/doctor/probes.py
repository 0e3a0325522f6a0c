"""Probes that never ran, matched nothing, or came too late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mindpulse.doctor.result import Result, quoted
from mindpulse.doctor.rows import shown
from mindpulse.doctor.traces import Trace, last_attempt

ATTACH, PROBES = "summary.attach", "summary.probes"
# Places that every training has; the others are found in the model.
_ALWAYS = ("optimizer", "learning_rate", "clip", "loss_scale")
_SILENT, _FAILED, _PLANTED = "never ran", "failed", "planted"


def check_attached(found: Sequence[Trace]) -> list[Result]:
    """Whether the monitor came before the training's first step."""
    told = [trace for trace in last_attempt(found) if trace.told("attached")]
    if not told:
        return [Result(ATTACH, "unknown", "attach_not_told", weight=0.1)] if found else []
    results = [result for trace in told if (result := _attached(trace)) is not None]
    return results or [Result(ATTACH, "ok", "attached_in_time")]


def _attached(trace: Trace) -> Result | None:
    said = trace.said("attached")
    steps, compiled = _whole(said.get("optimizer_steps")), said.get("compiled") or []
    silent = [place for place in _places(trace) if place["state"] == _SILENT]
    values: dict[str, object] = {"name": trace.name, "steps": steps, "silent": len(silent)}
    values |= {"compiled": ", ".join(map(str, compiled)) or "-", "first": trace.first_wanted}
    values["next"] = steps + 1
    if silent and (steps >= trace.first_wanted or compiled):
        return Result(ATTACH, "problem", "attached_late", values, weight=0.95)
    if steps >= trace.first_wanted:
        return Result(ATTACH, "problem", "attached_after_steps", values, weight=0.25)
    return None


def check_probes(found: Sequence[Trace]) -> list[Result]:
    """What became of the places in the model: planted, silent, failed, or none found."""
    results = []
    for trace in last_attempt(found):
        places = _places(trace)
        if places:
            results += _of_rank(trace, places)
    if results or not any(trace.told("probe") for trace in last_attempt(found)):
        return _unless_told_before(results)
    return [Result(PROBES, "ok", "probes_run")]


def _of_rank(trace: Trace, places: Sequence[Mapping[str, Any]]) -> list[Result]:
    results = []
    run = trace.folder.parent.parent
    command = f"mindpulse probe {quoted(run)} --list --rank {trace.rank}"
    by_state = {state: [p for p in places if p["state"] == state] for state in (_SILENT, _FAILED)}
    for state, name, weight in (
        (_SILENT, "probes_silent", 0.8),
        (_FAILED, "probes_failed", 0.75),
    ):
        if by_state[state]:
            values = _values(trace, by_state[state])
            results.append(Result(PROBES, "problem", name, values, command, weight))
    inside = [place for place in places if place["what"] not in _ALWAYS]
    if not any(place["state"] in (_PLANTED, _SILENT, _FAILED) for place in inside):
        reasons = Counter(str(place["reason"]) for place in inside)
        values = {"name": trace.name, "count": len(inside)}
        values["reason"] = reasons.most_common(1)[0][0] if reasons else "-"
        results.append(Result(PROBES, "problem", "probes_matched_nothing", values, command, 0.85))
    return results


def _values(trace: Trace, places: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    paths = [str(place["path"]) or "." for place in places]
    return {
        "name": trace.name,
        "count": len(places),
        "paths": shown(paths),
        "reason": places[0]["reason"],
    }


def _places(trace: Trace) -> list[dict[str, Any]]:
    """What was last said of each place."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for note in trace.told("probe"):
        data = {key: note.data.get(key) or "" for key in ("path", "what", "state", "reason")}
        last[str(data["path"]), str(data["what"])] = data
    return list(last.values())


def _unless_told_before(results: list[Result]) -> list[Result]:
    """Of ranks that say the same, the first."""
    seen: set[tuple[str, object]] = set()
    kept = []
    for result in results:
        key = (result.finding, result.values.get("paths"))
        if key not in seen:
            seen.add(key)
            kept.append(result)
    return kept


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
