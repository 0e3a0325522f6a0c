"""Which recipes rules may be tuned on, and which they are tested on: decided before any tuning.

Within each category the recipes stand in the order of the SHA-256 of their names and go to the two
parts in turn; the healthy ones too. The plain runs, one recipe for all variants, are split by
variant in the same way. `split.toml` keeps the outcome, so that later changes cannot move it.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

FILE = Path(__file__).with_name("split.toml")
PARTS = ("tune", "test")
BY_VARIANT = "plain"
HEAD = """\
# Written by `python -m benchmarks.faults.split --write` before any rule was tuned.
# Recipe -> part; the plain runs are split by variant.
"""


@dataclass(frozen=True)
class Split:
    """The parts.

    Attributes:
        recipes: recipe -> "tune" or "test".
        plain: variant -> the part of its plain runs.
    """

    recipes: Mapping[str, str]
    plain: Mapping[str, str]

    def of(self, recipe: str, variant: str) -> str:
        """The part of a run.

        Raises:
            KeyError: the split does not know the recipe or the variant.
        """
        table = self.plain if recipe == BY_VARIANT else self.recipes
        name = variant if recipe == BY_VARIANT else recipe
        if name not in table:
            raise KeyError(f"{name!r} is not in {FILE.name}: add it with --write, before tuning")
        return table[name]


def parted(names: list[str], first: int = 0) -> dict[str, str]:
    """Names to parts in turn, in the order of their hashes.

    Args:
        first: the part that begins, 0 or 1.
    """
    ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return {name: PARTS[(first + place) % 2] for place, name in enumerate(ordered)}


def make_split() -> Split:
    """The split of the recipes as they are now."""
    from benchmarks.faults.recipes import RECIPES

    groups: dict[str, list[str]] = defaultdict(list)
    for recipe in RECIPES.values():
        if recipe.name != BY_VARIANT:
            groups[recipe.category or "healthy"].append(recipe.name)
    recipes: dict[str, str] = {}
    for place, category in enumerate(sorted(groups)):
        recipes |= parted(groups[category], place % 2)
    return Split(dict(sorted(recipes.items())), parted(list(RECIPES[BY_VARIANT].variants)))


@cache
def load_split() -> Split:
    """The split that is kept in the repository."""
    found = tomllib.loads(FILE.read_text("utf-8"))
    return Split(found["recipes"], found[BY_VARIANT])


def write(split: Split) -> None:
    """Writes `split.toml`."""
    lines = [HEAD, "[recipes]"]
    lines += [f'{name} = "{part}"' for name, part in split.recipes.items()]
    lines += ["", f"[{BY_VARIANT}]"]
    lines += [f'{name} = "{part}"' for name, part in split.plain.items()]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(description="shows the split, or makes it anew")
    options.add_argument("--write", action="store_true", help="make it anew: only before tuning")
    if options.parse_args().write:
        write(make_split())
    print(FILE.read_text("utf-8"), end="")


if __name__ == "__main__":
    main()
