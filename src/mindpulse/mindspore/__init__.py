"""Probes in a MindSpore training: `TransformerMonitor` for `Model.train`, `attach` for loops."""

from mindpulse.mindspore.acting.clip import ClipNorm
from mindpulse.mindspore.callback import TransformerMonitor, attach
from mindpulse.mindspore.mark import Mark
from mindpulse.mindspore.monitor import Monitor

__all__ = ["ClipNorm", "Mark", "Monitor", "TransformerMonitor", "attach"]
