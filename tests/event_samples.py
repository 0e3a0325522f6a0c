"""Event files made with protobuf, and read with a straight loop: what our reader is held against.

The MindSpore messages are declared here by their field numbers, so that these tests need no
MindSpore; tests/on_mindspore/ holds the numbers against MindSpore itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorboard.compat.proto.event_pb2 import Event as TensorBoardEvent

from mindpulse.interop.events.run import EventsRun
from mindpulse.series import Series

WALL = 1.7e9
_Field = descriptor_pb2.FieldDescriptorProto
Points = list[tuple[int, float, float]]
_MESSAGES: dict[str, list[tuple[str, int, str, bool]]] = {
    "Event": [
        ("wall_time", 1, "double", False),
        ("step", 2, "int64", False),
        ("version", 3, "string", False),
        ("summary", 5, "Summary", False),
    ],
    "Summary": [("value", 1, "Value", True)],
    "Value": [
        ("tag", 1, "string", False),
        ("scalar_value", 3, "float", False),
        ("image", 4, "Image", False),
        ("tensor", 8, "Tensor", False),
        ("histogram", 9, "Histogram", False),
    ],
    "Image": [
        ("height", 1, "int32", False),
        ("width", 2, "int32", False),
        ("colorspace", 3, "int32", False),
        ("encoded_image", 4, "bytes", False),
    ],
    "Tensor": [
        ("dims", 1, "int64", True),
        ("data_type", 2, "int32", False),
        ("float_data", 3, "float", True),
        ("double_data", 6, "double", True),
        ("raw_data", 8, "bytes", False),
    ],
    "Histogram": [
        ("buckets", 1, "Bucket", True),
        ("nan_count", 2, "int64", False),
        ("pos_inf_count", 3, "int64", False),
        ("neg_inf_count", 4, "int64", False),
        ("max", 5, "double", False),
        ("min", 6, "double", False),
        ("sum", 7, "double", False),
        ("count", 8, "int64", False),
    ],
    "Bucket": [
        ("left", 1, "double", False),
        ("width", 2, "double", False),
        ("count", 3, "int64", False),
    ],
}


def _mindspore_event() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="ms.proto", package="ms", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            field = message.field.add(name=label, number=number)
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if kind in _MESSAGES:
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".ms.{kind}"
            else:
                field.type = getattr(_Field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ms.Event"))


MindSporeEvent = _mindspore_event()
EVENTS = {"tensorboard": TensorBoardEvent, "mindspore": MindSporeEvent}
VERSIONS = {
    "tensorboard": TensorBoardEvent(wall_time=1.7e9, file_version="brain.Event:2"),
    "mindspore": MindSporeEvent(wall_time=1.7e9, version="MindSpore.Event:1"),
}
NAMES = {
    "tensorboard": "events.out.tfevents.1700000000.host",
    "mindspore": "events.out.events.summary.1700000000.0.host_MS",
}
_SCALARS = {"tensorboard": "simple_value", "mindspore": "scalar_value"}


def _sum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(body: bytes) -> bytes:
    """A record, as TFRecord says it."""
    length = struct.pack("<Q", len(body))
    return length + _sum(length) + body + _sum(body)


def scalars(dialect: str, step: int, wall_time: float, values: Iterable[tuple[str, float]]) -> Any:
    """An event that holds numbers by tag."""
    event = EVENTS[dialect](wall_time=wall_time, step=step)
    for tag, value in values:
        event.summary.value.add(tag=tag, **{_SCALARS[dialect]: value})
    return event


def write(folder: Path, dialect: str, events: Iterable[Any], name: str = "") -> Path:
    """A file of these events, behind that of the version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or NAMES[dialect])
    whole = [VERSIONS[dialect], *events]
    path.write_bytes(b"".join(framed(event.SerializeToString()) for event in whole))
    return path


def records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset and body of each record; the sums must fit."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack("<Q", data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert data[at : at + 16 + length] == framed(body)
        yield at, body
        at += 16 + length


def points(path: Path, dialect: str) -> dict[str, Points]:
    """All numbers of a file by tag, in its order: the straight loop."""
    found: dict[str, Points] = {}
    for _, body in records(path.read_bytes()):
        event = EVENTS[dialect].FromString(body)
        for value in event.summary.value:
            if value.HasField(_SCALARS[dialect]):
                number = getattr(value, _SCALARS[dialect])
                found.setdefault(value.tag, []).append((event.step, event.wall_time, number))
    return found


def curve(dialect: str, count: int, tags: Iterable[str] = ("a", "b"), first: int = 0) -> list[Any]:
    """An event a step; values differ in all their bits."""
    rng = np.random.default_rng(count + first)
    table = rng.normal(size=(count, len(list(tags)))).astype(np.float32)
    return [
        scalars(dialect, step, WALL + step / 7, zip(tags, row.tolist(), strict=True))
        for step, row in zip(range(first, first + count), table, strict=True)
    ]


def as_points(series: Series) -> Points:
    return list(
        zip(
            series.steps.tolist(),
            series.wall_times.tolist(),
            series.values.tolist(),
            strict=True,
        )
    )


def all_points(run: EventsRun) -> dict[str, Points]:
    return {tag: as_points(run.series(tag, attempt="all")) for tag in run.specs()}


def assert_same(found: dict[str, Points], wanted: dict[str, Points]) -> None:
    """NaN is equal to NaN."""
    assert repr(found) == repr(dict(sorted(wanted.items())))
