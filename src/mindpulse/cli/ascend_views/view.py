"""One thing that was found, ready to be printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MB = 1024.0**2


@dataclass(frozen=True, slots=True)
class View:
    """What was found.

    Attributes:
        lines: for people.
        values: for programs, "what" and "path" among them.
        well: nothing in it is to be mended.
    """

    lines: list[str]
    values: Mapping[str, Any]
    well: bool = True
