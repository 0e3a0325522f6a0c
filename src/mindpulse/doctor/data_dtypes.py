"""Which of many arrays are still float32 while the others are half precision."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import shown

# What is kept in float32 on purpose.
_USUAL = re.compile(
    r"norm|(^|[._])ln[._\d]|gamma|beta|bias|router|gate|moment|scale|loss|softmax|(^|[._])rope",
    re.IGNORECASE,
)
_HALF = ("float16", "bfloat16")


def check_dtypes(dtypes: Mapping[str, str]) -> list[Result]:
    """What could be half precision: parameters or intermediates by name, with their types.

    Example:
        >>> dtypes = {"q.weight": "BFloat16", "k.weight": "BFloat16", "v.weight": "Float32"}
        >>> check_dtypes(dtypes)[0].evidence()
        '2 of 3 are half precision; these are still float32: v.weight'
    """
    known = {name: dtype.rpartition(".")[2].lower() for name, dtype in dtypes.items()}
    half = [name for name, dtype in known.items() if dtype in _HALF]
    full = [name for name, dtype in known.items() if dtype == "float32"]
    unusual = [name for name in full if not _USUAL.search(name)]
    values: dict[str, object] = {"half": len(half), "count": len(known)}
    if not half or not unusual or len(unusual) >= len(half):
        return [Result("data.dtype", "ok", "data_dtypes_fine", values)]
    values["names"] = shown(unusual)
    return [Result("data.dtype", "problem", "data_dtypes_mixed", values, weight=0.3)]
