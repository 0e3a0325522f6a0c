"""Every block of docs/ways-of-training.md runs and leaves a run with its steps."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from mindpulse import open_run

PAGE = (Path(__file__).parents[2] / "docs" / "ways-of-training.md").read_text()
BLOCKS = re.findall(r"^## (.+?)\n.*?^```python\n(.*?)^```", PAGE, re.M | re.S)
# What a reader has already: a model, an optimizer, data.
PREAMBLE = """
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindpulse.mindspore import attach
from nets import LENGTH, WORDS
from nets import batches as make_batches
from ways_nets import Decoder

ms.set_context(mode=ms.PYNATIVE_MODE)
net = Decoder()
net.set_train()
optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3)
batches = make_batches(4)
rows = np.random.default_rng(1).integers(0, WORDS, (16, 2, LENGTH)).astype(np.int32)
dataset = ds.NumpySlicesDataset({"ids": rows[:, 0], "labels": rows[:, 1]}, shuffle=False).batch(4)
"""


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=[title for title, _ in BLOCKS])
def test_block(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, name = BLOCKS[number][1], f"page_block_{number}"
    # A module with a file: the graph compiler reads the source, and looks names up in the module.
    (tmp_path / f"{name}.py").write_text(PREAMBLE + code)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(name)
    del sys.modules[name]
    if "first_step" in code or "teacher" in code:
        return
    steps = 2 if "Accumulating" in code else 4
    run = open_run(tmp_path / "summary")
    for tag in ("train_loss", "grad_norm"):
        assert run.series(tag).steps.tolist() == list(range(1, steps + 1))


def test_each_section_with_code_is_run() -> None:
    assert len(BLOCKS) == PAGE.count("```python")
