"""What happened in a run: alerts folded from their events, requests joined with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mindpulse.alerts import FIRING, RESOLVED, AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.control import Answer, ControlLog, Decision, Judgement, Rejected, Request
from mindpulse.report.data import Action, Alert
from mindpulse.rules.rule import Rule
from mindpulse.store.notes import Note
from mindpulse.store.run import Run

# Notes that tell how things went, not that something went wrong.
ORDINARY_NOTES = {"end", "fingerprint", "note", "snapshot", "start", "stop", "tag"}
STRONGEST = (
    "failed",
    "refused",
    "expired",
    "done",
    "ready",
)  # of several ranks, the first that occurs


def alerts(
    run: Run, rules: Sequence[Rule], judged: Iterable[AlertEvent], replay_all: bool = False
) -> tuple[Alert, ...]:
    """The alerts of a run: what a watcher said, and what it would have said had it been there.

    Args:
        judged: what the rules say now, see `health.judge_run`.
        replay_all: leave out what a watcher said; judge the run by `rules` alone.
    """
    told = [] if replay_all else read_alerts(run.path)
    known = {(event.id, event.state): event for event in (*told, *judged)}
    own = {rule.name: rule.texts for rule in rules}
    return fold(known.values(), own)


def fold(
    events: Iterable[AlertEvent], own: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Alert, ...]:
    """One alert for the events of the same id, in the order of their first steps.

    Args:
        own: words of users' rules, by rule and language.
    """
    by_id: dict[str, dict[str, AlertEvent]] = {}
    for event in events:
        by_id.setdefault(event.id, {})[event.state] = event
    words = own or {}
    found = [
        _alert(states[FIRING], states.get(RESOLVED), words.get(states[FIRING].rule, {}))
        for states in by_id.values()
        if FIRING in states
    ]
    return tuple(sorted(found, key=lambda a: (a.since_step, a.rule, a.rank)))


def _alert(fired: AlertEvent, over: AlertEvent | None, message: Mapping[str, str]) -> Alert:
    return Alert(
        rule=fired.rule,
        severity=fired.severity,
        part=fired.part,
        since_step=fired.since_step,
        end_step=over.step if over else None,
        rank=fired.rank,
        columns=fired.columns,
        evidence=dict(fired.evidence),
        message=dict(message),
    )


def troubles(notes: Iterable[Note]) -> tuple[str, ...]:
    """What the monitor reported about itself: lost rows, failed probes, files begun anew.

    Notes of the same kind and words are one line that counts them.
    """
    counted = Counter(_trouble(note) for note in notes if not _is_ordinary(note))
    return tuple(
        text if count == 1 else f"{text} ({count} times)" for text, count in counted.items()
    )


def _is_ordinary(note: Note) -> bool:
    planted = note.kind == "probe" and note.data.get("state") == "planted"
    return planted or note.kind in ORDINARY_NOTES


def _trouble(note: Note) -> str:
    words = ", ".join(f"{key} {value}" for key, value in note.data.items())
    return f"{note.kind}: {words}" if words else note.kind


def read_actions(run_dir: Path) -> tuple[tuple[Action, ...], list[str]]:
    """The requests of `control.jsonl` with their answers, and the lines that were rejected."""
    messages = ControlLog(run_dir).poll()
    answers: dict[int, list[Answer]] = {}
    for message in messages:
        if isinstance(message, Answer):
            answers.setdefault(message.seq, []).append(message)
    requests = [message for message in messages if isinstance(message, Request)]
    against = {m.seq: m.reason for m in messages if isinstance(m, Decision) and not m.go}
    effects = {m.seq: m.effect for m in messages if isinstance(m, Judgement)}
    actions = tuple(
        _action(r, answers.get(r.seq, []), against.get(r.seq, ""), effects.get(r.seq, ""))
        for r in requests
    )
    rejected = [f"control.jsonl: {m.why}" for m in messages if isinstance(m, Rejected)]
    return actions, rejected


def _action(request: Request, answers: list[Answer], against: str, effect: str) -> Action:
    ordered = sorted(answers, key=lambda a: STRONGEST.index(a.status))
    answer = ordered[0] if ordered else None
    status = answer.status if answer else "open"
    detail = answer.detail if answer else ""
    if status in ("open", "ready"):
        status, detail = ("refused", against) if against else ("open", detail)
    return Action(
        seq=request.seq,
        verb=request.verb,
        args=dict(request.args),
        rule=request.rule,
        asked_step=request.step,
        done_step=answer.step if answer else None,
        status=status,
        detail=f"{detail}; effect: {effect}" if effect else detail,
    )
