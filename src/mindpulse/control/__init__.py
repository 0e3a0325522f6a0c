"""The control log: the contract by which the watcher asks and the training answers."""

from __future__ import annotations

from mindpulse.control.agenda import Agenda
from mindpulse.control.log import CONTROL_FILE, ControlLog
from mindpulse.control.message import (
    Answer,
    Decision,
    Judgement,
    Message,
    Rejected,
    Request,
    parse_line,
)

__all__ = [
    "CONTROL_FILE",
    "Agenda",
    "Answer",
    "ControlLog",
    "Decision",
    "Judgement",
    "Message",
    "Rejected",
    "Request",
    "parse_line",
]
