"""What the finished profiles of a run tell, as rows beside those of the training.

A profile lies in `profiles/s000120` of a rank. When its analysis has fallen silent it is read once,
in a thread of its own, and what it told is kept beside it in `figures.json`, so that no later
watcher reads it again. The row stands at the first step of the window.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindpulse.ascend.attention import is_attention
from mindpulse.ascend.profile import profiles_below, read_profile
from mindpulse.catalogue import MEASURES
from mindpulse.errors import MindPulseError
from mindpulse.store.folder import PROFILES, attempts_of, ranks_of
from mindpulse.watcher.beside import Beside
from mindpulse.watcher.places import folders_in

FIGURES = "figures.json"
OUTPUT = "ASCEND_PROFILER_OUTPUT"
L2 = "l2_hit_rate"
QUIET_S = 3.0
# So long the analysis of a profile may take after the run has ended.
PATIENCE_S = 1800.0
_NAME = re.compile(r"s(\d{6,})")


@dataclass(frozen=True, slots=True)
class _Found:
    """A profile of a rank that nobody has read yet."""

    folder: Path
    rank: int
    attempt: int
    step: int


def figures_of(folder: Path) -> dict[str, Any]:
    """What a profile tells: tag -> number; of the L2 hits a number for each attention operator.

    Where it tells nothing because its files are damaged: "problem" -> what is wrong.

    Raises:
        MindPulseError: it cannot be read.
    """
    told: dict[str, Any] = {}
    problems: list[str] = []
    for place in profiles_below(folder):
        profile = read_profile(place)
        problems += [problem for file in profile.files for problem in file.problems]
        numbers = {tag: value for tag, value in profile.figures().items() if tag != L2}
        rates = {n: r for n, r in sorted(profile.l2_by_operator().items()) if is_attention(n)}
        for tag, value in [*numbers.items(), (L2, rates)]:
            if value != {}:
                told.setdefault(tag, value)
    return told or ({"problem": problems[0]} if problems else {})


class Profiles:
    """The profiles of one run.

    Args:
        folder: of the run.
        beside: takes the rows.
        tell: takes a sentence about a profile that cannot be read.
        at_once: read here and now, in no other thread.
    """

    def __init__(
        self,
        folder: Path,
        beside: Beside,
        tell: Callable[[str], None],
        *,
        at_once: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._beside, self._tell = folder, beside, tell
        self._at_once, self._clock = at_once, clock
        self._done: set[Path] = set()
        self._awaited = False
        self._reading: tuple[_Found, threading.Thread, dict[str, Any]] | None = None

    def look(self) -> None:
        """Reads one profile that is finished; hands on what another look had begun to read."""
        if self._reading is not None:
            found, thread, told = self._reading
            if thread.is_alive():
                return
            self._reading = None
            self._take(found, told)
        for found in self._unread():
            told = {}
            if self._at_once:
                _read(found.folder, told)
                self._take(found, told)
                continue
            thread = threading.Thread(
                target=_read, args=(found.folder, told), name="mindpulse-profile", daemon=True
            )
            self._reading = (found, thread, told)
            thread.start()
            return

    @property
    def awaited(self) -> bool:
        """A profile is being read, or was begun lately and is not finished."""
        return self._awaited or self._reading is not None

    def _unread(self) -> Iterator[_Found]:
        self._awaited = False
        for attempt, attempt_dir in attempts_of(self._folder).items():
            for rank, folder in ranks_of(attempt_dir).items():
                for place in folders_in(folder / PROFILES):
                    step = _NAME.fullmatch(place.name)
                    if step and place not in self._done and self._is_ready(place):
                        yield _Found(place, rank, attempt, int(step[1]))

    def _is_ready(self, place: Path) -> bool:
        if (place / FIGURES).exists():
            self._done.add(place)
            return False
        now = self._clock()
        try:
            begun = place.stat().st_mtime
            times = [path.stat().st_mtime for path in place.glob(f"*/{OUTPUT}/*")]
        except OSError:  # the analysis has taken it away again
            begun, times = now, []
        if times and max(times) < now - QUIET_S:
            return True
        self._awaited = self._awaited or now - max([begun, *times]) < PATIENCE_S
        return False

    def _take(self, found: _Found, told: Mapping[str, Any]) -> None:
        self._done.add(found.folder)
        if "problem" in told:
            self._tell(f"{found.folder} cannot be read: {told['problem']}")
        for tag, value in told.items():
            if tag not in MEASURES:
                continue
            rates = value if isinstance(value, dict) else {}
            spec = MEASURES[tag].spec([(name,) for name in rates])
            row = list(rates.values()) or [float(value)]
            self._beside.add(found.rank, found.attempt, spec, found.step, self._clock(), row)
        self._keep(found, told)

    def _keep(self, found: _Found, told: Mapping[str, Any]) -> None:
        """The rows first: a watcher that is killed in between writes them twice, not never."""
        self._beside.flush()
        target = found.folder / FIGURES
        hidden = target.with_name(f".{FIGURES}.{os.getpid()}")
        try:
            hidden.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")
            hidden.replace(target)
        except OSError as error:
            self._tell(f"{target}: {error.strerror}; a later watcher reads this profile again")


def _read(folder: Path, told: dict[str, Any]) -> None:
    try:
        told.update(figures_of(folder))
    except MindPulseError as error:
        told["problem"] = str(error)
    except Exception as error:  # a profile that nobody has seen before must not end the watch
        told["problem"] = repr(error)
