"""`mindpulse demo`: a real small training under MindPulse, started by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

FAULTS = ("lr-explosion", "attention-collapse", "nan-batch", "frozen-layer")


@click.command("demo")
@click.argument("kind", type=click.Choice(["bert", "vit"]))
@click.option("--fault", type=click.Choice(FAULTS), help="Fault to inject on the way.")
@click.option("--act", is_flag=True, help="Let the watcher act: lower the learning rate, stop.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Optimizer steps [default: 300, some minutes].",
)
@click.option(
    "--mode",
    type=click.Choice(["graph", "jit", "pynative"]),
    default="graph",
    show_default=True,
    help="How MindSpore runs the training.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Random seed.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Run folder [default: a new one below demo-runs].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON at the end.")
def command(kind: str, **choices: Any) -> None:
    """Train a small BERT on English text, or a small ViT on handwritten digits.

    A watcher judges the run in a second process. At the end stand the health report, its path,
    and what to try next. Exit code 1 says that an alert above "info" was raised,
    other than about the speed.
    """
    from mindpulse import demo

    if code := demo.run(kind, **choices):
        click.get_current_context().exit(code)
