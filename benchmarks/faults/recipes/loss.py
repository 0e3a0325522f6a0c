"""Faults of the learning rate, the data and the objective: the loss tells them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.faults.data import IGNORED, SPECIAL, VOCABULARY, Batch, with_targets
from benchmarks.faults.recipes.recipe import MIDDLE, fault
from benchmarks.faults.script import Script, cosine

BOTH = ("decoder", "encoder")
SETTLED = 60  # before that a training that does not learn looks like one that has just begun


@fault("lr-jump", "loss", (10, 30, 100), variants=BOTH, when=MIDDLE)
def lr_jump(script: Script, factor: float) -> None:
    """The learning rate times {level} from the label on."""
    script.scale_rate(script.label, factor)


@fault("lr-too-high", "loss", (3e-2, 1e-1, 3e-1), variants=("decoder", "decoder-post-norm"))
def lr_too_high(script: Script, peak: float) -> None:
    """Peak learning rate {level} (healthy: 3e-3) without warm-up."""
    script.schedule = cosine(peak, script.steps, warm_up=1)


@fault("no-warm-up", "loss", (1e-2, 2e-2, 4e-2), variants=("decoder-post-norm",))
def no_warm_up(script: Script, peak: float) -> None:
    """A post-norm model at {level} without warm-up and without clipping."""
    script.schedule = cosine(peak, script.steps, warm_up=1)
    script.controls["clip"] = 1e9


@fault("oscillating", "loss", (1, 2, 5), when=MIDDLE)
def oscillating(script: Script, factor: float) -> None:
    """From the label on the rate times {level}, beta2 0.5 and two samples a batch."""
    script.scale_rate(script.label, factor)
    script.set_at(script.label, beta2=0.5)
    script.change_data(lambda batch, index: repeated_samples(batch, 2))


@fault("slow", "loss", (30, 100, 1000), variants=BOTH, when=SETTLED)
def slow(script: Script, divisor: float) -> None:
    """The learning rate divided by {level} from the start."""
    script.scale_rate(1, 1 / divisor)


@fault("shuffled-targets", "loss", (0.5, 0.8, 1.0), when=SETTLED)
def shuffled_targets(script: Script, share: float) -> None:
    """In a share {level} of the windows the targets are in a random order, from the start."""
    script.change_data(lambda batch, index: shuffled(script, batch, index, share), since=1)


@fault("label-noise", "loss", (0.1, 0.3, 0.5), variants=BOTH, when=MIDDLE)
def label_noise(script: Script, share: float) -> None:
    """From the label on a share {level} of the targets is random."""

    def noisy(batch: Batch, index: int) -> Batch:
        rng = np.random.default_rng((script.seed, index, 11))
        values = rng.integers(SPECIAL, VOCABULARY, batch.targets.shape)
        return with_targets(batch, rng.random(batch.targets.shape) < share, values)

    script.change_data(noisy)


@fault("misaligned-targets", "loss", (0.3, 0.6, 1.0), when=MIDDLE)
def misaligned_targets(script: Script, share: float) -> None:
    """From the label on the targets of a share {level} of the windows are one place off."""

    def misaligned(batch: Batch, index: int) -> Batch:
        rng = np.random.default_rng((script.seed, index, 13))
        rows = rng.random(len(batch.targets)) < share
        targets = np.where(rows[:, None], np.roll(batch.targets, -1, axis=1), batch.targets)
        return replace(batch, targets=targets.astype(np.int32))

    script.change_data(misaligned)


@fault("repeated-batch", "loss", (8, 2, 1), when=MIDDLE)
def repeated_batch(script: Script, count: int) -> None:
    """From the label on the loader gives the same {level} batches again and again."""
    first, sources = script.label - 1, script.sources

    def frozen(number: int) -> object:
        plain = sources[number]
        return lambda index: plain(first + (index - first) % count if index >= first else index)

    script.sources = [frozen(number) for number in range(len(sources))]  # type: ignore[misc]


@fault("overfit", "loss", (0.01, 0.003, 0.001), variants=BOTH)
def overfit(script: Script, share: float) -> None:
    """Only the first share {level} of the text is trained on."""
    script.sources = [script.text(share=share)]


@fault("logit-drift", "loss", (1e-3, 1e-2, 5e-2), when=MIDDLE)
def logit_drift(script: Script, weight: float) -> None:
    """From the label on the z-loss has the wrong sign, with weight {level}."""
    script.set_at(script.label, z_loss=-weight)


@fault("output-scale", "loss", (2, 5, 20), when=MIDDLE)
def output_scale(script: Script, factor: float) -> None:
    """From the label on the logits are multiplied by {level} (a temperature left in)."""
    script.set_at(script.label, output=factor)


def repeated_samples(batch: Batch, count: int) -> Batch:
    """The first `count` samples over and over: as noisy as a batch of so many."""
    rows = np.arange(len(batch.ids)) % count
    return Batch(batch.ids[rows], batch.targets[rows], batch.bias[rows], batch.places)


def shuffled(script: Script, batch: Batch, index: int, share: float) -> Batch:
    """The targets of some windows in another order, their places unchanged."""
    rng = np.random.default_rng((script.seed, index, 17))
    targets = batch.targets.copy()
    for row in np.flatnonzero(rng.random(len(targets)) < share):
        counted = np.flatnonzero(targets[row] != IGNORED)
        targets[row, counted] = targets[row, rng.permutation(counted)]
    return replace(batch, targets=targets)
