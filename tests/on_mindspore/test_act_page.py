"""Every block of docs/acting.md runs, and what stands in it happens."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from mindpulse import open_run
from mindpulse.control import Answer, ControlLog
from mindpulse.control.verbs import VERBS
from test_ways_page import PREAMBLE

PAGE = (Path(__file__).parents[2] / "docs" / "acting.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
STEP = """
gradients = ms.value_and_grad(net, None, optimizer.parameters)

def train_step(ids, labels):
    loss, grads = gradients(ids, labels)
    optimizer(grads)
    return loss
"""


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"act_block_{number}"
    # A module with a file: the graph compiler reads the source, and looks names up in the module.
    (tmp_path / f"{name}.py").write_text(PREAMBLE + STEP + BLOCKS[number])
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(name)
    del sys.modules[name]
    run = open_run(tmp_path / "summary")
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4]
    if "keep_every" in BLOCKS[number]:
        kept = module.monitor._actions.keeper.states
        assert [state.step for state in kept] == [2, 4]
    if "skip_step" in BLOCKS[number]:
        answers = [m for m in ControlLog(run.path).poll() if isinstance(m, Answer)]
        assert [answer.status for answer in answers] == ["done"]


def test_every_verb_has_its_line() -> None:
    for verb in VERBS:
        assert re.search(rf"^\| .*`{verb}\b", PAGE, re.M), verb
