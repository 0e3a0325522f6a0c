"""Environment variables that switch something off, change numbers, or slow a training down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mindpulse.doctor.result import Result

OVERFLOW = "MS_ASCEND_CHECK_OVERFLOW_MODE"
OFF = ("", "0", "off", "false", "none")


def _on(value: str) -> bool:
    return value.strip().lower() not in OFF


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable, the values of it that matter, and the text that says why."""

    name: str
    matters: Callable[[str], bool]
    finding: str
    weight: float


SETTINGS = (
    Setting("MS_SIMULATION_LEVEL", lambda value: value != "", "env_simulation", 0.95),
    Setting("MS_KERNEL_LAUNCH_SKIP", _on, "env_simulation", 0.95),
    Setting("MS_DEV_PRECOMPILE_ONLY", _on, "env_compile_only", 0.95),
    Setting(OVERFLOW, lambda value: value == "SATURATION_MODE", "env_saturation", 0.7),
    Setting(
        OVERFLOW,
        lambda value: value not in ("SATURATION_MODE", "INFNAN_MODE"),
        "env_overflow_value",
        0.6,
    ),
    Setting("MINDSPORE_DUMP_CONFIG", _on, "env_dump", 0.5),
    Setting("ASCEND_LAUNCH_BLOCKING", _on, "env_blocking", 0.4),
    Setting("GLOG_v", lambda value: value in ("0", "1"), "env_log_loud", 0.3),
    Setting("ASCEND_GLOBAL_LOG_LEVEL", lambda value: value in ("0", "1"), "env_log_loud", 0.3),
    Setting("GLOG_v", lambda value: value == "4", "env_log_silent", 0.4),
    Setting("ASCEND_GLOBAL_LOG_LEVEL", lambda value: value == "4", "env_log_silent", 0.4),
    Setting(
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
        lambda value: value == "cpp",
        "env_protobuf_cpp",
        0.3,
    ),
    Setting("PYTHONOPTIMIZE", _on, "env_optimize", 0.2),
)
# What only shows or counts things, and is therefore no trap.
HARMLESS = ("MS_DEV_RUNTIME_CONF", "MS_DEV_SAVE_GRAPHS_PATH")


def check_settings(environ: Mapping[str, str]) -> list[Result]:
    """The variables that are set to something that matters; one ok where none is."""
    found = [
        Result(
            "env.settings",
            "problem",
            setting.finding,
            {"name": setting.name, "value": environ[setting.name]},
            f"unset {setting.name}",
            setting.weight,
        )
        for setting in SETTINGS
        if setting.name in environ
        and environ[setting.name]
        and setting.matters(environ[setting.name])
    ]
    told = {str(result.values["name"]) for result in found}
    developer = sorted(
        name
        for name, value in environ.items()
        if name.startswith("MS_DEV_") and _on(value) and name not in (*told, *HARMLESS)
    )
    if developer:
        values = {"names": ", ".join(f"{name}={environ[name]}" for name in developer)}
        command = f"unset {' '.join(developer)}"
        found.append(Result("env.settings", "problem", "env_developer", values, command, 0.3))
    return found or [Result("env.settings", "ok", "env_settings_fine")]
