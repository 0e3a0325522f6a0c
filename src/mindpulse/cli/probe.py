"""`mindpulse probe`: where a run measures, and where it does not and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, console, print_json
from mindpulse.store.folder_run import open_folder
from mindpulse.store.run import Run

BAD = ("never ran", "failed")


@click.command("probe")
@options.run_dir
@click.option("--list", "list_all", is_flag=True, help="Also the places that were passed over.")
@options.rank("the first one with probes")
@options.as_json
def command(run_dir: Path, list_all: bool, rank: int | None, as_json: bool) -> None:
    """Where the last training of a run measures.

    Exit code 1 says that a probe was planted and never ran, or could not be compiled.
    """
    with busy("reading"):
        run = open_folder(run_dir)
        places = _places(run, rank)
    if as_json:
        print_json({"path": str(run.path), "places": places})
    else:
        _print(run.path, [p for p in places if list_all or p["state"] != "skipped"], places)
    if any(place["state"] in BAD for place in places):
        click.get_current_context().exit(EXIT_FINDINGS)


def _places(run: Run, rank: int | None) -> list[dict[str, Any]]:
    """What was last said of each place, in the last attempt that says anything."""
    said = [note for note in run.notes() if note.kind == "probe" and rank in (None, note.rank)]
    if not said:
        return []
    attempt = max(note.attempt for note in said)
    first = min(note.rank for note in said if note.attempt == attempt)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for note in said:
        if (note.attempt, note.rank) == (attempt, first):
            data = note.data
            found[str(data.get("path")), str(data.get("what"))] = {
                "path": data.get("path"), "kind": data.get("what"),
                "state": data.get("state"), "reason": data.get("reason"),
            }  # fmt: skip
    return list(found.values())


def _print(path: Path, shown: Sequence[Mapping[str, Any]], places: Sequence[Any]) -> None:
    from rich.table import Table

    if not places:
        click.echo(f"{path}: no probe was noted; the run was not written by the monitor")
        return
    table = Table(box=None, pad_edge=False)
    for head in ("path", "kind", "state", "what is measured, or why not"):
        table.add_column(head, overflow="fold")
    for place in shown:
        table.add_row(*(str(place[key] or "") for key in ("path", "kind", "state", "reason")))
    console().print(table)
    left = len(places) - len(shown)
    if left:
        click.echo(f"{left} places passed over; --list shows them and why")
