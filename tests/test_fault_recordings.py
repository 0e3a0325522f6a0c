"""The fault benchmark without MindSpore: recipes, labels, the split, and packing."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.faults import label, pack, page, record, split
from benchmarks.faults.data import (
    HIDDEN_LOGIT,
    IGNORED,
    Batch,
    Text,
    from_step,
    held_out_part,
    train_part,
    unigram_entropy,
)
from benchmarks.faults.recipes import RECIPES
from benchmarks.faults.recipes.numerics import flipper
from benchmarks.faults.settings import BATCH, CONTROLS, HEALTHY, LENGTH, VARIANTS
from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.rules.rule import PARTS
from mindpulse.series import Rows, SeriesSpec

FAULTS = [recipe for recipe in RECIPES.values() if recipe.kind == "fault"]
HARD = [recipe for recipe in RECIPES.values() if recipe.kind == "healthy"]


# -- data ---------------------------------------------------------------------------------------


def test_a_decoder_predicts_the_next_character_and_sees_no_later_one() -> None:
    batch = Text("decoder", train_part("reference"), 4, 16, seed=1)(0)
    assert np.array_equal(batch.ids[:, 1:], batch.targets[:, :-1])
    assert (batch.bias[0, 0] < 0).sum() == 16 * 15 / 2
    assert batch.bias[2, 0, 3, 4] == HIDDEN_LOGIT
    assert batch.bias[2, 0, 3, 3] == 0


def test_an_encoder_predicts_masked_characters_and_sees_no_padding() -> None:
    batch = Text("encoder", train_part("reference"), 16, 32, seed=1)(5)
    assert batch.padding.any()
    hidden = np.broadcast_to((batch.bias[:, 0] < 0), (16, 32, 32))
    assert np.array_equal(hidden, np.broadcast_to(batch.padding[:, None, :], hidden.shape))
    assert (batch.targets[batch.padding] == IGNORED).all()
    assert 0.1 < (batch.targets != IGNORED).mean() < 0.35


def test_a_batch_depends_on_seed_and_number_only() -> None:
    text = train_part("reference")
    one, two, other = (Text("encoder", text, 4, 16, seed) for seed in (1, 1, 2))
    assert np.array_equal(one(7).ids, two(7).ids)
    assert not np.array_equal(one(7).ids, one(8).ids)
    assert not np.array_equal(one(7).ids, other(7).ids)


def test_held_out_text_is_not_trained_on() -> None:
    for domain in ("reference", "source"):
        train, held = train_part(domain), held_out_part(domain)
        assert len(held) > 10_000
        assert len(train) > 8 * len(held)
        assert 2.5 < unigram_entropy(train) < 4


def test_a_change_begins_at_its_step() -> None:
    source = Text("decoder", train_part("reference"), 2, 8, seed=0)
    blank = Batch(*(np.zeros(1, int) for _ in range(4)))  # type: ignore[arg-type]
    changed = from_step(source, 5, lambda batch, index: blank)
    assert np.array_equal(changed(3).ids, source(3).ids)
    assert changed(4) is blank


# -- recipes ------------------------------------------------------------------------------------


def test_most_kinds_of_the_issue_are_there() -> None:
    assert {recipe.category for recipe in FAULTS} == set(PARTS)
    assert len(FAULTS) >= 35
    assert len(HARD) >= 25
    three = [recipe for recipe in FAULTS if len(recipe.levels) == 3]
    assert len(three) >= len(FAULTS) - 2


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_makes_its_scripts(name: str) -> None:
    recipe = RECIPES[name]
    for variant in recipe.variants:
        for severity in recipe.levels:
            script = recipe.script(variant, severity, seed=1)
            assert len(script.sources) == VARIANTS[variant].ranks
            batch = script.sources[0](script.steps - 1)
            assert batch.ids.shape == batch.targets.shape == (BATCH, LENGTH)
            assert batch.bias.shape == (BATCH, 1, LENGTH, LENGTH)
            assert batch.bias.dtype == np.float32
            assert batch.ids.dtype == batch.targets.dtype == batch.places.dtype == np.int32
            assert set(script.controls) <= set(CONTROLS)
            assert script.schedule is not None
            assert all(script.schedule(step) >= 0 for step in range(1, script.steps + 1))
            assert 1 <= script.label <= script.steps
    assert "{level}" not in recipe.what or recipe.kind == "fault"
    assert len(recipe.what) > 15


def test_what_strikes_in_the_middle_leaves_the_steps_before_alone() -> None:
    for recipe in FAULTS:
        if recipe.when != "middle":
            continue
        variant = recipe.variants[0]
        script = recipe.script(variant, "high", seed=2)
        plain = RECIPES["plain"].script(variant, "", seed=2)
        assert script.schedule is not None
        assert plain.schedule is not None
        index = script.label - 2
        for own, usual in zip(script.sources, plain.sources, strict=True):
            for ours, theirs in zip(own(index).arrays, usual(index).arrays, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=recipe.name)
        if recipe.steps == plain.steps:
            assert script.schedule(script.label - 1) == plain.schedule(script.label - 1)
        assert all(step >= script.label for step, _ in script.events), recipe.name


def test_labels_differ_from_seed_to_seed() -> None:
    labels = {RECIPES["lr-jump"].script("decoder", "low", seed).label for seed in range(5)}
    assert len(labels) > 2
    assert all(96 <= step < 144 for step in labels)


def test_a_flipped_bit_is_one_bit() -> None:
    w = np.linspace(-0.1, 0.1, 64, dtype=np.float32).reshape(8, 8)
    flipped = flipper(30, 1)(w.copy())  # type: ignore[operator]
    changed = np.flatnonzero(flipped != w)
    assert len(changed) == 1
    before, after = (x.reshape(-1).view(np.uint32)[changed[0]] for x in (w, flipped))
    assert bin(int(before) ^ int(after)).count("1") == 1
    assert abs(flipped.reshape(-1)[changed[0]]) > 1e30


def test_healthy_controls_are_those_of_the_docs() -> None:
    assert HEALTHY["clip"] == 1.0
    assert HEALTHY["eps"] == 1e-8
    assert len(set(CONTROLS.values())) == len(CONTROLS) == len(HEALTHY)


def test_the_page_shows_the_recipes_as_they_are() -> None:
    text = page.PAGE.read_text("utf-8")
    assert page.filled(text, "faults", page.fault_table()) == text
    assert page.filled(text, "healthy", page.healthy_table()) == text
    assert all(f"`{name}`" in text for name in RECIPES)


# -- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 8), (3, 10), (4, 6), (3, 3)])
def test_the_permutation_test_is_that_of_scipy(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes)
    for shift in (-1.0, 0.0, 0.5, 3.0):
        group = list(rng.normal(shift, 1, sizes[0]))
        others = list(rng.normal(0, 1, sizes[1]))
        expected = stats.permutation_test(
            (np.array(group), np.array(others)),
            lambda a, b, axis: a.mean(axis) - b.mean(axis),
            alternative="greater",
            vectorized=True,
            n_resamples=np.inf,
        ).pvalue
        assert label.permutation_p(group, others) == pytest.approx(expected)


def test_many_runs_are_compared_by_drawing() -> None:
    rng = np.random.default_rng(0)
    group, others = list(rng.normal(0.5, 1, 12)), list(rng.normal(0, 1, 30))
    expected = stats.ttest_ind(group, others, alternative="greater").pvalue
    assert label.permutation_p(group, others) == pytest.approx(expected, abs=0.03)


def test_nan_is_worse_than_any_number() -> None:
    assert label.permutation_p([math.nan, math.inf], [1.0, 2.0, 900.0, 1.5]) == pytest.approx(
        1 / 15
    )
    with pytest.raises(ValueError, match="0 and 1 runs"):
        label.permutation_p([], [1.0])


def result(recipe: str, severity: str, seed: int, **more: Any) -> dict[str, Any]:
    job = record.Job("decoder", recipe, severity, seed)
    found = RECIPES[recipe]
    return {
        "id": job.id, "run": f"runs/{job.id}", "model": "decoder", "variant": "decoder",
        "recipe": recipe, "severity": severity, "seed": seed, "steps": 300, "kind": found.kind,
        "label_step": 1 if found.kind == "fault" else None, "category": found.category,
        "layer": None, "judged_by": found.judged_by, "final_loss": 2.0, "step_time_s": 0.02,
        "rss_growth_bytes": 0.0, "seconds": 5.0, **more,
    }  # fmt: skip


def results() -> list[dict[str, Any]]:
    plain = [
        result("plain", "", seed, final_loss=2.0 + seed / 100, step_time_s=0.02 + seed / 1e4)
        for seed in range(8)
    ]
    return [
        *plain,
        *(result("lr-jump", "high", seed, final_loss=None) for seed in range(3)),
        *(result("lr-jump", "low", seed, final_loss=2.01 + seed / 100) for seed in range(3)),
        *(result("slow-loader", "high", seed, step_time_s=0.2) for seed in range(3)),
        *(result("label-noise", "low", seed, final_loss=2.3) for seed in range(3)),
        *(result("small-batch", "", seed, final_loss=3.0) for seed in range(3)),
    ]


def test_a_fault_counts_only_where_it_did_harm() -> None:
    lines = {line["id"]: line for line in label.labelled(results())}
    assert lines["decoder-lr-jump-high-s0"]["verdict"] == "faulty"
    assert lines["decoder-lr-jump-high-s0"]["p_value"] == pytest.approx(1 / 165)
    assert lines["decoder-lr-jump-low-s2"]["verdict"] == "relabelled"
    assert lines["decoder-slow-loader-high-s1"]["verdict"] == "faulty"
    assert lines["decoder-plain-s3"]["verdict"] == "healthy"
    assert lines["decoder-plain-s3"]["p_value"] is None
    # A healthy recipe stays healthy, but it is told where it ends worse.
    assert lines["decoder-small-batch-s0"]["verdict"] == "healthy"
    told = label.summary(list(lines.values()))
    assert "healthy, but worse than plain: decoder small-batch" in told
    assert "relabelled: decoder lr-jump low (3 runs)" in told


def test_a_group_that_is_too_small_waits_for_its_other_runs() -> None:
    few = [one for one in results() if one["seed"] == 0 or one["recipe"] == "plain"]
    strict = {line["recipe"] for line in label.labelled(few)}
    assert strict == {"plain", "small-batch"}
    judged = {line["id"]: line["verdict"] for line in label.labelled(few, provisional=True)}
    assert judged["decoder-lr-jump-high-s0"] == "faulty"
    assert judged["decoder-lr-jump-low-s0"] == "relabelled"


def test_the_index_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for one in results():
        (tmp_path / "results" / f"{one['id']}.json").write_text(json.dumps(one))
    label.write_index(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    assert len(lines) == len(results())
    expected = {
        "id", "run", "model", "recipe", "severity", "seed", "steps", "kind", "label_step",
        "category", "layer", "final_loss", "split", "verdict", "p_value",
    }  # fmt: skip
    assert all(expected <= set(line) for line in lines)
    assert {line["split"] for line in lines} == {"tune", "test"}


# -- the split ----------------------------------------------------------------------------------


def test_the_split_is_the_one_that_its_rule_gives() -> None:
    made, kept = split.make_split(), split.load_split()
    assert (dict(made.recipes), dict(made.plain)) == (dict(kept.recipes), dict(kept.plain))


def test_both_parts_have_every_category_and_hard_negatives() -> None:
    kept = split.load_split()
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for recipe in RECIPES.values():
        if recipe.name != "plain":
            parts[kept.of(recipe.name, "decoder")][recipe.category or "healthy"] += 1
    for part in ("tune", "test"):
        assert set(PARTS) <= set(parts[part]), part
        assert parts[part]["healthy"] >= 10
    for category in (*PARTS, "healthy"):
        assert abs(parts["tune"][category] - parts["test"][category]) <= 1
    assert set(kept.plain.values()) == {"tune", "test"}


def test_what_the_split_does_not_know_is_refused() -> None:
    with pytest.raises(KeyError, match="unheard-of"):
        split.load_split().of("unheard-of", "decoder")


# -- the list of runs ---------------------------------------------------------------------------


def test_at_least_as_many_healthy_runs_as_faults() -> None:
    jobs = record.all_jobs()
    kinds = Counter(RECIPES[job.recipe].kind for job in jobs)
    assert kinds["fault"] >= 300
    assert kinds["healthy"] >= kinds["fault"]
    assert len({job.id for job in jobs}) == len(jobs)
    plain = Counter(job.variant for job in jobs if job.recipe == "plain")
    assert set(plain) == set(VARIANTS)
    assert min(plain.values()) >= 8


def test_a_run_that_is_there_is_not_repeated(tmp_path: Path) -> None:
    jobs = record.all_jobs(seeds=1)
    some = record.wanted(jobs, tmp_path, ["decoder-lr-jump-*", "encoder-plain-s0"])
    assert {job.recipe for job in some} == {"lr-jump", "plain"}
    path = record.result_path(tmp_path, some[0])
    path.parent.mkdir()
    path.write_text("{}")
    assert record.wanted(jobs, tmp_path, ["*"]) == [job for job in jobs if job != some[0]]


def test_one_process_trains_one_variant() -> None:
    found = record.units(record.all_jobs())
    assert all(len({job.variant for job in unit}) == 1 for unit in found)
    assert all(len(unit) <= record.MOST_IN_PROCESS for unit in found)
    assert sum(map(len, found)) == len(record.all_jobs())


# -- packing ------------------------------------------------------------------------------------


def make_run(folder: Path) -> None:
    """Two attempts of rank 0, one of rank 1; scalars, columns, NaN and infinity."""
    rng = np.random.default_rng(3)
    norms = SeriesSpec(
        "grad_norm_param", "vector", axes=("parameter",), columns=(("a",), ("b",)), dtype="float64"
    )
    for rank, attempt_starts in ((0, (1, 6)), (1, (1,))):
        for start in attempt_starts:
            recorder = Recorder(folder, rank=rank, fingerprint={"mode": "graph"})
            recorder.note("start", step=start)
            steps = np.arange(start, start + 8)
            times = 1.7e9 + steps * 0.25
            loss = rng.normal(2, 1, (8, 1)).astype(np.float32).astype(float)
            loss[2], loss[3] = np.nan, np.inf
            recorder.write(SeriesSpec("train_loss"), Rows(steps, times, loss))
            recorder.write(
                SeriesSpec("step_time_s", unit="s"), Rows(steps, times, np.full((8, 1), 0.25))
            )
            recorder.write(norms, Rows(steps[::2], times[::2], rng.lognormal(size=(4, 2))))
            recorder.write(
                SeriesSpec("ffn_histogram", axes=("bin",), columns=(("0",),)),
                Rows(steps, times, loss),
            )
            recorder.close()


def test_a_packed_run_is_the_run(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one")
    line = {"id": "one", "run": "runs/one", "variant": "decoder", "recipe": "plain",
            "severity": "", "seed": 0}  # fmt: skip
    (tmp_path / "index.jsonl").write_text(json.dumps(line) + "\n")
    size = pack.pack(tmp_path, tmp_path / "packed", seeds=1, plain=1)
    assert 0 < size < 10_000
    assert pack.unpack(tmp_path / "packed", tmp_path / "again") == 1
    assert (tmp_path / "again" / "index.jsonl").read_text() == json.dumps(line) + "\n"
    old, new = open_run(tmp_path / "runs" / "one"), open_run(tmp_path / "again" / "runs" / "one")
    assert new.attempts == old.attempts == [1, 2]
    assert new.ranks == [0, 1]
    assert new.run_tags["mode"] == "graph"
    assert set(old.specs()) - set(new.specs()) == {"ffn_histogram"}
    for tag in new.specs():
        for rank in (0, 1):
            before, after = old.series(tag, rank), new.series(tag, rank)
            assert before.spec == after.spec
            assert np.array_equal(before.steps, after.steps)  # the second attempt supersedes
            assert np.array_equal(before.wall_times, after.wall_times)
            exact = before.spec.width == 1
            np.testing.assert_allclose(after.values, before.values, rtol=0 if exact else 2**-11)


def test_a_subset_has_every_group() -> None:
    lines = label.labelled(results())
    kept = pack.chosen(lines, seeds=1, plain=2)
    assert Counter(line["recipe"] for line in kept) == {
        "plain": 2, "lr-jump": 2, "slow-loader": 1, "label-noise": 1, "small-batch": 1,
    }  # fmt: skip


def test_unpacking_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no \*\.tar\.xz"):
        pack.unpack(tmp_path / "empty", tmp_path / "out")


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, 1e-45, 3.4e38, -1.5])
def test_rounding_keeps_what_has_no_more_bits(value: float) -> None:
    x = np.array([value], np.float32)
    found = pack.rounded(x)
    if abs(value) in (1e-45, 3.4e38):
        assert np.isfinite(found[0])
    else:
        assert found.tobytes() == x.tobytes()
    assert np.isnan(pack.rounded(np.array([np.nan], np.float32))[0])
