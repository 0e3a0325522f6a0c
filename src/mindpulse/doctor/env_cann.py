"""Is CANN there, whole, and what the environment variables point at?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mindpulse.ascend.info_files import read_cann
from mindpulse.ascend.versions import CANN_HOMES, cann_homes
from mindpulse.doctor.result import Result

# Variables that name a folder, or several with ":" between them.
FOLDERS = (
    "ASCEND_HOME_PATH",
    "ASCEND_TOOLKIT_HOME",
    "ASCEND_OPP_PATH",
    "ASCEND_AICPU_PATH",
    "TOOLCHAIN_HOME",
    "ASCEND_CUSTOM_OPP_PATH",
)
SEARCHED = ("LD_LIBRARY_PATH", "PYTHONPATH")
# What MindSpore looks for in three variables before it uses the device, see _check_version.py.
NEEDED = {
    "PYTHONPATH": "opp/built-in/op_impl/ai_core/tbe",
    "LD_LIBRARY_PATH": "/lib64",
    "ASCEND_OPP_PATH": "/opp",
}


def check_cann(
    known: Mapping[str, str], environ: Mapping[str, str], roots: Sequence[Path]
) -> list[Result]:
    """CANN missing, unreadable, mixed of two, or not where MindSpore looks for it."""
    named = [name for name in CANN_HOMES if environ.get(name)]
    if "cann_home" not in known:
        return _absent(known, named)
    if "cann" not in known and "cann_compiler" not in known:
        values = {"home": known["cann_home"]}
        return [Result("env.cann", "problem", "env_cann_unreadable", values, weight=0.8)]
    found = _mixed(environ)
    if not environ.get("ASCEND_HOME_PATH"):
        home = known["cann_home"]
        command = f"source {_set_env(home)}"
        found.append(
            Result("env.cann", "problem", "env_cann_not_set", {"home": home}, command, 0.8)
        )
    elif not (Path(environ["ASCEND_HOME_PATH"]) / "compiler" / "version.info").is_file():
        values = {"home": environ["ASCEND_HOME_PATH"]}
        found.append(Result("env.cann", "unknown", "env_cann_no_compiler", values, weight=0.4))
    if not found:
        values = {"part": "cann", "version": known.get("cann") or known["cann_compiler"]}
        return [Result("env.cann", "ok", "env_fits", values)]
    return found


def _absent(known: Mapping[str, str], named: Sequence[str]) -> list[Result]:
    if not named and "driver" not in known:
        return [Result("env.cann", "ok", "env_no_ascend")]
    values = {"why": ", ".join(named) or f"driver {known['driver']}"}
    return [Result("env.cann", "problem", "env_cann_missing", values, weight=0.9)]


def _mixed(environ: Mapping[str, str]) -> list[Result]:
    """Variables that point at installations of different versions."""
    told: dict[str, str] = {}
    for name, home in zip(
        [name for name in CANN_HOMES if environ.get(name)], cann_homes(environ, ()), strict=True
    ):
        files = read_cann(home)
        if files is not None and files.version:
            told[name] = files.version
    if len(set(told.values())) < 2:
        return []
    values = {"versions": ", ".join(f"{name}: {version}" for name, version in told.items())}
    return [Result("env.cann", "problem", "env_cann_mixed", values, weight=0.8)]


def _set_env(home: str) -> str:
    """The script that sets the variables: beside the versions, or in the folder itself."""
    for folder in (Path(home), Path(home).parent):
        if (folder / "set_env.sh").is_file():
            return str(folder / "set_env.sh")
    return "/usr/local/Ascend/ascend-toolkit/set_env.sh"


def check_paths(known: Mapping[str, str], environ: Mapping[str, str]) -> list[Result]:
    """Variables that point nowhere, and what MindSpore looks for in them."""
    nowhere = [
        f"{name}: {folder}"
        for name in (*FOLDERS, *SEARCHED)
        for folder in environ.get(name, "").split(":")
        if folder and (name in FOLDERS or "ascend" in folder.lower()) and not _there(folder)
    ]
    found = []
    if nowhere:
        values = {"paths": "; ".join(nowhere)}
        found.append(Result("env.paths", "problem", "env_paths_nowhere", values, weight=0.8))
    if "cann_home" in known:
        lacking = [name for name, part in NEEDED.items() if part not in environ.get(name, "")]
        if lacking:
            values = {"names": ", ".join(f"{name} ({NEEDED[name]})" for name in lacking)}
            command = f"source {_set_env(known['cann_home'])}"
            found.append(Result("env.paths", "problem", "env_paths_lacking", values, command, 0.7))
    if not found and any(environ.get(name) for name in FOLDERS):
        found.append(Result("env.paths", "ok", "env_paths_fine"))
    return found


def _there(folder: str) -> bool:
    try:
        return Path(folder).exists()
    except OSError:
        return False
