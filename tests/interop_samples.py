"""A small file of each kind that other tools write, in their shapes, made anew."""

from __future__ import annotations

import json

SAMPLES: dict[str, tuple[str, bytes]] = {
    "hugging-face-trainer-state": (
        "trainer_state.json",
        json.dumps(
            {
                "global_step": 20,
                "log_history": [
                    {"loss": 2.5, "grad_norm": float("nan"), "epoch": 0.5, "step": 10},
                    {"eval_loss": 2.25, "eval_runtime": 1.5, "epoch": 0.5, "step": 10},
                    {"loss": 2.0, "grad_norm": 1.5, "epoch": 1.0, "step": 20},
                ],
            },
            indent=2,
        ).encode(),
    ),
    "json-curves": (
        "golden.json",
        b'{"lm loss": {"start_step": 1, "end_step": 2, "step_interval": 1,'
        b' "values": {"1": 10.5, "2": 10.25}}}',
    ),
    "json-rows": (
        "log.jsonl",
        b'{"step": 1, "loss": 2.5, "opt": {"lr": 0.1}}\n{"step": 2, "loss": 2.25}\n',
    ),
    "msprobe-monitor": (
        "grad_reduced_0-1.csv",
        b"vpp_stage,name,step,norm,shape,dtype\n0,a.weight,0,1.5,[4],f32\n0,b.weight,1,2.5,[4],f32\n",
    ),
    "csv": ("metrics.csv", b"step,loss,lr\n1,2.5,0.1\n2,2.25,0.05\n"),
    "step-loss-pairs": ("losses.txt", b"1 8.5\n2 7.75\n3 7.5\n"),
    "megatron-log": (
        "train.out",
        b" iteration        1/     100 | consumed samples:           16 | elapsed time per "
        b"iteration (ms): 250.5 | learning rate: 1.0E-04 | lm loss: 1.05E+01 | "
        b"loss scale: 64.0 | grad norm: 1.250 | number of skipped iterations:   0 | "
        b"number of nan iterations:   0 |\n"
        b"time (ms) | forward-compute: 1.5 | backward-compute: 2.5\n"
        b" validation loss at iteration 1 | lm loss value: 9.5E+00 | lm loss PPL: 1.3E+04 | \n",
    ),
    "mindformers-log": (
        "worker_0.log",
        b"2025-04-07 15:34:27,308 - [callback.py:529] - INFO - { Epoch:[  1/  2], step:[    1/   "
        b"19], loss: 10.649, per_step_time: 1033ms, lr: 1e-05, overflow cond: False, "
        b"loss_scale: 1.0, global_norm: [21.5], train_throughput_per_npu: 2.896T\n",
    ),
    "galore-log": (
        "output.log",
        b"gradient_accumulation          4\nloss at 4 2.625\n2024-12-25 06:53:53.897 | INFO | "
        b"Eval loss at step 1: 5.5,tokens_seen: 99\n",
    ),
    "dllogger-log": (
        "dll.log",
        b"DLL 2020-05-29 11:31:45.763470 - Training Epoch: 0 Training Iteration: 17  "
        b"average_loss : 2.5  step_loss : 3.25  learning_rate : 0.0625 \n",
    ),
    "deepspeed-log": (
        "ds.log",
        b"[2024-05-01 10:00:00,500] [INFO] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[0.9]\n"
        b"steps: 10 loss: 2.5000 iter time (s): 0.512 samples/sec: 31.250\n",
    ),
    "hugging-face-console": (
        "console.txt",
        b"{'loss': 0.6104, 'grad_norm': nan, 'learning_rate': 0.000195, 'epoch': 0.31}\n",
    ),
}
