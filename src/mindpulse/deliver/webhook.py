"""A webhook of one's own: a JSON document, or a body made from a template."""

from __future__ import annotations

import base64
import hashlib
import hmac
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from mindpulse.alerts.journal import event_fields
from mindpulse.deliver.chat import as_json, read_object
from mindpulse.deliver.http import Http, excerpt
from mindpulse.deliver.message import Alert, Message, explain
from mindpulse.deliver.outcome import REFUSED, Outcome
from mindpulse.deliver.secret import Secret
from mindpulse.errors import UsageError
from mindpulse.jsonlines import plain
from mindpulse.messages import LANGUAGES

NAMES = (
    "title",
    "text",
    "severity",
    "status",
    "run",
    "rule",
    "step",
    "count",
    "lost",
    "receiver",
    "time",
    "alerts",
    "notes",
)
WAYS = ("bearer", "basic", "header", "hmac")
SIGNATURE = "X-MindPulse-Signature"


@dataclass(frozen=True, slots=True)
class Key:
    """How a receiver knows us: a secret, and the way in which it is shown.

    Attributes:
        way: "bearer", "basic" (with `user`), "header" (named `header`) or "hmac" (the SHA-256
            signature of the body).
    """

    secret: Secret
    way: str = "bearer"
    user: str = ""
    header: str = ""

    def headers(self, body: bytes) -> dict[str, Secret]:
        """The header that carries it."""
        value = self.secret.reveal()
        if self.way == "bearer":
            return {"Authorization": Secret(f"Bearer {value}")}
        if self.way == "basic":
            pair = base64.b64encode(f"{self.user}:{value}".encode()).decode()
            return {"Authorization": Secret(f"Basic {pair}")}
        if self.way == "header":
            return {self.header: self.secret}
        digest = hmac.new(value.encode(), body, hashlib.sha256).hexdigest()
        return {SIGNATURE: Secret(f"sha256={digest}")}


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts a document to an address.

    Attributes:
        template: what the JSON shall look like, with `$names` in its texts; None for `document`.
        text: a template of a body that is no JSON, "" for none.
        content_type: of `text`.
        expect: values that the JSON of a successful answer has to have.
    """

    http: Http
    key: Key | None = None
    template: Mapping[str, object] | None = None
    text: str = ""
    content_type: str = "text/plain; charset=utf-8"
    expect: Mapping[str, object] = field(default_factory=dict)

    def send(self, message: Message, now: float) -> Outcome:
        """Posts; delivered when the answer is 2xx and says what is expected."""
        body, content_type = self._body(message, now)
        headers = self.key.headers(body) if self.key else {}
        return self.http.post(body, content_type, check=self._check, headers=headers)

    def _body(self, message: Message, now: float) -> tuple[bytes, str]:
        found = document(message, now)
        if self.text:
            return str(fill(self.text, found)).encode(), self.content_type
        filled = found if self.template is None else fill(self.template, found)
        return as_json(
            filled if isinstance(filled, dict) else {}
        ), "application/json; charset=utf-8"

    def _check(self, body: bytes) -> Outcome | None:
        answer = read_object(body) if self.expect else {}
        for key, wanted in self.expect.items():
            if answer.get(key) != wanted:
                detail = f"HTTP 200, but {key!r} is not {wanted!r}{excerpt(body)}"
                return Outcome(REFUSED, detail)
        return None


def document(message: Message, now: float) -> dict[str, object]:
    """What a webhook gets, as an object that JSON can hold; `NAMES` are among its keys."""
    first = message.alerts[0].event if message.alerts else None
    return {
        "version": 1,
        "source": "mindpulse",
        "receiver": message.receiver,
        "status": message.status,
        "severity": message.severity,
        "title": message.title(),
        "text": message.body(),
        "run": message.run,
        "rule": first.rule if first else "",
        "step": first.step if first else -1,
        "count": len(message.alerts),
        "lost": message.lost,
        "time": iso_time(now),
        "alerts": [alert_object(alert) for alert in message.alerts],
        "notes": list(message.notes),
    }


def alert_object(alert: Alert) -> object:
    """An alert with its words, causes and next steps in both languages."""
    return plain(
        {
            **event_fields(alert.event),
            "run": alert.run,
            "run_dir": alert.place,
            "message": dict(alert.words),
            "causes": {lang: explain(alert, "causes", lang) for lang in LANGUAGES},
            "next": {lang: explain(alert, "next", lang) for lang in LANGUAGES},
        }
    )


def fill(template: object, values: Mapping[str, object]) -> object:
    """The template with each `$name` in its texts replaced; `$$` is a dollar.

    A text that is one name and nothing else becomes the value itself, so "$alerts" is a list and
    "$step" a number.

    Example:
        >>> fill({"msg": "step $step: $title", "n": "$step"}, {"step": 9, "title": "NaN"})
        {'msg': 'step 9: NaN', 'n': 9}
    """
    if isinstance(template, Mapping):
        return {key: fill(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    if not isinstance(template, str):
        return template
    if template[:1] == "$" and template[1:] in values:
        return values[template[1:]]
    told = {key: as_text(value) for key, value in values.items()}
    return string.Template(template).substitute(told)


def check_template(template: object) -> None:
    """Refuses a name that there is not.

    Raises:
        UsageError: quotes it and names those that there are.
    """
    try:
        fill(template, dict.fromkeys(NAMES, ""))
    except KeyError as error:
        raise UsageError(f"${error.args[0]}: no such name; there are {_known()}") from None
    except ValueError:
        raise UsageError(f"a dollar without a name; write $$ for a dollar, or {_known()}") from None


def as_text(value: object) -> str:
    """A value within a text."""
    return value if isinstance(value, str) else as_json({"": value}).decode()[5:-1]


def iso_time(seconds: float) -> str:
    """RFC 3339 in UTC, milliseconds.

    Example:
        >>> iso_time(0.5)
        '1970-01-01T00:00:00.500Z'
    """
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _known() -> str:
    return ", ".join(f"${name}" for name in NAMES)
