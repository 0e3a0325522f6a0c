"""The layer of Python: is there a debugger, may it stop here, and does it see this process?"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import shown

PYTHON, LAUNCH, PROCESS = "debug.python", "debug.launch", "debug.process"
_OFF, _TRUE = ("", "0", "false", "no"), ("1", "true", "yes")


def check_environment(
    environ: Mapping[str, str], find: Callable[[str], object] = find_spec
) -> list[Result]:
    """Variables that keep a debugger from stopping, and whether there is one."""
    found = []
    hook = environ.get("PYTHONBREAKPOINT")
    if hook == "0":
        found.append(_set("debug_breakpoint_off", "PYTHONBREAKPOINT", hook, 0.9))
    elif hook:
        found.append(_set("debug_breakpoint_hook", "PYTHONBREAKPOINT", hook, 0.4))
    for name in ("PYDEVD_FILTERS", "IDE_PROJECT_ROOTS", "LIBRARY_ROOTS"):
        if environ.get(name):
            found.append(_set("debug_filters", name, environ[name], 0.5))
    if environ.get("PYDEVD_FILTER_LIBRARIES", "").lower() in _TRUE:
        value = environ["PYDEVD_FILTER_LIBRARIES"]
        found.append(_set("debug_filters", "PYDEVD_FILTER_LIBRARIES", value, 0.5))
    if environ.get("PYTHONOPTIMIZE", "").lower() not in _OFF:
        found.append(_set("debug_optimized", "PYTHONOPTIMIZE", environ["PYTHONOPTIMIZE"], 0.2))
    if find("debugpy") is None:
        values = {"python": sys.executable}
        command = f"{sys.executable} -m pip install debugpy"
        found.append(Result(PYTHON, "unknown", "debug_no_debugpy", values, command, 0.3))
    return found or [Result(PYTHON, "ok", "debug_python_fine", {"python": sys.executable})]


def _set(finding: str, name: str, value: str, weight: float) -> Result:
    values = {"name": name, "value": value}
    return Result(PYTHON, "problem", finding, values, f"unset {name}", weight)


def check_launch(
    configurations: Sequence[Mapping[str, Any]], path: Path, children: Sequence[Path] = ()
) -> list[Result]:
    """What the launch configurations of VS Code leave out.

    Args:
        children: scripts that start processes; they are followed only if told so.
    """
    ours = [each for each in configurations if each.get("type") in ("debugpy", "python")]
    if not ours:
        told = {"path": path}
        return [Result(LAUNCH, "unknown", "debug_no_launch", told, "mindpulse vscode", 0.1)]
    found = []
    values: dict[str, object]
    mine = [_name(each) for each in ours if each.get("justMyCode", True) is not False]
    if mine:
        values = {"path": path, "names": shown(mine)}
        found.append(Result(LAUNCH, "problem", "debug_just_my_code", values, weight=0.5))
    alone = [_name(each) for each in ours if each.get("subProcess", True) is False]
    if alone:
        values = {"path": path, "names": shown(alone)}
        values["scripts"] = shown([str(script) for script in children]) or "-"
        weight = 0.6 if children else 0.3
        found.append(Result(LAUNCH, "problem", "debug_no_children", values, weight=weight))
    return found or [Result(LAUNCH, "ok", "debug_launch_fine", {"path": path})]


def _name(configuration: Mapping[str, Any]) -> str:
    return str(configuration.get("name", "?"))


def check_process(
    trace: object = None,
    modules: Mapping[str, object] | None = None,
    optimize: int | None = None,
    threads: int | None = None,
) -> list[Result]:
    """For the debug console: is *this* process debugged, and by whom?

    Args:
        trace, modules, optimize, threads: of another process, for tests; None for this one.

    Example:
        >>> check_process(trace=print, modules={})[0].finding
        'debug_traced_by_other'
    """
    loaded = sys.modules if modules is None else modules
    tracer = (sys.gettrace() if trace is None else trace) or _monitoring()
    level = sys.flags.optimize if optimize is None else optimize
    count = threading.active_count() if threads is None else threads
    values: dict[str, object] = {"tracer": _tracer_name(tracer), "threads": count}
    found = []
    if level:
        found.append(_set("debug_optimized", "python -O", str(level), 0.2))
    if "pydevd" in loaded and tracer:
        return [*found, Result(PROCESS, "ok", "debug_traced", values)]
    if "pydevd" in loaded:
        return [*found, Result(PROCESS, "problem", "debug_trace_lost", values, weight=0.8)]
    if tracer:
        return [*found, Result(PROCESS, "problem", "debug_traced_by_other", values, weight=0.6)]
    return [*found, Result(PROCESS, "problem", "debug_not_traced", values, weight=0.7)]


def _monitoring() -> object:
    """The debugger that Python 3.12 and later have listed, if any."""
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring.get_tool(monitoring.DEBUGGER_ID) if monitoring is not None else None


def _tracer_name(tracer: object) -> str:
    if tracer is None or isinstance(tracer, str):
        return tracer or "-"
    return str(getattr(tracer, "__module__", None) or type(tracer).__module__)
