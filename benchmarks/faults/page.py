"""The tables of docs/fault-benchmark.md: the recipes as they are, and how many runs came of them.

python -m benchmarks.faults.page build/faults
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import table
from benchmarks.faults.recipes import RECIPES, Recipe
from benchmarks.faults.settings import VARIANTS
from benchmarks.faults.split import load_split

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fault-benchmark.md"
MARK = "<!-- {name}: written by `python -m benchmarks.faults.page` -->"


def filled(page: str, name: str, content: str, mark: str = MARK) -> str:
    """The page with new content between the two marks of a name.

    Args:
        mark: of the command that writes it, with {name}.

    Raises:
        ValueError: the page does not have the mark twice.
    """
    mark = mark.format(name=name)
    pieces = page.split(mark)
    if len(pieces) != 3:
        raise ValueError(f"{mark!r} stands {len(pieces) - 1} times in the page, wanted twice")
    return f"{pieces[0]}{mark}\n{content.strip()}\n{mark}{pieces[2]}"


def fault_table() -> str:
    """The faults by category."""
    split = load_split()
    rows = [
        (
            f"`{recipe.name}`",
            recipe.category,
            recipe.what,
            ", ".join(_level(value) for value in recipe.levels.values()),
            recipe.when if isinstance(recipe.when, str) else f"step {recipe.when}",
            _variants(recipe),
            recipe.judged_by.replace("_", " "),
            split.recipes[recipe.name],
        )
        for recipe in sorted(RECIPES.values(), key=lambda r: (r.category or "", r.name))
        if recipe.category
    ]
    head = ("recipe", "category", "what is done", "levels", "label", "variants", "harm", "part")
    return _left(table(head, rows))


def healthy_table() -> str:
    """The healthy recipes."""
    split = load_split()
    rows = [
        (f"`{recipe.name}`", recipe.what, _variants(recipe), split.recipes.get(recipe.name, "both"))
        for recipe in sorted(RECIPES.values(), key=lambda r: r.name)
        if not recipe.category
    ]
    return _left(table(("recipe", "what is done", "variants", "part"), rows))


def counts_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """How many runs there are of each verdict, by part and category."""
    count = Counter(
        (line["category"] or "healthy", line["split"], line["verdict"]) for line in lines
    )
    rows = []
    for category in sorted({key[0] for key in count}):
        row: list[object] = [category]
        for part in ("tune", "test"):
            good = count[category, part, "healthy"]
            row += [count[category, part, "faulty"], count[category, part, "relabelled"], good]
        rows.append(row)
    rows.append(["all", *(sum(int(str(row[i])) for row in rows) for i in range(1, 7))])
    head = ["category"]
    for part in ("tune", "test"):
        head += [f"{part}: faulty", f"{part}: relabelled", f"{part}: healthy"]
    return table(head, rows)


def relabelled_list(lines: Sequence[Mapping[str, Any]]) -> str:
    """Which groups did no significant harm, with their p-values."""
    found = {
        (line["variant"], line["recipe"], line["severity"]): line["p_value"]
        for line in lines
        if line["verdict"] == "relabelled"
    }
    rows = [(f"`{r}`", v, s, f"{p:.3f}") for (v, r, s), p in sorted(found.items())]
    return _left(table(("recipe", "variant", "severity", "p"), rows))


def _left(text: str) -> str:
    """Words are easier to read from the left."""
    lines = text.splitlines()
    lines[1] = lines[1].replace("-:", "--")
    return "\n".join(lines)


def _level(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"`{value}`" if isinstance(value, str) else str(value)


def _variants(recipe: Recipe) -> str:
    return "all" if set(recipe.variants) == set(VARIANTS) else ", ".join(recipe.variants)


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(description="fills the tables of docs/fault-benchmark.md")
    options.add_argument("folder", type=Path, nargs="?", help="a recordings folder, for the counts")
    folder = options.parse_args().folder
    page = PAGE.read_text("utf-8")
    page = filled(page, "faults", fault_table())
    page = filled(page, "healthy", healthy_table())
    if folder is not None:
        text = (folder / "index.jsonl").read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        page = filled(page, "counts", counts_table(lines))
        page = filled(page, "relabelled", relabelled_list(lines))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
