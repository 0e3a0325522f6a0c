"""From numbers to colours that keep their order in grey, in print and for the colour-blind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Nine stops of "viridis" (Smith and van der Walt 2015, CC0): lightness rises evenly.
_STOPS = np.array(
    [
        [68, 1, 84],
        [71, 44, 122],
        [59, 81, 139],
        [44, 113, 142],
        [33, 144, 141],
        [39, 173, 129],
        [92, 200, 99],
        [170, 220, 50],
        [253, 231, 37],
    ],
    np.float64,
)
NOT_FINITE = (229, 29, 107, 255)  # does not occur in the palette
NO_ROW = (0, 0, 0, 0)


def paint(position: NDArray[Any], not_finite: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Colours for positions on a scale.

    Args:
        position: any shape, 0 (dark) to 1 (bright), clipped; NaN means "no row", transparent.
        not_finite: same shape; True marks a NaN or infinity that was recorded.

    Returns:
        shape of `position` plus (4,), uint8 RGBA.

    Example:
        >>> paint(np.array([0.0, np.nan]))[:, 3].tolist()
        [255, 0]
    """
    x = np.asarray(position, np.float64)
    missing = np.isnan(x)
    place = np.clip(np.where(missing, 0.0, x), 0.0, 1.0) * (len(_STOPS) - 1)
    channels = [np.interp(place, np.arange(len(_STOPS)), _STOPS[:, c]) for c in range(3)]
    opaque = np.full(x.shape, 255.0)
    pixels: NDArray[np.uint8] = np.stack([*channels, opaque], axis=-1).round().astype(np.uint8)
    pixels[missing] = NO_ROW
    if not_finite is not None:
        pixels[not_finite] = NOT_FINITE
    return pixels


def css(pixel: tuple[int, ...]) -> str:
    """The colour as "#rrggbb".

    Example:
        >>> css(NOT_FINITE)
        '#e51d6b'
    """
    return "#" + "".join(f"{int(channel):02x}" for channel in pixel[:3])
