"""`mindpulse report`: the training health report of a run."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mindpulse import __version__
from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, draft, print_json
from mindpulse.cli.stopping import stop_on_signal
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.interop import open_run
from mindpulse.report.as_json import report_object, write_json
from mindpulse.report.collect import collect
from mindpulse.report.data import ReportData
from mindpulse.report.html import write_html
from mindpulse.report.markdown import write_markdown
from mindpulse.report.verdict import judge
from mindpulse.report.words import Words
from mindpulse.rules.load import load_rules
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.run import Run


@click.command("report")
@options.run_dir
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it; '-' is standard output [default: report.FORMAT in the run folder; "
    "NAME.report.FORMAT in the current one for what another tool wrote].",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["html", "md", "json"]),
    help="Format of the file [default: by the ending of --output, else html].",
)
@options.lang
@click.option(
    "--fail-under",
    type=options.finite(0, 100),
    metavar="N",
    help="Exit with 1 if the health score is below N, or unknown.",
)
@click.option(
    "--every",
    "every_s",
    type=options.finite(least=1),
    metavar="SECONDS",
    help="Write it again and again until Ctrl-C; an HTML page in a browser renews itself.",
)
@options.rules
@options.as_json
def command(
    run_dir: Path,
    output: Path | None,
    format_: str | None,
    lang: str,
    fail_under: float | None,
    every_s: float | None,
    rules_file: Path | None,
    as_json: bool,
) -> None:
    """Write the training health report: is the run healthy, and if not, what, where, since when.

    The HTML file needs no network and no second file. Alerts are what the watcher said, and what it
    missed; with --rules the run is judged by these rules alone. With --json the report is also
    printed as JSON.
    """
    if as_json and str(output) == "-":
        raise UsageError("--json and --output - both want standard output; use --format json")
    if every_s is not None:
        if as_json or fail_under is not None or str(output) == "-":
            raise UsageError("--every goes on; --json, --fail-under and --output - want one report")
        _again_and_again(run_dir, output, format_, Words(lang), rules_file, every_s)
        return
    rules = load_rules(rules_file)
    run = open_run(run_dir)
    with busy("reading"):
        data = collect(run, rules, replay_all=rules_file is not None)
    words = Words(lang)
    chosen = format_ or format_of(output)
    target = output or default_target(run, chosen)
    text = render(data, words, chosen)
    if str(target) == "-":
        click.echo(text.encode(), nl=False)  # UTF-8, as the page itself says
    else:
        with draft(target) as file:
            file.write(text)
        _say_result(data, words, target, as_json)
    if fail_under is not None and (data.health.score is None or data.health.score < fail_under):
        click.echo(_failure(data, fail_under), err=True)
        click.get_current_context().exit(EXIT_FINDINGS)


def _again_and_again(
    run_dir: Path,
    output: Path | None,
    format_: str | None,
    words: Words,
    rules_file: Path | None,
    every_s: float,
) -> None:
    """Until Ctrl-C; what cannot be read now may be there the next time, so it is only told."""
    told, chosen = "", format_ or format_of(output)
    with stop_on_signal() as stop:
        while True:
            try:
                run = open_run(run_dir)
                data = collect(run, load_rules(rules_file), replay_all=rules_file is not None)
                target = output or default_target(run, chosen)
                with draft(target) as file:
                    file.write(render(data, words, chosen, renew_s=every_s))
                result = _result(data, words, target)
            except MindPulseError as error:
                result = f"mindpulse: {error}"
            if result != told:
                told = result
                click.echo(result)
            if stop.wait(every_s):
                return


def default_target(run: Run, format_: str) -> Path:
    """In our own run folder; what another tool wrote stays as it is, so there the current one."""
    if isinstance(run, FolderRun):
        return run.path / f"report.{format_}"
    return Path(f"{run.path.resolve().name}.report.{format_}")


def format_of(output: Path | None) -> str:
    """The format that the ending of a file name means; HTML where it means none.

    Example:
        >>> format_of(Path("health.md")), format_of(None)
        ('md', 'html')
    """
    ending = output.suffix.lower() if output else ""
    return {".md": "md", ".markdown": "md", ".json": "json"}.get(ending, "html")


def render(data: ReportData, words: Words, format_: str, renew_s: float | None = None) -> str:
    """The report as the text of a file; with `renew_s` a page that loads itself again."""
    if format_ == "json":
        return write_json(data, words)
    if format_ == "md":
        return write_markdown(data, words)
    return write_html(data, words, time.time(), __version__, renew_s)


def _say_result(data: ReportData, words: Words, target: Path, as_json: bool) -> None:
    if as_json:
        print_json({**report_object(data, words), "output": str(target)})
    else:
        click.echo(_result(data, words, target))


def _result(data: ReportData, words: Words, target: Path) -> str:
    verdict, value = judge(data), data.health.score
    number = words.say("score.unknown") if value is None else f"{value:.0f}"
    beside = words.score_note(data.health)
    note = f" ({beside})" if beside else ""
    title = words.say("score.title")
    lines = [f"{words.say('verdict.' + verdict.state)}. {title}: {number}{note}"]
    lines += [f"  {words.severity(a.severity)}: {words.message(a)}" for a in verdict.alerts[:3]]
    return "\n".join([*lines, str(target)])


def _failure(data: ReportData, limit: float) -> str:
    value, best = data.health.score, data.health.at_best
    if value is None or best is None:
        return f"mindpulse: the health score is unknown, and --fail-under {limit:g} asks for one"
    hint = f"; with these signals and no finding it would be {best:.0f}" if best < limit else ""
    return f"mindpulse: the health score {value:.0f} is below {limit:g}{hint}"
