"""MindFormers' own models under MindPulse, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import model_formulas as formulas
from environments import environment
from mindpulse import open_run
from model_examples import BATCH, EVERY, EXAMPLES, HEADS, LAYERS, LENGTH, PAD, Example, all_ids

pytestmark = [pytest.mark.models, pytest.mark.mindspore, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"

# MindFormers asks for packages that contradict each other, so it comes without them. Newer versions
# of the bounded ones refuse NumPy 1, which MindSpore needs.
_ALWAYS = (
    "mindspore==2.10.*", "google-crc32c", "numpy<2", "pyarrow<23", "pyyaml", "requests", "jieba",
    "rouge_chinese", "tokenizers", "sentencepiece", "tiktoken", "mindpet",
)  # fmt: skip
REQUIREMENTS = {
    "mindformers-2.1.0": (*_ALWAYS, "deprecated", "regex", "datasets<4.5", "tensorboardX"),
    "mindformers-1.3.2": (*_ALWAYS, "nltk", "ftfy", "opencv-python-headless<4.11"),
}
MODES = ("graph", "pynative")


@dataclass(frozen=True)
class Outcome:
    """What the worker found: its answer, its reference, and the folder with its runs."""

    example: Example
    mode: str
    answer: dict[str, Any]
    reference: dict[str, NDArray[Any]]
    folder: Path

    def series(self, way: str, tag: str) -> Any:
        return open_run(self.folder / way).series(tag)

    def layers(self, side: str, path: str) -> NDArray[Any]:
        """(steps, layers, ...) what the reference saw at a place that each layer has."""
        found = [self.reference[f"{side}:{where}"] for where in self.example.of_layers(path)]
        return np.stack(found, axis=1)

    def check(self, way: str, tag: str, expected: Any, every: int = 0) -> None:
        """Compares a series with (steps, columns) or (steps,).

        The modes round differently, and weights drift apart a little with each step.
        """
        every = every or EVERY[way]
        series = self.series(way, tag)
        assert series.steps.tolist() == list(range(1, len(expected) + 1, every)), tag
        rtol, atol = (2e-5, 2e-6) if self.mode == "pynative" else (1e-3, 5e-5)
        np.testing.assert_allclose(
            series.values, expected[::every], rtol=rtol, atol=atol, err_msg=tag
        )


@pytest.fixture(
    scope="module",
    params=[(model, mode) for model in EXAMPLES for mode in MODES],
    ids=lambda param: "-".join(param),
)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    model, mode = request.param
    example = EXAMPLES[model]
    suite = example.suite
    pinned = suite.replace("-", "==")
    place = environment(suite, REQUIREMENTS[suite], alone=(pinned,), layered=True)
    folder = tmp_path_factory.mktemp(f"{model}-{mode}")
    done = subprocess.run(
        [str(place / "bin" / "python"), str(HERE / "model_worker.py"), model, mode, str(folder)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "GLOG_v": "3"},
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    with np.load(folder / "reference.npz") as arrays:
        return Outcome(example, mode, answer, dict(arrays), folder)


@pytest.fixture(params=list(EVERY))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_training_is_unchanged(outcome: Outcome, way: str) -> None:
    found = outcome.answer[way]
    assert found["problem"] == ""
    notes = open_run(outcome.folder / way).notes()
    assert [note.data for note in notes if note.kind == "monitor_error"] == []
    assert found["same_start"]
    assert found["moved"] > 10
    assert found["watched"] == found["plain"]
    assert found["different"] == []


def test_every_place_is_found(outcome: Outcome, way: str) -> None:
    example = outcome.example
    probes = outcome.answer[way]["probes"]
    ran = {
        kind: [p["path"] for p in probes if p["kind"] == kind and p["state"] == "planted"]
        for kind in ("attention", "norm", "ffn", "logits", "optimizer")
    }
    assert ran["attention"] == example.of_layers(example.softmax)
    assert sorted(ran["norm"]) == sorted(example.all_norms)
    assert ran["ffn"] == example.of_layers(example.ffn)
    assert ran["logits"] == [example.loss]
    assert len(ran["optimizer"]) == 1
    heads = {p["path"]: p["heads"] for p in probes if p["kind"] == "attention"}
    assert {heads[path] for path in ran["attention"]} == {HEADS}
    never = [p["path"] for p in probes if p["state"] == "never ran"]
    assert sorted(never) == sorted(path for s in example.silent for path in example.of_layers(s))


def test_attention_is_that_of_numpy(outcome: Outcome, way: str) -> None:
    example = outcome.example
    p, logits = (outcome.layers(side, example.softmax) for side in ("out", "in"))
    ids = all_ids(len(p))[:, :, :LENGTH]
    shown = np.stack([example.visible(step) for step in ids])[:, None]
    padding = np.broadcast_to((ids == PAD)[:, None, :, None, None, :], p.shape)
    assert p.shape == (len(ids), LAYERS, BATCH, HEADS, LENGTH, LENGTH)
    expected = formulas.attention(p, logits, np.broadcast_to(shown, p.shape), padding)
    for tag, values in expected.items():
        columns = [[str(layer), str(head)] for layer in range(LAYERS) for head in range(HEADS)]
        assert outcome.series(way, tag).labels.tolist() == columns, tag
        outcome.check(way, tag, values.reshape(len(ids), -1))


def test_masks_are_seen_to_hold_or_to_leak(outcome: Outcome, way: str) -> None:
    future = outcome.series(way, "attn_future_mass").values
    padding = outcome.series(way, "attn_padding_mass").values
    assert (future.max() == 0) == outcome.example.causal
    assert (padding.max() == 0) == outcome.example.hides_padding
    if outcome.example is EXAMPLES["glm2"]:  # its queries look at nothing but the future
        assert future.min() > 0.9


def test_inner_values_are_those_of_numpy(outcome: Outcome, way: str) -> None:
    example, reference = outcome.example, outcome.reference
    norms = outcome.series(way, "norm_input_rms").labels[:, 0].tolist()
    assert sorted(norms) == sorted(example.all_norms)
    for tag, measure in formulas.NORMS.items():
        inputs = [reference[f"in:{path}"].astype(np.float64) for path in norms]
        outcome.check(way, tag, np.transpose([[measure(x) for x in steps] for steps in inputs]))
    inner = outcome.layers("in", example.inner)
    zeros = outcome.series(way, "ffn_zero_share")
    assert zeros.labels[:, 0].tolist() == example.of_layers(example.ffn)
    bins = formulas.magnitudes(inner)[:: EVERY[way]]
    crossing = 2 if outcome.mode == "pynative" else 16  # values on an edge round to either side
    near = {"rtol": 0, "atol": crossing / inner[0, 0].size}
    np.testing.assert_allclose(zeros.values, bins[:, :, 0], **near)
    histogram = outcome.series(way, "ffn_histogram").values
    np.testing.assert_allclose(histogram, bins.reshape(len(bins), -1), **near)
    partition = formulas.log_partition(reference[f"out:{example.logits}"])
    outcome.check(way, "logits_log_partition", partition)


def test_gradients_and_weights_are_those_of_numpy(outcome: Outcome, way: str) -> None:
    reference = outcome.reference
    outcome.check(way, "train_loss", reference["losses"], every=1)
    for tag in ("grad_norm_param", "weight_norm", "adam_m_norm", "adam_v_norm"):
        assert outcome.series(way, tag).labels[:, 0].tolist() == reference["names"].tolist()
        outcome.check(way, tag, reference[tag], every=1 if tag == "grad_norm_param" else 0)
    total = np.sqrt(np.square(reference["grad_norm_param"]).sum(1))
    outcome.check(way, "grad_norm", total, every=1)
