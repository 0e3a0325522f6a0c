"""The score of a run: alerts and the trend of its loss as evidence, and what the fit makes of it.

Alerts are those of the rules replayed over the run and those that a watcher wrote. A part without a
signal is unknown and moves nothing; a run without any known part has no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindpulse.alerts import RESOLVED, AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.health.evidence import Evidence, found_of, last_events
from mindpulse.health.fitted import Fit, load_fit
from mindpulse.health.judging import Judgement, judge_run
from mindpulse.health.trend import concern_about
from mindpulse.health.values import Health, Part, Reason
from mindpulse.messages.watch_texts import WATCHER_RULE_TEXTS
from mindpulse.rules.rule import PARTS, SEVERITIES, Rule
from mindpulse.store.run import Run

STALE = "warning"  # how grave a loss is that did not come down


def score(run: Run, rules: Sequence[Rule]) -> Health:
    """The health of a run: the rules replayed over it, with the alerts that a watcher wrote."""
    return score_of(run, judge_run(run, rules))


def score_of(run: Run, judged: Judgement) -> Health:
    """The same where the run was judged already."""
    fit, events = load_fit(), all_events(run, judged)
    concern = concern_about(run)
    evidence = evidence_of(events, judged, concern is not None)
    parts = {
        name: _part(name, found, last_events(events, name), concern if name == "loss" else None)
        for name, found in evidence.items()
    }
    known = any(part.score is not None for part in parts.values())
    silent = {name: Evidence(known=one.known) for name, one in evidence.items()}
    return Health(
        score=_percent(fit.probability(evidence)) if known else None,
        parts=parts,
        at_best=_percent(fit.probability(silent)) if known else None,
        calibrated=_is_measured(fit, judged, events),
        unknown=tuple(f"{name}: {reason}" for name, reason in sorted(judged.unknown.items())),
    )


def _percent(probability: float) -> float:
    return round(100.0 * probability, 1)


def all_events(run: Run, judged: Judgement) -> list[AlertEvent]:
    """What a watcher wrote and what the rules say now; what both say counts once."""
    told = {(event.id, event.state): event for event in read_alerts(run.path)}
    told.update({(event.id, event.state): event for event in judged.events})
    return list(told.values())


def evidence_of(
    events: Iterable[AlertEvent], judged: Judgement, stale_loss: bool
) -> dict[str, Evidence]:
    """The evidence of every part.

    Args:
        stale_loss: the loss of the whole run is a concern; it counts where the part is not unknown.
    """
    found: dict[str, Evidence] = {}
    kept = list(events)
    for name in PARTS:
        alerts = tuple(found_of(event) for event in last_events(kept, name))
        known = name in judged.known_parts
        stale = stale_loss and name == "loss" and (known or bool(alerts))
        found[name] = Evidence(known, alerts, stale)
    return found


def _is_measured(fit: Fit, judged: Judgement, events: Iterable[AlertEvent]) -> bool:
    names = {*judged.rules, *WATCHER_RULE_TEXTS}
    return judged.fingerprint == fit.rules and all(event.rule in names for event in events)


def _part(
    name: str, evidence: Evidence, alerts: Sequence[AlertEvent], concern: Reason | None
) -> Part:
    if not (evidence.known or alerts):
        return Part(None, "unknown", (Reason("no_signal"),))
    severities = [event.severity for event in alerts]
    reasons = tuple(_reason(event) for event in alerts)
    if evidence.stale_loss and concern is not None:
        severities.append(STALE)
        reasons = (*reasons, concern)
    return Part(
        score=round(load_fit().part_score(name, evidence), 1),
        state=max(severities, key=SEVERITIES.index, default="ok"),
        reasons=reasons,
        concern=concern if evidence.stale_loss else None,
    )


def _reason(event: AlertEvent) -> Reason:
    values: dict[str, str | int] = {"rule": event.rule, "since": event.since_step}
    if event.state == RESOLVED:
        return Reason("alert_over", {**values, "step": event.step})
    return Reason("alert", values)
