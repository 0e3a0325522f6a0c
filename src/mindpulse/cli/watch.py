"""`mindpulse watch`: judge runs while they train, or afterwards as if they did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import click

from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.alerts.journal import Journal, read_alerts
from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import print_json
from mindpulse.cli.receivers import deliver_option, delivering
from mindpulse.cli.stopping import stop_on_signal
from mindpulse.control.schema import VERBS
from mindpulse.deliver.file import event_object
from mindpulse.deliver.terminal import Terminal
from mindpulse.errors import UsageError
from mindpulse.health import replay as replayed
from mindpulse.interop import open_run
from mindpulse.rules.load import check_rules, load_rules
from mindpulse.rules.rule import Rule
from mindpulse.watcher import Event, watch_runs
from mindpulse.watcher.hot_rules import FromFile
from mindpulse.watcher.places import Place, is_run
from mindpulse.watcher.sampler import INTERVAL_S, sampler

EVERY_VERB = "all"


@click.command("watch")
@click.argument(
    "places", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
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
@click.option("--replay", is_flag=True, help="Judge a recorded run as if live; write nothing.")
@click.option(
    "--device-interval",
    "device_interval_s",
    type=options.finite(least=0),
    default=INTERVAL_S,
    show_default=True,
    metavar="SECONDS",
    help="How often npu-smi is asked, where it is installed; 0: never.",
)
@click.option("--journal", is_flag=True, help="With --replay: write alerts.jsonl all the same.")
@options.lang
@options.as_json
def command(
    places: tuple[Path, ...],
    act: str | None,
    rules_file: Path | None,
    deliver_file: Path | None,
    once: bool,
    replay: bool,
    device_interval_s: float,
    journal: bool,
    lang: str,
    as_json: bool,
) -> None:
    """Watch runs, raise alerts, and with --act put them right.

    Each DIR is a run folder, or a folder below which runs are or will be; it may appear later. Goes
    on until it is interrupted; it may be killed and started again at any time. A file of rules is
    read again when it changes. With --replay, DIR may be what another tool wrote. Exit code 1 says
    that an alert above "info" was raised.
    """
    if journal and not replay:
        raise UsageError("--journal goes with --replay; a live watch always writes alerts.jsonl")
    if replay:
        grave = _replay(places, rules_file, journal, receivers(lang, as_json, places))
    else:
        asked_every_s = 0.0 if once else device_interval_s
        grave = _watch(places, act, rules_file, deliver_file, once, asked_every_s, lang, as_json)
    if grave:
        click.get_current_context().exit(EXIT_FINDINGS)


def _watch(
    places: Sequence[Path],
    act: str | None,
    rules_file: Path | None,
    deliver_file: Path | None,
    once: bool,
    device_interval_s: float,
    lang: str,
    as_json: bool,
) -> bool:
    """True if there was an alert above "info" in one of the runs."""
    source = FromFile(rules_file, _tell)
    rules, verbs = source.rules, allowed_verbs(act)
    for place in places:
        options.only_run_folder(place, "watch")
    checked = [place for place in places if _warn_of_unknown_series(place, rules)]
    if not once:
        mode = f"may ask for {', '.join(sorted(verbs))}" if verbs else "advice only, see --act"
        mode = "neither advice nor requests" if verbs == frozenset() else mode
        names = ", ".join(map(str, places))
        click.echo(f"watching {names} with {len(rules)} rules ({mode}); Ctrl-C ends", err=True)
    show = receivers(lang, as_json, places)
    named = [run for place in places for run in Place(place).runs() or [place]]
    asking = sampler(device_interval_s, _tell)
    with (
        stop_on_signal() as stop,
        delivering(deliver_file, named) as carry,
        closing(asking) if asking else nullcontext(),
    ):
        for run, event in watch_runs(
            places, source, act=verbs, stop=stop, once=once, tell=_tell, sampler=asking
        ):
            show(run, event)
            carry(run, event)
    for place in places:
        if place not in checked:
            _warn_of_unknown_series(place, rules)
    runs = [run for place in places for run in Place(place).runs()]
    return any(_is_grave(event) for run in runs for event in read_alerts(run))


def _replay(
    places: Sequence[Path],
    rules_file: Path | None,
    journal: bool,
    deliver: Callable[[Path, Event], None],
) -> bool:
    rules, grave = load_rules(rules_file), False
    for place in places:
        run = open_run(place)
        _warn_of_unknown_series(place, rules)
        if journal and not is_run(place):
            raise UsageError(f"{place}: --journal writes into run folders only; import it first")
        told = replayed(run, rules)
        for event in Journal(place, rules).add(told) if journal else told:
            grave = grave or _is_grave(event)
            if event.delivered:
                deliver(place, event)
    return grave


def _is_grave(event: AlertEvent) -> bool:
    return event.state == FIRING and event.severity != "info" and event.delivered


def _tell(sentence: str) -> None:
    click.echo(f"mindpulse: {sentence}", err=True)


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


def receivers(lang: str, as_json: bool, places: Sequence[Path]) -> Callable[[Path, Event], None]:
    """Prints an event of a run as a line of text or as a JSON object.

    Args:
        places: what was named; where it is not one run alone, each line says which it is about.
    """
    terminal = Terminal(sys.stdout, lang)

    def deliver(run: Path, event: Event) -> None:
        if as_json:
            print_json({**event_object(event), "run": str(run)}, indent=None)
            return
        if [run] != list(places):
            sys.stdout.write(f"{run}: ")
        terminal.deliver(event)

    return deliver


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
        _tell(sentence)
    return bool(known)
