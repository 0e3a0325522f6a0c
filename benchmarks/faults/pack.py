"""The recordings in the repository: a subset of the runs, packed small, and how to unpack it.

One archive per variant, `recordings/VARIANT.tar.xz`. It holds `index.jsonl` and, for each run, a
JSON header line and the values as float32. What is lost on the way: `DROPPED` series; the last 13
of 24 bits of what has a value per parameter, head, cell or expert (a relative error below 2^-11),
except in runs of several ranks;
wall times other than those of the ends of steps; notes other than where an attempt begins.

    python -m benchmarks.faults.pack pack build/faults benchmarks/faults/recordings
    python -m benchmarks.faults.pack unpack benchmarks/faults/recordings build/faults-packed
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.notes import START_NOTE
from mindpulse.store.run import Run

DROPPED = ("ffn_histogram", "samples_per_s", "memory_reserved", "memory_allocated")
KEPT_BITS = 11  # of the mantissa, the leading one included, of series with several columns
CLOCK = "step_time_s"  # this series' wall times are those of the ends of steps
INDEX = "index.jsonl"
SUFFIX = ".tar.xz"


# -- one run ----------------------------------------------------------------------------------


def encode_run(run: Run) -> bytes:
    """A run as bytes: a JSON line that describes the parts, then their steps, times and values."""
    parts, payload = [], []
    starts = {(n.attempt, n.rank): n.step for n in run.notes() if n.kind == START_NOTE}
    for attempt in run.attempts:
        for rank in run.ranks:
            found = _series_of(run, attempt, rank)
            if not found:
                continue
            steps, times = _clock(found)
            described = [_describe(series) for series in found]
            parts.append(
                {
                    "attempt": attempt, "rank": rank, "start": starts.get((attempt, rank)),
                    "steps": len(steps), "series": described,
                }
            )  # fmt: skip
            payload += [steps.astype("<i4").tobytes(), times.astype("<f8").tobytes()]
            for series in found:
                payload += [series.steps.astype("<i4").tobytes(), _shuffled(series, len(run.ranks))]
    head = json.dumps({"tags": run.run_tags, "parts": parts}, separators=(",", ":")).encode()
    return head + b"\n" + b"".join(payload)


def decode_run(data: bytes, folder: Path) -> None:
    """Writes the run that `encode_run` gave into a new run folder."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    stream = io.BytesIO(rest)
    for part in head["parts"]:
        steps = np.frombuffer(stream.read(4 * part["steps"]), "<i4")
        times = np.frombuffer(stream.read(8 * part["steps"]), "<f8")
        first = float(times[0]) if len(times) else 0.0
        recorder = Recorder(
            folder, rank=part["rank"], fingerprint=head["tags"], clock=lambda t=first: t
        )
        if recorder.attempt != part["attempt"]:
            raise UsageError(f"{folder}: attempt {recorder.attempt}, wanted {part['attempt']}")
        if part["start"] is not None:
            recorder.note(START_NOTE, step=part["start"])
        for told in part["series"]:
            spec, rows = _read_series(told, stream, steps, times)
            recorder.write(spec, rows)
        recorder.close()


def _series_of(run: Run, attempt: int, rank: int) -> list[Series]:
    found = []
    for tag in sorted(run.specs()):
        if tag in DROPPED:
            continue
        try:
            series = run.series(tag, rank, attempt)
        except UsageError:  # this rank or attempt never had it
            continue
        if len(series):
            found.append(series)
    return found


def _clock(found: Sequence[Series]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    of = next((series for series in found if series.spec.tag == CLOCK), found[0])
    return of.steps, of.wall_times


def _describe(series: Series) -> dict[str, Any]:
    spec = series.spec
    return {
        "tag": spec.tag, "plugin": spec.plugin, "unit": spec.unit, "axes": spec.axes,
        "columns": spec.columns, "dtype": spec.dtype, "reduction": spec.reduction,
        "rows": len(series),
    }  # fmt: skip


def _shuffled(series: Series, ranks: int) -> bytes:
    """float32 values, all first bytes, then all second ones, and so on: that packs better."""
    values = np.ascontiguousarray(series.rows.values, "<f4")
    if values.shape[1] > 1 and ranks == 1:  # ranks are compared digit by digit
        values = rounded(values)
    return values.view(np.uint8).reshape(-1, 4).T.tobytes()


def rounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """To `KEPT_BITS` bits of mantissa; zeros, infinities and NaN stay what they are.

    Example:
        >>> rounded(np.array([1.0001, 0.0, np.inf], np.float32)).tolist()
        [1.0, 0.0, inf]
    """
    dropped = 24 - KEPT_BITS
    words = values.view(np.uint32)
    half = np.uint32(1 << (dropped - 1))
    mask = np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    found = ((words + half) & mask).view(np.float32)
    kept = ~np.isfinite(values) | ~np.isfinite(found)
    return np.where(kept, values, found).astype(np.float32)


def _read_series(
    told: Mapping[str, Any],
    stream: io.BytesIO,
    clock_steps: NDArray[np.int32],
    clock_times: NDArray[np.float64],
) -> tuple[SeriesSpec, Rows]:
    spec = SeriesSpec(
        told["tag"], told["plugin"], told["unit"], tuple(told["axes"]),
        tuple(tuple(column) for column in told["columns"]), told["dtype"], told["reduction"],
    )  # fmt: skip
    count = told["rows"]
    steps = np.frombuffer(stream.read(4 * count), "<i4").astype(np.int64)
    size = 4 * count * spec.width
    planes = np.frombuffer(stream.read(size), np.uint8).reshape(4, -1)
    values = np.ascontiguousarray(planes.T).view("<f4").reshape(count, spec.width)
    at = np.clip(np.searchsorted(clock_steps, steps), 0, max(0, len(clock_steps) - 1))
    return spec, Rows(steps, clock_times[at].astype(np.float64), values.astype(spec.dtype))


# -- many runs --------------------------------------------------------------------------------


def chosen(lines: Sequence[Mapping[str, Any]], seeds: int, plain: int) -> list[Mapping[str, Any]]:
    """The runs to be kept: the first seeds of each group (variant, recipe, severity).

    Args:
        seeds: of each group.
        plain: of the plain runs of each variant.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line["seed"]):
        groups[line["variant"], line["recipe"], line["severity"]].append(line)
    kept = [
        line
        for (_, recipe, _), members in groups.items()
        for line in members[: plain if recipe == "plain" else seeds]
    ]
    return sorted(kept, key=lambda line: line["id"])


def pack(root: Path, target: Path, seeds: int, plain: int) -> int:
    """Packs a subset of a recordings folder; returns the bytes written."""
    lines = [json.loads(line) for line in (root / INDEX).read_text("utf-8").splitlines()]
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob(f"*{SUFFIX}"):
        old.unlink()
    by_variant: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in chosen(lines, seeds, plain):
        by_variant[line["variant"]].append(line)
    total = 0
    for variant, own in sorted(by_variant.items()):
        path = target / f"{variant}{SUFFIX}"
        with (
            lzma.open(path, "wb", preset=9) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            _add(archive, INDEX, "".join(json.dumps(line) + "\n" for line in own).encode())
            for line in own:
                _add(archive, line["run"], encode_run(open_run(root / line["run"])))
        total += path.stat().st_size
    return total


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def unpack(source: Path, root: Path) -> int:
    """Unpacks archives into a recordings folder as `record` makes it; returns how many runs.

    Raises:
        UsageError: there is no archive, or the folder holds recordings already.
    """
    archives = sorted(source.glob(f"*{SUFFIX}"))
    if not archives:
        raise UsageError(f"{source}: no *{SUFFIX} in it; `make bench-faults` records anew")
    if (root / INDEX).exists():
        raise UsageError(f"{root / INDEX} exists: choose an empty folder, or delete that one")
    root.mkdir(parents=True, exist_ok=True)
    index, count = [], 0
    for path in archives:
        with tarfile.open(path, "r:xz") as archive:
            for member in archive:
                file = archive.extractfile(member)
                data = file.read() if file is not None else b""
                if member.name == INDEX:
                    index.append(data.decode())
                    continue
                name = Path(member.name)
                if name.is_absolute() or ".." in name.parts:
                    raise UsageError(f"{path}: member {member.name!r} leaves the folder")
                decode_run(data, root / name)
                count += 1
    (root / INDEX).write_text("".join(index), "utf-8")
    return count


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(description="packs recordings for the repository")
    verbs = options.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="a recordings folder into archives")
    unpacking = verbs.add_parser("unpack", help="archives into a recordings folder")
    for verb in (packing, unpacking):
        verb.add_argument("source", type=Path)
        verb.add_argument("target", type=Path)
    packing.add_argument("--seeds", type=int, default=1, help="of each recipe and severity")
    packing.add_argument("--plain", type=int, default=3, help="plain runs of each variant")
    given = options.parse_args()
    if given.verb == "pack":
        size = pack(given.source, given.target, given.seeds, given.plain)
        print(f"{size / 1e6:.1f} MB in {given.target}")
    else:
        print(f"{unpack(given.source, given.target)} runs in {given.target}")


if __name__ == "__main__":
    main()
