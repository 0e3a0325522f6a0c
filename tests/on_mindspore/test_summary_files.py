"""MindSpore's own SummaryRecord: its files are read value for value, and ours are its own bytes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mindspore.train.anf_ir_pb2 import DataType
from mindspore.train.summary_pb2 import Event
from PIL import Image

from event_samples import MindSporeEvent, records
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.run import EventsRun
from mindpulse.interop.events.tensors import MS_TYPES
from mindpulse.interop.events.writer import EventWriter
from mindpulse.series import Rows, SeriesSpec

STEPS = 40
# Its writer is a process that polls without a pause; it must not outlive the test.
WRITE = """
import sys
import numpy as np
from mindspore import SummaryRecord, Tensor
with np.load(sys.argv[2]) as given, SummaryRecord(sys.argv[1]) as record:
    for step in range(len(given["loss"])):
        record.add_value("scalar", "loss", Tensor(given["loss"][step]))
        record.add_value("scalar", "损失/rate", Tensor(given["rate"][step]))
        if step % 10 == 0:
            record.add_value("tensor", "weight", Tensor(given["weight"][step]))
            record.add_value("tensor", "half", Tensor(given["weight"][step].astype(np.float16)))
            record.add_value("histogram", "bars", Tensor(given["bars"][step]))
            record.add_value("image", "picture", Tensor(given["picture"][step]))
        record.record(step)
"""


@pytest.fixture(scope="module")
def given() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    bars = rng.normal(size=(STEPS, 300)).astype(np.float32)
    bars[10, :4] = [np.nan, np.inf, np.inf, -np.inf]
    return {
        "loss": rng.normal(size=STEPS).astype(np.float32),
        "rate": np.geomspace(1e-3, 1e-9, STEPS).astype(np.float32),
        "weight": rng.normal(size=(STEPS, 3, 4)).astype(np.float32),
        "bars": bars,
        "picture": rng.integers(0, 256, (STEPS, 1, 3, 5, 6)).astype(np.uint8),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, given: dict[str, np.ndarray]) -> Path:
    path = tmp_path_factory.mktemp("summary")
    np.savez(path / "given.npz", **given)
    command = [sys.executable, "-c", WRITE, str(path / "files"), str(path / "given.npz")]
    environment = {**os.environ, "GLOG_v": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return path / "files"


def test_numbers(folder: Path, given: dict[str, np.ndarray]) -> None:
    run = EventsRun(folder)
    loss = run.series("loss")
    assert loss.steps.tolist() == list(range(STEPS))
    assert np.array_equal(loss.values, given["loss"])
    assert np.array_equal(run.series("损失/rate").values, given["rate"])
    assert (np.abs(loss.wall_times - loss.wall_times[0]) < 300).all()
    (report,) = run.files()
    assert (report.rows, report.valid, report.problem) == (STEPS + 1, True, "")


def test_tensors(folder: Path, given: dict[str, np.ndarray]) -> None:
    run = EventsRun(folder)
    found = run.series("weight")
    assert found.steps.tolist() == [0, 10, 20, 30]
    assert np.array_equal(found.values, given["weight"][::10].reshape(4, 12))
    assert found.spec.columns[7] == ("1", "3")
    half = given["weight"][::10].astype(np.float16).reshape(4, 12)
    assert np.array_equal(run.series("half").values, half)


def test_histograms(folder: Path, given: dict[str, np.ndarray]) -> None:
    """What its own messages say, and what NumPy counts in the same bins."""
    run = EventsRun(folder)
    counts, left, width = (run.series(f"bars{part}").values for part in ("", "/left", "/width"))
    said = run.series("bars/statistics")
    names = said.labels[:, 0].tolist()
    (path,) = folder.iterdir()
    rows = 0
    for _, body in records(path.read_bytes()):
        event = Event.FromString(body)
        for value in event.summary.value:
            if value.HasField("histogram"):
                buckets = value.histogram.buckets
                size = len(buckets)
                assert counts[rows][:size].tolist() == [b.count for b in buckets]
                assert left[rows][:size].tolist() == [b.left for b in buckets]
                assert width[rows][:size].tolist() == [b.width for b in buckets]
                wanted = [getattr(value.histogram, name) for name in names]
                assert said.values[rows].tolist() == wanted
                finite = given["bars"][event.step]
                finite = finite[np.isfinite(finite)]
                edges = np.append(left[rows][:size], finite.max())
                assert counts[rows][:size].sum() == len(finite)
                assert np.abs(np.histogram(finite, edges)[0] - counts[rows][:size]).max() <= 1
                rows += 1
    assert rows == 4
    assert said.values[1][names.index("nan_count")] == 1
    assert said.values[1][names.index("pos_inf_count")] == 2


def test_images(folder: Path, given: dict[str, np.ndarray]) -> None:
    """The very bytes; MindSpore has brought the pixels to another range before it encoded them."""
    found = EventsRun(folder).images("picture")
    assert [entry.step for entry in found] == [0, 10, 20, 30]
    (path,) = folder.iterdir()
    values = [
        value.image
        for _, body in records(path.read_bytes())
        for value in Event.FromString(body).summary.value
        if value.HasField("image")
    ]
    assert [entry.data() for entry in found] == [value.encoded_image for value in values]
    assert {(entry.height, entry.width) for entry in found} == {(5, 6)}
    for entry in found:
        pixels = np.array(Image.open(io.BytesIO(entry.data())), np.float32)
        whole = given["picture"][entry.step][0].transpose(1, 2, 0).astype(np.float32)
        scale = 255 / (whole.max() - whole.min() + 1)
        assert np.abs(pixels - (whole - whole.min()) * scale).max() <= 1


def test_our_bytes_are_its_bytes(
    folder: Path, given: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """The events that hold numbers only, written by us from what we read."""
    run = EventsRun(folder)
    loss, rate = run.series("loss"), run.series("损失/rate")
    values = np.stack([loss.values, rate.values], axis=1)
    with EventWriter(tmp_path, "mindspore") as writer:
        rows = Rows(loss.steps, loss.wall_times, values)
        writer.write_scalars(["loss", "损失/rate"], rows)
    (path,) = folder.iterdir()
    theirs = [body for _, body in records(path.read_bytes())][1:]
    ours = [body for _, body in records(writer.path.read_bytes())][1:]
    same = [a == b for a, b in zip(ours, theirs, strict=True)]
    assert same == [step % 10 != 0 for step in range(STEPS)]
    assert writer.path.name.replace(".0.", ".", 1).startswith("events.out.events.summary.")


def test_its_messages_read_what_we_write(tmp_path: Path) -> None:
    columns = tuple((str(i),) for i in range(300))
    spec = SeriesSpec("wide", "vector", "", ("index",), columns, "float32")
    bars = Histogram(np.array([0.0, 0.5]), np.array([0.5, 1.5]), np.array([3.0, 4.0]))
    row = np.arange(300, dtype=np.float32)
    with EventWriter(tmp_path, "mindspore") as writer:
        writer.write(spec, Rows(np.array([5]), np.array([1.7e9]), row[None]))
        writer.write_histograms("bars", [6], [1.7e9], [bars])
        writer.write_image("picture", 7, 1.7e9, b"\x89PNG", height=2, width=3)
    events = [Event.FromString(body) for _, body in records(writer.path.read_bytes())]
    assert all(event.IsInitialized() for event in events)  # every required field is there
    assert events[0].version == "MindSpore.Event:1"
    tensor = events[1].summary.value[0].tensor
    assert list(tensor.float_data) == row.tolist()
    assert (list(tensor.dims), tensor.data_type) == ([300], DataType.Value("DT_FLOAT32"))
    found = events[2].summary.value[0].histogram
    assert [(b.left, b.width, b.count) for b in found.buckets] == [(0.0, 0.5, 3), (0.5, 1.0, 4)]
    image = events[3].summary.value[0].image
    assert (image.height, image.width, image.encoded_image) == (2, 3, b"\x89PNG")


def test_the_numbers_of_the_fields_are_its_own() -> None:
    """tests/event_samples.py declares them anew for tests without MindSpore."""
    pairs = [(MindSporeEvent.DESCRIPTOR, Event.DESCRIPTOR)]
    seen = 0
    while pairs:
        ours, real = pairs.pop()
        for field in ours.fields:
            if (ours.name, field.name) == ("Tensor", "double_data"):
                continue
            same = real.fields_by_name[field.name]
            assert field.number == same.number, (ours.name, field.name)
            seen += 1
            if field.message_type is not None:
                pairs.append((field.message_type, same.message_type))
    assert seen == 29


def test_the_numbers_of_the_types_are_its_own() -> None:
    for number, dtype in MS_TYPES.items():
        name = np.dtype(dtype).name.upper()
        assert DataType.Value(f"DT_{name}") == number
