"""The norm before clipping in MindFormers' own training cell, which returns it, too."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from environments import environment
from mindpulse import open_run
from test_models import HERE, MODES, REQUIREMENTS, SOURCES

pytestmark = [pytest.mark.models, pytest.mark.mindspore, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("suite", REQUIREMENTS)
def test_clip_grad_norm_of_mindformers(suite: str, mode: str, tmp_path: Path) -> None:
    pinned = suite.replace("-", "==")
    place = environment(suite, REQUIREMENTS[suite], alone=(pinned,), layered=True)
    paths = (SOURCES, HERE.parent / "on_mindspore")
    done = subprocess.run(
        [
            str(place / "bin" / "python"), str(HERE / "clipping_worker.py"), mode,
            str(tmp_path / "run"),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "GLOG_v": "3"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    watched, plain = found["watched"], found["plain"]
    assert watched["problem"] == ""
    assert found["same_weights"]
    assert (watched["losses"], watched["norms"]) == (plain["losses"], plain["norms"])
    ((state, reason),) = watched["probe"]
    assert state == "planted"
    assert "clip_grad_norm" in reason
    run = open_run(tmp_path / "run")
    unclipped, clipped = (run.series(tag) for tag in ("grad_norm_unclipped", "grad_norm"))
    assert unclipped.steps.tolist() == clipped.steps.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(unclipped.values, plain["norms"], rtol=1e-5)
    np.testing.assert_allclose(clipped.values, 0.5, rtol=1e-5)
