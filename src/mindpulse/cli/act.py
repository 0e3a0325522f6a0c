"""`mindpulse act`: a hand on the wheel of a training that runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import print_json
from mindpulse.control import Answer, ControlLog, Decision, Request
from mindpulse.errors import UsageError
from mindpulse.messages import request_text, text
from mindpulse.watcher.by_hand import (
    args_of,
    ask,
    follow,
    last_undoable,
    look,
    read_ledger,
)
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import Limits


@click.command("act")
@options.run_dir
@click.argument("verb", required=False)
@click.argument("args", metavar="[ARG]...", nargs=-1)
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="Before which step [default: the next that all ranks can meet].",
)
@click.option(
    "--wait",
    "wait_s",
    type=options.finite(least=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answers; the request stands all the same.",
)
@click.option("--list", "list_all", is_flag=True, help="What was asked so far, and what it did.")
@options.lang
@options.as_json
def command(
    run_dir: Path,
    verb: str | None,
    args: tuple[str, ...],
    step: int | None,
    wait_s: float,
    list_all: bool,
    lang: str,
    as_json: bool,
) -> None:
    """Ask a training to do something, as a watcher would: VERB with its numbers.

    For example `scale_lr 0.5`, `skip_step`, `rollback factor=0.5`, `keep every=100`, `set_clip 1`,
    `checkpoint`, `stop`; `undo` takes the last one back, `undo 3` that of number 3. Exit code 1
    says that it was not carried out, or that no answer came in time.
    """
    options.only_run_folder(run_dir, "act")
    if list_all:
        if verb:
            raise UsageError(f"{verb!r}: --list takes no action")
        _list(read_ledger(run_dir), lang, as_json)
        return
    if not verb:
        raise UsageError("say what to do, for example `mindpulse act RUN scale_lr 0.5`, or --list")
    if verb == "undo" and not args:
        args = (str(last_undoable(read_ledger(run_dir))),)
    numbers = args_of(verb, args)
    request, ledger = asked(run_dir, verb, numbers, step, wait_s, lang, quiet=as_json)
    if as_json:
        print_json(_entry(request, ledger))
    if not done(request, ledger):
        click.get_current_context().exit(EXIT_FINDINGS)


def asked(
    run_dir: Path,
    verb: str,
    numbers: dict[str, float],
    step: int | None,
    wait_s: float,
    lang: str,
    quiet: bool,
) -> tuple[Request, Ledger]:
    """Asks, tells what becomes of it unless `quiet`, and returns what was said.

    Raises:
        UsageError: no training is there that could hear it.
    """
    now = look(run_dir)
    if now.alive is False:
        raise UsageError(f"{run_dir}: no training writes here now, so nobody would hear it")
    limits, control = Limits(), ControlLog(run_dir)
    control.poll()  # what was said before is no answer to this
    request = ask(control, now, verb, numbers, step, limits)
    ledger = Ledger()
    ledger.add([request])
    if not quiet:
        words = request_text(verb, request.args, lang)
        click.echo(text("act.asked", lang, seq=request.seq, request=words, step=request.step))
    for message in follow(control, request, now, limits, wait_s):
        ledger.add([message])
        if not quiet:
            click.echo(_said(message, request, lang))
    if ledger.outcome(request.seq) is None and not quiet:
        click.echo(text("act.waiting", lang, seconds=f"{wait_s:g}", step=request.expires_step))
    return request, ledger


def done(request: Request, ledger: Ledger) -> bool:
    """Whether all ranks have carried it out."""
    outcome = ledger.outcome(request.seq)
    return outcome is not None and outcome.status == "done"


def _said(message: Answer | Decision, request: Request, lang: str) -> str:
    words = request_text(request.verb, request.args, lang)
    if isinstance(message, Decision):
        key = "action.go" if message.go else "action.withdrawn"
        return text(
            key, lang, seq=message.seq, step=message.step, request=words, detail=message.reason
        )
    return text(
        "action.answer",
        lang,
        seq=message.seq,
        rank=message.rank,
        status=text(f"status.{message.status}", lang),
        step=message.step,
        detail=f" ({message.detail})" if message.detail else "",
    )


def _list(ledger: Ledger, lang: str, as_json: bool) -> None:
    entries = [_entry(request, ledger) for request in ledger.requests.values()]
    if as_json:
        print_json(entries)
        return
    if not entries:
        click.echo(text("act.nothing", lang))
    for request, entry in zip(ledger.requests.values(), entries, strict=True):
        click.echo(" ".join(_line(request, entry, lang)))


def _line(request: Request, entry: dict[str, Any], lang: str) -> Iterator[str]:
    why = request.rule or request.reason
    status = entry["status"]
    told = text(f"status.{status}", lang) if status != "open" else text("act.open", lang)
    words = request_text(request.verb, request.args, lang)
    yield f"{request.seq:>3}  {entry['step']:>6}  {told}: {words} ({why})"
    if entry["detail"]:
        yield f"- {entry['detail']}"
    if (judged := entry["judgement"]) is not None:
        numbers = {
            side: ", ".join(f"{term} = {value:.4g}" for term, value in judged[side].items()) or "-"
            for side in ("before", "after")
        }
        yield "- " + text(f"effect.{judged['effect']}", lang, **numbers)
    if entry["undone"]:
        yield "- " + text("act.undone", lang)


def _entry(request: Request, ledger: Ledger) -> dict[str, Any]:
    """A request and all that followed, as plain values."""
    outcome = ledger.outcome(request.seq)
    judgement = ledger.judgements.get(request.seq)
    decision = ledger.decisions.get(request.seq)
    return {
        **asdict(request),
        "status": outcome.status if outcome else "open",
        "done_step": outcome.step if outcome else None,
        "step": outcome.step if outcome else request.step,
        "asked_step": request.step,
        "detail": outcome.detail if outcome else "",
        "answers": [asdict(answer) for _, answer in sorted(_replies(request, ledger).items())],
        "decision": asdict(decision) if decision else None,
        "judgement": asdict(judgement) if judgement else None,
        "undone": request.seq in ledger.undone,
    }


def _replies(request: Request, ledger: Ledger) -> dict[int, Answer]:
    return ledger.replies.get(request.seq, {})
