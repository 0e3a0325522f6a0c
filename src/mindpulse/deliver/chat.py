"""Robots of chat groups: Feishu (Lark), DingTalk, WeCom, Slack.

They answer HTTP 200 to a message that they refuse: what counts is the code in the JSON, or for
Slack the body "ok".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from mindpulse.deliver.http import RATE_LIMIT_S, Check, Http, excerpt
from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import REFUSED, RETRY, Outcome
from mindpulse.deliver.secret import Secret

# Codes that mean "too often", as the platforms document them.
FEISHU_TOO_OFTEN = (11232, 11233, 99991400)
DINGTALK_TOO_OFTEN = (130101, 410100, 90030)
WECOM_TOO_OFTEN = (45009, 45033)
BUSY = -1  # of DingTalk and WeCom: the system is busy
# Bytes of text; the platforms take 20 KB, 20,000 bytes, 2,048 bytes and 40,000 characters in all.
FEISHU_BYTES, DINGTALK_BYTES, WECOM_BYTES, SLACK_BYTES = 15_000, 15_000, 2_048, 15_000


@dataclass(frozen=True, slots=True)
class Feishu:
    """A custom bot of Feishu or Lark, signed if it has a secret."""

    http: Http
    secret: Secret | None = None

    def send(self, message: Message, now: float) -> Outcome:
        """Sends a text; delivered when the answer says `code` 0."""
        fields: dict[str, object] = {}
        if self.secret:
            stamp = str(int(now))
            fields = {"timestamp": stamp, "sign": feishu_sign(stamp, self.secret)}
        words = message.text(FEISHU_BYTES).replace("<at", "< at")  # nobody is called by a name
        fields |= {"msg_type": "text", "content": {"text": words}}
        return self.http.post(as_json(fields), check=code_is_0("code", "msg", FEISHU_TOO_OFTEN))


@dataclass(frozen=True, slots=True)
class DingTalk:
    """A custom robot of DingTalk, signed if it has a secret."""

    http: Http
    secret: Secret | None = None

    def send(self, message: Message, now: float) -> Outcome:
        """Sends a text; delivered when the answer says `errcode` 0."""
        query = ""
        if self.secret:
            stamp = str(round(now * 1000))
            query = urlencode({"timestamp": stamp, "sign": dingtalk_sign(stamp, self.secret)})
        fields = {"msgtype": "text", "text": {"content": message.text(DINGTALK_BYTES)}}
        check = code_is_0("errcode", "errmsg", DINGTALK_TOO_OFTEN)
        return self.http.post(as_json(fields), check=check, query=query)


@dataclass(frozen=True, slots=True)
class WeCom:
    """A robot of a WeCom group. Its address is its only secret."""

    http: Http

    def send(self, message: Message, now: float) -> Outcome:
        """Sends a text; delivered when the answer says `errcode` 0."""
        fields = {"msgtype": "text", "text": {"content": message.text(WECOM_BYTES)}}
        return self.http.post(
            as_json(fields), check=code_is_0("errcode", "errmsg", WECOM_TOO_OFTEN)
        )


@dataclass(frozen=True, slots=True)
class Slack:
    """An incoming webhook of Slack. Its address is its only secret."""

    http: Http

    def send(self, message: Message, now: float) -> Outcome:
        """Sends a text; delivered when the answer is "ok"."""
        words = message.text(SLACK_BYTES)
        for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            words = words.replace(raw, escaped)
        return self.http.post(as_json({"text": words}), check=_says_ok)


def feishu_sign(timestamp: str, secret: Secret) -> str:
    """The signature of Feishu: HMAC-SHA256 over nothing, the key being "timestamp\\nsecret".

    Args:
        timestamp: seconds since the epoch.

    Example:
        >>> feishu_sign("1599360473", Secret("demo-secret"))
        '3/MaVZ8JLIy4TUG+7KSFJqvUkTKd+HWY8g+56DZWq8s='
    """
    key = f"{timestamp}\n{secret.reveal()}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()


def dingtalk_sign(timestamp: str, secret: Secret) -> str:
    """The signature of DingTalk: HMAC-SHA256 over "timestamp\\nsecret", the key being the secret.

    Args:
        timestamp: milliseconds since the epoch.

    Returns:
        As Base64; in an address it is percent-encoded.

    Example:
        >>> dingtalk_sign("1577262236757", Secret("this is secret"))
        'hmPWwU+7lVdm3ZZz0r9tSfx0L4Q26jWOZr9+Gs6EZQM='
    """
    text = f"{timestamp}\n{secret.reveal()}".encode()
    digest = hmac.new(secret.reveal().encode(), text, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def as_json(fields: Mapping[str, object]) -> bytes:
    """JSON in UTF-8 as it is: escapes would triple Chinese text, and there are limits."""
    return json.dumps(fields, ensure_ascii=False, allow_nan=False).encode(errors="replace")


def code_is_0(key: str, words: str, too_often: tuple[int, ...]) -> Check:
    """A check of a JSON answer: `key` has to be 0.

    Args:
        words: the key of the explanation.
        too_often: codes of a rate limit.
    """

    def check(body: bytes) -> Outcome | None:
        found = read_object(body)
        code = found.get(key)
        if code == 0 and code is not False:
            return None
        if code is None:
            return Outcome(RETRY, f"HTTP 200 without {key!r} in the answer{excerpt(body)}")
        detail = f"HTTP 200, but {key} {code}{excerpt(str(found.get(words, '')).encode())}"
        if code in too_often:
            return Outcome(RETRY, detail, RATE_LIMIT_S)
        return Outcome(RETRY if code == BUSY else REFUSED, detail)

    return check


def read_object(body: bytes) -> Mapping[str, object]:
    """The JSON object of an answer, {} if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _says_ok(body: bytes) -> Outcome | None:
    if body.strip() == b"ok":
        return None
    return Outcome(REFUSED, f'HTTP 200, but not "ok"{excerpt(body)}')
