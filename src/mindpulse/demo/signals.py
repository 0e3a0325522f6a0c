"""Ctrl-C in a process that has loaded MindSpore."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and a polite kill raise KeyboardInterrupt, so that `finally` and `with` do their work.

    MindSpore's data pipeline puts handlers of its own in place when it feeds a training: with them
    the process dies at once, and a watcher that it started would be left behind.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
