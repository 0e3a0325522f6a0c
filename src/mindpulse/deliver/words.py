"""An event of the watcher as one line of text."""

from __future__ import annotations

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.words import alert_text
from mindpulse.messages import request_text, text
from mindpulse.watcher import ActionEvent, Event


def line(event: Event, lang: str = "en") -> str:
    """The event in words, without a newline.

    Example:
        >>> line(ActionEvent("request", rule="big", verb="stop", seq=3, step=90))
        'request 3 (big): stop the training before step 90'
    """
    if isinstance(event, AlertEvent):
        return alert_text(event, lang)
    if event.kind == "rejected":
        return text("action.rejected", lang, detail=event.detail)
    if event.kind == "answer":
        return _answer(event, lang)
    return text(
        f"action.{event.kind}",
        lang,
        rule=event.rule,
        request=request_text(event.verb, event.args, lang),
        seq=event.seq,
        step=event.step,
        detail=text(event.held.key, lang, **event.held.values) if event.held else "",
    )


def _answer(event: ActionEvent, lang: str) -> str:
    answer = event.answer
    status = answer.status if answer else "failed"
    return text(
        "action.answer",
        lang,
        seq=event.seq,
        rank=answer.rank if answer else 0,
        status=text(f"status.{status}", lang),
        step=event.step,
        detail=f" ({event.detail})" if event.detail else "",
    )
