"""The model of the health score: it never rises with what is found, and its fit is a good one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.faults import calibrate, health_fit, reliability
from benchmarks.faults.health_fit import Judged, cross_validated, fit, folds, forecasts
from benchmarks.faults.index import RecordedRun
from benchmarks.faults.reliability import Forecast
from benchmarks.faults.synthetic_recordings import write_recordings
from mindpulse.health.evidence import Evidence, Found
from mindpulse.health.fitted import Fit, fingerprint, load_fit, read_fit, write_fit
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import PARTS, SEVERITIES

RULE_NAMES = ("a", "b", "c")
FOUND = st.builds(Found, st.sampled_from(RULE_NAMES), st.sampled_from(SEVERITIES), st.booleans())
EVIDENCE = st.builds(Evidence, st.booleans(), st.lists(FOUND, max_size=4).map(tuple), st.booleans())
RUNS = st.fixed_dictionaries(dict.fromkeys(PARTS, EVIDENCE))
SHARE = st.floats(0, 1)
AMOUNT = st.floats(0, 9)


@st.composite
def fits(draw: st.DrawFn) -> Fit:
    steps = draw(st.lists(AMOUNT, min_size=4, max_size=4))
    return replace(
        load_fit(),
        lost=dict(zip(SEVERITIES, itertools.accumulate(steps), strict=True)),
        resolved=draw(SHARE),
        further=draw(SHARE),
        stale_loss=draw(AMOUNT),
        weight={name: draw(AMOUNT) for name in PARTS},
        quiet={name: draw(AMOUNT) for name in PARTS},
    )


def worse_ones(evidence: Evidence) -> list[Evidence]:
    """All ways to make the evidence of a part worse by one step."""
    found = [replace(evidence, stale_loss=True)]
    for rule, severity in itertools.product(("a", "new"), SEVERITIES):
        found.append(replace(evidence, found=(*evidence.found, Found(rule, severity, True))))
    for place, one in enumerate(evidence.found):
        graver = [replace(one, severity=s) for s in SEVERITIES[SEVERITIES.index(one.severity) :]]
        for other in (*graver, replace(one, over=False)):
            changed = (*evidence.found[:place], other, *evidence.found[place + 1 :])
            found.append(replace(evidence, found=changed))
    return found


@settings(max_examples=200, deadline=None)
@given(fits(), RUNS, st.sampled_from(PARTS))
def test_nothing_that_is_found_raises_the_score(
    model: Fit, run: dict[str, Evidence], part: str
) -> None:
    before, of_part = model.probability(run), model.part_score(part, run[part])
    assert 0 <= before <= 1
    assert 0 <= of_part <= 100 + 1e-9
    for worse in worse_ones(run[part]):
        assert model.probability({**run, part: worse}) <= before + 1e-12
        assert model.part_score(part, worse) <= of_part + 1e-9


@settings(max_examples=100, deadline=None)
@given(fits(), RUNS, st.sampled_from(PARTS))
def test_an_unknown_part_changes_nothing(model: Fit, run: dict[str, Evidence], part: str) -> None:
    without = {name: evidence for name, evidence in run.items() if name != part}
    assert model.probability({**without, part: Evidence()}) == model.probability(without)
    quiet = model.probability({**without, part: Evidence(known=True)})
    assert quiet >= model.probability(without) - 1e-12


def test_a_score_by_hand() -> None:
    model = replace(
        load_fit(),
        prior=0.5,
        lost={"info": 0.0, "warning": 1.0, "error": 2.0, "critical": 4.0},
        resolved=0.5,
        further=0.25,
        stale_loss=0.5,
        weight={**dict.fromkeys(PARTS, 1.0), "loss": 2.0},
        quiet=dict.fromkeys(PARTS, 0.3),
    )
    found = (Found("a", "error"), Found("a", "critical", over=True), Found("b", "warning"))
    run = {"loss": Evidence(True, found, stale_loss=True), "gradient": Evidence(True)}
    # Rule a costs max(2, 4 / 2), rule b a quarter of 1; twice that, and half for the loss.
    odds = 0.3 + 0.3 - (2 * (2 + 0.25) + 0.5)
    assert model.probability(run) == pytest.approx(1 / (1 + math.exp(-odds)))
    best = 1 / (1 + math.exp(-0.3 * len(PARTS)))
    assert model.best == pytest.approx(best)
    alone = 1 / (1 + math.exp(-(0.3 * len(PARTS) - 5)))
    assert model.part_score("loss", run["loss"]) == pytest.approx(100 * alone / best)


# The file.


def test_the_shipped_file_is_what_the_command_writes() -> None:
    assert calibrate.TARGET.read_text("utf-8") == write_fit(load_fit())


def test_the_shipped_file_belongs_to_the_shipped_rules() -> None:
    """If not: `python -m benchmarks.faults.calibrate RECORDINGS --write`, see docs/health.md."""
    assert load_fit().rules == fingerprint(load_rules())


@pytest.mark.parametrize(
    ("old", "new"),
    [("prior = 0.5", "prior = 1"), ("info = 0", "info = 99"), ("memory = ", "memory = -")],
)
def test_constants_by_which_an_alert_could_help_are_refused(old: str, new: str) -> None:
    model = replace(load_fit(), weight=dict.fromkeys(PARTS, 1.0))
    with pytest.raises(ValueError, match="want"):
        read_fit(write_fit(model).replace(old, new))


# The fit.


def judged(healthy: bool, recipe: str, **parts: Evidence) -> Judged:
    run = RecordedRun(
        *("x", "x", "decoder", recipe, "", 0, 9, "fault", 1, "loss", None, "tune"),
        verdict="healthy" if healthy else "faulty",
    )
    return Judged(run, {name: parts.get(name, Evidence()) for name in PARTS})


def drawn(model: Fit, count: int, seed: int = 0) -> list[Judged]:
    """Runs with random evidence, healthy with the probability that the model says."""
    random = np.random.default_rng(seed)
    runs = []
    for number in range(count):
        parts = {}
        for name in PARTS:
            found = [
                Found(rule, SEVERITIES[random.integers(4)], bool(random.integers(2)))
                for rule in RULE_NAMES
                if random.random() < 0.12
            ]
            parts[name] = Evidence(True, tuple(found))
        healthy = random.random() < model.probability(parts)
        runs.append(judged(healthy, f"r{number % 40}", **parts))
    return runs


def known_model() -> Fit:
    return replace(
        load_fit(),
        lost={"info": 0.1, "warning": 1.2, "error": 2.4, "critical": 3.6},
        resolved=0.6,
        further=0.4,
        stale_loss=0.0,
        weight=dict.fromkeys(PARTS, 1.0),
        quiet=dict.fromkeys(PARTS, 0.35),
    )


def test_the_arrays_say_what_the_model_says() -> None:
    runs = drawn(known_model(), 60)
    values = np.concatenate([expected for expected, *_ in health_fit.CONSTANTS.values()])
    model = health_fit._as_fit(values, "", runs)
    odds = health_fit.log_odds(values, health_fit.table_of(runs))
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(forecasts(model, runs))


def test_the_fit_recovers_probabilities_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reference: the probabilities by which the runs were drawn."""
    truth = known_model()
    runs = drawn(truth, 4000)
    share = float(np.mean([one.healthy for one in runs]))
    monkeypatch.setattr(health_fit, "PRIOR", share)  # so that no run is weighted
    found = forecasts(fit(runs, ""), drawn(truth, 500, seed=1))
    wanted = forecasts(truth, drawn(truth, 500, seed=1))
    assert np.abs(found - wanted).mean() < 0.02
    assert np.abs(found - wanted).max() < 0.15


def test_the_fit_of_one_constant_is_that_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reference: the penalised likelihood, tried at 9,001 values of the only free constant."""
    for name in ("resolved", "further", "stale_loss", "log_weight", "quiet"):
        expected, spread, *_ = health_fit.CONSTANTS[name]
        monkeypatch.setitem(
            health_fit.CONSTANTS, name, (expected, spread, expected[0], expected[0])
        )
    silent, rung = Evidence(True), Evidence(True, (Found("a", "info"),))
    runs = [judged(True, "h", loss=silent)] * 8 + [judged(True, "h", loss=rung)] * 2
    runs += [judged(False, "f", loss=silent)] * 3 + [judged(False, "f", loss=rung)] * 7
    cost = np.linspace(0, 9, 9001)
    # Silent runs have log-odds 0 whatever the cost; the further steps stay as expected.
    value = 2 * np.logaddexp(0, cost) + 7 * np.logaddexp(0, -cost) + cost**2 / 2
    assert fit(runs, "").lost["info"] == pytest.approx(cost[value.argmin()], abs=2e-3)


def test_constants_without_data_stay_where_they_are_expected() -> None:
    silent, rung = Evidence(True), Evidence(True, (Found("a", "error"),))
    runs = [judged(True, "h", loss=silent)] * 20 + [judged(False, "f", loss=rung)] * 20
    found = fit(runs, "rules")
    assert (found.runs, found.healthy, found.faulty, found.recipes) == (40, 20, 20, 2)
    assert found.rules == "rules"
    assert found.weight["hardware"] == pytest.approx(1.0, abs=1e-3)
    assert found.quiet["hardware"] == pytest.approx(0.0, abs=1e-3)
    assert found.resolved == pytest.approx(0.8, abs=1e-3)
    assert found.lost["error"] > 3.0
    with pytest.raises(ValueError, match="20 healthy runs of 20"):
        fit(runs[:20], "")


def test_no_recipe_is_on_both_sides_of_a_fold() -> None:
    runs = drawn(known_model(), 200)
    seen: list[int] = []
    for kept, held in folds(runs):
        assert not {runs[n].run.recipe for n in kept} & {runs[n].run.recipe for n in held}
        assert sorted([*kept, *held]) == list(range(200))
        seen += held
    assert sorted(seen) == list(range(200))


def test_cross_validation_tells_how_good_a_forecast_of_unseen_recipes_is() -> None:
    truth, runs = known_model(), drawn(known_model(), 400)
    said = cross_validated(runs)
    healthy = np.array([one.healthy for one in runs])
    reached = np.mean((said - healthy) ** 2)
    least = np.mean((forecasts(truth, runs) - healthy) ** 2)
    assert least - 0.01 < reached < least + 0.02


# How good forecasts are.

TOLD = [
    *(Forecast(0.05, healthy) for healthy in (False, False, False, True)),
    *(Forecast(0.85, healthy) for healthy in (True, True, False)),
    Forecast(1.0, True),
]


def test_brier_and_area_by_hand() -> None:
    square = 3 * 0.05**2 + 0.95**2 + 2 * 0.15**2 + 0.85**2
    assert reliability.brier(TOLD) == pytest.approx(square / 8)
    healthy = (0.95**2 + 2 * 0.15**2) / 4
    faulty = (3 * 0.05**2 + 0.85**2) / 4
    assert reliability.even_brier(TOLD) == pytest.approx((healthy + faulty) / 2)
    # Of the healthy 0.05, 0.85, 0.85, 1 win 0, 3, 3, 4 against the faulty; 3, 1, 1 are ties.
    assert reliability.area(TOLD) == pytest.approx((0 + 3 + 3 + 4 + 5 / 2) / 16)
    assert math.isnan(reliability.area(TOLD[:3]))
    assert math.isnan(reliability.brier([]))


def test_bins_by_hand() -> None:
    found = reliability.bins(TOLD)
    assert [(one.low, one.observed.count, one.observed.total) for one in found] == [
        (0.0, 1, 4),
        (0.8, 2, 3),
        (0.9, 1, 1),
    ]
    assert found[0].mean == pytest.approx(0.05)
    assert found[0].observed.low < 0.25 < found[0].observed.high


def test_another_prior_moves_forecasts_by_the_odds() -> None:
    moved = reliability.moved([Forecast(0.5, True), Forecast(0.0, False)], 0.5, 0.2)
    assert [one.said for one in moved] == [pytest.approx(0.2), 0.0]


def test_the_section_and_the_diagram_show_every_bin() -> None:
    text = reliability.section(TOLD, 0.5, rounds=50)
    assert "8 runs: 4 healthy, 4 faulty." in text
    assert "0.8 to 0.9" in text
    assert "0.250" in text
    picture = ElementTree.fromstring(reliability.diagram(TOLD, "a < b".replace("<", "&lt;")))
    circles = [one for one in picture.iter() if one.tag.endswith("circle")]
    assert len(circles) == 3


# The command.


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_recordings(tmp_path / "recordings")
    page = "".join(
        f"{mark}\n{mark}\n"
        for mark in (
            calibrate.MARK.format(name=name) for name in ("constants", "cross-validated", "test")
        )
    )
    (tmp_path / "page.md").write_text(page)
    monkeypatch.setattr(calibrate, "TARGET", tmp_path / "fit.toml")
    monkeypatch.setattr(calibrate, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(calibrate, "DIAGRAM", tmp_path / "diagram.svg")
    return tmp_path


def call(folder: Path, *words: str) -> None:
    calibrate.run(calibrate.options().parse_args([str(folder / "recordings"), "--quick", *words]))


def test_the_command_fits_to_the_tuning_part_alone(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(workplace, "--write")
    first = (workplace / "fit.toml").read_text()
    assert read_fit(first).runs == 8  # nine recipes, of which one did no harm
    assert "cross-validated" in capsys.readouterr().out
    assert not (workplace / "diagram.svg").exists()
    index = workplace / "recordings" / "index.jsonl"
    lines = [line for line in index.read_text().splitlines() if '"split": "tune"' in line]
    index.write_text("\n".join(lines) + "\n")
    call(workplace, "--write")
    assert (workplace / "fit.toml").read_text() == first


def test_the_command_measures_on_the_test_part(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(workplace, "--write", "--report", "--page")
    said = capsys.readouterr().out
    page = (workplace / "page.md").read_text()
    for text in (said, page):
        assert "8 runs: 2 healthy, 6 faulty." in text
        assert "Faults that did no harm (1 runs)" in text
    assert (workplace / "diagram.svg").read_text().startswith("<svg")
    again = (workplace / "fit.toml").read_text().replace('rules = "', 'rules = "x')
    (workplace / "fit.toml").write_text(again)
    with pytest.raises(calibrate.UsageError, match="belongs to other rules"):
        call(workplace, "--report")
