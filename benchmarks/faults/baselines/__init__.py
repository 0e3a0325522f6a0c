"""The rules of others, with the constants that they ship with.

Each is a pure function from the series of a rank to where its bells ring; `docs/fault-scores.md`
says what differs from the original because a series is missing here, or a state of ours there.
"""

from __future__ import annotations

from benchmarks.faults.baselines.curves import Baseline
from benchmarks.faults.baselines.model_debuggers import autotrainer, smdebug
from benchmarks.faults.baselines.moving import cusum, msprobe, plain_z, zclip
from benchmarks.faults.baselines.training_loops import (
    lightning,
    llm_foundry,
    megatron,
    mindformers_skip,
    mindformers_stop,
)

__all__ = ["BASELINES", "Baseline"]

BASELINES = (
    Baseline(
        "Lightning",
        "Lightning 2.6, lightning/fabric/utilities/spike.py, SpikeDetection",
        "window 10, warm-up 1, rtol 2.0, finite_only",
        lightning,
    ),
    Baseline(
        "KillLossSpike",
        "LLM-Foundry, llmfoundry/callbacks/kill_loss_spike_callback.py",
        "window max(100, steps / 20), patience 4, outlier 2 x, loss cap 10",
        llm_foundry,
    ),
    Baseline(
        "Megatron-LM",
        "Megatron-LM, megatron/core/rerun_state_machine.py, is_unexpectedly_large",
        "10 x the largest of 100 samples; NaN and infinity checks on",
        megatron,
    ),
    Baseline(
        "MindFormers skip",
        "MindFormers, use_skip_data_by_global_norm, template",
        "global_norm_spike_threshold 3.0",
        mindformers_skip,
    ),
    Baseline(
        "MindFormers stop",
        "MindFormers, global_norm_spike_count_threshold, template",
        "norm 3.0, 10 in a row",
        mindformers_stop,
    ),
    Baseline(
        "msprobe",
        "msprobe monitor, msprobe/core/monitor/anomaly_processor.py",
        "AnomalyTurbulence 0.5 over the mean of all before, AnomalyNan",
        msprobe,
    ),
    Baseline(
        "smdebug",
        "SageMaker Debugger, list of built-in rules",
        "gradient 1e-7; update ratio 10, 1e-8; unchanged 3 steps, 1e-5; dead layer 50 %; "
        "loss 10 steps; overfit 0.1",
        smdebug,
    ),
    Baseline(
        "AutoTrainer",
        "Zhang et al. 2021, AutoTrainer (ICSE), utils/monitor.py",
        "ratio 1e-3 and first 1e-4; ratio 70; zeros 0.7; loss 1e3; from 30 % on",
        autotrainer,
    ),
    Baseline(
        "ZClip",
        "Kumar et al. 2025, ZClip (arXiv 2504.02507), zclip.py",
        "alpha 0.97, z 2.5, warm-up 25, adaptive scaling",
        zclip,
    ),
    Baseline(
        "EMA z-score",
        "the plain form of ZClip's statistic, over loss and gradient norm",
        "alpha 0.97, z 2.5, warm-up 25, all learnt",
        plain_z,
    ),
    Baseline(
        "CUSUM",
        "Page 1954, Continuous Inspection Schemes; k and h as in Montgomery's textbook",
        "k 0.5, h 5, over the moving z-score",
        cusum,
    ),
)
