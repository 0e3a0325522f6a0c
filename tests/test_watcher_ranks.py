"""Ranks compared: replicas out of step, stragglers, and what must not be taken for either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.alerts.words import alert_text
from mindpulse.rules.load import load_rules
from mindpulse.store.reader import Chunk
from mindpulse.testing import chunk, write_run
from mindpulse.watcher import watch
from mindpulse.watcher.ranks import Ranks, first_of_rank

Table = NDArray[np.float64]


def norms(count: int = 100, width: int = 4) -> Table:
    return 2.0 + np.cumsum(np.random.default_rng(0).normal(0, 0.01, (count, width)), axis=0)


def brief(events: Sequence[AlertEvent]) -> list[tuple[str, str, int, int]]:
    return [(e.rule, e.state, e.rank, e.step) for e in events]


def fed(tag: str, tables: Sequence[Table], every: int = 100) -> list[AlertEvent]:
    """The rows of each rank, some at a time, ranks in turn."""
    ranks, events = Ranks(), list[AlertEvent]()
    for begin in range(0, len(tables[0]), every):
        for rank, table in enumerate(tables):
            part = table[begin : begin + every]
            events += ranks.feed([chunk(tag, part, first_step=begin + 1, rank=rank)])
    return events + ranks.finish()


def test_a_replica_that_falls_out_of_step_is_named_with_its_parameter() -> None:
    tables = [norms() for _ in range(4)]
    tables[2][60:, 3] *= 1.001
    (event,) = fed("grad_norm_param", tables)
    assert brief([event]) == [("ranks-out-of-step", "firing", 2, 63)]
    assert (event.since_step, event.columns, event.part) == (61, ("param=p3",), "hardware")
    assert event.evidence["grad_norm_param"] == pytest.approx(tables[2][62, 3])
    assert event.evidence["grad_norm_param of the others"] == pytest.approx(tables[0][62, 3])
    assert "differs from that of the other replicas" in alert_text(event)
    assert "与其他副本不同" in alert_text(event, "zh")


def test_one_that_comes_back_is_over() -> None:
    tables = [norms() for _ in range(3)]
    tables[1][50:70] += 1.0
    assert brief(fed("grad_norm_param", tables)) == [
        ("ranks-out-of-step", "firing", 1, 53),
        ("ranks-out-of-step", "resolved", 1, 90),
    ]


def test_an_all_reduce_that_fails_now_and_then_is_told_at_the_third_time() -> None:
    tables = [norms(300) for _ in range(2)]
    tables[1][[60, 90, 130], 0] *= 1.01
    (event,) = fed("grad_norm_param", tables[:2])[:1]
    assert (event.step, event.since_step, event.rank) == (131, 61, 1)
    tables = [norms(400) for _ in range(2)]
    tables[1][[60, 130, 200], 0] *= 1.01  # far apart: each is forgotten before the next
    assert fed("grad_norm_param", tables) == []


def test_of_two_ranks_the_second_is_named() -> None:
    tables = [norms(), norms()]
    tables[0][50:] += 1.0
    assert brief(fed("grad_norm_param", tables)) == [("ranks-out-of-step", "firing", 1, 53)]


def test_a_nan_at_one_rank_only_is_out_of_step_and_at_all_it_is_not() -> None:
    tables = [norms() for _ in range(3)]
    for table in tables:
        table[40:, 0] = np.nan
    assert fed("grad_norm_param", tables) == []
    tables[1][60:, 1] = np.nan
    assert brief(fed("grad_norm_param", tables)) == [("ranks-out-of-step", "firing", 1, 63)]


def test_a_number_among_ranks_that_have_none_is_out_of_step() -> None:
    tables = [norms() for _ in range(3)]
    tables[0][60:, 2] = tables[2][60:, 2] = np.nan
    assert brief(fed("grad_norm_param", tables)) == [("ranks-out-of-step", "firing", 1, 63)]


@pytest.mark.parametrize("apart", [1e-6, 1e-2])
def test_what_was_never_in_step_cannot_fall_out_of_it(apart: float) -> None:
    """Last digits; shards of one model, whose norms have nothing to do with each other."""
    tables = [norms() * (1 + apart * rank) for rank in range(4)]
    assert fed("grad_norm_param", tables) == []


def test_shards_with_other_columns_are_not_compared() -> None:
    ranks = Ranks()
    wide, narrow = norms(width=5), norms(width=3)
    wide[50:] += 1
    assert (
        ranks.feed([chunk("grad_norm_param", wide), chunk("grad_norm_param", narrow, rank=1)]) == []
    )


def test_a_short_difference_is_let_pass() -> None:
    tables = [norms() for _ in range(3)]
    tables[1][50:52] += 1.0
    assert fed("grad_norm_param", tables) == []


def test_a_straggler_is_named_and_let_go() -> None:
    random = np.random.default_rng(1)
    tables = [np.abs(random.normal(1.0, 0.05, (400, 1))) for _ in range(8)]
    tables[5][100:250] *= 1.5
    events = fed("step_time_s", tables)
    assert [(e.rule, e.state, e.rank) for e in events] == [
        ("straggler", "firing", 5), ("straggler", "resolved", 5),
    ]  # fmt: skip
    assert 150 < events[0].step < 180
    assert 250 < events[1].step < 290
    assert events[0].evidence["step_time_s of the others"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("slower", [1.2, 1.0])
def test_a_little_slower_or_slow_together_is_no_straggler(slower: float) -> None:
    tables = [np.ones((400, 1)) for _ in range(4)]
    tables[1] *= slower
    for table in tables:
        table[200:] *= 3.0
    assert fed("step_time_s", tables) == []


def test_single_slow_steps_are_no_straggler() -> None:
    tables = [np.ones((400, 1)) for _ in range(4)]
    tables[1][::10] = 50.0
    assert fed("step_time_s", tables) == []


@pytest.mark.parametrize("every", [1, 7, 33])
def test_what_is_said_does_not_depend_on_how_rows_came(every: int) -> None:
    tables = [norms(200) for _ in range(4)]
    tables[2][60:90, 3] *= 1.01
    times = [np.ones((200, 1)) for _ in range(4)]
    times[0][50:150] = 2.0
    assert fed("grad_norm_param", tables, every) == fed("grad_norm_param", tables, 200)
    assert fed("step_time_s", times, every) == fed("step_time_s", times, 200)
    assert len(fed("step_time_s", times, every)) == 2


def test_a_new_attempt_ends_what_was_firing_and_begins_anew() -> None:
    ranks, tables = Ranks(), [norms() for _ in range(3)]
    tables[1][50:] += 1.0
    ranks.feed([chunk("grad_norm_param", t, rank=r) for r, t in enumerate(tables)])
    assert len(ranks.finish()) == 1
    again: list[Chunk] = [
        chunk("grad_norm_param", t[:10], rank=r, first_step=40, attempt=2)
        for r, t in enumerate(tables)
    ]
    assert brief(ranks.feed(again)) == [("ranks-out-of-step", "resolved", 1, 40)]


def test_a_rank_that_is_missing_is_waited_for_within_bounds() -> None:
    ranks = Ranks()
    ranks.feed([chunk("grad_norm", np.ones(100), rank=0), chunk("grad_norm", np.ones(100), rank=1)])
    ranks.feed([chunk("grad_norm", np.full(5000, 2.0), first_step=101, rank=0)])
    (of,) = ranks._found.values()
    assert len(of.ranks[0].rows) <= 1024


def test_the_watcher_tells_one_rank_once_however_many_series_show_it(tmp_path: Path) -> None:
    for rank in range(3):
        weights, norm = norms(), norms(width=1)[:, 0]
        if rank == 1:
            weights[50:], norm[50:] = weights[50:] + 1, norm[50:] + 1
        write_run(tmp_path, rank=rank, grad_norm_param=weights, grad_norm=norm)
    events = [e for e in watch(tmp_path, load_rules(), once=True) if isinstance(e, AlertEvent)]
    assert brief(events) == [("ranks-out-of-step", "firing", 1, 53)]
    kept = [e for e in read_alerts(tmp_path) if e.rule == "ranks-out-of-step"]
    assert [e.grouped_under for e in kept] == ["", events[0].id]


def test_what_begins_when_the_first_is_over_is_told_again() -> None:
    def alert(name: str, state: str) -> AlertEvent:
        return AlertEvent(name, "ranks-out-of-step", state, "error", "hardware", 1, 1, 0.0, 1, 1)

    told = [("a", "firing"), ("b", "firing"), ("a", "resolved"), ("b", "resolved"), ("c", "firing")]
    events = first_of_rank([alert(*each) for each in told], ())
    assert [event.delivered for event in events] == [True, False, True, False, True]
    later = first_of_rank([alert("b", "resolved"), alert("d", "firing")], events[1:2])
    assert [event.delivered for event in later] == [False, True]
