"""Values that are no plain numbers in the record: images, texts, tensors in lists."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError
from mindpulse.interop.events.tensors import TF_LISTS, TF_TYPES, Slot
from mindpulse.interop.events.values import MINDSPORE
from mindpulse.interop.events.wire import signed_at, spans, text_at, varints
from mindpulse.store.wire import BYTES, FIXED32, FIXED64, VARINT

MAX_REPEATED = 1024
_TEXT_FIELD = 8
_IS_SIZE = re.compile(r"[0-9]{1,9}")
_HALF = 19


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """An image in its record: size in pixels, and where its encoded bytes stand."""

    height: int
    width: int
    start: int
    end: int


def array_of(raw: bytes, dtype: str) -> NDArray[np.float64]:
    """The numbers of a packed list.

    Raises:
        FormatError: the last one is not whole.
    """
    if len(raw) % int(dtype[2:]):
        raise FormatError(f"{len(raw)} bytes are no list of {dtype}")
    return np.frombuffer(raw, dtype).astype(np.float64)


def tensor(dialect: str, data: bytes, slot: Slot) -> NDArray[np.float64]:
    """The values of a tensor that do not stand as plain numbers, as float64, in its shape.

    Raises:
        FormatError: the bytes are no tensor of this shape, or hardly any of its values is there.
    """
    size = int(np.prod(slot.shape, dtype=object))
    values = _listed(data, slot) if dialect != MINDSPORE else _unpacked(data, slot)
    if not len(values) and size:
        values = np.zeros(1)
    if len(values) > size:
        raise FormatError(f"{len(values)} values in a tensor of shape {slot.shape}")
    # TensorFlow leaves out values at the end that repeat the last one. A file of a few bytes
    # must not take up gigabytes, though.
    if size - len(values) > MAX_REPEATED:
        raise FormatError(f"{size} values of which {len(values)} are there")
    rest = np.repeat(values[-1:], size - len(values))
    whole: NDArray[np.float64] = np.concatenate([values, rest]).reshape(slot.shape)
    return whole


def _listed(data: bytes, slot: Slot) -> NDArray[np.float64]:
    pieces: list[NDArray[np.float64]] = []
    number = 0
    for field, kind, at, stop in spans(data, slot.start, slot.end):
        if field == 1 and kind == VARINT:
            number = signed_at(data, at, stop)
        elif field == 4 and kind == BYTES and stop > at:
            return _content(data[at:stop], number)
        elif field in TF_LISTS:
            pieces.append(_piece(data, TF_LISTS[field], kind, at, stop, number))
    return np.concatenate(pieces) if pieces else np.empty(0)


def _content(raw: bytes, number: int) -> NDArray[np.float64]:
    return array_of(raw, TF_TYPES[number])


def _piece(
    data: bytes, listed: str, kind: int, at: int, stop: int, number: int
) -> NDArray[np.float64]:
    if listed in ("<f4", "<f8") and kind in (BYTES, FIXED32, FIXED64):
        return array_of(data[at:stop], listed)
    whole = varints(data, at, stop) if kind == BYTES else [signed_at(data, at, stop)]
    if listed == "half" and number == _HALF:
        bits = np.array([value & 0xFFFF for value in whole], "<u2")
        return bits.view("<f2").astype(np.float64)
    return np.array(whole, np.float64)


def _unpacked(data: bytes, slot: Slot) -> NDArray[np.float64]:
    pieces = [np.empty(0)]
    for field, kind, at, stop in spans(data, slot.start, slot.end):
        if field in (3, 6) and kind in (BYTES, FIXED32, FIXED64):
            pieces.append(array_of(data[at:stop], "<f4" if field == 3 else "<f8"))
        elif field in (4, 5, 7) and kind in (BYTES, VARINT):
            whole = varints(data, at, stop) if kind == BYTES else [signed_at(data, at, stop)]
            pieces.append(np.array(whole, np.float64))
    return np.concatenate(pieces)


def image(data: bytes, slot: Slot) -> ImagePlace | None:
    """Where the encoded bytes of an image stand; None if there are none.

    TensorBoard's newer form holds several: texts of the width, the height, then the images;
    the first of them is meant.
    """
    if slot.shape:
        return _listed_image(data, slot)
    height = width = 0
    place = None
    for field, kind, at, stop in spans(data, slot.start, slot.end):
        if field == 1 and kind == VARINT:
            height = signed_at(data, at, stop)
        elif field == 2 and kind == VARINT:
            width = signed_at(data, at, stop)
        elif field == 4 and kind == BYTES:
            place = (at, stop)
    return ImagePlace(height, width, *place) if place else None


def _listed_image(data: bytes, slot: Slot) -> ImagePlace | None:
    found = _text_places(data, slot)
    if len(found) < 3:
        return None
    width, height = (text_at(data, *place) for place in found[:2])
    if not (_IS_SIZE.fullmatch(width) and _IS_SIZE.fullmatch(height)):
        return None
    return ImagePlace(int(height), int(width), *found[2])


def texts(data: bytes, slot: Slot) -> list[str]:
    """The texts of a text summary."""
    return [text_at(data, *place) for place in _text_places(data, slot)]


def _text_places(data: bytes, slot: Slot) -> list[tuple[int, int]]:
    return [
        (at, stop)
        for field, kind, at, stop in spans(data, slot.start, slot.end)
        if field == _TEXT_FIELD and kind == BYTES
    ]
