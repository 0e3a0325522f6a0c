"""Our monitor beside msprobe's, in PyNative on the demo's BERT; runs in msprobe's environment.

    python overhead_msprobe.py WHAT SIZE STEPS WARM_UP

WHAT is one of `SUBJECTS`: what of msprobe works on the CPU. Its L2 norm does not, so minimum,
maximum, mean and the count of NaN stand in for it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindspore import Tensor, nn, ops

from mindpulse.demo.loop import functional_step, set_mode
from mindpulse.demo.task import build_optimizer
from overhead_cells import Setting
from overhead_models import SCHEDULED_STEPS, Copy, batches, task, waiting, watch
from overhead_turns import AGAIN, PLAIN, all_extra_ms, take_turns

STATISTICS = ["min", "max", "mean", "nans"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What both measure: our tags, and the part of msprobe's configuration.

    Attributes:
        own_optimizer: its first version patches the optimizer's class, which fails on nn.Adam.
    """

    ours: Setting
    theirs: dict[str, Any]
    own_optimizer: bool = False


SUBJECTS = {
    "activations": Subject(
        Setting.parse("norm_input_mean+norm_input_max_abs+norm_input_variance@1"),
        {"module": {"enabled": True, "targets": ["norm"], "ops": STATISTICS}},
    ),
    "gradients": Subject(
        Setting.parse("grad_norm_param+grad_max_abs+grad_nonfinite@1"),
        {"weight_grad": {"enabled": True, "ops": STATISTICS}},
    ),
    "weights": Subject(
        Setting.parse("weight_norm+weight_update_ratio@1"),
        {"param_distribution": True, "ops": STATISTICS, "targets": {}, "format": "csv"},
        own_optimizer=True,
    ),
}


class Descent(nn.Optimizer):  # type: ignore[misc]
    """Plain gradient descent whose construct is no jit function."""

    def construct(self, gradients: Any) -> bool:
        """gradients in the order of the parameters."""
        rate = self.get_lr()
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            ops.assign_sub(parameter, rate * gradient)
        return True


def descent(net: nn.Cell) -> nn.Cell:
    """An optimizer of a class that nobody else has: patching it touches no other copy."""
    made: nn.Cell = type("Descent", (Descent,), {})(0.01, net.trainable_params())
    return made


def prepared(subject: Subject, size: str) -> tuple[nn.Cell, nn.Cell]:
    """Network and optimizer of one copy."""
    made = task(size)
    own = subject.own_optimizer
    optimizer = descent(made.network) if own else build_optimizer(made, SCHEDULED_STEPS)
    return made.network, optimizer


def plain(subject: Subject, size: str) -> Copy:
    """Nobody watches."""
    return waiting(functional_step(*prepared(subject, size)), None)


def ours(subject: Subject, size: str, folder: Path) -> Copy:
    """Watched by our monitor."""
    net, optimizer = prepared(subject, size)
    monitor = watch(net, optimizer, subject.ours, folder)
    return waiting(functional_step(net, optimizer), monitor)


def theirs(subject: Subject, size: str, folder: Path) -> Copy:
    """Watched by msprobe."""
    net, optimizer = prepared(subject, size)
    folder.mkdir()
    settings = folder / "config.json"
    if subject.own_optimizer:
        return first_version(subject, net, optimizer, folder, settings)
    from msprobe.core.monitor_v2.trainer import TrainerMonitorV2

    config = {"framework": "mindspore", "output_dir": str(folder), "monitors": subject.theirs}
    settings.write_text(json.dumps({**config, "patch_optimizer_step": False}))
    monitor = TrainerMonitorV2(str(settings), fr="mindspore")
    monitor.start(model=net, optimizer=optimizer)
    train_step = functional_step(net, optimizer)

    def step(batch: list[Tensor]) -> float:
        loss = train_step(*batch)
        monitor.step()
        return float(loss.asnumpy())

    return Copy(step)


def first_version(
    subject: Subject, net: nn.Cell, optimizer: nn.Cell, folder: Path, settings: Path
) -> Copy:
    """Watched by `TrainerMon`, which calls itself through the optimizer."""
    from msprobe.mindspore import TrainerMon

    os.environ["MONITOR_OUTPUT_DIR"] = str(folder)
    settings.write_text(json.dumps(subject.theirs))
    monitor = TrainerMon(str(settings), params_have_main_grad=False)
    monitor.set_monitor(net, optimizer)
    return waiting(functional_step(net, optimizer), None)


def main() -> None:
    """Lets four copies take turns, prints."""
    what, size, steps, warm_up = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    set_mode("pynative")
    subject = SUBJECTS[what]
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        os.chdir(folder)
        makers: dict[str, Callable[[], Copy]] = {
            PLAIN: lambda: plain(subject, size),
            AGAIN: lambda: plain(subject, size),
            "ours": lambda: ours(subject, size, Path(folder) / "ours"),
            "theirs": lambda: theirs(subject, size, Path(folder) / "theirs"),
        }
        copies = {name: make() for name, make in makers.items()}
        run = {name: copy.step for name, copy in copies.items()}
        seconds = take_turns(run, batches(size), warm_up + steps)
        copies["ours"].close(subject.ours)
        written = sum(1 for _ in (Path(folder) / "theirs").rglob("*.csv"))
    if not written:
        raise SystemExit(f"msprobe wrote nothing for {what}")
    print(json.dumps(all_extra_ms(seconds, warm_up)))


if __name__ == "__main__":
    main()
