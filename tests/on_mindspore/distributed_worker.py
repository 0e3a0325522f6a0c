"""One process of a data parallel training: trains unwatched, then watched, and keeps both.

msrun --worker_num=2 ... distributed_worker.py FOLDER graph|pynative
"""

from __future__ import annotations

import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init

from mindpulse.mindspore import attach
from nets import Encoder, batches, weights

STEPS = 4


def main(folder: Path, mode: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.DATA_PARALLEL,
        gradients_mean=True,
        device_num=get_group_size(),
    )
    kept = {}
    for name in ("plain", "watched"):
        ms.set_seed(7)
        np.random.seed(7)
        net = Encoder(layers=1)
        optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
        cell = nn.TrainOneStepCell(net, optimizer)
        cell.set_train()
        monitor = None
        if name == "watched":
            monitor = attach(net, optimizer, summary_dir=folder / "run", train_cell=cell)
        losses = []
        for batch in batches(STEPS, seed=get_rank()):
            losses.append(float(cell(*batch).asnumpy()))
            if monitor is not None:
                monitor.step()
        if monitor is not None:
            monitor.close()
            kept["problem"] = np.array(monitor.problem)
        kept[f"{name}/losses"] = np.array(losses)
        kept |= {f"{name}/weights/{key}": value for key, value in weights(net).items()}
    np.savez(folder / f"rank{get_rank()}.npz", **kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
