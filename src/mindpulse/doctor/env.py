"""Is the software there, does it go together, and do its settings say what they seem to say?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mindpulse.ascend.fit import Misfit, misfits
from mindpulse.ascend.version import satisfies
from mindpulse.ascend.versions import DEFAULT_ROOTS, versions
from mindpulse.doctor.env_cann import check_cann, check_paths
from mindpulse.doctor.env_settings import check_settings
from mindpulse.doctor.result import Result

OUR_PYTHON = ">=3.10,<3.13"
RUN_CHECK = 'python -c "import mindspore; mindspore.run_check()"'
# Which check a pair of the table belongs to, and how likely it is behind a failure.
CHECKS = {
    "mindspore-python": ("env.python", 0.9),
    "mindspore-numpy": ("env.numpy", 0.9),
    "mindspore-protobuf": ("env.protobuf", 0.95),
    "pyarrow-numpy": ("env.numpy", 0.5),
    "mindspore-cann": ("env.cann", 0.8),
    "mindspore-custom-op": ("env.cann", 0.3),
    "cann-machine": ("env.machine", 0.95),
    "driver-cann": ("env.driver", 0.8),
    "firmware-driver": ("env.firmware", 0.7),
}
PARTS = ("numpy", "protobuf", "mindformers", "mindnlp", "driver", "firmware")


def check_env(
    environ: Mapping[str, str] = os.environ,
    roots: Sequence[Path] = DEFAULT_ROOTS,
    packages: Sequence[str] | None = None,
    found: Mapping[str, str] | None = None,
) -> list[Result]:
    """What is well and what is not with the software around a training; runs and imports nothing.

    Args:
        environ: the environment variables to look at.
        roots: where to look for CANN, driver and firmware.
        packages: folders to look for Python packages in; the interpreter's own if None.
        found: the versions, in place of those that are found.
    """
    known = dict(versions(environ, roots, packages) if found is None else found)
    results = [
        *_python(known),
        *_mindspore(known),
        *(_of_pair(misfit) for misfit in misfits(known)),
        *check_cann(known, environ, roots),
        *check_paths(known, environ),
        *check_settings(environ),
    ]
    wrong = {result.check for result in results}
    well = [part for part in PARTS if part in known and f"env.{part}" not in wrong]
    return results + [_fine(part, known[part]) for part in well]


def _fine(part: str, version: str) -> Result:
    return Result(f"env.{part}", "ok", "env_fits", {"part": part, "version": version})


def _python(known: Mapping[str, str]) -> list[Result]:
    version = known.get("python", "")
    if not version or satisfies(version, OUR_PYTHON):
        return [_fine("python", version)] if version else []
    values = {"version": version}
    return [Result("env.python", "problem", "env_python", values, weight=0.9)]


def _mindspore(known: Mapping[str, str]) -> list[Result]:
    if "mindspore" in known:
        return [_fine("mindspore", known["mindspore"])]
    command = "pip install 'mindspore>=2.7,<2.11' 'numpy<2'"
    return [Result("env.mindspore", "problem", "env_mindspore_missing", {}, command, 0.9)]


def _of_pair(misfit: Misfit) -> Result:
    check, weight = CHECKS.get(misfit.name, (f"env.{misfit.of}", 0.7))
    values = {
        "of": misfit.of,
        "version": misfit.version,
        "other": misfit.other,
        "there": misfit.other_version,
        "wanted": misfit.wanted,
        "source": misfit.source,
    }
    if misfit.status == "unknown":
        finding = "env_pair_unknown_but" if misfit.wanted else "env_pair_unknown"
        return Result(check, "unknown", finding, values, weight=weight)
    command = RUN_CHECK if check in ("env.cann", "env.driver", "env.firmware") else ""
    return Result(check, "problem", _finding(misfit), values, command, weight)


def _finding(misfit: Misfit) -> str:
    """The text that says most about a misfit."""
    if misfit.name == "mindformers-hyper-parallel":
        return "env_mindformers_dependency"
    if not misfit.other_version:
        return "env_pair_missing"
    if misfit.name == "mindspore-numpy" and satisfies(misfit.other_version, ">=2"):
        return "env_numpy"
    if misfit.name == "mindspore-protobuf" and satisfies(misfit.version, ">=2.10"):
        return "env_protobuf"
    named = {
        "mindspore-custom-op": "env_custom_op",
        "cann-machine": "env_machine",
        "driver-cann": "env_driver",
        "firmware-driver": "env_firmware",
    }
    return named.get(misfit.name, "env_pair")
