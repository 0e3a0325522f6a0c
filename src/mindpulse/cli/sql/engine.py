"""DuckDB with its doors shut: no files, no network, no settings, bounded memory and time."""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mindpulse.cli.optional import load
from mindpulse.errors import UsageError

MEMORY = "1GiB"
MEMORY_BYTES = 1 << 30
SLACK_BYTES = 1 << 29
GRACE_S = 3.0
POLL_S = 0.1
MAX_THREADS = 4
# In this order: temp_directory cannot be set once access is off, and the last line locks them all.
SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "memory_limit": f"'{MEMORY}'",
    "temp_directory": "''",
    "enable_external_access": "false",
    "lock_configuration": "true",
}


@contextmanager
def locked_database() -> Iterator[Any]:
    """A connection to an empty database in memory that reaches nothing outside itself.

    Raises:
        UsageError: DuckDB is not installed, or is too old to be locked.
    """
    duckdb = load("duckdb")
    connection = duckdb.connect(":memory:")
    try:
        connection.execute(f"SET threads = {min(MAX_THREADS, os.cpu_count() or 1)}")
        for name, value in SETTINGS.items():
            try:
                connection.execute(f"SET {name} = {value}")
            except duckdb.Error as error:
                raise UsageError(
                    f"DuckDB {duckdb.__version__} cannot be locked ({name}: {error}); "
                    "run: pip install 'duckdb>=1.4'"
                ) from error
        yield connection
    finally:
        connection.close()


@contextmanager
def time_limit(connection: Any, seconds: float) -> Iterator[None]:
    """Stops what the connection does after a while.

    DuckDB looks for an interrupt between blocks of rows. One call of a function may keep it from
    looking for hours; then the process is ended, which holds nothing but this query.

    Raises:
        UsageError: the time was over.
    """
    told = f"the query was stopped after {seconds:g} s; ask for less, or give more by --timeout"
    done = threading.Event()

    def watch() -> None:
        if done.wait(min(seconds, threading.TIMEOUT_MAX)):
            return
        for _ in range(round(GRACE_S / POLL_S)):  # between two fetches one would go unheard
            connection.interrupt()
            if done.wait(POLL_S):
                return
        os.write(2, f"mindpulse: {told}\n".encode())
        os._exit(2)

    watcher = threading.Thread(target=watch, name="mindpulse-sql-limit", daemon=True)
    watcher.start()
    try:
        yield
    except load("duckdb").InterruptException:
        raise UsageError(told) from None
    finally:
        done.set()
        watcher.join()


@contextmanager
def quick_interrupt() -> Iterator[None]:
    """Lets Ctrl-C end the process at once: Python would hear it when DuckDB comes back only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def memory_limit() -> Iterator[None]:
    """Bounds the memory that the process may add to what it has.

    DuckDB counts its tables and sorts, but not the lists and texts within one block of rows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    wanted = pages * resource.getpagesize() + MEMORY_BYTES + SLACK_BYTES
    if soft != resource.RLIM_INFINITY:
        wanted = min(wanted, soft)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def worded_errors() -> Iterator[None]:
    """Turns errors of DuckDB into ours.

    Raises:
        UsageError: the query is wrong, or wanted too much memory.
    """
    duckdb = load("duckdb")
    try:
        yield
    except duckdb.InterruptException:
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        raise UsageError(
            f"the query needs more than {MEMORY} of memory; ask for fewer rows or columns"
        ) from None
    except duckdb.Error as error:
        raise UsageError(plain_error(str(error))) from None


def plain_error(text: str) -> str:
    """DuckDB's message without what nobody asked for; the line with the position stays.

    Example:
        >>> plain_error("Binder Error: no column x\\n\\nLINE 1: select x\\n               ^")
        'SQL: no column x\\nLINE 1: select x\\n               ^'
    """
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", text.strip())
    text = re.sub(r' Use "SET [^.]*\.', "", text)  # advice that a locked database cannot follow
    return "SQL: " + re.sub(r"\n\s*\n", "\n", text)
