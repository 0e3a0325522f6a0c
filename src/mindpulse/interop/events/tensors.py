"""Tensors of both formats: what kind of value one is, and where its numbers stand."""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.errors import FormatError
from mindpulse.interop.events.wire import signed_at, spans, varint_at
from mindpulse.store.wire import BYTES, FIXED32, FIXED64, VARINT

SCALAR, TENSOR, HISTOGRAM, IMAGE, TEXT, AUDIO, OTHER = (
    "scalar",
    "tensor",
    "histogram",
    "image",
    "text",
    "audio",
    "other",
)
# TensorFlow's and MindSpore's numbers of element types; the others cannot be plotted.
TF_TYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "|u1",
    5: "<i2",
    6: "|i1",
    9: "<i8",
    10: "|b1",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
_TF_TEXT = 7
# Number and kind of the list that holds values of a type when `tensor_content` does not.
TF_LISTS = {5: "<f4", 6: "<f8", 7: "int", 10: "int", 11: "int", 13: "half", 16: "int", 17: "int"}
MS_TYPES = {
    1: "|b1",
    2: "|i1",
    3: "<i2",
    4: "<i4",
    5: "<i8",
    6: "|u1",
    7: "<u2",
    8: "<u4",
    9: "<u8",
    10: "<f2",
    11: "<f4",
    12: "<f8",
}
MAX_AXES = 32


@dataclass(frozen=True, slots=True)
class Slot:
    """One value of an event.

    Attributes:
        tag: the other tool's name, as bytes.
        kind: "scalar", "tensor", "histogram", "image", "text", "audio" or "other".
        start, end: the value in the record; of a message, its content.
        dtype: type of the numbers that stand one after the other there; "" if they do not and
            have to be decoded.
        shape: of a tensor.
    """

    tag: bytes
    kind: str
    start: int
    end: int
    dtype: str = ""
    shape: tuple[int, ...] = ()


def tensorboard_tensor(tag: bytes, data: bytes, start: int, end: int, plugin: str) -> Slot:
    number, place, listed = 0, (-1, -1), ""
    shape: tuple[int, ...] = ()
    for field, kind, at, stop in spans(data, start, end):
        if field == 1 and kind == VARINT:
            number = signed_at(data, at, stop)
        elif field == 2 and kind == BYTES:
            shape = _tf_shape(data, at, stop)
        elif field == 4 and kind == BYTES:
            place, listed = (at, stop), TF_TYPES.get(number, "")
        elif field in (5, 6) and kind == BYTES:  # packed
            place, listed = (at, stop), TF_LISTS[field]
        elif field in (5, 6):
            same = place == (-1, -1) and kind == (FIXED32 if field == 5 else FIXED64)
            place, listed = ((at, stop), TF_LISTS[field]) if same else ((at, stop), "")
    if number == _TF_TEXT:
        kind_of = {"images": IMAGE, "audio": AUDIO}.get(plugin, TEXT)
        return Slot(tag, kind_of, start, end, "", shape)
    if number not in TF_TYPES:
        return Slot(tag, OTHER, start, end)
    return _numbers(tag, _tf_kind(shape, plugin), (start, end), place, (listed, shape))


def _tf_kind(shape: tuple[int, ...], plugin: str) -> str:
    if plugin == "histograms" and len(shape) == 2 and shape[1] == 3:
        return HISTOGRAM
    return SCALAR if shape == () or (plugin == "scalars" and _size(shape) == 1) else TENSOR


def mindspore_tensor(tag: bytes, data: bytes, start: int, end: int) -> Slot:
    number, dims, place, listed = 0, [], (-1, -1), ""
    for field, kind, at, stop in spans(data, start, end):
        if field == 1 and kind == VARINT:
            dims.append(signed_at(data, at, stop))
        elif field == 1 and kind == BYTES:
            while at < stop:
                value, at = varint_at(data, at, stop)
                dims.append(value)
        elif field == 2 and kind == VARINT:
            number = signed_at(data, at, stop)
        elif field in (3, 6) and kind == BYTES:
            place, listed = (at, stop), "<f4" if field == 3 else "<f8"
        elif field == 8 and kind == BYTES:
            place, listed = (at, stop), MS_TYPES.get(number, "")
    if number not in MS_TYPES:
        return Slot(tag, OTHER, start, end)
    return _numbers(tag, TENSOR, (start, end), place, (listed, _checked(dims)))


def _numbers(
    tag: bytes,
    kind: str,
    message: tuple[int, int],
    place: tuple[int, int],
    told: tuple[str, tuple[int, ...]],
) -> Slot:
    """The slot of a tensor: its numbers in place where they are all there, one after another."""
    dtype, shape = told
    if not _size(shape):
        return Slot(tag, OTHER, *message)
    if kind != HISTOGRAM and dtype and place[1] - place[0] == _size(shape) * int(dtype[2:]):
        return Slot(tag, kind, *place, dtype, shape)
    return Slot(tag, kind, *message, "", shape)


def _tf_shape(data: bytes, start: int, end: int) -> tuple[int, ...]:
    dims = []
    for field, kind, at, stop in spans(data, start, end):
        if field == 2 and kind == BYTES:
            sizes = [signed_at(data, a, b) for f, k, a, b in spans(data, at, stop) if f == 1]
            dims.append(sizes[-1] if sizes else 0)
    return _checked(dims)


def _checked(dims: list[int]) -> tuple[int, ...]:
    if len(dims) > MAX_AXES or any(size < 0 for size in dims):
        raise FormatError(f"a tensor of shape {dims[:MAX_AXES]!r} cannot be")
    return tuple(dims)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
