"""One process of a data parallel training that is asked for things while it runs.

msrun --worker_num=2 ... act_worker.py FOLDER graph|pynative

It trains until it is told to stop, and then trains a twin, unwatched, over the batches that had an
effect. Rank 1 alone has a clipping threshold that can be reached.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init

from mindpulse.control import Answer, ControlLog
from mindpulse.mindspore import ClipNorm, attach
from nets import Encoder, batches, weights

MOST_STEPS, STEP_S = 800, 0.03


def build() -> tuple[Any, Any, Any]:
    ms.set_seed(7)
    np.random.seed(7)
    net = Encoder(layers=1)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3)
    cell = nn.TrainOneStepCell(net, optimizer)
    cell.set_train()
    return net, optimizer, cell


def main(folder: Path, mode: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.DATA_PARALLEL,
        gradients_mean=True,
        device_num=get_group_size(),
    )
    data = batches(MOST_STEPS, seed=get_rank())
    net, optimizer, cell = build()
    clip = ClipNorm(1.0) if get_rank() == 1 else None
    monitor = attach(
        net, optimizer, summary_dir=folder / "run", train_cell=cell, measures="cheap",
        snapshot_every=0, keep_every=10, clip=clip,
    )  # fmt: skip
    steps = 0
    for batch in data:
        steps += 1
        cell(*batch)
        if monitor.step():
            break
        time.sleep(STEP_S)
    monitor.close()
    kept = {f"watched/{name}": value for name, value in weights(net).items()}
    net, _, cell = build()
    for number in effective(folder / "run", steps):
        cell(*data[number - 1])
    kept |= {f"plain/{name}": value for name, value in weights(net).items()}
    np.savez(folder / f"rank{get_rank()}.npz", steps=steps, **kept)


def effective(run: Path, steps: int) -> list[int]:
    """The steps whose batches had an effect, as rank 0 answered."""
    left = set(range(1, steps + 1))
    for answer in ControlLog(run).poll():
        if isinstance(answer, Answer) and answer.status == "done" and answer.rank == 0:
            if "first_step" in answer.data:
                left -= {int(answer.data["first_step"])}
            if "state_step" in answer.data:
                left -= set(range(int(answer.data["state_step"]), answer.step))
    return sorted(left)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
