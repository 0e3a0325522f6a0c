"""The rooms of docs/architecture.md: imports point upwards only, and the core stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "mindpulse"

# Each room may import the rooms named; the vocabulary (series, errors, schedule) is open to all.
VOCABULARY = {"errors", "series", "schedule"}
STORE = {"store", "jsonlines"}
RULES = {*STORE, "catalogue", "control", "window", "rules", "alerts", "messages"}
EDGE = {*RULES, "interop", "watcher", "deliver", "health", "testing", "recorder", "summary"}
EDGE |= {"ascend"}
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "series": set(),
    "schedule": set(),
    "jsonlines": set(),
    "catalogue": set(),
    "store": {"jsonlines"},
    "interop": {*STORE, "catalogue"},
    "recorder": {*STORE, "interop", "catalogue"},
    "summary": {*STORE, "recorder"},
    "debugging": {*STORE, "recorder"},
    "control": {"jsonlines"},
    "ascend": {"jsonlines"},
    "window": {*STORE, "catalogue"},
    "messages": {"catalogue"},
    "rules": RULES - {"rules", "alerts"},
    "alerts": RULES - {"alerts"},
    "watcher": {*RULES, "ascend"},
    "deliver": {*RULES, "watcher"},
    "health": {*RULES, "watcher"},
    "testing": {*RULES, "recorder"},
    "report": EDGE,
    "compare": {*STORE, "window", "interop", "messages"},
    "doctor": {*EDGE, "compare", "debugging"},
    "notebook": {*EDGE, "report", "debugging"},
    "cli": {*EDGE, "report", "demo", "compare", "doctor", "debugging", "ascend"},
    "mindspore": {*STORE, "interop", "recorder", "control", "catalogue", "ascend"},
    "demo": {*EDGE, "report", "mindspore"},
}
TRAINING_SIDE = {"numpy", "google_crc32c", "mindspore"}
HEAVY = ["mindspore", "torch", "matplotlib", "starlette", "uvicorn", "sklearn", "duckdb", "pyarrow"]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Absolute names that a module imports, wherever in the module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_upwards(path: Path) -> None:
    room = room_of(path)
    allowed = ROOMS[room] | VOCABULARY | {room}
    for name in imports(path):
        parts = name.split(".")
        if (
            parts[0] == "mindpulse"
            and len(parts) > 1
            and (SOURCE / parts[1]).with_suffix("").exists()
        ):
            assert parts[1] in allowed, f"{room} must not import {name}"
        if parts[0] == "mindpulse" and len(parts) > 1 and (SOURCE / f"{parts[1]}.py").exists():
            assert parts[1] in allowed, f"{room} must not import {name}"


def test_every_room_is_listed() -> None:
    assert {room_of(path) for path in modules()} == set(ROOMS)


def test_rooms_have_no_cycle() -> None:
    done: list[str] = []
    while len(done) < len(ROOMS):
        free = [r for r in ROOMS if r not in done and ROOMS[r] & set(ROOMS) <= set(done)]
        assert free, f"a cycle among {set(ROOMS) - set(done)}"
        done += free


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_all_but_the_edge_imports_without_heavy_packages() -> None:
    names = []
    for path in modules():
        if room_of(path) in {"mindspore", "demo", "ui"} or path.name == "__main__.py":
            continue
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names.append(".".join(["mindpulse", *(p for p in parts if p != "__init__")]))
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
import importlib
for name in {names!r}:
    importlib.import_module(name)
"""
    result = fresh(code)
    assert result.returncode == 0, result.stderr


def test_training_side_imports_only_numpy_and_crc() -> None:
    """What the training process loads of other people's code, MindSpore aside."""
    code = """
import sys
before = set(sys.modules)
import mindpulse.recorder, mindpulse.control
new = {n.split(".")[0] for n in set(sys.modules) - before}
files = {n: getattr(sys.modules.get(n), "__file__", None) or "" for n in new}
print(" ".join(sorted(n for n, f in files.items() if "site-packages" in f)))
"""
    result = fresh(code)
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) <= {"numpy", "google_crc32c"}


def test_mindspore_room_names_no_other_package() -> None:
    for path in (SOURCE / "mindspore").glob("*.py"):
        tops = {name.split(".")[0] for name in imports(path)}
        foreign = tops - TRAINING_SIDE - {"mindpulse"} - set(sys.stdlib_module_names)
        assert not foreign, f"{path.name} imports {foreign}"
