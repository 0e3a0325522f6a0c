"""MindInsight 2.3.1's own reader reads the event files that we write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindinsight_env import environment
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.writer import EventWriter
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from series_samples import FOCUS, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
WORKER = Path(__file__).with_name("mindinsight_worker.py")
WALL = 1.7e9


@pytest.fixture(scope="module")
def place() -> Path:
    return environment()


def loaded(place: Path, folder: Path) -> dict[str, list[list[Any]]]:
    """Its values by tag: step, wall time, value."""
    binaries = place / "bin"
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(binaries / "python"), str(WORKER), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["integrity"]
    tags: dict[str, list[list[Any]]] = found["tags"]
    return {tag: sorted(values, key=lambda value: value[0]) for tag, values in tags.items()}


def test_all_kinds_of_values(place: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # It keeps a thousand values of a tag, chosen by chance: no more than that here.
    loss = Rows(np.arange(900), WALL + np.arange(900) / 2, rng.normal(size=(900, 1)))
    wide = SeriesSpec(
        "wide",
        "map",
        "",
        ("row", "column"),
        tuple((str(a), str(b)) for a in range(20) for b in range(15)),
        "float32",
    )
    table = rng.normal(size=(3, 300)).astype(np.float32)
    bars = Histogram(
        np.array([-1.0, 0.5]), np.array([0.5, 3.0]), np.array([2.0, 2.0**40]), {"min": -0.75}
    )
    with EventWriter(tmp_path, "mindspore") as writer:
        writer.write(SeriesSpec("train_loss"), loss)
        writer.write(FOCUS, rows_of(FOCUS, range(5)))
        writer.write(wide, Rows(np.arange(3), np.full(3, WALL), table))
        writer.write_histograms("bars", [7], [WALL], [bars])
        writer.write_image("picture", 8, WALL, b"\x89PNG bytes", height=2, width=3)
    found = loaded(place, tmp_path)
    values = loss.values[:, 0].astype(np.float32)
    assert found["train_loss/scalar"] == [
        [step, wall, float(value)]
        for step, wall, value in zip(range(900), loss.wall_times.tolist(), values, strict=True)
    ]
    for index in range(FOCUS.width):
        column = found[f"attn_focus/{FOCUS.column_name(index)}/scalar"]
        wanted = rows_of(FOCUS, range(5)).values[:, index].astype(np.float32).tolist()
        assert [value for _, _, value in column] == wanted
    for step, (_, _, value) in enumerate(found["wide/tensor"]):
        assert value == {"dims": [20, 15], "values": table[step].tolist()}
    ((step, _, value),) = found["bars/histogram"]
    assert step == 7
    assert value["buckets"] == [[-1.0, 1.5, 2], [0.5, 2.5, 2**40]]
    assert (value["min"], value["max"]) == (-0.75, 3.0)
    ((_, _, value),) = found["picture/image"]
    assert value == {"height": 2, "width": 3, "data": b"\x89PNG bytes".hex()}


def test_a_mirror(place: Path, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror="mindspore")
    for step in range(50):
        recorder.add_scalars(step, {"train_loss": step / 8, "learning_rate": 0.5})
    recorder.close()
    found = loaded(place, tmp_path / "mindspore")
    assert [value for _, _, value in found["train_loss/scalar"]] == [s / 8 for s in range(50)]
    assert [step for step, _, _ in found["learning_rate/scalar"]] == list(range(50))
