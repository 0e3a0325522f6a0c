"""Rules: one expression, a file of them, and a scenario."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np
from harness import REFUSED

from mindpulse.rules.compiler import compile_expression, compile_record
from mindpulse.rules.load import joined, load_rules, shipped_tables
from mindpulse.rules.sweep import Says, sweep
from mindpulse.rules.tables import read_tables
from mindpulse.testing import chunk
from mindpulse.testing.outcome import check_text
from mindpulse.window import Window

SCENARIOS = Path(__file__).parents[2] / "tests" / "scenarios"
RECORDS = {"r": compile_record("r", "mean(upto(x[3])) - last(attn_focus)")}
SIZE = re.compile(r"(\d{3})\d+")  # a scenario may be as long as it says; not here
STEPS = np.arange(0, 12)


def seeds() -> list[bytes]:
    """The first byte chooses: an expression, a file, a scenario."""
    rules = load_rules()
    texts = [f"0{expression.text}" for rule in rules for expression in rule.expressions]
    texts += ["0last(r) > 1", "0first_layer(last(attn_focus)) > 1", "0when(age(x) < 2, 1) > 0"]
    texts += ['1[[rule]]\nname = "a"\nexpr = "last(m) > 1"\nworse = { error = "last(m) > 2" }\n'
              '[[record]]\nname = "m"\nexpr = "baseline(steps(x[20]))"\n']  # fmt: skip
    texts += [f"2{path.read_text()}" for path in sorted(SCENARIOS.glob("*.scenario"))]
    return [text.encode() for text in texts]


@lru_cache(maxsize=1)
def window() -> Window:
    """A few rows of a scalar and of labelled columns, with odd values."""
    held = Window({})
    odd = [1.0, np.nan, np.inf, -0.0, 1e300, 3.0, 2.0, 5.0, 8.0]
    held.extend(chunk("x", odd))
    held.extend(chunk("attn_focus", np.add.outer(odd, np.arange(8)), every=2))
    return held


def one_input(data: bytes) -> None:
    """Refused, or judged; many steps at once say what each says alone."""
    text = data[1:].decode("utf-8", errors="replace")
    with REFUSED:
        if data[:1] == b"1":
            joined(shipped_tables(), read_tables(text, "own.toml"))
        elif data[:1] == b"2":
            check_text(SIZE.sub(r"\1", text[:2000]))
        else:
            judged(text)


def judged(text: str) -> None:
    """One expression, at each step alone and at all of them."""
    expression = compile_expression(text, RECORDS)
    said = sweep(expression, window().kept, STEPS, window().spec)
    for step, one in zip(STEPS.tolist(), said.tolist(), strict=True):
        state = expression.evaluate(window().view(step)).state
        assert one == Says.OPEN or Says(one).name.lower() == state, (text, step)
