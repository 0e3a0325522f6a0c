"""When measures are due: against a model that replays every change for every step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindpulse.errors import UsageError
from mindpulse.schedule import Density, Every

SLOTS = {
    "counter": (),
    "gradients": ("norm", "ratio"),
    "softmax.0": ("focus", "entropy"),
    "softmax.1": ("focus", "entropy"),
    "mixed": ("focus", "histogram"),
    "logits": ("partition",),
}
TAGS = sorted({tag for tags in SLOTS.values() for tag in tags} | {"rss"})
STEPS = np.arange(1, 121)

intervals = st.fixed_dictionaries(dict.fromkeys(TAGS, st.sampled_from([1, 1, 2, 3, 5, 10, 10, 40])))
steps = st.integers(1, 120)
changes = st.lists(
    st.one_of(
        st.tuples(
            st.just("set"),
            st.lists(st.sampled_from(TAGS), min_size=1, max_size=3),
            st.integers(1, 20),
            steps,
        ),
        st.tuples(st.just("stretch"), st.sampled_from([1, 2, 4, 64]), steps),
        st.tuples(st.just("burst"), steps, st.integers(1, 15)),
    ),
    max_size=8,
)


def tier_of(density: Density, tag: str) -> int:
    """The smallest tier with every slot of the tag."""
    wanted = {slot for slot, tags in SLOTS.items() if tag in tags}
    return next(k for k, tier in enumerate(density.tiers) if wanted <= tier)


def expected(density: Density, first: dict[str, int], made: list, tag: str, step: int) -> bool:
    """Whether a tag is due, from the list of changes alone."""
    interval, factor, bursting = first[tag], 1, False
    for kind, *args in made:
        if kind == "set" and step >= args[2] and tag in args[0]:
            interval = args[1]
        elif kind == "stretch" and step >= args[1]:
            factor = args[0]
        elif kind == "burst":
            bursting |= args[0] <= step < args[0] + args[1]
    dear = tier_of(density, tag) > 0
    return bursting or (step - 1) % (interval * (factor if dear else 1)) == 0


def make(density: Density, made: list) -> None:
    for kind, *args in made:
        getattr(density, kind)(*args)


@given(intervals, changes)
def test_what_is_due_is_what_a_replay_of_all_changes_says(first, made) -> None:
    density = Density(SLOTS, first)
    make(density, made)
    for tag in TAGS:
        want = [expected(density, first, made, tag, int(step)) for step in STEPS]
        assert density.due_rows(tag, STEPS).tolist() == want
        assert [density.due(tag, int(step)) for step in STEPS[:9]] == want[:9]


@given(intervals, changes)
def test_the_tier_chosen_is_the_smallest_that_covers_what_is_due(first, made) -> None:
    density = Density(SLOTS, first)
    make(density, made)
    for step in map(int, STEPS):
        due = {tag for tag in TAGS if density.due(tag, step)}
        wanted = {slot for slot, tags in SLOTS.items() if due & set(tags)}
        fits = [k for k, tier in enumerate(density.tiers) if wanted <= tier]
        chosen = density.choose(step)
        assert chosen == (len(density.tiers) - 1 if density.bursting(step) else fits[0])


@given(intervals, changes, steps)
def test_forgetting_the_past_does_not_change_the_rest(first, made, before) -> None:
    kept, short = Density(SLOTS, first), Density(SLOTS, first)
    make(kept, made)
    make(short, made)
    short.forget(before)
    later = STEPS[before - 1 :]
    for tag in TAGS:
        assert (kept.due_rows(tag, later) == short.due_rows(tag, later)).all()
    assert kept.intervals == short.intervals


def test_what_still_matters_on_the_next_step_is_not_forgotten() -> None:
    density = Density({"b": ["focus"]}, {"focus": 3})
    density.set("focus", 7, step=11)
    density.burst(4, 5)
    density.forget(8)
    assert (density.due("focus", 8), density.due("focus", 9)) == (True, False)
    density.forget(10)
    assert (density.due("focus", 10), density.due("focus", 13)) == (True, False)


@given(intervals)
def test_tiers_grow_and_the_last_holds_every_slot(first) -> None:
    tiers = Density(SLOTS, first).tiers
    assert all(small < large for small, large in pairwise(tiers))
    assert tiers[-1] == set(SLOTS)
    assert tiers[0] == {s for s, tags in SLOTS.items() if not tags or 1 in {first[t] for t in tags}}
    rungs = {min((first[t] for t in tags), default=1) for tags in SLOTS.values()} | {1}
    assert len(tiers) == len(rungs)


def test_the_usual_case_has_two_tiers() -> None:
    density = Density({"a": ["norm"], "b": ["focus"]}, {"norm": 1, "focus": 10, "rss": 1})
    assert density.tiers == ({"a"}, {"a", "b"})
    assert [s for s in range(1, 32) if density.choose(s)] == [1, 11, 21, 31]


def test_without_cheap_slots_the_first_tier_is_empty() -> None:
    assert Density({"b": ["focus"]}, {"focus": 10}).tiers == (set(), {"b"})
    assert Density({}, {"rss": 1}).tiers == (set(),)
    assert Density({}, {}).choose(1) == 0


def test_a_slot_runs_as_often_as_its_most_wanted_tag() -> None:
    density = Density({"b": ["focus", "entropy"]}, {"focus": 10, "entropy": 100})
    assert len(density.tiers) == 2
    assert density.choose(11) == 1
    assert (density.due("focus", 11), density.due("entropy", 11)) == (True, False)


def test_intervals_shorter_or_longer_than_at_first_need_no_further_tier() -> None:
    density = Density({"a": ["norm"], "b": ["focus"]}, {"norm": 1, "focus": 10})
    density.set("focus", 1, step=5)
    assert [density.choose(s) for s in (4, 5, 6)] == [0, 1, 1]
    density.set(["norm", "focus", "not_measured"], 50, step=8)
    assert [density.choose(s) for s in (7, 8, 51)] == [1, 0, 1]
    assert density.intervals == {"norm": 50, "focus": 50}
    assert density.due("norm", 7)
    assert not density.due("norm", 8)


def test_a_stretch_spares_what_runs_on_each_step_and_a_burst_overrides_it() -> None:
    density = Density({"a": ["norm"], "b": ["focus"]}, {"norm": 1, "focus": 10, "rss": 2})
    density.stretch(4, step=2)
    assert density.intervals == {"norm": 1, "focus": 40, "rss": 2}
    density.burst(12, 3)
    assert [s for s in range(1, 50) if density.due("focus", s)] == [1, 12, 13, 14, 41]
    density.set("focus", 5, step=42)
    assert density.intervals["focus"] == 20
    density.stretch(1, step=42)
    assert density.intervals["focus"] == 5


def test_the_memory_of_changes_stays_short() -> None:
    density = Density(SLOTS, dict.fromkeys(TAGS, 10))
    for step in range(1, 2000):
        density.set("focus", step % 7 + 1, step)
        density.burst(step, 2)
        density.forget(step - 5)
    assert len(density._plans) < 10
    assert len(density._bursts) < 10


@pytest.mark.parametrize("wrong", [0, -1, 1.0, 2.5, "3", None, True, float("nan")])
def test_what_is_no_number_of_steps_is_refused(wrong: object) -> None:
    density = Density({"b": ["focus"]}, {"focus": 10})
    for act in (
        lambda: Every(wrong),
        lambda: Density({}, {"focus": wrong}),
        lambda: density.set("focus", wrong, 1),
        lambda: density.stretch(wrong, 1),
        lambda: density.burst(1, wrong),
    ):
        with pytest.raises(UsageError, match=f"{wrong!r}: use a whole number of steps from 1 up"):
            act()
    assert density.intervals == {"focus": 10}


def test_what_is_not_measured_is_named() -> None:
    density = Density({"b": ["focus"]}, {"focus": 10})
    with pytest.raises(UsageError, match=r"'focsu': not measured in this run; measured are focus"):
        density.set("focsu", 5, 1)
    with pytest.raises(UsageError, match="nothing: not measured"):
        density.set([], 5, 1)
    with pytest.raises(UsageError, match="'focsu': not measured"):
        density.due("focsu", 1)
    with pytest.raises(UsageError, match="slot 'b' measures 'focus', which has no interval"):
        Density({"b": ["focus"]}, {})
