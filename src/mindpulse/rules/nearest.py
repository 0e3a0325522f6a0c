"""A hint at what was meant."""

from __future__ import annotations

import difflib


def nearest(name: str, known: object) -> str:
    """A hint at the known name that looks most like `name`; "" if none does.

    Example:
        >>> nearest("grad_nrom", ["grad_norm", "train_loss"])
        "; did you mean 'grad_norm'?"
    """
    names = [str(item) for item in known] if isinstance(known, dict | list | set | tuple) else []
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
