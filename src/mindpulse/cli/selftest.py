"""`mindpulse selftest`: put faults into a recorded run and see which rules would tell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.output import console, print_json
from mindpulse.errors import UsageError
from mindpulse.interop import open_run
from mindpulse.rules.load import load_rules
from mindpulse.series import Series
from mindpulse.store.run import Run
from mindpulse.watcher.selftest import SelfTest, Tried, selftest


@click.command("selftest")
@options.run_dir
@options.rules
@options.rank("the first")
@click.option("--at", "step", type=int, metavar="STEP", help="Where faults begin [default: 60 %].")
@options.as_json
def command(
    run_dir: Path, rules_file: Path | None, rank: int | None, step: int | None, as_json: bool
) -> None:
    """Put faults into a copy of a recorded run and see which rules would tell, and how late.

    Twelve faults in three severities change the series that the run has: NaN, spikes, a learning
    rate that jumps, collapse, frozen weights, a leak... Nothing is written. Rules that cannot tell
    here, because nobody records what they read, are listed with the reason.
    """
    rules, run = load_rules(rules_file), open_run(run_dir)
    rank = options.pick_rank(rank, run.ranks)
    tags = {tag for rule in rules for tag in rule.needs}
    found = selftest(_recorded(run, tags, rank), rules, step)
    if as_json:
        print_json(asdict(found))
    else:
        _show(found)


def _recorded(run: Run, tags: set[str], rank: int) -> dict[str, Series]:
    """The series that rules read, of one rank."""
    recorded: dict[str, Series] = {}
    for tag in sorted(tags & set(run.specs())):
        try:
            recorded[tag] = run.series(tag, rank=rank)
        except UsageError:  # another rank writes it
            continue
    return recorded


def _show(found: SelfTest) -> None:
    from rich.table import Table

    table = Table("fault", *("low", "medium", "high"), title=f"faults from step {found.step} on")
    names = list(dict.fromkeys(each.fault for each in found.tried))
    for name in names:
        table.add_row(name, *(_cell(each) for each in found.tried if each.fault == name))
    out = console()
    out.print(table)
    if found.before:
        out.print(f"fire in this run as it is: {', '.join(found.before)}")
    out.print(f"stalled-run: after {found.stalled_after_s:.0f} s without a row")
    for rule, why in sorted(found.unknown.items()):
        out.print(f"cannot tell here: {rule} ({why})")


def _cell(tried: Tried) -> str:
    if not tried.series:
        return "not recorded"
    if not tried.fired:
        return "nobody tells"
    return ", ".join(f"{each.rule} +{each.after_steps}" for each in tried.fired)
