"""`mindpulse repair`: damaged files of a run are rebuilt, and the old ones kept aside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, print_json
from mindpulse.store.folder_run import open_folder
from mindpulse.store.repair import Outcome, Repair


@click.command("repair")
@options.run_dir
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option(
    "--force",
    is_flag=True,
    help="Also where no lock can tell whether a training is still writing.",
)
@click.option("--index", is_flag=True, help="Also write the index of every file anew.")
@options.as_json
def command(run_dir: Path, dry_run: bool, force: bool, index: bool, as_json: bool) -> None:
    """Rebuild damaged files out of what can be read of them.

    The old file stays beside the new one as NAME.damaged. Exit code 1 says that something was
    repaired, or could not be.
    """
    run = open_folder(run_dir)
    with busy("reading"):
        outcomes = list(Repair(run.path, dry_run=dry_run, force=force, index=index).outcomes())
    if as_json:
        print_json(_document(run.path, dry_run, outcomes))
    else:
        _print(run.path, dry_run, outcomes)
    if outcomes:
        click.get_current_context().exit(EXIT_FINDINGS)


def _document(run_dir: Path, dry_run: bool, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "path": str(run_dir),
        "dry_run": dry_run,
        "rebuilt": sum(outcome.action == "rebuilt" for outcome in outcomes),
        "files": [
            {
                "file": str(outcome.path.relative_to(run_dir)),
                "action": outcome.action,
                "problem": outcome.problem,
                "rows": outcome.rows,
                "mended_rows": outcome.mended,
                "lost_rows": outcome.lost_rows,
                "header": outcome.header,
                "kept_as": outcome.kept_as,
            }
            for outcome in outcomes
        ],
    }


def _print(run_dir: Path, dry_run: bool, outcomes: Sequence[Outcome]) -> None:
    if not outcomes:
        click.echo(f"{run_dir}: nothing to repair")
        return
    for outcome in outcomes:
        click.echo(f"{outcome.path.relative_to(run_dir)}: {outcome.problem}")
        click.echo(f"  {_deed(outcome, dry_run)}")
    rebuilt = sum(outcome.action == "rebuilt" for outcome in outcomes)
    verb = "would be rebuilt (dry run: nothing was changed)" if dry_run else "rebuilt"
    click.echo(f"{rebuilt} of {len(outcomes)} {verb}")


def _deed(outcome: Outcome, dry_run: bool) -> str:
    if outcome.action != "rebuilt":
        return "left as it is"
    said = ["would be rebuilt" if dry_run else "rebuilt"]
    if outcome.header:
        said.append(f"{outcome.rows:,} rows kept")
        said.append(f"at most {outcome.lost_rows:,} lost" if outcome.lost_rows else "none lost")
        said.append(f"header {outcome.header}")
    if outcome.mended:
        said.append(f"{outcome.mended:,} rows with one flipped bit put right")
    if outcome.kept_as:
        said.append(f"old file kept as {outcome.kept_as}")
    return ", ".join(said)
