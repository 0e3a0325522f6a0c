"""`mindpulse doctor`: checks of a summary, a run, the environment, memory, debugging and data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from mindpulse.cli.doctor_output import Shown, show
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy
from mindpulse.doctor.result import Result

Command = TypeVar("Command", bound=Callable[..., Any])
SUMMARY = Path("summary")
EXAMPLES = """
\b
  mindpulse doctor                        everything that needs no argument
  mindpulse doctor summary ./summary      why is my summary empty?
  mindpulse doctor run ./summary          what is wrong with this run?
  mindpulse doctor memory train.log       out of memory, with free memory left?
  mindpulse doctor debug train.py         why does my breakpoint not stop?
  mindpulse doctor data data.py:batches   is the data what the model wants?
"""


@dataclass(slots=True)
class _Group:
    """What was asked for before the name of the part."""

    as_json: bool
    lang: str | None
    form: str | None


def _shown(function: Command) -> Command:
    """The options that every part has, and the group itself."""
    for add in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),
        click.option(
            "--format",
            "form",
            type=click.Choice(["text", "problems"]),
            help="problems: one line each, for an editor [default: text].",
        ),
        click.option(
            "--lang",
            type=click.Choice(["en", "zh"]),
            help="Language of the messages [default: en].",
        ),
    ):
        function = add(function)
    return function


@click.group("doctor", invoke_without_command=True, epilog=EXAMPLES)
@_shown
def command(as_json: bool, lang: str | None, form: str | None) -> None:
    """Find out what is wrong: each check says what it saw, what to do, and what to run next.

    Without a part: the environment, debugging, and ./summary if it is there. Problems come first,
    the likeliest before the others. Exit code 1 says that there are problems; what could not be
    told is no problem.
    """
    ctx = click.get_current_context()
    ctx.obj = _Group(as_json, lang, form)
    if ctx.invoked_subcommand is None:
        _tell(_everything(), as_json, lang, form)


def _everything() -> list[Result]:
    from mindpulse.doctor.checked import checked
    from mindpulse.doctor.env import check_env
    from mindpulse.doctor.rows import check_recording
    from mindpulse.doctor.summary import check_summary

    found = checked("env.settings", lambda: check_env(os.environ))
    found += _debug(())
    if SUMMARY.exists():
        return found + check_summary(SUMMARY)
    return found + checked("summary.recording", lambda: check_recording(os.environ))


def _tell(
    results: Sequence[Result],
    as_json: bool,
    lang: str | None,
    form: str | None,
) -> None:
    """Prints the results; options before and behind the name of the part mean the same."""
    ctx = click.get_current_context()
    before: _Group = ctx.find_object(_Group) or _Group(False, None, None)
    shown = Shown(as_json or before.as_json, lang or before.lang or "en", form or before.form)
    show(results, shown)
    if any(result.status == "problem" for result in results):
        ctx.exit(EXIT_FINDINGS)


@command.command("summary")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), default=SUMMARY)
@_shown
def summary_part(folder: Path, **shown: Any) -> None:
    """Why is my summary empty? DIR is the summary_dir of the training [default: ./summary].

    Ask in the shell and as the user that starts the training: a hidden file is written into DIR
    and removed, and the environment is looked at.
    """
    from mindpulse.doctor.summary import check_summary

    with busy("reading"):
        results = check_summary(folder)
    _tell(results, **shown)


@command.command("run")
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--quick", is_flag=True, help="Read the headers and ends of files only.")
@_shown
def run_part(run_dir: Path, quick: bool, **shown: Any) -> None:
    """What is wrong with a run, by its notes, alerts and files."""
    from mindpulse.doctor.kind import is_ours
    from mindpulse.doctor.run import check_run

    reports = None
    if not quick and is_ours(run_dir):
        from mindpulse.cli.inventory import file_reports
        from mindpulse.store.folder_run import open_folder

        reports = file_reports(open_folder(run_dir))
    with busy("reading"):
        results = check_run(run_dir, reports, now=time.time())
    _tell(results, **shown)


@command.command("env")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where CANN, driver and firmware are installed; may be given again.",
)
@_shown
def env_part(roots: Sequence[Path], **shown: Any) -> None:
    """Do the versions go together, and do environment variables switch something off?"""
    from mindpulse.ascend.versions import DEFAULT_ROOTS
    from mindpulse.doctor.checked import checked
    from mindpulse.doctor.env import check_env

    results = checked("env.settings", lambda: check_env(os.environ, roots or DEFAULT_ROOTS))
    _tell(results, **shown)


@command.command("memory")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True,
    type=click.Path(path_type=Path, exists=True),
)  # fmt: skip
@_shown
def memory_part(paths: Sequence[Path], **shown: Any) -> None:
    """Out of memory: full, in pieces, or taken by another process?

    PATH is a log of the training, a memory_block.csv, a run folder, or a folder with such files.
    """
    from mindpulse.doctor.checked import checked
    from mindpulse.doctor.memory import check_memory

    with busy("reading"):
        results = checked("memory.files", lambda: check_memory(paths, os.environ))
    _tell(results, **shown)


@command.command("debug")
@click.argument(
    "scripts", metavar="[SCRIPT]...", nargs=-1,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)  # fmt: skip
@_shown
def debug_part(scripts: Sequence[Path], **shown: Any) -> None:
    """Why does my breakpoint not stop? SCRIPTs are read, and nothing of them is run.

    Give the training script, and the files of the model. The environment and .vscode/launch.json
    are looked at as well.
    """
    _tell(_debug(scripts), **shown)


def _debug(scripts: Sequence[Path]) -> list[Result]:
    from mindpulse.cli.editor import jsonc
    from mindpulse.doctor.checked import made
    from mindpulse.doctor.debug import check_debug

    path, configurations = Path(".vscode") / "launch.json", []
    failed: list[Result] = []
    if path.exists():
        content, failed = made("debug.launch", lambda: jsonc.parse(path.read_text(), str(path)))
        listed = (content or {}).get("configurations")
        configurations = [each for each in listed or () if isinstance(each, dict)]
    return failed + check_debug(scripts, os.environ, configurations, path)


@command.command("data")
@click.argument("source", metavar="SOURCE")
@click.option(
    "--batches", "most", type=click.IntRange(1), default=16, show_default=True, metavar="N",
    help="How many batches to look at.",
)  # fmt: skip
@click.option("--vocab", type=click.IntRange(1), metavar="N", help="Ids must lie below it.")
@click.option("--labels", type=click.IntRange(1), metavar="N", help="Labels must lie below it.")
@click.option("--pad", type=int, metavar="ID", help="The id of the padding token.")
@click.option(
    "--causal/--not-causal", default=None, help="Whether the mask must hide later tokens."
)
@_shown
def data_part(
    source: str,
    most: int,
    vocab: int | None,
    labels: int | None,
    pad: int | None,
    causal: bool | None,
    **shown: Any,
) -> None:
    """Is the data what the model wants?

    SOURCE is a .npz or .npy file, or MODULE:FUNCTION or FILE.py:FUNCTION, which is imported and
    called, and returns a dataset, a list of batches, or one batch.
    """
    from mindpulse.doctor.data import check_batches
    from mindpulse.doctor.data_source import batches_from

    batches = batches_from(source)
    with busy("reading"):
        results = check_batches(
            batches, most=most, vocab_size=vocab, num_labels=labels, causal=causal, pad_id=pad
        )
    _tell(results, **shown)
