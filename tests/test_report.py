"""The report: its pure parts, what it collects, and what its three formats say."""

from __future__ import annotations

import json
import re
import signal
import struct
import sys
import zlib
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mindpulse import open_run
from mindpulse.alerts import AlertEvent
from mindpulse.cli import main
from mindpulse.recorder import Recorder
from mindpulse.report import colour, curve, heat, history, maps, plot, snapshots
from mindpulse.report.as_json import write_json
from mindpulse.report.bins import MAX_COLUMNS, StepAxis, bin_steps
from mindpulse.report.collect import collect
from mindpulse.report.data import Alert, AttentionMap, Heat, ReportData
from mindpulse.report.downsample import keep_extremes, smooth
from mindpulse.report.html import write_html
from mindpulse.report.layers import group_parameters, layer_norms
from mindpulse.report.markdown import write_markdown
from mindpulse.report.markup import tag
from mindpulse.report.png import encode_png
from mindpulse.report.scalar import DRAWN_POINTS, Scalar, read_scalar
from mindpulse.report.scales import Scale, fit_scale, format_duration, format_number
from mindpulse.report.texts import TEXTS
from mindpulse.report.verdict import judge
from mindpulse.report.words import Words
from mindpulse.rules.load import load_rules
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.summary import SummaryRecord
from mindpulse.testing import write_run as write_arrays
from processes import running, until
from synthetic import LAYERS, PARAMETERS, InMemory, write_cured_run, write_run

RULES = load_rules()
relaxed = settings(deadline=None, max_examples=60)  # other jobs may hold the processor
anything = st.floats(allow_nan=True, allow_infinity=True)


@pytest.fixture(scope="module")
def exploded(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    folder = write_run(tmp_path_factory.mktemp("runs") / "exploded", fault="lr-explosion")
    return collect(open_run(folder), RULES)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    folder = write_run(tmp_path_factory.mktemp("runs") / "poisoned", fault="nan-batch")
    return collect(open_run(folder), RULES)


def scalar_of(steps: NDArray[np.int64], values: NDArray[np.float64], points=DRAWN_POINTS) -> Scalar:
    rows = Rows(steps, steps * 0.5, values[:, None])
    found = read_scalar(InMemory(Series(SeriesSpec("x"), rows)), "x", 0, points)
    assert found is not None
    return found


def binned(tag, names, steps, values, keep="max", piece=1000) -> Heat:
    pieces = [(steps[i : i + piece], values[i : i + piece]) for i in range(0, len(steps), piece)]
    return bin_steps(tag, names, StepAxis.of(steps), pieces, keep)


# Thinning: what is drawn holds every extreme.


@relaxed
@given(st.lists(anything, min_size=1, max_size=400), st.integers(1, 20))
def test_thinning_keeps_ends_extremes_and_every_kind_of_bad_value(values, buckets) -> None:
    x = np.array(values)
    kept = keep_extremes(np.arange(len(x)), x, buckets)
    assert {0, len(x) - 1} <= set(kept) or not np.isfinite(x[[0, -1]]).all()
    good = x[np.isfinite(x)]
    if len(good):
        assert {good.min(), good.max()} <= set(x[kept])
    assert np.isnan(x).any() == np.isnan(x[kept]).any()
    assert (x == np.inf).any() == (x[kept] == np.inf).any()
    assert (x == -np.inf).any() == (x[kept] == -np.inf).any()
    assert len(kept) <= max(4 * buckets, 7 * buckets)


def test_thinning_is_per_bucket_not_only_over_all() -> None:
    x = np.zeros(100_000)
    spikes = np.arange(50, 100_000, 1000)
    x[spikes] = np.linspace(1, 2, len(spikes))
    kept = keep_extremes(np.arange(len(x)), x, buckets=500)
    assert set(spikes) <= set(kept)
    assert len(kept) < 2500


def test_smoothing_leaves_bad_rows_out_and_marks_them() -> None:
    mean = smooth(np.array([1.0, np.nan, 3.0, np.inf, 5.0]), 5)
    assert mean[[0, 2, 4]].tolist() == [2.0, 3.0, 4.0]
    assert np.isnan(mean[[1, 3]]).all()


# Axes.


@relaxed
@given(st.lists(anything, max_size=30))
def test_a_scale_holds_all_finite_values_and_its_ticks(values) -> None:
    x = np.array(values)
    scale = fit_scale(x)
    good = x[np.isfinite(x)]
    places = scale.position(good)
    assert np.isfinite(places).all()
    assert not scale.log or (good > 0).all()
    assert (places > -1e-6).all()
    assert (places < 1 + 1e-6).all()
    ticks = scale.ticks(5)
    assert 1 <= len(ticks) <= 12 or scale.high / 2 - scale.low / 2 < 1e-12 * abs(scale.high)


def test_a_wide_positive_range_is_drawn_by_logarithm() -> None:
    assert fit_scale(np.array([0.1, 100.0])).log
    assert not fit_scale(np.array([0.0, 100.0])).log
    assert Scale(1e-3, 1e3, log=True).ticks(7) == pytest.approx([10.0**p for p in range(-3, 4)])


@relaxed
@given(st.floats(-1e300, 1e300))
def test_a_number_reads_as_what_it_is(value) -> None:
    text = format_number(value)
    assert len(text) <= 12
    assert float(text.replace(",", "").replace("−", "-")) == pytest.approx(
        value, rel=6e-3, abs=1e-300
    )


def test_numbers_and_durations_that_are_none() -> None:
    assert [format_number(x) for x in (np.nan, np.inf, -np.inf)] == ["NaN", "∞", "−∞"]
    assert format_duration(np.nan) == "–"


# Pixels.


def chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks of a PNG file by their kind, checksums verified."""
    found, at = {}, 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + size]
        assert int.from_bytes(data[at + 8 + size : at + 12 + size], "big") == zlib.crc32(body)
        found[body[:4]], at = body[4:], at + 12 + size
    return found


def test_png_is_what_the_standard_says() -> None:
    """Browsers read it too: see test_report_browser."""
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 4), np.uint8)
    data = encode_png(pixels)
    found = chunks(data)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert list(found) == [b"IHDR", b"IDAT", b"IEND"]
    assert found[b"IHDR"] == struct.pack(">IIBBBBB", 5, 7, 8, 6, 0, 0, 0)
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(7, 21)
    assert (lines[:, 0] == 0).all()
    assert (lines[:, 1:].reshape(7, 5, 4) == pixels).all()


def test_colours_rise_in_lightness_and_mark_what_is_not_a_number() -> None:
    ramp = colour.paint(np.linspace(0, 1, 50))[:, :3].astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(ramp) > 0).all()
    marked = colour.paint(np.array([0.5, np.nan]), np.array([True, False]))
    assert tuple(marked[0]) == colour.NOT_FINITE
    assert marked[1, 3] == 0


def test_binning_keeps_a_one_step_spike_and_a_nan() -> None:
    values = np.ones((10_000, 3))
    values[1234, 1] = 90.0
    values[777, 2] = np.nan
    shown = binned("g", ["a", "b", "c"], np.arange(1, 10_001), values)
    assert shown.values.shape == (3, MAX_COLUMNS)
    assert shown.values[1].max() == 90.0
    assert shown.not_finite.sum(axis=1).tolist() == [0, 0, 1]
    lowest = binned("g", ["a"], np.arange(1, 10_001), -values[:, 1:2], keep="min")
    assert lowest.values.min() == -90.0


def test_steps_without_a_row_stay_empty() -> None:
    shown = binned("g", ["a"], np.array([1, 2, 100]), np.ones((3, 1)))
    assert np.isnan(shown.values).sum() == 1


# Layers and maps.


def test_parameters_are_grouped_to_layers_in_order() -> None:
    groups = group_parameters(PARAMETERS)
    assert list(groups) == ["embedding", *(f"layer {i}" for i in range(LAYERS)), "head"]
    two_stacks = group_parameters(["encoder.0.w", "decoder.0.w", "decoder.1.w"])
    assert list(two_stacks) == ["encoder 0", "decoder 0", "decoder 1"]
    assert list(group_parameters(["0.weight", "2.weight"])) == ["layer 0", "layer 2"]
    assert list(group_parameters(["weight", "bias"])) == ["weight", "bias"]


@relaxed
@given(st.lists(st.floats(0, 1e300), min_size=2, max_size=5))
def test_layer_norm_is_the_norm_of_its_parameters(values) -> None:
    found = layer_norms(np.array([values]), {"layer 0": list(range(len(values)))})
    assert found[0, 0] == pytest.approx(np.hypot.reduce(values), rel=1e-9)


def test_a_bad_parameter_shows_in_its_layer_only() -> None:
    norms = layer_norms(
        np.array([[1.0, np.inf, 2.0, np.nan]]), {"a": [0, 2], "b": [1], "c": [2, 3]}
    )
    assert np.isfinite(norms[0]).tolist() == [True, False, False]


def test_large_maps_keep_the_largest_weight_of_a_block() -> None:
    weights = np.zeros((1000, 700))
    weights[501, 333] = 1.0
    assert maps.shrink(weights).shape == (96, 96)
    assert maps.shrink(weights).max() == 1.0


def test_snapshots_of_all_shapes_are_read_and_broken_files_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "attn_L03_s000100.npz", attention=np.ones((2, 4, 4)) / 4, layer=3)
    np.savez(tmp_path / "attn_L03_s000200.npz", attention=np.ones((1, 2, 4, 4)) / 4)
    np.savez(tmp_path / "other_s000200.npz", x=np.ones((4, 4)))
    (tmp_path / "attn_L04_s000200.npz").write_bytes(b"PK\x03\x04 torn")
    np.savez(tmp_path / "attn_L05_s000200.npz", x=np.array([{"a": 1}], object))
    found, problems = snapshots.latest_maps(sorted(tmp_path.iterdir()))
    assert [(m.layer, m.head, m.step) for m in found] == [
        ("3", 0, 200),
        ("3", 1, 200),
    ]
    assert [line.split(":")[0] for line in problems] == [
        "attn_L04_s000200.npz",
        "attn_L05_s000200.npz",
    ]


def test_padding_of_a_buffer_is_cut_but_not_a_masked_key(tmp_path: Path) -> None:
    padded = np.zeros((8, 64, 64))
    padded[:2, :17, :15] = 1 / 15  # two keys are masked
    np.savez(tmp_path / "attn_L00_s000100.npz", attention=padded)
    found, _ = snapshots.latest_maps(tmp_path.iterdir())
    assert [(m.head, m.values.shape) for m in found] == [(0, (17, 17)), (1, (17, 17))]
    np.savez(tmp_path / "attn_L00_s000100.npz", attention=np.zeros((8, 64, 64)))
    assert snapshots.latest_maps(tmp_path.iterdir()) == ([], [])


def test_many_layers_are_thinned_to_whole_layers_over_the_depth() -> None:
    many = [AttentionMap(str(n), h, 1, np.eye(2)) for n in range(64) for h in range(16)]
    drawn = maps.draw(many, Words("en"))
    shown = re.findall(r"Layer (\d+) ", drawn)
    assert (shown[0], shown[-1]) == ("0", "63")
    assert drawn.count("<figure") == 1 + 16 * len(shown) <= 1 + maps.MAX_TILES
    assert "of 1024 heads are shown" in drawn


# Alerts.


def event(state: str, step: int, **changes: object) -> AlertEvent:
    whole = AlertEvent("x", "big", state, "error", "gradient", step, 5, 0.0, 0, 1)
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_events_are_folded_to_alerts() -> None:
    assert history.fold([event("resolved", 9)]) == ()
    (alert,) = history.fold([event("firing", 7), event("resolved", 30)])
    assert (alert.since_step, alert.end_step) == (5, 30)
    (alert,) = history.fold([event("firing", 7)])
    assert alert.end_step is None


def test_overlapping_alerts_shade_each_step_once_by_the_gravest() -> None:
    first = history.fold([event("firing", 10, since_step=10)])
    second = history.fold(
        [
            event("firing", 5, id="y", severity="warning", since_step=5),
            event("resolved", 20, id="y", severity="warning"),
        ]
    )
    spans = curve.gravest_spans([*first, *second], end=40)
    assert spans == [(5, 9, "warning"), (10, 20, "error"), (21, 40, "error")]


def test_requests_are_joined_with_their_answers(tmp_path: Path) -> None:
    actions, rejected = history.read_actions(write_cured_run(tmp_path))
    assert [(a.status, a.done_step) for a in actions] == [
        ("done", 184),
        ("done", 188),
        ("open", None),
    ]
    assert rejected == []


# The verdict.


def test_verdicts(exploded: ReportData, poisoned: ReportData, tmp_path: Path) -> None:
    assert judge(exploded).state == "unhealthy"
    assert judge(exploded).alerts[0].rule == "gradient-explosion"
    assert judge(poisoned).alerts[0].severity == "critical"
    healthy = collect(open_run(write_run(tmp_path / "h", snapshots=False)), RULES)
    assert judge(healthy).state == "healthy"
    assert judge(collect(open_run(write_cured_run(tmp_path / "c")), RULES)).state == "recovered"
    warned = tuple(replace(alert, severity="warning") for alert in exploded.alerts)
    assert judge(replace(exploded, alerts=warned)).state == "attention"


def test_too_little_data_is_unknown_not_healthy(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path) as record:
        record.add_tag("note", "nothing measured")
    data = collect(open_run(tmp_path), RULES)
    assert judge(data).state == "unknown"
    page = write_html(data, Words("en"), 0.0, "1")
    assert "Cannot tell" in page
    assert "No loss was recorded" in page
    assert "unknown" in write_markdown(data, Words("en"))


# The formats.


def test_html_needs_nothing_from_outside(exploded: ReportData) -> None:
    page = write_html(exploded, Words("en"), 0.0, "0.1.0")
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in unescape(page)


def test_html_says_what_where_since_when_and_what_to_do(exploded: ReportData) -> None:
    page = write_html(exploded, Words("en"), 0.0, "0.1.0")
    screen = page[page.index('id="findings"') :].split("</section>")[0]
    note = Words("en").score_note(exploded.health)
    for wanted in ("gradient norm is above 50", "step 180", "What to do", note):
        assert wanted in screen


def test_html_escapes_what_a_run_says(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    with SummaryRecord(tmp_path) as record:
        record.add_tag(evil, evil)
        record.add_value("scalar", "train_loss", 1.0)
    page = write_html(collect(open_run(tmp_path), RULES), Words("en"), 0.0, evil)
    assert evil not in page
    assert tag("p", evil, title='"') == (
        '<p title="&quot;">&lt;script&gt;alert(1)&lt;/script&gt;</p>'
    )


def test_nan_is_marked_in_curve_and_heat_map(poisoned: ReportData) -> None:
    page = write_html(poisoned, Words("en"), 0.0, "0.1.0")
    assert page.count('class="bad-dot"') > 100
    assert page.count('class="bad-hair"') == 2  # one stretch in each of loss and gradient norm
    assert "NaN or infinite: 121, first at step 180" in page
    assert poisoned.heats[0].not_finite[:, -1].all()


def test_pictures_have_titles_descriptions_and_tables(exploded: ReportData) -> None:
    page = write_html(exploded, Words("en"), 0.0, "0.1.0")
    for names in re.findall(r'aria-labelledby="([^"]+)"', page):
        for name in names.split():
            assert f'id="{name}"' in page
    assert all(re.findall(r'<img [^>]*class="pixels"[^>]*>', page))
    assert not re.search(r"<img (?![^>]*alt=)", page)
    assert page.count("<details>") == 4 + 3  # curves and heat maps


@relaxed
@given(st.dictionaries(st.integers(-(2**62), 2**62), anything, min_size=1, max_size=300))
def test_any_series_can_be_drawn(rows: dict[int, float]) -> None:
    steps = np.array(sorted(rows), np.int64)
    values = np.array([rows[step] for step in steps.tolist()])
    scalar = scalar_of(steps, values)
    shown = curve.Curve("c", plot.Caption("x"), "x", "", scalar)
    drawn = curve.draw(shown, Words("en"))
    numbers = re.findall(r' d="([^"]*)"', drawn)
    assert all(re.fullmatch(r"[MLHVZh0-9. -]*", path) for path in numbers)
    grid = binned("grad_norm_param", ["a"], steps, values[:, None])
    heat.draw(grid, plot.Caption("x"), "", Words("en"), "h")


def test_a_users_own_series_has_its_curve(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path) as record:
        for value in (0.1, 0.7):
            record.add_value("scalar", "accuracy/top 1", value)
            record.add_value("vector", "train_loss", [1.0, 2.0])  # not what the name says
    data = collect(open_run(tmp_path), RULES)
    assert list(data.series) == ["accuracy/top 1"]
    assert "accuracy/top 1</h3>" in write_html(data, Words("en"), 0.0, "1")


def test_markdown_holds_no_open_cell(exploded: ReportData) -> None:
    text = write_markdown(exploded, Words("en"))
    widths: set[int] = set()
    for line in text.splitlines():
        if line.startswith("|"):
            widths.add(len(re.findall(r"(?<!\\)\|", line)))
    assert widths == {4, 6}
    assert "gradient-explosion" in text
    assert "▁" in text


def test_json_is_strict_and_holds_the_verdict(poisoned: ReportData) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(write_json(poisoned, Words("en")), parse_constant=refuse)
    assert found["schema"] == "mindpulse-report/1"
    assert found["verdict"]["state"] == "unhealthy"
    assert found["series"]["train_loss"]["not_finite"] == 121
    assert found["series"]["train_loss"]["last"] == "nan"
    assert found["alerts"][0]["state"] == "firing"


@pytest.mark.parametrize("write", [write_markdown, write_json])
def test_chinese(exploded: ReportData, write) -> None:
    assert "梯度范数超过 50" in write(exploded, Words("zh"))


def test_texts_exist_in_both_languages_with_the_same_placeholders() -> None:
    for key, (english, chinese) in TEXTS.items():
        fields = [{f for _, f, _, _ in Formatter().parse(text) if f} for text in (english, chinese)]
        assert fields[0] == fields[1], key
        assert re.search("[\u4e00-\u9fff、。–]", chinese) or key in LANGUAGE_FREE, key


LANGUAGE_FREE = {"finding.rank", "finding.other", "timeline.bar"}


def test_the_monitor_s_own_troubles_are_shown(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.add_scalars(1, {"train_loss": 1.0})
    recorder.note("snapshot", 1, file="a.npz")
    for _ in range(3):
        recorder.note("monitor_error", what="the drain", error="boom")
    recorder.note("probe", path="a.softmax", state="planted")
    recorder.note("probe", path="b.softmax", state="refused")
    recorder.close()
    data = collect(open_run(tmp_path), RULES)
    assert data.troubles == (
        "monitor_error: what the drain, error boom (3 times)",
        "probe: path b.softmax, state refused",
    )
    assert "boom (3 times)" in write_html(data, Words("en"), 0.0, "1")
    assert "boom (3 times)" in write_markdown(data, Words("en"))


def test_a_watcher_that_died_early_hides_nothing(tmp_path: Path) -> None:
    """What alerts.jsonl lacks is judged when the report is written."""
    folder = write_run(tmp_path, fault="lr-explosion", snapshots=False)
    (folder / "alerts.jsonl").write_text("")
    rules = {alert.rule for alert in collect(open_run(folder), RULES).alerts}
    assert "gradient-explosion" in rules


def test_alerts_that_are_over_do_not_make_up_for_lost_ground(tmp_path: Path) -> None:
    """A loss of 4 before the spike and of 5.2 long after it: nothing fires, and it is not well."""
    losses = np.concatenate([np.linspace(6, 4, 90), np.full(20, 40.0), np.full(290, 5.2)])
    norms = np.concatenate([np.ones(90), np.full(20, 90.0), np.ones(290)])
    noise = np.random.default_rng(0).normal(0, 0.02, 400)
    write_arrays(tmp_path, train_loss=losses + noise, grad_norm=norms)
    data = collect(open_run(tmp_path), RULES)
    verdict = judge(data)
    assert verdict.state == "attention"
    assert [reason.key for reason in verdict.concerns] == ["loss_lost_ground"]
    said = Words("en").sentence(verdict.concerns[0])
    assert re.fullmatch(r"The loss was 4\.\d+ around step \d+ and is 5\.\d+ at the end\.", said)
    assert said in write_markdown(data, Words("en"))
    assert said in write_html(data, Words("en"), 0.0, "1")
    assert Words("zh").sentence(verdict.concerns[0]) in write_html(data, Words("zh"), 0.0, "1")


def test_what_began_shortly_before_the_worst_is_shown_first(exploded: ReportData) -> None:
    """A jump of the learning rate at step 100 comes before the collapse at step 101."""

    def alert(rule: str, severity: str, since: int) -> Alert:
        return Alert(rule, severity, "gradient", since, since + 50, 0, (), {}, {})

    data = replace(
        exploded,
        alerts=(
            alert("old", "warning", 20),
            alert("learning-rate-jump", "warning", 100),
            alert("entropy-collapse", "error", 101),
            alert("gradient-explosion", "error", 109),
        ),
    )
    order = [found.rule for found in judge(data).alerts]
    assert order == ["learning-rate-jump", "entropy-collapse", "gradient-explosion", "old"]


EVERY = [sys.executable, "-m", "mindpulse.cli", "report"]


def test_a_report_that_is_written_again_and_again(tmp_path: Path) -> None:
    run, page, said = tmp_path / "run", tmp_path / "page.html", tmp_path / "said"
    command = [*EVERY, str(run), "--output", str(page), "--every", "1"]
    with said.open("w") as out, running(command, stdout=out, stderr=out) as child:
        assert until(lambda: "does not exist" in said.read_text())  # the training is yet to begin
        assert child.poll() is None
        with closing(Recorder(run)) as recorder:
            recorder.add_scalars(1, {"train_loss": 2.5})
            assert recorder.flush()
            assert until(page.exists)
            first = page.read_text()
            assert 'http-equiv="refresh" content="1"' in first
            recorder.add_scalars(77, {"train_loss": 2.25})
            assert recorder.flush()
            assert until(lambda: "2.25" in page.read_text())
            assert "2.25" not in first
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
    assert said.read_text().count(str(page)) >= 1
    assert "Traceback" not in said.read_text()


@pytest.mark.parametrize("other", [["--json"], ["--fail-under", "50"], ["--output", "-"]])
def test_one_report_or_many(other: list[str], tmp_path: Path) -> None:
    write_arrays(tmp_path, train_loss=[2.0, 1.0])
    result = CliRunner().invoke(main, ["report", str(tmp_path), "--every", "5", *other])
    assert result.exit_code == 2
    assert "--every goes on" in result.output


def test_a_single_report_stays_as_it_is(tmp_path: Path) -> None:
    write_arrays(tmp_path, train_loss=[2.0, 1.0])
    assert CliRunner().invoke(main, ["report", str(tmp_path)]).exit_code == 0
    assert "refresh" not in (tmp_path / "report.html").read_text()
