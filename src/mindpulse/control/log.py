"""The control log: requests of the watcher, answers of the ranks, in `control.jsonl`.

This file is the only way back into a training. Each line is one object, checked against a schema;
a line that does not pass is left aside and reported, never obeyed. The contract between both sides
is written down in `docs/control.md`. Standard library only: the training process imports this.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mindpulse.control.message import (
    Answer,
    Decision,
    Judgement,
    Message,
    Rejected,
    Request,
    encode,
    parse_line,
)
from mindpulse.control.verbs import check_args
from mindpulse.errors import StoreError
from mindpulse.jsonlines import LineTail, append, locked

CONTROL_FILE = "control.jsonl"


class ControlLog:
    """One side's view of `control.jsonl`; both sides append, each reads on where it stopped.

    Example:
        >>> import tempfile
        >>> log = ControlLog(tempfile.mkdtemp())
        >>> asked = log.request("scale_lr", {"factor": 0.5}, step=120, expires_step=170)
        >>> log.answer(Answer(asked.seq, 0.0, rank=0, attempt=1, step=120, status="done"))
        >>> [type(message).__name__ for message in log.poll()]
        ['Request', 'Answer']
    """

    def __init__(
        self, run_dir: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = Path(run_dir) / CONTROL_FILE
        self._clock = clock
        self._tail = LineTail(self.path)
        self._last_seq = 0
        self._distrusted = False

    def request(
        self,
        verb: str,
        args: Mapping[str, float],
        *,
        step: int,
        expires_step: int,
        attempt: int = 1,
        rule: str = "",
        reason: str = "",
        evidence: Mapping[str, float] | None = None,
        alert: str = "",
        ranks: int = 1,
    ) -> Request:
        """Appends a request under the next sequence number and returns it.

        Raises:
            UsageError: the verb, an argument or a field is not allowed; nothing was written.
            StoreError: the file cannot be written.
        """
        values = check_args(verb, args)
        why = {name: float(value) for name, value in (evidence or {}).items()}
        with self._locked() as descriptor:
            asked = Request(
                self._next_seq(), self._clock(), verb, values, rule, reason, why,
                step, expires_step, attempt, alert, ranks,
            )  # fmt: skip
            append(descriptor, encode(asked))
        return asked

    def answer(self, answer: Answer | Decision | Judgement) -> None:
        """Appends an answer of a rank, or what the asking side decided or found.

        Raises:
            UsageError: a field has a wrong type or value; nothing was written.
            StoreError: the file cannot be written.
        """
        line = encode(answer)
        with self._locked() as descriptor:
            append(descriptor, line)

    def poll(self) -> list[Message]:
        """What was added since the last call, in order; one `stat` if nothing was.

        A request whose number does not grow is rejected: a copied line cannot act twice.
        A file that is not ours, or that others may write, is not obeyed at all.
        """
        lines = self._tail.poll()
        if not lines:
            return []
        if why := _distrust(self.path):
            first, self._distrusted = not self._distrusted, True
            return [Rejected("", why)] if first else []
        return [self._admit(parse_line(line)) for line in lines]

    def _admit(self, message: Message) -> Message:
        if not isinstance(message, Request):
            return message
        if message.seq <= self._last_seq:
            return Rejected(str(message), f"seq {message.seq} is not above {self._last_seq}")
        self._last_seq = message.seq
        return message

    def _next_seq(self) -> int:
        messages = map(parse_line, LineTail(self.path).poll())
        return 1 + max((m.seq for m in messages if isinstance(m, Request)), default=0)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            with locked(self.path) as descriptor:
                yield descriptor
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror or error}; "
                "check that the folder exists, is writable and has space"
            ) from error


def _distrust(path: Path) -> str:
    """Why the file must not be obeyed, "" if it may."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return f"{path} is not a regular file: requests in it are ignored"
    if found.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to user {found.st_uid}: requests in it are ignored"
    if found.st_mode & 0o022:
        return f"{path} can be written by others: requests in it are ignored; chmod 600 it"
    return ""
