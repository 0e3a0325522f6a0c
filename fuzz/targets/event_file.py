"""Event files of TensorBoard and MindSpore: any bytes, and any messages whose sums are right."""

from __future__ import annotations

import numpy as np
from harness import REFUSED, file_with, folder

from mindpulse.interop.events.frame import frame
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.run import EventsRun
from mindpulse.interop.events.writer import EventWriter
from mindpulse.series import Rows, SeriesSpec

NAMES = ("events.out.tfevents.1700000000.host", "events.out.events.summary.1700000000.0.host_MS")
BETWEEN = b"\xf0\x9f\x94\xa5"


def one_input(data: bytes) -> None:
    """The first byte chooses the format, and whether sums are put around what follows."""
    chosen, data = data[:1] or b"\0", data[1:]
    if chosen[0] & 2:
        data = b"".join(frame(body) for body in data.split(BETWEEN))
    path = file_with(data, "events", NAMES[chosen[0] & 1])
    with REFUSED:
        read(EventsRun(path))


def read(run: EventsRun) -> None:
    """Everything there is."""
    for tag in run.specs():
        whole = run.series(tag, attempt="all")
        assert len(run.last(tag, 3, attempt="all")) == min(3, len(whole))
        assert sum(len(block) for block in run.blocks(tag, attempt="all")) == len(whole)
    for tag in run.image_tags():
        for image in run.images(tag):
            image.data()
    run.notes()
    run.files()


def seeds() -> list[bytes]:
    """Files of both formats, whole and as bare messages."""
    found = []
    for number, dialect in enumerate(("tensorboard", "mindspore")):
        for newer in (False, True):
            data = example(dialect, newer)
            bodies = BETWEEN.join(bare(data))
            found += [bytes([number]) + data, bytes([number + 2]) + bodies]
    return found


def example(dialect: str, newer: bool) -> bytes:
    """A file with values of all kinds."""
    with EventWriter(folder() / "written", dialect, newer=newer) as writer:
        writer.write(SeriesSpec("loss"), Rows(np.arange(3), np.full(3, 1.7e9), np.ones((3, 1))))
        columns = tuple((str(index),) for index in range(300))
        wide = SeriesSpec("wide", "vector", "", ("index",), columns)
        writer.write(wide, Rows(np.array([1]), np.array([1.7e9]), np.ones((1, 300))))
        bars = Histogram(np.arange(2.0), np.arange(2.0) + 1, np.ones(2))
        writer.write_histograms("bars", [1], [1.7e9], [bars])
        writer.write_image("picture", 1, 1.7e9, b"\x89PNG", height=1, width=2)
        writer.write_text("note", 1, 1.7e9, "text")
    data = writer.path.read_bytes()
    writer.path.unlink()
    return data


def bare(data: bytes) -> list[bytes]:
    """The bodies of a file's records."""
    found = []
    while data:
        size = int.from_bytes(data[:8], "little")
        found.append(data[12 : 12 + size])
        data = data[16 + size :]
    return found
