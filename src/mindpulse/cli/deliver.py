"""`mindpulse deliver`: are the receivers of alerts right, and do they hear us?"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import print_json
from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import REFUSED, SENT, Outcome
from mindpulse.deliver.settings import Target, load_receivers


@click.command("deliver")
@click.argument("what", metavar="test|check", type=click.Choice(["test", "check"]))
@click.argument("deliver_file", metavar="FILE", type=click.Path(path_type=Path))
@options.as_json
def command(what: str, deliver_file: Path, as_json: bool) -> None:
    """Check a file of receivers, or send a test message to each of them.

    `check` reads the file and the secrets and sends nothing. `test` sends one message to each
    receiver and says what came back. Exit code 1 says that one of them was not reached.
    """
    targets = load_receivers(deliver_file)
    if what == "check":
        _show([_Tried(target, Outcome("fine")) for target in targets], as_json)
        return
    with ThreadPoolExecutor(max(1, len(targets))) as pool:
        tried = list(pool.map(_try, targets))
    _show(tried, as_json)
    if any(one.outcome.state != SENT for one in tried):
        click.get_current_context().exit(EXIT_FINDINGS)


@dataclass(frozen=True, slots=True)
class _Tried:
    """One receiver, what came back, and after how many seconds."""

    target: Target
    outcome: Outcome
    took_s: float = 0.0


def _try(target: Target) -> _Tried:
    settings, begun = target.settings, time.monotonic()
    message = Message(settings.name, settings.lang, test=True)
    outcome = target.sender.send(message, time.time())
    return _Tried(target, outcome, time.monotonic() - begun)


def _show(tried: list[_Tried], as_json: bool) -> None:
    if as_json:
        print_json([_document(one) for one in tried])
        return
    wide = max((len(one.target.settings.name) for one in tried), default=0)
    for one in tried:
        settings, outcome = one.target.settings, one.outcome
        state = "FAILED" if outcome.state not in (SENT, "fine") else outcome.state
        detail = f"  {outcome.detail} ({one.took_s:.2f} s)" if outcome.detail else ""
        click.echo(f"{settings.name:{wide}}  {settings.kind:12}  {state}{detail}")


def _document(one: _Tried) -> dict[str, object]:
    outcome = one.outcome
    return {
        "receiver": one.target.settings.name,
        "type": one.target.settings.kind,
        "state": outcome.state,
        "may_work_later": outcome.state not in (SENT, REFUSED, "fine"),
        "detail": outcome.detail,
        "took_s": round(one.took_s, 3),
    }
