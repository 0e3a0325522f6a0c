"""The layers of MindSpore, the device and the model, by what stands in a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from mindpulse.doctor.debug_reading import GRAPH, UNKNOWN, Reading, Spot
from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import shown

GRAPHS, DEVICE, MODEL, DATA = "debug.graph", "debug.device", "debug.model", "debug.data"
# Calls that a graph drops without a word; `breakpoint` is called, outside of the function.
_BUILTIN = "breakpoint"
_LOOKS = ("mindpulse.peek", "mindpulse.snap")


def check_reading(reading: Reading, environ: Mapping[str, str]) -> list[Result]:
    """All layers of one script."""
    return [
        *_graph(reading, environ),
        *_hooks(reading),
        *_model(reading),
        *_device(reading, environ),
        *_data(reading),
    ]


def _graph(reading: Reading, environ: Mapping[str, str]) -> list[Result]:
    """Functions that become a graph: no line of them is ever run by Python."""
    found = []
    compiled = reading.compiled()
    for spot in reading.stops:
        if spot.within in compiled:
            values = _values(reading, spot) | {"function": spot.within}
            finding = "debug_stop_in_graph"
            if spot.full == _BUILTIN:
                finding = "debug_breakpoint_in_graph"
            elif spot.full in _LOOKS:
                finding = "debug_look_in_graph"
            found.append(_problem(GRAPHS, finding, values, _eager(reading), 0.95))
    mode = next((spot for spot, mode in reading.modes if mode == GRAPH), None)
    if mode is None and reading.mode == GRAPH:  # another script sets it
        mode = next(iter(reading.constructs.values()), None)
    if mode is not None and reading.constructs and environ.get("MS_JIT") != "0":
        values = _values(reading, mode) | {"functions": _names(reading.constructs.values())}
        found.append(_problem(GRAPHS, "debug_graph_mode", values, _eager(reading), 0.8))
    elif mode is not None:
        values = _values(reading, mode)
        found.append(_problem(GRAPHS, "debug_graph_mode_only", values, _eager(reading), 0.7))
    if reading.jitted:
        first = min(reading.jitted.values(), key=lambda spot: spot.line)
        values = _values(reading, first) | {"functions": _names(reading.jitted.values())}
        found.append(_problem(GRAPHS, "debug_jit", values, _eager(reading), 0.75))
    unknown = [spot for spot, mode in reading.modes if mode == UNKNOWN]
    if unknown and reading.mode == UNKNOWN:
        spot = unknown[0]
        values = _values(reading, spot)
        found.append(Result(GRAPHS, "unknown", "debug_mode_unknown", values, _eager(reading), 0.5))
    if found:
        return found
    return [Result(GRAPHS, "ok", "debug_no_graph", {"path": reading.path})]


def _eager(reading: Reading) -> str:
    return f"python -m mindpulse.mindspore.pynative {shlex.quote(str(reading.path))}"


def _hooks(reading: Reading) -> list[Result]:
    """Hooks in a graph: compiled, or not called at all."""
    if not (reading.mode == GRAPH or reading.jitted):
        return []
    found = []
    if reading.element_hooks:
        values = _values(reading, reading.element_hooks[0]) | {
            "lines": _lines(reading.element_hooks)
        }
        found.append(_problem(MODEL, "debug_hook_on_element", values, "", 0.7))
    rest = [spot for spot in reading.hooks if spot not in reading.element_hooks]
    if rest:
        values = _values(reading, rest[0]) | {"lines": _lines(rest)}
        found.append(_problem(MODEL, "debug_hook_in_graph", values, "", 0.5))
    return found


def _model(reading: Reading) -> list[Result]:
    found = []
    if reading.recomputes:
        values = _values(reading, reading.recomputes[0]) | {"lines": _lines(reading.recomputes)}
        found.append(_problem(MODEL, "debug_recompute", values, "", 0.2))
    for spot in reading.captures:
        found.append(_problem(MODEL, "debug_capture", _values(reading, spot), "", 0.6))
    for spot in reading.made_code[:1]:
        found.append(_problem(MODEL, "debug_made_code", _values(reading, spot), "", 0.3))
    return found


def _device(reading: Reading, environ: Mapping[str, str]) -> list[Result]:
    """What the device does later than the line that asks for it."""
    found = []
    for spot in reading.sinks[:1]:
        found.append(_problem(DEVICE, "debug_sink", _values(reading, spot), "", 0.4))
    if reading.blocking or environ.get("ASCEND_LAUNCH_BLOCKING", "0") not in ("", "0"):
        found.append(Result(DEVICE, "ok", "debug_blocking", {"path": reading.path}))
    else:
        values = {"path": reading.path}
        found.append(Result(DEVICE, "unknown", "debug_asynchronous", values, weight=0.3))
    return found


def _data(reading: Reading) -> list[Result]:
    """Functions of a dataset that run in processes of their own."""
    if not reading.workers or reading.data_debug:
        return []
    values = _values(reading, reading.workers[0]) | {"lines": _lines(reading.workers)}
    return [_problem(DATA, "debug_workers", values, "", 0.5)]


def _problem(
    check: str, finding: str, values: Mapping[str, object], command: str, weight: float
) -> Result:
    return Result(check, "problem", finding, values, command, weight)


def _values(reading: Reading, spot: Spot) -> dict[str, object]:
    return {"path": reading.path, "line": spot.line, "text": spot.text}


def _names(spots: Iterable[Spot]) -> str:
    return shown([f"{spot.text} ({spot.line})" for spot in spots])


def _lines(spots: Sequence[Spot]) -> str:
    return shown([str(spot.line) for spot in spots])
