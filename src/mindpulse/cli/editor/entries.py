"""The launch configurations and tasks that `mindpulse vscode` offers."""

from __future__ import annotations

from typing import Any

from mindpulse.debugging.attach import HOST, port_of

PREFIX = "MindPulse: "
PYTHON = "${command:python.interpreterPath}"
FOLDER = "${workspaceFolder}"
ALL_RANKS = f"{PREFIX}attach to all ranks"
# Reads the lines of `mindpulse doctor debug --format problems` that name a place.
MATCHER: dict[str, Any] = {
    "owner": "mindpulse",
    "fileLocation": ["autoDetect", FOLDER],
    "severity": "warning",
    "pattern": {
        "regexp": r"^doctor: (?:problem|unknown): (\S+): (.+?):(\d+): (.*)$",
        "code": 1,
        "file": 2,
        "line": 3,
        "message": 4,
    },
}
COMMON: dict[str, Any] = {"justMyCode": False, "subProcess": True}


def configurations(script: str, ranks: int) -> list[dict[str, Any]]:
    """Launch configurations, in the order in which the menu shows them."""
    launch = {"type": "debugpy", "request": "launch", "console": "integratedTerminal"}
    program = f"{FOLDER}/{script}"
    attach = [
        {
            "name": attach_name(rank),
            "type": "debugpy",
            "request": "attach",
            "connect": {"host": HOST, "port": port_of(rank)},
            **COMMON,
        }
        for rank in range(ranks)
    ]
    return [
        {"name": f"{PREFIX}train", **launch, "program": program, "cwd": FOLDER, **COMMON},
        {
            "name": f"{PREFIX}train in PyNative mode (breakpoints in construct stop)",
            **launch,
            "module": "mindpulse.mindspore.pynative",
            "args": [program],
            "cwd": FOLDER,
            **COMMON,
        },
        *attach,
    ]


def compounds(ranks: int) -> list[dict[str, Any]]:
    """What starts several at once; none for a single rank."""
    names = [attach_name(rank) for rank in range(ranks)]
    return [{"name": ALL_RANKS, "configurations": names}] if ranks > 1 else []


def attach_name(rank: int) -> str:
    """Name of the configuration that attaches to a rank."""
    return f"{PREFIX}attach to rank {rank}"


def tasks(run: str, script: str) -> list[dict[str, Any]]:
    """Tasks; the doctor's findings become problems of the editor, at the lines they name."""
    page = ["--output", f"{run}/report.html"]
    watch = _task("watch", ["watch", run], [])
    dashboard = _task("dashboard", ["report", run, *page, "--every", "10"], [])
    for each in (watch, dashboard):
        each |= {"isBackground": True, "presentation": {"panel": "dedicated"}}
    return [
        watch,
        dashboard,
        _task("report", ["report", run, *page], []),
        _task("analyze", ["analyze", run], []),
        _task("doctor", ["doctor", "run", run], []),
        _task("breakpoints", ["doctor", "debug", script, "--format", "problems"], [MATCHER]),
    ]


def _task(name: str, words: list[str], matchers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "label": f"{PREFIX}{name}",
        "type": "process",
        "command": PYTHON,
        "args": ["-m", "mindpulse.cli", *words],
        "options": {"cwd": FOLDER},
        "problemMatcher": matchers,
    }
