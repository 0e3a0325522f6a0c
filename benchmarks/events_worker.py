"""One reader reads one curve out of one event file: figures as a line of JSON.

python benchmarks/events_worker.py READER FILE TAG
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BOTH = ("mindspore", "tensorboard")
Reader = Callable[[Path, str], Callable[[], int]]


def mindpulse(path: Path, tag: str) -> Callable[[], int]:
    """Our reader, from nothing: the file is indexed, then the curve is read."""
    from mindpulse.interop.events.run import EventsRun

    return lambda: len(EventsRun(path).series(tag))


def checked_only(path: Path, tag: str) -> Callable[[], int]:
    """Our reader, without the curve: every checksum, every tag."""
    from mindpulse.interop.events.run import EventsRun

    return lambda: EventsRun(path).files()[0].rows


def protobuf_loop(path: Path, tag: str) -> Callable[[], int]:
    """A straight loop: checksum and protobuf of each record, one tag kept."""
    import google_crc32c

    from mindpulse.interop.events.frame import masked

    if "summary" in path.name:
        event_class, kind = _mindspore_event(), "scalar_value"
    else:
        from tensorboard.compat.proto import event_pb2

        event_class, kind = event_pb2.Event, "simple_value"

    def read() -> int:
        steps, walls, values = [], [], []
        with path.open("rb") as file:
            while head := file.read(12):
                length, said = struct.unpack("<QI", head)
                assert said == masked(google_crc32c.value(head[:8]))
                body = file.read(length)
                (said,) = struct.unpack("<I", file.read(4))
                assert said == masked(google_crc32c.value(body))
                event = event_class.FromString(body)
                for value in event.summary.value:
                    if value.tag == tag:
                        steps.append(event.step)
                        walls.append(event.wall_time)
                        values.append(getattr(value, kind))
        return len(values)

    return read


def _mindspore_event() -> Any:
    """MindSpore's messages, as far as a number goes: with MindSpore loaded the loop is slower."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="ms.proto", package="ms", syntax="proto2")
    kinds = {"double": 1, "float": 2, "int64": 3, "string": 9, "Summary": 11, "Value": 11}
    for name, fields in {
        "Event": [("wall_time", 1, "double"), ("step", 2, "int64"), ("summary", 5, "Summary")],
        "Summary": [("value", 1, "Value")],
        "Value": [("tag", 1, "string"), ("scalar_value", 3, "float")],
    }.items():
        message = file.message_type.add(name=name)
        for label, number, kind in fields:
            field = message.field.add(name=label, number=number, type=kinds[kind])
            field.label = 3 if kind == "Value" else 1
            if kinds[kind] == 11:
                field.type_name = f".ms.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ms.Event"))


def checksum(path: Path, tag: str) -> Callable[[], int]:
    """The bytes and one checksum over them."""
    import google_crc32c

    def read() -> int:
        crc = 0
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                crc = google_crc32c.extend(crc, piece)
        return 0

    return read


def data_server(path: Path, tag: str) -> Callable[[], int]:
    """TensorBoard's data server with all points, from its start to the whole curve."""
    import grpc
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2, data_provider_pb2_grpc

    binary = tensorboard_data_server.server_binary()

    def read() -> int:
        with tempfile.TemporaryDirectory() as folder:
            # It takes a file for events by its name only.
            shutil.copy(path, Path(folder) / "events.out.tfevents.1700000000.host")
            port_file = Path(folder) / "port"
            command = [
                binary,
                f"--logdir={folder}",
                f"--port-file={port_file}",
                "--samples-per-plugin=scalars=all",
                "--die-after-stdin",
                "--reload=once",
                "--port=0",
            ]
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                while not port_file.exists() or not port_file.read_text().strip():
                    time.sleep(0.01)
                address = f"localhost:{port_file.read_text().strip()}"
                limit = [("grpc.max_receive_message_length", 1 << 30)]
                stub = data_provider_pb2_grpc.TensorBoardDataProviderStub(
                    grpc.insecure_channel(address, options=limit)
                )
                return _all_points(data_provider_pb2, stub, tag)
            finally:
                server.kill()
                server.wait()

    return read


def _all_points(messages: object, stub: object, tag: str) -> int:
    """Asks until the number of points no longer grows and the last step is there."""
    expected = int(os.environ.get("EXPECTED_POINTS", "0"))
    points = -1
    while True:
        request = messages.ReadScalarsRequest(experiment_id="")  # type: ignore[attr-defined]
        request.plugin_filter.plugin_name = "scalars"
        request.run_tag_filter.tags.names.append(tag)
        request.downsample.num_points = 1 << 30
        reply = stub.ReadScalars(request)  # type: ignore[attr-defined]
        found = sum(len(t.data.step) for run in reply.runs for t in run.tags)
        if found and found >= expected and found == points:
            return found
        points = found
        time.sleep(0.1)


READERS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "mindpulse": (BOTH, mindpulse),
    "data server, all points": (("tensorboard",), data_server),
    "protobuf loop": (BOTH, protobuf_loop),
    "checksum only": (BOTH, checksum),
}


def cpu_s() -> float:
    """CPU seconds of this process and of the children that ended."""
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def peak_mib() -> float:
    """Peak memory of the process, or of its largest child.

    Not that of getrusage for the process itself: it begins with the memory of the parent.
    """
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


def main() -> None:
    """Reads once and prints the figures."""
    name, path, tag = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    extra = {"mindpulse, checked only": checked_only}
    read = (extra.get(name) or READERS[name][1])(path, tag)
    with path.open("rb") as file:  # into the page cache
        while file.read(1 << 22):
            pass
    cpu, wall = cpu_s(), time.perf_counter()
    points = read()
    figures = {
        "cpu_s": cpu_s() - cpu,
        "wall_s": time.perf_counter() - wall,
        "peak_mib": peak_mib(),
        "points": points,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
