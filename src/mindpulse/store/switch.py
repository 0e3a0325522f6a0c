"""`MINDPULSE=off` in the environment: nothing is recorded, whatever the script says."""

from __future__ import annotations

import os
from collections.abc import Mapping

SWITCH = "MINDPULSE"
_OFF = ("off", "0", "false", "no")


def switched_off(environ: Mapping[str, str] = os.environ) -> str:
    """The setting that switches recording off, as it stands; "" where nothing does.

    Example:
        >>> switched_off({"MINDPULSE": "off"}), switched_off({"MINDPULSE": "on"}), switched_off({})
        ('MINDPULSE=off', '', '')
    """
    value = environ.get(SWITCH, "")
    return f"{SWITCH}={value}" if value.strip().lower() in _OFF else ""
