"""What is wrong with a run, by what it says itself: notes, alerts and files."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mindpulse.alerts.journal import ALERTS_FILE, read_alerts
from mindpulse.alerts.life import FIRING
from mindpulse.ascend.fit import misfits
from mindpulse.doctor.checked import checked, made
from mindpulse.doctor.kind import check_kind, is_ours
from mindpulse.doctor.result import Result, quoted
from mindpulse.doctor.rows import clock, shown
from mindpulse.doctor.summary import of_traces
from mindpulse.doctor.traces import Trace, last_attempt, traces
from mindpulse.rules.load import load_rules
from mindpulse.store.check import FileReport
from mindpulse.store.description import description_problem
from mindpulse.store.folder_run import open_folder

SILENT_S = 300.0  # a training that holds its folder and wrote nothing for so long, hangs
SEVERE = {"critical": 0.9, "error": 0.8, "warning": 0.5, "info": 0.1}
# Notes of things that were lost or went wrong: kind -> (finding, what it counts, weight).
LOST = {
    "rows_lost": ("run_rows_lost", "rows", 0.5),
    "steps_lost": ("run_steps_lost", "count", 0.4),
    "calls_lost": ("run_calls_lost", "count", 0.3),
}


def check_run(
    run_dir: Path,
    reports: Sequence[FileReport] | None = None,
    *,
    now: float | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[Result]:
    """What a run's notes, alerts and files say is wrong with it.

    Args:
        reports: of its files; None to look at their headers and ends only.
        now: seconds since the epoch; None for the clock of this machine.
    """
    at = time.time() if now is None else now
    kind = checked("summary.kind", lambda: check_kind(run_dir))
    if not is_ours(run_dir):
        return kind
    left, failed = made("run.files", lambda: traces(run_dir, reports))
    if left is None:
        return kind + failed
    return [
        *kind,
        *of_traces(run_dir, left, at),
        *checked("run.files", lambda: check_files(run_dir, left)),
        *checked("run.lost", lambda: check_lost(left)),
        *checked("run.errors", lambda: check_errors(left)),
        *checked("run.end", lambda: check_end(left, at)),
        *checked("run.ranks", lambda: check_ranks(left)),
        *checked("run.versions", lambda: check_versions(run_dir)),
        *checked("run.alerts", lambda: check_alerts(run_dir)),
    ]


def check_files(run_dir: Path, left: Sequence[Trace]) -> list[Result]:
    """Damaged files, and a description that is missing."""
    found = []
    command = f"mindpulse repair {quoted(run_dir)} --dry-run"
    wrong = [report for trace in left for report in trace.reports if not report.valid]
    if wrong:
        values = {
            "count": len(wrong),
            "rows": sum(report.damaged_rows for report in wrong),
            "files": shown([str(report.path.relative_to(run_dir)) for report in wrong]),
            "first": wrong[0].problem,
        }
        found.append(Result("run.files", "problem", "run_damaged", values, command, 0.6))
    told = description_problem(run_dir)
    if told:
        values = {"problem": told}
        found.append(Result("run.files", "problem", "run_description", values, command, 0.4))
    count = sum(len(trace.reports) for trace in left)
    return found or [Result("run.files", "ok", "run_files_whole", {"count": count})]


def check_lost(left: Sequence[Trace]) -> list[Result]:
    """Rows, steps and calls that the recorder could not keep."""
    found = []
    for kind, (finding, counted, weight) in LOST.items():
        for trace in left:
            lost = sum(_number(note.data.get(counted)) for note in trace.told(kind))
            if lost:
                values = {"name": trace.name, "count": lost}
                found.append(Result("run.lost", "problem", finding, values, weight=weight))
    return found or [Result("run.lost", "ok", "run_nothing_lost")]


def check_errors(left: Sequence[Trace]) -> list[Result]:
    """What went wrong in the recorder and in the monitor, each kind once."""
    found = []
    for kind, weight in (("monitor_error", 0.7), ("recorder_error", 0.6)):
        told = [(trace, note) for trace in left for note in trace.told(kind)]
        texts = Counter(
            (str(note.data.get("what", "")), str(note.data.get("error", ""))) for _, note in told
        )
        for (what, error), count in texts.most_common(5):
            values = {"what": what or "-", "error": error, "count": count}
            values["name"] = next(t.name for t, n in told if str(n.data.get("error", "")) == error)
            found.append(Result("run.errors", "problem", f"run_{kind}", values, weight=weight))
    return found or [Result("run.errors", "ok", "run_no_errors")]


def check_end(left: Sequence[Trace], now: float) -> list[Result]:
    """Attempts that ended without a word, or hang."""
    found = []
    for trace in left:
        values = {"name": trace.name, "time": clock(trace.last_time), "step": trace.last_step or 0}
        values["silent"] = f"{now - trace.last_time:.0f}"
        latest = trace in last_attempt(left)
        if trace.held and now - trace.last_time > SILENT_S:
            found.append(Result("run.end", "problem", "run_hangs", values, weight=0.8))
        elif not trace.ended and not trace.held:
            weight = 0.7 if latest else 0.2
            found.append(Result("run.end", "problem", "run_no_end", values, weight=weight))
    if found:
        return found
    running = [trace.name for trace in left if trace.held]
    name = "run_running" if running else "run_ended"
    return [Result("run.end", "ok", name, {"names": shown(running)})]


def check_ranks(left: Sequence[Trace]) -> list[Result]:
    """Ranks that are missing from the latest attempt, or far behind the others."""
    latest = last_attempt(left)
    ranks = {trace.rank for trace in latest}
    wanted = {trace.rank for trace in left} | set(range(max(ranks, default=0)))
    missing = sorted(wanted - ranks)
    found = []
    if missing:
        values: dict[str, object] = {"ranks": shown([str(rank) for rank in missing])}
        values |= {"attempt": latest[0].attempt, "there": len(latest)}
        found.append(Result("run.ranks", "problem", "run_ranks_missing", values, weight=0.6))
    steps = {trace.rank: trace.last_step or 0 for trace in latest}
    first, last = min(steps.values(), default=0), max(steps.values(), default=0)
    if len(steps) > 1 and last - first > max(10, last // 100):
        behind = [str(rank) for rank, step in steps.items() if step == first]
        values = {"ranks": shown(behind), "step": first, "last": last}
        found.append(Result("run.ranks", "problem", "run_ranks_behind", values, weight=0.5))
    return found or [Result("run.ranks", "ok", "run_ranks_together", {"count": len(latest)})]


def check_versions(run_dir: Path) -> list[Result]:
    """Versions that the run was made with and that do not go together."""
    tags = open_folder(run_dir).tags
    found = [
        Result(
            "run.versions",
            "problem" if misfit.status != "unknown" else "unknown",
            "run_misfit" if misfit.status != "unknown" else "run_fit_unknown",
            {
                "of": misfit.of,
                "version": misfit.version,
                "other": misfit.other,
                "there": misfit.other_version or "-",
                "wanted": misfit.wanted or "-",
            },
            "mindpulse doctor env",
            0.6 if misfit.status != "unknown" else 0.1,
        )
        for misfit in misfits(tags)
        if misfit.other_version
    ]
    if found:
        return found
    if "mindspore" not in tags:
        return [Result("run.versions", "unknown", "run_no_versions", weight=0.1)]
    return [Result("run.versions", "ok", "run_versions_fit", {"version": tags["mindspore"]})]


def check_alerts(run_dir: Path) -> list[Result]:
    """What the watcher said: alerts that began, those that still hold first."""
    if not (run_dir / ALERTS_FILE).exists():
        command = f"mindpulse report {quoted(run_dir)}"
        return [Result("run.alerts", "unknown", "run_not_watched", command=command, weight=0.2)]
    last = {event.id: event for event in read_alerts(run_dir)}
    found = [
        Result(
            "run.alerts",
            "problem",
            "run_alert" if event.state == FIRING else "run_alert_over",
            {
                "rule": event.rule,
                "severity": event.severity,
                "rank": event.rank,
                "since": event.since_step,
            },
            f"mindpulse rules explain {event.rule}",
            SEVERE.get(event.severity, 0.3) * (1.0 if event.state == FIRING else 0.4),
        )
        for event in last.values()
        if event.severity != "info" and event.delivered
    ]
    return found or [Result("run.alerts", "ok", "run_no_alerts", {"count": len(load_rules())})]


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
