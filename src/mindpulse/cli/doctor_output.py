"""What the doctor found, as text, as JSON, or one line each for an editor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from mindpulse.cli.output import print_json
from mindpulse.doctor.result import Result, in_order
from mindpulse.messages import text

PREFIX = "doctor"
_COLOURS = {"problem": "red", "unknown": "yellow", "ok": "green"}


@dataclass(frozen=True, slots=True)
class Shown:
    """How to print."""

    as_json: bool = False
    lang: str = "en"
    form: str | None = None


def show(results: Sequence[Result], shown: Shown) -> None:
    """Prints results, problems first."""
    ordered = in_order(results)
    if shown.as_json:
        print_json(document(ordered, shown.lang))
    elif shown.form == "problems":
        for result in ordered:
            if result.status != "ok":
                click.echo(line_of(result, shown.lang))
    else:
        _print(ordered, shown.lang)


def line_of(result: Result, lang: str = "en") -> str:
    """One line, as an editor's problem matcher reads it: `doctor: problem: CHECK: EVIDENCE`."""
    return f"{PREFIX}: {result.status}: {result.check}: {_one_line(result.evidence(lang))}"


def document(results: Sequence[Result], lang: str = "en") -> dict[str, Any]:
    """For JSON."""
    counts = Counter(result.status for result in results)
    return {
        "problems": counts["problem"],
        "unknown": counts["unknown"],
        "ok": counts["ok"],
        "results": [
            {
                "check": result.check,
                "title": text(f"doctor.check.{result.check}", lang),
                "status": result.status,
                "finding": result.finding,
                "evidence": result.evidence(lang),
                "cure": result.cure(lang),
                "command": result.command,
                "weight": result.weight,
                "values": _plain(result.values),
            }
            for result in results
        ],
    }


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """Values as JSON has them; what is neither number nor text becomes text."""
    return {
        name: value if isinstance(value, bool | int | float | str) or value is None else str(value)
        for name, value in values.items()
    }


def _print(results: Sequence[Result], lang: str) -> None:
    for result in results:
        click.echo(_line(result, lang))
        if result.status == "ok":
            continue
        click.echo(f"    {text('doctor.head.cure', lang)} {result.cure(lang)}")
        if result.command:
            click.echo(f"    {text('doctor.head.command', lang)} {result.command}")
        click.echo()
    counts = Counter(result.status for result in results)
    problems, unknown, ok = counts["problem"], counts["unknown"], counts["ok"]
    click.echo(text("doctor.count", lang, problems=problems, unknown=unknown, ok=ok))


def _line(result: Result, lang: str) -> str:
    status = text(f"doctor.head.{result.status}", lang)
    return text(
        "doctor.line",
        lang,
        status=click.style(status, fg=_COLOURS[result.status], bold=True),
        title=text(f"doctor.check.{result.check}", lang),
        check=result.check,
        evidence=result.evidence(lang),
    )


def _one_line(told: str) -> str:
    return " ".join(told.split())
