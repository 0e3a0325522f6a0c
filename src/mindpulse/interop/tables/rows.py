"""What tables share, be they CSV or JSON: which field is the step, the time, the rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from mindpulse.interop.numbers import epoch_seconds, step_of, wall_time

# In this order: the first that is there counts the rows.
STEP_NAMES = (
    "step",
    "_step",
    "steps",
    "global_step",
    "trainer/global_step",
    "train/global_step",
    "iteration",
    "iterations",
    "iter",
    "epoch",
)
OUR_TIME = "wall_time"
TIME_NAMES = (OUR_TIME, "wall time", "_timestamp", "timestamp", "datetime", "time")
RANK_NAMES = ("rank", "global_rank")
TAG_NAMES = ("tag", "metric", "name", "key")
VALUE_NAME = "value"


def pick(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """The name that comes first in `wanted`, whatever its case; None if there is none.

    Example:
        >>> pick(["Loss", "Iteration", "Step"], STEP_NAMES)
        'Step'
    """
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.strip().lower(), name)
    return next((by_lower[name] for name in wanted if name in by_lower), None)


def rank_of(value: float | None) -> int | None:
    """The rank that a number is, None where it can be none."""
    rank = step_of(value)
    return rank if rank is not None and 0 <= rank <= 999_999 else None


def time_of(value: object, name: str = "") -> float | None:
    """Seconds since 1970 of a number or a text; None where it is no time.

    Args:
        name: of the field; as `wall_time`, which is our name, any number is taken as it is.

    Example:
        >>> time_of(12.5), time_of(12.5, "wall_time"), time_of("2024-05-01 10:00:00")
        (None, 12.5, 1714557600.0)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value) if name == OUR_TIME else epoch_seconds(float(value))
        except OverflowError:  # an integer of 309 digits
            return None
    if isinstance(value, str):
        found = wall_time(value)
        return None if math.isnan(found) else found
    return None


def flat(entry: Mapping[str, object], before: str = "", depth: int = 0) -> dict[str, object]:
    """The entry with the keys of nested objects joined by dots.

    Example:
        >>> flat({"step": 3, "loss": {"lm": 2.5, "aux": {"z": 0.1}}})
        {'step': 3, 'loss.lm': 2.5, 'loss.aux.z': 0.1}
    """
    found: dict[str, object] = {}
    for key, value in entry.items():
        name = f"{before}{key}"
        inner = {name: value}
        if isinstance(value, dict) and depth < 20:
            inner = flat(value, f"{name}.", depth + 1)
        for told, item in inner.items():
            while told in found:  # {"a": {"b": 1}, "a.b": 2}
                told += "'"
            found[told] = item
    return found
