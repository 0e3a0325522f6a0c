"""`mindpulse profile`: a window of steps of a running training, profiled into its run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from mindpulse.cli import options
from mindpulse.cli.act import asked, done
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, print_json
from mindpulse.control.verbs import MAX_PROFILED_STEPS
from mindpulse.messages import text
from mindpulse.store.folder import PROFILES, attempt_name, attempts_of, profile_name, rank_name

# In this order: the number is what the control log says.
METRICS = ("pipe", "l2", "memory")
OUTPUT = "ASCEND_PROFILER_OUTPUT"
LOOK_S = 0.2
QUIET_S = 2.0


@click.command("profile")
@options.run_dir
@click.option(
    "--steps",
    "count",
    type=click.IntRange(1, MAX_PROFILED_STEPS),
    default=20,
    show_default=True,
    metavar="N",
    help="How many steps.",
)
@options.rank("all ranks")
@click.option(
    "--metrics",
    type=click.Choice(METRICS),
    default=METRICS[0],
    show_default=True,
    help="Hardware counters of each operator (Ascend): times of the units, L2 cache, or bandwidth.",
)
@click.option(
    "--wait",
    "wait_s",
    type=options.finite(least=0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answers and for the analysis.",
)
@options.lang
@options.as_json
def command(
    run_dir: Path,
    count: int,
    rank: int | None,
    metrics: str,
    wait_s: float,
    lang: str,
    as_json: bool,
) -> None:
    """Ask a running training to profile its next steps with MindSpore's profiler.

    What it writes lands in the run, in `profiles/s000120` of each rank; a process of its own
    analyses it. Exit code 1 says that no profile was taken, or that it did not come in time.
    """
    options.only_run_folder(run_dir, "profile")
    numbers = {
        "steps": float(count),
        "rank": -1.0 if rank is None else float(rank),
        "metrics": float(METRICS.index(metrics)),
    }
    until = time.monotonic() + wait_s
    request, ledger = asked(run_dir, "profile", numbers, None, wait_s, lang, quiet=as_json)
    places: list[Path] = []
    if done(request, ledger):
        folder = run_dir / attempt_name(max(attempts_of(run_dir)))
        places = [
            folder / rank_name(answer.rank) / PROFILES / profile_name(answer.step)
            for answer in ledger.replies[request.seq].values()
            if rank in (None, answer.rank)
        ]
    with busy("waiting for the profile"):
        found = {str(place): analysed(place, until) for place in places}
    if as_json:
        told = {place: str(folder) if folder else None for place, folder in found.items()}
        print_json({"seq": request.seq, "steps": count, "profiles": told})
    else:
        _tell(found, lang)
    if not found or None in found.values():
        click.get_current_context().exit(EXIT_FINDINGS)


def _tell(found: dict[str, Path | None], lang: str) -> None:
    for place, folder in found.items():
        key = "profile.taken" if folder else "profile.late"
        click.echo(text(key, lang, folder=folder or place))


def _sizes(paths: Iterable[Path]) -> Iterator[tuple[str, int]]:
    for path in paths:
        with suppress(OSError):  # the analysis has taken it away again
            yield str(path), path.stat().st_size


def analysed(
    place: Path,
    until: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Any] = time.sleep,
) -> Path | None:
    """The profiler's folder below `place`, once its analysis has written and fallen silent.

    Args:
        until: when to give up, by `clock`; None is returned then.
    """
    seen, since = frozenset[tuple[str, int]](), clock()
    while True:
        results = sorted(place.glob(f"*/{OUTPUT}/*")) if place.is_dir() else []
        files = frozenset(_sizes(results))
        if files != seen:
            seen, since = files, clock()
        if seen and clock() - since >= QUIET_S:
            return results[0].parent.parent
        if clock() >= until:
            return None
        sleep(LOOK_S)
