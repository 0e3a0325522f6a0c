"""From a run folder to the values of a report; changes nothing, and keeps no series in memory.

The files are checked in one pass over their bytes. Curves come out of the index beside them, heat
maps out of the rows of their series, a piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from mindpulse import health
from mindpulse.errors import UsageError
from mindpulse.report import history, snapshots
from mindpulse.report.bins import StepAxis, bin_steps
from mindpulse.report.data import FileSummary, Heat, ReportData, StepTime, drawn_tags
from mindpulse.report.layers import group_parameters, layer_norms
from mindpulse.report.scalar import DRAWN_POINTS, FIGURE_POINTS, Scalar, read_scalar
from mindpulse.rules.rule import Rule
from mindpulse.series import Series, SeriesSpec
from mindpulse.store.run import FileReport, Run

PARAMETERS = "grad_norm_param"
# A head that collapses is seen in the least entropy and in the largest focus. Entropy fills its
# whole range, so one scale for all runs compares them; the focus of a healthy model does not.
HEADS: dict[str, tuple[str, tuple[float, float] | None]] = {
    "attn_entropy": ("min", (0.0, 1.0)),
    "attn_focus": ("max", None),
}
WIDE = (PARAMETERS, *HEADS)
AXIS_POINTS = 600  # for the steps of a heat map, which has at most 400 columns
STEP_TIME = "step_time_s"
TIMED_ROWS = 100_000  # the step time is that of the last of them


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
    specs = run.specs()
    series = _scalars(run, rank, specs)
    timed = series.get(STEP_TIME)
    maps, unreadable = snapshots.latest_maps(run.snapshots())
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
        series=series,
        health=health.score_of(run, judged),
        step_time=_step_time(run, rank, timed.rows) if timed is not None else None,
        alerts=history.alerts(run, rules, judged.events, replay_all),
        actions=actions,
        heats=tuple(_heats(run, rank, specs)),
        maps=tuple(maps),
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


def _scalars(run: Run, rank: int, specs: Mapping[str, SeriesSpec]) -> dict[str, Scalar]:
    """The scalar series of a rank that have rows; of those without a curve the figures alone."""
    tags = [tag for tag, spec in specs.items() if not spec.columns and tag not in WIDE]
    drawn = drawn_tags(tags)
    found: dict[str, Scalar] = {}
    for tag in tags:
        with suppress(UsageError):  # a tag that only other ranks have
            points = DRAWN_POINTS if tag in drawn else FIGURE_POINTS
            scalar = read_scalar(run, tag, rank, points)
            if scalar is not None:
                found[tag] = scalar if tag in drawn else scalar.figures()
    return found


def _step_time(run: Run, rank: int, rows: int) -> StepTime | None:
    values = run.last(STEP_TIME, TIMED_ROWS, rank).values
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    median, high = np.quantile(finite, (0.5, 0.99))
    return StepTime(float(median), float(high), len(values) if len(values) < rows else None)


def _heats(run: Run, rank: int, specs: Mapping[str, SeriesSpec]) -> Iterator[Heat]:
    for tag in (tag for tag in WIDE if tag in specs and specs[tag].columns):
        with suppress(UsageError):
            seen = run.overview(tag, AXIS_POINTS, rank, columns=[0])
            pieces = run.blocks(tag, rank)
            first = next(pieces, None)
            if first is not None:
                axis = StepAxis.of(np.r_[seen.low_steps, seen.high_steps])
                yield _heat(axis, first.spec, chain([first], pieces))


def _heat(axis: StepAxis, spec: SeriesSpec, pieces: Iterable[Series]) -> Heat:
    """Gradient norm by layer, or a measure of attention by layer and head, over the steps."""
    if spec.tag == PARAMETERS:
        groups = group_parameters([labels[0] for labels in spec.columns])
        norms = ((p.steps, layer_norms(p.rows.values, groups)) for p in pieces)
        return bin_steps(spec.tag, list(groups), axis, norms)
    names = [" · ".join(("L" + labels[0], *labels[1:])) for labels in spec.columns]
    rows = ((p.steps, p.rows.values) for p in pieces)
    return bin_steps(spec.tag, names, axis, rows, *HEADS[spec.tag])
