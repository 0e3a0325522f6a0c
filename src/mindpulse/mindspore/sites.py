"""A site is one planted probe: where it is, which slot it fills, and what its rows mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mindspore import Parameter
from numpy.typing import NDArray

from mindpulse.catalogue.weight import relative
from mindpulse.mindspore.probes.forward import SHAPE
from mindpulse.mindspore.ring import Slot, Table
from mindpulse.mindspore.structure import Place

Columns = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows of one series from one site.

    Attributes:
        tag: the series.
        columns: labels of the site's columns; () for a scalar.
        values: (T, columns).
    """

    tag: str
    columns: Columns
    values: NDArray[Any]


Decode = Callable[[Table], list[Piece]]


def _nothing(table: Table) -> list[Piece]:
    return []


@dataclass(slots=True, eq=False)
class Site:
    """One planted probe.

    Attributes:
        slot: the rows that it writes.
        tier: the smallest variant of the step that has it.
        place: where it is planted.
        decode: turns its rows into pieces of series.
        label: of the layer or cell, as in the series' columns.
        map: (head, query, key) attention of the first sample; None where none is kept.
        shape: (heads, queries, keys) of an attention that ran.
        batch: of that attention.
        bits: of a number as the model computes it here, 16, 32 or 64; 0 before it ran.
        ran: whether any row of it was seen.
    """

    slot: Slot
    place: Place
    decode: Decode = _nothing
    label: str = ""
    tier: int = 0
    map: Parameter | None = None
    shape: tuple[int, int, int] | None = None
    batch: int = 0
    bits: int = 0
    ran: bool = False


@dataclass(slots=True, eq=False)
class TapMember:
    """A tap as a member of the variants: in from its site's tier on, until it is dropped."""

    tap: Any
    site: Site
    dropped: bool = False

    def set(self, tier: int) -> None:
        """In or out, as variant `tier` wants it."""
        if tier >= self.site.tier and not self.dropped:
            self.tap.on()
        else:
            self.tap.off()


@dataclass(frozen=True, slots=True)
class Fallback:
    """A kind of probe that can be left out of the step, and put back."""

    kind: str
    out: Callable[[], None]
    back: Callable[[], None]


def decode_groups(slot: Slot) -> Decode:
    """For slots of plain values: each group is a series of the site's columns."""

    def decode(table: Table) -> list[Piece]:
        return [
            Piece(g.tag, g.columns, table.values[:, g.start : g.start + g.width])
            for g in slot.groups
        ]

    return decode


def decode_values(site: Site) -> Decode:
    """The same for slots whose last value is the bits of a number."""
    plain = decode_groups(site.slot)

    def decode(table: Table) -> list[Piece]:
        if len(table.steps):
            site.bits = int(np.nan_to_num(table.values[-1, -1]))
        return plain(table)

    return decode


def decode_attention(site: Site, cap: int) -> Decode:
    """For attention: as many heads as the data tell, each a column (layer, head)."""

    def decode(table: Table) -> list[Piece]:
        if not len(table.steps):
            return []
        heads, queries, keys, batch, bits = (int(size) for size in table.values[-1, :SHAPE])
        site.shape, site.batch, site.bits = (heads, queries, keys), batch, bits
        columns = tuple((site.label, str(head)) for head in range(heads))
        return [
            Piece(g.tag, columns, table.values[:, g.start : g.start + min(heads, cap)])
            for g in site.slot.groups
        ]

    return decode


def decode_gradients(names: Sequence[str], rates: int) -> Decode:
    """For the optimizer: norms of the gradients, then the learning rates."""
    columns = tuple((name,) for name in names)

    def decode(table: Table) -> list[Piece]:
        found = [Piece("grad_norm_param", columns, roots(table.values[:, : len(names)]))]
        if rates:
            groups = () if rates == 1 else tuple((str(group),) for group in range(rates))
            found.append(Piece("learning_rate", groups, table.values[:, len(names) :]))
        return found

    return decode


def decode_total(tag: str) -> Decode:
    """For a half square: one norm."""

    def decode(table: Table) -> list[Piece]:
        return [Piece(tag, (), roots(table.values))]

    return decode


def decode_norms(names: Sequence[str], tags: Sequence[str]) -> Decode:
    """For half squares: one norm for each parameter and tag, tag after tag."""
    columns = tuple((name,) for name in names)

    def decode(table: Table) -> list[Piece]:
        return [
            Piece(tag, columns, roots(table.values[:, i * len(names) :][:, : len(names)]))
            for i, tag in enumerate(tags)
        ]

    return decode


def decode_updates(names: Sequence[str]) -> Decode:
    """For half squares of changes, then of the weights before: their ratio."""
    columns = tuple((name,) for name in names)

    def decode(table: Table) -> list[Piece]:
        changes, befores = np.split(roots(table.values), 2, axis=1)
        return [Piece("weight_update_ratio", columns, relative(changes, befores))]

    return decode


def roots(halves: NDArray[np.float32]) -> NDArray[np.float64]:
    """L2 norms from sum(x ** 2) / 2."""
    return np.asarray(np.sqrt(2.0 * halves.astype(np.float64)), np.float64)
