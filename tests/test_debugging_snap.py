"""`mindpulse.snap`: into which run, under which name; read back by another process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mindpulse
from mindpulse.cli import main
from mindpulse.cli.snaps import heads
from mindpulse.debugging.snaps import snaps_in
from mindpulse.errors import StoreError, UsageError
from mindpulse.recorder import Recorder, living

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _nothing_is_recorded() -> None:
    for recorder in living():
        recorder.close()


def analyze(run: Path, *words: str) -> Any:
    result = CliRunner().invoke(main, ["analyze", str(run), *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_tensor_lands_in_the_run_and_another_process_sees_it(tmp_path: Path) -> None:
    with_nan = RNG.normal(size=(3, 4)).astype(np.float32)
    with_nan[1, 2] = np.nan
    recorder = Recorder(tmp_path / "run", flush_interval=600)
    recorder.add_scalars(41, {"train_loss": 2.0})
    path = mindpulse.snap("scores", with_nan)
    assert path == recorder.directory / "snapshots" / "scores_s000041.npz"
    with np.load(path, allow_pickle=False) as content:
        np.testing.assert_array_equal(content["tensor"], with_nan)
        assert str(content["dtype"]) == "float32"
    command = [sys.executable, "-m", "mindpulse.cli", "analyze", str(tmp_path / "run"), "--json"]
    seen = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert seen["snaps"] == [
        {"name": "scores", "step": 41, "shape": [3, 4], "dtype": "float32", "file": str(path)}
    ]
    one = json.loads(analyze(tmp_path / "run", "--snap", "scores", "--json"))
    assert (one["nonfinite"], one["size"]) == (1, 12)
    assert one["max"] == pytest.approx(np.nanmax(with_nan))
    recorder.close()
    notes = mindpulse.open_run(tmp_path / "run").notes()
    assert [n.data["file"] for n in notes if n.kind == "snapshot"] == [path.name]


def test_the_same_name_and_step_overwrites_nothing(tmp_path: Path) -> None:
    def keep(value: int) -> None:
        mindpulse.snap("a/b.c", np.full(3, value), step=7)

    recorder = Recorder(tmp_path)
    threads = [threading.Thread(target=keep, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = snaps_in((recorder.directory / "snapshots").glob("*.npz"))
    assert sorted(snap.name for snap in found) == ["a/b.c", *(f"a/b.c-{i}" for i in range(2, 9))]
    assert sorted(snap.read().max for snap in found) == list(range(8))
    assert {snap.step for snap in found} == {7}
    recorder.close()


def test_without_a_run_there_is_a_debug_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = mindpulse.snap("x", [1.0, 2.0])
    assert path.resolve().is_relative_to(tmp_path / "debug-run")
    assert mindpulse.snap("x", [3.0]).parent == path.parent  # it is open now
    living()[0].close()
    monkeypatch.setenv("MINDPULSE_DEBUG_RUN", str(tmp_path / "elsewhere"))
    assert mindpulse.snap("x", [1.0]).is_relative_to(tmp_path / "elsewhere")
    living()[0].close()


def test_of_several_runs_the_newest_or_the_one_that_is_named(tmp_path: Path) -> None:
    first, second = Recorder(tmp_path / "one"), Recorder(tmp_path / "two")
    assert mindpulse.snap("x", [1.0]).is_relative_to(tmp_path / "two")
    assert mindpulse.snap("x", [1.0], run=tmp_path / "one").is_relative_to(tmp_path / "one")
    with pytest.raises(UsageError, match=r"does not write it; it writes: .*two, .*one"):
        mindpulse.snap("x", [1.0], run=tmp_path / "three")
    first.close(), second.close()


@pytest.mark.parametrize(
    ("name", "tensor", "step", "told"),
    [
        ("", [1.0], None, "non-empty string"),
        ("x", "text", None, "holds no numbers"),
        ("x", [1.0], -1, "step -1"),
        ("x", [1.0], True, "step True"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept(name: str, tensor: Any, step: Any, told: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with pytest.raises(UsageError, match=told):
        mindpulse.snap(name, tensor, step=step)
    assert not (recorder.directory / "snapshots").exists()
    recorder.close()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    (recorder.directory / "snapshots").write_text("in the way")
    with pytest.raises(StoreError, match="the snapshot cannot be written"):
        mindpulse.snap("x", [1.0])
    recorder.close()


def test_analyze_shows_what_is_in_one(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    weights = RNG.random((2, 3, 5, 5))
    weights[..., 3:] = 0
    weights /= weights.sum(-1, keepdims=True)
    mindpulse.snap("probabilities", weights.astype(np.float16), step=9)
    mindpulse.snap("hidden", RNG.normal(size=(2, 3, 5)), step=12)
    recorder.close()
    listed = analyze(tmp_path)
    assert "probabilities" not in analyze(tmp_path, "--quick")  # which reads no snapshot
    assert "probabilities  step 9  float16 (2, 3, 5, 5)" in listed
    shown = analyze(tmp_path, "--snap", "probabilities")
    assert all(text in shown for text in ("quantiles", "head 0", "head 1", "head 2"))
    assert "head 0" not in analyze(tmp_path, "--snap", "hidden")
    missing = CliRunner().invoke(main, ["analyze", str(tmp_path), "--snap", "nothing"])
    assert missing.exit_code == 2
    assert "there are: probabilities, hidden" in missing.output


def test_only_probabilities_are_shown_by_head() -> None:
    weights = RNG.random((3, 4, 4))
    assert heads(weights) is None
    weights /= weights.sum(-1, keepdims=True)
    assert heads(weights) is not None
    weights[0, 0] = 0  # a query that sees nothing
    assert heads(weights) is not None
    weights[0, 1, 1] = np.nan
    assert heads(weights) is None
    assert heads(np.ones((2, 2))) is None


def test_damaged_snapshots_are_no_snaps(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    path = mindpulse.snap("x", np.arange(1000.0))
    whole = path.read_bytes()
    recorder.close()
    for cut in (0, 30, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        assert snaps_in([path]) == []
