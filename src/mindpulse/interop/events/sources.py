"""The series that event files hold: their names here, their columns, and where they come from.

| in the files | series here |
| --- | --- |
| number | scalar |
| numbers `name/layer=0 head=1` that stand together in every event | the columns of `name` |
| tensor of one shape | vector ("index"), map ("row", "column"), else axes "axis0", "axis1", ... |
| histogram | counts by "bin"; beside it `/left`, `/right` (MindSpore: `/width`), `/statistics` |

Rows with fewer bins, or a smaller tensor, have NaN in the columns that they lack.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from mindpulse.interop.aliases import Alias, resolve
from mindpulse.interop.events.columns import COUNTS, LEFT, RIGHT, STATISTICS, Source
from mindpulse.interop.events.entries import TagInfo
from mindpulse.interop.events.index import FileIndex
from mindpulse.interop.events.tensors import HISTOGRAM, SCALAR
from mindpulse.interop.events.values import MINDSPORE
from mindpulse.interop.tables.exported import axes_and_labels
from mindpulse.series import MAX_TAG_BYTES, SeriesSpec

_AXES = {1: ("index",), 2: ("row", "column")}
_PLUGINS = {0: "scalar", 1: "vector", 2: "map"}
Place = tuple[str, bytes, str]
_Told = dict[Place, tuple[TagInfo, str]]


def sources(indexes: Iterable[FileIndex]) -> dict[str, Source]:
    """Where each series comes from, by its name here.

    A scalar is called as `aliases` says; names that are too long are cut and marked.
    """
    told = _merged(indexes)
    found: dict[str, Source] = {}
    wide = _wide(told)
    inside = {(source.prefix, tag, SCALAR) for source in wide for tag in source.members}
    alone = [place for place in told if place not in inside]
    aliases, _ = resolve(_their_name(place) for place in alone if place[2] == SCALAR)
    for source in wide:
        _add(source, found)
    for place in alone:
        name = _their_name(place)
        alias = aliases[name] if place[2] == SCALAR else Alias("", name, name)
        for source in _of_tag(place, *told[place], alias):
            _add(source, found)
    return dict(sorted(found.items()))


def member(source: Source, name: str) -> int | None:
    """The column that a tag in the files is, None if it is none of this series."""
    for index, tag in enumerate(source.members):
        if _their_name((source.prefix, tag, SCALAR)) == name:
            return index
    return None


def too_wide(indexes: Iterable[FileIndex]) -> list[str]:
    """The tags whose values have too many numbers, or too different ones, for a series."""
    told = _merged(indexes)
    return [_their_name(p) for p, (info, _) in told.items() if not info.is_series]


def _merged(indexes: Iterable[FileIndex]) -> _Told:
    """What all files say of each tag, and in which dialect."""
    told: _Told = {}
    for index in indexes:
        for (tag, kind), info in index.tags.items():
            place = (index.file.prefix, tag, kind)
            whole = TagInfo(statistics=info.statistics)
            told.setdefault(place, (whole, index.dialect.name))[0].join(info)
    return told


def _their_name(place: Place) -> str:
    prefix, tag, _ = place
    name = tag.decode("utf-8", "backslashreplace") or "(no name)"
    return f"{prefix}/{name}" if prefix else name


def _wide(told: _Told) -> list[Source]:
    """Series of which each column is a tag of its own: at least two that always stand together."""
    groups: dict[tuple[str, str, int], list[tuple[Place, str]]] = {}
    for place, (info, _) in told.items():
        base, column = _split(_their_name(place))
        if place[2] == SCALAR and base:
            groups.setdefault((place[0], base, info.company), []).append((place, column))
    found = []
    for (_, base, _), members in groups.items():
        named = axes_and_labels([column for _, column in members])
        if named is None or len(members) < 2 or len(set(named[1])) < len(members):
            continue
        infos = [told[place][0] for place, _ in members]
        dtype = _dtype(*(info.dtype for info in infos))
        spec = SeriesSpec(fitting(base), "vector", "", *named, dtype)
        tags = tuple(place[1] for place, _ in members)
        found.append(Source(spec, *members[0][0], theirs=base, members=tags))
    return found


def _split(name: str) -> tuple[str, str]:
    """The series and the column of a name like "grad_norm/param=a/b.weight"; "" for another."""
    cut = name.rfind("/", 0, max(0, name.find("=")))
    return (name[:cut], name[cut + 1 :]) if cut > 0 else ("", name)


def _dtype(*told: str) -> str:
    return "float32" if set(told) <= {"<f4", "<f2"} else "float64"


def _of_tag(place: Place, info: TagInfo, dialect: str, alias: Alias) -> list[Source]:
    if not info.is_series:
        return []
    if place[2] == HISTOGRAM:
        return _of_histogram(place, info, alias.ours, dialect)
    dims = len(info.shape)
    axes = _AXES.get(dims) or tuple(f"axis{number}" for number in range(dims))
    columns = tuple(tuple(map(str, at)) for at in np.ndindex(info.shape)) if dims else ()
    plugin, dtype = _PLUGINS.get(dims, "tensor"), _dtype(info.dtype)
    spec = SeriesSpec(fitting(alias.ours), plugin, alias.unit, axes, columns, dtype)
    return [Source(spec, *place, info.shape, divide=alias.divide, theirs=alias.theirs)]


def _of_histogram(place: Place, info: TagInfo, name: str, dialect: str) -> list[Source]:
    bins = max(1, *info.shape)
    columns = tuple((str(number),) for number in range(bins))
    right = "width" if dialect == MINDSPORE else "right"
    found = []
    for part, called in ((COUNTS, ""), (LEFT, "/left"), (RIGHT, f"/{right}")):
        plugin = "histogram" if part == COUNTS else "vector"
        spec = SeriesSpec(fitting(name, called), plugin, "", ("bin",), columns)
        found.append(Source(spec, *place, (bins,), part, theirs=name))
    if info.statistics:
        labels = tuple((statistic,) for statistic in info.statistics)
        spec = SeriesSpec(fitting(name, "/statistics"), "vector", "", ("statistic",), labels)
        found.append(Source(spec, *place, (bins,), STATISTICS, theirs=name))
    return found


def fitting(name: str, suffix: str = "") -> str:
    """The name, cut where it is too long; a sum of the whole tells two cut names apart.

    Example:
        >>> fitting("train/loss"), len(fitting("x" * 500))
        ('train/loss', 200)
    """
    raw = name.encode("utf-8", "backslashreplace")
    room = MAX_TAG_BYTES - len(suffix.encode())
    if len(raw) <= room:
        return raw.decode() + suffix
    mark = f"~{zlib.crc32(raw):08x}"
    return raw[: room - len(mark)].decode("utf-8", "ignore") + mark + suffix


def _add(source: Source, found: dict[str, Source]) -> None:
    """Under its name, with a number behind it if another kind of value has that name."""
    number, free = 1, source.spec.tag
    while free in found:
        number += 1
        free = fitting(source.spec.tag, f" ({number})")
    found[free] = source if number == 1 else source.renamed(free)
