"""What the watcher tells its caller."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindpulse.alerts import AlertEvent
from mindpulse.control import Answer
from mindpulse.watcher.policy import Held


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """What the watcher did, or did not do, about an alert.

    Attributes:
        kind: "advice", "request", "held" (not asked, see `held`), "answer" or "rejected"; then "go"
            and "withdrawn" (decided for all ranks), "apart" (they did not act alike) and "judged".
        alert: id of the alert, "" if there is none.
        seq: number of the request, 0 if none was made.
        step: the step asked for or answered.
    """

    kind: str
    rule: str = ""
    alert: str = ""
    verb: str = ""
    args: dict[str, float] = field(default_factory=dict)
    seq: int = 0
    step: int = 0
    held: Held | None = None
    answer: Answer | None = None
    detail: str = ""


Event = AlertEvent | ActionEvent
