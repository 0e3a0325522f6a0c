"""The files in which CANN, driver and firmware say which version they are.

    ascend_toolkit_install.info  version, innerversion, compatible_version, arch
    version.info                 Version, version_dir, Innerversion, compatible_version_fw
    version.cfg                  toolkit_running_version=[7.6.0.1.220:8.0.0]
    /etc/ascend_install.info     Driver_Install_Path_Param=/usr/local/Ascend

All are lines `key=value`; the capitals of a key differ from file to file, so they are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1 << 16  # a real one has less than 2 KiB
_PAIR = re.compile(r"\[([^:\[\]]*)(?::([^\[\]]*))?\]")


@dataclass(frozen=True, slots=True)
class CannFiles:
    """What a folder of CANN says about itself; "" for what it does not say.

    Attributes:
        home: the folder.
        version: as it is called, "8.3.RC2".
        inner: CANN's number for itself, "V100R001C23SPC002B210".
        compiler: of the compiler package, which MindSpore compares: "8.3.0.1.200".
        compatible: the versions of the driver that it lists.
        machine: "aarch64" or "x86_64".
        files: that were read.
    """

    home: Path
    version: str = ""
    inner: str = ""
    compiler: str = ""
    compatible: str = ""
    machine: str = ""
    files: tuple[str, ...] = ()


def read_pairs(path: Path) -> dict[str, str]:
    """Keys, in small letters, and values of such a file; {} where it cannot be read.

    The first line of a key counts. Comments, lines without `=` and what is beyond 64 KiB are left
    out.
    """
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return {}
    return pairs(text)


def pairs(text: str) -> dict[str, str]:
    """Keys, in small letters, and values of lines `key=value`.

    Example:
        >>> pairs("# version: 1.0\\nVersion = 24.1.rc2\\n")
        {'version': '24.1.rc2'}
    """
    found: dict[str, str] = {}
    for line in text.replace("\0", "").splitlines():
        key, equals, value = line.partition("=")
        name = key.strip().lower()
        if equals and name and not name.startswith("#"):
            found.setdefault(name, value.strip().strip("\"'"))
    return found


def running(value: str) -> tuple[str, str]:
    """Internal and public version of `[7.6.0.1.220:8.0.0]`; "" for a part that is missing.

    Example:
        >>> running("[7.6.0.1.220:8.0.0]")
        ('7.6.0.1.220', '8.0.0')
    """
    found = _PAIR.search(value)
    return (found.group(1).strip(), (found.group(2) or "").strip()) if found else ("", "")


def read_cann(home: Path) -> CannFiles | None:
    """What the CANN in a folder says; None where there is none."""
    install, where = _first(_install_files(home))
    compiler, at_compiler = _first([home / "compiler" / "version.info"])
    config, at_config = _first([home / "version.cfg"])
    parts = ("toolkit", "runtime", "opp")
    other, at_other = _first([home / "version.info", *(home / p / "version.info" for p in parts)])
    files = tuple(str(path) for path in (where, at_compiler, at_config, at_other) if path)
    if not files:
        return None
    names = [f"{name}_running_version" for name in ("toolkit", "runtime", "compiler")]
    public = next((running(config[name])[1] for name in names if name in config), "")
    return CannFiles(
        home=home,
        version=install.get("version")
        or public
        or compiler.get("version_dir", "")
        or other.get("version_dir", ""),
        inner=install.get("innerversion", ""),
        compiler=compiler.get("version") or running(config.get("compiler_running_version", ""))[0],
        compatible=install.get("compatible_version", ""),
        machine=install.get("arch", "") or _machine_of(home),
        files=files,
    )


def _install_files(home: Path) -> list[Path]:
    """The toolkit's file lies in the folder of the machine's kind; nnae and nnrt have their own."""
    folders = [home, *(home / f"{machine}-linux" for machine in ("aarch64", "x86_64"))]
    names = [f"ascend_{name}_install.info" for name in ("toolkit", "nnae", "nnrt", "cann")]
    return [folder / name for folder in folders for name in names]


def _machine_of(home: Path) -> str:
    """The kind of machine by the folders, where exactly one of the two is there."""
    there = [m for m in ("aarch64", "x86_64") if _is_folder(home / f"{m}-linux")]
    return there[0] if len(there) == 1 else ""


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _first(paths: Iterable[Path]) -> tuple[dict[str, str], Path | None]:
    """The first file that says anything."""
    for path in paths:
        found = read_pairs(path)
        if found:
            return found, path
    return {}, None


def driver_root(path: Path) -> Path | None:
    """Where `ascend_install.info` says that the driver is; None where it does not say."""
    root = read_pairs(path).get("driver_install_path_param", "")
    return Path(root) if root else None
