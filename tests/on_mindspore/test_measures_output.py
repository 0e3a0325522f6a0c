"""The logits: the operator against the NumPy reference, in every mode."""

from __future__ import annotations

import numpy as np
import pytest

from in_modes import Array, check_slope, run
from mindpulse.catalogue.output import log_partition
from mindpulse.errors import UsageError
from mindpulse.mindspore.measures import output
from nets import MODES

WANTED = ("logits_log_partition",)
CLOSE = {"rtol": 2e-6, "atol": 2e-6}
KINDS = ["plain", "large", "very small", "hidden classes", "one class", "-inf", "inf", "nan"]


def values(kind: str) -> Array:
    """(batch, token, class)."""
    x = np.random.default_rng(0).normal(size=(3, 7, 50))
    if kind == "large":
        x = x * 100 + 1e4
    if kind == "very small":
        x = x - 1e5
    if kind == "hidden classes":
        x[..., 30:] = -1e9
        x[..., 40:] = -np.inf
    if kind == "one class":
        return x[..., :1].astype(np.float32)
    if kind == "-inf":
        x[1, 2] = -np.inf
    if kind in ("inf", "nan"):
        x[1, 2, 3] = float(kind)
    return x.astype(np.float32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_reference(mode: str, kind: str) -> None:
    x = values(kind)
    np.testing.assert_allclose(run(mode, output.row(WANTED), x), [log_partition(x)], **CLOSE)


def test_slope() -> None:
    check_slope(output.row(WANTED), log_partition, values("plain"))


def test_unknown_tag() -> None:
    with pytest.raises(UsageError, match="logits_log_partition"):
        output.row(("logits_mean",))
