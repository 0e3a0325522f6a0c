"""Waiting for new rows, woken by the kernel or by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from mindpulse.store.writer import RankWriter
from mindpulse.testing import chunk, write_run
from mindpulse.watcher.waiting import Inotify, Polling, Waiter, waiter_for


@pytest.mark.parametrize("make", [lambda _, stop: Polling(stop, 0.05), Inotify, waiter_for])
def test_waiters_return_after_a_change_a_time_out_and_a_stop(
    tmp_path: Path, make: Callable[[Sequence[Path], threading.Event], Waiter]
) -> None:
    stop = threading.Event()
    waiter = make([tmp_path], stop)
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
    with closing(Inotify([tmp_path], threading.Event(), period_s=10.0)) as waiter:
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
    assert isinstance(waiter_for([tmp_path], threading.Event()), Polling)


def test_without_watches_left_it_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("mindpulse.watcher.waiting.Inotify", refuse)
    assert isinstance(waiter_for([tmp_path], threading.Event()), Polling)


def test_inotify_names_what_has_changed_in_any_of_many_runs(tmp_path: Path) -> None:
    one, other = (write_run(tmp_path / name, grad_norm=[1.0]) for name in "ab")
    with closing(Inotify([], threading.Event(), period_s=2.0)) as waiter:
        for name in "ab":
            waiter.follow(tmp_path / name)
        assert waiter.wait(0.05) == {}
        with closing(RankWriter(other, 0, 1)) as writer:
            add_row(writer)
            assert waiter.wait(2.0) == {other: {"grad_norm.0002.ms"}}
        waiter.peek()
        (one.parent.parent / "watcher.json").write_text("{}")
        (one.parent.parent / "alerts.jsonl").write_text("{}")
        assert waiter.wait(0.05) == {}
        (one.parent.parent / "control.jsonl").write_text("{}")
        assert waiter.wait(2.0) == {tmp_path / "a": {"control.jsonl"}}


def test_a_folder_that_appears_is_to_be_read_as_a_whole(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[1.0])
    with closing(Inotify([tmp_path], threading.Event())) as waiter:
        folder = write_run(tmp_path, first_step=2, grad_norm=[1.0])
        changes = waiter.wait(2.0)
        assert changes is not None
        assert "" in changes[folder]
        (folder / "train_loss.ms").write_bytes(b"")
        assert waiter.wait(2.0) == {folder: {"train_loss.ms"}}


def test_a_queue_that_ran_over_means_everything(tmp_path: Path) -> None:
    with closing(Inotify([tmp_path], threading.Event())) as waiter:
        assert waiter._changes([(-1, 0x4000, 0, "")]) is None


def test_polling_names_nothing_and_looks_once_in_a_period() -> None:
    now = [0.0]
    waiter = Polling(threading.Event(), 0.01, lambda: now[0])
    assert waiter.peek() == {}
    now[0] = 0.02
    assert waiter.peek() is None
    assert waiter.peek() == {}
    assert waiter.wait(0.0) is None
