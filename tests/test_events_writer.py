"""Event files that we write are read by TensorBoard's reader, by protobuf and by ours."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from event_samples import EVENTS, VERSIONS, points, records, scalars
from faulty_files import FaultyFiles
from mindpulse.cli import main
from mindpulse.errors import StoreError, UsageError
from mindpulse.interop.events.encode import numeric_events, scalar_part
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.parts import shape_of, tensorboard_name
from mindpulse.interop.events.run import EventsRun
from mindpulse.interop.events.writer import EventWriter
from mindpulse.series import Rows, SeriesSpec

DIALECTS = ("tensorboard", "mindspore")
WALL = 1.7e9
LOSS = SeriesSpec("train_loss")
FOCUS = SeriesSpec(
    "attn_focus",
    "vector",
    "",
    ("layer", "head"),
    tuple((str(layer), str(head)) for layer in range(2) for head in range(3)),
    "float32",
)
BINS = SeriesSpec("load", "histogram", "", ("bin",), tuple((str(i),) for i in range(4)))


def some(count: int, width: int = 1, first: int = 0, dtype: str = "float64") -> Rows:
    rng = np.random.default_rng(count + width)
    steps = np.arange(first, first + count, dtype=np.int64)
    return Rows(steps, WALL + steps / 3, rng.normal(size=(count, width)).astype(dtype))


def accumulated(folder: Path) -> EventAccumulator:
    kinds = ("scalars", "tensors", "histograms", "images")
    found = EventAccumulator(str(folder), size_guidance=dict.fromkeys(kinds, 0))
    return found.Reload()


@pytest.mark.parametrize("count", [1, 40, 6000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_bytes_are_those_of_protobuf(dialect: str, count: int) -> None:
    """Whatever way the sums are computed, and wherever a step takes one byte more."""
    rows = some(count, 2, first=1, dtype="float32")
    parts = [scalar_part(dialect, tag) for tag in ("a", "another tag")]
    found = b"".join(numeric_events(parts, rows))
    wanted = [
        scalars(dialect, step, wall, zip(("a", "another tag"), row, strict=True))
        for step, wall, row in zip(
            rows.steps.tolist(), rows.wall_times.tolist(), rows.values.tolist(), strict=True
        )
    ]
    assert [body for _, body in records(found)] == [e.SerializeToString() for e in wanted]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_steps_of_any_size(tmp_path: Path, dialect: str) -> None:
    steps = np.array([0, 127, 128, -1, 2**63 - 1, -(2**63), 5, 5, 2**35], np.int64)
    rows = Rows(steps, WALL + np.arange(9), np.arange(9.0)[:, None])
    with EventWriter(tmp_path, dialect) as writer:
        writer.write(SeriesSpec("a"), rows)
    found = points(writer.path, dialect)["a"]
    assert [step for step, _, _ in found] == steps.tolist()
    assert EventsRun(tmp_path).series("a").steps.tolist() == steps.tolist()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_numbers_that_are_not_finite_or_too_large(tmp_path: Path, dialect: str) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e300, 1e-300, -0.0])
    with EventWriter(tmp_path, dialect) as writer:
        writer.write(SeriesSpec("a"), Rows(np.arange(6), np.full(6, WALL), values[:, None]))
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float32)
    assert repr(EventsRun(tmp_path).series("a").values) == repr(wanted)


def test_tensorboard_reads_the_older_form(tmp_path: Path) -> None:
    loss, focus, load = some(500), some(300, 6, dtype="float32"), some(3, 4)
    with EventWriter(tmp_path, "tensorboard") as writer:
        writer.write(LOSS, loss)
        writer.write(FOCUS, focus)
        writer.write(BINS, load)
        writer.write_image("picture", 3, WALL, b"\x89PNG", height=2, width=5)
        writer.write_text("note", 4, WALL, "说明")
    found = accumulated(tmp_path)
    events = found.Scalars("train/loss")
    assert [e.value for e in events] == loss.values[:, 0].astype(np.float32).tolist()
    assert [e.step for e in events] == loss.steps.tolist()
    assert [e.wall_time for e in events] == loss.wall_times.tolist()
    events = found.Scalars("attn_focus/layer=1 head=2")
    assert [e.value for e in events] == focus.values[:, 5].tolist()
    bars = found.Histograms("load")[1].histogram_value
    assert bars.bucket == load.values[1].tolist()
    assert bars.bucket_limit == [1.0, 2.0, 3.0, 4.0]
    (image,) = found.Images("picture")
    assert (image.step, image.height, image.width) == (3, 2, 5)
    assert image.encoded_image_string == b"\x89PNG"
    (note,) = found.Tensors("note")
    assert make_ndarray(note.tensor_proto).tolist() == ["说明".encode()]
    assert found.SummaryMetadata("note").plugin_data.plugin_name == "text"


def test_tensorboard_reads_the_newer_form(tmp_path: Path) -> None:
    loss, focus, load = some(500), some(300, 6, dtype="float32"), some(3, 4)
    with EventWriter(tmp_path, "tensorboard", newer=True) as writer:
        writer.write(LOSS, loss)
        writer.write(FOCUS, focus)
        writer.write(BINS, load)
    found = accumulated(tmp_path)
    events = found.Tensors("train/loss")
    assert [make_ndarray(e.tensor_proto).item() for e in events] == loss.values[:, 0].tolist()
    assert found.SummaryMetadata("train/loss").plugin_data.plugin_name == "scalars"
    events = found.Tensors("attn_focus/layer=0 head=1")
    assert make_ndarray(events[7].tensor_proto) == focus.values[7, 1]
    table = make_ndarray(found.Tensors("load")[0].tensor_proto)
    assert table.tolist() == [[i, i + 1, value] for i, value in enumerate(load.values[0])]
    assert found.SummaryMetadata("load").plugin_data.plugin_name == "histograms"


def test_what_tensorboard_shows_keeps_double_precision(tmp_path: Path) -> None:
    with EventWriter(tmp_path, "tensorboard", newer=True) as writer:
        writer.write(LOSS, some(50))
    found = EventsRun(tmp_path).series("train_loss")
    assert found.values.tolist() == some(50).values[:, 0].tolist()
    assert found.spec.dtype == "float64"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wide_series_comes_back_whole(tmp_path: Path, dialect: str) -> None:
    columns = tuple((name,) for name in ("bert/layer.0.weight", "a=b", "头 0", "x y=z"))
    norms = SeriesSpec("grad_norm_param", "vector", "", ("param",), columns, "float32")
    with EventWriter(tmp_path, dialect) as writer:
        for first in (0, 700):
            writer.write(FOCUS, some(700, 6, first, dtype="float32"))
            writer.write(norms, some(700, 3 + 1, first, dtype="float32"))
    run = EventsRun(tmp_path)
    found = run.series("attn_focus")
    assert (found.spec.axes, found.spec.columns) == (FOCUS.axes, FOCUS.columns)
    wanted = np.tile(some(700, 6, dtype="float32").values, (2, 1))
    assert np.array_equal(found.values, wanted)
    assert np.array_equal(run.series("attn_focus", columns=[4, 1]).values, wanted[:, [4, 1]])
    assert np.array_equal(run.series("attn_focus/layer=1 head=1").values, wanted[:, 4])
    assert np.array_equal(run.last("attn_focus", 3).values, wanted[-3:])
    blocks = [block.values for block in run.blocks("attn_focus")]
    assert np.array_equal(np.concatenate(blocks), wanted)
    assert "alias.attn_focus" not in run.run_tags
    # A label that looks like two is left as it stands in the file: four numbers.
    assert len(run.series("grad_norm_param/param=x y=z")) == 1400
    assert "grad_norm_param/param=a=b" in run.specs()


def test_columns_that_do_not_stand_together_stay_apart(tmp_path: Path) -> None:
    with EventWriter(tmp_path, "tensorboard") as writer:
        for rate in ("0.1", "0.2"):
            writer.write(SeriesSpec(f"loss/lr={rate}"), some(5))
    assert list(EventsRun(tmp_path).specs()) == ["loss/lr=0.1", "loss/lr=0.2"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_very_wide_series_are_tensors(tmp_path: Path, dialect: str) -> None:
    columns = tuple((str(a), str(b)) for a in range(20) for b in range(30))
    spec = SeriesSpec("wide", "map", "", ("layer", "head"), columns, "float32")
    rows = some(200, 600, dtype="float32")
    with EventWriter(tmp_path, dialect) as writer:
        writer.write(spec, rows)
    found = EventsRun(tmp_path).series("wide")
    assert np.array_equal(found.values, rows.values)
    assert found.spec.columns == columns
    if dialect == "tensorboard":
        event = accumulated(tmp_path).Tensors("wide")[3]
        assert np.array_equal(make_ndarray(event.tensor_proto), rows.values[3].reshape(20, 30))
    else:
        bodies = [body for _, body in records(writer.path.read_bytes())]
        tensor = EVENTS["mindspore"].FromString(bodies[4]).summary.value[0].tensor
        assert (list(tensor.dims), tensor.data_type) == ([20, 30], 11)
        assert list(tensor.float_data) == rows.values[3].tolist()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("newer", [False, True])
def test_histograms_come_back_as_they_were(tmp_path: Path, dialect: str, newer: bool) -> None:
    left = np.array([-1.0, 0.25])
    statistics = {"min": -0.9, "max": 0.7, "sum": 3.5, "count": 7.0}
    widths = dialect == "mindspore"
    right = np.array([1.25, 0.5]) if widths else np.array([0.25, 0.75])
    bars = Histogram(left, right, np.array([3.0, 4.0]), statistics, widths)
    with EventWriter(tmp_path, dialect, newer=newer) as writer:
        writer.write_histograms("h", [1, 2], [WALL, WALL + 1], [bars, bars])
    run = EventsRun(tmp_path)
    assert run.series("h").values.tolist() == [[3.0, 4.0]] * 2
    name = "h/width" if widths else "h/right"
    assert run.series(name).values.tolist() == [right.tolist()] * 2
    if newer and not widths:
        assert run.series("h/left").values.tolist() == [left.tolist()] * 2
        return
    said = run.series("h/statistics")
    named = dict(zip(said.labels[:, 0].tolist(), said.values[0].tolist(), strict=True))
    assert {name: named[name] for name in statistics} == statistics


def test_histogram_of_protobuf(tmp_path: Path) -> None:
    bars = Histogram(np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([2.0, 5.0]))
    for dialect in DIALECTS:
        with EventWriter(tmp_path, dialect) as writer:
            writer.write_histograms("h", [1], [WALL], [bars])
        (_, body) = list(records(writer.path.read_bytes()))[1]
        value = EVENTS[dialect].FromString(body).summary.value[0]
        if dialect == "tensorboard":
            assert list(value.histo.bucket_limit) == [1.0, 3.0]
            assert (value.histo.min, value.histo.max, value.histo.num) == (0.0, 3.0, 7.0)
            assert value.histo.sum == 2 * 0.5 + 5 * 2
        else:
            found = [(b.left, b.width, b.count) for b in value.histogram.buckets]
            assert found == [(0.0, 1.0, 2), (1.0, 2.0, 5)]
            assert (value.histogram.min, value.histogram.max) == (0.0, 3.0)
            assert value.histogram.count == 7


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_record_is_the_version(tmp_path: Path, dialect: str) -> None:
    with EventWriter(tmp_path, dialect, clock=lambda: WALL) as writer:
        writer.write(LOSS, some(1))
    (_, body) = next(records(writer.path.read_bytes()))
    assert body == VERSIONS[dialect].SerializeToString()


def test_a_file_is_made_with_the_first_value(tmp_path: Path) -> None:
    with EventWriter(tmp_path / "new", "tensorboard") as writer:
        writer.flush()
        writer.write(LOSS, Rows.empty(1))
    assert not (tmp_path / "new").exists()


def test_names_are_those_of_the_tools(tmp_path: Path) -> None:
    names = [EventWriter(tmp_path, d, rank=3, clock=lambda: WALL).path.name for d in DIALECTS]
    assert names[0].startswith("events.out.tfevents.1700000000.")
    assert names[0].endswith(".0")
    assert names[1].startswith("events.out.events.summary.1700000000.3.")
    assert names[1].endswith("_MS")
    second = EventWriter(tmp_path, "tensorboard", rank=3, clock=lambda: WALL)
    assert second.path.name.endswith(".1")


def test_a_restart_is_told_to_tensorboard(tmp_path: Path) -> None:
    clock = iter([WALL, WALL + 1, WALL + 2, WALL + 3])
    for first in (0, 60):
        writer = EventWriter(tmp_path, "tensorboard", restarts=True, clock=lambda: next(clock))
        writer.write(LOSS, some(100, first=first))
        writer.close()
    steps = [event.step for event in accumulated(tmp_path).Scalars("train/loss")]
    assert steps == list(range(160))
    assert EventsRun(tmp_path).series("train_loss").steps.tolist() == steps


SHORT = 0


@pytest.mark.parametrize(
    ("call", "code"),
    [
        *(
            (call, code)
            for call in ("open", "pwrite", "close")
            for code in (errno.ENOSPC, errno.EIO)
        ),
        ("pwrite", SHORT),
    ],
)
def test_what_cannot_be_written_is_tried_again(tmp_path: Path, call: str, code: int) -> None:
    """Nothing is lost and no record is torn or doubled, whichever call fails."""
    failing = [True]
    files = FaultyFiles(lambda number, name: failing[0] and name == call, code)
    writer = EventWriter(tmp_path, "mindspore", files=files)
    writer.write(LOSS, some(50))
    for _ in range(3):
        with pytest.raises(StoreError, match="cannot be written"):
            writer.flush()
    failing[0] = False
    writer.write(LOSS, some(50, first=50))
    writer.close()
    found = points(writer.path, "mindspore")["train_loss"]
    assert [step for step, _, _ in found] == list(range(100))


def test_dropping_leaves_a_file_that_can_be_read(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, "tensorboard")
    writer.write(LOSS, some(50))
    assert writer.drop() > 50 * 20
    writer.write(LOSS, some(5))
    writer.close()
    assert len(points(writer.path, "tensorboard")["train/loss"]) == 5


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'wandb'.*tensorboard, mindspore"):
        EventWriter(tmp_path, "wandb")


def test_our_measures_are_grouped_and_come_back() -> None:
    assert tensorboard_name("train_loss") == "train/loss"
    assert tensorboard_name("my_value") == "my_value"
    assert tensorboard_name("loss") == "loss"


SHAPES = [
    ((("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")), (2, 2)),
    ((("0", "0"), ("0", "1"), ("1", "0")), (3,)),
    ((("0", "0"), ("1", "0"), ("0", "1"), ("1", "1")), (4,)),
]


@pytest.mark.parametrize(("columns", "shape"), SHAPES)
def test_a_whole_grid_in_order_is_a_map(columns: Any, shape: tuple[int, ...]) -> None:
    assert shape_of(SeriesSpec("a", axes=("x", "y"), columns=columns)) == shape


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("origin", DIALECTS)
def test_an_exported_histogram_is_the_same_one(tmp_path: Path, origin: str, target: str) -> None:
    """Edges that were read as series of their own are edges again."""
    bars = [
        Histogram(np.array([-1.0, 0.25]), np.array([0.25, 0.75]), np.array([3.0, 4.0 + step]))
        for step in range(40)
    ]
    bars[7] = Histogram(np.array([5.0]), np.array([6.0]), np.array([2.0]), {"sum": 11.25})
    with EventWriter(tmp_path / "from", origin) as writer:
        writer.write_histograms("h", range(40), [WALL] * 40, bars)
        writer.write(SeriesSpec("h2"), some(40))
    export = ["export", str(tmp_path / "from"), "--format", target]
    done = CliRunner().invoke(main, [*export, "--output-dir", str(tmp_path / "to")])
    assert done.exit_code == 0, done.output
    run = EventsRun(tmp_path / "to")
    right = {"mindspore": "h/width", "tensorboard": "h/right"}[target]
    assert set(run.specs()) - {"h/statistics"} == {"h", "h/left", right, "h2"}
    for step, bar in enumerate(bars):
        there = slice(0, len(bar.counts))
        left, last = (run.series(tag).values[step][there] for tag in ("h/left", right))
        assert run.series("h").values[step][there].tolist() == bar.counts.tolist()
        assert left.tolist() == bar.left.tolist()
        assert (last + left * (target == "mindspore")).tolist() == bar.right.tolist()
    if (origin, target) == ("mindspore", "mindspore"):
        assert 11.25 in run.series("h/statistics").values[7]
