"""Faults of ranks, of the speed and of memory."""

from __future__ import annotations

import mmap

from benchmarks.faults.recipes.recipe import MIDDLE, fault
from benchmarks.faults.script import Live, Script

RANKS = ("decoder-ranks",)
SHORT = 160  # steps of runs that sleep
MEGABYTE = 2**20


@fault("rank-desync", "hardware", (0.3, 0.5, 1.0), variants=RANKS, when=MIDDLE)
def rank_desync(script: Script, share: float) -> None:
    """From the label on rank 1 takes a share {level} of its own gradient, unreduced."""
    script.at(script.label, lambda live: live.set(rank=1, reduce=1.0 - share))


@fault("rank-alone", "hardware", (0.5, 0.9, 1.0), variants=RANKS)
def rank_alone(script: Script, share: float) -> None:
    """From the start both ranks take a share {level} of their own gradient, unreduced."""
    script.controls["reduce"] = 1.0 - share


@fault("rank-clip", "hardware", (1e-5, 1e-7, 1e-9), variants=RANKS, when=MIDDLE)
def rank_clip(script: Script, limit: float) -> None:
    """From the label on rank 1 alone clips its gradients to {level}."""
    script.at(script.label, lambda live: live.set(rank=1, clip=limit))


@fault("reduce-zero", "hardware", (0.1, 0.5, 0.9), variants=RANKS, when=MIDDLE)
def reduce_zero(script: Script, share: float) -> None:
    """From the label on a share {level} of all-reduces brings zeros to rank 1."""
    _broken_reduce(script, share, 0.0)


@fault("reduce-garbled", "hardware", (0.05, 0.2, 0.5), variants=RANKS, when=MIDDLE)
def reduce_garbled(script: Script, share: float) -> None:
    """From the label on a share {level} of all-reduces brings -20 times the mean to rank 1."""
    script.controls["clip"] = 1e9
    _broken_reduce(script, share, -20.0)


@fault("slow-rank", "hardware", (0.04, 0.08, 0.16), variants=RANKS, when=MIDDLE,
       judged_by="step_time", steps=SHORT)  # fmt: skip
def slow_rank(script: Script, seconds: float) -> None:
    """From the label on rank 1 waits {level} s for its data in each step, and all wait for it."""
    script.at(script.label, lambda live: _wait(live, 1, seconds))


@fault("rank-lost", "hardware", (1,), variants=RANKS, when=MIDDLE, judged_by="rank")
def rank_lost(script: Script, rank: int) -> None:
    """At the label rank {level} stops; the other one goes on."""
    script.at(script.label, lambda live: live.lose(rank))


@fault("slow-loader", "throughput", (0.03, 0.08, 0.16), variants=("decoder", "encoder"),
       when=MIDDLE, judged_by="step_time", steps=SHORT)  # fmt: skip
def slow_loader(script: Script, seconds: float) -> None:
    """From the label on each batch takes {level} s longer to come."""
    script.at(script.label, lambda live: _wait(live, 0, seconds))


@fault("loader-stalls", "throughput", (0.3, 0.6, 1.2), when=MIDDLE, judged_by="step_time",
       steps=SHORT)  # fmt: skip
def loader_stalls(script: Script, seconds: float) -> None:
    """From the label on every tenth batch takes {level} s longer to come."""

    def stall(live: Live, step: int) -> None:
        late = step >= script.label and (step - script.label) % 10 == 0
        _wait(live, 0, seconds if late else 0.0)

    script.each.append(stall)


@fault("slowing-down", "throughput", (0.06, 0.12, 0.24), when=MIDDLE, judged_by="step_time",
       steps=SHORT)  # fmt: skip
def slowing_down(script: Script, seconds: float) -> None:
    """From the label on each step waits longer than the one before, {level} s at the end."""
    span = script.steps - script.label

    def drag(live: Live, step: int) -> None:
        _wait(live, 0, seconds * max(0, step - script.label) / max(1, span))

    script.each.append(drag)


@fault("slow-step", "throughput", (0.03, 0.08, 0.16), when=MIDDLE, judged_by="step_time",
       steps=SHORT)  # fmt: skip
def slow_step(script: Script, seconds: float) -> None:
    """From the label on each step takes {level} s longer, though its data is there in time."""

    def late(live: Live, step: int) -> None:
        live.step_s = seconds if step >= script.label else 0.0

    script.each.append(late)


@fault("memory-leak", "memory", (1, 3, 8), variants=("decoder", "encoder"), when=MIDDLE,
       judged_by="memory")  # fmt: skip
def memory_leak(script: Script, megabytes: int) -> None:
    """From the label on each step keeps {level} MiB on the host."""

    def leak(live: Live, step: int) -> None:
        if step >= script.label:
            live.held.append(pages(megabytes))

    script.each.append(leak)


@fault("memory-leak-early", "memory", (1, 2, 4), judged_by="memory")
def memory_leak_early(script: Script, megabytes: int) -> None:
    """From the start each step keeps {level} MiB on the host."""
    script.each.append(lambda live, step: live.held.append(pages(megabytes)))


@fault("memory-leak-bursts", "memory", (20, 50, 120), when=MIDDLE, judged_by="memory")
def memory_leak_bursts(script: Script, megabytes: int) -> None:
    """From the label on every twentieth step keeps {level} MiB on the host."""

    def leak(live: Live, step: int) -> None:
        if step >= script.label and (step - script.label) % 20 == 0:
            live.held.append(pages(megabytes))

    script.each.append(leak)


def _broken_reduce(script: Script, share: float, factor: float) -> None:
    rng = script.rng
    broken = rng.random(script.steps + 1) < share

    def each(live: Live, step: int) -> None:
        live.set(rank=1, reduced=factor if step >= script.label and broken[step] else 1.0)

    script.each.append(each)


def _wait(live: Live, rank: int, seconds: float) -> None:
    live.wait_s[rank] = seconds


def pages(megabytes: int) -> mmap.mmap:
    """Memory of its own that is really there; unlike the heap's it is given back when closed."""
    found = mmap.mmap(-1, megabytes * MEGABYTE)
    for start in range(0, len(found), mmap.PAGESIZE):
        found[start] = 1
    return found
