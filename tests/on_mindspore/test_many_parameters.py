"""A model of some hundred parameters: probes over all of them must not nest too deeply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from mindpulse import open_run
from mindpulse.mindspore import attach
from ways_cells import Clipping


class Deep(nn.Cell):
    """Many small layers side by side."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(2, 2) for _ in range(layers)])

    def construct(self, x: Any) -> Any:
        total = x
        for layer in self.layers:
            total = total + layer(x)
        return ops.square(total).mean()


@pytest.mark.parametrize("layers", [310])
def test_every_parameter_has_its_column(layers: int, tmp_path: Path) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Deep(layers)
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 1e-3)
    cell = Clipping(net, optimizer).set_train()
    x = Tensor(np.ones((1, 2), np.float32))
    before = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
    wanted = ["grad_norm_param", "weight_update_ratio", "grad_norm_unclipped"]
    with attach(
        net, optimizer, summary_dir=tmp_path, train_cell=cell, measures=wanted, interval=1
    ) as monitor:
        cell(x)
        monitor.step()
    assert monitor.problem == ""
    run = open_run(tmp_path)
    assert not [note.data for note in run.notes() if note.kind == "monitor_error"]
    after = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
    changes = [np.linalg.norm(a - b) for a, b in zip(after, before, strict=True)]
    norms = np.array([np.linalg.norm(b) for b in before])
    ratio = np.where(norms == 0, np.nan, changes / np.where(norms, norms, 1))
    np.testing.assert_allclose(run.series("weight_update_ratio").values[0], ratio, rtol=1e-3)
    assert run.series("grad_norm_param").values.shape == (1, 2 * layers)
    clipped = np.linalg.norm(run.series("grad_norm_param").values[0])
    assert clipped == pytest.approx(Clipping.limit, rel=1e-4)
    assert run.series("grad_norm_unclipped").values[0] > 2 * Clipping.limit
