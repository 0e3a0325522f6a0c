"""The router of a mixture: the operator against the NumPy reference, in every mode."""

from __future__ import annotations

import numpy as np
import pytest

from in_modes import run
from mindpulse.catalogue.moe import expert_load
from mindpulse.mindspore.measures import router
from nets import MODES


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("experts", "top_k"), [(4, 1), (8, 2), (64, 6), (3, 3)])
def test_against_the_reference(mode: str, experts: int, top_k: int) -> None:
    p = np.random.default_rng(0).normal(size=(3, 17, experts)).astype(np.float32)
    p[..., 0] += 1
    found = run(mode, router.row(experts, top_k), p)
    np.testing.assert_allclose(found, expert_load(p, top_k), rtol=1e-6)
    np.testing.assert_allclose(found.sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_scores(mode: str, bad: float) -> None:
    p = np.random.default_rng(0).normal(size=(17, 8)).astype(np.float32)
    p[3, 4] = bad
    p[5, 6] = bad
    np.testing.assert_allclose(run(mode, router.row(8, 2), p), expert_load(p, 2), rtol=1e-6)
