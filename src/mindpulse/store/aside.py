"""A damaged file gets a second name before another file takes its first."""

from __future__ import annotations

import shutil
from pathlib import Path

from mindpulse.store.files import FileLayer

SET_ASIDE = ".damaged"


def set_aside_name(path: Path) -> Path:
    """The name under which a file is kept: the first that is free, or that it has already.

    Example:
        >>> set_aside_name(Path(folder) / "train_loss.ms").name
        'train_loss.ms.damaged'
    """
    number = 1
    while True:
        name = path.with_name(path.name + SET_ASIDE + (f".{number}" if number > 1 else ""))
        if not name.exists() or name.samefile(path):
            return name
        number += 1


def keep_aside(path: Path, files: FileLayer) -> Path:
    """Gives a file its second name, and waits until that is on the disk.

    Raises:
        OSError: it could not be done; the file is as it was.
    """
    name = set_aside_name(path)
    if name.exists():
        return name
    try:
        files.link(path, name)
    except OSError:  # a file system without hard links
        hidden = name.with_name(f".{name.name}.repair")
        shutil.copy2(path, hidden)
        files.rename(hidden, name)
    files.sync_folder(path.parent)
    return name
