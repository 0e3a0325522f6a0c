"""Where batches come from: a file of arrays, or a function that the user names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mindpulse.errors import UsageError

FILES = (".npz", ".npy")


def batches_from(source: str) -> Iterable[object]:
    """The batches of `batch.npz`, `ids.npy`, `module:function` or `file.py:function`.

    A function is imported and called without arguments, because it was named; it returns a
    dataset, a loader, batches, or one batch.

    Raises:
        UsageError: there is no such thing; says what was looked for.
    """
    path = Path(source)
    if path.suffix in FILES:
        return [_arrays(path)]
    module, colon, name = source.rpartition(":")
    if not (colon and module and name):
        raise UsageError(
            f"{source!r}: give a .npz or .npy file, module:function, or file.py:function"
        )
    made = getattr(_module(module), name, None)
    if made is None:
        raise UsageError(f"{source!r}: {module} has no {name!r}")
    return _iterated(made() if callable(made) else made)


def _arrays(path: Path) -> object:
    try:
        found = np.load(path, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            return found
        with found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(f"{path}: cannot be read as arrays: {error}") from error


def _module(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix != ".py":
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{name}: {error}; give a module or a file that ends in .py"
            ) from error
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"{name}: no such file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _iterated(made: Any) -> Iterable[object]:
    """MindSpore's datasets by name, loaders and lists as they are, anything else as one batch."""
    by_name = getattr(made, "create_dict_iterator", None)
    if callable(by_name):
        return by_name(num_epochs=1, output_numpy=True)  # type: ignore[no-any-return]
    if isinstance(made, dict | tuple) or hasattr(made, "dtype"):
        return [made]
    if isinstance(made, Iterable):
        return made
    raise UsageError(f"{type(made).__name__} holds no batches; return a dataset, a list or a batch")
