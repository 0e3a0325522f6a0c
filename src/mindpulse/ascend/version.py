"""Versions in order: releases and release candidates, builds, and CANN's internal numbers.

    8.3.RC1.alpha001 < 8.3.RC1 < 8.3.RC2 < 8.3.0 = 8.3 < 8.3.1        24.1.rc2 < 24.1.rc2.2
    V100R001C20SPC001B251 < V100R001C23SPC002B210

The files of CANN and of the driver say what goes together as a list of such versions, each in
brackets; two in one bracket are the ends of a range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_PARTS = re.compile(r"[0-9]{1,18}|[a-z]+")
_INTERNAL = re.compile(r"v\d+r\d+c\d+", re.IGNORECASE)
# What comes before the release itself, the earliest first. Other words, such as B028 for a build,
# come after it, and numbers after these.
_BEFORE = {"dev": -7, "alpha": -6, "a": -6, "beta": -5, "t": -3, "rc": -2}
_NUMBER = 2
_END = (0, 0)
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_OPERATOR = re.compile(r"(>=|<=|==|!=|>|<)\s*(\S+)")


@total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """One version. All can be compared; what is internal comes after all that is not.

    `+cpu` and the like at the end say how it was built, and count for nothing.

    Example:
        >>> Version("8.3.RC1") < Version("8.3.RC2") < Version("8.3.0") == Version("8.3")
        True
    """

    text: str

    @property
    def internal(self) -> bool:
        """Whether it is CANN's number for itself, such as V100R001C23SPC002B210."""
        return _INTERNAL.match(self.text) is not None

    @property
    def base(self) -> str:
        """An internal version without patch and build: what compatibility is told for.

        Example:
            >>> Version("V100R001C23SPC002B210").base
            'V100R001C23'
        """
        found = _INTERNAL.match(self.text)
        return found.group().upper() if found else self.text

    @property
    def known(self) -> bool:
        """Whether there is a digit in it at all."""
        return any(character.isdigit() for character in self.text)

    def parts(self, count: int = 2) -> str:
        """The first parts, as MindSpore compares CANN: "8.3" of "8.3.0.1.200"."""
        return ".".join(self.text.split(".")[:count])

    def key(self) -> tuple[tuple[int, int], ...]:
        """What versions are compared by."""
        key: list[tuple[int, int]] = []
        word = ""
        for part in [*_PARTS.findall(self.text.lower().partition("+")[0]), ""]:
            if word and not part.isdigit():  # a word without a number
                _append(key, _BEFORE.get(word, 1), 0)
            if part.isdigit():
                _append(key, _BEFORE.get(word, 1) if word else _NUMBER, int(part))
            word = "" if part.isdigit() else part
        _append(key, *_END)
        return tuple(key)

    def _order(self) -> tuple[bool, tuple[tuple[int, int], ...]]:
        return self.internal, self.key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._order() == other._order()

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())

    def __str__(self) -> str:
        return self.text


def _append(key: list[tuple[int, int]], rank: int, number: int) -> None:
    """Zeros before the end, and before what comes before the release, are left out: 8.3.0 = 8.3."""
    if rank <= 0:
        while key and key[-1] == (_NUMBER, 0):
            key.pop()
    key.append((rank, number))


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is what is wanted, as a package asks for another.

    Args:
        wanted: conditions that all hold, `>=1.25,<2`; `==2.10.*` is 2.10 with anything after it,
            and "*" is any version at all.

    Raises:
        ValueError: `wanted` cannot be understood.

    Example:
        >>> satisfies("1.26.4", ">=1.25,<2"), satisfies("2.10.0", "==2.10.*")
        (True, True)
    """
    return all(_holds(Version(version), part.strip()) for part in wanted.split(","))


def _holds(version: Version, condition: str) -> bool:
    if condition == "*":
        return True
    found = _OPERATOR.fullmatch(condition)
    if found is None:
        raise ValueError(f"cannot understand {condition!r}; write for example '>=1.25,<2'")
    operator, text = found.groups()
    if text.endswith(".*"):
        begins = f"{version.text}.".startswith(text.removesuffix("*"))
        return begins if operator == "==" else not begins
    other = Version(text)
    return {
        ">=": version >= other,
        "<=": version <= other,
        "==": version == other,
        "!=": version != other,
        ">": version > other,
        "<": version < other,
    }[operator]


def ranges(text: str) -> tuple[tuple[str, str], ...]:
    """The versions that a list names, each with its two ends.

    Example:
        >>> ranges("[V100R001C15,V100R001C18],[V100R001C30]")
        (('V100R001C15', 'V100R001C18'), ('V100R001C30', 'V100R001C30'))
    """
    found = []
    for inside in _BRACKET.findall(text):
        names = [name.strip() for name in inside.split(",") if name.strip()]
        if names:
            found.append((names[0], names[-1]))
    return tuple(found)


def listed(version: str, text: str) -> bool | None:
    """Whether a list names a version; None where either says nothing.

    An internal version is looked for without its patch and build. An upper end that ends in a point
    stands for all that begin with it, as in the firmware's `[24.1,24.1.]`.

    Example:
        >>> listed("V100R001C23SPC002B210", "[V100R001C21],[V100R001C23]")
        True
        >>> listed("7.5.0.1.129", "[7.0.0,7.2.99]")
        False
    """
    known = ranges(text)
    if not known or not Version(version).known:
        return None
    wanted = Version(Version(version).base)
    return any(_within(wanted, low, high) for low, high in known)


def _within(version: Version, low: str, high: str) -> bool:
    text = version.text.lower()
    if high.endswith(".") and (text == high.lower()[:-1] or text.startswith(high.lower())):
        return True
    return Version(low) <= version <= Version(high)
