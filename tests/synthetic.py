"""Run folders without a training: a small BERT's series, healthy or with a fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.control import Answer, ControlLog
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.run import FileReport, Run

LAYERS, HEADS, SIZE = 4, 4, 16
PARAMETERS = (
    "embedding.word.embedding_table",
    "embedding.position.embedding_table",
    *(
        f"layers.{layer}.{name}"
        for layer in range(LAYERS)
        for name in ("query.weight", "key.weight", "value.weight", "ffn.weight", "norm.gamma")
    ),
    "head.weight",
)
HEAD_COLUMNS = tuple((str(layer), str(head)) for layer in range(LAYERS) for head in range(HEADS))
FAULTS = ("lr-explosion", "nan-batch", "frozen-layer", "cured")
START = 1_790_000_000.0


def write_run(
    folder: Path,
    steps: int = 300,
    fault: str = "",
    fault_step: int = 180,
    rank: int = 0,
    seed: int = 0,
    snapshots: bool = True,
) -> Path:
    """A run of `steps` steps; `fault` is one of FAULTS or ""."""
    rng = np.random.default_rng(seed)
    tags = {"mindspore": "2.10.0", "python": "3.11.9", "device": "CPU", "model": "bert-4x128"}
    recorder = Recorder(folder, rank=rank, fingerprint=tags)
    number = np.arange(1, steps + 1)
    for spec, values in _series(rng, number, fault, fault_step):
        recorder.write(spec, Rows(number, START + 0.42 * number, values))
    if snapshots:
        for layer in range(LAYERS):
            for step in (100, steps):
                maps = _attention(rng, layer)
                recorder.snapshot(f"attn_L{layer:02d}", step, attention=maps)
    recorder.close()
    return folder


def write_cured_run(folder: Path) -> Path:
    """A learning rate that explodes at step 180 and is halved by requests until step 192."""
    write_run(folder, fault="cured")
    log = ControlLog(folder)
    for seq, step in enumerate((184, 188, 192), 1):
        alert = {
            "rule": "gradient-explosion",
            "reason": "firing",
            "evidence": {"last(grad_norm)": 81.0},
        }
        log.request("scale_lr", {"factor": 0.5}, step=step, expires_step=step + 50, **alert)
        if seq < 3:
            log.answer(Answer(seq, START + step, rank=0, attempt=1, step=step, status="done"))
    return folder


def _series(
    rng: np.random.Generator, step: NDArray[np.int64], fault: str, at: int
) -> list[tuple[SeriesSpec, NDArray[np.float64]]]:
    after = step >= at
    loss = 4.4 + 2.5 * np.exp(-step / 60) + rng.normal(0, 0.06, len(step))
    rate = 1e-3 * np.minimum(1, step / 30)
    norms = 0.3 * np.exp(rng.normal(0, 0.25, (len(step), len(PARAMETERS))))
    focus = 0.3 + rng.normal(0, 0.02, (len(step), len(HEAD_COLUMNS)))
    entropy = 0.8 - 0.3 * np.minimum(1, step / 200)[:, None] + rng.normal(0, 0.02, focus.shape)
    if fault == "lr-explosion":
        rate = np.where(after, rate * 50, rate)
        norms = np.where(after[:, None], norms * 90 * rng.uniform(0.5, 2, norms.shape), norms)
        loss = np.where(after, loss + 4 * (1 - np.exp(-np.maximum(step - at, 0) / 8)), loss)
    if fault == "cured":
        ill = after & (step < at + 12)
        rate = np.where(ill, rate * 50, rate)
        norms = np.where(ill[:, None], norms * 90, norms)
        loss = loss + np.where(after, 2.5 * np.exp(-np.abs(step - at - 9) / 9), 0.0)
    if fault == "nan-batch":
        loss = np.where(after, np.nan, loss)
        norms = np.where(after[:, None], np.nan, norms)
    if fault == "frozen-layer":
        frozen = np.array(["layers.2." in name for name in PARAMETERS])
        norms = np.where(after[:, None] & frozen, 0.0, norms)
    seconds = 0.42 * np.exp(rng.normal(0, 0.05, len(step)))
    whole = np.sqrt((norms**2).sum(1))
    heads = {"axes": ("layer", "head"), "columns": HEAD_COLUMNS, "dtype": "float32"}
    by_parameter = tuple((name,) for name in PARAMETERS)
    per_parameter = {"axes": ("param",), "columns": by_parameter, "dtype": "float32"}
    return [
        (SeriesSpec("train_loss"), loss[:, None]),
        (SeriesSpec("learning_rate"), rate[:, None]),
        (SeriesSpec("step_time_s", unit="s"), seconds[:, None]),
        (SeriesSpec("grad_norm"), whole[:, None]),
        (SeriesSpec("grad_norm_param", "vector", **per_parameter), norms),
        (SeriesSpec("attn_focus", "vector", **heads), focus),
        (SeriesSpec("attn_entropy", "vector", **heads), entropy),
    ]


def _attention(rng: np.random.Generator, layer: int) -> NDArray[np.float32]:
    """(HEADS, SIZE, SIZE): diagonal, previous token, first token, spread."""
    distance = np.arange(SIZE)[None, :] - np.arange(SIZE)[:, None]
    logits = np.stack(
        [
            -abs(distance) * 1.0,
            -abs(distance + 1 + layer) * 0.8,
            -np.arange(SIZE) * (distance * 0 + 0.5),
            distance * 0.0,
        ]
    ) + rng.normal(0, 0.4, (HEADS, SIZE, SIZE))
    weights = np.exp(logits)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


class InMemory(Run):
    """A run of one series."""

    def __init__(self, series: Series) -> None:
        self.only = series

    def specs(self) -> dict[str, SeriesSpec]:
        return {self.only.spec.tag: self.only.spec}

    def series(self, tag, rank=0, attempt=None, columns=None) -> Series:
        return self.only.pick(columns)

    def files(self) -> list[FileReport]:
        return []
