"""The watcher: one judge a run, many runs a process, and what they tell.

loop      one run: rows -> judge -> alerts -> requests
fleet     many runs: whose turn it is, which sleep; places finds them
liveness  stalled runs and stopped ranks, by the clock; rhythm learns how long a pause may be
policy    when it may ask; presence the sign that it is there; waiting how it is woken
"""

from __future__ import annotations

from mindpulse.watcher.events import ActionEvent, Event
from mindpulse.watcher.loop import watch, watch_runs
from mindpulse.watcher.policy import Limits

__all__ = ["ActionEvent", "Event", "Limits", "watch", "watch_runs"]
