"""The figures of a run: which curves, heat maps and attention maps, with their words."""

from __future__ import annotations

import re

import numpy as np

from mindpulse.report import curve, heat, maps, plot, timeline
from mindpulse.report.data import LEAD, Alert, Heat, ReportData, drawn_tags
from mindpulse.report.markup import Html, join, tag
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import format_number
from mindpulse.report.tables import actions_table, alerts_table
from mindpulse.report.words import Words

_WORD = re.compile(r"\w+")


def curves(data: ReportData, words: Words) -> Html:
    """The loss curve over the full width, the other scalar curves below it."""
    if LEAD in data.series:
        first = tag("div", _curve(data, LEAD, words), class_="lead")
    else:
        first = _none("none.curve", words)
    others = [_curve(data, name, words) for name in drawn_tags(data.series) if name != LEAD]
    rest = tag("div", *others, class_="grid many") if others else Html("")
    title = tag("h2", words.say("nav.curves"))
    return tag("section", title, tag("div", first, rest, class_="grid"), id="curves")


def _curve(data: ReportData, tag_name: str, words: Words) -> Html:
    scalar = data.series[tag_name]
    name, caption = words.curve(tag_name)
    text = plot.Caption(name, caption, describe(scalar, name, words))
    alerts = [alert for alert in data.alerts if belongs(alert, tag_name)]
    shown = curve.Curve(
        id=f"curve-{list(data.series).index(tag_name)}",
        caption=text,
        name=name,
        unit=scalar.spec.unit,
        scalar=scalar,
        alerts=alerts,
        actions=data.actions if tag_name in ("train_loss", "learning_rate", "grad_norm") else (),
        smoothed=tag_name == LEAD,
    )
    return curve.draw(shown, words)


def belongs(alert: Alert, tag_name: str) -> bool:
    """The loss curve shows all alerts but those of speed; another those that looked at it."""
    if tag_name == LEAD:
        return alert.part != "throughput"
    return any(tag_name in _WORD.findall(term) for term in alert.evidence)


def describe(scalar: Scalar, name: str, words: Words) -> str:
    """A curve in one sentence, for those who hear the report or read its Markdown."""
    frame = {
        "name": name,
        "first": format_number(scalar.first_step),
        "last": format_number(scalar.last_step),
        "bad": scalar.not_finite,
    }
    low, high = scalar.low, scalar.high
    if low is None or high is None:
        return words.say("describe.no_finite", **frame)
    return words.say(
        "describe.curve",
        **frame,
        start=format_number(scalar.start),
        end=format_number(scalar.end),
        low=format_number(low[1]),
        low_step=format_number(low[0]),
        high=format_number(high[1]),
        high_step=format_number(high[0]),
    )


def layers(data: ReportData, words: Words) -> Html:
    """The gradient of each layer over the steps."""
    found = [h for h in data.heats if h.tag == "grad_norm_param"]
    body = [_heat(h, words) for h in found] or [_none("none.heat", words)]
    return tag("section", tag("h2", words.say("nav.layers")), *body, id="layers")


def attention(data: ReportData, words: Words) -> Html:
    """Entropy and focus of each head over the steps, and the maps of the last snapshot."""
    found = [h for h in data.heats if h.tag.startswith("attn_")]
    heats = tag("div", *(_heat(h, words) for h in found), class_="grid two") if found else Html("")
    if data.maps:
        pictures = tag("div", maps.draw(data.maps, words), class_="card")
    else:
        pictures = _none("none.maps", words)
    title = tag("h2", words.say("nav.attention"))
    return tag("section", title, tag("div", heats, pictures, class_="grid"), id="attention")


def _heat(shown: Heat, words: Words) -> Html:
    say = words.say
    caption = say(f"heat.{shown.tag}.caption")
    if shown.steps_per_column > 1:
        count = format_number(round(shown.steps_per_column, 1))
        caption += " " + say(f"heat.cell.{shown.keep}", count=count)
    finite = shown.values[np.isfinite(shown.values)]
    low, high = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
    description = say(
        "describe.heat",
        rows=len(shown.rows),
        first=format_number(shown.first_step),
        last=format_number(shown.last_step),
        low=format_number(float(low)),
        high=format_number(float(high)),
    )
    text = plot.Caption(say(f"heat.{shown.tag}"), caption, description)
    drawn = heat.draw(shown, text, say(f"heat.{shown.tag}.unit"), words, f"heat-{shown.tag}")
    return tag("div", drawn, class_="card")


def events(data: ReportData, words: Words) -> Html:
    """The timeline of alerts and actions; says so when nothing happened."""
    title = tag("h2", words.say("nav.timeline"))
    if not (data.alerts or data.actions) or data.steps is None:
        return tag("section", title, _none("none.timeline", words), id="timeline")
    drawn = timeline.draw(data.alerts, data.actions, data.steps, words)
    tables = join(alerts_table(data, words), actions_table(data, words))
    return tag("section", title, tag("div", drawn, tables, class_="card"), id="timeline")


def _none(key: str, words: Words) -> Html:
    return tag("p", words.say(key), class_="none card")
