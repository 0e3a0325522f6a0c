"""Live views one after the other; the caller shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mindpulse.errors import MindPulseError
from mindpulse.notebook.live import Live, Waiting
from mindpulse.notebook.look import Eye


def views(
    eye: Eye,
    seconds: float,
    every: float,
    lang: str,
    *,
    stopwatch: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Live | Waiting]:
    """A view now and then again, until the seconds are over or the training has ended.

    Args:
        seconds: 0 for a single view.
        every: seconds between two views.

    Raises:
        MindPulseError: the single view cannot be made; while there is time left, a folder in
            which nothing is recorded yet is waited for.
    """
    until = stopwatch() + seconds
    while True:
        view = _view(eye, lang, waits=stopwatch() < until)
        yield view
        left = until - stopwatch()
        if left <= 0 or (isinstance(view, Live) and view.ended):
            return
        sleep(min(every, left))


def _view(eye: Eye, lang: str, waits: bool) -> Live | Waiting:
    try:
        return Live(eye.look(), lang)
    except MindPulseError:
        if not waits or _holds_something(eye):
            raise
        return Waiting(eye.path, lang)


def _holds_something(eye: Eye) -> bool:
    return eye.path.is_file() or (eye.path.is_dir() and any(eye.path.iterdir()))
