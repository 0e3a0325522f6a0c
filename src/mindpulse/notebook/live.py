"""A run at one moment, as a notebook shows it: HTML, and text where there is no HTML."""

from __future__ import annotations

from pathlib import Path

from mindpulse.messages import text
from mindpulse.notebook.look import Glance
from mindpulse.notebook.spark import SEVERITY_COLOURS, WIDTH, spark
from mindpulse.report.data import LEAD, Alert
from mindpulse.report.figures import belongs, describe
from mindpulse.report.first_screen import span
from mindpulse.report.markup import Html, join, tag
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import format_duration, format_number
from mindpulse.report.verdict import judge
from mindpulse.report.words import Words

MOST_ALERTS = 5
STATE_COLOURS = {"healthy": "#156b3f", "recovered": "#156b3f", "unknown": "#626b76"}
STATE_COLOURS |= {"attention": "#b7791f", "unhealthy": "#b3124f"}
PILL = "color:#fff;border-radius:4px;padding:0 6px;font-weight:600;background:"


class Waiting:
    """Shown while there is no run yet."""

    def __init__(self, path: Path, lang: str) -> None:
        self._text = text("notebook.waiting", lang, path=path)

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return tag("div", self._text)


class Live:
    """A compact view: verdict, score, last step, open alerts, the main curves.

    Args:
        glance: the run at that moment.
        lang: "en" or "zh".
    """

    def __init__(self, glance: Glance, lang: str = "en") -> None:
        self.glance, self.data = glance, glance.data
        self.ended = glance.ended
        self._words = Words(lang)
        self._verdict = judge(glance.data)

    def __repr__(self) -> str:
        state = self._words.say(f"verdict.{self._verdict.state}")
        lines = [f"{self._name}: {state}; {'; '.join(self._facts())}"]
        lines += [f"  [{severity}] {what}" for _, severity, what in self._alerts()]
        return "\n".join([*lines, *(f"  {' '.join(line)}" for line in self._curves())])

    def _repr_html_(self) -> str:
        state = self._verdict.state
        pill = tag("span", self._words.say(f"verdict.{state}"), style=PILL + STATE_COLOURS[state])
        head = tag("div", tag("b", self._name), " ", pill, " ", " · ".join(self._facts()))
        alerts = [
            tag("div", tag("span", severity, style=PILL + SEVERITY_COLOURS[level]), " ", what)
            for level, severity, what in self._alerts()
        ]
        curves = [self._curve(name, scalar) for name, scalar in self.data.series.items()]
        grid = tag("div", *curves, style="display:flex;flex-wrap:wrap;gap:12px 24px")
        return tag("div", head, *alerts, grid if curves else Html(""), style="line-height:1.6")

    @property
    def _name(self) -> str:
        return Path(self.data.path).resolve().name

    def _say(self, key: str, **values: object) -> str:
        return text(f"notebook.{key}", self._words.lang, **values)

    def _facts(self) -> list[str]:
        """Score, last step, rank, how old it is."""
        words, score = self._words, self.data.health.score
        number = words.say("score.unknown") if score is None else f"{score:.0f}"
        note = words.score_note(self.data.health)
        found = [f"{words.say('score.title')}: {number}" + (f" ({note})" if note else "")]
        steps = self.data.steps
        found.append(
            self._say("step", step=format_number(steps[1])) if steps else self._say("none")
        )
        if len(self.data.ranks) > 1:
            found.append(self._say("rank", rank=self.data.rank, count=len(self.data.ranks)))
        age = self.glance.age_s
        if self.ended:
            found.append(self._say("ended"))
        elif age is not None:
            found.append(self._say("age", age=format_duration(age)))
        return found

    def _alerts(self) -> list[tuple[str, str, str]]:
        """(severity, its word, what is said) of the open alerts, gravest first."""
        firing = [alert for alert in self.data.alerts if alert.end_step is None]
        firing.sort(key=lambda alert: (-alert.level, alert.since_step))
        told = [
            (alert.severity, self._words.severity(alert.severity), self._sentence(alert))
            for alert in firing[:MOST_ALERTS]
        ]
        if len(firing) > MOST_ALERTS:
            level = firing[MOST_ALERTS].severity
            more = self._say("more", count=len(firing) - MOST_ALERTS)
            told.append((level, self._words.severity(level), more))
        return told

    def _sentence(self, alert: Alert) -> str:
        return f"{self._words.message(alert)} ({alert.rule}; {span(alert, self._words)})"

    def _curves(self) -> list[tuple[str, str]]:
        """(name, its numbers) of each curve."""
        return [
            (f"{self._words.curve(name)[0]}:", self._numbers(scalar))
            for name, scalar in self.data.series.items()
        ]

    def _numbers(self, scalar: Scalar) -> str:
        unit = f" {scalar.spec.unit}" if scalar.spec.unit else ""
        parts = [format_number(scalar.last) + unit]
        for key, found in (("least", scalar.low), ("largest", scalar.high)):
            if found is not None:
                value, step = format_number(found[1]), format_number(found[0])
                parts.append(self._say(key, value=value, step=step))
        if scalar.not_finite:
            parts.append(self._words.say("fact.not_finite", count=scalar.not_finite))
        return self._words.say("list.comma").join(parts)

    def _curve(self, name: str, scalar: Scalar) -> Html:
        title = self._words.curve(name)[0]
        alerts = [alert for alert in self.data.alerts if belongs(alert, name)]
        drawn = spark(scalar, alerts, describe(scalar, title, self._words))
        size = "110%" if name == LEAD else "100%"
        head = tag("b", title, style=f"font-size:{size}")
        numbers = tag("small", self._numbers(scalar), style="opacity:.75")
        return tag("div", join(head, " ", numbers), drawn, style=f"width:{WIDTH}px;max-width:100%")
