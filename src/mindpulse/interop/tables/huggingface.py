"""What the Hugging Face Trainer leaves: `trainer_state.json`, and its lines on the console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mindpulse.errors import FormatError
from mindpulse.interop.aliases import HUGGING_FACE
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected
from mindpulse.interop.numbers import step_of
from mindpulse.interop.source import read_text

TITLE = "a trainer_state.json of the Hugging Face Trainer"
STATE_NAME = "trainer_state.json"
_HISTORY = b'"log_history"'
_KEPT = ("global_step", "max_steps", "epoch", "best_metric", "num_train_epochs", "train_batch_size")


def sniff(head: bytes, path: Path) -> bool:
    """Whether it is a trainer state: a JSON object with a history, or called so."""
    start = head.lstrip()
    return start.startswith(b"{") and (_HISTORY in head or path.name == STATE_NAME)


def read(path: Path) -> LoadedRun:
    """The run. NaN and infinity stand bare in the file, which is not strict JSON.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no trainer state, or cut, or its history is empty.
    """
    state = load_json(path)
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise FormatError(f"{path} has no list 'log_history': it is no trainer_state.json")
    collector = collected(path, HUGGING_FACE, "hugging-face-trainer-state")
    collector.tags.update({name: str(state[name]) for name in _KEPT if state.get(name) is not None})
    for position, entry in enumerate(history):
        _take(collector, position, entry)
    return collector.finish()


def load_json(path: Path) -> Any:
    """The content of a JSON file; NaN and Infinity are understood.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no JSON; the message says where.
    """
    try:
        return json.loads(read_text(path))
    except RecursionError:
        raise FormatError(f"{path}: JSON nested too deep to be a record of a training") from None
    except ValueError as error:
        raise FormatError(
            f"{path} is not whole JSON: {error}; if it is being written, try again"
        ) from None


def as_number(value: object) -> float | None:
    """A JSON number as a float; None for anything else, true and false too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of 309 digits
        return None


def _take(collector: Collector, position: int, entry: object) -> None:
    if not isinstance(entry, dict):
        collector.refuse("entries", repr(entry))
        return
    step = step_of(as_number(entry.get("step")))
    if step is None:
        collector.refuse("entries without a step", f"entry {position}: {entry}")
        return
    values: dict[str, float] = {}
    for name, value in entry.items():
        found = as_number(value)
        if found is not None and name != "step":
            values[name] = found
    collector.add(step, values)
