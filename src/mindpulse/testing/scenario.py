"""Scenarios: series as text, and the alerts that are expected at which step.

    scenario a norm above 50 is an explosion
      rules gradient-explosion gradient-spike
      grad_norm: 1x100 80x5 1x50
      attn_entropy every 10 from 5 layers 2 heads 4: 0.9~0.01x30
      at 101: gradient-explosion firing error
      at 40: gradient-spike unknown
      at 115: gradient-explosion resolved

`docs/rules.md` explains every line; `values` the numbers, `outcome` how a scenario is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from zlib import crc32

from mindpulse.errors import RuleError
from mindpulse.rules.rule import SEVERITIES
from mindpulse.rules.tables import read_file
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk
from mindpulse.testing.values import read_values

EVENTS, STATES = ("firing", "resolved"), ("fired", "quiet", "unknown")
MAX_WHOLE = 100_000
OPTIONS = ("every", "from", "columns", "layers", "heads", "rank", "attempt")
_EXPECT = re.compile(
    r"at\s+(?P<first>\d{1,9})(?:\.\.(?P<last>\d{1,9}))?\s*:\s*(?P<rule>\S+)\s+(?P<what>\S+)"
    r"(?:\s+(?P<severity>\w+))??(?:\s+rank\s+(?P<rank>\d{1,6}))?(?:\s+where\s+(?P<where>.+))?\Z"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """One line of what is to happen.

    Attributes:
        line: its number in the file.
        first, last: the steps between which it is to happen.
        what: of an alert "firing" or "resolved"; of the condition "fired", "quiet", "unknown".
        severity: "" if any will do.
        where: a column that has to be named, "" for any.
    """

    line: int
    first: int
    last: int
    rule: str
    what: str
    severity: str = ""
    rank: int = 0
    where: str = ""


@dataclass(slots=True)
class Scenario:
    """Series, and what is expected of the rules.

    Attributes:
        rules: those that are looked at; () for all.
        chunks: the rows.
    """

    name: str
    line: int
    rules: tuple[str, ...] = ()
    chunks: list[Chunk] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)


@dataclass(slots=True)
class ScenarioFile:
    """The scenarios of a file; `rules_file`: what it wants to be judged by, None for no wish."""

    scenarios: list[Scenario] = field(default_factory=list)
    rules_file: str | None = None


def read_scenarios(path: Path | str) -> ScenarioFile:
    """The scenarios of a file.

    Raises:
        RuleError: it cannot be read, or a line is wrong; names file, line and character.
    """
    return parse_scenarios(read_file(Path(path)), str(path))


def parse_scenarios(text: str, source: str = "scenario") -> ScenarioFile:
    """The scenarios of a text.

    Raises:
        RuleError: a line is wrong; names line and character.

    Example:
        >>> file = parse_scenarios("scenario big\\n  x: 1x3 9\\n  at 4: mine firing\\n")
        >>> file.scenarios[0].chunks[0].rows.values[:, 0].tolist()
        [1.0, 1.0, 1.0, 9.0]
    """
    file = ScenarioFile()
    for number, line in _logical_lines(text):
        try:
            _read_line(file, number, line)
        except RuleError as error:
            message = f"{source}:{number}: {error.message}"
            at = line.find(error.text) if error.text else -1
            raise RuleError(message, line, max(0, at) + error.column) from None
    return file


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments; one that begins with "..." goes on with the line before."""
    held: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.partition("#")[0].strip()
        if line.startswith("...") and held:
            held = held[0], f"{held[1]} {line[3:].strip()}"
            continue
        if held:
            yield held
        held = (number, line) if line else None
    if held:
        yield held


def _read_line(file: ScenarioFile, number: int, line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "scenario":
        if not rest.strip():
            raise RuleError("a scenario needs a name", line)
        file.scenarios.append(Scenario(rest.strip(), number))
    elif word == "file" and not file.scenarios:
        file.rules_file = rest.strip() or None
    elif not file.scenarios:
        raise RuleError("before the first scenario there can only be `file RULES.toml`", line)
    elif word == "rules" and ":" not in line:
        file.scenarios[-1].rules += tuple(rest.split())
    elif word == "at":
        file.scenarios[-1].expected.append(_expected(number, line))
    elif ":" in line:
        scenario = file.scenarios[-1]
        scenario.chunks.append(_chunk(line))
        scenario.chunks.sort(key=lambda chunk: chunk.attempt)
    else:
        raise RuleError("want a series (`grad_norm: 1x100`), `at STEP: ...` or `rules ...`", line)


def _expected(number: int, line: str) -> Expected:
    match = _EXPECT.match(line)
    if match is None:
        raise RuleError("want `at STEP: RULE firing`, or resolved, fired, quiet, unknown", line)
    what, severity = match["what"], match["severity"] or ""
    if what not in (*EVENTS, *STATES):
        words = ", ".join((*EVENTS, *STATES))
        raise RuleError(f"{what!r}: want one of {words}", line, match.start("what"))
    if severity and (severity not in SEVERITIES or what not in EVENTS):
        wanted = f"one of {', '.join(SEVERITIES)} behind firing or resolved"
        raise RuleError(f"{severity!r}: want {wanted}", line, match.start("severity"))
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else first
    if last < first or (last > first and what in STATES):
        raise RuleError("want one step, or for an alert A..B with A below B", line)
    rank = int(match["rank"] or 0)
    return Expected(number, first, last, match["rule"], what, severity, rank, match["where"] or "")


def _chunk(line: str) -> Chunk:
    head, _, text = line.partition(":")
    tag, options = _options(head, line)
    axes, columns = _columns(options, line)
    rank, attempt = (_whole(options, key, at, line) for key, at in (("rank", 0), ("attempt", 1)))
    values = read_values(text.strip(), len(columns), (crc32(tag.encode()), rank, attempt))
    width = values.table.shape[1]
    if width > 1 and not columns:
        axes, columns = ("column",), tuple((f"c{number}",) for number in range(width))
    spec = SeriesSpec(tag, "vector" if columns else "scalar", axes=axes, columns=columns)
    every, start = _whole(options, "every", 1, line), _whole(options, "from", 1, line)
    steps = start + max(1, every) * values.places
    if not len(steps):
        raise RuleError(f"the series {tag} has no row", line)
    return Chunk(rank, attempt, spec, Rows(steps, 0.1 * steps, values.table))


def _options(head: str, line: str) -> tuple[str, dict[str, str]]:
    """Tag and options of a series."""
    words = list(re.finditer(r"\S+", head))
    if not words:
        raise RuleError("want the name of a series before the colon", line)
    tag, *words = words
    options: dict[str, str] = {}
    for key, value in zip_longest(words[::2], words[1::2]):
        if key[0] not in OPTIONS or key[0] in options or value is None:
            known = ", ".join(f"{name} N" for name in OPTIONS)
            raise RuleError(f"{key[0]!r}: want {known}, each once", line, key.start())
        options[key[0]] = value[0]
    return tag[0], options


def _columns(
    options: dict[str, str], line: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Axes and labels, () for what the values tell."""
    if "columns" in options and not options["columns"].isdecimal():
        return ("param",), tuple((name,) for name in options["columns"].split(","))
    count = _whole(options, "columns", 0, line)
    if count:
        return ("column",), tuple((f"c{number}",) for number in range(count))
    layers, heads = (_whole(options, key, 0, line) for key in ("layers", "heads"))
    if layers * heads > MAX_WHOLE:
        raise RuleError(f"{layers:,} layers of {heads:,} heads: at most {MAX_WHOLE:,}", line)
    if heads:
        pairs = [(str(layer), str(head)) for layer in range(layers or 1) for head in range(heads)]
        return ("layer", "head"), tuple(pairs)
    return (("layer",), tuple((str(n),) for n in range(layers))) if layers else ((), ())


def _whole(options: dict[str, str], key: str, default: int, line: str) -> int:
    written = options.get(key, str(default))
    if not written.isdecimal() or len(written) > 7 or int(written) > MAX_WHOLE:
        raise RuleError(f"{key} {written!r}: want a whole number up to {MAX_WHOLE:,}", line)
    return int(written)
