"""peek and snap in real trainings: nothing changes, and another process sees it while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor

import mindpulse
from acting import Asking, asked, assert_same_state, plain
from nets import batches
from ways import builder


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_looking_changes_no_bit_and_another_process_sees_it(how: str, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def at(step: int, out: Asking) -> None:
        weight = out.training.net.embedding.embedding_table
        found = mindpulse.peek(weight)
        seen.setdefault("first", found)
        assert found.mean == pytest.approx(float(weight.asnumpy().astype(np.float64).mean()))
        if step == 3:
            seen["path"] = mindpulse.snap("embedding", weight)
            seen["value"] = weight.asnumpy().copy()
            command = [sys.executable, "-m", "mindpulse.cli", "analyze", str(tmp_path), "--json"]
            done = subprocess.run(command, capture_output=True, check=True, timeout=60)
            seen["listed"] = json.loads(done.stdout)["snaps"]

    watched = asked(builder(how), batches(5), tmp_path, [], at=at)
    assert_same_state(watched, plain(builder(how), batches(5)))
    (listed,) = seen["listed"]
    # Between two steps: the next one is what is being computed.
    assert (listed["name"], listed["step"], listed["dtype"]) == ("embedding", 4, "Float32")
    with np.load(seen["path"], allow_pickle=False) as content:
        np.testing.assert_array_equal(content["tensor"], seen["value"])
    now = mindpulse.peek(watched.training.net.embedding.embedding_table)
    assert not np.array_equal(seen["first"].array, now.array)  # the copy stayed as it was


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool_"])
def test_every_type_of_tensor(dtype: str) -> None:
    values = np.array([[0.0, 1.0], [2.0, 3.0]])
    tensor = Tensor(values, getattr(ms, dtype))
    found = mindpulse.peek(tensor, "x")
    want = values.astype(bool) if dtype == "bool_" else values
    np.testing.assert_array_equal(found.array, want)
    assert found.dtype == str(tensor.dtype)
    assert found.device.startswith("CPU")


def test_parameters_have_names_and_tensors_of_every_shape() -> None:
    assert repr(mindpulse.peek(Parameter(Tensor([1.5]), name="w"))).startswith("w: Float32 (1,)")
    assert mindpulse.peek(Tensor(2.5)).max == 2.5
    assert mindpulse.peek(Tensor(np.empty((0, 3), np.float32))).size == 0


def test_one_copy_from_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, real = [], Tensor.asnumpy

    def counted(self: Any) -> Any:
        copies.append(1)
        return real(self)

    monkeypatch.setattr(Tensor, "asnumpy", counted)
    repr(mindpulse.peek(Tensor(np.ones((3, 3), np.float32))))
    assert len(copies) == 1
