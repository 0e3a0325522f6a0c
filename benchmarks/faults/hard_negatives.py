"""Healthy recipes: plain trainings, and what a rule may take for a fault but is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.faults.recipes.loss import repeated_samples
from benchmarks.faults.recipes.recipe import healthy
from benchmarks.faults.recipes.system import SHORT, pages
from benchmarks.faults.script import Live, Script, cosine, held_out
from benchmarks.faults.settings import HEALTHY, LAYERS, VARIANTS

BOTH = ("decoder", "encoder")
RANKS = ("decoder-ranks",)
PEAK = HEALTHY["rate"]


@healthy("plain", variants=tuple(VARIANTS), seeds=15)
def plain(script: Script, value: None) -> None:
    """The training as it is meant."""


@healthy("long", seeds=5, variants=BOTH, steps=480)
def long(script: Script, value: None) -> None:
    """Twice as many steps."""


@healthy("warm-up-long", seeds=7)
def warm_up_long(script: Script, value: None) -> None:
    """A warm-up over a third of the run."""
    script.schedule = cosine(PEAK, script.steps, warm_up=script.steps // 3)


@healthy("warm-up-short", seeds=7)
def warm_up_short(script: Script, value: None) -> None:
    """A warm-up of ten steps."""
    script.schedule = cosine(PEAK, script.steps, warm_up=10)


@healthy("rate-steps", variants=BOTH, seeds=7)
def rate_steps(script: Script, value: None) -> None:
    """The rate stays at its peak and falls to a fifth at the middle and again at the end."""
    n = script.steps
    script.schedule = lambda step: (
        PEAK * min(1.0, step / 30) * (0.04 if step > 0.85 * n else 0.2 if step > n / 2 else 1.0)
    )


@healthy("rate-constant", seeds=7)
def rate_constant(script: Script, value: None) -> None:
    """After the warm-up the rate never falls."""
    script.schedule = lambda step: PEAK * min(1.0, step / 30)


@healthy("warm-restarts", variants=BOTH, seeds=7)
def warm_restarts(script: Script, value: None) -> None:
    """The cosine begins anew twice: the rate rises by a factor of ten from one step to the next."""
    period = max(1, script.steps // 3)
    curve = cosine(PEAK, period, warm_up=1)
    script.schedule = lambda step: min(1.0, step / 20) * curve((step - 1) % period + 1)


@healthy("rate-low", seeds=7)
def rate_low(script: Script, value: None) -> None:
    """A careful user: a third of the rate."""
    script.scale_rate(1, 1 / 3)


@healthy("rate-high", seeds=7)
def rate_high(script: Script, value: None) -> None:
    """A bold user: twice the rate, which still learns."""
    script.scale_rate(1, 2.0)


@healthy("batch-ramp", seeds=7)
def batch_ramp(script: Script, value: None) -> None:
    """The number of different samples in a batch grows from 4 to 16 over the first half."""
    half = max(1, script.steps // 2)
    script.change_data(
        lambda batch, index: repeated_samples(batch, min(16, 4 + 12 * index // half)), since=1
    )


@healthy("small-batch", variants=BOTH, seeds=7)
def small_batch(script: Script, value: None) -> None:
    """Two different samples a batch: a noisy loss, at half the rate."""
    script.change_data(lambda batch, index: repeated_samples(batch, 2), since=1)
    script.scale_rate(1, 0.5)


@healthy("accumulation", variants=("decoder-accumulating",), seeds=8, value=2,
         steps=400)  # fmt: skip
def accumulation(script: Script, micro: int) -> None:
    """The gradients of two steps make an update."""

    def each(live: Live, step: int) -> None:
        live.set(keep=float(step % micro != 1), apply=float(step % micro == 0))

    script.each.append(each)
    script.calls_per_step = micro


@healthy("curriculum", seeds=7)
def curriculum(script: Script, value: None) -> None:
    """The share of the text that is trained on grows from a twentieth to all of it."""
    early, late, half = script.text(share=0.05), script.text(), script.steps // 3
    script.sources = [lambda index: (early if index < half else late)(index)]


@healthy("domain-switch", variants=BOTH, seeds=8)
def domain_switch(script: Script, value: None) -> None:
    """At a step in the middle the text changes from the language reference to program source."""
    first, second, label = script.text(), script.text("source"), script.label
    script.sources = [lambda index: (second if index >= label - 1 else first)(index)]


@healthy("domain-mixture", seeds=7)
def domain_mixture(script: Script, value: None) -> None:
    """Every third batch is program source: the loss jumps to and fro."""
    first, second = script.text(), script.text("source")
    script.sources = [lambda index: (second if index % 3 == 2 else first)(index)]


@healthy("other-domain", seeds=7)
def other_domain(script: Script, value: None) -> None:
    """Program source from the start, judged on program source."""
    script.sources = [script.text("source")]
    script.judged_on = held_out(script.variant.kind, "source")


@healthy("evaluations", variants=BOTH, seeds=7)
def evaluations(script: Script, value: None) -> None:
    """An evaluation every ten steps: pauses that are no stalls."""
    script.evaluate_every = 10


@healthy("checkpoints", seeds=7)
def checkpoints(script: Script, value: None) -> None:
    """Every fiftieth step takes a quarter of a second longer, for a checkpoint."""

    def each(live: Live, step: int) -> None:
        live.step_s = 0.25 if step % 50 == 0 else 0.0

    script.each.append(each)


@healthy("restart", variants=BOTH, seeds=7)
def restart(script: Script, value: None) -> None:
    """Interrupted in the middle and gone on with from a checkpoint: a second attempt."""
    script.at(script.label, lambda live: live.resume(script.label))


@healthy("restart-fresh-moments", seeds=7)
def restart_fresh_moments(script: Script, value: None) -> None:
    """Gone on with from weights alone: Adam's moments begin at 0, with a short warm-up."""

    def again(live: Live) -> None:
        live.resume(script.label)
        live.forget_moments()

    script.at(script.label, again)
    before, label = script.schedule, script.label
    assert before is not None
    script.schedule = lambda step: (
        before(step) * (min(1.0, (step - label + 1) / 15) if step >= label else 1.0)
    )


@healthy("attention-sink", variants=BOTH, seeds=7)
def attention_sink(script: Script, value: None) -> None:
    """A bonus of 4 on the first key: most heads rest there, as trained models do."""

    def favour(bias: np.ndarray) -> np.ndarray:
        bias = bias.copy()
        bias[..., 0] += 4.0
        return bias

    script.change_data(lambda batch, index: replace(batch, bias=favour(batch.bias)), since=1)


@healthy("attention-sharp", seeds=7)
def attention_sharp(script: Script, value: None) -> None:
    """Logits of attention times 1.5, as with another normalisation: sharper, and sound."""
    script.controls |= {f"attention_{layer}": 1.5 for layer in range(LAYERS)}


@healthy("sparse-relu", variants=("decoder-relu",), seeds=8)
def sparse_relu(script: Script, value: None) -> None:
    """Biases of -0.3 before each ReLU: most units rest, and the model learns all the same."""
    script.initial.append(lambda name, w, rng: w - 0.3 if name.endswith("inner.bias") else w)


@healthy("init-small", seeds=7)
def init_small(script: Script, value: None) -> None:
    """All matrices begin half as large: standard deviation 0.02, the usual one."""
    script.initial.append(lambda name, w, rng: w * 0.5 if w.ndim > 1 else w)


@healthy("scale-search", variants=("decoder-half",), seeds=10)
def scale_search(script: Script, value: None) -> None:
    """Dynamic loss scale: from 2^28 down by half at each overflow, doubled after 60 good steps."""
    script.controls["loss_scale"] = 2.0**28
    good = [0]

    def search(live: Live, step: int) -> None:
        scale = live.controls[0]["loss_scale"]
        good[0] = 0 if live.overflowed else good[0] + 1
        if live.overflowed:
            live.set(loss_scale=scale / 2)
        elif good[0] >= 60:
            good[0] = 0
            live.set(loss_scale=scale * 2)

    script.each.append(search)


@healthy("scale-fixed", variants=("decoder-half",), seeds=5)
def scale_fixed(script: Script, value: None) -> None:
    """A fixed loss scale of 1024."""
    script.controls["loss_scale"] = 1024.0


@healthy("clip-tight", seeds=7)
def clip_tight(script: Script, value: None) -> None:
    """Clipping at 0.2: on most steps, and without harm under Adam."""
    script.controls["clip"] = 0.2


@healthy("clip-none", variants=BOTH, seeds=7)
def clip_none(script: Script, value: None) -> None:
    """No clipping, at a rate that does not need it."""
    script.controls["clip"] = 1e9


@healthy("other-betas", seeds=7)
def other_betas(script: Script, value: None) -> None:
    """beta2 0.999 and eps 1e-6."""
    script.controls |= {"beta2": 0.999, "eps": 1e-6}


@healthy("decay-strong", seeds=7)
def decay_strong(script: Script, value: None) -> None:
    """Weight decay 0.1, as for large models."""
    script.controls["weight_decay"] = 0.1


@healthy("noisy-labels", seeds=7)
def noisy_labels(script: Script, value: None) -> None:
    """Every twentieth batch is hard: random text, as raw data has it."""

    def hard(batch, index):  # type: ignore[no-untyped-def]
        if index % 20 != 7:
            return batch
        rng = np.random.default_rng((script.seed, index, 19))
        ids = batch.ids.copy()
        rng.shuffle(ids, axis=1)
        return replace(batch, ids=ids)

    script.change_data(hard, since=1)


@healthy("slow-machine", seeds=5, steps=SHORT)
def slow_machine(script: Script, value: None) -> None:
    """Each batch takes 40 ms to come, from the start: slow, and steady."""
    script.each.append(lambda live, step: live.wait_s.__setitem__(0, 0.04))


@healthy("jitter", variants=BOTH, seeds=5, steps=SHORT)
def jitter(script: Script, value: None) -> None:
    """Each batch takes 0 to 40 ms to come, at random: a shared machine."""
    waits = script.rng.random(script.steps + 1) * 0.04
    script.each.append(lambda live, step: live.wait_s.__setitem__(0, float(waits[step])))


@healthy("caches-fill", variants=BOTH, seeds=7)
def caches_fill(script: Script, value: None) -> None:
    """The host's memory grows by 60 MiB over the first 60 steps and stays: caches."""

    def fill(live: Live, step: int) -> None:
        if step <= 60:
            live.held.append(pages(1))

    script.each.append(fill)


@healthy("rank-data-differs", variants=RANKS, seeds=7)
def rank_data_differs(script: Script, value: None) -> None:
    """Rank 1 trains on program source: other losses on each rank, the same gradients."""
    script.sources = [script.text(), script.text("source", rank=1)]


@healthy("rank-jitter", variants=RANKS, seeds=5, steps=SHORT)
def rank_jitter(script: Script, value: None) -> None:
    """Each rank waits 0 to 20 ms for its data, at random."""
    waits = script.rng.random((script.steps + 1, 2)) * 0.02

    def each(live: Live, step: int) -> None:
        live.wait_s[:] = [float(wait) for wait in waits[step]]

    script.each.append(each)


@healthy("experts-unbalanced", variants=("decoder-experts",), seeds=7)
def experts_unbalanced(script: Script, value: None) -> None:
    """A weak balancing loss: shares differ, none is empty."""
    script.controls["balance"] = 1e-3
