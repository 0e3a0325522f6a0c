"""From parameter names to the layers that an engineer thinks in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindpulse.catalogue.layers import NUMBERED, layer_norms

__all__ = ["group_parameters", "layer_norms"]


def group_parameters(names: Sequence[str]) -> dict[str, list[int]]:
    """Layer -> positions of its parameters, in order of first appearance.

    The first number in a dotted name is the layer; where several stacks are numbered (an encoder
    and a decoder) the name of the stack stays. What has no number goes by its first word.

    Example:
        >>> group_parameters(["bert.embed.w", "bert.layers.0.q.w", "bert.layers.1.q.w"])
        {'embed': [0], 'layer 0': [1], 'layer 1': [2]}
    """
    short = _without_common_prefix(names)
    found = [NUMBERED.match(name) for name in short]
    stems = {match["stem"] for match in found if match}
    groups: dict[str, list[int]] = {}
    for position, (name, match) in enumerate(zip(short, found, strict=True)):
        groups.setdefault(_layer(name, match, len(stems) > 1), []).append(position)
    return groups


def _layer(name: str, match: re.Match[str] | None, several_stacks: bool) -> str:
    if match is None:
        return name.split(".", 1)[0]
    return f"{match['stem']} {match['index']}" if several_stacks else f"layer {match['index']}"


def _without_common_prefix(names: Sequence[str]) -> list[str]:
    parts = [name.split(".") for name in names]
    shared = 0
    # The last two words and every number stay: they tell parameters apart.
    shortest = min((len(p) for p in parts), default=0) - 2
    while shared < shortest and len({p[shared] for p in parts}) == 1:
        if parts[0][shared].isdigit() or parts[0][shared + 1].isdigit():
            break
        shared += 1
    return [".".join(p[shared:]) for p in parts]
