"""`mindpulse.snap`: a tensor into the run that is being written, from wherever one stands."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.debugging.copying import copied
from mindpulse.errors import StoreError, UsageError
from mindpulse.recorder import Recorder, living
from mindpulse.series import check_tag
from mindpulse.store.entries import npz
from mindpulse.store.files import OS_FILES, make_folders, write_whole
from mindpulse.store.folder import SNAPSHOTS
from mindpulse.store.names import file_name

VARIABLE = "MINDPULSE_DEBUG_RUN"
DEBUG_RUN = "debug-run"
# Two threads must not choose the same name; other processes have folders of their own.
_naming = threading.Lock()


def snap(
    name: str,
    tensor: Any,
    *,
    step: int | None = None,
    run: str | os.PathLike[str] | None = None,
) -> Path:
    """Keeps a tensor in the run that this process writes; `mindpulse analyze` shows it at once.

    The file is written here and now, by the thread that calls: a debugger stops all others.
    Where nothing is recorded the tensor goes into a run of its own, `./debug-run`, or where
    `MINDPULSE_DEBUG_RUN` says.

    Args:
        name: of the snapshot; a second one of the same name and step gets a number.
        tensor: as for `mindpulse.peek`; copied from the device once.
        step: that it belongs to; None for the one that is being computed.
        run: the folder of the run, where this process writes several; None for the newest.

    Returns:
        the file: `.npz` with `tensor` (bfloat16 as float32) and `dtype`.

    Raises:
        UsageError: the name or the tensor cannot be used, or this process writes no such run.
        StoreError: the file cannot be written.

    Example:
        >>> # mindpulse.snap("scores", scores)
    """
    check_tag(name)
    found = copied(tensor)
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 0):
        raise UsageError(f"step {step!r}: use a whole number from 0 up, or leave it out")
    recorder = _recorder(run)
    at = recorder.current_step if step is None else step
    data = npz({"tensor": found.array, "dtype": np.array(found.dtype)})
    folder = recorder.directory / SNAPSHOTS
    try:
        make_folders(OS_FILES, folder)
        with _naming:
            path = _free(folder, name, at)
            write_whole(OS_FILES, path, data)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"{folder}: the snapshot cannot be written: {error.strerror or error}; make room, or "
            f"make the folder writable"
        ) from error
    recorder.note("snapshot", step=at, file=path.name)
    return path


def _recorder(run: str | os.PathLike[str] | None) -> Recorder:
    writing = living()
    if run is None:
        return writing[0] if writing else Recorder(os.environ.get(VARIABLE) or DEBUG_RUN)
    wanted = Path(run).resolve()
    for recorder in writing:
        if recorder.directory.parent.parent.resolve() == wanted:
            return recorder
    there = ", ".join(str(recorder.directory.parent.parent) for recorder in writing) or "none"
    raise UsageError(f"run {str(run)!r}: this process does not write it; it writes: {there}")


def _free(folder: Path, name: str, step: int) -> Path:
    number = 1
    while True:
        stem = file_name(name if number == 1 else f"{name}-{number}").removesuffix(".ms")
        path = folder / f"{stem}_s{step:06d}.npz"
        if not path.exists():
            return path
        number += 1
