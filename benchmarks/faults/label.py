"""Facts first: a run counts as faulty only if it did harm.

The final clean held-out loss of a group (model, recipe, severity; all its seeds) is compared with
that of the plain runs of the same model by a one-sided permutation test: exact, over all ways to
draw as many runs as the group has. With few seeds the groups are not corrected for their number:
one that is let through by chance counts as a fault that the rules then have to find, which is to
their disadvantage. Faults that harm no loss are judged by what they cost: time or memory. A loss
that is not finite is worse than any number.

While a recording is not complete, a group may have too few runs for any p-value of 0.05. It is left
out of the index, unless `--provisional` is given: then it counts as faulty where each of its runs
is worse than every plain run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.split import load_split

ALPHA = 0.05
MOST_DRAWS = 20_000  # beyond that many ways the test draws at random
FIGURES = {"loss": "final_loss", "step_time": "step_time_s", "memory": "rss_growth_bytes"}


def permutation_p(group: Sequence[float], others: Sequence[float]) -> float:
    """One-sided p-value that the mean of `group` is no greater than that of `others`.

    Exact up to 20,000 ways to draw the group out of all runs, else as many random draws, with the
    observed one counted. What is not finite counts as greater than all else.

    Raises:
        ValueError: one of the two is empty.

    Example:
        >>> permutation_p([3.0, 4.0], [1.0, 2.0, 1.5])
        0.1
    """
    if not group or not others:
        raise ValueError(f"{len(group)} and {len(others)} runs: each side needs at least one")
    values = _finite([*group, *others])
    size, total = len(group), len(values)
    observed = values[:size].mean()
    if comb(total, size) <= MOST_DRAWS:
        draws = np.array(list(itertools.combinations(range(total), size)))
        means = values[draws].mean(axis=1)
        return float((means >= observed - 1e-12).mean())
    rng = np.random.default_rng(0)
    means = np.array([rng.permutation(values)[:size].mean() for _ in range(MOST_DRAWS)])
    return float((1 + (means >= observed - 1e-12).sum()) / (1 + MOST_DRAWS))


def _finite(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = np.array(values, np.float64)
    known = found[np.isfinite(found)]
    worst = float(np.abs(known).max()) if known.size else 1.0
    found[~np.isfinite(found)] = 10.0 * max(worst, 1.0)
    return found


def labelled(
    results: Iterable[Mapping[str, Any]], provisional: bool = False
) -> list[dict[str, Any]]:
    """Results of runs as lines of the index, with verdict and p-value.

    Args:
        results: one mapping for each run, as `record` writes them.
        provisional: groups that are too small for the test are judged all the same.
    """
    runs = sorted((dict(result) for result in results), key=lambda run: run["id"])
    split = load_split()
    plain: dict[str, list[dict[str, Any]]] = defaultdict(list)
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[run["variant"], run["recipe"], run["severity"]].append(run)
        if run["recipe"] == "plain":
            plain[run["variant"]].append(run)
    for (variant, _, _), members in groups.items():
        p = _p_of(members, plain[variant])
        for run in members:
            run["p_value"] = p
            run["verdict"] = _verdict(run, p, _least_p(members, plain[variant]), provisional)
            run["split"] = split.of(run["recipe"], variant)
    return [_line(run) for run in runs if run["verdict"]]


def _least_p(members: Sequence[Any], plain: Sequence[Any]) -> float:
    """The smallest p-value that so many runs can have."""
    return 1.0 / comb(len(members) + len(plain), len(members))


def _p_of(members: Sequence[Mapping[str, Any]], plain: Sequence[Mapping[str, Any]]) -> float | None:
    figure = FIGURES.get(members[0]["judged_by"])
    if figure is None or not plain or members[0]["recipe"] == "plain":
        return None
    return permutation_p(
        [_number(run[figure]) for run in members], [_number(run[figure]) for run in plain]
    )


def _verdict(run: Mapping[str, Any], p: float | None, least: float, provisional: bool) -> str:
    if run["kind"] == "healthy":
        return "healthy"
    if run["judged_by"] == "rank":  # a rank that is gone is harm by itself
        return "faulty"
    if least > ALPHA:
        if not provisional:
            return ""
        return "faulty" if p is not None and p <= least + 1e-9 else "relabelled"
    return "faulty" if p is not None and p <= ALPHA else "relabelled"


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _line(run: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "id", "run", "model", "recipe", "severity", "seed", "steps", "kind", "label_step",
        "category", "layer", "final_loss", "split", "verdict", "p_value", "variant", "judged_by",
        "step_time_s", "rss_growth_bytes",
    )  # fmt: skip
    return {name: run[name] for name in names}


def read_results(root: Path) -> list[dict[str, Any]]:
    """The result files of a recordings folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(root.glob("results/*.json"))]


def write_index(root: Path, provisional: bool = False) -> list[dict[str, Any]]:
    """Labels all runs of a folder and writes its index.jsonl; returns the lines."""
    lines = labelled(read_results(root), provisional)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    hidden = root / f".index.jsonl.{os.getpid()}"
    hidden.write_text(text, "utf-8")
    hidden.replace(root / "index.jsonl")
    return lines


def summary(lines: Sequence[Mapping[str, Any]]) -> str:
    """How many runs there are, and what became of the faults."""
    count: dict[tuple[str, str], int] = defaultdict(int)
    for line in lines:
        count[line["split"], line["verdict"]] += 1
    rows = [f"{split:5} {verdict:10} {n:4}" for (split, verdict), n in sorted(count.items())]
    lost = defaultdict(list)
    for line in lines:
        if line["verdict"] == "relabelled":
            lost[line["variant"], line["recipe"], line["severity"]].append(line["id"])
    rows += [f"relabelled: {' '.join(key)} ({len(ids)} runs)" for key, ids in sorted(lost.items())]
    odd = {
        (line["variant"], line["recipe"])
        for line in lines
        if line["kind"] == "healthy" and line["p_value"] is not None and line["p_value"] <= ALPHA
    }
    rows += [f"healthy, but worse than plain: {' '.join(key)}" for key in sorted(odd)]
    return "\n".join(rows)


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(description="labels the runs of a recordings folder")
    options.add_argument("folder", type=Path)
    options.add_argument("--provisional", action="store_true", help="groups that are too small too")
    given = options.parse_args()
    lines = write_index(given.folder, given.provisional)
    print(summary(lines))
    missing = len(read_results(given.folder)) - len(lines)
    if missing:
        print(f"left out: {missing} runs of groups that are too small for the test")


if __name__ == "__main__":
    main()
