"""The trainings of the fault benchmark: a few steps of a few recipes in one compiled process."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest

from benchmarks.faults import record
from benchmarks.faults.recipes import RECIPES
from benchmarks.faults.script import Script
from benchmarks.faults.settings import HEALTHY, VARIANTS
from benchmarks.faults.train import Outcome, Training
from mindpulse import open_run

STEPS = 24


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    made = Training(VARIANTS["decoder"], tmp_path_factory.mktemp("training"))
    yield made
    made.close()
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture(autouse=True)
def _graph_mode() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)


def run(
    training: Training, folder: Path, recipe: str, severity: str = "", seed: int = 0
) -> Outcome:
    script = RECIPES[recipe].script("decoder", severity, seed, STEPS)
    script.evaluate_every = 10
    return training.run(script, folder)


def test_a_run_repeats_to_the_bit_whatever_ran_before(training: Training, tmp_path: Path) -> None:
    first = run(training, tmp_path / "first", "plain")
    other = run(training, tmp_path / "other", "plain", seed=1)
    broken = run(training, tmp_path / "broken", "nan-batch", "low")
    run(training, tmp_path / "frozen", "frozen-late", "high")
    again = run(training, tmp_path / "again", "plain")
    assert again.losses == first.losses
    assert again.final_loss == first.final_loss
    assert other.losses != first.losses
    assert first.losses[-1] < first.losses[0] - 1
    label = RECIPES["nan-batch"].script("decoder", "low", 0, STEPS).label
    assert broken.losses[: label - 1] == first.losses[: label - 1]
    assert all(map(math.isnan, broken.losses[label - 1 :]))
    assert math.isnan(broken.final_loss)


def test_what_is_recorded(training: Training, tmp_path: Path) -> None:
    outcome = run(training, tmp_path / "run", "lr-jump", "high", seed=3)
    found = open_run(tmp_path / "run")
    assert found.series("train_loss").steps.tolist() == list(range(1, STEPS + 1))
    np.testing.assert_allclose(found.series("train_loss").values, outcome.losses, rtol=1e-6)
    assert found.series("attn_entropy").steps.tolist() == [1, 11, 21]
    assert len(found.series("attn_entropy").spec.columns) == 3 * 4
    assert found.series("eval_loss").steps.tolist() == [10, 20]
    script = RECIPES["lr-jump"].script("decoder", "high", 3, STEPS)
    assert script.schedule is not None
    rates = [script.schedule(step) for step in range(1, STEPS + 1)]
    np.testing.assert_allclose(found.series("learning_rate").values, rates, rtol=1e-6)
    assert rates[script.label - 1] > 30 * rates[script.label - 2]
    assert (found.series("grad_norm").values <= HEALTHY["clip"] * 1.001).all()
    assert (found.series("attn_future_mass").values == 0).all()
    assert np.isfinite(found.series("logits_log_partition").values).all()
    assert found.series("data_wait_s").steps.tolist() == list(range(1, STEPS + 1))


def test_knobs_reach_what_they_are_named_after(training: Training, tmp_path: Path) -> None:
    def series(recipe: str, severity: str, tag: str) -> np.ndarray:
        run(training, tmp_path / recipe, recipe, severity)
        return np.asarray(open_run(tmp_path / recipe).series(tag).values)

    names = open_names(training)
    plain = series("plain", "", "grad_norm_param")
    layer = ["layers.0." in name for name in names]
    assert (plain[:, layer] > 0).all()
    assert (series("frozen-layer", "high", "grad_norm_param")[:, layer] == 0).all()
    held = series("weights-held", "high", "weight_update_ratio")
    assert np.nanmax(held) == 0
    assert series("clip-always", "medium", "grad_norm").max() <= 1e-6 * 1.001
    assert series("mask-leak", "high", "attn_future_mass").min() > 0.1
    assert series("clip-none", "", "grad_norm").max() > 1
    rows = series("restart", "", "train_loss")
    assert len(rows) == STEPS
    assert open_run(tmp_path / "restart").attempts == [1, 2]
    leak = run(training, tmp_path / "leak", "memory-leak", "high")
    assert leak.rss_growth_bytes > 8 * 2**20 * 5


def open_names(training: Training) -> list[str]:
    return [parameter.name for parameter in training.optimizers[0].parameters]


def test_a_script_that_names_nothing_is_refused(training: Training, tmp_path: Path) -> None:
    script = Script(VARIANTS["decoder"], 0, 2)
    script.at(1, lambda live: live.edit("no.such.weight", lambda w: w))
    with pytest.raises(KeyError, match=r"no\.such\.weight"):
        training.run(script, tmp_path / "one")
    script = Script(VARIANTS["decoder"], 0, 2)
    script.set_at(1, temperature=2.0)
    with pytest.raises(KeyError, match="temperature"):
        training.run(script, tmp_path / "two")


def test_the_result_of_a_job(training: Training, tmp_path: Path) -> None:
    job = record.Job("decoder", "bit-flip", "high", 0)
    record.record(training, job, tmp_path, 12)
    told = json.loads(record.result_path(tmp_path, job).read_text())
    assert told["id"] == "decoder-bit-flip-high-s0"
    assert (told["kind"], told["category"], told["layer"]) == ("fault", "numerics", 1)
    assert told["steps"] == 12
    assert 1 < told["label_step"] <= 12
    assert open_run(tmp_path / told["run"]).series("train_loss").steps[-1] == 12
