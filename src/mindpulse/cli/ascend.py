"""`mindpulse ascend`: what Ascend's own tools wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mindpulse.ascend.npu_smi import NpuSmi, looks_like, parse
from mindpulse.ascend.profile import Profile, by_time, profiles_below, read_profile
from mindpulse.ascend.tables import Cores, Memory, Statistics, Steps
from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, print_json
from mindpulse.errors import UsageError
from mindpulse.messages import text

MB = 1024.0**2
SHARES = {
    "l2_hit_rate", "cube_utilization", "vector_utilization", "comm_not_overlapped_share",
    "device_free_share", "profile_memory_idle",
}  # fmt: skip


@click.group("ascend")
def command() -> None:
    """Read what Ascend's tools wrote; `show --json` is for programs."""


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many rows of a table.",
)
@options.lang
@options.as_json
def show(path: Path, limit: int, lang: str, as_json: bool) -> None:
    """Show a profiler's folder, all folders below a path, or one file.

    Also the text of `npu-smi info`. Exit code 1 says that rows are damaged, that a chip is not
    well, or that something else is to be mended.
    """
    beginning = text_of(path) if path.is_file() else ""
    if looks_like(beginning):
        if not show_chips(parse(beginning), as_json):
            click.get_current_context().exit(EXIT_FINDINGS)
        return
    places = profiles_below(path)
    if not places:
        raise UsageError(f"{path}: no profile in it or below it")
    with busy("reading"):
        profiles = [read_profile(place) for place in places]
    if as_json:
        print_json([as_object(profile, limit, lang) for profile in profiles])
    else:
        for number, profile in enumerate(profiles):
            for line in ([""] if number else []) + list(lines(profile, limit, lang)):
                click.echo(line)
    if any(p.damaged or any(f.bad for f in p.findings()) for p in profiles):
        click.get_current_context().exit(EXIT_FINDINGS)


def text_of(path: Path) -> str:
    """A text of ordinary size; of a larger file its beginning.

    Raises:
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1 << 20)


def show_chips(found: NpuSmi, as_json: bool) -> bool:
    """Prints what npu-smi told; whether every chip is well and every line was whole."""
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(f"npu-smi {found.tool or '?'}  driver {found.driver or '?'}")
        for chip in found.chips:
            numbers = [
                f"{value:g} {unit}" for value, unit in
                ((chip.power_w, "W"), (chip.temperature_c, "C"),
                 (None if chip.ai_core is None else chip.ai_core * 100, "% AICore"))
                if value is not None
            ]  # fmt: skip
            for what, pair in (("HBM", chip.hbm), ("memory", chip.memory)):
                if pair is not None and pair[1]:
                    numbers.append(f"{what} {pair[0] / MB:,.0f} of {pair[1] / MB:,.0f} MB")
            told = ", ".join([chip.health, *numbers])
            click.echo(f"  NPU {chip.npu} chip {chip.chip} {chip.name}: {told}")
        for process in found.processes:
            held = "?" if process.memory is None else f"{process.memory / MB:,.0f}"
            where = f"NPU {process.npu} chip {process.chip}"
            click.echo(f"  {where}: process {process.pid} {process.name} {held} MB")
        for name, value in found.values.items():
            click.echo(f"  {name}: {value}")
        for problem in found.problems:
            click.echo(f"! {problem!r} is cut, or of no known shape")
    well = all(chip.health == "OK" for chip in found.chips)
    return well and not found.problems


def lines(profile: Profile, limit: int, lang: str) -> Iterator[str]:
    """A profile as text."""
    yield _headline(profile)
    yield from _files(profile)
    yield from _operators(profile, limit)
    yield from _steps(profile, limit)
    yield from _caches(profile)
    yield from _communication(profile, limit)
    yield from _memory(profile)
    yield from _calls(profile, limit)
    if figures := profile.figures():
        yield "figures"
        yield from (f"  {name:<28}{_figure(name, value)}" for name, value in figures.items())
    for finding in profile.findings():
        mark = "!" if finding.bad else "?"
        yield f"{mark} {text(f'ascend.{finding.key}', lang, **finding.values)}"


def _headline(profile: Profile) -> str:
    told = profile.told
    parts = [str(profile.path)]
    parts += [f"rank {profile.rank}"] if profile.rank is not None else []
    parts += [f"device {', '.join(sorted(profile.devices))}"] if profile.devices else []
    parts += [f"{name} {version}" for name, version in told.versions.items()]
    settings = {key: told.settings[key] for key in ("level", "aic_metrics") if key in told.settings}
    parts += [f"{key} {value}" for key, value in settings.items()]
    return "  ".join(parts)


def _files(profile: Profile) -> Iterator[str]:
    for file in profile.files:
        if file.kind:
            rows = f"{file.rows:,} rows, {file.columns} columns" if file.columns else ""
            bad = f"; {file.damaged} damaged, {file.ruined} ruined" if file.problems else ""
            yield f"  {file.path.name:<32}{file.kind:<24}{rows}{bad}"
        for problem in file.problems[:3]:
            yield f"    {problem}"


def _operators(profile: Profile, limit: int) -> Iterator[str]:
    rows = by_time(profile)
    whole = sum(us for _, _, us in rows)
    if not whole:
        return
    yield f"operators by type, {whole / 1000:,.3f} ms together"
    for name, count, us in rows[:limit]:
        yield f"  {us / 1000:>12,.3f} ms {us / whole:>7.1%} {count:>8,.0f} x  {name}"


def _steps(profile: Profile, limit: int) -> Iterator[str]:
    for steps in profile.of(Steps):
        for step in steps.rows[:limit]:
            whole = step.parts.get("stage", math.nan)
            parts = ", ".join(
                f"{name.replace('_', ' ')} {us / 1000:,.3f} ms"
                + (f" ({us / whole:.0%})" if whole and name != "stage" else "")
                for name, us in step.parts.items()
            )
            yield f"step {step.name} {step.whose}".rstrip() + f": {parts}"


def _caches(profile: Profile) -> Iterator[str]:
    rates = profile.l2_by_operator()
    if rates:
        yield "L2 hits: " + ", ".join(f"{name} {rate:.1%}" for name, rate in rates.items())
    for cores in profile.of(Cores):
        for (core, memory, way), speed in sorted(cores.bandwidth.items()):
            yield f"  {core} {memory} {way} {speed / 1e9:,.3f} GB/s over all cores"


def _communication(profile: Profile, limit: int) -> Iterator[str]:
    transfers = sorted(profile.told.transfers, key=lambda t: -t.elapse_ms)
    if not transfers:
        return
    whole = sum(t.elapse_ms for t in transfers if math.isfinite(t.elapse_ms))
    yield f"communication: {len(transfers)} operators, {whole:,.3f} ms"
    for t in transfers[:limit]:
        links = ", ".join(f"{link} {speed:.1f} GB/s" for link, speed in t.bandwidth.items())
        yield f"  {t.elapse_ms:>12,.3f} ms, waiting {t.wait_ms:,.3f} ms  {t.name}  {links}".rstrip()


def _memory(profile: Profile) -> Iterator[str]:
    for memory in profile.of(Memory):
        for name, pool in memory.pools.items():
            if pool.reserved:
                shown = f"{pool.allocated / MB:,.1f} MB allocated, " if pool.allocated > 0 else ""
                yield f"memory {name}: at most {shown}{pool.reserved / MB:,.1f} MB reserved"


def _calls(profile: Profile, limit: int) -> Iterator[str]:
    table = profile.tables.get("api_statistic")
    if isinstance(table, Statistics):
        yield "calls by time"
        for row in table.by_time[:limit]:
            ms = f"{row.total_us / 1000:>12,.3f} ms"
            yield f"  {ms} {row.count:>8,.0f} x  {row.name} ({row.core})"


def _figure(name: str, value: float) -> str:
    if name in SHARES:
        return f"{value:.1%}"
    unit = "GB/s" if name.endswith("bandwidth") else "GB"
    return f"{value / 1e9:,.3f} {unit}"


def as_object(profile: Profile, limit: int, lang: str) -> dict[str, Any]:
    """A profile as plain values; microseconds, bytes, shares."""
    return {
        "path": str(profile.path),
        "rank": profile.rank,
        "devices": sorted(profile.devices),
        "versions": profile.told.versions,
        "settings": profile.told.settings,
        "files": [
            {"file": f.path.name, "kind": f.kind, "rows": f.rows, "columns": f.columns,
             "damaged": f.damaged, "ruined": f.ruined, "problems": list(f.problems)}
            for f in profile.files
        ],
        "operators": [
            {"type": n, "count": c, "total_us": us} for n, c, us in by_time(profile)[:limit]
        ],
        "steps": [
            {"step": s.name, "whose": s.whose, **s.parts} for t in profile.of(Steps) for s in t.rows
        ],
        "l2": profile.l2_by_operator(),
        "communication": [
            {"name": t.name, "step": t.step, "elapse_ms": t.elapse_ms, "wait_ms": t.wait_ms}
            for t in profile.told.transfers
        ],
        "memory": {
            kind: {
                name: {"reserved": pool.reserved, "allocated": pool.allocated, "rows": pool.rows}
                for name, pool in memory.pools.items()
            }
            for kind, memory in profile.tables.items() if isinstance(memory, Memory)
        },
        "figures": profile.figures(),
        "findings": [
            {"key": f.key, "bad": f.bad, "text": text(f"ascend.{f.key}", lang, **f.values)}
            for f in profile.findings()
        ],
    }  # fmt: skip
