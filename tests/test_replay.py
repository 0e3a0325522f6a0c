"""A judge that sweeps over many steps says what one says that looks at each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import random_rules
from mindpulse.alerts import judge as judging
from mindpulse.alerts.judge import Judge
from mindpulse.rules.expression import Expression, Verdict
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.store.reader import Chunk
from mindpulse.testing import chunk
from mindpulse.window import View

NAN = float("nan")


def told(judge: Judge, feeds: Sequence[Sequence[Chunk]]) -> list[str]:
    """All that a judge says while it is fed, as text, so that NaN equals NaN."""
    said = []
    for chunks in feeds:
        said.append(repr(judge.feed(chunks)))
        said.append(repr((judge.unknown(), [event for _, event in judge.firing()])))
    return [*said, repr(judge.finish()), repr((judge.unknown(), judge.firing()))]


def cut(random: np.random.Generator, whole: Chunk) -> list[Chunk]:
    places = np.unique([0, *random.integers(0, len(whole.rows) + 1, 3), len(whole.rows)])
    return [
        Chunk(whole.rank, whole.attempt, whole.spec, whole.rows[a:b])
        for a, b in pairwise(places.tolist())
    ]


def random_feeds(random: np.random.Generator) -> list[list[Chunk]]:
    """Attempts of two ranks, series that come late, stop early, or change their columns."""
    feeds: list[list[Chunk]] = []
    first = 1
    for attempt in range(1, int(random.integers(1, 4)) + 1):
        count, chunks = int(random.integers(2, 120)), []
        for tag, width in random_rules.WIDTHS.items():
            late, every = int(random.choice([0, 0, 7])), int(random.choice([1, 1, 1, 10]))
            width += int(late > 0 and attempt > 1)
            table = random_rules.values(random, max(1, count // every), width)
            whole = chunk(
                tag, table, first_step=first + late, every=every, attempt=attempt,
                rank=int(random.integers(4) == 0),
            )  # fmt: skip
            chunks += cut(random, whole)
        order = random.permutation(len(chunks)) if random.random() < 0.5 else range(len(chunks))
        held = [chunks[i] for i in order]
        size = int(random.integers(1, len(held) + 1))
        feeds += [held[i : i + size] for i in range(0, len(held), size)]
        first = max(1, first + int(random.integers(0, count + 5)))
    return feeds


RULES = st.lists(
    st.tuples(
        random_rules.CONDITIONS,
        st.sampled_from([0, 1, 2, 5]),
        st.sampled_from([0, 1, 3, 10]),
        st.sampled_from([0, 4, 30]),
    ),
    min_size=1,
    max_size=3,
)


@given(RULES, st.integers(0, 2**32 - 1), st.sampled_from([3, 21, 1 << 18]))
@settings(max_examples=100, deadline=None)
def test_the_judge_says_the_same_as_if_it_looked_at_every_step(
    drawn: list[tuple[str, int, int, int]], seed: int, most: int
) -> None:
    rules = [
        make_rule({"name": f"r{i}", "expr": text, "for_steps": lasting, "hold_steps": hold,
                   "cooldown_steps": cooldown}, random_rules.RECORDS)
        for i, (text, lasting, hold, cooldown) in enumerate(drawn)
    ]  # fmt: skip
    both_ways(rules, random_feeds(np.random.default_rng(seed)), most)


def both_ways(rules: Sequence[Rule], feeds: Sequence[Sequence[Chunk]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "FEWEST_SWEPT", 2)
        patch.setattr(judging, "MOST_SWEPT", most)
        swept = told(Judge(rules), feeds)
    assert swept == told(Judge(rules, every_step=True), feeds)


STRETCHES = st.lists(st.tuples(st.sampled_from("F.?"), st.integers(1, 12)), min_size=1, max_size=12)
LETTERS = {"F": 70.0, ".": 1.0, "?": NAN}


@given(
    STRETCHES, st.sampled_from([1, 3, 8]), st.sampled_from([0, 1, 4, 9]), st.sampled_from([0, 6])
)
@settings(max_examples=300, deadline=None)
def test_stretches_that_change_nothing_are_passed_over(
    stretches: list[tuple[str, int]], lasting: int, hold: int, cooldown: int
) -> None:
    values = [LETTERS[letter] for letter, count in stretches for _ in range(count)]
    rule = make_rule({"name": "big", "expr": "last(x) > 50", "for_steps": lasting,
                      "hold_steps": hold, "cooldown_steps": cooldown})  # fmt: skip
    both_ways([rule], [[chunk("x", values, every=2)]], 1 << 18)
    both_ways([rule], [[chunk("x", values)]], 9)


def test_a_long_stretch_is_judged_at_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    evaluate = Expression.evaluate

    def counted(self: Expression, view: View) -> Verdict:
        asked.append(view.step)
        return evaluate(self, view)

    monkeypatch.setattr(Expression, "evaluate", counted)
    values = np.ones(9000)
    values[3000:6000] = 70.0
    values[4000:5000:3] = 1.0  # comes and goes too fast to be resolved
    rule = make_rule({"name": "big", "expr": "last(x) > 50", "hold_steps": 20})
    assert len(Judge([rule]).feed([chunk("x", values)])) == 2
    assert asked == [3000, 3001, 6000, 6001, 6020, 9000]


COUNT = 2000  # steps
FAULTS = [
    ("train_loss", 9.0),
    ("grad_norm", 80.0),
    ("learning_rate", 0.1),
    ("step_time_s", 9.0),
    ("grad_norm_param", 0.0),
    ("train_loss", NAN),
]


def faulty(random: np.random.Generator, count: int) -> dict[str, NDArray[np.float64]]:
    heads = random.normal(0.3, 0.01, (count // 10, 4)) + np.linspace(0, 0.1, count // 10)[:, None]
    series = {
        "train_loss": 3 + 2 * np.exp(-np.arange(count) / 200) + random.normal(0, 0.05, count),
        "grad_norm": np.exp(random.normal(0.3, 0.4, count)),
        "learning_rate": np.full(count, 1e-3),
        "step_time_s": np.abs(random.normal(0.4, 0.03, count)),
        "attn_focus": heads,
        "attn_entropy": np.where(heads > random.normal(0.38, 0.01), 0.01, 0.8),
        "grad_norm_param": np.abs(random.normal(0.1, 0.02, (count, 3))),
    }
    for tag, value in FAULTS:
        at = int(random.integers(count))
        series[tag][at : at + int(random.integers(1, 80))] = value
    return series


@pytest.mark.parametrize("at_a_time", [70, 400, COUNT])
@pytest.mark.parametrize("seed", range(3))
def test_the_shipped_rules_say_the_same_on_a_run_with_faults(seed: int, at_a_time: int) -> None:
    """However many steps come at a time; rows that nobody needs any more are dropped between."""
    feeds: list[list[Chunk]] = [[] for _ in range(0, COUNT, at_a_time)]
    for tag, table in faulty(np.random.default_rng(seed), COUNT).items():
        every = 10 if tag.startswith("attn") else 1
        for number, feed in enumerate(feeds):
            begin = number * at_a_time
            part = table[begin // every : (begin + at_a_time) // every]
            feed.append(chunk(tag, part, first_step=begin + 1, every=every))
    both_ways(load_rules(), feeds, 1 << 18)
    near = [rule for rule in load_rules() if max(rule.needs.values()) <= 500]
    judge = Judge(near)
    assert sum(len(judge.feed(feed)) for feed in feeds) > 3
    assert len(judge.window.tracks()["train_loss"].rows) < COUNT or at_a_time == COUNT
