"""Runs in MindFormers' own environment: its training cell, clipping, with MindPulse and without.

python tests/models/clipping_worker.py graph|pynative FOLDER

Prints a line of JSON; FOLDER gets the run.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import transforms

if not hasattr(transforms, "py_transforms"):  # MindFormers 1.3.2 imports it and does not use it
    transforms.py_transforms = types.SimpleNamespace(
        PyTensorOperation=object, Compose=transforms.Compose
    )

from mindformers.wrapper import MFTrainOneStepCell, wrapper

from mindpulse.mindspore import attach
from nets import Encoder, batches, weights

STEPS, LIMIT = 4, 0.5
wrapper.is_legacy_model = lambda: True  # nothing but a loss comes out of our net


def make_cell() -> Any:
    ms.set_seed(7)
    np.random.seed(7)
    net = Encoder(layers=1)
    net.set_train()
    # Of a constant rate the cell keeps a copy under the same name.
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
    scale = nn.DynamicLossScaleUpdateCell(2.0**16, 2, 2)
    cell = MFTrainOneStepCell(
        net, optimizer, use_clip_grad=True, max_grad_norm=LIMIT, scale_sense=scale
    )
    # What makes it run on the CPU: its finite check in the graph.
    cell.ascend_910b_target, cell.enable_allfinite = True, False
    cell._ascend_check_overflow_mode = "INFNAN_MODE"
    cell.set_train()
    return cell


def train(folder: Path | None) -> dict[str, Any]:
    """Losses, the norms that the cell returns, and weights; watched where a folder is given."""
    cell = make_cell()
    found: dict[str, Any] = {"losses": [], "norms": []}
    monitor = None
    if folder is not None:
        monitor = attach(
            cell.network, cell.optimizer, summary_dir=folder, train_cell=cell, interval=1
        )
    for ids, labels in batches(STEPS):
        loss, _, _, _, norm = cell(ids, labels)[:5]
        found["losses"].append(float(loss.asnumpy()))
        found["norms"].append(float(norm.asnumpy()))
        if monitor is not None:
            monitor.step()
    if monitor is not None:
        monitor.close()
        found["problem"] = monitor.problem
        found["probe"] = [(p.state, p.reason) for p in monitor.probes if p.kind == "clip"]
    found["weights"] = {name: value.tobytes() for name, value in weights(cell.network).items()}
    return found


def main(mode: str, folder: Path) -> None:
    ms.set_device("CPU")
    ms.runtime.launch_blocking()
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    plain, watched = train(None), train(folder)
    same = plain.pop("weights") == watched.pop("weights")
    print("\n" + json.dumps({"plain": plain, "watched": watched, "same_weights": same}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
