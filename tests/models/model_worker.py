"""Runs in MindFormers' own environment: trains a model with MindPulse, without, and as reference.

python tests/models/model_worker.py MODEL graph|pynative FOLDER

Prints a line of JSON; FOLDER gets `reference.npz` and a run in `callback` and in `loop`.
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
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn
from mindspore.dataset import transforms
from mindspore.train import Callback, Model

if not hasattr(transforms, "py_transforms"):  # MindFormers 1.3.2 imports it and does not use it
    transforms.py_transforms = types.SimpleNamespace(
        PyTensorOperation=object, Compose=transforms.Compose
    )

import model_examples as examples
import model_reference as reference
from mindpulse.mindspore import TransformerMonitor, attach

STEPS = 4
RATE = 1e-2
# Adam's usual epsilon lets gradients that are nothing but rounding move weights by a full step: the
# modes round differently and would part at once.
EPSILON = 1e-3
EVERYTHING = {"measures": "all", "pad_id": examples.PAD}


class Training:
    """A freshly seeded model with its optimizer and its batches."""

    def __init__(self, example: examples.Example) -> None:
        ms.set_seed(7)
        np.random.seed(7)
        self.net = example.build()
        self.net.set_train()
        self.optimizer = nn.AdamWeightDecay(self.net.trainable_params(), RATE, eps=EPSILON)
        self.arrays = [example.batch(ids) for ids in examples.all_ids(STEPS)]
        self.batches = [tuple(map(Tensor, arrays)) for arrays in self.arrays]

    def weights(self) -> dict[str, bytes]:
        return {p.name: p.asnumpy().tobytes() for p in self.net.get_parameters()}


class Losses(Callback):
    """Keeps the loss of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_step_end(self, run_context: Any) -> None:
        out = run_context.original_args()["net_outputs"]
        self.values.append(number(out))


def number(loss: Any) -> float:
    return float(loss.asnumpy().reshape(()))


def callback(training: Training, folder: Path | None) -> tuple[list[float], Any]:
    """Trains through `Model.train`; a folder means watched."""
    losses = Losses()
    callbacks: list[Any] = [losses]
    if folder is not None:
        callbacks.append(
            TransformerMonitor(str(folder), interval=examples.EVERY["callback"], **EVERYTHING)
        )
    columns = [f"c{i}" for i in range(len(training.arrays[0]))]
    data = ds.GeneratorDataset(training.arrays, columns, shuffle=False)
    model = Model(training.net, optimizer=training.optimizer)
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=False)
    return losses.values, callbacks[-1].monitor if folder is not None else None


def loop(training: Training, folder: Path | None) -> tuple[list[float], Any]:
    """Trains in a loop: a training cell in graph mode, `value_and_grad` in PyNative."""
    cell = None
    if ms.get_context("mode") == ms.GRAPH_MODE:
        cell = nn.TrainOneStepCell(training.net, training.optimizer)
        cell.set_train()
    monitor = None
    if folder is not None:
        options = {"summary_dir": str(folder), "train_cell": cell, **EVERYTHING}
        options["interval"] = examples.EVERY["loop"]
        monitor = attach(training.net, training.optimizer, **options)
    gradients = ms.value_and_grad(training.net, None, training.optimizer.parameters)
    losses = []
    for batch in training.batches:
        if cell is not None:
            loss = cell(*batch)
        else:
            loss, grads = gradients(*batch)
            training.optimizer(grads)
        losses.append(number(loss))
        if monitor is not None:
            monitor.step(loss)
    if monitor is not None:
        monitor.close()
    return losses, monitor


def compare(way: Any, example: examples.Example, folder: Path) -> dict[str, Any]:
    """One way of training, without MindPulse and with it."""
    plain, watched = Training(example), Training(example)
    same_start = plain.weights() == watched.weights()
    start = plain.weights()
    losses, _ = way(plain, None)
    seen, monitor = way(watched, folder / way.__name__)
    before, after = plain.weights(), watched.weights()
    return {
        "same_start": same_start,
        "moved": sum(start[name] != before[name] for name in before),
        "plain": losses,
        "watched": seen,
        "different": sorted(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        ),
        "problem": monitor.problem,
        "probes": [
            {
                "path": place.path,
                "kind": place.kind,
                "state": place.state,
                "reason": place.reason,
                "heads": place.heads,
            }
            for place in monitor.probes
        ],
    }


def main(model: str, mode: str, folder: Path) -> None:
    """Trains, then prints what came of it."""
    ms.set_device("CPU")
    ms.runtime.launch_blocking()
    example = examples.EXAMPLES[model]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    training = Training(example)
    seen = reference.record(example, training.net, training.optimizer, training.batches)
    np.savez(folder / "reference.npz", **seen)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    found = {way.__name__: compare(way, example, folder) for way in (callback, loop)}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
