"""A client of the debug adapter protocol, as small as the tests need it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0


class DebugClient:
    """Talks to a debugger that listens on this machine.

    Attributes:
        capabilities: what the debugger says that it can.
    """

    def __init__(self, port: int, timeout: float = TIMEOUT_S) -> None:
        self._timeout = timeout
        self._socket = _connected(port, time.monotonic() + timeout)
        self._buffer = b""
        self._seq = 0
        self._seen: list[dict[str, Any]] = []
        self.capabilities = self.request(
            "initialize", clientID="test", adapterID="debugpy", pathFormat="path",
            linesStartAt1=True, columnsStartAt1=True,
        )  # fmt: skip

    def attach(self, breakpoints: dict[Path, list[dict[str, Any]]], **arguments: Any) -> None:
        """Attaches, sets breakpoints by file, and lets the program go on."""
        asked = self._send("attach", arguments)
        self.event("initialized")
        for path, wanted in breakpoints.items():
            told = self.request("setBreakpoints", source={"path": str(path)}, breakpoints=wanted)
            assert all(each["verified"] for each in told["breakpoints"]), told
        self.request("configurationDone")
        self._answer(asked)

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer.

        Raises:
            AssertionError: the debugger says no.
        """
        return self._answer(self._send(command, arguments))

    def event(self, *names: str) -> dict[str, Any]:
        """The next event of one of these names."""
        found = self._wait(lambda m: m["type"] == "event" and m["event"] in names)
        return {"event": found["event"], **found.get("body", {})}

    def top_frame(self, stopped: dict[str, Any]) -> dict[str, Any]:
        """The frame in which a stopped program stands."""
        frames = self.request("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        frame: dict[str, Any] = frames[0]
        return frame

    def variables(self, reference: int) -> dict[str, dict[str, Any]]:
        """Variables by name."""
        listed = self.request("variables", variablesReference=reference)["variables"]
        return {each["name"]: each for each in listed}

    def locals(self, frame: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The local variables of a frame by name."""
        scopes = self.request("scopes", frameId=frame["id"])["scopes"]
        return self.variables(scopes[0]["variablesReference"])

    def evaluate(self, frame: dict[str, Any], expression: str, context: str) -> str:
        """What an expression gives, in the watch window or the console."""
        told = self.request("evaluate", expression=expression, frameId=frame["id"], context=context)
        return str(told["result"])

    def close(self) -> None:
        """Hangs up; the program goes on."""
        self._socket.close()

    def _send(self, command: str, arguments: dict[str, Any]) -> int:
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        return self._seq

    def _answer(self, seq: int) -> dict[str, Any]:
        found = self._wait(lambda m: m["type"] == "response" and m["request_seq"] == seq)
        assert found["success"], found
        body: dict[str, Any] = found.get("body") or {}
        return body

    def _wait(self, fits: Any) -> dict[str, Any]:
        until = time.monotonic() + self._timeout
        while True:
            for index, message in enumerate(self._seen):
                if fits(message):
                    return self._seen.pop(index)
            assert time.monotonic() < until, [m.get("event") for m in self._seen]
            self._seen.append(self._read(until))

    def _read(self, until: float) -> dict[str, Any]:
        while b"\r\n\r\n" not in self._buffer:
            self._receive(until)
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        size = int(head.split(b":")[1])
        while len(rest) < size:
            self._receive(until)
            rest = self._buffer.partition(b"\r\n\r\n")[2]
        self._buffer = rest[size:]
        message: dict[str, Any] = json.loads(rest[:size])
        return message

    def _receive(self, until: float) -> None:
        self._socket.settimeout(max(0.01, until - time.monotonic()))
        data = self._socket.recv(65536)
        assert data, "the debugger has hung up"
        self._buffer += data


def _connected(port: int, until: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            assert time.monotonic() < until, f"nothing listens at port {port}"
            time.sleep(0.1)


def free_port() -> int:
    """A port that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
