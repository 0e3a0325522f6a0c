"""docs/cli.md has a section for every command and a paragraph for every option, and no other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from mindpulse.cli import main
from mindpulse.cli.group import COMMANDS

PAGE = (Path(__file__).parent.parent / "docs" / "cli.md").read_text("utf-8")
ITEM = re.compile(r"^- (`-[^`]*`(?:, `-[^`]*`)*)", re.MULTILINE)


def sections() -> dict[str, str]:
    first, *rest = re.split(r"^## mindpulse (\w+)$", PAGE, flags=re.MULTILINE)
    return {"": first, **dict(zip(rest[0::2], rest[1::2], strict=True))}


def as_documented(option: click.Option, context: click.Context) -> str:
    """The option as --help writes it, for example "--limit N"."""
    record = option.get_help_record(context)
    assert record is not None
    return record[0]


def options_of(command: click.Command, name: str) -> set[str]:
    """The options of a command, those of its subcommands included."""
    if isinstance(command, click.Group):
        return set().union(*(options_of(inner, n) for n, inner in command.commands.items()))
    context = click.Context(command, info_name=name, help_option_names=[])
    found = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    return {as_documented(p, context) for p in found}


def test_every_command_has_its_section() -> None:
    assert list(sections()) == ["", *COMMANDS]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_option_has_its_paragraph(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    items = {item.strip("`") for item in ITEM.findall(sections()[name])}
    assert items == options_of(command, name)


def test_the_options_of_the_tool_itself() -> None:
    assert ITEM.findall(sections()[""]) == ["`--version`", "`-h`, `--help`"]


def test_examples_are_real_commands() -> None:
    for line in re.findall(r"^\$ mindpulse (.*)$", PAGE, flags=re.MULTILINE):
        name, *words = shlex.split(line.split(" >> ")[0])
        command = main.get_command(click.Context(main), name)
        assert command is not None
        command.make_context(name, words)
