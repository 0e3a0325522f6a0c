"""What has to be looked at one by one: missed and late faults, wrong names, false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from benchmarks.common import table
from benchmarks.faults.alarms import Alarm, Case
from benchmarks.faults.index import FAULTY, HEALTHY, RELABELLED, RecordedRun
from benchmarks.faults.replay import Heard
from benchmarks.faults.scores import IN_TIME_ROWS, delay, layer_rank, said_class, true_class
from benchmarks.faults.tables import by_recipe, whole
from benchmarks.faults.why import RuleStory

Why = Callable[[RecordedRun], Sequence[RuleStory]]


def missed(cases: Sequence[Case], why: Why | None) -> list[str]:
    """The faults that nobody told of; with `why`, how each rule fared after the label."""
    lines: list[str] = []
    for recipe, group in by_recipe(cases, FAULTY).items():
        silent = [case for case in group if not case.detections]
        if silent:
            lines.append(f"{recipe}: {len(silent)} of {len(group)} missed")
        for case in silent:
            lines.append(f"  {case.run.id}: {what_it_is(case)}")
            lines += [f"    {_no_detection(alarm, case)}: {told(alarm)}" for alarm in case.alarms]
            lines += _reasons(why(case.run)) if why else []
    return lines


def _reasons(stories: Sequence[RuleStory]) -> list[str]:
    quiet = [story.rule for story in stories if story.quiet and not story.held + story.unknown]
    lines = [f"    {story}" for story in stories if story.rule not in quiet]
    return [*lines, f"    quiet: {', '.join(quiet)}"] if quiet else lines


def _no_detection(alarm: Alarm, case: Case) -> str:
    return "before the label" if alarm.step < case.label else "information only"


def late(cases: Sequence[Case]) -> list[str]:
    """The faults that were told of more than 10 sampled steps after the label."""
    found = [case for case in cases if case.detections and delay(case)[1] > IN_TIME_ROWS]
    found.sort(key=lambda case: (case.run.recipe, -delay(case)[1]))
    return [
        f"{case.run.id}: {whole(delay(case)[0])} steps, {whole(delay(case)[1])} sampled steps, "
        f"first by {told(case.detections[0])}"
        for case in found
    ]


def wrongly_named(cases: Iterable[Case]) -> list[str]:
    """The faults that were told of under another category, or another layer first."""
    lines = []
    for case in cases:
        if not case.detections:
            continue
        wrong = said_class(case) != true_class(case)
        elsewhere = case.run.layer is not None and layer_rank(case) > 1
        if wrong or elsewhere:
            heard = "; ".join(told(alarm) for alarm in case.heard[:4])
            lines.append(f"{case.run.id}: {what_it_is(case)}: {heard}")
    return lines


def confusion(cases: Sequence[Case]) -> str:
    """True categories in rows, what was said in columns."""
    counted = Counter(
        (true_class(case), said_class(case)) for case in cases if case.run.verdict != RELABELLED
    )
    said = sorted({name for _, name in counted})
    rows = [
        (truth, *(counted[truth, name] or "" for name in said))
        for truth in sorted({name for name, _ in counted})
    ]
    return table(("true \\ said", *said), rows)


def false_alarms(cases: Iterable[Case]) -> list[str]:
    """Every alarm at a healthy step, by rule."""
    found = [(alarm, case) for case in cases for alarm in case.false_alarms]
    found.sort(key=lambda pair: (pair[0].name, pair[1].run.id, pair[0].step))
    return [
        f"{told(alarm)}; {case.run.id} ({_where(case)}){_told_detail(alarm)}"
        for alarm, case in found
    ]


def after_relabelling(cases: Iterable[Case]) -> list[str]:
    """The alarms in runs whose fault did no significant harm."""
    return [
        f"{case.run.id} (p = {case.run.p_value}): " + "; ".join(told(a) for a in case.loud)
        for case in cases
        if case.run.verdict == RELABELLED and case.loud
    ]


def unknown_rules(heard: Iterable[Heard]) -> list[str]:
    """The rules that could not be judged at the end of a run, with the commonest reason."""
    reasons: dict[str, Counter[str]] = {}
    total = 0
    for one in heard:
        total += 1
        for rule, reason in one.unknown.items():
            reasons.setdefault(rule, Counter())[reason] += 1
    return [
        f"{rule}: in {counted.total()} of {total} runs; {counted.most_common(1)[0][0]}"
        for rule, counted in sorted(reasons.items(), key=lambda item: -item[1].total())
    ]


def what_it_is(case: Case) -> str:
    """The fault in a few words."""
    run = case.run
    layer = "" if run.layer is None else f", layer {run.layer}"
    return f"{run.category}{layer}, label {run.label_step}, last step {case.last_step}"


def told(alarm: Alarm) -> str:
    """An alarm in a few words."""
    layers = f" layers {', '.join(map(str, alarm.layers))}" if alarm.layers else ""
    layers += "" if alarm.origin is None else f" from {alarm.origin}"
    return f"{alarm.name} ({alarm.severity}, {alarm.category}{layers}) at {alarm.step}"


def _told_detail(alarm: Alarm) -> str:
    return f"; {alarm.detail}" if alarm.detail else ""


def _where(case: Case) -> str:
    return "healthy" if case.run.verdict == HEALTHY else f"label {case.run.label_step}"
