"""Series and rows that the tests of the store use."""

from __future__ import annotations

import numpy as np

from mindpulse.series import Rows, SeriesSpec

LOSS = SeriesSpec("train_loss", unit="nats")
FOCUS = SeriesSpec(
    "attn_focus",
    "vector",
    axes=("layer", "head"),
    columns=(("0", "0"), ("0", "1"), ("1", "0")),
    dtype="float32",
)
LOAD = SeriesSpec("行/load.%", "map", "", ("row", "列"), (("0", "a"), ("0", "é")), "float64", "max")
ODD_VALUES = (0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1.7e308, 1.0)
ODD_STEPS = (0, 1, -1, 2**63 - 1, -(2**63), 7, 8, 9)


def rows_of(spec: SeriesSpec, steps: range, start_time: float = 1.7e9) -> Rows:
    """Values that tell their step and column: step + column / 10."""
    at = np.array(steps, np.int64)
    values = at[:, None] + np.arange(spec.width) / 10
    return Rows(at, start_time + at * 0.5, values.astype(spec.dtype))


def odd_rows(spec: SeriesSpec) -> Rows:
    """Steps and values at the edges of what their types hold."""
    table = np.resize(np.array(ODD_VALUES), (len(ODD_STEPS), spec.width))
    with np.errstate(over="ignore"):
        values = table.astype(spec.dtype)
    return Rows(np.array(ODD_STEPS, np.int64), np.linspace(0, 2e9, len(ODD_STEPS)), values)


def assert_same(found: Rows, wanted: Rows) -> None:
    """Equal bit for bit, NaN and the sign of zero included."""
    assert found.values.dtype == wanted.values.dtype
    for name in ("steps", "wall_times", "values"):
        a, b = getattr(found, name), getattr(wanted, name)
        assert a.shape == b.shape
        assert a.tobytes() == np.ascontiguousarray(b).tobytes(), name
