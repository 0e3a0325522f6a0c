"""All texts of a report in one language: its own, and those of the rules."""

from __future__ import annotations

import re

from mindpulse.health import Health, Reason, load_fit
from mindpulse.messages import rule_text, text
from mindpulse.report.data import Alert
from mindpulse.report.texts import PREFIX, TEXTS, register

# The catalogue writes causes and steps as one text; a list is easier to work through.
_ITEMS = re.compile(r"[;；]\s*|(?<=。)|(?<=\.)\s+(?=[A-Z])")


class Words:
    """Speaks one language, "en" or "zh".

    Example:
        >>> Words("en").say("axis.step"), Words("zh").say("axis.step")
        ('step', '步')
    """

    def __init__(self, lang: str) -> None:
        self.lang = lang
        register()

    def say(self, key: str, **values: object) -> str:
        """A text of the report."""
        return text(PREFIX + key, self.lang, **values)

    def curve(self, tag: str) -> tuple[str, str]:
        """Name and caption of the curve of a series; the tag itself for a user's own."""
        if f"curve.{tag}" not in TEXTS:
            return tag, ""
        return self.say(f"curve.{tag}"), self.say(f"curve.{tag}.caption")

    def severity(self, name: str) -> str:
        """The name of a severity."""
        return text(f"severity.{name}", self.lang)

    def status(self, name: str) -> str:
        """What became of a request."""
        return self.say("status.open") if name == "open" else text(f"status.{name}", self.lang)

    def message(self, alert: Alert) -> str:
        """What an alert says, as a sentence without its full stop."""
        return _capital(rule_text(alert.rule, "summary", self.lang, alert.message))

    def sentence(self, reason: Reason) -> str:
        """A reason of the health score as a sentence."""
        return _capital(reason.text(self.lang)) + self.say("full_stop")

    def score_note(self, health: Health) -> str:
        """What has to stand beside the number of the score; "" where there is no number."""
        if health.score is None or health.at_best is None:
            return ""
        if not health.calibrated:
            return self.say("score.uncalibrated")
        return self.say("score.at_best", best=f"{health.at_best:.0f}")

    def score_meaning(self, health: Health) -> str:
        """What the number of the score means."""
        if not health.calibrated or health.at_best is None:
            return self.say("score.caption")
        fit, best = load_fit(), f"{health.at_best:.0f}"
        return self.say("score.meaning", runs=fit.runs, prior=f"{100 * fit.prior:g}", best=best)

    def causes(self, rule: str) -> list[str]:
        """Likely causes; [] for a rule that does not ship."""
        return _items(rule_text(rule, "causes", self.lang))

    def next_steps(self, rule: str) -> list[str]:
        """What to do, in order; [] for a rule that does not ship."""
        return _items(rule_text(rule, "next", self.lang))


def _items(sentence: str) -> list[str]:
    """The parts of a sentence that stand between semicolons and full stops.

    Example:
        >>> _items("lower the rate; clip the norm. Then go on")
        ['Lower the rate', 'Clip the norm', 'Then go on']
    """
    parts = (part.strip().rstrip(".。") for part in _ITEMS.split(sentence))
    return [_capital(part) for part in parts if part]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
