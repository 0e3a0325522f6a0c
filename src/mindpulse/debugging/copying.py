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
    if isinstance(tensor, Copied):
        return tensor
    try:
        if hasattr(tensor, "asnumpy"):
            return _plain(tensor.asnumpy(), str(tensor.dtype), str(getattr(tensor, "device", "")))
        if hasattr(tensor, "detach") and hasattr(tensor, "cpu"):
            return _of_torch(tensor)
        array = np.asarray(tensor)
    except UsageError:
        raise
    except Exception as error:  # whatever the framework says: it is the user's to see
        raise UsageError(
            f"{_named(tensor)} cannot be copied to the host: {type(error).__name__}: {error}"
        ) from error
    if array.dtype.kind not in KINDS and array.dtype.name != "bfloat16":
        raise UsageError(
            f"{_named(tensor)} holds no numbers ({array.dtype}): give a tensor, an array or a "
            "list of numbers"
        )
    return _plain(array, str(array.dtype), "")


def _of_torch(tensor: Any) -> Copied:
    on_host = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # unknown to NumPy
        on_host = on_host.float()
    return _plain(on_host.numpy(), str(tensor.dtype), str(tensor.device))


def _plain(array: Any, dtype: str, device: str) -> Copied:
    """The array as a copy: what MindSpore hands out on the CPU is the memory of the device."""
    array = np.asarray(array)
    known = array.dtype.kind in KINDS and array.dtype.name != "bfloat16"
    return Copied(
        np.array(array, dtype=None if known else np.float32, order="C"), dtype, device or "host"
    )


def _named(tensor: Any) -> str:
    kind = type(tensor)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{repr(tensor)[:60]!r} ({module}{kind.__qualname__})"
