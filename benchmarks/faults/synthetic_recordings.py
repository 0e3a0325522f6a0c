"""A few made-up recordings whose right answers are known, to test the scores with.

python -m benchmarks.faults.synthetic_recordings DIR
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.index import FAULTY, HEALTHY, INDEX, RELABELLED, RecordedRun
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec

STEPS, LABEL, LAYERS, HEADS, EVERY = 240, 121, 4, 2, 10
PARAMETERS = ("embedding", *(f"layers.{i}.{name}" for i in range(LAYERS) for name in "qkv"), "head")
START = 1_790_000_000.0

Series = dict[str, NDArray[np.float64]]


def _gradient_jump(series: Series) -> None:
    series["grad_norm"][LABEL - 1 :] *= 80


def _nan_loss(series: Series) -> None:
    series["train_loss"][LABEL - 1 :] = np.nan


def _frozen_layer(series: Series) -> None:
    frozen = [i for i, name in enumerate(PARAMETERS) if name.startswith("layers.2.")]
    series["grad_norm_param"][LABEL - 1 :, frozen] = 0.0


def _entropy_collapse(series: Series) -> None:
    series["attn_entropy"][(LABEL - 1) // EVERY :] = 0.01


def _early_bell(series: Series) -> None:
    """Rings before the label and does nothing after it."""
    series["grad_norm"][49:52] *= 80


def _nothing(series: Series) -> None:
    """What cannot be seen."""


# recipe, severity, verdict, category, layer, what it does to the series
RECIPES: tuple[tuple[str, str, str, str | None, int | None, Callable[[Series], None]], ...] = (
    ("gradient-jump", "high", FAULTY, "gradient", None, _gradient_jump),
    ("nan-loss", "high", FAULTY, "numerics", None, _nan_loss),
    ("frozen-layer", "medium", FAULTY, "gradient", 2, _frozen_layer),
    ("entropy-collapse", "medium", FAULTY, "attention", 1, _entropy_collapse),
    ("unseen", "low", FAULTY, "loss", None, _nothing),
    ("rung-early", "low", FAULTY, "loss", None, _early_bell),
    ("harmless", "low", RELABELLED, "gradient", None, _gradient_jump),
    ("plain", "", HEALTHY, None, None, _nothing),
    ("bell", "", HEALTHY, None, None, _early_bell),
)


def healthy_series(random: np.random.Generator) -> Series:
    """A loss that falls, norms about 0.5, heads that move."""
    at = np.arange(STEPS)
    norms = 0.3 * np.exp(random.normal(0, 0.2, (STEPS, len(PARAMETERS))))
    return {
        "train_loss": 2 + 3 * np.exp(-at / 60) + random.normal(0, 0.02, STEPS),
        "learning_rate": np.full(STEPS, 1e-3),
        "step_time_s": np.full(STEPS, 0.4),
        "grad_norm": np.sqrt((norms**2).sum(axis=1)),
        "grad_norm_param": norms,
        "attn_entropy": 0.8 + random.normal(0, 0.02, (STEPS // EVERY, LAYERS * HEADS)),
    }


def write_series(folder: Path, series: Series) -> None:
    """The series as a run folder; those of attention every 10 steps, the others at each."""
    heads = tuple((str(i), str(j)) for i in range(LAYERS) for j in range(HEADS))
    recorder = Recorder(folder)
    for tag, values in series.items():
        spec = SeriesSpec(tag)
        if tag == "grad_norm_param":
            columns = tuple((name,) for name in PARAMETERS)
            spec = SeriesSpec(tag, "vector", axes=("param",), columns=columns)
        if tag == "attn_entropy":
            spec = SeriesSpec(tag, "vector", axes=("layer", "head"), columns=heads)
        every = EVERY if tag == "attn_entropy" else 1
        steps = 1 + every * np.arange(len(values), dtype=np.int64)
        table = values if values.ndim == 2 else values[:, None]
        recorder.write(spec, Rows(steps, START + 0.4 * steps, table))
    recorder.close()


def write_recordings(folder: Path, seeds: int = 2) -> list[RecordedRun]:
    """Writes every recipe with `seeds` seeds and an index; even seeds are the tuning part."""
    runs = []
    for place, (recipe, severity, verdict, category, layer, change) in enumerate(RECIPES):
        for seed in range(seeds):
            series = healthy_series(np.random.default_rng([place, seed]))
            change(series)
            name = f"decoder-{recipe}-{severity or 'none'}-s{seed}"
            write_series(folder / "runs" / name, series)
            faulty = verdict != HEALTHY
            runs.append(
                RecordedRun(
                    id=name,
                    run=f"runs/{name}",
                    model="decoder",
                    recipe=recipe,
                    severity=severity,
                    seed=seed,
                    steps=STEPS,
                    kind="fault" if faulty else "healthy",
                    label_step=LABEL if faulty else None,
                    category=category,
                    layer=layer,
                    split="test" if seed % 2 else "tune",
                    verdict=verdict,
                )
            )
    (folder / INDEX).write_text("".join(json.dumps(asdict(run)) + "\n" for run in runs))
    return runs


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.faults.synthetic_recordings DIR")
    write_recordings(Path(sys.argv[1]))
