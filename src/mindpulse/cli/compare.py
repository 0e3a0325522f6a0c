"""`mindpulse compare`: do two runs converge alike, and if not, which is better and since when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mindpulse.cli import options
from mindpulse.cli.comparison.page import format_of, render
from mindpulse.cli.comparison.words import Told, tell
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, console, draft, print_json
from mindpulse.compare.as_json import comparison_object
from mindpulse.compare.comparison import compare
from mindpulse.compare.differences import Differences, find_differences
from mindpulse.compare.grid import ALIGNMENTS
from mindpulse.compare.read import Choice, check_tags, read_curve, read_side
from mindpulse.compare.result import BAND_SHARE, LIMIT, TOLERANCE, Comparison, Settings
from mindpulse.compare.scale import Goal, goal_of
from mindpulse.compare.verdict import STATES
from mindpulse.interop import open_run

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_TAG = "train_loss"
FAIL_ON = "worse,different,unknown"


def parse_states(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """Verdicts with commas between them; "none" for no verdict at all."""
    if value == "none":
        return ()
    states = tuple(part.strip() for part in value.split(","))
    wrong = [state for state in states if state not in STATES]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r}: use 'none' or some of {', '.join(STATES)}")
    return states


@click.command("compare")
@click.argument("run_a", metavar="A", type=click.Path(path_type=Path))
@click.argument("run_b", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--seeds",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A further run of the training of A with another seed; may be given several times.",
)
@click.option(
    "--tag",
    "tag_a",
    default=DEFAULT_TAG,
    show_default=True,
    metavar="TAG",
    help="Series to compare.",
)
@click.option("--tag-b", metavar="TAG", help="Its name in B [default: that of --tag].")
@click.option("--column", metavar="NAME", help="Column of a wide series, as `query` names it.")
@options.rank(default="the first")
@click.option(
    "--rank-b", type=click.IntRange(min=0), metavar="N", help="Rank of B [default: as --rank]."
)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="One attempt of A and B.")
@click.option(
    "--attempt-b", type=click.IntRange(min=1), metavar="N", help="Of B [default: as --attempt]."
)
@click.option(
    "--align",
    type=click.Choice(ALIGNMENTS),
    default="step",
    show_default=True,
    help="By step, or by the share of each run's own steps.",
)
@click.option(
    "--goal",
    type=click.Choice(["auto", "min", "max", "none"]),
    default="auto",
    show_default=True,
    help="Which way is better; auto goes by the words of the tag.",
)
@click.option(
    "--limit",
    type=options.finite(0),
    default=LIMIT,
    show_default=True,
    metavar="D",
    help="A distance below it is the same convergence behaviour.",
)
@click.option(
    "--tolerance",
    type=options.finite(0, 1),
    default=TOLERANCE,
    show_default=True,
    metavar="SHARE",
    help="Difference of the levels at the end that does not matter, as a share of the fall.",
)
@click.option(
    "--band",
    type=options.finite(0, 1),
    default=BAND_SHARE,
    show_default=True,
    metavar="SHARE",
    help="How far warping may shift, as a share of the range.",
)
@click.option(
    "--target",
    type=options.finite(),
    metavar="VALUE",
    help="Tell when each run reached this value [default: the best that both reached].",
)
@click.option(
    "--fail-on",
    callback=parse_states,
    default=FAIL_ON,
    show_default=True,
    metavar="VERDICTS",
    help="Verdicts that end with exit code 1; 'none' for none.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a page or picture: FILE.html, FILE.svg or FILE.md.",
)
@options.lang
@options.as_json
def command(
    run_a: Path,
    run_b: Path,
    seeds: tuple[Path, ...],
    tag_a: str,
    tag_b: str | None,
    column: str | None,
    rank: int | None,
    rank_b: int | None,
    attempt: int | None,
    attempt_b: int | None,
    goal: str,
    fail_on: tuple[str, ...],
    output: Path | None,
    lang: str,
    as_json: bool,
    **rest: Any,
) -> None:
    """Compare run B with run A: distance of their courses, where they part, which is better.

    The verdict is same, better, worse, different or unknown. Runs of other tools are read as they
    are.
    """
    format_ = format_of(output) if output else None
    settings = Settings(goal=_goal(goal, tag_a), **rest)
    choice_a = Choice(tag_a, column, rank, attempt)
    choice_b = Choice(
        tag_b or tag_a,
        column,
        rank if rank_b is None else rank_b,
        attempt if attempt_b is None else attempt_b,
    )
    with busy("comparing"):
        found, differences = compare_runs(run_a, run_b, seeds, (choice_a, choice_b), settings)
    told = tell(found, differences, (choice_a.tag, choice_b.tag), lang)
    if output and format_:
        with draft(output) as file:
            file.write(render(found, told, format_))
    if as_json:
        print_json(comparison_object(found, differences))
    else:
        show(found, told, console())
    if output and not as_json:
        click.echo(str(output))
    if found.verdict.state in fail_on:
        click.get_current_context().exit(EXIT_FINDINGS)


def _goal(name: str, tag: str) -> Goal:
    goals: dict[str, Goal] = {"min": "min", "max": "max", "none": "none"}
    return goals.get(name) or goal_of(tag)


def compare_runs(
    path_a: Path,
    path_b: Path,
    seeds: Sequence[Path],
    choices: tuple[Choice, Choice],
    settings: Settings,
) -> tuple[Comparison, Differences]:
    """Opens, reads and compares; the further seeds are read as A is.

    Raises:
        UsageError: a run, a series or a column is not there.
    """
    a, b = open_run(path_a), open_run(path_b)
    choice_a, choice_b = choices
    check_tags(a, b, choice_a.tag, choice_b.tag)
    family = []
    for path in seeds:
        run = open_run(path)
        check_tags(a, run, choice_a.tag, choice_a.tag)
        family.append(read_curve(run, choice_a, path.name))
    found = compare(
        read_side(a, choice_a, str(path_a)), read_side(b, choice_b, str(path_b)), settings, family
    )
    return found, find_differences(a, b)


def show(found: Comparison, told: Told, out: Console) -> None:
    """Prints a comparison: verdict, picture, findings, numbers, what differs."""
    from rich.table import Table

    from mindpulse.cli.comparison.chart import print_chart

    out.print(f"{told.state}. {told.sentence}", markup=False)
    for letter, side in (("A", found.a), ("B", found.b)):
        out.print(f"  {letter}: {side.name}", markup=False, soft_wrap=True)
    if found.courses:
        out.print()
        print_chart(found.courses.a, found.courses.b, out)
        out.print()
    for line in told.findings:
        out.print(f"  {line}", markup=False)
    _print_table(Table(box=None, pad_edge=False), _rows(told), out)
    if told.texts:
        out.print(f"\n{told.say('differences')}", markup=False)
        _print_table(Table(box=None, pad_edge=False), [("", "A", "B"), *told.texts], out)
    for line in (*told.notes, *told.method):
        out.print(f"  {line}", markup=False)


def _rows(told: Told) -> list[tuple[str, ...]]:
    return [("", "A", "B", told.say("column.ratio")), *told.numbers]


def _print_table(table: Any, rows: Sequence[Sequence[str]], out: Console) -> None:
    from rich.markup import escape

    for name in rows[0]:
        table.add_column(escape(name), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    out.print()
    out.print(table)
