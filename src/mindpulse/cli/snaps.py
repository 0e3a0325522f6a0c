"""Tensors that were snapped into a run, as `mindpulse analyze` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mindpulse.cli.output import console, print_json
from mindpulse.debugging.peek import Peek
from mindpulse.debugging.snaps import Snap, snaps_in
from mindpulse.errors import UsageError
from mindpulse.report.data import AttentionMap
from mindpulse.store.run import Run

SHOWN = 20
# How far the weights of a row may be from adding up to 1: half precision keeps three digits.
SUM_TOLERANCE = 0.02


def chosen_snap(run: Run, name: str) -> Snap:
    """The last snap of a name.

    Raises:
        UsageError: there is none; the message lists those that there are.
    """
    snaps = snaps_in(run.snapshots())
    named = [snap for snap in snaps if snap.name == name]
    if not named:
        there = ", ".join(dict.fromkeys(snap.name for snap in snaps)) or "none"
        raise UsageError(f"no snap {name!r} in this run; there are: {there}")
    return named[-1]


def as_object(snap: Snap) -> dict[str, Any]:
    """A snap as plain values."""
    return {
        "name": snap.name,
        "step": snap.step,
        "shape": list(snap.shape),
        "dtype": snap.dtype,
        "file": str(snap.path),
    }


def print_snaps(snaps: Sequence[Snap]) -> None:
    """Prints a line for each of the last ones."""
    if not snaps:
        return
    click.echo("\nsnapped tensors (--snap NAME shows one)")
    for snap in snaps[-SHOWN:]:
        click.echo(f"  {snap.name}  step {snap.step:,}  {snap.dtype} {snap.shape}")
    if len(snaps) > SHOWN:
        click.echo(f"  and {len(snaps) - SHOWN} earlier ones")


def show_snap(snap: Snap, as_json: bool) -> None:
    """Prints what is in one; attention probabilities head by head."""
    found = snap.read()
    if as_json:
        print_json(as_object(snap) | numbers(found))
        return
    click.echo(f"step {snap.step:,}  {snap.path}")
    click.echo(repr(found))
    maps = heads(found.array)
    if maps is not None:
        from mindpulse.cli.map_view import print_layer

        print_layer(
            [AttentionMap(snap.name, h, snap.step, m) for h, m in enumerate(maps)],
            console(),
            snap.name,
        )


def numbers(found: Peek) -> dict[str, Any]:
    """The statistics as plain values."""
    return {
        "device": found.device,
        "size": found.size,
        **{key: getattr(found, key) for key in ("min", "max", "mean", "std", "nonfinite", "zeros")},
        "quantiles": {f"{share:g}": value for share, value in found.quantiles.items()},
    }


def heads(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """(head, query, key) of attention probabilities, of the first example; None of anything else.

    Rows of weights from 0 up that add up to 1, or to 0 where a query sees nothing, are taken for
    probabilities.
    """
    if array.ndim not in (3, 4) or not array.size or array.dtype.kind != "f":
        return None
    maps = np.asarray(array[0] if array.ndim == 4 else array, np.float64)
    sums = maps.sum(-1)
    sane = np.isfinite(sums).all() and (maps >= 0).all()
    near = (np.abs(sums - 1) < SUM_TOLERANCE) | (sums == 0)
    return maps if sane and near.all() and sums.any() else None
