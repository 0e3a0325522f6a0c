"""Damaged event files: every whole record is read, and nothing brings the reader down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.util.tensor_util import make_tensor_proto

from event_samples import EVENTS, WALL, as_points, curve, framed, points, records, scalars, write
from mindpulse.errors import UsageError
from mindpulse.interop.events.run import EventsRun

DIALECTS = ("tensorboard", "mindspore")


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """All whole records before the cut are read, and none of the others."""
    whole = write(tmp_path, "tensorboard", curve("tensorboard", 30)).read_bytes()
    ends = [*[offset for offset, _ in records(whole)][1:], len(whole)]
    path = tmp_path / "events.out.tfevents.1700000000.host"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        complete = sum(end <= size for end in ends)
        run = EventsRun(path)
        (report,) = run.files()
        assert (report.rows, report.damaged_rows, report.valid) == (complete, 0, True)
        assert report.torn_bytes == size - ([0, *ends][complete])
        assert [len(run.series(tag)) for tag in run.specs()] == [complete - 1] * 2 * (complete > 1)


@pytest.mark.parametrize("count", [12, 400])
def test_every_flipped_bit_costs_its_record_only(tmp_path: Path, count: int) -> None:
    """Every bit of a record is tried: behind some records, and in the middle of a period."""
    path = write(tmp_path, "mindspore", curve("mindspore", count))
    whole = path.read_bytes()
    wanted = points(path, "mindspore")["a"]
    starts = [offset for offset, _ in records(whole)]
    hit = count // 2
    first, end = starts[hit + 1], starts[hit + 2]
    for bit in range(8 * first, 8 * end):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        run = EventsRun(path)
        (report,) = run.files()
        assert (report.damaged_rows, report.valid) == (1, False), bit
        assert as_points(run.series("a")) == wanted[:hit] + wanted[hit + 1 :], bit
        assert "1 of" in report.problem


def test_several_damaged_records_of_a_period(tmp_path: Path) -> None:
    path = write(tmp_path, "tensorboard", curve("tensorboard", 9000))
    data = bytearray(path.read_bytes())
    wanted = points(path, "tensorboard")["b"]
    starts = [offset for offset, _ in records(bytes(data))]
    for hit in (1, 5, 4000, 4001, 7777):
        data[starts[hit] + 20] ^= 0x40
    path.write_bytes(data)
    run = EventsRun(path)
    assert run.files()[0].damaged_rows == 5
    left = [p for p in wanted if p[0] not in {0, 4, 3999, 4000, 7776}]
    assert as_points(run.series("b")) == left
    assert as_points(run.last("b", 2000)) == left[-2000:]


def test_a_hole_and_a_tail_of_zeros(tmp_path: Path) -> None:
    path = write(tmp_path, "tensorboard", curve("tensorboard", 3000))
    data = bytearray(path.read_bytes())
    starts = [offset for offset, _ in records(bytes(data))]
    data[starts[1000] + 3 : starts[1100] + 9] = bytes(starts[1100] - starts[1000] + 6)
    path.write_bytes(bytes(data) + bytes(5000))
    run = EventsRun(path)
    steps = run.series("a").steps
    assert steps.tolist() == [*range(999), *range(1100, 3000)]
    (report,) = run.files()
    assert report.damaged_rows == 2
    assert "last 5000 bytes" in report.problem
    with path.open("ab") as file:  # and someone goes on behind it
        event = scalars("tensorboard", 9, WALL, [("a", 1.0)])
        file.write(framed(event.SerializeToString()))
    assert run.series("a", attempt="all").steps[-1] == 9


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=12),
    st.integers(0, 1 << 20),
    st.sampled_from(DIALECTS),
)
def test_damaged_files_never_crash_the_reader(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[int, int]],
    size: int,
    dialect: str,
) -> None:
    folder = tmp_path_factory.mktemp("events")
    path = write(folder, dialect, mixed(dialect))
    data = bytearray(path.read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    path.write_bytes(data[: size % (2 * len(data))])
    read_everything(path)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from(DIALECTS))
def test_whole_records_of_any_bytes_never_crash_the_reader(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], dialect: str
) -> None:
    """The sums are right, what they are over is anything: parsers of all messages see it."""
    folder = tmp_path_factory.mktemp("events")
    path = write(folder, dialect, mixed(dialect))
    seeds = [body for _, body in records(path.read_bytes())]
    rng = np.random.default_rng(len(bodies))
    crossed = []
    for body in bodies:
        seed = seeds[int(rng.integers(len(seeds)))]
        cut = int(rng.integers(len(seed) + 1))
        crossed += [body, seed[:cut] + body + seed[cut + len(body) :]]
    with path.open("ab") as file:
        file.writelines(framed(body) for body in crossed)
    read_everything(path)


def mixed(dialect: str) -> list[Any]:
    """Events of all kinds."""
    events = curve(dialect, 3)
    event = EVENTS[dialect](step=3, wall_time=WALL)
    if dialect == "mindspore":
        histogram = event.summary.value.add(tag="h").histogram
        histogram.buckets.add(left=0.0, width=1.0, count=3)
        tensor = event.summary.value.add(tag="t").tensor
        tensor.data_type = 11
        tensor.dims.extend([1, 2])
        tensor.float_data.extend([1.0, 2.0])
        event.summary.value.add(tag="i").image.encoded_image = b"png"
    else:
        event.summary.value.add(tag="h").histo.bucket.extend([1.0])
        table = make_tensor_proto(np.ones((2, 3)))
        value = event.summary.value.add(tag="n", tensor=table)
        value.metadata.plugin_data.plugin_name = "histograms"
        event.summary.value.add(tag="t", tensor=make_tensor_proto([b"text"]))
        images = event.summary.value.add(tag="j", tensor=make_tensor_proto([b"1", b"2", b"png"]))
        images.metadata.plugin_data.plugin_name = "images"
        event.summary.value.add(tag="v", tensor=make_tensor_proto(np.ones((1, 2), np.float16)))
    return [*events, event]


def read_everything(path: Path) -> None:
    try:
        run = EventsRun(path)
    except UsageError:
        return
    for tag in run.specs():
        blocks = run.blocks(tag, attempt="all")
        assert len(run.series(tag, attempt="all")) == sum(len(block) for block in blocks)
    for tag in run.image_tags():
        for image in run.images(tag):
            image.data()
    run.notes()
    assert len(run.files()) == 1
