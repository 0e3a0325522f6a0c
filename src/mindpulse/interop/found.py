"""What was recognised, and how to open it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindpulse.store.run import Run


@dataclass(frozen=True, slots=True)
class Found:
    """What was recognised.

    Attributes:
        path: what is read: the file or folder that was given, or one in it.
        kind: a short name, the same in run_tags["source_format"] where one file is read.
        title: the same in words.
        why: what it was recognised by.
        read: opens it.
    """

    path: Path
    kind: str
    title: str
    why: str
    read: Callable[[], Run]
