"""Stalled runs and stopped ranks, by a clock that the tests hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.words import alert_text
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk, Note
from mindpulse.watcher.liveness import Liveness, held_in
from mindpulse.watcher.rhythm import Rhythm

BEGIN = 1e9
LOSS = SeriesSpec("train_loss")


class Ranks:
    """Rows at given times, and what becomes of the silence behind them."""

    def __init__(self, firing: list[AlertEvent] | None = None) -> None:
        self.holds: dict[int, bool | None] = {}
        self.live = Liveness(firing or [], lambda rank, attempt: self.holds.get(rank), BEGIN)
        self.steps: dict[int, int] = {}

    def rows(self, rank: int, times: list[float], attempt: int = 1) -> None:
        first = self.steps.get(rank, 0) + 1
        steps = np.arange(first, first + len(times))
        self.steps[rank] = int(steps[-1])
        block = Rows(steps, BEGIN + np.array(times), np.zeros((len(times), 1)))
        self.live.saw([Chunk(rank, attempt, LOSS, block)], BEGIN + times[-1])

    def end(self, rank: int, at: float) -> None:
        self.live.saw([Note(rank, 1, "end", None, BEGIN + at)], BEGIN + at)

    def look(self, at: float) -> list[tuple[str, str, int, int]]:
        return [(e.rule, e.state, e.rank, e.step) for e in self.live.look(BEGIN + at)]


def seconds(first: float, last: float, every: float = 1.0) -> list[float]:
    return np.arange(first, last + every / 2, every).tolist()


def test_a_run_that_stops_is_stalled_once_and_goes_on() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    assert run.look(100) == []
    assert run.look(270) == []
    assert run.look(281) == [("stalled-run", "firing", 0, 100)]
    assert run.look(900) == []
    run.rows(0, [950.0])
    assert run.look(950) == [("stalled-run", "resolved", 0, 101)]
    assert run.look(951) == []


def test_it_says_how_long_and_how_long_it_might_have_been() -> None:
    run = Ranks()
    run.rows(0, seconds(20, 2000, 20.0))
    run.look(2000)
    (event,) = run.live.look(BEGIN + 2601)
    assert event.evidence == {
        "silent_s": 601.0, "limit_s": 600.0, "usual_pause_s": 20.0, "process_gone": 0.0,
    }  # fmt: skip
    assert (event.severity, event.part) == ("error", "throughput")
    assert "nothing is written any more" in alert_text(event)
    assert "不再写入任何数据" in alert_text(event, "zh")


def test_a_run_that_ended_is_not_stalled() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    run.end(0, 100.0)
    assert run.look(100) == []
    assert run.look(50_000) == []
    assert run.live.asleep(BEGIN + 50_000)


def test_an_end_that_comes_late_takes_the_alert_back() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    run.look(100)
    assert run.look(300) == [("stalled-run", "firing", 0, 100)]
    run.end(0, 310.0)
    assert run.look(310) == [("stalled-run", "resolved", 0, 100)]


def test_a_pause_that_comes_again_is_learnt() -> None:
    run, at = Ranks(), 0.0
    for _ in range(3):  # each hundred steps an evaluation of 150 s
        run.rows(0, seconds(at + 1, at + 100))
        at += 250
        assert run.look(at) == []
    run.rows(0, seconds(at + 1, at + 100))
    assert run.look(at + 100 + 440) == []
    assert run.look(at + 100 + 460) == [("stalled-run", "firing", 0, 400)]


def test_compiling_is_not_taken_for_a_stall_nor_for_a_habit() -> None:
    run = Ranks()
    run.rows(0, [1.0])
    assert run.look(1) == []
    assert run.look(900) == []  # the second graph compiles
    run.rows(0, [900.0])
    run.rows(0, seconds(901, 1000))
    assert run.look(1000) == []
    assert run.look(1181) == [("stalled-run", "firing", 0, 102)]


@pytest.mark.parametrize(
    ("pauses", "limit"),
    [
        ([1.0] * 50, 180.0),
        ([60.0] * 50, 1800.0),
        ([600.0] * 50, 3600.0),
        ([1.0] * 50 + [400.0], 600.0),
        ([1.0] * 50 + [400.0, 1.0, 300.0], 900.0),
        ([500.0, 1.0], 1800.0),
    ],
)
def test_the_limit(pauses: list[float], limit: float) -> None:
    rhythm = Rhythm()
    rhythm.add(np.cumsum([BEGIN, 1.0, *pauses]))
    assert rhythm.limit_s() == limit


def test_the_limit_does_not_depend_on_how_rows_came() -> None:
    times = BEGIN + np.cumsum(np.random.default_rng(0).exponential(30.0, 300))
    whole, pieces = Rhythm(), Rhythm()
    whole.add(times)
    for part in np.array_split(times, 37):
        pieces.add(part)
        pieces.add(part[-1:])  # another series of the same steps
    assert pieces.limit_s() == whole.limit_s()


def test_times_that_are_none_teach_nothing() -> None:
    rhythm = Rhythm()
    rhythm.add(np.array([np.nan, np.inf, -np.inf]))
    rhythm.add(BEGIN + np.arange(20.0))
    rhythm.add(np.array([5.0]))  # a clock that was set back
    assert (rhythm.typical_s(), rhythm.limit_s()) == (1.0, 180.0)


def test_a_process_that_is_gone_is_told_soon() -> None:
    run = Ranks()
    run.holds[0] = True
    run.rows(0, seconds(1, 100))
    run.look(100)
    run.holds[0] = False
    assert run.look(110) == []
    assert run.look(116) == [("stalled-run", "firing", 0, 100)]


def test_who_never_held_a_folder_is_not_gone() -> None:
    """A run that is copied here from another machine."""
    run = Ranks()
    run.holds[0] = False
    run.rows(0, seconds(1, 100))
    run.look(100)
    assert run.look(170) == []


def test_a_rank_that_stops_while_others_go_on() -> None:
    run = Ranks()
    for rank in range(4):
        run.rows(rank, seconds(1, 100))
    run.look(100)
    for rank in (0, 1, 3):
        run.rows(rank, seconds(101, 300))
    assert run.look(300) == [("rank-stopped", "firing", 2, 100)]
    run.rows(2, [301.0])
    assert run.look(302) == [("rank-stopped", "resolved", 2, 101)]


def test_a_rank_whose_process_is_gone_explains_why_the_others_hang() -> None:
    run = Ranks()
    run.holds = {0: True, 1: True}
    for rank in (0, 1):
        run.rows(rank, seconds(1, 100))
    run.look(100)
    run.holds[1] = False
    assert run.look(116) == [("rank-stopped", "firing", 1, 100)]
    assert run.live.look(BEGIN + 117) == []
    (stalled,) = run.live.look(BEGIN + 300)
    assert (stalled.rule, stalled.inhibited_by) == ("stalled-run", "rank-stopped/a1/r1/s100")
    assert not stalled.delivered


def test_the_rank_that_came_least_far_is_named() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    run.rows(1, seconds(1, 99))
    run.look(100)
    assert run.look(300) == [("stalled-run", "firing", 1, 99)]


def test_a_rank_that_ended_is_not_missed() -> None:
    run = Ranks()
    for rank in (0, 1):
        run.rows(rank, seconds(1, 100))
    run.end(1, 100.0)
    run.look(100)
    run.rows(0, seconds(101, 400))
    assert run.look(400) == []


def test_a_new_attempt_is_a_new_beginning() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    run.look(100)
    assert len(run.look(300)) == 1
    run.steps[0] = 49
    run.rows(0, [400.0], attempt=2)
    assert run.look(400) == [("stalled-run", "resolved", 0, 100)]
    assert run.look(1500) == []  # it compiles
    assert run.look(2300) == [("stalled-run", "firing", 0, 50)]


def test_a_run_that_was_given_up_long_ago_is_left_alone() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    assert run.look(5000) == []
    assert run.look(90_000) == []
    assert run.live.asleep(BEGIN + 5000)
    run.rows(0, [90_001.0])
    assert not run.live.asleep(BEGIN + 90_001)
    assert len(run.look(91_000)) == 1


def test_a_watcher_that_is_started_again_knows_what_was_said() -> None:
    first = Ranks()
    first.rows(0, seconds(1, 100))
    first.look(100)
    (said,) = first.live.look(BEGIN + 300)
    second = Ranks([said])
    second.rows(0, seconds(1, 100))
    assert second.look(400) == []
    second.rows(0, [500.0])
    assert second.look(500) == [("stalled-run", "resolved", 0, 101)]


def test_a_stall_while_no_watcher_was_there_is_told() -> None:
    run = Ranks()
    run.rows(0, seconds(1, 100))
    assert run.look(600) == [("stalled-run", "firing", 0, 100)]


def test_who_holds_a_folder(tmp_path: Path) -> None:
    held = held_in(tmp_path)
    recorder = Recorder(tmp_path)
    assert held(0, 1) is True
    recorder.close()
    assert held(0, 1) is False
    assert held(3, 1) is None
