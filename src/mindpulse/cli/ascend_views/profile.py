"""A profile as text and as values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mindpulse.ascend.operators import Operators
from mindpulse.ascend.profile import Profile, by_time
from mindpulse.ascend.tables import Blocks, Cores, Memory, OldSteps, Statistics, Steps
from mindpulse.cli.ascend_views.view import MB, View
from mindpulse.messages import text

SHARES = {
    "l2_hit_rate", "cube_utilization", "vector_utilization", "comm_not_overlapped_share",
    "device_free_share", "profile_memory_idle",
}  # fmt: skip
# What of an operator's bandwidth is shown beside its time.
SHOWN = (("main_mem", "read"), ("main_mem", "write"))


def view(profile: Profile, limit: int, lang: str) -> View:
    """All that a profile tells; `limit` rows of each table."""
    well = not profile.damaged and not any(finding.bad for finding in profile.findings())
    return View(list(lines(profile, limit, lang)), as_object(profile, limit, lang), well)


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
    speeds = bandwidths(profile)
    for name, count, us in rows[:limit]:
        told = [f"{key} {speed / 1e9:,.1f} GB/s" for key, speed in speeds.get(name, {}).items()]
        time = f"{us / 1000:>12,.3f} ms {us / whole:>7.1%} {count:>8,.0f} x"
        yield "  ".join([f"  {time}", name, ", ".join(told)]).rstrip()


def bandwidths(profile: Profile) -> dict[str, dict[str, float]]:
    """Bytes per second of the main memory, weighted by time, for each type of operator."""
    return {
        kind: {
            f"{memory}_{way}": found[memory, way].mean
            for memory, way in SHOWN
            if (memory, way) in found and math.isfinite(found[memory, way].mean)
        }
        for operators in profile.of(Operators)
        for kind, found in operators.by_kind.items()
    }


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
    for old in profile.of(OldSteps):
        if old.total_us:
            mean = sum(old.total_us) / len(old.total_us)
            said = f", {old.average_us / 1000:,.3f} ms by the file itself"
            told = said if math.isfinite(old.average_us) else ""
            yield f"steps: {len(old.total_us)}, {mean / 1000:,.3f} ms on average{told}"


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
    for blocks in profile.of(Blocks):
        name, size = blocks.largest
        if blocks.rows:
            yield (
                f"blocks of operators: {blocks.rows:,}, the largest {size / MB:,.1f} MB ({name}), "
                f"{blocks.never_released:,} not given back within the profile"
            )


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
    """A profile as plain values; microseconds, bytes, bytes per second, shares."""
    speeds = bandwidths(profile)
    return {
        "what": "profile",
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
            {"type": n, "count": c, "total_us": us, "bandwidth": speeds.get(n, {})}
            for n, c, us in by_time(profile)[:limit]
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
        "old_steps_us": [us for t in profile.of(OldSteps) for us in t.total_us],
        "blocks": [
            {"rows": t.rows, "largest": t.largest[0], "largest_bytes": t.largest[1],
             "never_released": t.never_released}
            for t in profile.of(Blocks)
        ],
        "figures": profile.figures(),
        "findings": [
            {"key": f.key, "bad": f.bad, "text": text(f"ascend.{f.key}", lang, **f.values)}
            for f in profile.findings()
        ],
    }  # fmt: skip
