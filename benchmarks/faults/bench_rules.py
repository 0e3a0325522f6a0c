"""How good the rules are on recorded faults, beside the rules of others on the same recordings.

    python -m benchmarks.faults.bench_rules [--part tune|test|all] [--recordings DIR]
        [--only GLOB] [--rules FILE] [--why] [--json FILE] [--page]
    python -m benchmarks.faults.bench_rules --explain RUN [--rule NAME] [--at STEP...]
        [--series TAG...]

Tune on the part "tune" only; the part "test" is for the figures that are published.
See docs/fault-scores.md for what each figure means.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.faults import listings, tables
from benchmarks.faults.alarms import Case
from benchmarks.faults.baselines import BASELINES
from benchmarks.faults.explain import explain
from benchmarks.faults.index import FAULTY, SPLITS, RecordedRun, open_recordings, read_index
from benchmarks.faults.page import filled
from benchmarks.faults.replay import MOST_PROCESSES, OURS, Heard, listen_to_all, read_chunks
from benchmarks.faults.scores import Scores, score
from benchmarks.faults.why import RuleStory, stories, whole_window
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.rules.load import load_rules
from mindpulse.rules.nearest import nearest
from mindpulse.rules.rule import Rule

ROUNDS, QUICK_ROUNDS = 1000, 100
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fault-scores.md"
MARK = "<!-- {name}: written by `make bench-rules ARGS=--page` -->"


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = common.parser(str(__doc__).splitlines()[0])
    found.add_argument("--recordings", type=Path, metavar="DIR", help="a folder with index.jsonl")
    found.add_argument("--part", choices=(*SPLITS, "all"), default="test", help="[default: test]")
    found.add_argument("--only", metavar="GLOB", default="*", help="runs of this id")
    found.add_argument("--rules", type=Path, metavar="FILE", help="rules over the shipped ones")
    found.add_argument("--why", action="store_true", help="say how each rule fared in missed runs")
    names = [OURS, *(baseline.name for baseline in BASELINES)]
    found.add_argument("--detector", choices=names, default=OURS, help="whose details are shown")
    found.add_argument("--explain", metavar="RUN", help="tell one run at length, and end")
    found.add_argument("--rule", metavar="NAME", help="with --explain: show the terms of this rule")
    found.add_argument("--at", type=int, nargs="+", default=(), metavar="STEP", help="at these")
    found.add_argument("--series", nargs="+", default=(), metavar="TAG", help="these series too")
    found.add_argument("--only-ours", action="store_true", help="leave the rules of others out")
    found.add_argument("--page", action="store_true", help=f"write the results into {PAGE.name}")
    found.add_argument("--processes", type=int, default=MOST_PROCESSES, help="[default: 2]")
    return found


def chosen(runs: Sequence[RecordedRun], name: str) -> RecordedRun:
    """The run of that id.

    Raises:
        UsageError: there is none.
    """
    for run in runs:
        if run.id == name:
            return run
    raise UsageError(f"no run {name!r} in the index{nearest(name, [run.id for run in runs])}")


def cases_by_detector(heard: Sequence[Heard]) -> dict[str, list[Case]]:
    """What each detector told of each run."""
    names = heard[0].cases if heard else ()
    return {name: [one.cases[name] for one in heard] for name in names}


def report(
    heard: Sequence[Heard],
    scored: Mapping[str, Scores],
    rules: Sequence[Rule],
    detector: str = OURS,
    folder: Path | None = None,
) -> None:
    """Prints everything.

    Args:
        detector: whose details are shown.
        folder: where the recordings lie, to say why faults were missed; None not to say it.
    """
    cases = cases_by_detector(heard)[detector]
    names = {alarm.name for case in cases for alarm in case.alarms}
    names |= {rule.name for rule in rules} if detector == OURS else set()

    def why(run: RecordedRun) -> list[RuleStory]:
        window = whole_window(read_chunks(Path(str(folder)) / run.run))
        return stories(window, rules, int(run.label_step or 0))

    sections = {
        "Detectors": tables.detectors(scored),
        detector: tables.with_intervals(scored[detector]),
        "Targets": tables.target_table(tables.targets(scored, detector)),
        "Faults": tables.kinds(cases),
        "Healthy": tables.healthy_kinds(cases),
        "Rules": tables.rule_table(cases, sorted(names)),
        "Categories": listings.confusion(cases),
        "Missed faults": listings.missed(cases, why if folder and detector == OURS else None),
        "Late": listings.late(cases),
        "Wrongly named": listings.wrongly_named(cases),
        "False alarms": listings.false_alarms(cases),
        "Alarms in faults that did no harm": listings.after_relabelling(cases),
        "Rules that stayed unknown": listings.unknown_rules(heard) if detector == OURS else [],
    }
    for title, body in sections.items():
        print(f"\n## {title}\n")
        print(body if isinstance(body, str) else "\n".join(body) or "none")


def results(heard: Sequence[Heard], scored: Mapping[str, Scores], summary: str) -> str:
    """The section of the page: what was measured, without the details of single runs."""
    cases = cases_by_detector(heard)[OURS]
    missed = [case for case in cases if case.run.verdict == FAULTY and not case.detections]
    names = ", ".join(f"`{case.run.id}`" for case in missed) or "none"
    sections = {
        "All detectors": tables.detectors(scored),
        "Ours, with intervals": tables.with_intervals(scored[OURS]),
        "Targets": tables.target_table(tables.targets(scored, OURS)),
        "Faults": tables.kinds(cases),
        "Healthy runs": tables.healthy_kinds(cases),
        "Categories": listings.confusion(cases),
        "Missed": names,
    }
    parts = [f"### {title}\n\n{body}" for title, body in sections.items()]
    return "\n\n".join([summary, *parts])


def figures(heard: Sequence[Heard], scored: Mapping[str, Scores], part: str) -> dict[str, Any]:
    """All figures for `--json`; what is not finite is null."""
    cases = cases_by_detector(heard)
    document = {
        "part": part,
        "runs": len(heard),
        "targets": tables.targets(scored, OURS),
        "scores": {name: asdict(found) for name, found in scored.items()},
        "baselines": {b.name: {"source": b.source, "constants": b.constants} for b in BASELINES},
        "alarms": {
            one.run.id: [asdict(alarm) for alarm in one.alarms] for one in cases.get(OURS, ())
        },
    }
    return dict(_finite(document))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def run(arguments: argparse.Namespace) -> None:
    """Judges, scores, prints, writes.

    Raises:
        MindPulseError: recordings or rules cannot be used.
    """
    folder = open_recordings(arguments.recordings)
    rules = load_rules(arguments.rules)
    if arguments.explain:
        one = chosen(read_index(folder), arguments.explain)
        print(explain(one, folder, rules, arguments.rule, arguments.at, arguments.series))
        return
    part = None if arguments.part == "all" else arguments.part
    runs = [one for one in read_index(folder, part) if fnmatchcase(one.id, arguments.only)]
    if not runs:
        raise UsageError(
            f"{folder}: no runs {arguments.only!r} of the part {arguments.part!r} in the index"
        )
    begin = time.perf_counter()
    heard = listen_to_all(
        runs, folder, arguments.rules, arguments.processes, not arguments.only_ours
    )
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    scored = {name: score(cases, rounds) for name, cases in cases_by_detector(heard).items()}
    found = scored[OURS]
    summary = (
        f"{len(runs)} runs of the part {arguments.part!r}: {found.faulty} faulty, {found.healthy} "
        f"healthy, {found.relabelled.runs} relabelled; {found.false_alarms.total} healthy steps"
    )
    print(f"{summary}; judged in {time.perf_counter() - begin:.0f} s")
    if arguments.detector not in scored:
        raise UsageError(f"--detector {arguments.detector!r} and --only-ours: choose one of them")
    why_from = folder if arguments.why or part == "tune" else None
    report(heard, scored, rules, arguments.detector, why_from)
    if arguments.page:
        page = PAGE.read_text("utf-8")
        PAGE.write_text(filled(page, "results", results(heard, scored, f"{summary}."), MARK))
    common.finish("bench_rules", figures(heard, scored, arguments.part), arguments.json)


def main() -> None:
    """The command."""
    try:
        run(options().parse_args())
    except MindPulseError as error:
        sys.exit(f"bench_rules: {error}")


if __name__ == "__main__":
    main()
