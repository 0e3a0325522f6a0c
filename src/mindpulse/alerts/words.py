"""An alert in words, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from mindpulse.alerts.life import FIRING, AlertEvent
from mindpulse.messages import rule_text, text

_SHOWN = 5


def alert_text(event: AlertEvent, lang: str = "en", own: Mapping[str, str] | None = None) -> str:
    """One line that says what, how serious, where, since when, and with which figures.

    Example:
        >>> event = AlertEvent("x", "gradient-explosion", "firing", "error", "gradient", 9, 9, 0.0,
        ...                    0, 1, evidence={"last(grad_norm)": 80.0})
        >>> alert_text(event)
        '[error] gradient-explosion: the gradient norm is above 50; since step 9; \
last(grad_norm) = 80'
    """
    key = "alert.firing" if event.state == FIRING else "alert.resolved"
    return text(
        key,
        lang,
        severity=text(f"severity.{event.severity}", lang),
        rule=event.rule,
        summary=rule_text(event.rule, "summary", lang, own),
        since=event.since_step,
        step=event.step,
        where=_where(event, lang),
        evidence=_evidence(event, lang),
    )


def _where(event: AlertEvent, lang: str) -> str:
    where = ""
    if event.columns:
        shown = ", ".join(event.columns[:_SHOWN])
        rest = len(event.columns) - _SHOWN
        more = text("alert.more", lang, count=rest) if rest > 0 else ""
        where = text("alert.where", lang, columns=shown + more)
    if event.origin and event.columns != (event.origin,):
        where += text("alert.origin", lang, origin=event.origin)
    return where + (text("alert.rank", lang, rank=event.rank) if event.rank else "")


def _evidence(event: AlertEvent, lang: str) -> str:
    terms = ", ".join(f"{term} = {value:.4g}" for term, value in event.evidence.items())
    return text("alert.evidence", lang, terms=terms) if terms else ""
