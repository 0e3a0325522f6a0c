"""The report as JSON, for programs: the verdict, the score, alerts, actions and figures."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from mindpulse.health import Health
from mindpulse.jsonlines import plain
from mindpulse.report.data import Alert, ReportData
from mindpulse.report.scalar import Scalar
from mindpulse.report.verdict import judge
from mindpulse.report.words import Words

SCHEMA = "mindpulse-report/1"


def report_object(data: ReportData, words: Words) -> dict[str, Any]:
    """The report as plain values; figures of a series instead of its rows."""
    verdict = judge(data)
    return {
        "schema": SCHEMA,
        "run": {
            "id": data.run_id,
            "path": data.path,
            "attempts": list(data.attempts),
            "ranks": list(data.ranks),
            "steps": list(data.steps) if data.steps else None,
            "duration_s": data.duration_s,
            "tags": dict(data.tags),
        },
        "verdict": {
            "state": verdict.state,
            "alerts_above_info": len(verdict.alerts),
            "open": verdict.firing,
            "concerns": [words.sentence(reason) for reason in verdict.concerns],
        },
        "score": _score(data.health, words),
        "alerts": [_alert(alert, words) for alert in data.alerts],
        "actions": [asdict(action) for action in data.actions],
        "series": {tag: _figures(scalar) for tag, scalar in data.series.items()},
        "files": asdict(data.files),
        "troubles": list(data.troubles),
        "problems": list(data.problems),
    }


def _score(health: Health, words: Words) -> dict[str, Any]:
    parts = [
        {
            "name": name,
            "score": part.score,
            "state": part.state,
            "reasons": [reason.text(words.lang) for reason in part.reasons],
        }
        for name, part in health.parts.items()
    ]
    return {
        "value": health.score,
        "at_best": health.at_best,
        "calibrated": health.calibrated,
        "meaning": words.score_meaning(health),
        "parts": parts,
    }


def _alert(alert: Alert, words: Words) -> dict[str, Any]:
    content = asdict(alert)
    content["state"] = "firing" if alert.end_step is None else "resolved"
    content["message"] = words.message(alert)
    content["causes"] = words.causes(alert.rule)
    content["next_steps"] = words.next_steps(alert.rule)
    return content


def _figures(scalar: Scalar) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "unit": scalar.spec.unit,
        "rows": scalar.rows,
        "not_finite": scalar.not_finite,
        "last": scalar.last,
    }
    for name, found in (("min", scalar.low), ("max", scalar.high)):
        if found is not None:
            figures[name] = {"step": found[0], "value": found[1]}
    if scalar.low is not None:
        figures["mean"] = scalar.mean
    return figures


def write_json(data: ReportData, words: Words) -> str:
    """The report as text: strict JSON, NaN and infinities as "nan", "inf" and "-inf"."""
    content = plain(report_object(data, words))
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
