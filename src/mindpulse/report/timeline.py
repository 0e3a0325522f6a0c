"""Alerts and actions on one line of steps: what happened when, and what was done about it."""

from __future__ import annotations

from collections.abc import Sequence

from mindpulse.report import plot
from mindpulse.report.data import Action, Alert
from mindpulse.report.markup import Html, tag
from mindpulse.report.scales import Scale, format_number, step_scale
from mindpulse.report.words import Words


def draw(
    alerts: Sequence[Alert], actions: Sequence[Action], steps: tuple[int, int], words: Words
) -> Html:
    """The figure: one row per rule, one row of actions, on the axis of steps."""
    x = step_scale(*steps)
    by_rule: dict[str, list[Alert]] = {}
    for alert in sorted(alerts, key=lambda a: (-a.level, a.since_step)):
        by_rule.setdefault(alert.rule, []).append(alert)
    rows = [
        _row(rule, [_bar(alert, x, words) for alert in group]) for rule, group in by_rule.items()
    ]
    if actions:
        rows.append(
            _row(words.say("timeline.actions"), [_mark(action, x, words) for action in actions])
        )
    axis = tag("div", plot.x_axis(x, words.say("axis.step")), class_="lane-axis")
    caption = plot.Caption(words.say("timeline.title"), words.say("timeline.caption"))
    return plot.figure(caption, tag("div", *rows, axis, class_="timeline"))


def _row(name: str, items: Sequence[Html]) -> Html:
    return tag("div", tag("span", name, class_="lane-name"), tag("div", *items, class_="lane"))


def _bar(alert: Alert, x: Scale, words: Words) -> Html:
    left = min(1.0, max(0.0, x.place(alert.since_step - 0.5)))
    end = 1.0 if alert.end_step is None else min(1.0, x.place(alert.end_step + 0.5))
    text = words.say(
        "timeline.bar",
        severity=words.severity(alert.severity),
        rule=alert.rule,
        since=format_number(alert.since_step),
        end=words.say("timeline.open") if alert.end_step is None else format_number(alert.end_step),
    )
    style = f"left:{plot.percent(left)};width:{plot.percent(max(0.0, end - left))}"
    return tag("span", class_=f"bar {alert.severity}", style=style, title=text)


def _mark(action: Action, x: Scale, words: Words) -> Html:
    step = action.done_step if action.done_step is not None else action.asked_step
    place = min(1.0, max(0.0, x.place(step if step is not None else x.low)))
    text = f"{describe(action)} · {words.status(action.status)}"
    return tag(
        "span", class_=f"mark {action.status}", style=f"left:{plot.percent(place)}", title=text
    )


def describe(action: Action) -> str:
    """The request as it would be typed.

    Example:
        >>> describe(Action(1, "scale_lr", {"factor": 0.5}, "r", 10, 12, "done", ""))
        'scale_lr factor=0.5'
    """
    args = " ".join(f"{key}={value}" for key, value in action.args.items())
    return f"{action.verb} {args}".strip()
