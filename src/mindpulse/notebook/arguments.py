"""What a line of the magic asks for."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import Any, NoReturn

from mindpulse.errors import UsageError
from mindpulse.messages import LANGUAGES
from mindpulse.notebook.page import HEIGHT

USAGE = """\
%mindpulse live [RUN] [--seconds N] [--every S] [--lang en|zh] [--rules FILE]
    the run while it trains; without RUN the one that this notebook writes
%mindpulse report [RUN] [--lang en|zh] [--rules FILE] [--height PIXELS]
    the training health report
%mindpulse peek EXPRESSION
    shape, statistics and a map of a tensor
%mindpulse snap [--step N] [--run RUN] NAME EXPRESSION
    keep a tensor in the run that this notebook writes
RUN may be a path, or $name or {expression} of the notebook."""

_SNAP_OPTION = re.compile(r"\s*--(?P<name>step|run)(?:=|\s+)(?P<value>\S+)")
_SNAP = re.compile(r"""\s*(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s"]+))\s+(?P<expression>\S.*)""")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{USAGE}")


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1e9:
        raise ValueError
    return number


def _parser(verb: str) -> _Parser:
    parser = _Parser(prog=f"%mindpulse {verb}", add_help=False, allow_abbrev=False)
    parser.add_argument("run", nargs="?")
    parser.add_argument("--lang", choices=LANGUAGES, default="en")
    parser.add_argument("--rules")
    if verb == "live":
        parser.add_argument("--seconds", type=_seconds, default=0.0)
        parser.add_argument("--every", type=_seconds, default=2.0)
    else:
        parser.add_argument("--height", type=int, default=HEIGHT)
    return parser


def parse_view(verb: str, line: str) -> argparse.Namespace:
    """The options of `live` and `report`.

    Raises:
        UsageError: an option is unknown or its value cannot be used.

    Example:
        >>> parse_view("live", "'my run' --seconds 30").run
        'my run'
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}; close the quotation mark") from None
    return _parser(verb).parse_args(words)


def parse_snap(line: str) -> tuple[str, str, dict[str, Any]]:
    """(name, expression, options for `mindpulse.snap`); the expression is as it was typed.

    Raises:
        UsageError: name or expression is missing, or the step is no number.

    Example:
        >>> parse_snap("--step 7 scores softmax(q @ k.T, axis=-1)")
        ('scores', 'softmax(q @ k.T, axis=-1)', {'step': 7})
    """
    options: dict[str, Any] = {}
    while found := _SNAP_OPTION.match(line):
        name, value = found["name"], found["value"]
        if name == "step" and not value.isdecimal():
            raise UsageError(f"--step {value!r}: use a whole number from 0 up")
        options[name] = int(value) if name == "step" else value
        line = line[found.end() :]
    whole = _SNAP.fullmatch(line)
    if whole is None:
        raise UsageError(f"snap {line.strip()!r}: give a name and an expression\n{USAGE}")
    return whole["quoted"] or whole["plain"], whole["expression"].strip(), options
