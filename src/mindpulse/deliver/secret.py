"""Secrets: where they come from, and that they go nowhere but to their receiver.

A secret is read from the environment or from a file that nobody else can read. Whatever could be
printed by us or by a library passes through `redact`, which knows every secret that was read.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from mindpulse.errors import UsageError

HIDDEN = "***"
MIN_LENGTH = 4  # characters; hiding anything shorter would garble every text
MAX_BYTES = 8192
MIN_PART = 8  # characters of a part of an address that is hidden by itself
PLAIN_WORD = re.compile(r"[a-z][a-z-]{0,15}")  # "services", "open-apis": no secret
ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
# What these libraries log may hold an address.
TALKING = ("urllib3.connectionpool", "urllib3.util.retry", "requests", "apprise")

_known: set[str] = set()


class Secret:
    """A text that shows itself to nobody but the one who calls `reveal`.

    Raises:
        UsageError: it is too short to be a secret.

    Example:
        >>> secret = Secret("SEC-0123456789")
        >>> print(secret, [secret], redact("key SEC-0123456789 is wrong"))
        *** [Secret(***)] key *** is wrong
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if len(value) < MIN_LENGTH:
            raise UsageError(f"a secret of {len(value)} characters; use {MIN_LENGTH} or more")
        self._value = value
        _known.update(_forms(value))
        for name in TALKING:
            logger = logging.getLogger(name)
            if not any(isinstance(found, _Redacting) for found in logger.filters):
                logger.addFilter(_Redacting())

    def reveal(self) -> str:
        """The secret itself."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


def redact(text: str) -> str:
    """The text without any secret that was read so far."""
    for found in sorted(_known, key=len, reverse=True):
        text = text.replace(found, HIDDEN)
    return text


def from_environment(name: str) -> Secret:
    """The secret that an environment variable holds.

    Raises:
        UsageError: this is no name of a variable (it is not quoted: it may be the secret), or there
            is no such variable.
    """
    if not ENV_NAME.fullmatch(name):
        raise UsageError(
            "takes the name of an environment variable in capitals, for example FEISHU_SECRET; "
            "what is written there is none, and is not shown as it may be the secret itself"
        )
    value = os.environ.get(name, "").strip()
    if not value:
        raise UsageError(f"the environment variable {name} is not set; export it first")
    return Secret(value)


def from_file(path: Path) -> Secret:
    """The secret that a file holds, in its only line.

    Raises:
        UsageError: the file cannot be read, others can read it, or it is not one line of text.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check(os.fstat(descriptor), path)
            text = os.read(descriptor, MAX_BYTES + 1).decode().strip()
        finally:
            os.close(descriptor)
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not text in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not text or "\n" in text or len(text) > MAX_BYTES:
        raise UsageError(f"{path}: write the secret alone into the file, in one line")
    return Secret(text)


def _check(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a file")
    if status.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{path}: belongs to another user; use a file of your own")
    if mode := stat.S_IMODE(status.st_mode) & 0o077:
        raise UsageError(
            f"{path}: others have access to it (mode {mode:03o} beyond the owner's); "
            f"run: chmod 600 {path}"
        )


def _forms(value: str) -> set[str]:
    """What has to be hidden of a secret: itself, as in an address, and parts of an address."""
    parts = {value}
    if "://" in value:
        split = urlsplit(value)
        pieces = [*split.path.split("/"), *(held for _, held in parse_qsl(split.query))]
        pieces += [split.username or "", split.password or ""]
        secret = (p for p in pieces if len(p) >= MIN_PART and not PLAIN_WORD.fullmatch(p))
        parts.update(secret)
        parts |= {text for text in (split.path, split.query) if len(text) >= MIN_PART}
    return {form for part in parts for form in (part, quote(part, safe=""), quote_plus(part))}


class _Redacting(logging.Filter):
    """Takes secrets out of what a library logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), None
        return True
