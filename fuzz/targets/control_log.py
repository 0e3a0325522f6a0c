"""`control.jsonl`: the only way back into a training."""

from __future__ import annotations

from harness import REFUSED, file_with

from mindpulse.control import Answer, ControlLog, Rejected, Request


def seeds() -> list[bytes]:
    """A request and an answer as they are written."""
    path = file_with(b"", "control", "control.jsonl")
    path.unlink()
    log = ControlLog(path.parent, clock=lambda: 1.0)
    asked = log.request("scale_lr", {"factor": 0.5}, step=120, expires_step=170, rule="r")
    log.answer(Answer(asked.seq, 0.0, rank=0, attempt=1, step=120, status="done"))
    return [path.read_bytes(), b'{"type":"request","seq":1e400}\n']


def one_input(data: bytes) -> None:
    """Each line is a request, an answer, or rejected; numbers of requests grow."""
    path = file_with(data, "control", "control.jsonl")
    path.chmod(0o600)
    with REFUSED:
        found = ControlLog(path.parent).poll()
        assert all(isinstance(message, Request | Answer | Rejected) for message in found)
        numbers = [message.seq for message in found if isinstance(message, Request)]
        assert numbers == sorted(set(numbers))
