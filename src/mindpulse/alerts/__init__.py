"""Alerts: their life, the judge that drives it, and the journal of what was said."""

from __future__ import annotations

from mindpulse.alerts.life import (
    FIRING,
    INACTIVE,
    PENDING,
    RESOLVED,
    AlertEvent,
    AlertState,
    Finding,
    advance,
    restart,
)

__all__ = [
    "FIRING",
    "INACTIVE",
    "PENDING",
    "RESOLVED",
    "AlertEvent",
    "AlertState",
    "Finding",
    "advance",
    "restart",
]
