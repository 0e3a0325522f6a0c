"""The group of commands: `mindpulse --help` imports none of them.

Exit codes: 0 fine, 1 there are findings, 2 the call or the folder cannot be used.
"""

from __future__ import annotations

import errno
import importlib
import io
import keyword
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from mindpulse import __version__
from mindpulse.errors import MindPulseError

EXIT_FINDINGS, EXIT_USAGE = 1, 2
# Errors that only writing has; what writes files has words of its own for them.
OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a shell says of a program that Ctrl-C ended, and of one whose reader has gone.
EXIT_INTERRUPTED, EXIT_PIPE = 128 + signal.SIGINT, 128 + signal.SIGPIPE

# name -> one line of help; the command is `command` in mindpulse.cli.NAME (`import_` for `import`)
COMMANDS = {
    "analyze": "What a run holds: files, series, attempts, ranks, attention maps.",
    "probe": "Where a run measures, and where it does not and why.",
    "repair": "Rebuild damaged files; the old ones are kept aside.",
    "query": "Rows of one series: the last ones, or all that come; SQL over a run.",
    "export": "Series as CSV, JSON, Parquet, TensorBoard or MindSpore files.",
    "report": "The training health report as HTML, Markdown or JSON.",
    "rules": "List, check, test and explain rules, those that ship and your own.",
    "compare": "Do two runs converge alike; where do they part, which is better.",
    "import": "Make a run folder of what another tool wrote.",
    "watch": "Judge a run while it trains; raise alerts, and act if told to.",
    "deliver": "Check or test the receivers of alerts.",
    "act": "A hand on the wheel of a running training: do this, take it back.",
    "profile": "Let a running training be profiled for some steps, into its run.",
    "ascend": "Show what Ascend's profilers wrote: operators, L2 cache, communication, memory.",
    "silence": "Keep the alerts of a run quiet for a time.",
    "doctor": "What is wrong: empty summaries, versions, memory, debugging, data.",
    "selftest": "Put faults into a recorded run and see which rules would tell.",
    "vscode": "Launch configurations and tasks for VS Code, beside what is there.",
    "demo": "Train a small BERT or ViT under MindPulse, with a fault if you like.",
}


class MindPulseFailure(click.ClickException):
    """An error of ours as one message on standard error and exit code 2."""

    exit_code = EXIT_USAGE

    def show(self, file: Any = None) -> None:
        click.echo(f"mindpulse: {self.format_message()}", file=file, err=file is None)


class LazyGroup(click.Group):
    """Knows its commands by name and imports a module when its command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"mindpulse.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        # A terminal that knows only ASCII must not turn a dash into a traceback.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with _errors_as_exit_codes():
            return super().invoke(ctx)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with _errors_as_exit_codes():  # --help is printed here
            return super().make_context(info_name, args, parent, **extra)


@contextmanager
def _errors_as_exit_codes() -> Iterator[None]:
    try:
        yield
    except MindPulseError as error:
        raise MindPulseFailure(str(error)) from error
    except KeyboardInterrupt:
        click.echo("\nmindpulse: interrupted", err=True)  # behind the ^C of the terminal
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    except OSError as error:
        if error.errno in OF_OUTPUT:
            _let_go_of_output()
        if error.errno == errno.EPIPE:  # `| head` has read enough
            raise click.exceptions.Exit(EXIT_PIPE) from None
        raise MindPulseFailure(_what_failed(error)) from error


def _let_go_of_output() -> None:
    """What is left to write goes nowhere: writing it at the end would fail once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _what_failed(error: OSError) -> str:
    place = "the output" if error.errno in OF_OUTPUT else "the system refused"
    return f"{error.filename or place}: {error.strerror or error}"


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"mindpulse {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 there are findings, 2 the call or the folder cannot be used.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Watch a Transformer while it trains: what it records, what is wrong, what to do.

    Every command takes the run folder first, for example `mindpulse report ./summary`.
    """
