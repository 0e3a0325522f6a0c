"""Runs a script eagerly, so that breakpoints inside `construct` and under `@jit` stop.

    python -m mindpulse.mindspore.pynative train.py --its --own arguments

The script may ask for graph mode; it gets PyNative mode, and a warning says so once. `MS_JIT=0` has
MindSpore call functions under `@jit` as they are; it is not enough by itself: in graph mode
MindSpore's own gradients call themselves without end then.
"""

from __future__ import annotations

import logging
import os
import runpy
import sys
from pathlib import Path
from typing import Any

log = logging.getLogger("mindpulse")


def stay_eager() -> None:
    """From now on this process knows PyNative mode only, however the mode is asked for."""
    os.environ["MS_JIT"] = "0"
    import mindspore as ms
    from mindspore import context

    holder: Any = context._Context
    real = holder.set_mode
    told: list[bool] = []

    def set_mode(self: Any, mode: int) -> None:
        if mode == ms.GRAPH_MODE and not told:
            told.append(True)
            log.warning("graph mode was asked for; running in PyNative mode, for the debugger")
        real(self, ms.PYNATIVE_MODE if mode == ms.GRAPH_MODE else mode)

    holder.set_mode = set_mode
    holder.setters["mode"] = set_mode
    ms.set_context(mode=ms.PYNATIVE_MODE)


def main(words: list[str]) -> int:
    """Runs the script that the first word names; the rest are its arguments."""
    if not words:
        sys.stderr.write("say which script: python -m mindpulse.mindspore.pynative train.py\n")
        return 2
    script = Path(words[0])
    if not script.is_file():
        sys.stderr.write(f"{script}: no such script; give the path of a Python file\n")
        return 2
    stay_eager()
    sys.argv[:] = words
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
