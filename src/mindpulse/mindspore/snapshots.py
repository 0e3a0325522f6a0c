"""Attention maps of each layer, kept each M steps as `snapshots/attn_L03_s001000.npz`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindpulse.mindspore.sites import Site
from mindpulse.recorder import Recorder


class Snapshots:
    """Copies the maps from the device when one is due.

    Args:
        sites: the probes; those with a map count.
        every: steps between two snapshots; 0 for none.
        recorder: takes the arrays.
    """

    def __init__(self, sites: Sequence[Site], every: int, recorder: Recorder) -> None:
        self._sites = [site for site in sites if site.map is not None]
        self._every = every
        self._recorder = recorder
        self._last = 0
        self._wanted: int | None = None

    def want(self, step: int) -> None:
        """Takes a snapshot as soon as this step, or a later one, was measured."""
        self._wanted = step

    def offer(self, step: int) -> None:
        """Takes a snapshot of the last measured step if one is due or wanted."""
        wanted = self._wanted is not None and step >= self._wanted
        due = self._every and step and (not self._last or step - self._last >= self._every)
        if wanted or due:
            self.take(step)

    def take(self, step: int) -> None:
        """Takes a snapshot of the last measured step, unless there is one already."""
        self._wanted = None if self._wanted is not None and step >= self._wanted else self._wanted
        if not step or step == self._last:
            return
        self._last = step
        for site in self._sites:
            if site.map is None or site.shape is None:
                continue
            heads, queries, keys = site.shape
            self._recorder.snapshot(
                f"attn_L{int(site.label):02d}",
                step,
                attention=site.map.asnumpy()[:heads, :queries, :keys].copy(),
                layer=np.array(int(site.label)),
                path=np.array(site.place.path),
            )
