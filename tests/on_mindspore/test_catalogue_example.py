"""The example of docs/measures.md, as it stands there, in every mode and as a term of the loss."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from mindpulse.catalogue.user import forget, registered
from nets import MODES

DOCS = Path(__file__).parent.parent.parent / "docs"
LOGITS = np.random.default_rng(8).normal(size=(2, 3, 4, 6)).astype(np.float32)


@pytest.fixture(params=["measures.md", "measures.zh-CN.md"])
def top2(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    code = re.findall(r"```python\n(.*?)```", (DOCS / request.param).read_text("utf-8"), re.DOTALL)
    assert len(code) == 1
    (tmp_path / "measure_of_the_page.py").write_text(code[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("measure_of_the_page").top2
    forget("attn_top2")
    del sys.modules["measure_of_the_page"]


@pytest.mark.parametrize("mode", MODES)
def test_the_example_of_the_page(mode: str, top2: Any) -> None:
    assert [user.tag for user in registered("attention")] == ["attn_top2"]

    class Net(nn.Cell):
        def construct(self, logits: Any) -> Any:
            return top2(ops.softmax(logits, -1))

    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    net = Net()
    found = (ms.jit(net) if mode == "jit" else net)(Tensor(LOGITS)).asnumpy()
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.sort(p)[..., -2:].sum(-1).mean((0, 2)), rtol=1e-5)


def test_the_example_is_a_term_of_a_loss(top2: Any) -> None:
    def loss(logits: Any) -> Any:
        return top2(ops.softmax(logits, -1)).sum()

    gradient = ms.grad(loss)(Tensor(LOGITS)).asnumpy()
    small = 1e-2 * gradient / np.abs(gradient).max()
    change = float(loss(Tensor(LOGITS + small)) - loss(Tensor(LOGITS - small)))
    assert change == pytest.approx(2 * float((gradient * small).sum()), rel=0.01)
