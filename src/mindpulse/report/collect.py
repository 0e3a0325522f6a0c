"""From a run folder to the values of a report; reads everything, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from mindpulse import health
from mindpulse.errors import UsageError
from mindpulse.report import history, snapshots
from mindpulse.report.data import FileSummary, Heat, ReportData
from mindpulse.report.heat import bin_steps
from mindpulse.report.layers import group_parameters, layer_norms
from mindpulse.rules.rule import Rule
from mindpulse.series import Series
from mindpulse.store.run import FileReport, Run

PARAMETERS = "grad_norm_param"
# A head that collapses is seen in the least entropy and in the largest focus. Entropy fills its
# whole range, so one scale for all runs compares them; the focus of a healthy model does not.
HEADS: dict[str, tuple[str, tuple[float, float] | None]] = {
    "attn_entropy": ("min", (0.0, 1.0)),
    "attn_focus": ("max", None),
}


def collect(run: Run, rules: Sequence[Rule], *, replay_all: bool = False) -> ReportData:
    """All that a report on a run shows.

    Scalars and heat maps are those of the first rank. The alerts are what the watcher said while
    the training ran; what it missed is judged now.

    Args:
        rules: judge the run, for the score and for a run without alerts.
        replay_all: judge the run by these rules now, whatever the watcher said.
    """
    reports = run.files()
    files, problems = summarise_files(run, reports)
    rank = run.ranks[0] if run.ranks else 0
    series = _series(run, rank)
    maps, unreadable = snapshots.read_maps(run.snapshots())
    actions, rejected = history.read_actions(run.path)
    judged = health.judge_run(run, rules)
    return ReportData(
        run_id=run.id,
        path=str(run.path),
        rank=rank,
        ranks=tuple(run.ranks),
        attempts=tuple(run.attempts),
        tags=run.tags,
        files=files,
        series={tag: found for tag, found in series.items() if not found.spec.columns},
        health=health.score_of(run, judged),
        alerts=history.alerts(run, rules, judged.events, replay_all),
        actions=actions,
        heats=tuple(_heats(series)),
        maps=tuple(snapshots.latest(maps)),
        troubles=history.troubles(run.notes()),
        problems=(*problems, *unreadable, *rejected),
    )


def summarise_files(run: Run, reports: Sequence[FileReport]) -> tuple[FileSummary, list[str]]:
    """The files of a run counted, and what is wrong with those that are damaged.

    Args:
        reports: what `run.files()` returned.
    """
    ours = [report for report in reports if not report.foreign]
    valid = sum(report.valid for report in ours)
    summary = FileSummary(
        total=len(reports),
        valid=valid,
        damaged=len(ours) - valid,
        foreign=len(reports) - len(ours),
        rows=sum(report.rows for report in ours),
        damaged_rows=sum(report.damaged_rows for report in ours),
        torn_bytes=sum(report.torn_bytes for report in ours),
    )
    damaged = [f"{_shown(r.path, run.path)}: {r.problem}" for r in ours if not r.valid]
    return summary, damaged


def _shown(path: Path, run_path: Path) -> str:
    """The file as seen from the run; its name where the run is that file."""
    return path.name if path == run_path else str(path.relative_to(run_path))


def series_of(run: Run, rank: int, tags: Iterable[str]) -> Iterator[Series]:
    """The series of a rank that have rows; a tag that only other ranks have is left out."""
    for tag in tags:
        with suppress(UsageError):
            series = run.series(tag, rank=rank)
            if len(series):
                yield series


def _series(run: Run, rank: int) -> dict[str, Series]:
    """The scalar series of a rank and those for heat maps, in ascending order of steps."""
    wide = {*HEADS, PARAMETERS}
    drawn = [tag for tag, spec in run.specs().items() if bool(spec.columns) == (tag in wide)]
    return {series.spec.tag: _ascending(series) for series in series_of(run, rank, drawn)}


def _ascending(series: Series) -> Series:
    if np.all(series.steps[1:] >= series.steps[:-1]):
        return series
    return Series(series.spec, series.rows[np.argsort(series.steps, kind="stable")])


def _layer_heat(series: Series) -> Heat:
    """Gradient norm by layer over the steps."""
    groups = group_parameters([labels[0] for labels in series.spec.columns])
    norms = layer_norms(series.rows.values, groups)
    return bin_steps(series.spec.tag, list(groups), series.steps, norms)


def _head_heat(series: Series) -> Heat:
    """A measure of attention by layer and head over the steps."""
    names = [" · ".join(("L" + labels[0], *labels[1:])) for labels in series.spec.columns]
    return bin_steps(
        series.spec.tag, names, series.steps, series.rows.values, *HEADS[series.spec.tag]
    )


def _heats(wide: dict[str, Series]) -> list[Heat]:
    heats = [_layer_heat(wide[PARAMETERS])] if PARAMETERS in wide else []
    return heats + [_head_heat(wide[tag]) for tag in HEADS if tag in wide]
