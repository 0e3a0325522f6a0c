"""File names: one tag is one file, or several parts of one.

    train_loss          train_loss.ms
    train_loss, part 2  train_loss.0002.ms
    val/acc.top5        val%2Facc%2Etop5.ms

Everything but ASCII letters, digits, `_` and `-` is percent-encoded, so the only dots are
ours. A name that would be longer than file systems allow keeps its beginning and ends in a
digest: such a file is named by its header alone.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from urllib.parse import quote, unquote

SUFFIX = ".ms"
# 255 bytes are the limit of common file systems; leave room for part and suffix.
MAX_STEM = 200
_DIGEST_CHARACTERS = 32
_NAME = re.compile(r"(?P<stem>(?:[A-Za-z0-9_-]|%[0-9A-F]{2})+)(?:\.(?P<part>\d{4,}))?\.ms")
_DIGEST_NAME = re.compile(r"[A-Za-z0-9_%-]*~[0-9a-f]{32}(?:\.(?P<part>\d{4,}))?\.ms")


def file_name(tag: str, part: int = 1) -> str:
    """The name of a part (from 1 up) of a series.

    Example:
        >>> file_name("val/acc"), file_name("train_loss", 2)
        ('val%2Facc.ms', 'train_loss.0002.ms')
    """
    stem = quote(tag, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(stem) > MAX_STEM:
        digest = hashlib.blake2b(tag.encode(), digest_size=_DIGEST_CHARACTERS // 2).hexdigest()
        stem = f"{stem[: MAX_STEM - _DIGEST_CHARACTERS - 1]}~{digest}"
    return f"{stem}{SUFFIX}" if part == 1 else f"{stem}.{part:04d}{SUFFIX}"


@lru_cache(maxsize=4096)
def parse_name(name: str) -> tuple[str, int] | None:
    """(tag, part) of a file name, None if it is not one of ours.

    The tag is "" where the name holds a digest instead.

    Example:
        >>> parse_name("val%2Facc.0003.ms"), parse_name("model.ckpt")
        (('val/acc', 3), None)
    """
    match = _NAME.fullmatch(name)
    if match:
        try:
            tag = unquote(match["stem"], errors="strict")
        except UnicodeDecodeError:
            return None
        return tag, int(match["part"] or 1)
    match = _DIGEST_NAME.fullmatch(name)
    return ("", int(match["part"] or 1)) if match else None
