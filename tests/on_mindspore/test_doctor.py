"""The doctor on real trainings: each is made to go wrong, and its run says how."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from doctoring import findings, problems
from mindpulse.doctor.data import check_batch
from mindpulse.doctor.debug import check_debug
from mindpulse.doctor.memory import check_memory
from mindpulse.doctor.run import check_run
from mindpulse.doctor.summary import check_summary
from mindpulse.mindspore import attach, attached
from mindpulse.store.folder_run import open_folder
from nets import MODES, Encoder, Training, batches, make_training


def train(training: Training, run: Path, steps: int, before: int = 0, **options: Any) -> Any:
    """Some steps without a monitor, then some with one."""
    data = batches(before + steps)
    for ids, labels in data[:before]:
        training.step(ids, labels)
    monitor = attach(
        training.net, training.optimizer, summary_dir=run, train_cell=training.cell, **options
    )
    for ids, labels in data[before:]:
        monitor.step(training.step(ids, labels))
    monitor.close()
    return monitor


@pytest.mark.parametrize("mode", ["graph", "jit", "pynative"])
def test_a_monitor_in_time_and_one_that_came_late(tmp_path: Path, mode: str) -> None:
    training = make_training(mode)
    train(training, tmp_path / "first", 3)
    found = findings(check_summary(tmp_path / "first", {}))
    assert found["attached_in_time"].status == "ok"
    assert not problems(check_summary(tmp_path / "first", {}))
    late = make_training(mode)
    train(late, tmp_path / "late", 3, before=2)
    told = problems(check_summary(tmp_path / "late", {}))
    if mode == "jit":  # the step was compiled and keeps its graph
        assert "had made 2 step(s)" in told["attached_late"].evidence()
        assert "10 probe(s)" in told["probes_silent"].evidence()
        assert "rows_host_only" in told
    else:  # the training cell is compiled anew, and PyNative compiles nothing
        assert set(told) == {"attached_after_steps"}
        assert "first_step=3" in told["attached_after_steps"].cure()


def test_what_is_noted_of_a_step_that_is_compiled(tmp_path: Path) -> None:
    training = make_training("graph")
    train(training, tmp_path, 2, before=1, interval=1)
    (note,) = [note for note in open_folder(tmp_path).notes() if note.kind == "attached"]
    assert note.data["compiled"] == ["TrainOneStepCell"]
    assert note.data["optimizer_steps"] == 1
    assert (note.data["flush_interval_s"], note.data["intervals"]) == (120.0, {})
    assert note.data["device"] is None  # the CPU has no chips
    assert note.data["debugger"] == ("" if sys.gettrace() is None else note.data["debugger"])


@pytest.mark.parametrize(
    ("visible", "number", "chip"),
    [(None, 3, 3), ("", 0, 0), ("4,5", 1, 5), ("4, 5", 0, 4), ("4", 1, None), ("x", 0, None)],
)
def test_which_chip_a_training_on_ascend_uses(
    visible: str | None, number: int, chip: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"device_target": "Ascend", "device_id": number}
    monkeypatch.setattr(attached.ms, "get_context", told.__getitem__)
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", visible)
    assert attached.device_in_use() == chip


class Unused(Encoder):
    """Has a layer that no step comes by."""

    def __init__(self) -> None:
        super().__init__(layers=1)
        self.spare = nn.CellList([nn.LayerNorm((16,))])


def test_a_probe_that_never_ran(tmp_path: Path) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Unused()
    net.set_train()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3)
    cell = nn.TrainOneStepCell(net, optimizer)
    train(Training(net, optimizer, cell, cell), tmp_path, 3)
    told = problems(check_run(tmp_path))
    assert set(told) == {"probes_silent"}
    assert "1 probe(s) were planted and never ran: spare.0" in told["probes_silent"].evidence()


class InTypeOfInput(nn.Cell):
    """A softmax behind a mask of some type; what comes out is half precision again."""

    def __init__(self, mask: Any) -> None:
        super().__init__()
        self.softmax = nn.Softmax(-1)
        self.mask = Tensor(np.zeros((1, 1, 1, 12), np.float32), mask)

    def construct(self, scores: Any) -> Any:
        return self.softmax(scores.astype(ms.float16) + self.mask).astype(ms.float16)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mask", [ms.float32, ms.float16])
def test_scores_in_float32_beside_a_model_in_half_precision(
    tmp_path: Path, mode: str, mask: Any
) -> None:
    """A mask in float32 that is added makes the scores float32, unnoticed."""
    training = make_training(mode)
    for layer in training.net.layers:
        for _, cell in layer.cells_and_names():
            if isinstance(cell, nn.Dense):
                cell.to_float(ms.float16)
        layer.attention.softmax = InTypeOfInput(mask)
    training.net.set_train()
    train(training, tmp_path, 3)
    notes = [note.data for note in open_folder(tmp_path).notes() if note.kind == "precision"]
    bits = 32 if mask == ms.float32 else 16
    assert notes[-1]["attention"] == {
        layer: {"bits": bits, "shape": [4, 2, 12, 12]} for layer in "01"
    }
    assert set(notes[-1]["ffn"].values()) == {16}
    found = findings(check_memory([tmp_path], {}))
    if mask == ms.float16:
        assert "memory_scores_full" not in found
        return
    assert "of 2 of 2 layers (0, 1) are float32" in found["memory_scores_full"].evidence()
    assert "4.5 KiB (batch x heads" in found["memory_scores_full"].evidence()
    assert "about 4.5 KiB" in found["memory_scores_full"].cure()
    assert "4.5 KiB" in found["memory_scores_full"].evidence("zh")


def test_a_monitor_that_matched_nothing_or_could_not_start(tmp_path: Path) -> None:
    training = make_training("pynative")
    train(training, tmp_path / "nothing", 3, include="decoder.*")
    told = problems(check_summary(tmp_path / "nothing", {}))
    assert "none was planted" in told["probes_matched_nothing"].evidence()
    monitor = attach(training.net, None, summary_dir=tmp_path / "none")
    assert monitor.problem
    told = problems(check_summary(tmp_path / "none", {}))
    assert "no optimizer was found" in told["rows_never_started"].evidence()


def test_recording_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDPULSE", "off")
    training = make_training("pynative")
    monitor = train(training, tmp_path / "run", 2)
    assert monitor.problem == "recording is switched off by MINDPULSE=off in the environment"
    assert not (tmp_path / "run").exists()
    assert len(monitor.probes) == 0
    assert set(problems(check_summary(tmp_path, {"MINDPULSE": "off"}))) >= {"recording_off"}


SCRIPT = """
import pdb, sys
import mindspore as ms
from mindspore import Tensor, nn

class Net(nn.Cell):
    def construct(self, x):
        pdb.set_trace()
        breakpoint()
        return x * 2

ms.set_context(mode=ms.GRAPH_MODE)
net = Net()
x = Tensor([1.0])
"""


def test_what_is_told_of_breakpoints_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a graph set_trace() is dropped, breakpoint() stops in a frame without variables, and no
    line of construct is run; in PyNative mode each stops where it stands."""
    stops: list[tuple[str, str]] = []

    def stop(*_: Any, **__: Any) -> None:
        code = sys._getframe(1).f_code
        stops.append((Path(code.co_filename).name, code.co_name))

    monkeypatch.setattr("pdb.set_trace", stop)
    monkeypatch.setattr(sys, "breakpointhook", stop)
    script = tmp_path / "script_that_stops.py"
    script.write_text(SCRIPT)
    told = problems(check_debug([script], {}))
    assert ":8: " in told["debug_stop_in_graph"].evidence()
    assert ":9: " in told["debug_breakpoint_in_graph"].evidence()
    monkeypatch.syspath_prepend(tmp_path)
    loaded = importlib.import_module("script_that_stops")
    loaded.net(loaded.x)
    loaded.net(loaded.x)
    assert stops
    assert set(stops) == {("<string>", "<module>")}
    stops.clear()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    loaded.net(loaded.x)
    assert stops == [("script_that_stops.py", "construct")] * 2


def test_batches_of_tensors() -> None:
    ids = Tensor(np.arange(1, 33).reshape(2, 16), ms.int64)
    half = Tensor(np.linspace(-1, 1, 64).reshape(2, 32), ms.bfloat16)
    assert set(problems(check_batch({"input_ids": ids, "features": half}))) == {"data_int64"}
    mask = Tensor(np.zeros((2, 16)), ms.float32)
    told = problems(check_batch({"input_ids": ids.astype(ms.int32), "attention_mask": mask}))
    assert set(told) == {"data_mask_float32", "data_mask_zero"}
