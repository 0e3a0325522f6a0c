"""Requests and answers, and how a line of the control log becomes one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mindpulse.control.schema import ANSWER_FIELDS, REQUEST_FIELDS, check_args, check_fields
from mindpulse.errors import UsageError
from mindpulse.jsonlines import encode_line

MAX_LINE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """The watcher asks for something.

    Attributes:
        seq: number of the request, 1, 2, 3... in the run.
        wall_time: seconds since the epoch, UTC.
        verb, args: what to do, see `schema.VERBS`.
        rule, reason, evidence: why; `evidence` maps a term of the rule to its value.
        step: the optimizer step before which every rank carries it out.
        expires_step: a rank that is past this step does not carry it out any more.
        attempt: the attempt it is meant for; another attempt ignores it.
        alert: id of the alert that led to it, "" for a request by hand.
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


@dataclass(frozen=True, slots=True)
class Answer:
    """A rank says what became of request `seq`, and at which step.

    `status` is done, refused, expired or failed; `detail` says more to a reader;
    `data` holds what an undo would need, for example {"lr_before": 1e-3, "lr_after": 5e-4}.
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
class Rejected:
    """A line of the log that is not obeyed, and why."""

    line: str
    why: str


Message = Request | Answer | Rejected


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


def _parse(line: bytes) -> Message:
    if len(line) > MAX_LINE_BYTES:
        raise UsageError(f"{len(line)} bytes: at most {MAX_LINE_BYTES} are read")
    found = json.loads(line)
    kind = found.pop("kind", None) if isinstance(found, dict) else None
    if kind == "answer":
        answer: dict[str, Any] = check_fields(found, ANSWER_FIELDS)
        return Answer(**answer)
    if kind != "request":
        raise UsageError(f"kind is {kind!r}: want 'request' or 'answer'")
    asked: dict[str, Any] = check_fields(found, REQUEST_FIELDS)
    asked["args"] = check_args(asked["verb"], asked["args"])
    if asked["expires_step"] < asked["step"]:
        raise UsageError("expires_step is before step")
    return Request(**asked)


def encode(message: Request | Answer) -> bytes:
    """The line of a message, refused here if the other side would reject it."""
    kind = "request" if isinstance(message, Request) else "answer"
    content = {f.name: getattr(message, f.name) for f in fields(message)}
    line = encode_line({"kind": kind, **content})
    read = parse_line(line.rstrip(b"\n"))
    if isinstance(read, Rejected):
        raise UsageError(f"this {kind} would be rejected: {read.why}")
    return line
