"""Lets a debugger attach to a rank: `listen()` in the training script."""

from __future__ import annotations

import logging
import os

from mindpulse.errors import UsageError

log = logging.getLogger("mindpulse")
HOST = "127.0.0.1"
FIRST_PORT = 5678


def port_of(rank: int) -> int:
    """The port of a rank, as `mindpulse vscode` writes it into launch.json.

    Example:
        >>> port_of(3)
        5681
    """
    return FIRST_PORT + rank


def listen(*, wait: bool = False) -> int:
    """Waits for a debugger at the port of this rank, on this machine only.

    Args:
        wait: whether the training stands still until one has come.

    Returns:
        the port: 5678 and the rank.

    Raises:
        UsageError: debugpy is missing, RANK_ID is no rank, or the port is taken.
    """
    try:
        import debugpy
    except ImportError as error:
        raise UsageError("debugpy is missing: run  pip install debugpy") from error
    text = os.environ.get("RANK_ID", "0")
    if not text.isdecimal():
        raise UsageError(f"RANK_ID is {text!r}: want the rank of this process, a whole number")
    port = port_of(int(text))
    try:
        debugpy.listen((HOST, port))
    except RuntimeError as error:
        raise UsageError(
            f"port {port} cannot be used: {error}; end what listens there, or the debugger that "
            "this process has already"
        ) from error
    log.warning("a debugger may attach to rank %s at %s:%d", text, HOST, port)
    if wait:
        debugpy.wait_for_client()
    return port
