"""Requests, answers, decisions and judgements, and how a line of the control log becomes one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mindpulse.control.schema import (
    ANSWER_FIELDS,
    DECISION_FIELDS,
    JUDGEMENT_FIELDS,
    REQUEST_FIELDS,
    Fields,
    check_fields,
)
from mindpulse.control.verbs import CHANGING, check_args
from mindpulse.errors import UsageError
from mindpulse.jsonlines import encode_line

MAX_LINE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """The watcher asks for something.

    Attributes:
        seq: number of the request, 1, 2, 3... in the run.
        wall_time: seconds since the epoch, UTC.
        verb, args: what to do, see `verbs.VERBS`.
        rule, reason, evidence: why; `evidence` maps a term of the rule to its value.
        step: the optimizer step before which every rank carries it out.
        expires_step: a rank that is past this step does not carry it out any more.
        attempt: the attempt it is meant for; another attempt ignores it.
        alert: id of the alert that led to it, "" for a request by hand.
        ranks: how many ranks have to do it together.
    """

    seq: int
    wall_time: float
    verb: str
    args: Mapping[str, float]
    rule: str
    reason: str
    evidence: Mapping[str, float]
    step: int
    expires_step: int
    attempt: int
    alert: str = ""
    ranks: int = 1

    @property
    def needs_go(self) -> bool:
        """Whether a rank says only that it is ready, and acts at the step of the decision."""
        return self.ranks > 1 and self.verb in CHANGING


@dataclass(frozen=True, slots=True)
class Answer:
    """A rank says what became of request `seq`, and at which step.

    `status` is ready (it could, and waits for the decision), done, refused, expired or failed;
    `detail` says more to a reader; `data` holds what an undo would need, for example
    {"lr_before": 1e-3, "lr_after": 5e-4}.
    """

    seq: int
    wall_time: float
    rank: int
    attempt: int
    step: int
    status: str
    detail: str = ""
    data: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whoever asked several ranks has heard them all: go, before this step; or nobody acts.

    Attributes:
        step, expires_step: take the place of those of the request.
        reason: why nobody acts, "" for a go.
    """

    seq: int
    wall_time: float
    go: bool
    step: int
    expires_step: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What request `seq` brought, some steps later.

    Attributes:
        step: the newest step when it was judged.
        effect: "helped" (the rule is quiet), "better", "none" or "unknown".
        before, after: the terms of the rule when it was asked, and now.
    """

    seq: int
    wall_time: float
    step: int
    effect: str
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line of the log that is not obeyed, and why."""

    line: str
    why: str


Said = Request | Answer | Decision | Judgement
Message = Said | Rejected

_KINDS: dict[str, tuple[type, Fields]] = {
    "request": (Request, REQUEST_FIELDS),
    "answer": (Answer, ANSWER_FIELDS),
    "decision": (Decision, DECISION_FIELDS),
    "judgement": (Judgement, JUDGEMENT_FIELDS),
}


def parse_line(line: bytes) -> Message:
    """One line as a message; anything that does not fit the schema becomes `Rejected`.

    Example:
        >>> parse_line(b'{"kind": "request", "verb": "rm"}').why[:15]
        'fields missing:'
    """
    try:
        return _parse(line)
    except (UsageError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        return Rejected(line[:500].decode(errors="replace"), str(error))


def _parse(line: bytes) -> Said:
    if len(line) > MAX_LINE_BYTES:
        raise UsageError(f"{len(line)} bytes: at most {MAX_LINE_BYTES} are read")
    found = json.loads(line)
    kind = found.pop("kind", None) if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UsageError(f"kind is {kind!r}: want one of {', '.join(_KINDS)}")
    made, wanted = _KINDS[kind]
    told: dict[str, Any] = check_fields(found, wanted)
    if kind == "request":
        told["args"] = check_args(told["verb"], told["args"])
    if "expires_step" in told and told["expires_step"] < told["step"]:
        raise UsageError("expires_step is before step")
    said: Said = made(**told)
    return said


def encode(message: Said) -> bytes:
    """The line of a message, refused here if the other side would reject it."""
    kind = next(name for name, (made, _) in _KINDS.items() if isinstance(message, made))
    content = {f.name: getattr(message, f.name) for f in fields(message)}
    line = encode_line({"kind": kind, **content})
    read = parse_line(line.rstrip(b"\n"))
    if isinstance(read, Rejected):
        raise UsageError(f"this {kind} would be rejected: {read.why}")
    return line
