"""The watcher: its loop, its events, when it may ask, how it waits, the sign of its presence."""

from __future__ import annotations

from mindpulse.watcher.events import ActionEvent, Event
from mindpulse.watcher.loop import watch
from mindpulse.watcher.policy import Limits

__all__ = ["ActionEvent", "Event", "Limits", "watch"]
