"""`mindpulse silence`: keep alerts of a run quiet for a time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import click

from mindpulse.alerts.journal import read_alerts
from mindpulse.alerts.silence import Silence, Silences, iso, seconds_of
from mindpulse.cli import options
from mindpulse.cli.output import print_json
from mindpulse.errors import UsageError
from mindpulse.messages.watch_texts import WATCHER_RULE_TEXTS
from mindpulse.rules.load import load_rules

ALL = "all rules"


@click.command("silence")
@options.run_dir
@click.argument("rule", required=False)
@click.option("--for", "duration", metavar="TIME", help="For how long: 30m, 2h, 1d12h.")
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the silence.")
@click.option("--list", "listed", is_flag=True, help="Show the silences that are in force.")
@click.option("--end", is_flag=True, help="End a silence now.")
@options.rules
@options.as_json
def command(
    run_dir: Path,
    rule: str | None,
    duration: str | None,
    reason: str,
    listed: bool,
    end: bool,
    rules_file: Path | None,
    as_json: bool,
) -> None:
    """Keep the alerts of one RULE, or of all, quiet for a time.

    The watcher still writes them into alerts.jsonl, with a mark, and tells one that is still firing
    when the silence is over. Nothing is asked of the training for a silenced alert.
    """
    if not run_dir.is_dir():
        raise UsageError(f"{run_dir}: no such folder; give the summary_dir of a training")
    if (duration is not None) + listed + end != 1:
        raise UsageError("give one of --for TIME, --list and --end; a silence always has an end")
    silences, now = Silences(run_dir), time.time()
    if not listed:
        _check(rule, run_dir, rules_file)
    if end:
        _end(silences, rule, now)
    elif duration is not None:
        silences.add(Silence(rule or "", now + seconds_of(duration), now, reason))
    _show(silences.in_force(now), as_json)


def _check(rule: str | None, run_dir: Path, rules_file: Path | None) -> None:
    """A silence with a slip in its name would silence nothing."""
    known = {each.name for each in load_rules(rules_file)} | set(WATCHER_RULE_TEXTS)
    known |= {event.rule for event in read_alerts(run_dir)}
    if rule is not None and rule not in known:
        near = get_close_matches(rule, sorted(known), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"no rule {rule!r}{hint} (a rule of your own: add --rules FILE)")


def _end(silences: Silences, rule: str | None, now: float) -> None:
    in_force = [each for each in silences.in_force(now) if rule in (None, each.rule)]
    if not in_force:
        raise UsageError(f"{rule or ALL}: no silence is in force; --list shows those that are")
    for each in in_force:
        silences.add(Silence(each.rule, now, now, "ended by hand"))


def _show(in_force: Iterable[Silence], as_json: bool) -> None:
    found = sorted(in_force, key=lambda silence: silence.until)
    if as_json:
        print_json([
            {"rule": s.rule, "until": iso(s.until), "created": iso(s.created), "reason": s.reason}
            for s in found
        ])  # fmt: skip
        return
    for silence in found:
        why = f" ({silence.reason})" if silence.reason else ""
        click.echo(f"{silence.rule or ALL}: silent until {iso(silence.until)}{why}")
    if not found:
        click.echo("no silence is in force")
