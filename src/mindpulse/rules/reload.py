"""A rule file that is read again when it was changed, while what it said before goes on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import RuleError
from mindpulse.rules.derived import Record
from mindpulse.rules.expression import Expression
from mindpulse.rules.load import load_rules, read_rules
from mindpulse.rules.rule import Rule

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of a file that was changed.

    Attributes:
        added, removed, changed: names of rules; all are () if the new file is not used.
        problem: why it is not used, "" if it is, or if that was said before.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problem: str = ""


class RulesFile:
    """The shipped rules, with those of a file over them.

    Args:
        path: the file; None for the shipped rules alone, which never change.

    Attributes:
        rules: the rules to judge by. One that a reload leaves as it was stays the same object.

    Raises:
        RuleError: the file cannot be used at the beginning.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "my.toml"
        >>> _ = path.write_text('[[rule]]\\nname = "a"\\nexpr = "last(x) > 1"\\n')
        >>> file = RulesFile(path)
        >>> _ = path.write_text('[[rule]]\\nname = "a"\\nexpr = "last(x) > 20"\\n')
        >>> file.changed(), file.changed()
        (False, True)
        >>> file.reload().changed
        ('a',)
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._used = self._seen = self._stamp()
        self._told = ""
        self.rules = load_rules(path)

    def changed(self) -> bool:
        """Whether the file is another one than was read last; costs one look at its entry.

        True at the second look that finds it so: an editor may still be writing at the first.
        """
        stamp = self._stamp()
        settled, self._seen = stamp == self._seen, stamp
        return settled and stamp != self._used

    def reload(self) -> Reloaded:
        """Reads the file again; one that is broken changes nothing, and is told once."""
        self._used = self._seen = self._stamp()
        try:
            found = read_rules(self._path)
            problems = [str(problem) for problem in found.problems]
        except RuleError as error:
            problems = [str(error)]
        if problems:
            told, self._told = self._told, "\n".join(problems)
            return Reloaded(problem="" if told == self._told else self._told)
        self._told = ""
        before = {rule.name: rule for rule in self.rules}
        after = {rule.name: _same(rule, before.get(rule.name)) for rule in found.rules}
        self.rules = tuple(after.values())
        return Reloaded(
            added=tuple(name for name in after if name not in before),
            removed=tuple(name for name in before if name not in after),
            changed=tuple(n for n in after if n in before and after[n] is not before[n]),
        )

    def _stamp(self) -> _Stamp | None:
        try:
            found = self._path.stat() if self._path else None
        except OSError:
            return None
        return found and (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _same(rule: Rule, before: Rule | None) -> Rule:
    return before if before is not None and _content(before) == _content(rule) else rule


def _content(rule: Rule) -> str:
    """All that a rule says, as text."""
    action = rule.action and (rule.action.request, sorted(rule.action.args.items()))
    plain = (
        rule.name, rule.for_steps, rule.severity, rule.part, rule.hold_steps, rule.cooldown_steps,
        sorted(rule.texts.items()), rule.group, rule.inhibits, [s for s, _ in rule.worse],
        action, rule.action and (rule.action.at_most, rule.action.when is None),
    )  # fmt: skip
    return repr((plain, [_spelt_out(expression) for expression in rule.expressions]))


def _spelt_out(expression: Expression) -> tuple[str, list[object]]:
    """The text of an expression, and those of the derived series behind it."""
    return expression.text, [(r.name, _spelt_out(r.expression)) for r in records_of(expression)]


def records_of(expression: Expression) -> Iterable[Record]:
    """The derived series that an expression reads itself."""
    found = {w.tag: w.record for w in expression.windows if isinstance(w.record, Record)}
    return found.values()
