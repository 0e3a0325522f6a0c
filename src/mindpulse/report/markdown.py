"""The report as Markdown, short enough for a merge request or a chat."""

from __future__ import annotations

from collections.abc import Sequence

from mindpulse.health import Part
from mindpulse.report.data import Action, Alert, ReportData
from mindpulse.report.figures import describe as describe_curve
from mindpulse.report.first_screen import evidence, facts, span, where
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import format_number
from mindpulse.report.timeline import describe
from mindpulse.report.verdict import Verdict, judge
from mindpulse.report.words import Words

ICONS = {"healthy": "✅", "recovered": "✅", "attention": "⚠️", "unhealthy": "❌", "unknown": "❔"}
BLOCKS = "▁▂▃▄▅▆▇█"
SPARK_COLUMNS = 48


def write_markdown(data: ReportData, words: Words) -> str:
    """The report as text: verdict, finding, figures, curves, alerts, actions, score."""
    verdict = judge(data)
    parts = [
        _headline(verdict, data, words),
        _finding(verdict, data, words),
        _facts(data, words),
        *(
            _curve(data.series[tag], tag, words)
            for tag in ("train_loss", "grad_norm")
            if tag in data.series
        ),
        _alerts(data, words),
        _actions(data, words),
        _score(data, words),
        _problems(data, words),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(verdict: Verdict, data: ReportData, words: Words) -> str:
    say, value = words.say, data.health.score
    first, last = data.steps or (0, 0)
    number = say("score.unknown") if value is None else f"{value:.0f} / 100"
    beside = words.score_note(data.health)
    note = f" ({beside})" if beside else ""
    text = say(
        f"verdict.{verdict.state}.text",
        first=format_number(first),
        last=format_number(last),
        count=len(verdict.alerts),
        firing=verdict.firing,
    )
    concerns = "".join(f" {words.sentence(reason)}" for reason in verdict.concerns)
    return (
        f"# {ICONS[verdict.state]} {say('title')}: {say('verdict.' + verdict.state)}\n\n"
        f"{text}{concerns} {say('score.title')}: **{number}**{note}\n\n`{data.path}`"
    )


def _finding(verdict: Verdict, data: ReportData, words: Words) -> str:
    if not verdict.alerts:
        return ""
    say, alert = words.say, verdict.alerts[0]
    lines = [
        f"## {say('finding.first')}: {_cell(words.message(alert))}",
        "",
        f"- **{say('column.rule')}**: `{alert.rule}` ({words.severity(alert.severity)})",
        f"- **{say('finding.where')}**: {_cell(where(alert, data, words))}",
        f"- **{say('finding.since')}**: {span(alert, words)}",
    ]
    if seen := evidence(alert):
        lines.append(f"- **{say('finding.evidence')}**: {_cell(seen)}")
    lines += _list(say("finding.next"), words.next_steps(alert.rule), "1.")
    lines += _list(say("finding.causes"), words.causes(alert.rule), "-")
    return "\n".join(lines)


def _list(title: str, items: Sequence[str], mark: str) -> list[str]:
    return ["", f"**{title}**", "", *(f"{mark} {_cell(item)}" for item in items)] if items else []


def _facts(data: ReportData, words: Words) -> str:
    rows = [[name, value, note] for name, value, note in facts(data, words)]
    return _table(["", "", ""], rows)


def _curve(scalar: Scalar, tag: str, words: Words) -> str:
    name = words.curve(tag)[0]
    return f"**{name}** `{sparkline(scalar)}`  \n{_cell(describe_curve(scalar, name, words))}"


def sparkline(scalar: Scalar, columns: int = SPARK_COLUMNS) -> str:
    """A curve as one line of blocks, each the mean of its rows; "!" where a NaN lies."""
    parts = scalar.parts(columns)
    whole, means = parts.nonfinite[:, 0] == 0, parts.mean[:, 0]
    if not whole.any():
        return "!" * len(parts)
    low, high = means[whole].min(), means[whole].max()
    share = (means - low) / (high - low) if high > low else means * 0.0
    marks = [BLOCKS[int(x * 7.999)] if ok else "!" for x, ok in zip(share, whole, strict=True)]
    return "".join(marks)


def _alerts(data: ReportData, words: Words) -> str:
    if not data.alerts:
        return f"## {words.say('timeline.title')}\n\n{words.say('none.timeline')}"
    head = [words.say(f"column.{n}") for n in ("severity", "rule", "steps", "where", "what")]
    ordered = sorted(data.alerts, key=lambda a: (-a.level, a.since_step))
    rows = [_alert(alert, data, words) for alert in ordered]
    return f"## {words.say('alerts.caption')}\n\n{_table(head, rows)}"


def _alert(alert: Alert, data: ReportData, words: Words) -> list[str]:
    place = where(alert, data, words)
    severity = words.severity(alert.severity)
    return [severity, f"`{alert.rule}`", span(alert, words), place, words.message(alert)]


def _actions(data: ReportData, words: Words) -> str:
    if not data.actions:
        return ""
    head = [words.say(f"column.{n}") for n in ("action", "asked", "done", "status", "reason")]
    rows = [_action(action, words) for action in data.actions]
    return f"## {words.say('actions.caption')}\n\n{_table(head, rows)}"


def _action(action: Action, words: Words) -> list[str]:
    steps = ["–" if s is None else format_number(s) for s in (action.asked_step, action.done_step)]
    status = f"{words.status(action.status)} {action.detail}".strip()
    return [f"`{describe(action)}`", *steps, status, f"`{action.rule}`"]


def _score(data: ReportData, words: Words) -> str:
    if not data.health.parts:
        return ""
    head = [words.say("score.title"), "", words.say("column.reason")]
    rows = [_part(name, part, words) for name, part in data.health.parts.items()]
    meaning = words.score_meaning(data.health)
    return f"## {words.say('score.title')}\n\n{meaning}\n\n{_table(head, rows)}"


def _part(name: str, part: Part, words: Words) -> list[str]:
    number = words.say("score.unknown") if part.score is None else f"{part.score:.0f}"
    return [
        words.say(f"part.{name}"),
        number,
        " · ".join(reason.text(words.lang) for reason in part.reasons),
    ]


def _problems(data: ReportData, words: Words) -> str:
    parts = []
    for key, lines in (("run.problems", data.problems), ("run.troubles", data.troubles)):
        if lines:
            items = "\n".join(f"- {_cell(line)}" for line in lines)
            parts.append(f"## {words.say(key)}\n\n{items}")
    return "\n\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    """Nothing that ends a cell, opens a tag or breaks the line."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
