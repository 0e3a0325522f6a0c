"""One reader does one task, in a process of its own: figures as a line of JSON.

    python benchmarks/read_worker.py TASK READER FOLDER STEPS COLD

What a reader must import is imported before the clock starts. COLD is 1 where the files are to
be thrown out of the page cache first.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from mindpulse.store.folder_run import open_folder
from read_data import EVENTS_NAME

Answer = Any
BUCKETS = 200
ROW = struct.Struct("<3xqxdxdxI")


def ours_tags(folder: Path, _: int) -> Answer:
    return len(open_folder(folder).specs())


def ours_curve(folder: Path, _: int) -> Answer:
    return partial(told, open_folder(folder).series("loss").values)


def ours_column(folder: Path, _: int) -> Answer:
    return partial(told, open_folder(folder).series("grad_norm", columns=[0]).values[:, 0])


def ours_drawn(folder: Path, _: int) -> Answer:
    return drawn(open_folder(folder).overview("loss", 2000).curve().values)


def ours_last(folder: Path, _: int) -> Answer:
    run = open_folder(folder)
    return round(sum(float(run.last(tag, 1).values[0]) for tag in run.specs()), 3)


def ours_last_wide(folder: Path, _: int) -> Answer:
    last = open_folder(folder).last("grad_norm", 1).values[0]
    return round(float(last.astype(np.float64).sum()), 3)


def ours_heat(folder: Path, _: int) -> Answer:
    seen = open_folder(folder).overview("grad_norm", 2 * BUCKETS)
    return heat(seen.mean, seen.counts)


def ours_tail(folder: Path, _: int) -> Answer:
    return len(open_folder(folder).last("loss", 100))


def loop_rows(folder: Path) -> Iterator[tuple[int, float, float]]:
    """A straight loop, with each row's checksum."""
    path = next(folder.rglob("loss.ms"))
    data = path.read_bytes()
    start = len(data) % ROW.size
    while data[start : start + 3] != b"\x12\x20\x09":  # as a header ends at any byte
        start += ROW.size
    for at in range(start, len(data), ROW.size):
        step, wall_time, value, said = ROW.unpack_from(data, at)
        if google_crc32c.value(data[at : at + ROW.size - 4]) == said:
            yield step, wall_time, value


def loop_curve(folder: Path, _: int) -> Answer:
    rows = list(loop_rows(folder))
    return partial(told, np.array([value for _, _, value in rows]))


def loop_drawn(folder: Path, steps: int) -> Answer:
    size = steps / 1000
    least: dict[int, float] = {}
    most: dict[int, float] = {}
    odd: dict[int, float] = {}
    for step, _, value in loop_rows(folder):
        bucket = int(step / size)
        if value != value:
            odd.setdefault(bucket, value)
        else:
            least[bucket] = min(value, least.get(bucket, value))
            most[bucket] = max(value, most.get(bucket, value))
    return drawn(np.array([*least.values(), *most.values(), *odd.values()]))


def cat(folder: Path, _: int) -> Answer:
    path = next(folder.rglob("loss.ms"), None) or next(folder.rglob("grad_norm.ms"))
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)
    return None


def duckdb_tags(folder: Path, _: int) -> Answer:
    import duckdb

    name = next(folder.glob("*.parquet"))
    return len(duckdb.sql(f"DESCRIBE SELECT * FROM '{name}'").fetchall()) - 2


def duckdb_curve(folder: Path, _: int) -> Answer:
    import duckdb

    name = next(folder.glob("*.parquet"))
    found = duckdb.sql(f"SELECT step, wall_time, loss FROM '{name}'").fetchnumpy()
    return partial(told, np.ma.filled(found["loss"], np.nan))


def duckdb_drawn(folder: Path, steps: int) -> Answer:
    import duckdb

    name = next(folder.glob("*.parquet"))
    good = "FILTER (NOT isnan(loss))"
    found = duckdb.sql(
        f"SELECT arg_min(step, loss) {good}, min(loss) {good}, arg_max(step, loss) {good},"
        f" max(loss) {good}, min(step) FILTER (isnan(loss)) FROM '{name}'"
        f" GROUP BY step * 1000 // {steps}"
    ).fetchall()
    values = [value for row in found for value in (row[1], row[3])]
    values += [float("nan") for row in found if row[4] is not None]
    return drawn(np.array(values))


def duckdb_last(folder: Path, steps: int) -> Answer:
    import duckdb

    name = next(folder.glob("*.parquet"))
    (row,) = duckdb.sql(f"SELECT * FROM '{name}' WHERE step = {steps - 1}").fetchall()
    return round(float(np.sum(np.array(row[2:], np.float64))), 3)


def duckdb_heat(folder: Path, steps: int) -> Answer:
    import duckdb

    name = next(folder.glob("*.parquet"))
    found = duckdb.sql(
        f"SELECT step * {BUCKETS} // {steps} AS bucket, avg(COLUMNS('layers.*'))"
        f" FROM (SELECT * FROM '{name}' WHERE step <> {steps // 2}) GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return heat(np.array(found)[:, 1:])


def database(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(next(folder.glob("*.sqlite")))


def sqlite_tags(folder: Path, _: int) -> Answer:
    return len(database(folder).execute("SELECT name FROM tags").fetchall())


def sqlite_curve(folder: Path, _: int) -> Answer:
    query = "SELECT step, wall_time, value FROM points WHERE tag = 0 ORDER BY step"
    rows = database(folder).execute(query).fetchall()
    return partial(told, np.array([row[2] for row in rows], np.float64))


def sqlite_drawn(folder: Path, steps: int) -> Answer:
    query = (
        "SELECT min(value), max(value), sum(value IS NULL) FROM points WHERE tag = 0"
        f" GROUP BY step * 1000 / {steps}"
    )
    rows = database(folder).execute(query).fetchall()
    values = [value for row in rows for value in row[:2]]
    return drawn(np.array(values + [float("nan") for row in rows if row[2]], np.float64))


def sqlite_last(folder: Path, _: int) -> Answer:
    one = "SELECT value FROM points WHERE tag = id ORDER BY step DESC LIMIT 1"
    rows = database(folder).execute(f"SELECT ({one}) FROM tags").fetchall()
    return round(sum(row[0] for row in rows), 3)


def sqlite_heat(folder: Path, steps: int) -> Answer:
    bucket = f"step * {BUCKETS} / {steps}"
    query = f"SELECT tag, {bucket}, avg(value) FROM points GROUP BY 1, 2 ORDER BY 1, 2"
    rows = database(folder).execute(query).fetchall()
    return heat(np.array([row[2] for row in rows]).reshape(-1, BUCKETS).T)


def server_curve(folder: Path, steps: int) -> Answer:
    return with_server(folder, steps, lambda ask: told(ask("loss", 1 << 30)[0]))


def server_drawn(folder: Path, steps: int) -> Answer:
    """It draws points by chance, so a spike may be missing: the answer is not compared."""
    return with_server(folder, steps, lambda ask: drawn(ask("loss", 2000)[0]) and None)


def server_last(folder: Path, steps: int) -> Answer:
    def total(ask: Callable[..., Any]) -> Answer:
        return round(sum(float(values[-1]) for values in ask("", 2)), 3)

    return with_server(folder, steps, total)


def server_heat(folder: Path, steps: int) -> Answer:
    def means(ask: Callable[..., Any]) -> Answer:
        found = [np.array_split(values, BUCKETS) for values in ask("", 1 << 30)]
        return heat(np.array([[np.nanmean(part) for part in parts] for parts in found]).T)

    return with_server(folder, steps, means)


def server_tags(folder: Path, steps: int) -> Answer:
    return with_server(folder, steps, lambda ask: len(ask("", 1)), wait=False)


def with_server(
    folder: Path, steps: int, use: Callable[[Callable[..., Any]], Answer], *, wait: bool = True
) -> Answer:
    """Starts TensorBoard's data server with all points and asks when the last step is there."""
    import grpc
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2 as messages
    from tensorboard.data.proto import data_provider_pb2_grpc as rpc

    with tempfile.TemporaryDirectory() as place:
        port = Path(place) / "port"
        command = [
            tensorboard_data_server.server_binary(),
            f"--logdir={folder}",
            f"--port-file={port}",
            "--samples-per-plugin=scalars=all",
            "--die-after-stdin",
            "--reload=once",
            "--port=0",
        ]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            while not port.exists() or not port.read_text().strip():
                time.sleep(0.005)
            limit = [("grpc.max_receive_message_length", -1)]
            channel = grpc.insecure_channel(f"localhost:{port.read_text().strip()}", limit)
            stub = rpc.TensorBoardDataProviderStub(channel)
            while _last_step(messages, stub) < (steps - 1 if wait else 0):
                time.sleep(0.02)
            return use(lambda tag, points: _scalars(messages, stub, tag, points))
        finally:
            server.kill()
            server.wait()


def _last_step(messages: Any, stub: Any) -> int:
    request = messages.ListScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    reply = stub.ListScalars(request)
    found = [tag.metadata.max_step for run in reply.runs for tag in run.tags]
    return min(found, default=-1)


def _scalars(messages: Any, stub: Any, tag: str, points: int) -> list[np.ndarray]:
    request = messages.ReadScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    if tag:
        request.run_tag_filter.tags.names.append(tag)
    request.downsample.num_points = points
    reply = stub.ReadScalars(request)
    return [np.array(found.data.value) for run in reply.runs for found in run.tags]


def accumulator_curve(folder: Path, _: int) -> Answer:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / EVENTS_NAME), size_guidance={"scalars": 0})
    accumulator.Reload()
    return partial(told, np.array([event.value for event in accumulator.Scalars("loss")]))


def told(values: np.ndarray) -> Answer:
    """What tells whether a whole curve was read: rows, sum of the finite values, others."""
    good = values[np.isfinite(values)].astype(np.float64)
    return [len(values), round(float(good.sum()), 1), len(values) - len(good)]


def drawn(values: np.ndarray) -> Answer:
    """What a thinned curve must keep: minimum, maximum, NaN; and that it is thin."""
    assert len(values) <= 2001, len(values)
    return [
        round(float(np.nanmin(values)), 4),
        round(float(np.nanmax(values)), 4),
        bool(np.isnan(values).any()),
    ]


def heat(mean: np.ndarray, rows: np.ndarray | None = None) -> Answer:
    """Columns and the mean of all cells, which does not depend on their borders."""
    return [mean.shape[1], round(float(np.average(np.nanmean(mean, axis=1), weights=rows)), 2)]


def forget(folder: Path) -> None:
    """Throws the files out of the page cache."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def warm(folder: Path) -> None:
    """Reads the files into the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.read(1 << 16):
                    pass


def memory_kib(name: str) -> int:
    """VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def imports(reader: str) -> None:
    """What the reader needs, so that importing it is not measured."""
    if reader == "duckdb":
        import duckdb

        duckdb.sql("SELECT 1").fetchall()
    elif reader.startswith("server"):
        import grpc  # noqa: F401
        import tensorboard_data_server  # noqa: F401
        from tensorboard.data.proto import data_provider_pb2_grpc  # noqa: F401
    elif reader == "accumulator":
        from tensorboard.backend.event_processing import event_accumulator  # noqa: F401


def main() -> None:
    """Does the task once and prints the figures."""
    task, reader, folder, steps, cold = sys.argv[1:6]
    act = globals()[f"{reader}_{task}" if reader != "cat" else "cat"]
    imports(reader)
    (forget if cold == "1" else warm)(Path(folder))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = memory_kib("VmRSS")
    begun = time.perf_counter()
    answer = act(Path(folder), int(steps))
    seconds = time.perf_counter() - begun
    peak = memory_kib("VmHWM") - before
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    figures = {
        "seconds": seconds,
        "peak_mb": (child if reader == "server" else peak) * 1024 / 1e6,
        "answer": answer() if callable(answer) else answer,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
