"""What other tools wrote, read as a run, and runs written for other tools.

Finding out
    source        text files of any encoding as lines
    found detect  what a file is
    folders       which run a folder holds
Reading
    numbers       numbers and times as texts write them
    alias_table   their names and ours, one table
    aliases       the name that a series gets
    collect       rows become a run: attempts, our names, what was left out
    loaded        the run, held in memory
    logs/         text logs, a module for each tool
    tables/       CSV, JSON and what is made of them
    events/       event files of TensorBoard and MindSpore, read and written

Nothing is imported before it is used: the training process takes its event writers from here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mindpulse.errors import UsageError
from mindpulse.store.run import Run

if TYPE_CHECKING:
    from mindpulse.interop.found import Found

OURS = "mindpulse"


def open_run(path: Path | str) -> Run:
    """Opens a run for reading: a run folder of ours, or what another tool wrote.

    Raises:
        UsageError: there is nothing, or several runs; the message says what was found.
        FormatError: it is nothing that MindPulse reads; the message says what it is and what is
            understood.
        StoreError: it cannot be read.
    """
    return identify(path).read()


def identify(path: Path | str) -> Found:
    """What a file or folder is, and why.

    Raises:
        UsageError, FormatError, StoreError: as `open_run`.
    """
    from mindpulse.interop.found import Found
    from mindpulse.store.folder import RUN_NAME, attempts_of
    from mindpulse.store.folder_run import open_folder

    place = Path(path)
    if place.is_dir():
        ours = (place / RUN_NAME).is_file() or bool(attempts_of(place))
        if ours or any(place.glob(f"*/{RUN_NAME}")):
            why = f"{RUN_NAME} or attempt-0001 in it"
            return Found(place, OURS, "a MindPulse run", why, lambda: open_folder(place))
        from mindpulse.interop.folders import identify_folder

        return identify_folder(place)
    if place.is_file():
        from mindpulse.interop.detect import identify_file

        return identify_file(place)
    reason = "is neither a file nor a folder" if place.exists() else "does not exist"
    raise UsageError(f"{place} {reason}; give a run folder, or a file that a training tool wrote")
