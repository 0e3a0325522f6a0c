"""Small attention maps of each layer, kept each M steps as `snapshots/attn_L03_s001000.npz`."""

from __future__ import annotations

import numpy as np

from mindpulse.mindspore.harvest import Harvest
from mindpulse.mindspore.planting import AttentionProbe
from mindpulse.recorder import Recorder


class Snapshots:
    """Copies the maps from the device when one is due.

    Args:
        probes: the planted softmaxes.
        every: steps between two snapshots; 0 for none.
        recorder: takes the arrays.
    """

    def __init__(self, probes: list[AttentionProbe], every: int, recorder: Recorder) -> None:
        self._probes = probes
        self._every = every
        self._recorder = recorder
        self._last = 0

    def offer(self, harvest: Harvest) -> None:
        """Takes a snapshot of the last sampled step if one is due."""
        step = harvest.last_sampled
        if self._every and step and (not self._last or step - self._last >= self._every):
            self.take(harvest)

    def take(self, harvest: Harvest) -> None:
        """Takes a snapshot of the last sampled step, unless there is one already."""
        step = harvest.last_sampled
        if not step or step == self._last:
            return
        self._last = step
        for probe in self._probes:
            if probe.map is None or probe.slot not in harvest.shapes:
                continue
            heads, queries, keys = harvest.shapes[probe.slot]
            self._recorder.snapshot(
                f"attn_L{int(probe.layer):02d}",
                step,
                attention=probe.map.asnumpy()[:heads, :queries, :keys].copy(),
                layer=np.array(int(probe.layer)),
                path=np.array(probe.place.path),
            )
