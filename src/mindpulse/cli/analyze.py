"""`mindpulse analyze`: what a run folder holds, and whether it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.inventory import (
    Holding,
    file_reports,
    holdings,
    repair_advice,
    without_rows,
)
from mindpulse.cli.output import busy, console, print_json
from mindpulse.cli.snaps import as_object, chosen_snap, print_snaps, show_snap
from mindpulse.debugging.snaps import snaps_in
from mindpulse.interop import identify
from mindpulse.report.collect import summarise_files
from mindpulse.report.data import AttentionMap, FileSummary
from mindpulse.report.snapshots import latest, natural, read_maps
from mindpulse.store.run import Run


@dataclass(slots=True)
class Snapshots:
    """The snapshots of a run: all of them by name, of each layer the maps of the last step."""

    listed: list[dict[str, Any]] = field(default_factory=list)
    latest: list[AttentionMap] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_snapshots(run: Run) -> Snapshots:
    """Reads every snapshot, one at a time."""
    found = Snapshots()
    for maps, problem in read_maps(run.snapshots()):
        found.listed += [{"layer": m.layer, "head": m.head, "step": m.step} for m in maps]
        found.latest = latest([*found.latest, *maps])
        found.problems += [problem] if problem else []
    found.listed.sort(key=lambda m: (natural(m["layer"]), m["step"], m["head"]))
    return found


@click.command("analyze")
@options.run_dir
@click.option("--maps/--no-maps", default=True, help="Show the attention maps of the snapshots.")
@click.option("--layer", metavar="N", help="Show the maps of this layer [default: the first].")
@click.option(
    "--snap",
    "snap_name",
    metavar="NAME",
    help="Show the last tensor that was snapped under this name, and attention per head.",
)
@click.option(
    "--quick", is_flag=True, help="Read only headers, ends of files and indexes; no snapshots."
)
@options.as_json
def command(
    run_dir: Path,
    maps: bool,
    layer: str | None,
    snap_name: str | None,
    quick: bool,
    as_json: bool,
) -> None:
    """List the files, series, attempts and ranks of a run; show an attention map.

    Exit code 1 says that a file or a row is damaged.
    """
    recognised = identify(run_dir)
    run = recognised.read()
    if snap_name is not None:
        show_snap(chosen_snap(run, snap_name), as_json)
        return
    reports = file_reports(run, quick)
    with busy("reading"):
        files, problems = summarise_files(run, reports)
        held = holdings(run, {report.tag for report in reports if report.damaged_rows})
        found = Snapshots() if quick else read_snapshots(run)
        snaps = [] if quick else snaps_in(run.snapshots())
    problems += found.problems
    empty = without_rows(run.path, reports)
    advice = repair_advice(run, reports)
    if as_json:
        document = _document(run, files, held, found, problems)
        more: dict[str, Any] = {"without_rows": empty, "advice": advice, "quick": quick}
        more["snaps"] = [as_object(snap) for snap in snaps]
        print_json({"kind": recognised.kind, **document, **more})
    else:
        _print_summary(run, recognised.title, files, problems)
        if quick:
            console().print("only the beginning and the end of each file was read")
        _print_notes(empty, advice)
        _print_series(held)
        print_snaps(snaps)
        if maps:
            _print_maps(found.latest, layer)
    if files.damaged or problems:
        click.get_current_context().exit(EXIT_FINDINGS)


def _document(
    run: Run,
    files: FileSummary,
    held: Sequence[Holding],
    snapshots: Snapshots,
    problems: Sequence[str],
) -> dict[str, Any]:
    return {
        "path": str(run.path),
        "id": run.id,
        "attempts": run.attempts,
        "ranks": run.ranks,
        "tags": run.tags,
        "files": asdict(files),
        "problems": list(problems),
        "series": [h.as_object() for h in held],
        "snapshots": snapshots.listed,
    }


def _print_summary(run: Run, title: str, files: FileSummary, problems: Sequence[str]) -> None:
    from rich.markup import escape

    out = console()
    what = f"{title} {run.id}".rstrip()
    out.print(f"[bold]{escape(str(run.path))}[/]  {escape(what)}", highlight=False)
    attempts, ranks = (
        ", ".join(map(str, numbers)) or "none" for numbers in (run.attempts, run.ranks)
    )
    out.print(f"attempts {attempts}; ranks {ranks}")
    damaged = f"{files.damaged} damaged"
    out.print(
        f"files: {files.total} total, {files.valid} valid, "
        f"{'[bold red]' + damaged + '[/]' if files.damaged else damaged}, {files.foreign} foreign; "
        f"{files.rows:,} rows, {files.damaged_rows:,} damaged"
    )
    for problem in problems:
        out.print(f"  [red]![/] {escape(problem)}")


def _print_notes(empty: Sequence[str], advice: str) -> None:
    from rich.markup import escape

    out = console()
    if empty:
        out.print(f"without a row, left alone: {escape(', '.join(empty))}")
    if advice:
        out.print(f"[bold]{escape(advice)}[/]")


def _print_series(held: Sequence[Holding]) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not held:
        click.echo("no series yet")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in (
        ("series", False),
        ("columns", True),
        ("rows", True),
        ("steps", True),
        ("last value", True),
    ):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for h in held:
        steps = f"{h.first_step:,}–{h.last_step:,}"
        table.add_row(escape(h.tag), escape(h.shape), f"{h.rows:,}", steps, escape(h.last_text))
    out = console()
    out.print()
    out.print(table)


def _print_maps(maps: Sequence[AttentionMap], layer: str | None) -> None:
    from mindpulse.cli.map_view import print_layer

    if not maps:
        return
    layers = list(dict.fromkeys(m.layer for m in maps))
    chosen = layer if layer is not None else layers[0]
    if chosen not in layers:
        raise click.BadParameter(
            f"no snapshot of layer {chosen!r}; there are: {', '.join(layers)}", param_hint="--layer"
        )
    print_layer([m for m in maps if m.layer == chosen], console())
    if len(layers) > 1:
        click.echo(f"layers with snapshots: {', '.join(layers)} (--layer N)")
