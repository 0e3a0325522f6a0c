"""Our monitor beside MindFormers' own, on MindFormers' LLaMA; runs in its environment.

    python overhead_mindformers.py MODE STEPS WARM_UP

Both measure on every step: loss, learning rate, overflow, the gradient norms, the norms of Adam's
moments per parameter, the weights. Theirs writes them as TensorBoard scalars.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.train.callback import RunContext, _InternalCallbackParam

from mindpulse.demo.loop import set_mode
from overhead_cells import Setting
from overhead_models import Copy, waiting, watch
from overhead_turns import AGAIN, PLAIN, all_extra_ms, take_turns

BATCH, LENGTH, WORDS = 8, 64, 1000
SAME = Setting.parse(
    "train_loss+learning_rate+overflow+loss_scale+grad_norm+grad_norm_param"
    "+adam_m_norm+adam_v_norm+weight_norm@1"
)
MONITOR = {"optimizer_state_format": "tensorboard", "weight_state_format": "tensorboard"}


def train_cell(**options: Any) -> nn.Cell:
    """MindFormers' training step of a LLaMA with 4 layers, hidden 128."""
    from mindformers.models.llama import LlamaConfig, LlamaForCausalLM
    from mindformers.wrapper import MFTrainOneStepCell

    config = LlamaConfig(
        batch_size=BATCH,
        seq_length=LENGTH,
        hidden_size=128,
        num_layers=4,
        num_heads=4,
        n_kv_heads=2,
        vocab_size=WORDS,
        multiple_of=8,
        compute_dtype="float32",
        layernorm_compute_type="float32",
        softmax_compute_type="float32",
        param_init_type="float32",
        rotary_dtype="float32",
        use_flash_attention=False,  # without these three it needs operators that no CPU has
        use_rope_slice=True,
        fused_rms_norm=False,
    )
    net = LlamaForCausalLM(config)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-3)
    cell = MFTrainOneStepCell(net, optimizer, use_clip_grad=True, **options)
    cell.ascend_910b_target, cell.enable_allfinite = True, False
    cell._ascend_check_overflow_mode = "INFNAN_MODE"  # isfinite, which the CPU has too
    return cell.set_train()


def plain() -> Copy:
    """Nobody watches."""
    return waiting(train_cell(), None)


def ours(folder: Path) -> Copy:
    """Watched by our monitor."""
    cell = train_cell()
    monitor = watch(cell.network, cell.optimizer, SAME, folder, train_cell=cell)
    return waiting(cell, monitor)


def theirs(folder: Path, steps: int) -> Copy:
    """Watched by MindFormers' two callbacks, which are called as `Model.train` calls them."""
    from mindformers.core.callback.callback import MFLossMonitor, TrainingStateMonitor
    from mindformers.utils import tensorboard

    tensorboard._set_tensorboard_writer(SimpleNamespace(tensorboard_dir=str(folder)))
    cell = train_cell(local_norm=True)
    callbacks = [
        MFLossMonitor(origin_epochs=1, dataset_size=steps, global_batch_size=BATCH),
        TrainingStateMonitor(origin_epochs=1, config=MONITOR, dataset_size=steps),
    ]
    params = _InternalCallbackParam(
        cur_step_num=0,
        cur_epoch_num=1,
        batch_num=steps,
        epoch_num=1,
        dataset_sink_mode=False,
        network=cell,
        train_network=cell,
        optimizer=cell.optimizer,
        parallel_mode="stand_alone",
        device_number=1,
        list_callback=callbacks,
        mode="train",
        net_outputs=None,
    )
    context = RunContext(params)
    for callback in callbacks:
        callback.on_train_epoch_begin(context)

    def step(batch: list[Tensor]) -> float:
        params.cur_step_num += 1
        for callback in callbacks:
            callback.on_train_step_begin(context)
        params.net_outputs = cell(*batch)
        for callback in callbacks:
            callback.on_train_step_end(context)
        return float(params.net_outputs[0].asnumpy())

    return Copy(step)


def batches(index: int) -> list[Tensor]:
    """Token ids, one longer than a window: the model makes the labels."""
    ids = np.random.default_rng(index).integers(1, WORDS, (BATCH, LENGTH + 1))
    return [Tensor(ids, ms.int32)]


def main() -> None:
    """Lets four copies take turns, prints."""
    mode, steps, warm_up = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    set_mode(mode)
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        os.chdir(folder)  # importing MindFormers makes a folder for its logs here
        makers: dict[str, Callable[[], Copy]] = {
            PLAIN: plain,
            AGAIN: plain,
            "ours": lambda: ours(Path(folder) / "ours"),
            "theirs": lambda: theirs(Path(folder) / "theirs", warm_up + steps),
        }
        copies = {name: make() for name, make in makers.items()}
        run = {name: copy.step for name, copy in copies.items()}
        seconds = take_turns(run, batches, warm_up + steps)
        copies["ours"].close(SAME)
    print(json.dumps(all_extra_ms(seconds, warm_up)))


if __name__ == "__main__":
    main()
