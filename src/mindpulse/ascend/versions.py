"""Every version that decides how a training behaves, read from files: no process, no framework."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from mindpulse.ascend.info_files import (
    CannFiles,
    driver_root,
    read_cann,
    read_pairs,
)

# Folders that hold CANN, driver and firmware, and the file that names another such folder.
DEFAULT_ROOTS = (Path("/etc/ascend_install.info"), Path("/usr/local/Ascend"))
PACKAGES = (
    "mindspore",
    "mindformers",
    "mindnlp",
    "hyper-parallel",
    "numpy",
    "protobuf",
    "pyarrow",
    "torch",
    "torch-npu",
    "transformers",
)
CANN_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH")
_BELOW_ROOT = ("ascend-toolkit/latest", "cann", "nnae/latest", "nnrt/latest")
_COMMIT = re.compile(r"\[sha1\]:([0-9a-f]+)|'([0-9a-f]{7,40})'")
_ACCEPTED = re.compile(r"class AscendEnvChecker\b.*?self\.version\s*=\s*\[([^\]]*)\]", re.DOTALL)
_BROKEN = (metadata.PackageNotFoundError, KeyError, OSError, ValueError, TypeError)


def versions(
    environ: Mapping[str, str] = os.environ,
    roots: Sequence[Path] = DEFAULT_ROOTS,
    packages: Sequence[str] | None = None,
) -> dict[str, str]:
    """What is installed, by name; what is not found is left out. Takes some milliseconds.

    Names: python, machine, os; packages by their name (`-` written `_`); mindspore_commit,
    mindspore_accepts (the versions of CANN that MindSpore accepts), mindspore_custom_op (of CANN,
    with which its operators were compiled); cann, cann_inner, cann_compiler, cann_compatible,
    cann_machine, cann_home; driver, driver_inner, driver_compatible, driver_firmware (versions of
    the firmware that the driver goes with); firmware, firmware_driver.

    Args:
        packages: folders to look for Python packages in; the interpreter's own if None.
    """
    found = _system() | _packages(packages)
    cann = find_cann(environ, roots)
    if cann is not None:
        found |= {
            "cann": cann.version,
            "cann_inner": cann.inner,
            "cann_compiler": cann.compiler,
            "cann_compatible": cann.compatible,
            "cann_machine": cann.machine,
            "cann_home": str(cann.home),
        }
    found |= _driver(roots)
    return {name: text for name, text in found.items() if text}


def cann_homes(environ: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    """Folders where CANN may be: those the environment names come first."""
    for name in CANN_HOMES:
        if environ.get(name):
            home = Path(environ[name])
            yield home.parent if name == "ASCEND_OPP_PATH" else home
    for root in root_folders(roots):
        yield from (root / below for below in _BELOW_ROOT)


def find_cann(environ: Mapping[str, str], roots: Sequence[Path]) -> CannFiles | None:
    """The first CANN that says its version; else the first that says anything."""
    read = [cann for home in cann_homes(environ, roots) if (cann := read_cann(home)) is not None]
    named = [cann for cann in read if cann.version or cann.compiler]
    return next(iter([*named, *read]), None)


def root_folders(roots: Sequence[Path]) -> list[Path]:
    """The folders among the roots, and those that files among them name."""
    found: list[Path] = []
    for root in roots:
        named = driver_root(root)
        if named is not None:
            found.append(named)
        elif root.suffix != ".info":
            found.append(root)
    return list(dict.fromkeys(found))


def _driver(roots: Sequence[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for root in root_folders(roots):
        driver = read_pairs(root / "driver" / "version.info")
        firmware = read_pairs(root / "firmware" / "version.info")
        told = {
            "driver": driver.get("version", "") or driver.get("package_version", ""),
            "driver_inner": driver.get("innerversion", ""),
            "driver_compatible": driver.get("compatible_version", ""),
            "driver_firmware": driver.get("compatible_version_fw", ""),
            "firmware": firmware.get("version", ""),
            "firmware_driver": firmware.get("compatible_version_drv", ""),
        }
        found = {name: text for name, text in told.items() if text} | found
    return found


def _system() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "os": _os_name(),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()


def _packages(folders: Sequence[str] | None) -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        distribution = find_package(name, folders)
        if distribution is None:
            continue
        try:
            found[name.replace("-", "_")] = distribution.version or ""
        except _BROKEN:  # metadata without a version
            continue
        if name == "mindspore":
            found |= _of_mindspore(distribution)
    return found


def find_package(name: str, folders: Sequence[str] | None = None) -> metadata.Distribution | None:
    """A Python package that is installed, without importing it."""
    try:
        if folders is None:
            return metadata.distribution(name)
        return next(iter(metadata.distributions(name=name, path=list(folders))), None)
    except _BROKEN:
        return None


def _of_mindspore(package: metadata.Distribution) -> dict[str, str]:
    """What the installed MindSpore says of itself: its commit, and which CANN it accepts."""
    commit = _COMMIT.search(_text(package, ".commit_id"))
    accepts = _ACCEPTED.search(_text(package, "run_check/_check_version.py"))
    kernels = _text(package, "lib/plugin/ascend/custom_ascendc_910b/version.info")
    return {
        "mindspore_commit": next(filter(None, commit.groups()), "") if commit else "",
        "mindspore_accepts": " ".join(re.findall(r"[\d.]+", accepts.group(1))) if accepts else "",
        "mindspore_custom_op": kernels.partition("=")[2].strip(),
    }


def _text(package: metadata.Distribution, name: str) -> str:
    try:
        return Path(str(package.locate_file(f"mindspore/{name}"))).read_text("utf-8", "replace")
    except (OSError, NotImplementedError):
        return ""
