"""Why there are no rows, or not those that are missed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from mindpulse.doctor.result import Result, quoted
from mindpulse.doctor.traces import Trace, by_the_host, last_attempt
from mindpulse.store.notes import NOTES_NAME
from mindpulse.store.switch import switched_off

ROWS, SAMPLING, RECORDING = "summary.rows", "summary.sampling", "summary.recording"
FLUSH_S = 120.0  # between writes, where the run does not say it
_SHOWN = 6
# Variables under which a training computes nothing, or only compiles.
_NOT_TRAINING = ("MS_SIMULATION_LEVEL", "MS_DEV_PRECOMPILE_ONLY", "MS_KERNEL_LAUNCH_SKIP")


def check_recording(environ: Mapping[str, str]) -> list[Result]:
    """Whether the environment switches recording off, or the training that would be recorded."""
    off = switched_off(environ)
    if off:
        command = "unset MINDPULSE"
        return [Result(RECORDING, "problem", "recording_off", {"setting": off}, command, 0.95)]
    idle = [name for name in _NOT_TRAINING if environ.get(name, "0").lower() not in ("", "0")]
    if idle:
        values = {"settings": ", ".join(f"{name}={environ[name]}" for name in idle)}
        command = f"unset {' '.join(idle)}"
        return [Result(RECORDING, "problem", "recording_idle", values, command, 0.8)]
    return [Result(RECORDING, "ok", "recording_on")]


def check_rows(found: Sequence[Trace], now: float) -> list[Result]:
    """Whether the latest attempt has rows, and if not, what became of it.

    Args:
        now: seconds since the epoch.
    """
    without = [trace for trace in last_attempt(found) if not trace.rows]
    if without:
        return [_no_rows(trace, now) for trace in without[:_SHOWN]]
    latest = last_attempt(found)
    values = {
        "rows": sum(trace.rows for trace in latest),
        "attempt": latest[0].attempt,
        "ranks": len(latest),
        "last": max((t.last_step for t in latest if t.last_step is not None), default=0),
    }
    return [Result(ROWS, "ok", "rows_there", values), *_before(found)]


def _before(found: Sequence[Trace]) -> Iterator[Result]:
    """Attempts before the last that left nothing: it failed before, and may fail again."""
    empty = [trace for trace in found if not trace.rows and trace not in last_attempt(found)]
    if empty:
        values = {"names": "; ".join(trace.name for trace in empty[:_SHOWN]), "count": len(empty)}
        yield Result(ROWS, "problem", "rows_none_before", values, weight=0.15)


def _no_rows(trace: Trace, now: float) -> Result:
    flush = float(trace.said("attached").get("flush_interval_s", FLUSH_S))
    values: dict[str, object] = {"name": trace.name, "begun": clock(trace.first_time)}
    values |= {"flush": f"{flush:g}", "age": f"{max(0.0, now - trace.first_time):.0f}"}
    if not (trace.folder / NOTES_NAME).exists():
        if trace.held:
            return Result(ROWS, "unknown", "rows_just_begun", values, weight=0.5)
        return Result(ROWS, "problem", "rows_no_notes", values, weight=0.85)
    failed = trace.told("monitor_error")
    if failed and not trace.begun:
        values["error"] = failed[-1].data.get("error", "")
        return Result(ROWS, "problem", "rows_never_started", values, weight=0.95)
    if trace.held:
        name = "rows_not_yet" if now - trace.first_time < 2 * flush else "rows_overdue"
        status = "unknown" if name == "rows_not_yet" else "problem"
        command = f"mindpulse watch {quoted(trace.folder.parent.parent)}"
        return Result(ROWS, status, name, values, command, 0.8)  # type: ignore[arg-type]
    if trace.ended:
        return Result(ROWS, "problem", "rows_none_ended", values, weight=0.9)
    return Result(ROWS, "problem", "rows_killed", values, weight=0.9)


def check_sampling(found: Sequence[Trace]) -> list[Result]:
    """Measures whose turn never came: the attempt was too short for their interval."""
    results = []
    for trace in last_attempt(found):
        every = trace.said("attached").get("intervals")
        if trace.last_step is None or not isinstance(every, dict):
            continue
        first = trace.first_wanted
        late = {
            tag: n
            for tag, n in every.items()
            if isinstance(n, int) and n > 1 and next_step(first, n) > trace.last_step
        }
        missed = sorted(tag for tag in late if tag not in trace.tags)
        if missed:
            at = min(next_step(first, late[tag]) for tag in missed)
            values = {"name": trace.name, "first": first, "last": trace.last_step, "next": at}
            values |= {"tags": shown(missed), "interval": min(late[tag] for tag in missed)}
            results.append(Result(SAMPLING, "problem", "sampling_not_reached", values, weight=0.6))
    if results or not any(trace.rows for trace in found):
        return results
    if not any(trace.told("attached") for trace in last_attempt(found)):
        return [Result(SAMPLING, "unknown", "sampling_not_told", weight=0.1)]
    return [Result(SAMPLING, "ok", "sampling_reached")]


def next_step(first: int, interval: int) -> int:
    """The first step from `first` on at which a measure is due: 1, 1 + n, 1 + 2n...

    Example:
        >>> next_step(1, 10), next_step(2, 10), next_step(11, 10)
        (1, 11, 11)
    """
    return first + (1 - first) % interval


def check_host_only(found: Sequence[Trace]) -> list[Result]:
    """Nothing but what the host writes without any probe: then no probe measures."""
    results = []
    for trace in last_attempt(found):
        if trace.rows and trace.told("probe") and all(by_the_host(tag) for tag in trace.tags):
            values = {"name": trace.name, "tags": shown(sorted(trace.tags))}
            command = f"mindpulse probe {quoted(trace.folder.parent.parent)} --rank {trace.rank}"
            results.append(Result(ROWS, "problem", "rows_host_only", values, command, 0.7))
    return results


def clock(seconds: float) -> str:
    """A time as people read it, in UTC; "?" where it is not known.

    Example:
        >>> clock(0.0), clock(float("nan"))
        ('1970-01-01 00:00:00 UTC', '?')
    """
    if not math.isfinite(seconds):
        return "?"
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"


def shown(names: Sequence[str]) -> str:
    """A few names, and how many more.

    Example:
        >>> shown(["a", "b"]), shown(list("abcdefgh"))
        ('a, b', 'a, b, c, d, e, f (+2)')
    """
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" (+{more})" if more > 0 else "")
