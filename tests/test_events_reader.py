"""Event files of TensorBoard and MindSpore are read value for value, whatever became of them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.util.tensor_util import make_tensor_proto

from event_samples import (
    WALL,
    MindSporeEvent,
    all_points,
    as_points,
    assert_same,
    curve,
    framed,
    points,
    records,
    scalars,
    write,
)
from mindpulse.errors import UsageError
from mindpulse.interop.events import scan as events_scan
from mindpulse.interop.events.frame import masked, next_head, unmasked
from mindpulse.interop.events.run import EventsRun, sniff

DIALECTS = ("tensorboard", "mindspore")


# Framing


def test_the_mask_is_tensorflows() -> None:
    assert masked(0) == 0xA282EAD8
    assert [unmasked(masked(crc)) for crc in (0, 1, 0xDEADBEEF, 0xFFFFFFFF)] == [
        0,
        1,
        0xDEADBEEF,
        0xFFFFFFFF,
    ]


def test_the_next_head_is_found_at_any_place() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)
    for place in (0, 1, 7, 4000, 5000):
        data = np.concatenate([noise[:place], np.frombuffer(framed(b"abc"), "u1")])
        assert next_head(data, 0) == place
    assert next_head(noise, 0) is None
    assert next_head(noise[:5], 0) is None


# Numbers


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("count", [1, 2, 127, 130, 20_000])
def test_one_event_a_step(tmp_path: Path, dialect: str, count: int) -> None:
    path = write(tmp_path, dialect, curve(dialect, count))
    run = EventsRun(tmp_path)
    assert_same(all_points(run), points(path, dialect))
    assert [(r.rows, r.damaged_rows, r.valid, r.problem) for r in run.files()] == [
        (count + 1, 0, True, "")
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_event_a_tag(tmp_path: Path, dialect: str) -> None:
    tags = [f"tag{index}/long name" for index in range(7)]
    rng = np.random.default_rng(0)
    events = [
        scalars(dialect, step, WALL + step, [(tag, rng.normal())])
        for step in range(0, 40_000, 9)
        for tag in tags
    ]
    path = write(tmp_path, dialect, events)
    assert_same(all_points(EventsRun(path)), points(path, dialect))


def test_tags_that_come_and_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    events = []
    for step in range(6000):
        events.append(scalars("tensorboard", step, WALL + step, [("a", rng.normal())]))
        if step % 100 == 99:
            events.append(scalars("tensorboard", step, WALL + step, [("eval/x", rng.normal())]))
        if 2000 < step < 2400:
            events.append(scalars("tensorboard", step, WALL, [("b", 1.0), ("a", rng.normal())]))
    path = write(tmp_path, "tensorboard", events)
    assert_same(all_points(EventsRun(path)), points(path, "tensorboard"))


PIECES = st.lists(
    st.tuples(
        st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=4),
        st.integers(1, 90),
        st.sampled_from([0, 1, 100, 120, 16_300, 2**21 - 30, 2**62, -5]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.sampled_from(DIALECTS), st.integers(0, 2**32))
def test_periods_and_single_records_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[Any], dialect: str, seed: int
) -> None:
    """Any mixture of repeating events is what the straight loop says."""
    rng = np.random.default_rng(seed)
    events = []
    for pattern, repeats, first in pieces:
        for number in range(repeats):
            for tags in pattern:
                values = [(tag, float(np.float32(rng.normal()))) for tag in tags]
                events.append(scalars(dialect, first + number, WALL + rng.random(), values))
    folder = tmp_path_factory.mktemp("events")
    path = write(folder, dialect, events)
    assert_same(all_points(EventsRun(path)), points(path, dialect))


def test_small_windows_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that lie across the ends of windows, and larger than a window."""
    events = curve("tensorboard", 900, [f"tag{index}" for index in range(9)])
    path = write(tmp_path, "tensorboard", events)
    wanted = points(path, "tensorboard")
    for name, size in (("FIRST_WINDOW", 100), ("WINDOW", 900), ("MAX_WINDOW", 2000)):
        monkeypatch.setattr(events_scan, name, size)
    assert_same(all_points(EventsRun(path)), wanted)


def test_odd_numbers_and_steps(tmp_path: Path) -> None:
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38]
    steps = [0, 2**63 - 1, -1, -(2**63), 5, 5, 4]
    events = [
        scalars("tensorboard", step, WALL, [("a", value)])
        for step, value in zip(steps, values, strict=True)
    ]
    path = write(tmp_path, "tensorboard", events)
    assert_same(all_points(EventsRun(path)), points(path, "tensorboard"))
    assert EventsRun(path).series("a").values.dtype == np.float32


def test_number_in_the_newer_form(tmp_path: Path) -> None:
    """A tensor without axes, its plugin named in the first event or in each."""
    events = []
    for step in range(300):
        event = Event(step=step, wall_time=WALL + step)
        for tag, dtype in (("single", np.float32), ("double", np.float64), ("whole", np.int64)):
            tensor = make_tensor_proto(np.array(step / 3, dtype))
            value = event.summary.value.add(tag=tag, tensor=tensor)
            if step == 0 or tag == "single":
                value.metadata.plugin_data.plugin_name = "scalars"
        events.append(event)
    run = EventsRun(write(tmp_path, "tensorboard", events))
    thirds = np.arange(300) / 3
    assert run.series("single").values.tolist() == thirds.astype(np.float32).tolist()
    assert run.series("double").values.tolist() == thirds.tolist()
    assert run.series("whole").values.tolist() == thirds.astype(np.int64).tolist()


def test_tensors_in_all_their_forms(tmp_path: Path) -> None:
    table = np.array([[1.5, -2.0, 3.25], [4.0, 5.0, 6.0]])
    event = Event(step=3, wall_time=WALL)
    for dtype in (np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.uint32):
        event.summary.value.add(tag=np.dtype(dtype).name).tensor.CopyFrom(
            make_tensor_proto(table.astype(dtype))
        )
    listed = event.summary.value.add(tag="listed").tensor
    listed.CopyFrom(make_tensor_proto(np.zeros((2, 3), np.float32)))
    listed.ClearField("tensor_content")
    listed.float_val.extend([7.0, 8.0])  # the rest repeats the last one
    run = EventsRun(write(tmp_path, "tensorboard", [event]))
    for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "uint32"):
        found = run.series(name)
        assert found.values.tolist() == [table.astype(name).reshape(-1).tolist()], name
        assert found.spec.axes == ("row", "column")
        assert found.spec.columns[5] == ("1", "2")
    assert run.series("listed").values.tolist() == [[7.0, 8.0, 8.0, 8.0, 8.0, 8.0]]


@pytest.mark.parametrize("packed", [True, False])
def test_tensor_of_mindspore(tmp_path: Path, packed: bool) -> None:
    events = []
    for step in range(5):
        event = MindSporeEvent(step=step, wall_time=WALL)
        tensor = event.summary.value.add(tag="w").tensor
        tensor.dims.extend([2, 2])
        tensor.data_type = 11
        tensor.float_data.extend([step, step + 0.5, -step, 9.0])
        events.append(event)
    if not packed:  # as older versions wrote it: a key before each number
        for event in events:
            values = event.summary.value[0].tensor.float_data
            body = b"".join(b"\x1d" + struct.pack("<f", value) for value in values)
            event.summary.value[0].tensor.ClearField("float_data")
            event.summary.value[0].tensor.MergeFromString(body)
    found = EventsRun(write(tmp_path, "mindspore", events)).series("w")
    assert found.values.tolist() == [[s, s + 0.5, -s, 9.0] for s in range(5)]


def test_a_tensor_whose_shape_grows(tmp_path: Path) -> None:
    events = []
    for step, size in enumerate([2, 2, 3]):
        event = Event(step=step, wall_time=WALL)
        tensor = make_tensor_proto(np.arange(size, dtype=np.float64))
        event.summary.value.add(tag="v", tensor=tensor)
        events.append(event)
    found = EventsRun(write(tmp_path, "tensorboard", events)).series("v")
    assert found.labels[:, 0].tolist() == ["0", "1", "2"]
    assert repr(found.values.tolist()) == repr([[0.0, 1.0, np.nan]] * 2 + [[0.0, 1.0, 2.0]])


@pytest.mark.parametrize("tags", [3, 40])
def test_tags_of_one_length_in_any_order(tmp_path: Path, tags: int) -> None:
    """Few are compared with each of them, many are looked up."""
    rng = np.random.default_rng(tags)
    events = [
        scalars("tensorboard", step, WALL, [(f"tag{rng.integers(tags):02d}", rng.normal())])
        for step in range(3000)
    ]
    path = write(tmp_path, "tensorboard", events)
    assert_same(all_points(EventsRun(path)), points(path, "tensorboard"))


def test_more_shapes_than_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_scan, "_MAX_LAYOUTS", 10)
    events = [
        scalars("tensorboard", step, WALL, [(f"tag{step % 70}" + "x" * (step % 19), 1.0)])
        for step in range(5000)
    ]
    path = write(tmp_path, "tensorboard", events)
    run = EventsRun(path)
    wanted = points(path, "tensorboard")
    assert list(run.specs()) == sorted(wanted)
    for tag in list(wanted)[::200]:
        assert as_points(run.series(tag)) == wanted[tag]


def test_values_that_are_not_in_the_file_take_no_memory(tmp_path: Path) -> None:
    """A tensor of 60 bytes may say that it has thousands of millions of values."""
    event = Event(step=1, wall_time=WALL)
    tensor = event.summary.value.add(tag="huge").tensor
    tensor.CopyFrom(make_tensor_proto(np.zeros((2, 2), np.float32)))
    tensor.ClearField("tensor_content")
    tensor.float_val.append(1.0)
    for dim in tensor.tensor_shape.dim:
        dim.size = 1 << 40
    small = [Event(step=step, wall_time=WALL) for step in range(3000)]
    for number, other in enumerate(small):
        values = np.zeros(40_000 if number == 9 else 1, np.float32)
        other.summary.value.add(tag="grows", tensor=make_tensor_proto(values))
    run = EventsRun(write(tmp_path, "tensorboard", [event, *small]))
    assert run.specs() == {}
    problem = run.files()[0].problem
    assert "1208925819614629174706176 values of which 1 are there" in problem
    assert "'grows' is too wide, or of too many shapes" in problem


def test_columns_are_picked(tmp_path: Path) -> None:
    event = Event(step=1, wall_time=WALL)
    event.summary.value.add(tag="v", tensor=make_tensor_proto(np.arange(9, dtype=np.float32)))
    run = EventsRun(write(tmp_path, "tensorboard", [event]))
    found = run.series("v", columns=[7, 0])
    assert found.values.tolist() == [[7.0, 0.0]]
    assert found.spec.columns == (("7",), ("0",))
    with pytest.raises(UsageError, match="column 9"):
        run.series("v", columns=[9])


# Histograms, images, texts


def test_old_histogram(tmp_path: Path) -> None:
    events = []
    for step, counts in enumerate([[1.0, 2.0, 3.0], [4.0, 5.0]]):
        event = Event(step=step, wall_time=WALL)
        histo = event.summary.value.add(tag="h").histo
        histo.min, histo.max, histo.num, histo.sum, histo.sum_squares = -1.5, 3.0, 6.0, 4.0, 9.5
        histo.bucket_limit.extend([0.0, 1.0, 2.0][: len(counts)])
        histo.bucket.extend(counts)
        events.append(event)
    run = EventsRun(write(tmp_path, "tensorboard", events))
    nan = np.nan
    assert repr(run.series("h").values.tolist()) == repr([[1.0, 2.0, 3.0], [4.0, 5.0, nan]])
    assert run.series("h/left").values[0].tolist() == [-1.5, 0.0, 1.0]
    assert run.series("h/right").values[0].tolist() == [0.0, 1.0, 2.0]
    said = run.series("h/statistics")
    assert said.values.tolist() == [[-1.5, 3.0, 6.0, 4.0, 9.5]] * 2
    assert said.labels[:, 0].tolist() == ["min", "max", "count", "sum", "sum_squares"]


def test_histogram_in_the_newer_form(tmp_path: Path) -> None:
    table = np.array([[0.0, 0.5, 3.0], [0.5, 1.5, 4.0]])
    events = []
    for step in range(3):
        event = Event(step=step, wall_time=WALL)
        value = event.summary.value.add(tag="h", tensor=make_tensor_proto(table + step))
        if step == 0:
            value.metadata.plugin_data.plugin_name = "histograms"
        events.append(event)
    run = EventsRun(write(tmp_path, "tensorboard", events))
    assert run.series("h").values.tolist() == [[3.0 + s, 4.0 + s] for s in range(3)]
    assert run.series("h/left").values[2].tolist() == [2.0, 2.5]
    assert run.series("h/right").values[2].tolist() == [2.5, 3.5]


def test_histogram_of_mindspore(tmp_path: Path) -> None:
    event = MindSporeEvent(step=4, wall_time=WALL)
    value = event.summary.value.add(tag="h")
    for left, width, count in ((-1.0, 0.5, 2), (-0.5, 0.25, 2**40)):
        value.histogram.buckets.add(left=left, width=width, count=count)
    value.histogram.nan_count, value.histogram.count = 3, 2**40 + 5
    value.histogram.min, value.histogram.max, value.histogram.sum = -1.0, -0.25, 7.5
    run = EventsRun(write(tmp_path, "mindspore", [event]))
    assert run.series("h").values.tolist() == [[2.0, 2.0**40]]
    assert run.series("h/left").values.tolist() == [[-1.0, -0.5]]
    assert run.series("h/width").values.tolist() == [[0.5, 0.25]]
    said = run.series("h/statistics")
    named = dict(zip(said.labels[:, 0].tolist(), said.values[0].tolist(), strict=True))
    assert named["nan_count"] == 3
    assert named["count"] == 2**40 + 5
    assert (named["min"], named["max"], named["sum"]) == (-1.0, -0.25, 7.5)


BUCKETS = [(-1.0, 0.5, 0), (0.0, 1.0, 127), (1.0, 2.0, 128), (2.0, 0.25, 2**63 - 1), (3.0, 1.0, -1)]


@pytest.mark.parametrize("change", ["as it is", "no count", "another order", "one more field"])
def test_buckets_in_any_form(tmp_path: Path, change: str) -> None:
    """The usual form is read all at once, others one by one, with the same result."""
    event = MindSporeEvent(step=4, wall_time=WALL)
    histogram = event.summary.value.add(tag="h").histogram
    for left, width, count in BUCKETS * 4:
        histogram.buckets.add(left=left, width=width, count=count)
    wanted = [float(count) for _, _, count in BUCKETS * 4]
    odd = histogram.buckets[7]
    if change == "no count":
        odd.ClearField("count")
        wanted[7] = 0.0
    raw = odd.SerializeToString()
    body = event.SerializeToString()
    if change == "another order":
        body = body.replace(raw, raw[18:] + raw[:18], 1)
        wanted[2] = 128.0
    if change == "one more field":
        histogram.buckets[7].MergeFromString(b"\x20\x05")
        body = event.SerializeToString()
    path = tmp_path / "events.out.events.summary.1700000000.0.host_MS"
    path.write_bytes(framed(body))
    run = EventsRun(path)
    assert run.series("h").values.tolist() == [wanted]
    assert run.series("h/left").values.tolist() == [[left for left, _, _ in BUCKETS * 4]]
    assert run.series("h/width").values.tolist() == [[width for _, width, _ in BUCKETS * 4]]


def test_images_are_found_and_not_decoded(tmp_path: Path) -> None:
    old = Event(step=1, wall_time=WALL)
    image = Summary.Image(height=2, width=3, colorspace=3, encoded_image_string=b"\x89PNG old")
    old.summary.value.add(tag="old", image=image)
    new = Event(step=2, wall_time=WALL + 1)
    texts = np.array([b"30", b"20", b"\x89PNG new", b"\x89PNG second"], object)
    value = new.summary.value.add(tag="new", tensor=make_tensor_proto(texts))
    value.metadata.plugin_data.plugin_name = "images"
    run = EventsRun(write(tmp_path, "tensorboard", [old, new]))
    assert run.image_tags() == ["new", "old"]
    (found,) = run.images("old")
    assert (found.step, found.height, found.width) == (1, 2, 3)
    assert found.data() == b"\x89PNG old"
    (found,) = run.images("new")
    assert (found.step, found.height, found.width, found.data()) == (2, 20, 30, b"\x89PNG new")
    assert run.specs() == {}


def test_texts_are_notes(tmp_path: Path) -> None:
    event = Event(step=7, wall_time=WALL)
    for tag, text in (("note", "short"), ("args", "{" + "x" * 900 + "}")):
        value = event.summary.value.add(tag=tag, tensor=make_tensor_proto([text.encode()]))
        value.metadata.plugin_data.plugin_name = "text"
    run = EventsRun(write(tmp_path, "tensorboard", [event]))
    assert [(n.kind, n.step, n.data["tag"], len(n.data["text"])) for n in run.notes()] == [
        ("text", 7, "note", 5),
        ("text", 7, "args", 902),
    ]
    assert run.run_tags["note"] == "short"
    assert "args" not in run.run_tags


def test_graphs_and_the_like_are_passed_over(tmp_path: Path) -> None:
    graph = Event(wall_time=WALL, graph_def=b"g" * 100_000)
    meta = Event(wall_time=WALL, meta_graph_def=b"m" * 50)
    metadata = Event(wall_time=WALL)
    metadata.tagged_run_metadata.tag = "x"
    session = Event(wall_time=WALL, step=9)
    session.session_log.status = 1
    others = [graph, meta, metadata, session]
    run = EventsRun(write(tmp_path, "tensorboard", [*others, *curve("tensorboard", 3)]))
    assert len(run.series("a")) == 3
    (report,) = run.files()
    assert report.valid
    assert report.rows == 8
    for name in ("graph_def", "meta_graph_def", "tagged_run_metadata", "session_log"):
        assert f"1 x {name} passed over" in report.problem


def test_a_record_that_is_too_large_is_checked_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_scan, "MAX_RECORD", 5000)
    graph = Event(wall_time=WALL, graph_def=b"g" * 300_000)
    events = [*curve("tensorboard", 3), graph, *curve("tensorboard", 3, first=3)]
    path = write(tmp_path, "tensorboard", events)
    run = EventsRun(path)
    assert len(run.series("a")) == 6
    assert "is passed over" in run.files()[0].problem
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (report,) = EventsRun(path).files()
    assert report.damaged_rows == 1
    assert not report.valid


# Files of a run


def test_later_files_supersede_from_their_first_step_on(tmp_path: Path) -> None:
    for number, (first, count) in enumerate([(0, 100), (60, 20), (70, 50)]):
        name = f"events.out.tfevents.170000000{number}.host"
        steps = range(first, first + count)
        events = [scalars("tensorboard", step, WALL + number, [("a", number)]) for step in steps]
        write(tmp_path, "tensorboard", events, name)
    run = EventsRun(tmp_path)
    assert run.attempts == [1, 2, 3]
    found = run.series("a")
    assert found.steps.tolist() == list(range(120))
    assert found.values.tolist() == [0.0] * 60 + [1.0] * 10 + [2.0] * 50
    assert run.series("a", attempt=2).steps.tolist() == list(range(60, 80))
    assert len(run.series("a", attempt="all")) == 170
    assert run.last("a", 55).values.tolist() == [1.0] * 5 + [2.0] * 50
    assert [len(block) for block in run.blocks("a")] == [60, 10, 50]
    with pytest.raises(UsageError, match=r"attempts \[1, 2, 3\]"):
        run.series("a", attempt=4)


def test_names_are_ordered_as_numbers(tmp_path: Path) -> None:
    for number in (2, 10, 9):
        events = [scalars("tensorboard", 1, WALL, [("a", number)])]
        write(tmp_path, "tensorboard", events, f"events.out.tfevents.1700000000.host.7.{number}")
    assert EventsRun(tmp_path).series("a", attempt="all").values.tolist() == [2.0, 9.0, 10.0]


def test_folders_below_stand_before_the_tags(tmp_path: Path) -> None:
    write(tmp_path / "train", "tensorboard", curve("tensorboard", 4, ["epoch_loss"]))
    write(tmp_path / "validation", "tensorboard", curve("tensorboard", 2, ["epoch_loss"]))
    write(tmp_path / ".hidden", "tensorboard", curve("tensorboard", 2, ["x"]))
    run = EventsRun(tmp_path)
    assert list(run.specs()) == ["train/epoch_loss", "validation/epoch_loss"]
    assert len(run.series("train/epoch_loss")) == 4


def test_ranks_of_folders_and_of_names(tmp_path: Path) -> None:
    for rank in (0, 3):
        events = [scalars("mindspore", 1, WALL, [("a", rank)])]
        name = f"events.out.events.summary.1700000000.{rank}.host_MS"
        write(tmp_path / "by name", "mindspore", events, name)
        events = [scalars("tensorboard", 1, WALL, [("a", rank)])]
        write(tmp_path / "by folder" / f"rank-{rank:04d}", "tensorboard", events)
    for way in ("by name", "by folder"):
        run = EventsRun(tmp_path / way)
        assert run.ranks == [0, 3]
        assert run.series("a", rank=3).values.tolist() == [3.0]
        assert run.attempts == [1]


def test_the_device_of_a_single_process_is_no_rank(tmp_path: Path) -> None:
    name = "events.out.events.summary.1700000000.5.host_MS"
    write(tmp_path, "mindspore", curve("mindspore", 2), name)
    assert EventsRun(tmp_path).ranks == [0]
    assert len(EventsRun(tmp_path).series("a")) == 2


def test_names_of_ours_and_of_theirs(tmp_path: Path) -> None:
    events = curve("tensorboard", 2, ["train/loss", "my own", "x" * 300, "损失/一 😀"])
    run = EventsRun(write(tmp_path, "tensorboard", events))
    tags = list(run.specs())
    assert tags[:2] == ["my own", "train_loss"]
    assert run.run_tags["alias.train_loss"] == "train/loss"
    assert as_points(run.series("train/loss")) == as_points(run.series("train_loss"))
    assert len(tags[2]) == 200
    assert len(run.series("x" * 300)) == 2
    assert tags[3] == "损失/一 😀"
    with pytest.raises(UsageError, match=r"'no such'.*'my own'"):
        run.series("no such")


def test_a_file_that_grows(tmp_path: Path) -> None:
    events = curve("tensorboard", 2000)
    whole = write(tmp_path, "tensorboard", events).read_bytes()
    cuts = [offset for offset, _ in records(whole)]
    path = tmp_path / "events.out.tfevents.1700000000.host"
    path.write_bytes(whole[: cuts[900] + 5])
    run = EventsRun(tmp_path)
    assert len(run.series("a")) == 899
    assert run.files()[0].torn_bytes == 5
    path.write_bytes(whole)
    assert_same(all_points(run), points(path, "tensorboard"))
    path.write_bytes(whole[: cuts[10]])
    assert len(run.series("a")) == 9
    assert run.last("a", 3).steps.tolist() == [6, 7, 8]


def test_last_reads_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindpulse.interop.events import index as events_index

    monkeypatch.setattr(events_index, "MARK_BYTES", 10_000)
    run = EventsRun(write(tmp_path, "tensorboard", curve("tensorboard", 9000)))
    for limit in (0, 1, 3, 1000, 9000, 10_000):
        whole = as_points(run.series("b"))
        assert as_points(run.last("b", limit)) == whole[max(0, 9000 - limit) :]


# What is no event file


def test_what_is_no_event_file_is_named(tmp_path: Path) -> None:
    pointer = tmp_path / "events.out.tfevents.1700000000.host"
    pointer.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(UsageError, match="Git LFS pointer"):
        EventsRun(tmp_path)
    write(tmp_path, "tensorboard", curve("tensorboard", 2), "events.out.tfevents.1700000001.host")
    bad, good = EventsRun(tmp_path).files()
    assert (bad.valid, good.valid) == (False, True)
    assert "Git LFS pointer" in bad.problem
    pointer.write_bytes(b"step,loss\n" * 99)
    with pytest.raises(UsageError, match="no event file: it begins with b'step,loss"):
        EventsRun(pointer)
    with pytest.raises(UsageError, match="no event file in it"):
        EventsRun(tmp_path / "nothing")


def test_an_empty_file_and_one_without_series(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1700000000.host"
    path.touch()
    run = EventsRun(tmp_path)
    assert run.specs() == {}
    assert run.files()[0].problem == "empty"
    write(tmp_path, "tensorboard", [])
    assert run.specs() == {}
    assert "no series" in run.files()[0].problem


def test_sniff(tmp_path: Path) -> None:
    data = write(tmp_path, "mindspore", curve("mindspore", 3)).read_bytes()
    assert sniff(data, Path("any name"))
    damaged = b"\0" + data[1:]
    assert not sniff(damaged, Path("any name"))
    assert sniff(damaged, Path("events.out.tfevents.1.host"))
    assert not sniff(b"text", Path("events.out.tfevents.1.host"))
    assert not sniff(b"", Path("x"))
