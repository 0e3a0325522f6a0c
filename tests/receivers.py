"""Real receivers for tests: an HTTP server with scripted answers, runs with a journal of alerts."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import Journal
from mindpulse.deliver.settings import Target, load_receivers


@dataclass
class Request:
    """What a receiver got."""

    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self):
        return json.loads(self.body)


Answer = Callable[[BaseHTTPRequestHandler], None]


def says(body: object = "ok", status: int = 200, **headers: str) -> Answer:
    """An answer: a text as it is, anything else as JSON."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def resets(handler: BaseHTTPRequestHandler) -> None:
    """Breaks the connection with a reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def hangs(handler: BaseHTTPRequestHandler) -> None:
    """Never answers, until the server is stopped."""
    handler.server.stopped.wait(60)  # type: ignore[attr-defined]
    handler.close_connection = True


def drips(handler: BaseHTTPRequestHandler) -> None:
    """Begins well, and then sends a byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.stopped.wait(0.1):  # type: ignore[attr-defined]
        handler.wfile.write(b" ")


@dataclass
class Hook:
    """A server at work: what it got, and what it answers: the script, then its last answer."""

    url: str
    script: list[Answer]
    requests: list[Request] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, count: int, timeout_s: float = 10.0) -> list[Request]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, timeout_s), (
                f"{len(self.requests)} of {count} requests came"
            )
        return self.requests

    def take(self, request: Request) -> Answer:
        with self.arrived:
            self.requests.append(request)
            self.arrived.notify_all()
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@contextmanager
def hook(*script: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Hook]:
    """A server on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            split = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(split.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.take(Request(split.path, query, self.headers, body, time.monotonic()))(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        stopped = threading.Event()

        def handle_error(self, *_: object) -> None:
            pass  # the client has gone

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "https" if tls else "http"
    found = Hook(f"{scheme}://127.0.0.1:{server.server_port}", list(script) or [says()])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as environment:
            for name in ("no_proxy", "NO_PROXY"):  # whatever proxy this machine uses
                environment.setenv(name, "127.0.0.1")
            yield found
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def alert(
    number: int = 0, state: str = "firing", rule: str = "gradient-explosion", **changed: object
) -> AlertEvent:
    """An alert at step 10 + number."""
    step = 10 + number
    fields: dict[str, object] = {
        "id": f"{rule}/a1/r0/s{step}",
        "rule": rule,
        "state": state,
        "severity": "error",
        "part": "gradient",
        "step": step if state == "firing" else step + 5,
        "since_step": step,
        "wall_time": 1.7e9 + step,
        "rank": 0,
        "attempt": 1,
        "columns": ("layer=3",),
        "evidence": {"last(grad_norm)": 80.0 + number},
    }
    return AlertEvent(**{**fields, **changed})  # type: ignore[arg-type]


def tell(run: Path, *events: AlertEvent) -> None:
    """Writes alerts into the journal of a run, as the watcher does."""
    run.mkdir(parents=True, exist_ok=True)
    Journal(run, []).add(events)


def targets(tmp_path: Path, text: str) -> tuple[Target, ...]:
    """The receivers of a file with this text."""
    path = tmp_path / "receivers.toml"
    path.write_text(text, encoding="utf-8")
    return load_receivers(path)


def quick(name: str, url: str, **changed: object) -> str:
    """The table of a webhook that waits for nothing."""
    keys: dict[str, object] = {"group_s": 0, "every_s": 0, "timeout_s": 2, **changed}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(
        ["[[receiver]]", f'name = "{name}"', 'type = "webhook"', f'url = "{url}"', *lines, ""]
    )


def ids(requests: list[Request]) -> list[str]:
    """The alerts of webhook documents, as "step state"."""
    return [f"{a['since_step']} {a['state']}" for r in requests for a in r.json["alerts"]]
