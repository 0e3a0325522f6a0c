"""Reading one table of a configuration: each key once, with errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mindpulse.deliver.secret import Secret, from_environment, from_file
from mindpulse.errors import UsageError
from mindpulse.rules.nearest import nearest

# Keys in which people write a secret as it is.
SECRET_KEYS = re.compile(
    r"(secret|token|password|passwd|pass|key|sign|authorization|webhook)", re.I
)


class Table:
    """The table of one receiver. Every getter raises UsageError; `done` refuses what was not read.

    Args:
        where: begins every message, for example "receivers.toml: receiver 'ops'".
        folder: what relative paths are relative to.
    """

    def __init__(self, values: Mapping[str, object], where: str, folder: Path) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.where = where
        self.folder = folder

    def error(self, key: str, problem: str, *, show: bool = True) -> UsageError:
        """An error about a key, with its value unless that may be a secret."""
        shown = show and key in self._values and not SECRET_KEYS.search(key)
        value = f" = {self._values[key]!r}" if shown else ""
        return UsageError(f"{self.where}: {key}{value}: {problem}")

    def text(self, key: str, default: str | None = "", among: Sequence[str] = ()) -> str:
        """A text; with `default` None it has to be there."""
        value = self._take(key, default)
        if value is None:
            raise UsageError(f"{self.where}: {key} is missing{_one_of(among)}")
        if not isinstance(value, str) or (among and value not in among):
            wanted = f"use one of {', '.join(among)}" if among else "use a text in quotes"
            hint = nearest(value, list(among)) if isinstance(value, str) else ""
            raise self.error(key, f"{wanted}{hint}")
        if default is None and not value.strip():
            raise self.error(key, "is empty")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """A finite number within a range, both ends included."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, "use a number")
        if not least <= value <= most:
            raise self.error(key, f"use a number from {least:g} to {most:g}")
        return float(value)

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number within a range, both ends included."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(key, f"use a whole number from {least} to {most}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "use true or false, without quotes")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """A table of texts, {} if it is not there."""
        value = self._take(key, {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            example = '{ team = "nlp" }'
            raise self.error(key, f"use a table of texts, for example {example}", show=False)
        return value

    def names(self, key: str) -> list[str]:
        """A text or a list of texts, at least one."""
        value = self._take(key, [])
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not found:
            raise self.error(key, "use a text or a list of texts")
        if not all(isinstance(name, str) and name.strip() for name in found):
            raise self.error(key, "use texts in quotes")
        return [str(name) for name in found]

    def table(self, key: str) -> Mapping[str, object] | None:
        """A table of anything, None if it is not there."""
        value = self._take(key, None)
        if value is not None and not isinstance(value, dict):
            raise self.error(key, 'use a table, for example { msg = "$title" }', show=False)
        return value

    def path(self, key: str) -> str:
        """The path of a file, "" if it is not given; it need not exist."""
        value = self.text(key)
        return str(self.folder / Path(value).expanduser()) if value else ""

    def certificates(self, key: str) -> str:
        """The path of a file of certificates that exists, "" if it is not given."""
        path = self.path(key)
        if path and not Path(path).is_file():
            raise self.error(
                key, f"{path}: no such file; give the certificates of your own CA (PEM)"
            )
        return path

    def secret(self, key: str) -> Secret | None:
        """The secret of KEY_env or KEY_file, None if neither is there.

        KEY itself is refused: a secret does not belong in this file.
        """
        env, file = self._take(f"{key}_env", None), self._take(f"{key}_file", None)
        if key in self._values:
            raise UsageError(
                f"{self.where}: {key}: secrets do not belong in this file (not shown). Put it into "
                f'an environment variable and write {key}_env = "ITS_NAME", or into a file of mode '
                f'0600 and write {key}_file = "ITS_PATH"'
            )
        if env is None and file is None:
            return None
        if env is not None and file is not None:
            raise UsageError(f"{self.where}: {key}_env and {key}_file: give one of them")
        name = f"{key}_env" if file is None else f"{key}_file"
        value = env if file is None else file
        if not isinstance(value, str):
            raise UsageError(f"{self.where}: {name}: use a text in quotes")
        try:
            if file is None:
                return from_environment(value)
            return from_file(self.folder / Path(value).expanduser())
        except UsageError as error:
            raise UsageError(f"{self.where}: {name}: {error}") from None

    def needed_secret(self, key: str) -> Secret:
        """As `secret`, and it has to be there."""
        found = self.secret(key)
        if found is None:
            raise UsageError(
                f"{self.where}: {key}_env is missing; put the {key} into an environment variable, "
                f'and write {key}_env = "ITS_NAME" (or {key}_file = "PATH", mode 0600)'
            )
        return found

    def done(self) -> None:
        """Refuses keys that nobody asked for."""
        for key in self._values:
            if key not in self._known:
                known = ", ".join(sorted(self._known))
                hint = nearest(key, self._known)
                raise UsageError(f"{self.where}: {key}: no such key{hint}; there are {known}")

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        return self._values.get(key, default)


def _one_of(among: Sequence[str]) -> str:
    return f"; use one of {', '.join(among)}" if among else ""
