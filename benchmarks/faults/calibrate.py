"""Fits the health score to recorded runs, and measures what it is worth.

    python -m benchmarks.faults.calibrate [RECORDINGS] [--write] [--report] [--page] [--json FILE]

Fits to the part "tune" alone, and prints how good constants are that were fitted without the recipe
that they judge. `--write` puts the constants into the package; `--report` measures those that are
there on the part "test"; `--page` fills docs/health.md with what was measured. See there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import common
from benchmarks.faults import reliability
from benchmarks.faults.health_fit import (
    PRIOR,
    Floats,
    Judged,
    cross_validated,
    fit,
    for_the_fit,
    forecasts,
    judge_all,
)
from benchmarks.faults.index import RELABELLED, open_recordings, read_index
from benchmarks.faults.intervals import ROUNDS
from benchmarks.faults.page import filled
from benchmarks.faults.reliability import Forecast
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.health.fitted import FIT_FILE, Fit, fingerprint, read_fit, write_fit
from mindpulse.rules.load import load_rules

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "src" / "mindpulse" / "health" / FIT_FILE
PAGE = ROOT / "docs" / "health.md"
DIAGRAM = ROOT / "docs" / "images" / "health-reliability.svg"
MARK = "<!-- {name}: written by `python -m benchmarks.faults.calibrate` -->"
QUICK_ROUNDS = 100


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = common.parser(str(__doc__).splitlines()[0])
    found.add_argument("recordings", type=Path, nargs="?", help="a folder with index.jsonl")
    found.add_argument("--write", action="store_true", help=f"write {FIT_FILE}")
    found.add_argument("--report", action="store_true", help="measure it on the part test")
    found.add_argument("--page", action="store_true", help=f"fill {PAGE.name} and its diagram")
    return found


def fitted(judged: Sequence[Judged]) -> Fit:
    """The constants for these runs, as they stand in the file: rounded."""
    return read_fit(write_fit(fit(for_the_fit(judged), fingerprint(load_rules()))))


def told(said: Floats, judged: Sequence[Judged]) -> list[Forecast]:
    """Forecasts beside what is true."""
    return [Forecast(float(value), one.healthy) for value, one in zip(said, judged, strict=True)]


def constants(found: Fit) -> str:
    """The constants as tables."""
    rows = [(name, f"{value:.2f}") for name, value in found.lost.items()]
    single = ("resolved", "further", "stale_loss")
    rows += [(f"`{name}`", f"{getattr(found, name):.2f}") for name in single]
    parts = [
        (name, f"{found.weight[name]:.2f}", f"{found.quiet[name]:.2f}") for name in found.weight
    ]
    return "\n\n".join(
        [
            f"Fitted to {found.runs} runs of {found.recipes} recipes: {found.healthy} healthy, "
            f"{found.faulty} faulty. A run without findings of which all parts are known has "
            f"{100 * found.best:.0f}; prior {found.prior:g}.",
            common.table(("constant", "log-odds or share"), rows),
            common.table(("part", "weight", "quiet"), parts),
        ]
    )


def cross_section(judged: Sequence[Judged], rounds: int) -> str:
    """Figures of the part "tune", each recipe judged by constants fitted without it."""
    kept = for_the_fit(judged)
    return reliability.section(told(cross_validated(kept), kept), PRIOR, rounds)


def test_section(judged: Sequence[Judged], found: Fit, rounds: int) -> tuple[str, str]:
    """Figures of the part "test", and the diagram as SVG."""
    kept = for_the_fit(judged)
    pairs = told(forecasts(found, kept), kept)
    apart = [one for one in judged if one.run.verdict == RELABELLED and one.scored]
    mean = f"{forecasts(found, apart).mean():.2f}" if apart else "none"
    blind = sum(not one.scored for one in judged)
    notes = (
        f"Runs without a score: {blind}. Faults that did no harm ({len(apart)} runs) are left out; "
        f"mean forecast {mean}."
    )
    body = reliability.section(pairs, found.prior, rounds)
    link = f"![Reliability diagram](images/{DIAGRAM.name})"
    return f"{body}\n\n{link}\n\n{notes}", reliability.diagram(
        pairs, f"Health score, {len(kept)} test runs"
    )


def run(arguments: argparse.Namespace) -> None:
    """Fits, prints, writes.

    Raises:
        MindPulseError: recordings cannot be used, or the constants belong to other rules.
    """
    folder, rules = open_recordings(arguments.recordings), load_rules()
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    tune = judge_all(read_index(folder, "tune"), folder, rules)
    found = fitted(tune)
    sections = {"constants": constants(found), "cross-validated": cross_section(tune, rounds)}
    if arguments.write:
        TARGET.write_text(write_fit(found), "utf-8")
    if arguments.report:
        shipped = read_fit(TARGET.read_text("utf-8"))
        if shipped.rules != fingerprint(rules):
            raise UsageError(f"{TARGET.name} belongs to other rules: fit first, with --write")
        test = judge_all(read_index(folder, "test"), folder, rules)
        sections["test"], picture = test_section(test, shipped, rounds)
        if arguments.page:
            DIAGRAM.write_text(picture, "utf-8")
    for title, body in sections.items():
        print(f"\n## {title}\n\n{body}")
    if arguments.page:
        write_page(PAGE, sections)
    common.finish("calibrate", {"fit": asdict(found), "sections": sections}, arguments.json)


def write_page(path: Path, sections: dict[str, str]) -> None:
    """Puts what was measured into the page."""
    page = path.read_text("utf-8")
    for name, body in sections.items():
        page = filled(page, name, body, MARK)
    path.write_text(page, "utf-8")


def main() -> None:
    """The command."""
    try:
        run(options().parse_args())
    except MindPulseError as error:
        sys.exit(f"calibrate: {error}")


if __name__ == "__main__":
    main()
