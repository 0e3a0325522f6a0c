"""Derived series: against rows that are written down one by one, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mindpulse.alerts.judge import Judge
from mindpulse.errors import RuleError
from mindpulse.rules.compiler import compile_expression, compile_record
from mindpulse.rules.derived import MAX_DEPTH, Record
from mindpulse.rules.references import MAX_WORK
from mindpulse.rules.rule import make_rule
from mindpulse.rules.single import Run
from mindpulse.testing import chunk, view
from mindpulse.window import Window

NAN = float("nan")


def records(**texts: str) -> dict[str, Record]:
    """Derived series in an order in which each reads those before it."""
    made: dict[str, Record] = {}
    for name, text in texts.items():
        made[name] = compile_record(name, text, made)
    return made


def written_down(record: Record, window: Window, steps: range) -> dict[int, NDArray[np.float64]]:
    """The rows of a derived series, by looking at every step alone."""
    rows = {}
    for step in steps:
        run = Run(window.view(step), record.expression)
        with np.errstate(all="ignore"):
            value = record.expression.node(run)
        here = any(step in track.rows.steps for tag, track in window.tracks().items()
                   if tag in record.expression.series)  # fmt: skip
        if here and not run.short:
            rows[step] = value
    return rows


@pytest.mark.parametrize(
    "text",
    [
        "mean(x[4])",
        "last(y) / mean(upto(x[5]))",
        "last(z) - median(x[2:5])",
        "max_columns(last(z)) - min_columns(last(z))",
        "sum(y[2]) + step",
        "when(last(x) > 0, std(x[3]))",
    ],
)
def test_a_derived_series_is_the_expression_at_each_step(text: str) -> None:
    random = np.random.default_rng(5)
    window = Window({})
    for tag, width, first, every in (("x", 1, 1, 1), ("y", 1, 4, 3), ("z", 3, 2, 2)):
        values = random.normal(0, 1, (40 // every, width))
        values[5] = NAN
        window.extend(chunk(tag, values, first_step=first, every=every))
    record = compile_record("r", text)
    rows = written_down(record, window, range(1, 41))
    whole = record.rows(window.kept, window.spec, 40, 40, 1000)
    assert whole.steps.tolist() == list(rows)
    np.testing.assert_array_equal(whole.values, np.stack(list(rows.values())))
    for reading in ("last(r)", "mean(r[3])", "max(upto(r[6]))", "median(steps(r[2:7]))"):
        condition = compile_expression(f"{reading} > 0.2", {"r": record})
        real = Window({})
        for step, value in rows.items():
            real.extend(chunk("r", value[None, :], first_step=step))
        plain = compile_expression(f"{reading} > 0.2")
        for step in range(1, 41):
            derived, stored = (
                condition.evaluate(window.view(step)),
                plain.evaluate(real.view(step)),
            )
            assert derived.state == stored.state, (reading, step)
            assert derived.columns == stored.columns


def test_rows_begin_when_all_windows_are_full() -> None:
    made = records(smooth="mean(x[3])", change="last(smooth) - first(smooth[4])")
    condition = compile_expression("max(change[2]) >= 0", made)
    assert dict(condition.needs) == {"x": 7}
    states = [condition.evaluate(view(x=range(count))).state for count in range(1, 9)]
    assert states == ["unknown"] * 6 + ["fired"] * 2
    assert condition.evaluate(view(x=[1.0] * 6)).reason == "change has 1 of the 2 rows needed"


def test_evidence_names_the_derived_series_and_columns_are_those_of_its_expression() -> None:
    made = records(gap="last(z) - median(z[1:4])")
    condition = compile_expression("last(gap) > 5", made)
    rows = np.ones((9, 3))
    rows[-1, 2] = 9.0
    verdict = condition.evaluate(view(z=rows))
    assert (verdict.state, verdict.columns) == ("fired", (2,))
    assert verdict.evidence == {"last(gap)": 8.0}


def test_a_judge_says_the_same_however_rows_come_and_are_forgotten() -> None:
    made = records(slow="mean(x[50])", gap="last(x) - last(slow)", both="last(gap) * last(y)")
    rules = [
        make_rule({"name": "a", "expr": "mean(gap[20]) > 0.5", "hold_steps": 5}, made),
        make_rule({"name": "b", "expr": "max(both[5]) > 2 and age(y) < 9", "hold_steps": 3}, made),
        make_rule({"name": "c", "expr": "std(upto(slow[300])) > 0.3", "for_steps": 9}, made),
    ]
    random = np.random.default_rng(2)
    x = random.normal(0, 1, 3000) + (np.arange(3000) // 400 % 2)
    y = random.normal(0, 1, 300)
    whole = Judge(rules)
    told = whole.feed([chunk("x", x), chunk("y", y, every=10)]) + whole.finish()
    assert len(told) > 20
    pieces, in_pieces = Judge(rules), []
    for begin in range(0, 3000, 100):
        in_pieces += pieces.feed([chunk("x", x[begin : begin + 100], first_step=begin + 1)])
        some = y[begin // 10 : begin // 10 + 10]
        in_pieces += pieces.feed([chunk("y", some, first_step=begin + 1, every=10)])
    in_pieces += pieces.finish()
    assert len(pieces.window.tracks()["x"].rows) < 1500
    order = [(event.id, event.state, event.step, dict(event.evidence)) for event in told]
    assert sorted((e.id, e.state, e.step) for e in in_pieces) == sorted(o[:3] for o in order)
    assert {e.id: dict(e.evidence) for e in in_pieces} == {o[0]: o[3] for o in order}


def chain(depth: int) -> dict[str, Record]:
    """Derived series that each read the one before."""
    made = records(r0="last(x)")
    for level in range(1, depth):
        made[f"r{level}"] = compile_record(f"r{level}", f"last(r{level - 1})", made)
    return made


def ladder(depth: int) -> dict[str, Record]:
    """Two derived series at each level, each of which reads both below: twice the work a level."""
    made = records(a="last(x)", b="last(y)")
    for level in range(depth):
        below = list(made)[-2:]
        for side in "ab":
            text = " + ".join(f"mean({name}[9])" for name in below)
            made[f"{side}{level}"] = compile_record(f"{side}{level}", text, made)
    return made


def test_depth_and_work_are_bounded() -> None:
    chain(MAX_DEPTH)
    with pytest.raises(RuleError, match=f"more than {MAX_DEPTH} deep"):
        chain(MAX_DEPTH + 2)
    assert compile_expression("last(b0) > 1", ladder(1)).work < MAX_WORK
    with pytest.raises(RuleError, match=f"more than {MAX_WORK:,} rows"):
        ladder(4)
    with pytest.raises(RuleError, match=f"more than {MAX_WORK:,} rows"):
        compile_expression("mean(wide[100000]) > 1", records(wide="mean(x[1000])"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("last(x) > 1", "a number is wanted"),
        ("3 * step", "has to read a series"),
        ("lsat(x)", "did you mean 'last'"),
        ("age(a)", "wants the name of a measured series"),
    ],
)
def test_what_is_no_derived_series_is_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        compile_record("r", text, records(a="last(x)"))
