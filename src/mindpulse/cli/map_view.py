"""Attention maps in a terminal: the heads of one layer side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mindpulse.cli.halfblock import MAX_CELLS, picture, shades
from mindpulse.report.data import AttentionMap
from mindpulse.report.maps import brightest
from mindpulse.report.scales import format_number

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2
LEAST_CELLS = 16


def print_layer(maps: Sequence[AttentionMap], out: Console, what: str = "") -> None:
    """Prints the maps of one layer: colours on a terminal, shades of characters elsewhere.

    Args:
        what: the heading; without it that of an attention layer.
    """
    from rich.markup import escape

    top = brightest(maps)
    first = maps[0]
    out.print()
    heading = what or f"attention of layer {first.layer}"
    out.print(f"[bold]{escape(heading)}[/], step {format_number(first.step)}")
    out.print(
        f"rows are queries, columns are keys; bright is {format_number(float(f'{top:.3g}'))}, "
        "dark is 0, on a square-root scale"
    )
    colours = out.color_system in ("256", "truecolor")  # sixteen colours do not rise in lightness
    wide = 1 if colours else 2  # a shade is two characters wide, to look square
    for group in _fitting(maps, out.width, wide):
        out.print()
        if colours:
            _print_colours(group, top, out)
        else:
            _print_shades(group, top, out)


def _fitting(
    maps: Sequence[AttentionMap], width: int, wide: int
) -> Iterator[Sequence[AttentionMap]]:
    """As many heads in a row as the window has room for."""
    cells = min(MAX_CELLS, maps[0].values.shape[1])
    per_row = max(1, (width + GAP) // (cells * wide + GAP))
    for start in range(0, len(maps), per_row):
        yield maps[start : start + per_row]


def _limit(out: Console, wide: int) -> int:
    return max(LEAST_CELLS, min(MAX_CELLS, out.width // wide))


def _print_colours(maps: Sequence[AttentionMap], top: float, out: Console) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, GAP, 0, 0))
    for m in maps:
        grid.add_column(f"head {m.head}")
    limit = _limit(out, 1)
    grid.add_row(*(f"head {m.head}" for m in maps))
    grid.add_row(*(picture(m.values, top, limit) for m in maps))
    out.print(grid)


def _print_shades(maps: Sequence[AttentionMap], top: float, out: Console) -> None:
    unicode = out.encoding.lower().startswith("utf")
    limit = _limit(out, 2)
    blocks = [shades(m.values, top, limit, unicode).split("\n") for m in maps]
    widths = [len(block[0]) for block in blocks]
    names = [f"head {m.head}".ljust(w) for m, w in zip(maps, widths, strict=True)]
    out.print((" " * GAP).join(names).rstrip(), markup=False)
    for lines in zip(*blocks, strict=True):
        out.print((" " * GAP).join(lines).rstrip(), markup=False)
