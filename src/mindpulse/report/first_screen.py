"""The first screen: the verdict, the finding to look at first, and the run in six figures."""

from __future__ import annotations

from math import pi

from mindpulse.report.data import Action, Alert, ReportData, StepTime
from mindpulse.report.markup import Html, join, tag, void
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import format_duration, format_number
from mindpulse.report.timeline import describe
from mindpulse.report.verdict import Verdict, judge
from mindpulse.report.words import Words

MAX_PLACES = 6
ICONS = {
    "healthy": "M20 6 9 17l-5-5",
    "recovered": "M20 6 9 17l-5-5",
    "attention": "M12 3 2 20h20L12 3zM12 10v4M12 17.2v.1",
    "unhealthy": "M12 2a10 10 0 1 0 .01 0M12 7v6M12 16.8v.1",
    "unknown": "M12 2a10 10 0 1 0 .01 0M9.3 9a2.8 2.8 0 1 1 3.6 2.9c-.6.3-.9.8-.9 1.5M12 16.8v.1",
}


def draw(data: ReportData, words: Words) -> Html:
    """The section that answers: healthy or not, what, where, since when, what to do."""
    verdict = judge(data)
    grave = "critical" if any(a.severity == "critical" for a in verdict.alerts) else ""
    finding = _finding(verdict, data, words) if verdict.alerts else Html("")
    head = tag("div", _answer(verdict, data, words), ring(data, words), class_="head")
    return tag(
        "section",
        head,
        finding,
        _facts(data, words),
        class_=f"verdict {verdict.state} {grave}".strip(),
        id="findings",
    )


def _answer(verdict: Verdict, data: ReportData, words: Words) -> Html:
    say = words.say
    icon = tag("svg", void("path", d=ICONS[verdict.state]), viewBox="0 0 24 24", aria_hidden="true")
    state = tag("h2", icon, say(f"verdict.{verdict.state}"), class_="state")
    first, last = data.steps or (0, 0)
    text = say(
        f"verdict.{verdict.state}.text",
        first=format_number(first),
        last=format_number(last),
        count=len(verdict.alerts),
        firing=verdict.firing,
    )
    parts = data.health.parts.items()
    blind = [say(f"part.{name}") for name, part in parts if part.score is None]
    note = say("verdict.blind", parts=say("list.comma").join(blind)) if blind else ""
    concerns = [tag("p", words.sentence(reason)) for reason in verdict.concerns]
    return tag("div", state, tag("p", text), *concerns, tag("p", tag("small", note)))


def ring(data: ReportData, words: Words) -> Html:
    """The score as a dial, with the words that say what it is not."""
    say, value = words.say, data.health.score
    round_ = 2 * pi * 44
    rest = void("circle", cx=50, cy=50, r=44, class_="rest")
    dash = f"{round_ * (value or 0) / 100:.1f} {round_:.1f}"
    full = void("circle", cx=50, cy=50, r=44, stroke_dasharray=dash) if value else Html("")
    dial = tag("svg", rest, full, viewBox="0 0 100 100", aria_hidden="true")
    if value is None:
        number = tag("b", say("score.unknown"), class_="word")
    else:
        number = tag("b", f"{value:.0f}", tag("small", say("score.of")))
    beside = words.score_note(data.health)
    note = join(" · ", beside) if beside else Html("")
    label = tag("small", say("score.title"), note)
    return tag("div", tag("div", dial, number, class_="dial"), label, class_="ring")


def _finding(verdict: Verdict, data: ReportData, words: Words) -> Html:
    say, alert = words.say, verdict.alerts[0]
    eyebrow = tag("p", say("finding.first"), " · ", tag("code", alert.rule), class_="eyebrow")
    pill = tag("span", words.severity(alert.severity), class_=f"pill {alert.severity}")
    what = tag("h2", words.message(alert), " ", pill)
    rows = [
        (say("finding.where"), where(alert, data, words)),
        (say("finding.since"), span(alert, words)),
        (say("finding.evidence"), evidence(alert)),
    ]
    details = tag("dl", *(join(tag("dt", name), tag("dd", text)) for name, text in rows if text))
    left = tag("div", eyebrow, what, details, _others(verdict, words))
    return tag("div", left, _advice(alert, data, words), class_="finding")


def _others(verdict: Verdict, words: Words) -> Html:
    """The other rules that fired, each once."""
    first, *rest = verdict.alerts
    others = {alert.rule: alert for alert in reversed(rest) if alert.rule != first.rule}
    if not others:
        return Html("")
    items = [
        tag("li", words.say("finding.other", what=words.message(alert), span=span(alert, words)))
        for alert in reversed(others.values())
    ]
    title = tag("h3", words.say("finding.others"))
    return tag("div", title, tag("ul", *items[:MAX_PLACES]), class_="others")


def _advice(alert: Alert, data: ReportData, words: Words) -> Html:
    parts = []
    done = [action for action in data.actions if action.rule == alert.rule]
    if done:
        items = [_done(action, words) for action in done[:4]]
        parts.append(tag("div", tag("h3", words.say("finding.done")), tag("ul", *items)))
    if steps := words.next_steps(alert.rule):
        items = [tag("li", text) for text in steps]
        parts.append(tag("div", tag("h3", words.say("finding.next")), tag("ol", *items)))
    if causes := words.causes(alert.rule):
        items = [tag("li", text) for text in causes]
        parts.append(tag("div", tag("h3", words.say("finding.causes")), tag("ul", *items)))
    return tag("div", *parts, class_="advice")


def _done(action: Action, words: Words) -> Html:
    step = action.done_step if action.done_step is not None else action.asked_step
    status = words.status(action.status)
    at = words.say("maps.step", step=format_number(step)) if step is not None else ""
    pill = tag("span", status, class_=f"pill {action.status}")
    return tag("li", tag("code", describe(action)), f" {at} ", pill)


def where(alert: Alert, data: ReportData, words: Words) -> str:
    """The columns of an alert, and its rank where there are several."""
    places = [_place(column) for column in alert.columns[:MAX_PLACES]]
    places = places or [words.say("finding.whole")]
    if len(alert.columns) > MAX_PLACES:
        places.append(words.say("finding.more", count=len(alert.columns) - MAX_PLACES))
    if len(data.ranks) > 1:
        places.append(words.say("finding.rank", rank=alert.rank))
    return ", ".join(places)


def _place(column: str) -> str:
    """A column without the name of its only axis.

    Example:
        >>> _place("param=layers.2.weight"), _place("layer=2 head=1")
        ('layers.2.weight', 'layer=2 head=1')
    """
    return column if " " in column else column.partition("=")[2] or column


def span(alert: Alert, words: Words) -> str:
    """The steps of an alert in words."""
    since = format_number(alert.since_step)
    if alert.end_step is None:
        return words.say("finding.open", since=since)
    return words.say("finding.span", since=since, end=format_number(alert.end_step))


def evidence(alert: Alert) -> str:
    """The figures that the rule saw: "grad_norm = 81.3, threshold = 50"."""
    pairs = []
    for name, value in alert.evidence.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        pairs.append(f"{name} = {format_number(value) if number else value}")
    return ", ".join(pairs)


def facts(data: ReportData, words: Words) -> list[tuple[str, str, str]]:
    """The run in six figures: (name, value, what to know about it)."""
    say = words.say
    first, last = data.steps or (0, 0)
    shape = say("fact.attempts", attempts=len(data.attempts), ranks=len(data.ranks))
    found = [(say("fact.steps"), f"{first:,}–{last:,}" if data.steps else say("fact.none"), shape)]
    for name, tag_name, extreme in (("loss", "train_loss", "best"), ("grad", "grad_norm", "max")):
        if (scalar := data.series.get(tag_name)) is not None:
            value = format_number(scalar.last)
            found.append((say(f"fact.{name}"), value, _extreme(scalar, extreme, words)))
    if data.step_time is not None:
        found.append(_step_time(data.step_time, words))
    if data.duration_s is not None:
        found.append((say("fact.duration"), format_duration(data.duration_s), ""))
    open_ = sum(alert.end_step is None for alert in data.alerts)
    note = say("fact.open", count=open_) if data.alerts else say("fact.none")
    return [*found, (say("fact.alerts"), str(len(data.alerts)), note)]


def _facts(data: ReportData, words: Words) -> Html:
    cells = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
        for name, value, note in facts(data, words)
    ]
    return tag("dl", *cells, class_="facts")


def _step_time(time: StepTime, words: Words) -> tuple[str, str, str]:
    key = "fact.p99" if time.last_rows is None else "fact.p99_last"
    count = format_number(time.last_rows or 0)
    note = words.say(key, value=format_duration(time.high_s), count=count)
    return words.say("fact.step_time"), format_duration(time.median_s), note


def _extreme(scalar: Scalar, kind: str, words: Words) -> str:
    found = scalar.low if kind == "best" else scalar.high
    if found is None:
        return words.say("fact.not_finite", count=scalar.rows)
    step, value = found
    return words.say(f"fact.{kind}", value=format_number(value), step=format_number(step))
