"""`mindpulse watch`: judge a run while it trains."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from mindpulse.alerts import FIRING
from mindpulse.alerts.journal import read_alerts
from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import print_json
from mindpulse.cli.receivers import deliver_option, delivering
from mindpulse.control.schema import VERBS
from mindpulse.deliver.file import event_object
from mindpulse.deliver.terminal import Terminal
from mindpulse.errors import UsageError
from mindpulse.interop import open_run
from mindpulse.rules.load import check_rules, load_rules
from mindpulse.rules.rule import Rule
from mindpulse.watcher import Event, watch

EVERY_VERB = "all"


@click.command("watch")
@options.run_dir
@click.option(
    "--act",
    metavar="[VERBS]",
    is_flag=False,
    flag_value=EVERY_VERB,
    help="Ask the training to act: every action of docs/acting.md, or those named; "
    "'advise' only says what it would ask for, 'off' not even that. [default: advise]",
)
@options.rules
@deliver_option
@click.option("--once", is_flag=True, help="Judge what is there, and end.")
@options.lang
@options.as_json
def command(
    run_dir: Path,
    act: str | None,
    rules_file: Path | None,
    deliver_file: Path | None,
    once: bool,
    lang: str,
    as_json: bool,
) -> None:
    """Watch a run, raise alerts, and with --act put it right.

    Goes on until it is interrupted; the folder may appear later. It may be killed and started again
    at any time. Exit code 1 says that an alert above "info" was raised in this run.
    """
    rules = load_rules(rules_file)
    verbs = allowed_verbs(act)
    options.only_run_folder(run_dir, "watch")
    checked = _warn_of_unknown_series(run_dir, rules)
    if not once:
        mode = f"may ask for {', '.join(sorted(verbs))}" if verbs else "advice only, see --act"
        mode = "neither advice nor requests" if verbs == frozenset() else mode
        click.echo(f"watching {run_dir} with {len(rules)} rules ({mode}); Ctrl-C ends", err=True)
    show = receiver(lang, as_json)
    with stop_on_signal() as stop, delivering(deliver_file, [run_dir]) as deliver:
        for event in watch(run_dir, rules, act=verbs, stop=stop, once=once):
            show(event)
            deliver(run_dir, event)
    if not checked:
        _warn_of_unknown_series(run_dir, rules)
    if any(e.state == FIRING and e.severity != "info" for e in read_alerts(run_dir)):
        click.get_current_context().exit(EXIT_FINDINGS)


def allowed_verbs(act: str | None) -> frozenset[str] | None:
    """The verbs that --act allows; None means advice only, none at all means neither.

    Raises:
        UsageError: a verb does not exist.

    Example:
        >>> sorted(allowed_verbs("scale_lr,stop")), allowed_verbs(None), allowed_verbs("off")
        (['scale_lr', 'stop'], None, frozenset())
    """
    if act in (None, "advise"):
        return None
    if act == "off":
        return frozenset()
    named = set(VERBS) if act == EVERY_VERB else {verb.strip() for verb in act.split(",")}
    if unknown := named - set(VERBS):
        raise UsageError(
            f"--act {', '.join(sorted(unknown))}: no such action; there are {', '.join(VERBS)}, "
            "off and advise (the run folder comes before --act)"
        )
    return frozenset(named)


def receiver(lang: str, as_json: bool) -> Callable[[Event], None]:
    """Prints an event as a line of text or as a JSON object."""
    if as_json:
        return lambda event: print_json(event_object(event), indent=None)
    return Terminal(sys.stdout, lang).deliver


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Set by Ctrl-C or a polite kill: the watch takes one last look and ends in order."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _warn_of_unknown_series(run_dir: Path, rules: Sequence[Rule]) -> bool:
    """Says which of the user's own rules read what nobody writes; a rule that ships may well.

    False while the run has no series to compare with.
    """
    shipped = {rule.name: rule.expression.text for rule in load_rules()}
    own = [rule for rule in rules if shipped.get(rule.name) != rule.expression.text]
    try:
        known = open_run(run_dir).specs()
    except UsageError:
        return False
    for sentence in check_rules(own, known) if known else ():
        click.echo(f"mindpulse: {sentence}", err=True)
    return bool(known)
