"""Many runs in one watcher: found, followed, left alone when they are over, taken up again."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.rules.load import load_rules
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter
from mindpulse.testing import FakeClock, ScriptedWaiter, attempt_of, chunk, write_run
from mindpulse.watcher import Event, watch, watch_runs
from mindpulse.watcher.fleet import RESCAN_S, RETRY_S
from mindpulse.watcher.hot_rules import FromFile
from mindpulse.watcher.places import Place
from mindpulse.watcher.presence import Presence

QUIET, LOUD = [1.0] * 10, [1.0] * 10 + [80.0] * 5


def alerts(told: Iterator[tuple[Path, Event]] | list[tuple[Path, Event]]) -> list[tuple[str, str]]:
    return [(run.name, e.rule) for run, e in told if isinstance(e, AlertEvent)]


def scripted(places: list[Path], script: list[Callable[[], object]], clock: FakeClock, **options):
    stop = threading.Event()
    waiter = ScriptedWaiter(stop, script)
    return watch_runs(
        places, load_rules(), stop=stop, waiter=lambda *_: waiter, clock=clock, **options
    )


def test_runs_below_a_folder_are_found(tmp_path: Path) -> None:
    write_run(tmp_path / "a", grad_norm=LOUD)
    write_run(tmp_path / "deep" / "er" / "b", grad_norm=LOUD)
    write_run(tmp_path / ".hidden", grad_norm=LOUD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert sorted(alerts(watch_runs([tmp_path], load_rules(), once=True))) == [
        ("a", "gradient-explosion"), ("b", "gradient-explosion"),
    ]  # fmt: skip
    assert not (tmp_path / "alerts.jsonl").exists()
    assert not list(tmp_path.rglob("watcher.json"))


def test_a_run_that_appears_is_watched_from_then_on(tmp_path: Path) -> None:
    clock = FakeClock()

    def appear() -> None:
        write_run(tmp_path / "a", grad_norm=LOUD)
        clock.now_s += RESCAN_S

    def appear_too() -> None:
        write_run(tmp_path / "b", grad_norm=LOUD)
        clock.now_s += RESCAN_S

    told = scripted([tmp_path], [appear, appear_too, lambda: None], clock)
    assert alerts(told) == [("a", "gradient-explosion"), ("b", "gradient-explosion")]


def test_several_folders_and_ranks(tmp_path: Path) -> None:
    for rank in range(3):
        write_run(tmp_path / "a", rank=rank, grad_norm=LOUD if rank == 2 else QUIET)
    write_run(tmp_path / "b", grad_norm=LOUD)
    told = list(watch_runs([tmp_path / "a", tmp_path / "b"], load_rules(), once=True))
    assert sorted(alerts(told)) == [("a", "gradient-explosion"), ("b", "gradient-explosion")]
    assert [event.rank for event in read_alerts(tmp_path / "a")] == [2]


def test_one_run_that_cannot_be_watched_does_not_keep_others_from_it(tmp_path: Path) -> None:
    clock, said = FakeClock(), list[str]()
    for name in "ab":
        write_run(tmp_path / name, grad_norm=LOUD)
    other = Presence(tmp_path / "a", 0.0)

    def leave() -> None:
        other.close()
        clock.now_s += RETRY_S + RESCAN_S

    told = scripted([tmp_path], [lambda: None, leave, lambda: None], clock, tell=said.append)
    assert alerts(told) == [("b", "gradient-explosion"), ("a", "gradient-explosion")]
    assert len(said) == 1
    assert "is being watched already" in said[0]


def test_a_run_by_itself_that_cannot_be_watched_is_an_error(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=LOUD)
    with closing(Presence(tmp_path, 0.0)), pytest.raises(UsageError, match="already"):
        list(watch_runs([tmp_path], load_rules(), once=True))


def test_a_run_that_is_over_sleeps_and_wakes_when_it_is_written(tmp_path: Path) -> None:
    clock, seen = FakeClock(), list[bool]()
    watched = tmp_path / "a" / "watcher.json"
    write_run(tmp_path / "b", grad_norm=QUIET)
    recorder = Recorder(tmp_path / "a", clock=clock)
    recorder.add_scalars(1, {"grad_norm": 1.0})
    recorder.close()

    def later() -> None:
        seen.append(watched.exists())
        clock.now_s += 61.0

    def go_on() -> None:
        seen.append(watched.exists())
        write_run(tmp_path / "a", first_step=2, grad_norm=LOUD)
        clock.now_s += RETRY_S

    script = [later, lambda: None, go_on, lambda: None, lambda: seen.append(watched.exists())]
    told = scripted([tmp_path], script, clock)
    assert alerts(told) == [("a", "gradient-explosion")]
    assert seen == [True, False, True]


def test_many_old_runs_are_looked_at_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindpulse.watcher.fleet.MOST_STARTING", 6)
    awake: list[int] = []

    def count(*_: object) -> None:
        awake.append(len(list(tmp_path.glob("*/watcher.json"))))

    for number in range(40):
        write_run(tmp_path / f"{number:03}", grad_norm=LOUD)
    told = []
    for run, event in scripted([tmp_path], [count, count], FakeClock()):
        told += alerts([(run, event)])
        count()
    assert told == [(f"{number:03}", "gradient-explosion") for number in range(40)]
    assert max(awake) <= 9
    for path in tmp_path.glob("*/alerts.jsonl"):
        path.unlink()
    told = alerts(watch_runs([tmp_path], load_rules(), once=True))
    assert told == [(f"{number:03}", "gradient-explosion") for number in range(40)]


def test_a_run_that_is_silent_is_stalled_and_goes_on(tmp_path: Path) -> None:
    clock = FakeClock()
    recorder = Recorder(tmp_path, clock=clock)

    def rows(first: int) -> None:
        for step in range(first, first + 20):
            clock.now_s += 1.0
            recorder.add_scalars(step, {"train_loss": 1.0, "step_time_s": 1.0})
        assert recorder.flush()

    def wait() -> None:
        clock.now_s += 200.0

    script = [lambda: rows(1), wait, lambda: None, lambda: rows(21), recorder.close, wait]
    told = [e for _, e in scripted([tmp_path], script, clock) if isinstance(e, AlertEvent)]
    assert [(e.rule, e.state, e.step) for e in told] == [
        ("stalled-run", "firing", 20), ("stalled-run", "resolved", 40),
    ]  # fmt: skip
    assert [(e.id, e.state) for e in read_alerts(tmp_path)] == [(e.id, e.state) for e in told]


def test_a_long_history_does_not_keep_others_waiting(tmp_path: Path) -> None:
    """The long run takes many turns; the short one, which comes later by name, is told first."""
    write_run(tmp_path / "a", grad_norm=[*np.ones(30_000), 80.0])
    write_run(tmp_path / "b", grad_norm=LOUD)
    told = alerts(watch_runs([tmp_path], load_rules(), once=True))
    assert told == [("b", "gradient-explosion"), ("a", "gradient-explosion")]


def test_rules_that_change_are_used_at_once(tmp_path: Path) -> None:
    run, file, said = tmp_path / "run", tmp_path / "rules.toml", list[str]()
    write_run(run, grad_norm=LOUD)
    table = '[[rule]]\nname = "mine"\nexpr = "last(grad_norm) > {}"\n'
    file.write_text(table.format(1000))
    clock = FakeClock()
    source = FromFile(file, said.append, clock)
    stop = threading.Event()

    def change(text: str) -> Callable[[], None]:
        def act() -> None:
            file.write_text(text)
            clock.now_s += 2.0

        return act

    def later() -> None:  # a file is read when it has stood still for a look
        clock.now_s += 2.0

    script = [change("nonsense"), later, change(table.format(70)), later, lambda: None]
    waiter = ScriptedWaiter(stop, script)
    told = watch(run, source, stop=stop, waiter=lambda *_: waiter, clock=clock)
    rules = [event.rule for event in told if isinstance(event, AlertEvent)]
    assert rules == ["gradient-explosion", "mine"]
    assert "not TOML" in said[0]
    assert "stay as they were" in said[0]
    assert "has changed" in said[1]
    assert [event.rule for event in read_alerts(run)] == rules


def test_what_a_place_is_shows_when_something_is_in_it(tmp_path: Path) -> None:
    place = Place(tmp_path / "x")
    assert place.runs() == []
    (tmp_path / "x").mkdir()
    assert place.runs() == [tmp_path / "x"]
    write_run(tmp_path / "x" / "run", grad_norm=QUIET)
    assert place.runs() == [tmp_path / "x" / "run"]
    write_run(tmp_path / "x", grad_norm=QUIET)
    assert place.runs() == [tmp_path / "x"]


class Live:
    """A real watcher in a thread, woken by the kernel."""

    def __init__(self, place: Path) -> None:
        self.told: list[tuple[str, str, float]] = []
        self.stop = threading.Event()
        self._place = place
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        for run, event in watch_runs([self._place], load_rules(), stop=self.stop):
            if isinstance(event, AlertEvent):
                self.told.append((run.name, event.state, time.time()))

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def until(self, count: int, limit_s: float = 10.0) -> None:
        end = time.monotonic() + limit_s
        while len(self.told) < count:
            assert time.monotonic() < end, f"only {self.told} came"
            time.sleep(0.005)


def test_the_kernel_wakes_it_for_new_runs_ranks_attempts_and_rows(tmp_path: Path) -> None:
    """Sooner than it would look by itself."""
    with Live(tmp_path) as live:
        time.sleep(0.3)
        begin = time.time()
        writers = []
        for count, (run, rank) in enumerate([("a", 0), ("b", 0), ("b", 1), ("b", 1)], start=1):
            folder = create_attempt(tmp_path / run, rank)
            writers.append(RankWriter(folder, rank, attempt_of(folder)))
            for first, values in ((1, QUIET), (11, [80.0]), (12, [1.0] * 12)):
                part = chunk("grad_norm", values, first_step=first, rank=rank)
                writers[-1].append(part.spec, part.rows)
                writers[-1].flush()
            live.until(2 * count)
        assert time.time() - begin < RESCAN_S - 1
    for writer in writers:
        writer.close()
    assert [name for name, _, _ in live.told] == ["a"] * 2 + ["b"] * 6


class Steps:
    """Writes 500 steps each time it is called, and notes what memory is in use."""

    def __init__(self, run: Path) -> None:
        self.writer = RankWriter(create_attempt(run), 0, 1)
        self.step = 1
        self.sizes: list[int] = []

    def __call__(self) -> None:
        for tag in ("train_loss", "grad_norm", "learning_rate", "step_time_s"):
            part = chunk(tag, np.ones(500), first_step=self.step)
            self.writer.append(part.spec, part.rows)
        self.writer.flush()
        self.writer.sync()
        self.step += 500
        self.sizes.append(tracemalloc.get_traced_memory()[0])


def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    """What a run keeps after 30,000 steps is what it keeps after 10,000."""
    alone, watched = Steps(tmp_path / "alone"), Steps(tmp_path / "watched")
    stop = threading.Event()
    waiter = ScriptedWaiter(stop, [watched] * 60)
    tracemalloc.start()
    try:
        for _ in range(60):
            alone()
        list(
            watch(
                tmp_path / "watched", load_rules(), stop=stop, waiter=lambda *_: waiter,
                clock=FakeClock(),
            )
        )  # fmt: skip
    finally:
        tracemalloc.stop()
    by_writer = alone.sizes[-1] - alone.sizes[20]
    assert watched.sizes[-1] - watched.sizes[20] - by_writer < 200_000, watched.sizes
    alone.writer.close()
    watched.writer.close()
