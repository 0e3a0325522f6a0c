"""Random expressions of the rule language and random series for them, drawn by hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from mindpulse.rules.compiler import compile_record
from mindpulse.rules.derived import Record
from mindpulse.rules.functions import (
    COLUMN_FUNCTIONS,
    LAYER_FUNCTIONS,
    NUMBER_FUNCTIONS,
    REDUCERS,
)

# The columns of attn_focus are labelled with layer and head.
WIDTHS = {"x": 1, "y": 1, "z": 3, "w": 3, "v": 2, "attn_focus": 8}
DERIVED = {
    "smooth": "mean(upto(x[4]))",
    "moved": "last(z) - first(z[3])",
    "recent": "median(steps(y[6]))",
    "guarded": "when(last(y) > 0.5, last(x))",
    "share": "share_columns(last(z) > last(w))",
    "misfit": "last(v) + last(z)",
    "deep": "mean(smooth[3]) + max_columns(last(moved))",
    "ends": "first_layer(last(attn_focus)) / last_layer(mean(attn_focus[2]))",
}
RECORDS: dict[str, Record] = {}
for _name, _text in DERIVED.items():
    RECORDS[_name] = compile_record(_name, _text, RECORDS)
TAGS = [*WIDTHS, *WIDTHS, "missing", *DERIVED]
CONSTANTS = ["0", "1", "0.5", "2", "50", "1e-9", "-1"]
TRUTH_COLUMNS = [name for name, function in COLUMN_FUNCTIONS.items() if function.gives_truth]
LEVELS = [
    0.0,
    -0.0,
    1.0,
    1.0,
    1.0,
    2.0,
    0.1,
    0.3,
    60.0,
    -1.0,
    1e-12,
    1e300,
    np.nan,
    np.inf,
    -np.inf,
]


@st.composite
def windows(draw: st.DrawFn, fewest: int) -> str:
    tag, length = draw(st.sampled_from(TAGS)), draw(st.integers(fewest, fewest + 6))
    skip = draw(st.sampled_from([0, 0, 1, 3]))
    if fewest == 1 and draw(st.booleans()):
        return tag
    text = f"{tag}[{skip}:{skip + length}]" if skip else f"{tag}[{length}]"
    return draw(st.sampled_from(["{}", "{}", "upto({})", "steps({})"])).format(text)


@st.composite
def reductions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(REDUCERS)))
    more = ", 0.3" if REDUCERS[name].numbers else ""
    return f"{name}({draw(windows(REDUCERS[name].rows))}{more})"


def _numbers(condition: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ages = st.sampled_from(list(WIDTHS)).map("age({})".format)
    leaf = st.one_of(reductions(), reductions(), ages, st.sampled_from([*CONSTANTS, "step"]))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        columns = [name for name, function in COLUMN_FUNCTIONS.items() if not function.truth]
        return st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
            st.builds("{}({})".format, st.sampled_from([*columns, *NUMBER_FUNCTIONS, "-"]), inner),
            st.builds("{}({})".format, st.sampled_from(list(LAYER_FUNCTIONS)), inner),
            st.builds("share_columns({})".format, condition),
            st.builds("when({}, {})".format, condition, inner),
            st.builds("known({}, {})".format, inner, inner),
        )

    return st.recursive(leaf, larger, max_leaves=4)


def _plain() -> st.SearchStrategy[str]:
    compared = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    return st.builds("{} {} {}".format, reductions(), compared, st.sampled_from(CONSTANTS))


def _conditions() -> st.SearchStrategy[str]:
    compared = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    plain = _plain()
    number = _numbers(plain)
    leaf = st.one_of(plain, st.builds("{} {} {}".format, number, compared, number))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
            st.builds("not ({})".format, inner),
            st.builds("{}({})".format, st.sampled_from(TRUTH_COLUMNS), inner),
        )

    return st.recursive(leaf, larger, max_leaves=4)


CONDITIONS = _conditions()
NUMBERS = _numbers(_plain())


def values(random: np.random.Generator, count: int, width: int) -> NDArray[np.float64]:
    """(count, width) of stretches that stand still, noise, odd values, in turn."""
    kind = random.integers(4)
    if kind == 0:
        return random.normal(1.0, 0.3, (count, width))
    share = random.choice([1.0, 0.5, 0.05])
    fresh = random.random((count, width)) < share
    fresh[:1] = True
    drawn = random.choice(LEVELS, (count, width))
    if kind == 1:
        drawn = np.where(np.isfinite(drawn), drawn, 1.0)
    since = np.maximum.accumulate(np.where(fresh, np.arange(count)[:, None], 0), axis=0)
    return np.take_along_axis(drawn, since, axis=0)
