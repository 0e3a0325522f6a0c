"""Keeps our code out of MindSpore's bytecode capture.

`ms.jit(capture_mode="bytecode")` turns whatever Python code runs within the step into graphs, on
every thread of the process: a probe would be compiled in pieces, and the recorder's thread with it.
What stands in skipped files runs as Python, as in PyNative mode.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

import mindpulse

log = logging.getLogger("mindpulse")


@lru_cache(maxsize=1)
def keep_out() -> None:
    """Nothing of MindPulse is captured from now on; called again, nothing happens."""
    try:
        from mindspore.graph._utils import pijit_context

        rules = pijit_context.SKIP_RULES
        if not rules:  # something was decorated before us, the rules have been handed over
            from mindspore._c_expression import pi_jit_set_context

            pi_jit_set_context(skip_files=(str(Path(mindpulse.__file__).parent),))
        elif "mindpulse" not in rules["third_party"]:
            rules["third_party"] = (*rules["third_party"], "mindpulse")
    except Exception as error:  # another MindSpore: then bytecode capture is not watched well
        log.debug("MindPulse cannot be kept out of bytecode capture: %s", error)
