"""The scores of the fault benchmark: by hand, against SciPy and scikit-learn, and end to end."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.faults import bench_rules, index, intervals, tables, why
from benchmarks.faults.alarms import Alarm, Case, layer_of, rows_since
from benchmarks.faults.index import RecordedRun, open_recordings, read_index
from benchmarks.faults.replay import OURS, judge_events, listen, listen_to_all, read_chunks
from benchmarks.faults.scores import Scores, delay, layer_rank, said_class, score, windows
from benchmarks.faults.synthetic_recordings import LABEL, STEPS, write_recordings
from mindpulse.alerts import AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.errors import UsageError
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import make_rule
from mindpulse.store.writer import RankWriter
from mindpulse.testing import chunk, write_run
from mindpulse.watcher import watch

inf = math.inf


def run(
    verdict: str = "faulty", label: int | None = 101, layer: int | None = None, **more: object
) -> RecordedRun:
    values = {
        "id": "r",
        "run": "runs/r",
        "model": "decoder",
        "recipe": "lr-jump",
        "severity": "low",
        "seed": 0,
        "steps": 300,
        "kind": "healthy" if verdict == "healthy" else "fault",
        "label_step": None if verdict == "healthy" else label,
        "category": None if verdict == "healthy" else "loss",
        "layer": layer,
        "split": "test",
        "verdict": verdict,
    }
    return RecordedRun(**{**values, **more})  # type: ignore[arg-type]


def case(of: RecordedRun, *alarms: Alarm) -> Case:
    return Case(of, alarms, 1, 300)


def bell(step: int, severity: str = "error", category: str = "loss", *layers: int) -> Alarm:
    return Alarm(step, "rule", severity, category, layers, max(0, step - 101))


# Intervals and figures, against the libraries of the field.


@pytest.mark.parametrize("total", [1, 7, 40])
def test_share_has_the_interval_of_wilson(total: int) -> None:
    for count in range(total + 1):
        found = intervals.share(count, total)
        wanted = stats.binomtest(count, total).proportion_ci(0.95, method="wilson")
        assert found.value == count / total
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


def test_rate_has_the_exact_interval_of_poisson() -> None:
    for count in (0, 1, 5, 80):
        found = intervals.rate(count, 25_000, per=10_000)
        low = stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
        high = stats.chi2.ppf(0.975, 2 * count + 2) / 2
        assert (found.value, found.low, found.high) == pytest.approx(
            (count * 0.4, low * 0.4, high * 0.4)
        )


def test_nothing_has_no_share_and_no_rate() -> None:
    assert math.isnan(intervals.share(0, 0).value)
    assert math.isnan(intervals.rate(0, 0, 10).high)


def test_average_precision_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(50):
        random = np.random.default_rng(seed)
        truth = random.random(60) < 0.3
        truth[0] = True
        scores = np.round(random.random(60) + 0.3 * truth, random.integers(0, 4))  # many ties
        wanted = metrics.average_precision_score(truth, scores)
        assert intervals.average_precision(truth, scores) == pytest.approx(wanted)


def test_f1_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    names = ["attention", "gradient", "loss", "none"]
    for seed in range(20):
        random = np.random.default_rng(seed)
        truth, said = random.choice(names, (2, 30))
        wanted = metrics.f1_score(truth, said, labels=names[:3], average=None, zero_division=0)
        found = intervals.f1_by_class(truth.tolist(), said.tolist(), names[:3])
        assert list(found.values()) == pytest.approx(list(wanted))


def test_bootstrap_is_that_of_scipy() -> None:
    data = np.random.default_rng(0).exponential(1.0, 80)
    found = intervals.bootstrap([data.tolist()], lambda d: float(np.mean(d)), rounds=4000)
    wanted = stats.bootstrap((data,), np.mean, method="percentile", n_resamples=4000, rng=1)
    assert found.value == pytest.approx(data.mean())
    assert found.low == pytest.approx(wanted.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(wanted.confidence_interval.high, abs=0.02)


def test_bootstrap_draws_from_each_group_what_it_has() -> None:
    drawn: list[list[int]] = []
    intervals.bootstrap([[1, 1, 1], [], [2, 2]], lambda d: float(len(drawn.append(d) or d)), 5)
    assert all(sorted(one) == [1, 1, 1, 2, 2] for one in drawn)


def test_a_median_of_missed_faults_is_never() -> None:
    assert intervals.median([1.0, inf, 5.0]) == 5.0
    assert intervals.median([1.0, inf]) == inf
    assert math.isnan(intervals.median([]))
    found = intervals.bootstrap([[3.0] * 9 + [inf]], intervals.median, 200)
    assert (found.value, found.low, found.high) == (3.0, 3.0, 3.0)


# What counts as what.


def test_an_alarm_before_the_label_is_false_and_detects_nothing() -> None:
    one = case(run(), bell(100))
    assert (len(one.false_alarms), len(one.detections), delay(one)) == (1, 0, (inf, inf))


def test_an_alarm_at_the_label_detects_at_once() -> None:
    one = case(run(), bell(100), bell(101), bell(150))
    assert [alarm.step for alarm in one.detections] == [101, 150]
    assert delay(one) == (0.0, 0.0)


def test_information_is_neither_a_detection_nor_a_false_alarm() -> None:
    one = case(run(), bell(50, "info"), bell(120, "info"))
    assert one.false_alarms == one.detections == ()
    assert said_class(one) == "none"


def test_healthy_steps_are_those_before_the_label() -> None:
    assert case(run(label=101)).healthy_steps == 100
    assert case(run(label=0)).healthy_steps == 0
    assert case(run(label=999)).healthy_steps == 300
    assert case(run("healthy")).healthy_steps == 300
    assert case(run("relabelled"), bell(9)).healthy_steps == 0
    assert case(run("relabelled"), bell(9)).false_alarms == ()


def test_the_category_is_that_of_the_first_alarm_of_the_highest_severity() -> None:
    alarms = [
        bell(90, "critical", "memory"),  # before the label
        bell(110, "warning", "attention"),
        bell(120, "error", "gradient"),
        bell(130, "error", "loss"),
    ]
    assert said_class(case(run(), *alarms)) == "gradient"
    assert said_class(case(run("healthy"), *alarms)) == "memory"
    assert said_class(case(run(), bell(110, "error", ""))) == "unnamed"


def test_layers_that_are_named_together_share_the_last_place() -> None:
    def rank(*alarms: Alarm) -> float:
        return layer_rank(case(run(layer=2), *alarms))

    assert rank(bell(110, "error", "loss", 2)) == 1
    assert rank(bell(110, "error", "loss", 0, 1, 2, 3)) == 4
    assert rank(bell(110, "error", "loss", 1), bell(120, "error", "loss", 2, 1)) == 2
    assert rank(bell(110, "warning", "loss", 1), bell(120, "error", "loss", 2)) == 1
    assert rank(bell(90, "error", "loss", 2)) == inf
    assert rank(bell(110)) == inf
    everywhere = bell(110, "error", "loss", 0, 1, 2, 3)
    assert rank(replace(everywhere, origin=2)) == 1
    assert rank(replace(everywhere, origin=1)) == 4


def test_windows_of_a_faulty_run_are_cut_from_its_label() -> None:
    alarms = (bell(59, "warning"), bell(126, "error"), bell(131, "critical"), bell(170, "critical"))
    found = windows(case(run(label=121), *alarms))
    # 21 to 70 with a warning (2) 38 steps in, 71 to 120 silent, 121 to 170: critical 10 steps in
    assert found == [
        (False, pytest.approx(2 - 38 / 50)),
        (False, 0.0),
        (True, pytest.approx(4 - 10 / 50)),
    ]
    assert len(windows(case(run("healthy")))) == 6
    assert windows(case(run("relabelled"))) == []
    assert windows(case(run(label=0))) == [(True, 0.0)]


def test_scores_by_hand() -> None:
    found = score(
        [
            case(run(layer=2), bell(111, "error", "loss", 2)),  # in time, right name, right layer
            case(run(layer=1), bell(50), bell(131, "error", "gradient", 0)),  # false, late, wrong
            case(run()),  # missed
            case(run(category="gradient"), bell(101, "error", "gradient")),
            case(run("healthy")),
            case(run("healthy"), bell(7), bell(200)),
            case(run("relabelled"), bell(150)),
        ],
        rounds=50,
    )
    assert (found.faulty, found.healthy, found.relabelled.runs) == (4, 2, 1)
    assert (found.recall.count, found.recall.total) == (3, 4)
    assert (found.recall_in_time.count, found.recall_in_time.total) == (2, 4)
    assert (found.precision.count, found.precision.total) == (3, 5)
    assert found.f1.value == pytest.approx(2 * 3 / (3 + 2 + 4))
    assert (found.alarm_precision.count, found.alarm_precision.total) == (3, 6)
    assert (found.false_alarms.count, found.false_alarms.total) == (3, 4 * 100 + 2 * 300)
    assert found.false_alarms.value == pytest.approx(30)
    assert found.delay_steps.value == found.delay_rows.value == 20  # of 0, 10, 30, never
    # loss: 1 right, 3 true, 2 said; gradient: 1 right, 1 true, 2 said
    assert found.category_f1 == pytest.approx({"loss": 2 / 5, "gradient": 2 / 3})
    assert found.macro_f1.value == pytest.approx((2 / 5 + 2 / 3) / 2)
    assert (found.layer_1.count, found.layer_3.count, found.layer_1.total) == (1, 1, 2)
    assert found.prevalence == pytest.approx(4 / (4 + 4 * 2 + 2 * 6))
    assert (found.relabelled.with_alarm, found.relabelled.alarms) == (1, 1)


def test_scores_of_no_runs_say_nothing() -> None:
    found = score([], rounds=5)
    assert math.isnan(found.recall.value)
    assert math.isnan(found.macro_f1.value)
    assert math.isnan(found.average_precision.value)


def test_targets_say_who_is_not_beaten() -> None:
    def scores(*alarms: Alarm) -> Scores:
        return score([case(run(), *alarms), case(run("healthy"), *alarms[1:])], rounds=5)

    ours, same, rings = scores(bell(101)), scores(bell(101)), scores(bell(101), bell(120))
    told = {row["target"]: row for row in tables.targets({"us": ours, "b": same, "c": rings}, "us")}
    assert [row["met"] for row in told.values()] == [True] * 5
    assert all(row["not_beaten"] == [] for row in told.values())  # the best that can be
    half = score([case(run(), bell(101)), case(run())], rounds=5)
    level = tables.targets({"us": half, "b": half}, "us")[0]
    assert (level["target"], level["not_beaten"]) == ("recall", ["b"])
    worse = {row["target"]: row for row in tables.targets({"us": rings, "b": ours}, "us")}
    assert worse["precision"] == {
        "target": "precision",
        "wanted": 0.95,
        "value": 0.5,
        "met": False,
        "not_beaten": ["b"],
    }


@pytest.mark.parametrize(
    ("since", "step", "rows"), [(100, 100, 0), (101, 110, 0), (95, 130, 3), (200, 130, 0)]
)
def test_rows_are_counted_from_the_first_that_could_show_the_fault(
    since: int, step: int, rows: int
) -> None:
    assert rows_since(np.array([90, 100, 110, 120, 130]), since, step) == rows


def test_a_layer_is_a_number_or_in_a_path() -> None:
    assert [layer_of(t) for t in ("7", "encoder.4.w", "head", "x2.y")] == [7, 4, None, None]


# Why nothing rang.


def test_stories_tell_how_long_a_condition_held() -> None:
    rules = [
        make_rule({"name": "long", "expr": "last(x) > 1", "for_steps": 9}),
        make_rule({"name": "far", "expr": "max(x[500]) > 1"}),
        make_rule({"name": "gone", "expr": "last(y) > 1"}),
        make_rule({"name": "part", "expr": "max(upto(x[500])) > 7"}),
    ]
    values = np.zeros(50)
    values[[19, 20, 21, 30]] = 2.0
    window = why.whole_window([chunk("x", values)])
    long, *others = [str(story) for story in why.stories(window, rules, since=11)]
    assert long == "long (warning): held at 4 of 40 steps from 20 on, 3 in a row of 9"
    assert sorted(others) == [
        "far: unknown at 40 of 40 steps, x has 50 of the 500 rows needed",
        "gone: nobody writes its series",
        "part: quiet at 40 steps",
    ]
    assert why.terms(window, rules[0], 20) == [("last(x)", 2.0, 2.0)]


# End to end, on made-up recordings whose answers are known.


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    write_recordings(folder)
    return folder


def named(folder: Path, recipe: str) -> RecordedRun:
    return next(one for one in read_index(folder) if one.recipe == recipe)


def begun(folder: Path, recipe: str) -> list[tuple[int, str, tuple[int, ...], int]]:
    one = named(folder, recipe)
    heard = listen(one, folder, load_rules(), ()).cases[OURS]
    return [(a.step, a.category, a.layers, a.rows) for a in heard.alarms]


def test_the_made_up_faults_are_found_where_they_are(recordings: Path) -> None:
    assert begun(recordings, "gradient-jump") == [
        (LABEL, "gradient", (), 0),  # the spike that its group sees a step later is not told
    ]
    assert begun(recordings, "nan-loss") == [(LABEL, "numerics", (), 0)]
    # Twenty rows of zeros are wanted.
    assert begun(recordings, "frozen-layer") == [(LABEL + 9, "gradient", (2,), 9)]
    # One row in ten steps, the first of them at the label.
    assert begun(recordings, "entropy-collapse") == [(LABEL, "attention", (0, 1, 2, 3), 0)]
    assert begun(recordings, "unseen") == begun(recordings, "plain") == []
    assert begun(recordings, "rung-early")[0][0] == 50


@pytest.mark.parametrize("recipe", ["gradient-jump", "frozen-layer", "entropy-collapse", "bell"])
def test_a_replay_tells_what_the_watcher_told(
    recordings: Path, recipe: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(recordings / named(recordings, recipe).run, folder)
    rules, chunks = load_rules(), read_chunks(folder)
    replayed, _ = judge_events(chunks, rules)
    live = [e for e in watch(folder, rules, once=True) if isinstance(e, AlertEvent)]
    judge = Judge(rules, every_step=True)
    step_by_step = judge.feed(chunks) + judge.finish()
    assert len(replayed) > 0
    assert sorted(map(repr, replayed)) == sorted(map(repr, step_by_step))
    told = [event for event in replayed if event.delivered]  # the others are kept, not told
    assert sorted(map(repr, told)) == sorted(map(repr, live))


def test_restarts_and_ranks_are_heard(tmp_path: Path) -> None:
    loss = np.linspace(3, 2, 200)
    write_run(tmp_path / "runs/r", train_loss=np.append(loss[:150], np.nan))
    write_run(tmp_path / "runs/r", first_step=101, train_loss=loss[100:])  # without the NaN at 151
    one = run("healthy", steps=200)
    heard = listen(one, tmp_path, load_rules())
    assert [a.step for a in heard.cases[OURS].alarms] == [151]  # it was told before the restart
    assert heard.cases["Megatron-LM"].alarms == ()  # the later attempt is what counts
    assert (heard.cases[OURS].first_step, heard.cases[OURS].last_step) == (1, 200)
    writer = RankWriter(tmp_path / "runs/r/attempt-0002/rank-0001", 1, 2)
    broken = chunk("train_loss", [3.0, np.nan], first_step=101, rank=1, attempt=2)
    writer.append(broken.spec, broken.rows)
    writer.close()
    heard = listen(one, tmp_path, load_rules())
    assert [a.step for a in heard.cases["Megatron-LM"].alarms] == [102]
    assert [a.step for a in heard.cases[OURS].alarms] == [102, 151]


def test_processes_change_nothing(recordings: Path) -> None:
    runs = read_index(recordings)
    assert len(runs) == 18
    alone = listen_to_all(runs, recordings, processes=1)
    assert alone == listen_to_all(runs, recordings, processes=2)
    assert all(one.cases[OURS].last_step == STEPS for one in alone)


def test_rules_of_a_file_are_tried(recordings: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\nname = "gradient-explosion"\ndisabled = true\n')
    heard = listen_to_all([named(recordings, "gradient-jump")], recordings, file, 1, False)
    assert {alarm.name for alarm in heard[0].cases[OURS].alarms} == {"gradient-spike"}
    assert list(heard[0].cases) == [OURS]


def bench(*words: object) -> str:
    told = io.StringIO()
    with redirect_stdout(told):
        bench_rules.run(bench_rules.options().parse_args([str(word) for word in words]))
    return told.getvalue()


def test_the_tool_prints_scores_misses_and_false_alarms(recordings: Path, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    told = bench("--recordings", recordings, "--part", "tune", "--quick", "--json", file)
    assert told.startswith("9 runs of the part 'tune': 6 faulty, 2 healthy, 1 relabelled")
    assert re.search(r"\| recall +\| >= 0.95 \| +0.67 \| MISSED", told)
    assert "decoder-unseen-low-s0: loss, label 121, last step 240" in told
    assert "attention-converged: nobody writes its series" in told
    assert re.search(r"gradient-explosion .* at 50; decoder-bell-none-s0 \(healthy\); last", told)
    assert "decoder-harmless-low-s0 (p = None): gradient-explosion" in told
    found = json.loads(file.read_text())
    assert found["scores"]["mindpulse"]["recall"]["count"] == 4
    assert found["scores"]["mindpulse"]["false_alarms"]["total"] == 6 * (LABEL - 1) + 2 * STEPS
    assert found["scores"]["Megatron-LM"]["delay_rows"]["value"] is None  # never
    assert found["alarms"]["decoder-nan-loss-high-s0"][0]["step"] == LABEL


def test_the_test_part_gives_no_reasons_to_tune_by(recordings: Path) -> None:
    words = "--recordings", recordings, "--quick", "--only-ours", "--only", "*-unseen-*"
    told = bench(*words)
    assert "decoder-unseen-low-s1: loss" in told
    assert "nobody writes its series" not in told
    assert "nobody writes its series" in bench(*words, "--why")


def test_the_details_of_another_detector_are_shown(recordings: Path) -> None:
    told = bench("--recordings", recordings, "--quick", "--detector", "MindFormers skip")
    assert re.search(
        r"norm spike \(error, gradient\) at 50; decoder-bell-none-s1 \(healthy\)", told
    )
    with pytest.raises(UsageError, match="choose one of them"):
        bench("--recordings", recordings, "--only-ours", "--detector", "msprobe")


def test_the_tool_explains_a_run(recordings: Path) -> None:
    name = "decoder-frozen-layer-medium-s0"
    words = "--rule", "frozen-weights", "--at", 120, 140, "--series", "attn_entropy"
    told = bench("--recordings", recordings, "--explain", name, *words)
    assert "[warning] frozen-weights" in told
    assert re.search(r"frozen-weights \(warning\): held at 111 of 120 steps from 130 on", told)
    assert re.search(r"\| max\(grad_norm_param\[10\]\) +\| +0.\d+\.\.\S+ \| +0\.\.", told)
    assert re.search(r"\| says +\| +quiet \| +fired \|", told)
    assert re.search(r"\| attn_entropy +\| \(0.\d+..0.\d+\) \|", told)  # a row of an earlier step


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--explain", "decoder-unseen-low-s"), "did you mean 'decoder-unseen-low-s"),
        (("--explain", "decoder-unseen-low-s0", "--rule", "x"), "no rule 'x'"),
        (("--only", "encoder-*"), "no runs 'encoder-*' of the part 'test'"),
        (("--recordings", "/nowhere"), "/nowhere: no index.jsonl and no archives"),
    ],
)
def test_mistakes_are_told(recordings: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        bench("--recordings", recordings, *words)


# The index.


def test_packed_recordings_are_unpacked_once(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = pytest.importorskip("benchmarks.faults.pack")
    lines = [json.loads(text) for text in (recordings / index.INDEX).read_text().splitlines()]
    shutil.copytree(recordings, tmp_path / "raw")
    with (tmp_path / "raw" / index.INDEX).open("w") as file:
        file.writelines(json.dumps({**line, "variant": line["model"]}) + "\n" for line in lines)
    pack.pack(tmp_path / "raw", tmp_path / "packed", seeds=1, plain=1)
    monkeypatch.setattr(index, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(index, "PACKED", tmp_path / "packed")
    folder = open_recordings()
    assert {one.id for one in read_index(folder)} == {
        one.id for one in read_index(recordings) if one.seed == 0
    }
    assert begun(folder, "nan-loss") == begun(recordings, "nan-loss")
    (folder / "touched").touch()
    assert (open_recordings() / "touched").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "train"}, "split is 'train'"),
        ({"verdict": "ill"}, "verdict is 'ill'"),
        ({"label_step": None}, "a fault needs label_step"),
        ({"category": "ghosts"}, "found 101 and 'ghosts'"),
    ],
)
def test_a_wrong_line_of_the_index_is_told(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    line = {field: getattr(run(), field) for field in RecordedRun.__slots__}
    (tmp_path / index.INDEX).write_text(json.dumps(line) + "\n\n" + json.dumps({**line, **change}))
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        read_index(tmp_path)
    assert "line 3" in str(error.value)


def test_a_line_that_is_no_run_is_told(tmp_path: Path) -> None:
    for text, message in (("{", "not JSON"), ('{"id": "x"}', "want an object with id, run")):
        (tmp_path / index.INDEX).write_text(text)
        with pytest.raises(UsageError, match=message):
            read_index(tmp_path)
    line = json.dumps({field: getattr(run(), field) for field in RecordedRun.__slots__})
    (tmp_path / index.INDEX).write_text(f"{line}\n{line}\n")
    with pytest.raises(UsageError, match="'r' stands there twice"):
        read_index(tmp_path)


def test_a_recording_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rows"):
        listen(replace(run(), run="nowhere"), tmp_path, load_rules())
