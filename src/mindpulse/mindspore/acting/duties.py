"""Hears what is asked for in the recorder's thread; has it done between two steps."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from mindpulse.control import Agenda, Answer, ControlLog, Message
from mindpulse.mindspore.acting.actions import Actions


class Duties:
    """What a rank was asked for, and has to answer.

    Args:
        actions: carries out.
        control: the log that both sides append to.
        boundary: the next step, if the call of the training that just ended, ended an optimizer
            step; else None.

    Attributes:
        inbox: heard, not looked at yet.
        outbox: answers that are not written yet.
    """

    def __init__(
        self, actions: Actions, control: ControlLog, boundary: Callable[[], int | None]
    ) -> None:
        self.actions = actions
        self.inbox: deque[Message] = deque()
        self.outbox: deque[Answer] = deque()
        self._control = control
        self._boundary = boundary
        self._agenda = Agenda(actions.rank, actions.attempt)
        self._reading = threading.Lock()

    # -- in the recorder's thread, and where the training waits for the disk anyway ---------------

    def exchange(self) -> None:
        """Reads what is new in the log, and writes the answers."""
        with self._reading:
            self.inbox.extend(self._control.poll())
            while self.outbox:
                self._control.answer(self.outbox[0])
                self.outbox.popleft()

    # -- in the training's thread -----------------------------------------------------------------

    def between(self) -> None:
        """Does what is due before the next step; costs next to nothing while nothing is asked."""
        self._hear()
        if not (self._agenda or self.actions.busy):
            return
        next_step = self._boundary()
        if next_step is None:
            return
        self.actions.step_ended(next_step)
        now = time.time()
        for request in self._agenda.to_consider():
            answer = self.actions.consider(request, next_step, now)
            self.outbox.append(answer)
            if answer.status != "ready":
                self._agenda.drop(request.seq)
        ready, expired = self._agenda.due(next_step)
        for request in ready:
            self.outbox.append(self.actions.carry_out(request, next_step, now))
        for request in expired:
            why = f"step {next_step} is past expires_step {request.expires_step}"
            if request.needs_go:
                why += f"; no go for all {request.ranks} ranks was heard in time"
            self.outbox.append(self.actions.answer(request, next_step, now, "expired", why))

    def _hear(self) -> None:
        # A decision may stand in the log that the thread has not read yet, and its step may be the
        # next one. If the thread is reading just now, it will be here at the next step.
        if self._agenda.undecided and self._reading.acquire(blocking=False):
            try:
                self.inbox.extend(self._control.poll())
            finally:
                self._reading.release()
        while self.inbox:
            self._agenda.add([self.inbox.popleft()])
