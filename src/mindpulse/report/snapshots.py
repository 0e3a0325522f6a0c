"""Attention maps out of the snapshot files of a run."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.report.data import AttentionMap

_NAME = re.compile(r"^(?P<name>.+?)(?:_s(?P<step>\d+))?$")
_LAYER = re.compile(r"(?:^|[._])(?:L|layer[._]?)(?P<layer>\d+)(?:$|[._])", re.IGNORECASE)
PREFIX = "attn"


def read_maps(paths: Iterable[Path]) -> Iterator[tuple[list[AttentionMap], str]]:
    """The attention maps of each snapshot, and why it could not be read, "" if it could.

    A file is named `attn_L03_s001000.npz`: layer 3, step 1000. Its arrays are (query, key),
    (head, query, key) or (batch, head, query, key), of which the first example is taken.
    """
    for path in paths:
        try:
            yield _read(path), ""
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            yield [], f"{path.name}: {error}"


def latest_maps(paths: Iterable[Path]) -> tuple[list[AttentionMap], list[str]]:
    """Of each layer the maps of its last step, and one line per file that could not be read.

    A long run has thousands of snapshots: of files of one name only the last that can be read is.
    """
    named: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        named.setdefault((path.parent, _name_and_step(path)[0]), []).append(path)
    found: list[AttentionMap] = []
    problems: list[str] = []
    for group in named.values():
        group.sort(key=lambda path: _name_and_step(path)[1], reverse=True)
        for maps, problem in read_maps(group):
            found += maps
            problems += [problem] if problem else []
            if maps:
                break
    return latest(found), problems


def latest(maps: Iterable[AttentionMap]) -> list[AttentionMap]:
    """Of each layer the maps of its last step, in the order of layers and heads."""
    maps = list(maps)
    last: dict[str, int] = {}
    for m in maps:
        last[m.layer] = max(m.step, last.get(m.layer, m.step))
    kept = [m for m in maps if m.step == last[m.layer]]
    return sorted(kept, key=lambda m: (natural(m.layer), m.head))


def _name_and_step(path: Path) -> tuple[str, int]:
    named = _NAME.match(path.stem)
    return (named["name"], int(named["step"] or 0)) if named else (path.stem, 0)


def _read(path: Path) -> list[AttentionMap]:
    if not path.name.startswith(PREFIX):
        return []
    name, step = _name_and_step(path)
    found = []
    with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
        for key in content.files:
            heads = _heads(content[key])
            layer = _layer(name) or _layer(key) or f"{name} {key}"
            found += [AttentionMap(layer, h, step, values) for h, values in enumerate(heads)]
    return found


def _heads(array: NDArray[np.generic]) -> list[NDArray[np.float64]]:
    if array.ndim == 4 and len(array):
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or not array.size or array.dtype.kind not in "fiu":
        return []
    return list(_without_padding(array.astype(np.float64)))


def _without_padding(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cuts what a buffer has more than the model, at the ends of its axes.

    A row of a softmax adds up to 1, so heads and queries that are all zero are none. A key that
    nobody looks at may be masked, so keys are cut down to the number of queries only.

    Args:
        maps: (head, query, key).
    """
    used = maps != 0
    heads, queries = _length(used.any(axis=(1, 2))), _length(used.any(axis=(0, 2)))
    keys = max(queries, _length(used.any(axis=(0, 1))))
    return maps[:heads, :queries, :keys]


def _length(used: NDArray[np.bool_]) -> int:
    """Up to and with the last True."""
    return int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0


def _layer(text: str) -> str:
    match = _LAYER.search(text)
    return str(int(match["layer"])) if match else ""


def natural(text: str) -> tuple[int, str]:
    """The key by which layers stand in order: 2 before 10.

    Example:
        >>> sorted(["10", "head", "2"], key=natural)
        ['2', '10', 'head']
    """
    return (int(text), "") if text.isdecimal() else (1 << 30, text)
