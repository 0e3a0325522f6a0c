"""What an event holds and where: TensorBoard's `Event` and MindSpore's, read from the bytes.

Both are `Event{1 wall_time, 2 step, 3 version, 5 summary{1 value{1 tag, ...}}}`; the values differ:

| value            | TensorBoard                                     | MindSpore                 |
| ---------------- | ----------------------------------------------- | ------------------------- |
| number           | 2 simple_value, or 8 tensor without axes        | 3 scalar_value            |
| image            | 4 image, or 8 tensor of texts, plugin "images"  | 4 image                   |
| histogram        | 5 histo, or 8 tensor (k, 3), plugin "histograms"| 9 histogram               |
| tensor           | 8 tensor{1 dtype, 2 shape, 4 content, 5-17}     | 8 tensor{1 dims, 2 dtype} |
| what is plotted  | 9 metadata{1 plugin_data{1 plugin_name}}        | -                         |

Source: tensorboard/compat/proto/{event,summary,tensor}.proto; mindspore/train/summary_pb2.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.interop.events.tensors import (
    AUDIO,
    HISTOGRAM,
    IMAGE,
    OTHER,
    SCALAR,
    Slot,
    mindspore_tensor,
    tensorboard_tensor,
)
from mindpulse.interop.events.wire import spans, text_at
from mindpulse.store.wire import BYTES, FIXED32, FIXED64, VARINT

TENSORBOARD, MINDSPORE = "tensorboard", "mindspore"
_VERSIONS = {"brain.Event": TENSORBOARD, "MindSpore.Event": MINDSPORE}
# What else an event may be about; none of it is a series.
_SKIPPED = {
    TENSORBOARD: {
        4: "graph_def",
        6: "log_message",
        7: "session_log",
        8: "tagged_run_metadata",
        9: "meta_graph_def",
        10: "source_metadata",
    },
    MINDSPORE: {4: "graph_def", 6: "explain"},
}


@dataclass(frozen=True, slots=True)
class Event:
    """An event and the places of its parts; -1 for one that is not there.

    Attributes:
        wall_at: of the eight bytes of the wall time.
        step_at, step_end: of the step.
        version: text of a version event.
        skipped: name of a part that is no summary, "" for none.
        slots: the values.
    """

    wall_at: int = -1
    step_at: int = -1
    step_end: int = -1
    version: str = ""
    skipped: str = ""
    slots: tuple[Slot, ...] = ()


class Dialect:
    """Whose events these are, and what was said of each tag so far.

    TensorBoard's writers may name the plugin of a tag in its first event only.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.plugins: dict[bytes, str] = {}

    def event(self, data: bytes, start: int, end: int) -> Event:
        """The event in data[start:end].

        Raises:
            FormatError: the bytes are no event.
        """
        wall_at = step_at = step_end = -1
        version = skipped = ""
        slots: list[Slot] = []
        for field, kind, at, stop in spans(data, start, end):
            if field == 1 and kind == FIXED64:
                wall_at = at
            elif field == 2 and kind == VARINT:
                step_at, step_end = at, stop
            elif field == 3 and kind == BYTES:
                version = text_at(data, at, stop)
                self._learn(version)
            elif field == 5 and kind == BYTES:
                slots += self._summary(data, at, stop)
            elif kind == BYTES:
                skipped = _SKIPPED[self.name].get(field, skipped)
        return Event(wall_at, step_at, step_end, version, skipped, tuple(slots))

    def _learn(self, version: str) -> None:
        self.name = _VERSIONS.get(version.split(":")[0], self.name)

    def _summary(self, data: bytes, start: int, end: int) -> list[Slot]:
        return [
            self._value(data, at, stop)
            for field, kind, at, stop in spans(data, start, end)
            if field == 1 and kind == BYTES
        ]

    def _value(self, data: bytes, start: int, end: int) -> Slot:
        tag, found, metadata = b"", (0, 0, 0), (0, 0)
        for field, kind, at, stop in spans(data, start, end):
            if field == 1 and kind == BYTES:
                tag = data[at:stop]
            elif field == 9 and kind == BYTES and self.name == TENSORBOARD:
                metadata = (at, stop)
            elif (field in (2, 3) and kind == FIXED32) or (field > 3 and kind == BYTES):
                found = (field, at, stop)
        if metadata[0]:
            self._remember(tag, data, *metadata)
        return self._slot(tag, data, *found)

    def _remember(self, tag: bytes, data: bytes, start: int, end: int) -> None:
        for field, kind, at, stop in spans(data, start, end):
            if field == 1 and kind == BYTES:
                for inner, kind_in, first, last in spans(data, at, stop):
                    if inner == 1 and kind_in == BYTES:
                        self.plugins[tag] = text_at(data, first, last)

    def _slot(self, tag: bytes, data: bytes, field: int, at: int, stop: int) -> Slot:
        if field in (2, 3):
            return Slot(tag, SCALAR, at, stop, "<f4")
        if field == 4:
            return Slot(tag, IMAGE, at, stop)
        if self.name == MINDSPORE:
            if field == 8:
                return mindspore_tensor(tag, data, at, stop)
            return Slot(tag, HISTOGRAM if field == 9 else OTHER, at, stop)
        if field == 8:
            return tensorboard_tensor(tag, data, at, stop, self.plugins.get(tag, ""))
        return Slot(tag, {5: HISTOGRAM, 6: AUDIO}.get(field, OTHER), at, stop)
