"""Sizes and shares as people read them."""

from __future__ import annotations


def human(size: float | None) -> str:
    """Bytes in the unit that fits; "?" if not known.

    Example:
        >>> human(1536), human(3725884129), human(0), human(None)
        ('1.5 KiB', '3.47 GiB', '0 B', '?')
    """
    if size is None:
        return "?"
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def share(value: float | None) -> str:
    """A share in per cent; "?" if not known.

    Example:
        >>> share(0.229)
        '22.9 %'
    """
    return "?" if value is None else f"{100 * value:.3g} %"
