"""Why is my summary empty? The checks, in the order in which one would go through them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mindpulse.doctor.checked import checked, made
from mindpulse.doctor.kind import KIND, check_kind, is_ours
from mindpulse.doctor.place import FOLDER, check_place
from mindpulse.doctor.probes import ATTACH, PROBES, check_attached, check_probes
from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import (
    RECORDING,
    ROWS,
    SAMPLING,
    check_host_only,
    check_recording,
    check_rows,
    check_sampling,
)
from mindpulse.doctor.traces import Trace, traces
from mindpulse.doctor.writers import (
    CLOCK,
    FORMAT,
    WRITERS,
    check_clock,
    check_format,
    check_writers,
)
from mindpulse.store.mounts import MOUNT_TABLE


def check_summary(
    folder: Path,
    environ: Mapping[str, str] = os.environ,
    *,
    now: float | None = None,
    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs,
    table: Path = MOUNT_TABLE,
    user: int | None = None,
) -> list[Result]:
    """Why nothing, or not everything, is in a run folder.

    Args:
        folder: the summary_dir.
        environ: the variables under which the training is started.
        now: seconds since the epoch; None for the clock of this machine.
        statvfs, table, user: as for `check_place`.

    Example:
        >>> check_summary(Path("no-such-folder"), {})[0].finding
        'summary_missing'
    """
    at = time.time() if now is None else now
    found = checked(FOLDER, lambda: check_place(folder, statvfs=statvfs, table=table, user=user))
    found += checked(RECORDING, lambda: check_recording(environ))
    if not folder.is_dir():
        return found
    found += checked(KIND, lambda: check_kind(folder))
    if not is_ours(folder):
        return found
    left, failed = made(ROWS, lambda: traces(folder))
    return found + (failed if left is None else of_traces(folder, left, at))


def of_traces(folder: Path, left: list[Trace], now: float) -> list[Result]:
    """The checks of what each start of the training has left."""
    return [
        *checked(ROWS, lambda: check_rows(left, now)),
        *checked(ROWS, lambda: check_host_only(left)),
        *checked(ATTACH, lambda: check_attached(left)),
        *checked(SAMPLING, lambda: check_sampling(left)),
        *checked(PROBES, lambda: check_probes(left)),
        *checked(WRITERS, lambda: check_writers(left)),
        *checked(FORMAT, lambda: check_format(folder, left)),
        *checked(CLOCK, lambda: check_clock(left, now)),
    ]
