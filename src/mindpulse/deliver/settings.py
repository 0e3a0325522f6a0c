"""The file of receivers (`--deliver FILE.toml`): who is told what, how, and how often."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mindpulse.deliver.kinds import KINDS
from mindpulse.deliver.outcome import Sender
from mindpulse.deliver.table import Table
from mindpulse.errors import UsageError
from mindpulse.messages import LANGUAGES
from mindpulse.rules.rule import SEVERITIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_RECEIVERS = 32
AT_ONCE = ("alertmanager", "file")  # what is not read by people as it comes
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How one receiver wants to be told. Times are in seconds.

    Attributes:
        min_severity: the lowest that is told.
        resolved: also tell when an alert is over.
        actions: also tell what the watcher advised, asked for, and was answered.
        group_s: how long the first alert waits for others to go with it.
        every_s: one message each so often in the long run.
        burst: how many messages may go at once before that counts.
        give_up_s: how long delivery of an alert is tried.
    """

    name: str
    kind: str
    min_severity: str = "warning"
    lang: str = "en"
    resolved: bool = True
    actions: bool = False
    group_s: float = 2.0
    every_s: float = 10.0
    burst: int = 5
    give_up_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver: how it wants to be told, and what carries messages to it."""

    settings: Settings
    sender: Sender


def load_receivers(path: Path | str) -> tuple[Target, ...]:
    """The receivers of a file, with their secrets read.

    Raises:
        UsageError: the file cannot be read, or a receiver in it is wrong; names file, receiver, key
            and value, and never a secret.
    """
    path = Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text in UTF-8"
        raise UsageError(f"{path}: cannot be read: {why}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    found = tables.pop("receiver", None)
    if tables:
        raise UsageError(f"{path}: {next(iter(tables))}: no such key; write [[receiver]] tables")
    if not isinstance(found, list) or not found or not all(isinstance(t, dict) for t in found):
        raise UsageError(f"{path}: no receiver; write at least one [[receiver]] table")
    if len(found) > MAX_RECEIVERS:
        raise UsageError(f"{path}: {len(found)} receivers; use {MAX_RECEIVERS} at most")
    return _targets(found, path)


def _targets(tables: list[Mapping[str, object]], path: Path) -> tuple[Target, ...]:
    targets: dict[str, Target] = {}
    for number, values in enumerate(tables, 1):
        name = values.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            what = f"name = {name!r}" if "name" in values else "name is missing"
            raise UsageError(
                f"{path}: receiver {number}: {what}; give it a short name of letters, digits, dots "
                "and dashes: the run folder keeps by this name what was delivered"
            )
        if name in targets:
            raise UsageError(f"{path}: receiver {name!r} is there twice; each needs its own name")
        target = _target(Table(values, f"{path}: receiver {name!r}", path.parent))
        if target is not None:
            targets[name] = target
    return tuple(targets.values())


def _target(table: Table) -> Target | None:
    off = table.flag("disabled", default=False)
    kind = table.text("type", None, tuple(KINDS))
    at_once = kind in AT_ONCE
    settings = Settings(
        name=table.text("name"),
        kind=kind,
        min_severity=table.text("min_severity", "warning", SEVERITIES),
        lang=table.text("lang", "en", LANGUAGES),
        resolved=table.flag("resolved", default=True),
        actions=table.flag("actions", default=False),
        group_s=table.number("group_s", 0.0 if at_once else 2.0, 0, 3600),
        every_s=table.number("every_s", 0.0 if at_once else 10.0, 0, 86400),
        burst=table.whole("burst", 5, 1, 1000),
        give_up_s=table.number("give_up_s", 3600.0, 1, 604800),
    )
    if off:
        return None
    sender = KINDS[settings.kind](table)
    table.done()
    return Target(settings, sender)
