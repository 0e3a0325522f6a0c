"""The tensors that were snapped into a run, as they are read again."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mindpulse.debugging.peek import Peek, of_array
from mindpulse.errors import FormatError
from mindpulse.store.names import parse_name

MEMBER = "tensor.npy"
_FILE = re.compile(r"(?P<stem>.+)_s(?P<step>\d+)\.npz")


@dataclass(frozen=True, slots=True)
class Snap:
    """A snapped tensor; its numbers stay in the file.

    Attributes:
        shape: of the tensor.
        dtype: as its framework called it.
    """

    name: str
    step: int
    shape: tuple[int, ...]
    dtype: str
    path: Path

    def read(self) -> Peek:
        """The tensor itself.

        Raises:
            FormatError: the file is damaged.
        """
        try:
            with np.load(self.path, allow_pickle=False) as content:
                return of_array(content["tensor"], self.dtype, self.name)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise FormatError(f"{self.path}: {error}; it cannot be read as a snapshot") from error


def snaps_in(paths: Iterable[Path]) -> list[Snap]:
    """Those of the snapshot files that `mindpulse.snap` wrote, by step and name.

    Only the headers are read. A damaged file is none of them; who reads attention maps tells of it.
    """
    found = [snap for path in paths if (snap := _snap(path)) is not None]
    return sorted(found, key=lambda snap: (snap.step, snap.name))


def _snap(path: Path) -> Snap | None:
    named = _FILE.fullmatch(path.name)
    parsed = parse_name(f"{named['stem']}.ms") if named else None
    if named is None or parsed is None:
        return None
    try:
        with zipfile.ZipFile(path) as content:
            if MEMBER not in content.namelist():
                return None
            with content.open(MEMBER) as file:
                shape = _shape(file)
            with content.open("dtype.npy") as file:
                dtype = str(_array(file))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return Snap(parsed[0] or named["stem"], int(named["step"]), shape, dtype, path)


def _array(file: IO[bytes]) -> Any:
    return np.lib.format.read_array(file, allow_pickle=False)  # type: ignore[no-untyped-call]


def _shape(file: IO[bytes]) -> tuple[int, ...]:
    version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else (
        np.lib.format.read_array_header_2_0
    )  # fmt: skip
    shape: tuple[int, ...] = read(file)[0]  # type: ignore[no-untyped-call]
    return shape
