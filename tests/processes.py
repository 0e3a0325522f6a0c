"""Child processes that end with the test, whatever becomes of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest.mock import patch


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A child in text mode that hears Ctrl-C.

    A job in the background ignores Ctrl-C, and so do all its children: tests that run there would
    wait for ever.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(list(command), text=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()


def forking() -> Any:
    """A context for processes that start quickly: forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["killed_writer", "killed_watcher", "tailing"])
    # The process that is forked from does not know our sys.path until after it has imported these.
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with patch.dict(os.environ, PYTHONPATH=path.rstrip(os.pathsep)):
        forkserver.ensure_running()
    return context


def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits until something is true, and returns it as it is then."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()
