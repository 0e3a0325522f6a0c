"""The tables of the report: alerts, actions, parts of the score, fingerprint."""

from __future__ import annotations

from mindpulse.health import Part
from mindpulse.report.data import Action, ReportData
from mindpulse.report.first_screen import evidence, span, where
from mindpulse.report.markup import Html, join, table, tag, void
from mindpulse.report.scales import format_number
from mindpulse.report.timeline import describe
from mindpulse.report.words import Words

MAX_LINES = 50


def alerts_table(data: ReportData, words: Words) -> Html:
    """One row per alert, gravest first; nothing without alerts."""
    if not data.alerts:
        return Html("")
    names = ("severity", "rule", "steps", "where", "what")
    rows: list[list[str]] = []
    for alert in sorted(data.alerts, key=lambda a: (-a.level, a.since_step)):
        pill = tag("span", words.severity(alert.severity), class_=f"pill {alert.severity}")
        seen = evidence(alert)
        what = join(words.message(alert), void("br"), tag("small", seen))
        rows.append(
            [pill, tag("code", alert.rule), span(alert, words), where(alert, data, words), what]
        )
    return table(_head(names, words), rows, words.say("alerts.caption"), class_="wide")


def actions_table(data: ReportData, words: Words) -> Html:
    """One row per request with its answer; nothing without requests."""
    if not data.actions:
        return Html("")
    names = ("action", "asked", "done", "status", "reason")
    rows = [_action(action, words) for action in data.actions]
    return table(_head(names, words), rows, words.say("actions.caption"), class_="wide")


def _action(action: Action, words: Words) -> list[str]:
    status = tag("span", words.status(action.status), class_=f"pill {action.status}")
    detail = f" {action.detail}" if action.detail else ""
    return [
        tag("code", describe(action)),
        _step(action.asked_step),
        _step(action.done_step),
        join(status, detail),
        tag("code", action.rule),
    ]


def _step(step: int | None) -> str:
    return "–" if step is None else format_number(step)


def _head(names: tuple[str, ...], words: Words) -> list[str]:
    return [words.say(f"column.{name}") for name in names]


def score(data: ReportData, words: Words) -> Html:
    """The parts of the health score as bars with their reasons."""
    parts = [_part(name, part, words) for name, part in data.health.parts.items()]
    caption = tag("p", words.score_meaning(data.health), class_="caption")
    body = tag("div", caption, tag("ul", *parts, class_="parts"), class_="card")
    return tag("section", tag("h2", words.say("score.title")), body, id="score")


def _part(name: str, part: Part, words: Words) -> Html:
    label = tag("span", words.say(f"part.{name}"))
    why = " · ".join(reason.text(words.lang) for reason in part.reasons)
    reasons = tag("small", why) if why else Html("")
    if part.score is None:
        track, number = tag("div", class_="track"), tag("b", words.say("score.unknown"))
        return tag("li", label, track, number, reasons, class_="unknown")
    level = "" if part.score >= 80 else "middle" if part.score >= 50 else "low"
    bar = tag("i", class_=level or None, style=f"width:{part.score:.0f}%")
    return tag("li", label, tag("div", bar, class_="track"), tag("b", f"{part.score:.0f}"), reasons)


def run(data: ReportData, words: Words) -> Html:
    """Where the run lies, what its files hold, and its fingerprint."""
    files = data.files
    counts = words.say(
        "run.files",
        total=files.total,
        valid=files.valid,
        damaged=files.damaged,
        foreign=files.foreign,
        rows=format_number(files.rows),
        lost=format_number(files.damaged_rows),
    )
    parts = [tag("p", tag("code", data.path)), tag("p", counts, class_="caption")]
    for key, lines in (("run.problems", data.problems), ("run.troubles", data.troubles)):
        if lines:
            items = [tag("li", line) for line in lines[:MAX_LINES]]
            parts += [tag("h3", words.say(key)), tag("ul", *items)]
    if data.tags:
        rows: list[list[str]] = [[key, value] for key, value in data.tags.items()]
        head = _head(("key", "value"), words)
        parts.append(table(head, rows, words.say("run.fingerprint"), class_="pairs"))
    body = tag("div", *parts, class_="card")
    return tag("section", tag("h2", words.say("run.title")), body, id="run")
