"""Waiting for new rows, woken by the kernel or by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mindpulse.store.writer import RankWriter
from mindpulse.testing import chunk, write_run
from mindpulse.watcher.waiting import Inotify, Polling, Waiter, waiter_for


@pytest.mark.parametrize("make", [lambda run, stop: Polling(stop, 0.05), Inotify, waiter_for])
def test_waiters_return_after_a_change_a_time_out_and_a_stop(
    tmp_path: Path, make: Callable[[Path, threading.Event], Waiter]
) -> None:
    stop = threading.Event()
    waiter = make(tmp_path, stop)
    try:
        waiter.wait(0.05)
        write_run(tmp_path, grad_norm=[1.0])
        begin = time.monotonic()
        waiter.wait(5.0)
        assert time.monotonic() - begin < 1.0
        stop.set()
        waiter.wait(5.0)
        assert time.monotonic() - begin < 2.0
    finally:
        waiter.close()


def test_inotify_wakes_on_rows_of_an_attempt_that_came_later(tmp_path: Path) -> None:
    with closing(Inotify(tmp_path, threading.Event(), period_s=10.0)) as waiter:
        folder = write_run(tmp_path, grad_norm=[1.0])
        waiter.wait(0.2)
        waiter.wait(0.2)
        with closing(RankWriter(folder, 0, 1)) as writer:
            timer = threading.Timer(0.2, add_row, (writer,))
            timer.start()
            begin = time.monotonic()
            waiter.wait(5.0)
            assert 0.1 < time.monotonic() - begin < 3.0
            timer.join()


def add_row(writer: RankWriter) -> None:
    part = chunk("grad_norm", [2.0], first_step=2)
    writer.append(part.spec, part.rows)
    writer.flush()


def test_a_network_file_system_is_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindpulse.watcher.waiting.network_file_system", lambda path: "nfs4")
    assert isinstance(waiter_for(tmp_path, threading.Event()), Polling)


def test_without_watches_left_it_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("mindpulse.watcher.waiting.Inotify", refuse)
    assert isinstance(waiter_for(tmp_path, threading.Event()), Polling)
