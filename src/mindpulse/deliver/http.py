"""One POST, and what came of it: time limits, proxies, certificates, answers of every kind."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mindpulse.deliver.outcome import REFUSED, RETRY, SENT, Outcome
from mindpulse.deliver.secret import Secret, redact
from mindpulse.errors import UsageError

if TYPE_CHECKING:
    import requests

MAX_ANSWER_BYTES = 64 << 10
SHOWN = 200  # characters of an answer
RATE_LIMIT_S = 60.0  # where a receiver says "too often" and not how long
LONGEST_WAIT_S = 3600.0
AGAIN = (408, 425, 429)  # and all from 500 on

Check = Callable[[bytes], Outcome | None]


@dataclass(frozen=True, slots=True)
class Http:
    """How to reach a receiver.

    Attributes:
        address: where to post to; a text if nothing in it is secret.
        timeout_s: for connecting, for each silence of the receiver, and for its whole answer.
        ca_file: certificates to trust instead of the usual ones, "" for those.
        headers: sent with each request.
    """

    address: Secret | str
    timeout_s: float = 10.0
    ca_file: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def post(
        self,
        body: bytes,
        content_type: str = "application/json; charset=utf-8",
        *,
        check: Check | None = None,
        headers: Mapping[str, Secret] | None = None,
        query: str = "",
    ) -> Outcome:
        """Posts once.

        Args:
            check: looks into the body of a successful answer; None from it means delivered.
            headers: those that are secret.
            query: added to the address.
        """
        import requests
        import urllib3

        secret = {name: value.reveal() for name, value in (headers or {}).items()}
        known = {"Content-Type": content_type, "User-Agent": "mindpulse", **self.headers, **secret}
        address = self.address if isinstance(self.address, str) else self.address.reveal()
        address += ("&" if "?" in address else "?") + query if query else ""
        try:
            with requests.Session() as session:
                answer = session.post(
                    address,
                    data=body,
                    headers=known,
                    auth=_leave_alone,
                    timeout=self.timeout_s,
                    verify=self.ca_file or True,
                    allow_redirects=False,
                    stream=True,
                )
                return _judge(answer, _read(answer, self.timeout_s), check)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            return self._failure(error)

    def _failure(self, error: BaseException) -> Outcome:
        import requests
        import urllib3

        timeouts = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
        if isinstance(error, requests.exceptions.SSLError):
            return Outcome(RETRY, redact(f"no secure connection: {_innermost(error)}"))
        if isinstance(error, requests.exceptions.ProxyError):
            return Outcome(RETRY, redact(f"the proxy failed: {_innermost(error)}"))
        if isinstance(error, timeouts):
            return Outcome(RETRY, f"no answer within {self.timeout_s:g} s")
        return Outcome(RETRY, redact(_innermost(error)))


def check_address(text: str, *, secret_inside: bool) -> None:
    """Refuses what is no address, and one that would carry a secret through the open network.

    Raises:
        UsageError: without quoting the address.
    """
    try:
        split = urlsplit(text)
        host, _ = split.hostname, split.port
    except ValueError:
        split, host = urlsplit(""), None
    if split.scheme not in ("http", "https") or not host or any(c <= " " for c in text):
        raise UsageError(
            "is no address; write it as https://HOST/PATH (not shown: it may be secret)"
        )
    if secret_inside and split.scheme == "http" and not is_loopback(host):
        raise UsageError(
            "would send a secret in the clear; use https:// (http:// only on loopback)"
        )


def is_loopback(host: str) -> bool:
    """Whether a name or number stands for this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _leave_alone(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keeps requests from putting passwords of ~/.netrc over our own headers."""
    return request


def _read(answer: requests.Response, timeout_s: float) -> bytes:
    """The beginning of the body, in bounded time however slowly it drips."""
    end, body = time.monotonic() + timeout_s, b""
    while len(body) < MAX_ANSWER_BYTES:
        piece = answer.raw.read1(MAX_ANSWER_BYTES, decode_content=True)
        if not piece:
            return body
        body += piece
        if time.monotonic() > end:
            raise TimeoutError
    return body


def _judge(answer: requests.Response, body: bytes, check: Check | None) -> Outcome:
    status = answer.status_code
    detail = f"HTTP {status} {_phrase(status)}".rstrip()
    if 200 <= status < 300:
        return (check(body) if check else None) or Outcome(SENT, detail)
    if 300 <= status < 400:
        return Outcome(REFUSED, f"{detail}: redirected elsewhere; give the final address")
    detail += excerpt(body)
    if status in AGAIN or status >= 500:
        wait_s = _retry_after(answer.headers.get("Retry-After"))
        return Outcome(RETRY, detail, wait_s or (RATE_LIMIT_S if status == 429 else 0.0))
    return Outcome(REFUSED, detail)


def excerpt(body: bytes) -> str:
    """The beginning of an answer, in one line, without secrets; "" if it is empty."""
    words = " ".join(redact(body.decode("utf-8", "replace")).split())
    words = "".join(c for c in words if c.isprintable())
    return f": {words[:SHOWN]}{'...' if len(words) > SHOWN else ''}" if words else ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _retry_after(value: str | None) -> float:
    """Seconds of a Retry-After header, a number or a date; 0.0 if there is none."""
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    try:
        return min(LONGEST_WAIT_S, Retry().parse_retry_after(value)) if value else 0.0
    except (InvalidHeader, OverflowError):
        return 0.0


def _innermost(error: BaseException) -> str:
    """What went wrong, from the error at the bottom: those above it quote the address."""
    found, seen = error, {id(error)}
    while (below := _below(found)) is not None and id(below) not in seen:
        found = below
        seen.add(id(found))
    if isinstance(found, socket.gaierror):
        return "the name of the host cannot be resolved"
    if isinstance(found, ssl.SSLError):  # its number is none of the system's
        return str(getattr(found, "verify_message", "") or found.reason or type(found).__name__)
    if isinstance(found, OSError) and found.errno is not None and found.errno in errno.errorcode:
        return os.strerror(found.errno)
    if isinstance(found, ConnectionError):
        return "the connection was closed without an answer"
    return type(found).__name__


def _below(error: BaseException) -> BaseException | None:
    candidates: list[Any] = [getattr(error, "reason", None), *error.args]
    candidates += [error.__cause__, error.__context__]
    return next((c for c in candidates if isinstance(c, BaseException)), None)
