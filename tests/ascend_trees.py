"""Folders of CANN, driver, firmware and Python packages as installers leave them, small."""

from __future__ import annotations

from pathlib import Path

LIST_8_3 = "[V100R001C15],[V100R001C18],[V100R001C19],[V100R001C20],[V100R001C21],[V100R001C23]"
LIST_24_1 = "[V100R001C30],[V100R001C13],[V100R001C15],[V100R001C17],[V100R001C18]"


def toolkit(
    home: Path,
    version: str = "8.3.RC2",
    inner: str = "V100R001C23SPC002B210",
    compatible: str = LIST_8_3,
    machine: str = "x86_64",
    compiler: str = "8.3.0.2.210",
) -> Path:
    """A CANN toolkit; without `compiler` its version.info is left out."""
    folder = home / f"{machine}-linux"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ascend_toolkit_install.info").write_text(
        f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion={inner}\n"
        f"compatible_version={compatible}\narch={machine}\nos=linux\npath={folder}\n"
    )
    if compiler:
        (home / "compiler").mkdir(exist_ok=True)
        (home / "compiler" / "version.info").write_text(
            f'Version={compiler}\nversion_dir={version}\nrequired_package_opp_version="8.3"\n'
        )
    for part in ("opp/built-in/op_impl/ai_core/tbe", "lib64"):
        (home / part).mkdir(parents=True, exist_ok=True)
    return home


def driver(
    root: Path,
    version: str = "24.1.rc2.2",
    inner: str = "V100R001C18SPC001B233",
    compatible: str = LIST_24_1,
    firmware: str = "[7.0.0,7.2.99]",
) -> None:
    """A driver; its keys have capitals where the toolkit's have none."""
    (root / "driver").mkdir(parents=True, exist_ok=True)
    (root / "driver" / "version.info").write_text(
        f"Version={version}\nascendhal_version=7.35.23\naicpu_version=1.0\n"
        f"Innerversion={inner}\ncompatible_version={compatible}\n"
        f"compatible_version_fw={firmware}\npackage_version={version}\n"
    )


def firmware(root: Path, version: str = "7.1.0.11.220", drivers: str = "[24.1,24.1.]") -> None:
    """A firmware."""
    (root / "firmware").mkdir(parents=True, exist_ok=True)
    (root / "firmware" / "version.info").write_text(
        f"Version={version}\nfirmware_version=1.0\npackage_version=24.1.rc2\n"
        f"compatible_version_drv={drivers}\n"
    )


def package(folder: Path, name: str, version: str | None) -> None:
    """The metadata of a Python package; without a version where it is None."""
    info = folder / f"{name.replace('-', '_')}-{version or '0'}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    line = f"Version: {version}\n" if version is not None else ""
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n{line}")


def mindspore(folder: Path, version: str = "2.10.0", accepts: str = '"8.2", "8.3", "8.5"') -> None:
    """A MindSpore of which only the metadata and what it says about CANN are there."""
    package(folder, "mindspore", version)
    home = folder / "mindspore"
    (home / "run_check").mkdir(parents=True, exist_ok=True)
    (home / ".commit_id").write_text("__commit_id__ = '[sha1]:2d550373,[branch]:(HEAD)'\n")
    (home / "run_check" / "_check_version.py").write_text(
        'class GPUEnvChecker:\n    def __init__(self):\n        self.version = ["10.1"]\n\n\n'
        f"class AscendEnvChecker:\n    def __init__(self):\n        self.version = [{accepts}]\n"
    )
    kernels = home / "lib" / "plugin" / "ascend" / "custom_ascendc_910b"
    kernels.mkdir(parents=True, exist_ok=True)
    (kernels / "version.info").write_text("custom_opp_compiler_version=8.3.0\n")
