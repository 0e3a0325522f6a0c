"""The option --deliver of `mindpulse watch`, and what it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from mindpulse.deliver.service import Deliveries
from mindpulse.deliver.settings import load_receivers
from mindpulse.watcher import Event

deliver_option = click.option(
    "--deliver",
    "deliver_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="MINDPULSE_DELIVER",
    help="TOML file of receivers of alerts: chat, e-mail, Alertmanager, webhook.",
)


@contextmanager
def delivering(
    deliver_file: Path | None, run_dirs: Sequence[Path]
) -> Iterator[Callable[[Path, Event], None]]:
    """Gives what has to be called with each run and event; without a file that does nothing.

    Args:
        run_dirs: the runs that are known; others begin with their first event.

    Raises:
        UsageError: the file is wrong.
    """
    if deliver_file is None or not str(deliver_file).strip():
        yield lambda run_dir, event: None
        return
    targets = load_receivers(deliver_file)
    with Deliveries(targets, run_dirs, report=_say) as deliveries:
        yield lambda run_dir, event: deliveries.deliver(event, run_dir)
    for tally in deliveries.tallies:
        if tally.sent or not tally.whole:
            _say(tally.sentence())


def _say(words: str) -> None:
    click.echo(f"mindpulse: {words}", err=True)
