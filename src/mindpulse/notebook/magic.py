"""`%mindpulse`, the magic: joins the line, the notebook's names and what is shown."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mindpulse.debugging.peek import peek
from mindpulse.debugging.snap import snap
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.interop import open_run
from mindpulse.notebook.arguments import USAGE, parse_snap, parse_view
from mindpulse.notebook.following import views
from mindpulse.notebook.look import Eye, flush_own, run_of
from mindpulse.notebook.page import Page
from mindpulse.recorder import living
from mindpulse.report.collect import collect
from mindpulse.rules.load import load_rules

NAME = "mindpulse"


def register(shell: Any) -> None:
    """Adds the magic to an IPython shell."""

    def magic(line: str) -> Any:
        from IPython.core.error import UsageError as ShellError

        try:
            return _do(line, shell)
        except MindPulseError as error:  # the shell prints its own kind without a traceback
            raise ShellError(str(error)) from None

    magic.__doc__ = USAGE
    magic._ipython_magic_no_var_expand = True  # type: ignore[attr-defined] # {} is Python too
    shell.register_magic_function(magic, "line", NAME)


def unregister(shell: Any) -> None:
    """Takes the magic away."""
    shell.magics_manager.magics["line"].pop(NAME, None)


def _do(line: str, shell: Any) -> Any:
    verb, _, rest = line.strip().partition(" ")
    if verb in ("", "help", "-h", "--help"):
        print(USAGE)
        return None
    if verb not in _VERBS:
        raise UsageError(f"%mindpulse {verb}: no such verb\n{USAGE}")
    return _VERBS[verb](rest.strip(), shell)


def _live(line: str, shell: Any) -> None:
    from IPython.display import display

    asked = parse_view("live", _expanded(line, shell))
    eye = Eye(_run(asked), load_rules(_rules(asked)))
    handle = None
    try:
        for view in views(
            eye, asked.seconds, asked.every, asked.lang, stopwatch=time.monotonic, sleep=time.sleep
        ):
            if handle is None:
                handle = display(view, display_id=True)  # type: ignore[no-untyped-call]
            else:
                handle.update(view)
    except KeyboardInterrupt:
        return  # the button that stops a cell: the last view stays


def _report(line: str, shell: Any) -> Page:
    asked = parse_view("report", _expanded(line, shell))
    run, file = _run(asked), _rules(asked)
    flush_own(run)
    return Page(
        collect(open_run(run), load_rules(file), replay_all=file is not None),
        asked.lang,
        asked.height,
    )


def _peek(line: str, shell: Any) -> Any:
    if not line:
        raise UsageError(f"peek: give an expression\n{USAGE}")
    return peek(shell.ev(line), line if line.isidentifier() else "")


def _snap(line: str, shell: Any) -> Path:
    name, expression, options = parse_snap(line)
    return snap(name, shell.ev(expression), **options)


_VERBS: dict[str, Callable[[str, Any], Any]] = {
    "live": _live,
    "report": _report,
    "peek": _peek,
    "snap": _snap,
}


def _expanded(line: str, shell: Any) -> str:
    """`$name` and `{expression}` by the notebook's values, as in other magics."""
    from IPython.utils.text import DollarFormatter

    return str(DollarFormatter().vformat(line, (), shell.user_ns))


def _run(asked: Namespace) -> Path:
    """The run that was named, else the one that this process writes.

    Raises:
        UsageError: none was named, and none is written.
    """
    if asked.run is not None:
        return Path(asked.run).expanduser()
    writing = living()
    if not writing:
        raise UsageError(f"which run? this notebook writes none; name its folder\n{USAGE}")
    return run_of(writing[0])


def _rules(asked: Namespace) -> Path | None:
    return None if asked.rules is None else Path(asked.rules).expanduser()
