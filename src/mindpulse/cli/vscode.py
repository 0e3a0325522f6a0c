"""`mindpulse vscode`: launch configurations and tasks, beside what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.editor import entries, jsonc
from mindpulse.cli.output import draft, print_json
from mindpulse.errors import UsageError

MOST_RANKS = 64
Wanted = dict[str, tuple[str, list[dict[str, Any]]]]  # key -> (what names an entry, entries)


@dataclass(slots=True)
class Merged:
    """What becomes of one file.

    Attributes:
        added, kept: names of entries that are put in, and of those that were there already and
            stay as they are.
    """

    path: Path
    text: str
    added: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


@click.command("vscode")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--script", default="train.py", show_default=True, metavar="FILE", help="The training script."
)
@click.option("--run", default="summary", show_default=True, metavar="DIR", help="Its summary_dir.")
@click.option(
    "--ranks",
    type=click.IntRange(1, MOST_RANKS),
    default=1,
    show_default=True,
    metavar="N",
    help="For how many ranks on this machine.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@options.as_json
def command(folder: Path, script: str, run: str, ranks: int, dry_run: bool, as_json: bool) -> None:
    """Write .vscode/launch.json and tasks.json, or add to them.

    FOLDER is the one that is opened in VS Code [default: this one]. What is there stays as it is,
    comments too: entries of the same name are left alone.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; give the one that you open in VS Code")
    merged = [
        merge(folder / ".vscode" / "launch.json", "0.2.0", {
            "configurations": ("name", entries.configurations(script, ranks)),
            "compounds": ("name", entries.compounds(ranks)),
        }),
        merge(folder / ".vscode" / "tasks.json", "2.0.0", {
            "tasks": ("label", entries.tasks(run, script)),
        }),
    ]  # fmt: skip
    if not dry_run:
        for one in merged:
            if one.added:
                _write(one)
    if as_json:
        print_json([{"file": str(m.path), "added": m.added, "kept": m.kept} for m in merged])
        return
    for one in merged:
        _tell(one, dry_run)


def merge(path: Path, version: str, wanted: Wanted) -> Merged:
    """The text of a file with the wanted entries that it does not have yet.

    Raises:
        UsageError: the file cannot be read as JSON with comments.
    """
    text = ""
    if path.exists():
        text = _read(path)
    content = jsonc.parse(text, str(path))
    result = Merged(path, text if content else f'{{\n    "version": "{version}"\n}}\n')
    for key, (naming, offered) in wanted.items():
        written = content.get(key)
        listed = (
            written if isinstance(written, list) else []
        )  # if it is no array that is told below
        there = {str(each.get(naming)) for each in listed if isinstance(each, dict)}
        new = [each for each in offered if each[naming] not in there]
        result.text = jsonc.with_entries(result.text, key, new, str(path))
        result.added += [each[naming] for each in new]
        result.kept += [each[naming] for each in offered if each[naming] in there]
    jsonc.parse(result.text, str(path))
    return result


def _read(path: Path) -> str:
    """The text with its ends of lines as they are.

    Raises:
        UsageError: it is not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}; save it as UTF-8 and run this again") from None


def _write(one: Merged) -> None:
    """Writes the file in one go; it keeps its mode."""
    mode = one.path.stat().st_mode if one.path.exists() else None
    with draft(one.path) as file:
        file.write(one.text)
    if mode is not None:
        one.path.chmod(mode)


def _tell(one: Merged, dry_run: bool) -> None:
    if dry_run and one.added:
        click.echo(f"--- {one.path}\n{one.text}")
    word = "would add" if dry_run else "added"
    click.echo(f"{one.path}: {_names(word, one.added)}{_names('; left as it is', one.kept)}")


def _names(word: str, names: Sequence[str]) -> str:
    if not names:
        return "" if word.startswith(";") else "nothing to add"
    return f"{word}: {', '.join(names)}"
