"""Reports and inventories of long runs: nothing is hidden, figures are exact, memory is bounded."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory import peak_memory
from mindpulse import health, open_run
from mindpulse.cli import main
from mindpulse.cli.output import progress
from mindpulse.report import collect as collecting
from mindpulse.report import curve, plot, snapshots
from mindpulse.report.bins import StepAxis, bin_steps
from mindpulse.report.collect import collect
from mindpulse.report.data import Alert
from mindpulse.report.first_screen import facts
from mindpulse.report.html import write_html
from mindpulse.report.layers import group_parameters, layer_norms
from mindpulse.report.scalar import Scalar, read_scalar
from mindpulse.report.words import Words
from mindpulse.rules.load import load_rules
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store import pieces, reader
from mindpulse.store.check import bytes_to_check, check_files
from mindpulse.store.folder_run import create_attempt
from mindpulse.store.writer import RankWriter
from run_files import part_path, write_part
from series_samples import FOCUS, LOSS, rows_of
from synthetic import InMemory

STEPS = 200_000  # all but the last mebibyte of a series has an index
SPIKE, NAN = 23_456, 45_678
PARAMETERS = tuple((f"layers.{index // 3}.w{index % 3}",) for index in range(9))
WIDE = SeriesSpec("grad_norm_param", "vector", "", ("param",), PARAMETERS, "float32")
relaxed = settings(deadline=None, max_examples=80)
anything = st.floats(allow_nan=True, allow_infinity=True)


def write(folder: Path, *written: tuple[SeriesSpec, NDArray[np.float64]], rank: int = 0) -> Path:
    """One row a step from 0 on."""
    writer = RankWriter(create_attempt(folder, rank), rank, 1)
    for spec, values in written:
        table = values.reshape(len(values), -1)
        steps = np.arange(len(table), dtype=np.int64)
        writer.append(spec, Rows(steps, 1.79e9 + 0.5 * steps, table))
    writer.close()
    return folder


def long_values(width: int = 1) -> NDArray[np.float64]:
    rng = np.random.default_rng(width)
    values = 2 + rng.normal(0, 0.05, (STEPS, width)) + 5 * np.exp(-np.arange(STEPS)[:, None] / 9000)
    values[SPIKE, -1] = 77.0
    values[NAN, -1] = np.nan
    return values


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "long"
    times = SeriesSpec("step_time_s", unit="s")
    return write(
        folder, (LOSS, long_values()), (WIDE, long_values(9)), (times, np.full(STEPS, 0.25))
    )


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@contextmanager
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Counts what is read of rows and index entries."""
    counted = [0]
    read: Callable[..., int] = pieces._read_into

    def counting(fd: int, buffer: NDArray[np.uint8], offset: int) -> int:
        counted[0] += len(buffer)
        return read(fd, buffer, offset)

    with monkeypatch.context() as patch:
        patch.setattr(pieces, "_read_into", counting)
        yield counted


# Scalars.


def assert_figures(found: Scalar, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """The figures are those of all rows, by NumPy."""
    good = np.isfinite(values)
    assert (found.rows, found.not_finite) == (len(values), int((~good).sum()))
    assert (found.first_step, found.last_step) == (steps.min(), steps.max())
    assert found.first_bad_step == (steps[~good].min() if not good.all() else None)
    np.testing.assert_equal(found.last, values[-1])
    if not good.any():
        assert found.low is found.high is None
        assert np.isnan([found.start, found.end, found.mean]).all()
        return
    assert (found.start, found.end) == (values[good][0], values[good][-1])
    for extreme, got in ((np.argmin, found.low), (np.argmax, found.high)):
        index = extreme(values[good])
        assert got == (steps[good][index], values[good][index])
    assert found.mean == pytest.approx(np.mean(values[good]), rel=1e-9, abs=1e-9)


@relaxed
@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf])), min_size=1),
    st.integers(3, 12),
)
def test_the_figures_of_few_points_are_those_of_all_rows(numbers: list[float], points: int) -> None:
    values, steps = np.array(numbers), 3 * np.arange(len(numbers), dtype=np.int64)
    series = Series(LOSS, Rows(steps, steps * 0.5, values[:, None]))
    found = read_scalar(InMemory(series), LOSS.tag, 0, points)
    assert found is not None
    assert_figures(found, steps, values)
    assert_figures(found.figures(), steps, values)
    assert len(found.shown) <= points
    assert np.isnan(found.shown.values).any() or found.not_finite == 0 or np.isinf(values).any()


def test_the_figures_of_a_long_run_come_out_of_its_index(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = long_values()[:, 0]
    with bytes_read(monkeypatch) as counted:
        found = read_scalar(open_run(long_run), "train_loss", 0, 100)
    assert found is not None
    assert_figures(found, np.arange(STEPS), values)
    file = long_run / "attempt-0001" / "rank-0000" / "train_loss.ms"
    assert counted[0] < file.stat().st_size / 4


@pytest.mark.parametrize("bad", [slice(0, 40_000), slice(100, None), slice(None)])
def test_ends_that_are_not_finite_do_not_hide_the_first_and_last_value(
    tmp_path: Path, bad: slice
) -> None:
    values = np.arange(70_000.0)
    values[bad] = np.nan
    write(tmp_path, (LOSS, values))
    found = read_scalar(open_run(tmp_path), "train_loss", 0, 100)
    assert found is not None
    assert_figures(found, np.arange(len(values)), values)


def test_steps_that_go_back_are_drawn_in_order(tmp_path: Path) -> None:
    steps = np.r_[np.arange(40_000, 80_000), np.arange(40_000)].astype(np.int64)
    rows = Rows(steps, steps * 0.5, steps[:, None] * 1.0)
    write_part(part_path(tmp_path, LOSS), LOSS, rows)
    for points in (100, 100_000):
        found = read_scalar(open_run(tmp_path), "train_loss", 0, points)
        assert found is not None
        assert (np.diff(found.shown.steps) >= 0).all()
        assert (np.diff(found.blocks.first_steps) >= 0).all()
        assert (found.start, found.end) == (40_000.0, 39_999.0)  # as they were recorded


def test_a_long_curve_is_drawn_with_its_spike_and_its_nan(long_run: Path) -> None:
    scalar = read_scalar(open_run(long_run), "train_loss", 0)
    assert scalar is not None
    assert not scalar.complete
    shown = curve.Curve("c", plot.Caption("x"), "Loss", "nats", scalar)
    drawn = curve.draw(shown, Words("en"))
    points = json.loads(drawn.split('data-points="')[1].split('"')[0].replace("&quot;", '"'))
    told = {step: value for _, _, step, value in points}
    assert told[SPIKE] == "77"
    assert told[NAN] == "NaN"
    assert drawn.count('class="bad-dot"') == drawn.count('class="bad-hair"') == 1
    assert "NaN or infinite: 1, first at step 45,678" in drawn
    assert len(points) < 2500
    assert "means of twelve parts of the run" in drawn
    assert f"–{STEPS - 1:,}</td>" in drawn


def test_the_smoothed_line_is_the_moving_average(long_run: Path) -> None:
    scalar = read_scalar(open_run(long_run), "train_loss", 0)
    assert scalar is not None
    values = long_values()[:, 0]
    good = np.isfinite(values)
    half = STEPS // curve.SMOOTH_SHARE // 2
    steps, means = curve.smoothed(scalar)
    for place in range(0, len(steps), 500):
        near = slice(max(0, int(steps[place]) - half), int(steps[place]) + half + 1)
        wanted = values[near][good[near]].mean()
        assert means[place] == pytest.approx(wanted, abs=0.02)


def test_the_median_step_time_says_which_rows_it_is_of(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step_time() -> tuple[str, str, str]:
        data = collect(open_run(long_run), ())
        return next(f for f in facts(data, Words("en")) if f[0] == "Step time, median")

    wanted = "99 % below 250 ms, of the last 100,000 rows"
    assert step_time() == ("Step time, median", "250 ms", wanted)
    monkeypatch.setattr(collecting, "TIMED_ROWS", STEPS)
    assert step_time()[2] == "99 % below 250 ms"


# Alerts.


def alert(since: int, end: int | None, severity: str) -> Alert:
    return Alert("x", severity, "loss", since, end, 0, (), {}, {})


@relaxed
@given(
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.one_of(st.none(), st.integers(0, 30)),
            st.sampled_from(["info", "warning", "error"]),
        ),
        max_size=8,
    )
)
def test_each_step_is_shaded_by_the_gravest_alert_on_it(drawn) -> None:
    alerts = [alert(*one) for one in drawn]
    shaded = {
        step: severity
        for first, last, severity in curve.gravest_spans(alerts, end=25)
        for step in range(first, last + 1)
    }
    for step in range(40):
        on = [
            a for a in alerts if a.since_step <= step <= (25 if a.end_step is None else a.end_step)
        ]
        worst = max(on, key=lambda a: a.level).severity if on else None
        assert shaded.get(step) == worst


def test_ten_thousand_alerts_take_no_longer_each_than_a_hundred() -> None:
    """One look at every alert for each of them would be 200 million."""
    alerts = [alert(10 * at, 10 * at + 5, "warning") for at in range(10_000)]
    began = time.process_time()
    assert len(curve.gravest_spans(alerts, end=100_000)) == len(alerts)
    assert time.process_time() - began < 2


# Heat maps.


@relaxed
@given(st.data())
def test_binning_is_what_a_loop_over_the_rows_does(data: st.DataObject) -> None:
    steps = np.array(data.draw(st.lists(st.integers(-50, 900), min_size=1, max_size=60)), np.int64)
    values = np.array(data.draw(st.lists(anything, min_size=len(steps), max_size=len(steps))))
    keep, piece = data.draw(st.sampled_from(["max", "min"])), data.draw(st.integers(1, 20))
    axis = StepAxis.of(steps)
    cut = [slice(at, at + piece) for at in range(0, len(steps), piece)]
    found = bin_steps("g", ["a"], axis, [(steps[c], values[c][:, None]) for c in cut], keep)
    cells: dict[int, list[float]] = {}
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        place = int((step - axis.first) / axis.steps_per_column)
        cells.setdefault(min(place, axis.columns - 1), []).append(value)
    for column in range(axis.columns):
        finite = [value for value in cells.get(column, []) if np.isfinite(value)]
        best = (max if keep == "max" else min)(finite) if finite else np.nan
        np.testing.assert_equal(found.values[0, column], best)
        assert found.not_finite[0, column] == (len(finite) < len(cells.get(column, [])))


def test_the_heat_map_of_a_long_run_is_that_of_all_its_rows(long_run: Path) -> None:
    (found,) = collect(open_run(long_run), ()).heats
    groups = group_parameters([labels[0] for labels in PARAMETERS])
    norms = layer_norms(long_values(9).astype(np.float32), groups)
    wanted = np.fmax.reduceat(norms, np.arange(0, STEPS, STEPS // 400), axis=0)
    np.testing.assert_array_equal(found.values, wanted.T)
    assert found.not_finite.sum() == 1
    assert found.values[-1].max() > 77


def test_steps_recorded_twice_leave_no_holes(tmp_path: Path) -> None:
    steps = np.repeat(np.arange(325), 2)
    values = np.ones((len(steps), FOCUS.width))
    write_part(part_path(tmp_path, FOCUS), FOCUS, Rows(steps, steps * 0.5, values))
    (found,) = collect(open_run(tmp_path), ()).heats
    assert found.values.shape == (FOCUS.width, 325)
    assert (found.values == 1).all()


# Snapshots.


def test_only_the_last_snapshot_that_can_be_read_is_read(tmp_path: Path) -> None:
    for step in (100, 200):
        np.savez(tmp_path / f"attn_L00_s{step:06d}.npz", attention=np.full((1, 4, 4), 0.25))
    (tmp_path / "attn_L00_s000050.npz").write_bytes(b"never looked at")
    (tmp_path / "attn_L00_s000300.npz").write_bytes(b"PK\x03\x04 torn")
    found, problems = snapshots.latest_maps(sorted(tmp_path.iterdir()))
    assert [(m.layer, m.step) for m in found] == [("0", 200)]
    assert [line.split(":")[0] for line in problems] == ["attn_L00_s000300.npz"]


# Health.


def test_a_thinned_loss_is_every_second_fourth_or_so_row() -> None:
    values = np.arange(1000.0)
    values[::10] = np.nan
    whole = Rows(np.arange(1000), np.arange(1000.0), values[:, None])
    cut = [Series(LOSS, whole[at : at + 37]) for at in range(0, 1000, 37)]
    finite = values[np.isfinite(values)]
    assert health.thinned(cut, most=900).values[:, 0].tolist() == finite.tolist()
    found = health.thinned(cut, most=100).values[:, 0]
    assert found.tolist() == finite[::16].tolist()
    assert len(health.thinned([])) == 0


def test_a_loss_that_only_the_last_stage_of_a_pipeline_has_is_judged(tmp_path: Path) -> None:
    write(tmp_path, (SeriesSpec("grad_norm"), np.ones(200)))
    write(tmp_path, (LOSS, np.full(200, 5.0)), rank=1)
    run = open_run(tmp_path)
    judged = health.Judgement((), {}, frozenset({"loss"}))
    parts = health.score_of(run, judged).parts
    assert [reason.key for reason in parts["loss"].reasons] == ["loss_not_fallen"]
    assert list(collect(run, load_rules()).series) == ["grad_norm"]


# Analyze.


def test_the_files_are_read_once(long_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = bytes_to_check(long_run)
    assert size == sum(path.stat().st_size for path in long_run.rglob("*.ms"))
    with bytes_read(monkeypatch) as counted:
        whole = json.loads(call("analyze", long_run, "--json").stdout)
    assert 0.99 * size < counted[0] < 1.2 * size
    with bytes_read(monkeypatch) as counted:
        quick = json.loads(call("analyze", long_run, "--quick", "--json").stdout)
    assert counted[0] < 0.2 * size
    assert (whole.pop("quick"), quick.pop("quick")) == (False, True)
    assert whole == quick


def test_the_check_tells_how_far_it_is(long_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    check_files(long_run, tell=told.append)
    assert 0.99 * bytes_to_check(long_run) < sum(told) < bytes_to_check(long_run)
    assert max(told) <= pieces.PIECE_BYTES
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress("checking", lambda: sum(told), "bytes") as count:
        count(told[0])


def test_the_inventory_says_what_the_rows_say(long_run: Path) -> None:
    told = {s["tag"]: s for s in json.loads(call("analyze", long_run, "--json").stdout)["series"]}
    for tag, found in told.items():
        series = open_run(long_run).series(tag)
        assert (found["rows"], found["first_step"], found["last_step"]) == (STEPS, 0, STEPS - 1)
        last = [float(str(value)) for value in series.rows.values[-1]]
        assert found["last"] == (last if series.spec.columns else last[0])


def test_damage_that_the_index_does_not_know_is_counted(tmp_path: Path) -> None:
    write(tmp_path, (LOSS, np.arange(50_000.0)))
    file = tmp_path / "attempt-0001" / "rank-0000" / "train_loss.ms"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    quick = call("analyze", tmp_path, "--quick", "--json")
    assert quick.exit_code == 0  # it takes the rows on trust
    assert json.loads(quick.stdout)["series"][0]["rows"] == 50_000
    whole = call("analyze", tmp_path, "--json")
    assert whole.exit_code == 1
    told = json.loads(whole.stdout)
    assert told["files"]["damaged_rows"] == 1
    assert told["series"][0]["rows"] == told["files"]["rows"] == 49_999


def test_a_quick_look_finds_what_is_wrong_with_the_beginning_and_the_end(tmp_path: Path) -> None:
    for index, change in enumerate((_cut, _flip_last_row, _flip_header, _put_in)):
        folder = tmp_path / change.__name__
        path = part_path(folder, LOSS)
        write_part(path, LOSS, rows_of(LOSS, range(500)))
        change(path)
        (report,) = check_files(folder, quick=True)
        (whole,) = check_files(folder)
        assert report == whole, change.__name__
        assert not report.valid
        assert "only the beginning" in call("analyze", folder, "--quick").stdout, index


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 34 * 3)


def _flip_last_row(path: Path) -> None:
    _flip(path, -20)


def _flip_header(path: Path) -> None:
    _flip(path, 20)


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _put_in(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:5000] + b"more" + data[5000:])


def test_a_restarted_run_is_counted_as_it_is_read(tmp_path: Path) -> None:
    for attempt, steps in ((1, range(40_000)), (2, range(30_000, 35_000))):
        path = part_path(tmp_path, LOSS, attempt)
        write_part(path, LOSS, rows_of(LOSS, steps), {100}, attempt)
    series = open_run(tmp_path).series("train_loss")
    assert len(series) == 35_000 - 2
    (told,) = json.loads(call("analyze", tmp_path, "--json").stdout)["series"]
    assert (told["rows"], told["last_step"]) == (len(series), 34_999)
    assert collect(open_run(tmp_path), ()).series["train_loss"].rows == len(series)


# Bounds.


@pytest.mark.parametrize("only_check", [True, False])
def test_memory_does_not_grow_with_the_run(tmp_path: Path, only_check: bool) -> None:
    count = 1_500_000
    rows = Rows(
        np.arange(count), np.arange(count) * 0.5, np.random.default_rng(0).random((count, 1))
    )
    write(tmp_path, (LOSS, rows.values))
    size = bytes_to_check(tmp_path)
    assert size > 50_000_000
    run = open_run(tmp_path)

    def act() -> None:
        if only_check:
            check_files(tmp_path)
        else:
            write_html(collect(run, ()), Words("en"), 0.0, "1")

    assert peak_memory(act, size // 3)[0] <= size / 3


def test_a_folder_is_listed_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = part_path(tmp_path, LOSS), part_path(tmp_path, LOSS, part=2)
    first.touch()
    listed: list[Path] = []
    real = os.listdir
    monkeypatch.setattr(reader.os, "listdir", lambda folder: listed.append(folder) or real(folder))
    for _ in range(2):  # it has just changed: it is not believed
        assert reader.series_files(first.parent, "train_loss") == [(first, 1)]
    assert len(listed) == 2
    monkeypatch.setattr(reader, "_SETTLED_NS", -(10**12))
    for _ in range(3):
        assert reader.series_files(first.parent, "train_loss") == [(first, 1)]
        assert reader.series_files(first.parent, "train_los") == []
    assert len(listed) == 3
    before = first.parent.stat().st_ctime_ns
    while first.parent.stat().st_ctime_ns == before:  # the clock of a file system is coarse
        second.touch()
        (first.parent / "other").touch()
        (first.parent / "other").unlink()
    assert reader.series_files(first.parent, "train_loss") == [(first, 1), (second, 2)]
