"""One copy of a tensor of any framework on the host, without importing one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError

KINDS = "biufc"  # booleans, whole numbers, floats, complex numbers


class Copied(NamedTuple):
    """A tensor on the host.

    Attributes:
        array: a copy of its own; bfloat16 as float32.
        dtype: as the framework calls it.
        device: where the tensor lives: "host", "CPU", "Ascend:0", "cuda:0".
    """

    array: NDArray[Any]
    dtype: str
    device: str


def copied(tensor: Any) -> Copied:
    """Copies from the device once.

    Args:
        tensor: a MindSpore tensor or Parameter, a torch tensor, a NumPy array, numbers in lists.

    Raises:
        UsageError: it is none of these, or has no value yet; the message says what was given.
    """
    try:
        array, dtype, device = _on_host(tensor)
    except Exception as error:  # whatever the framework says: it is the user's to see
        raise UsageError(
            f"{_named(tensor)} cannot be copied to the host: {type(error).__name__}: {error}"
        ) from error
    brain = array.dtype.name == "bfloat16"
    if array.dtype.kind not in KINDS and not brain:
        raise UsageError(
            f"{_named(tensor)} holds no numbers ({array.dtype}): give a tensor, an array or a "
            "list of numbers"
        )
    # A copy: what MindSpore hands out on the CPU is the memory of the device.
    plain = np.array(array, dtype=np.float32 if brain else None, order="C")
    return Copied(plain, dtype, device or "host")


def _on_host(tensor: Any) -> tuple[NDArray[Any], str, str]:
    """(array, type as the framework calls it, device or "")."""
    if hasattr(tensor, "asnumpy"):
        device = str(getattr(tensor, "device", ""))
        return np.asarray(tensor.asnumpy()), str(tensor.dtype), device
    if hasattr(tensor, "detach") and hasattr(tensor, "cpu"):
        on_host = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":  # unknown to NumPy
            on_host = on_host.float()
        return np.asarray(on_host.numpy()), str(tensor.dtype), str(tensor.device)
    array = np.asarray(tensor)
    return array, str(array.dtype), ""


def _named(tensor: Any) -> str:
    """What was given; a tensor without a value is not asked how it looks: that may fail too."""
    kind = type(tensor)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    shown = "" if hasattr(tensor, "asnumpy") else f"{repr(tensor)[:60]!r} "
    return f"{shown}({module}{kind.__qualname__})"
