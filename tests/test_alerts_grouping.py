"""One cause, one alert: groups, ranks, what inhibits what, and where it began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.alerts.words import alert_text
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk
from mindpulse.testing import chunk

NAN = float("nan")


def rule(name: str, expr: str, **keys: object) -> Rule:
    return make_rule({"name": name, "expr": expr, "hold_steps": 1, "cooldown_steps": 0, **keys})


LOSS = rule("bad-loss", "nonfinite(train_loss) > 0", severity="critical", part="numerics",
            group="nonfinite")  # fmt: skip
NORM = rule("bad-norm", "nonfinite(grad_norm) > 0", severity="error", part="gradient",
            group="nonfinite")  # fmt: skip
PARAM = rule("bad-param", "nonfinite(grad_norm_param) > 0", severity="error", part="gradient",
             group="nonfinite")  # fmt: skip
HEAD = rule("bad-head", "nonfinite(attn_focus) > 0", severity="error", part="attention",
            group="nonfinite")  # fmt: skip
BELLS = [LOSS, NORM, PARAM, HEAD]


def wide(tag: str, axis: str, table: np.ndarray) -> Chunk:
    columns = tuple((str(i),) for i in range(table.shape[1]))
    spec = SeriesSpec(tag, "vector", axes=(axis,), columns=columns)
    steps = np.arange(1, len(table) + 1)
    return Chunk(0, 1, spec, Rows(steps, 0.1 * steps, table))


def nan_from(step: int, count: int, columns: Sequence[int], width: int) -> np.ndarray:
    table = np.ones((count, width))
    table[step - 1 :, list(columns)] = NAN
    return table


def brief(events: Iterable[AlertEvent]) -> list[tuple[str, str, int, bool]]:
    return [(e.rule, e.state, e.step, e.delivered) for e in events]


def test_a_lost_loss_rings_one_bell_and_names_the_layer() -> None:
    events = Judge(BELLS).feed([
        chunk("train_loss", [1.0] * 5 + [NAN] * 5),
        chunk("grad_norm", [1.0] * 5 + [NAN] * 5),
        wide("grad_norm_param", "param", nan_from(6, 10, range(4), 4)),
        wide("attn_focus", "layer", nan_from(6, 10, [2, 3], 4)),
    ])  # fmt: skip
    (told,) = [event for event in events if event.delivered]
    assert (told.rule, told.step, told.origin) == ("bad-loss", 6, "layer=2")
    assert {e.grouped_under for e in events if not e.delivered} == {told.id}
    assert len(events) == 4
    assert "began in layer=2" in alert_text(told)
    assert "始于 layer=2" in alert_text(told, "zh")


def test_a_bad_value_goes_on_through_later_layers_and_back_through_earlier_ones() -> None:
    forward = Judge([HEAD]).feed([wide("attn_focus", "layer", nan_from(3, 5, [1, 2, 3], 4))])
    backward = Judge([PARAM]).feed([wide("grad_norm_param", "param", nan_from(3, 5, [0, 1, 2], 4))])
    assert [e.origin for e in forward] == ["layer=1"]
    assert [e.origin for e in backward] == ["param=2"]


def test_the_layer_that_was_first_counts_before_its_place() -> None:
    table = nan_from(4, 6, [0, 1, 2, 3], 4)
    table[2:, 3] = NAN  # a step earlier
    slow = rule("slow", "nonfinite(attn_focus) > 0", for_steps=2, part="attention")
    (event,) = Judge([slow]).feed([wide("attn_focus", "layer", table)])
    assert (event.step, event.since_step, event.origin) == (4, 3, "layer=3")


def test_what_is_graver_than_what_was_told_is_told_too() -> None:
    events = Judge(BELLS).feed([
        chunk("train_loss", [1.0] * 7 + [NAN] * 3),
        chunk("grad_norm", [1.0] * 5 + [NAN] * 5),
        wide("grad_norm_param", "param", nan_from(9, 10, [0], 2)),
    ])  # fmt: skip
    assert brief(events) == [
        ("bad-norm", "firing", 6, True),
        ("bad-loss", "firing", 8, True),
        ("bad-param", "firing", 9, False),
    ]


def test_the_end_is_told_when_all_of_the_group_is_over() -> None:
    events = Judge(BELLS).feed([
        chunk("train_loss", [1.0, NAN, 1.0, 1.0, 1.0, 1.0]),
        chunk("grad_norm", [1.0, 1.0, NAN, NAN, 1.0, 1.0]),
    ])  # fmt: skip
    # At step 3 the loss is over, and at the same step the norm begins: that is a new trouble only
    # if nothing of the group is open any more.
    late = Judge(BELLS).feed([
        chunk("train_loss", [1.0, NAN, 1.0, 1.0, 1.0, 1.0]),
        chunk("grad_norm", [1.0, NAN, NAN, NAN, 1.0, 1.0]),
    ])  # fmt: skip
    assert brief(events) == [
        ("bad-loss", "firing", 2, True),
        ("bad-loss", "resolved", 3, True),
        ("bad-norm", "firing", 3, True),
        ("bad-norm", "resolved", 5, True),
    ]
    assert brief(late) == [
        ("bad-loss", "firing", 2, True),
        ("bad-norm", "firing", 2, False),
        ("bad-norm", "resolved", 5, False),
        ("bad-loss", "resolved", 5, True),
    ]


def test_one_rule_at_many_ranks_rings_once() -> None:
    loud = rule("loud", "last(grad_norm) > 50")
    judge = Judge([loud])
    events = judge.feed([chunk("grad_norm", [1.0, 80.0, 1.0], rank=rank) for rank in range(8)])
    told = [(e.rank, e.state) for e in events if e.delivered]
    assert told == [(0, "firing"), (0, "resolved")]
    assert len(events) == 16


def test_an_explained_alert_is_kept_but_not_told() -> None:
    cause = rule("jump", "last(learning_rate) > 1", inhibits=["spike"])
    effect = rule("spike", "last(train_loss) > 5", severity="critical")
    same = rule("other", "last(train_loss) > 5")
    events = Judge([effect, cause, same]).feed([
        chunk("learning_rate", [0.1, 2.0, 2.0, 0.1, 0.1]),
        chunk("train_loss", [1.0, 1.0, 9.0, 1.0, 9.0]),
    ])  # fmt: skip
    begun = [(e.rule, e.step, e.inhibited_by) for e in events if e.state == "firing"]
    assert begun == [
        ("jump", 2, ""),
        ("spike", 3, "jump/a1/r0/s2"),
        ("other", 3, ""),
        ("spike", 5, ""),
        ("other", 5, ""),
    ]


def test_a_group_can_be_inhibited() -> None:
    cause = rule("jump", "last(learning_rate) > 1", inhibits=["nonfinite"])
    events = Judge([*BELLS, cause]).feed([
        chunk("learning_rate", [0.1, 2.0, 2.0]),
        chunk("train_loss", [1.0, 1.0, NAN]),
    ])  # fmt: skip
    assert brief(events) == [("jump", "firing", 2, True), ("bad-loss", "firing", 3, False)]


def test_an_alert_waits_for_what_could_come_before_it() -> None:
    judge = Judge(BELLS)
    judge.feed([chunk("train_loss", [1.0, 1.0]), chunk("grad_norm", [1.0, 1.0])])
    assert judge.feed([chunk("grad_norm", [1.0, NAN], first_step=3)]) == []
    assert judge.holding
    assert judge.firing() == []  # nothing is asked for an alert that was not told
    events = judge.feed([chunk("train_loss", [NAN, NAN], first_step=3)])
    assert brief(events) == [("bad-loss", "firing", 3, True), ("bad-norm", "firing", 4, False)]
    assert [event.grouped_under for _, event in judge.firing()] == ["", "bad-loss/a1/r0/s3"]


def test_a_series_that_has_a_row_now_and_then_is_not_waited_for() -> None:
    judge = Judge(BELLS)
    focus = wide("attn_focus", "layer", np.ones((2, 2)))
    sparse = Chunk(0, 1, focus.spec, Rows(np.array([1, 11]), np.zeros(2), focus.rows.values))
    judge.feed([sparse, chunk("train_loss", [1.0] * 11)])
    events = judge.feed([chunk("train_loss", [NAN], first_step=12)])
    assert brief(events) == [("bad-loss", "firing", 12, True)]


def test_what_is_held_can_be_released() -> None:
    judge = Judge(BELLS)
    judge.feed([chunk("train_loss", [1.0, 1.0]), chunk("grad_norm", [1.0, 1.0])])
    judge.feed([chunk("grad_norm", [NAN], first_step=3)])
    assert brief(judge.release()) == [("bad-norm", "firing", 3, True)]
    assert not judge.holding


def test_a_new_attempt_does_not_leave_alerts_of_the_old_one_behind() -> None:
    judge = Judge(BELLS)
    judge.feed([chunk("train_loss", [1.0, 1.0]), chunk("grad_norm", [1.0, 1.0])])
    judge.feed([chunk("grad_norm", [NAN], first_step=3)])
    events = judge.feed([chunk("train_loss", [1.0], first_step=2, attempt=2)])
    assert brief(events) == [("bad-norm", "firing", 3, True), ("bad-norm", "resolved", 2, True)]


def test_rules_without_a_group_are_told_as_ever() -> None:
    big, small = rule("big", "last(x) > 5"), rule("huge", "last(x) > 50")
    events = Judge([big, small]).feed([chunk("x", [1.0, 60.0])])
    assert brief(events) == [("big", "firing", 2, True), ("huge", "firing", 2, True)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=10), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_what_is_told_does_not_depend_on_how_the_rows_came(sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    cause = rule("jump", "last(learning_rate) > 1", inhibits=["bad-norm"])
    rules = [*BELLS, cause]
    total = sum(sizes) + 2
    bad = {"train_loss": NAN, "grad_norm": NAN, "learning_rate": 2.0}
    values = {tag: np.where(random.random(total) < 0.2, bad[tag], 0.5) for tag in bad}
    for table in values.values():
        table[:2] = 0.5  # the distance of rows is known from two of them
    whole = Judge(rules)
    want = whole.feed([chunk(tag, table) for tag, table in values.items()]) + whole.finish()
    pieces, got, first = Judge(rules), [], 0
    for size in [2, *sizes]:
        tags = random.permutation(list(values)) if first else list(values)
        feeds = [chunk(t, values[t][first : first + size], first_step=first + 1) for t in tags]
        got += pieces.feed(feeds) if not first else [e for f in feeds for e in pieces.feed([f])]
        first += size
    got += pieces.finish()
    assert [repr(event) for event in got] == [repr(event) for event in want]


@pytest.mark.parametrize("value", ["nonfinite", [1], [""]])
def test_names_that_are_none_are_refused(value: object) -> None:
    from mindpulse.errors import RuleError

    with pytest.raises(RuleError, match="want a list of names"):
        rule("x", "last(x) > 1", inhibits=value)
