"""The text of npu-smi."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from mindpulse.ascend.npu_smi import Chip, NpuSmi, looks_like, parse
from mindpulse.cli.ascend_views.view import MB, View

MOST_CHARACTERS = 1 << 20


def view(path: Path) -> View | None:
    """What npu-smi told; None where the text is not its."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(MOST_CHARACTERS)
    if not looks_like(text):
        return None
    found = parse(text)
    well = all(chip.health == "OK" for chip in found.chips) and not found.problems
    values = {"what": "npu-smi", "path": str(path), **asdict(found)}
    return View(list(_lines(path, found)), values, well)


def _lines(path: Path, found: NpuSmi) -> Iterator[str]:
    yield f"{path}  npu-smi {found.tool or '?'}  driver {found.driver or '?'}"
    for chip in found.chips:
        yield f"  NPU {chip.npu} chip {chip.chip} {chip.name}: {', '.join(_told(chip))}"
    for process in found.processes:
        held = "?" if process.memory is None else f"{process.memory / MB:,.0f}"
        where = f"NPU {process.npu} chip {process.chip}"
        yield f"  {where}: process {process.pid} {process.name} {held} MB"
    for name, value in found.values.items():
        yield f"  {name}: {value}"
    for problem in found.problems:
        yield f"! {problem!r} is cut, or of no known shape"


def _told(chip: Chip) -> Iterator[str]:
    yield chip.health
    use = None if chip.ai_core is None else chip.ai_core * 100
    for value, unit in ((chip.power_w, "W"), (chip.temperature_c, "C"), (use, "% AICore")):
        if value is not None:
            yield f"{value:g} {unit}"
    for what, pair in (("HBM", chip.hbm), ("memory", chip.memory)):
        if pair is not None and pair[1]:
            yield f"{what} {pair[0] / MB:,.0f} of {pair[1] / MB:,.0f} MB"
