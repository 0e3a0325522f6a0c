"""What probes should have seen: each tensor of a training in PyNative, copied by code of our own.

Nothing of MindPulse is used here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn
from numpy.typing import NDArray

from model_examples import Example

Keep = Callable[[str, Any], None]


class Copying:
    """Stands in for a Primitive and keeps copies of what goes in and what comes out."""

    def __init__(self, primitive: Any, path: str, keep: Keep) -> None:
        self.primitive, self.path, self.keep = primitive, path, keep

    def __call__(self, x: Any) -> Any:
        out = self.primitive(x)
        self.keep(f"in:{self.path}", x)
        self.keep(f"out:{self.path}", out)
        return out


def record(
    example: Example, net: Any, optimizer: Any, batches: list[tuple[Any, ...]]
) -> dict[str, NDArray[Any]]:
    """Trains on the batches, in PyNative.

    Returns:
        "in:PATH" and "out:PATH" (steps, ...) of the places of interest, "losses" (steps,), the
        parameters' "names", and of each, by tag, the norms (steps, parameters).
    """
    found: dict[str, list[Any]] = defaultdict(list)
    gradients = ms.value_and_grad(net, None, optimizer.parameters)
    with _watched(example, net, lambda name, value: found[name].append(value.asnumpy().copy())):
        for batch in batches:
            loss, grads = gradients(*batch)
            found["losses"].append(float(loss.asnumpy().reshape(())))
            found["grad_norm_param"].append(norms(grads))
            optimizer(grads)
            found["weight_norm"].append(norms(optimizer.parameters))
            found["adam_m_norm"].append(norms(optimizer.moments1))
            found["adam_v_norm"].append(norms(optimizer.moments2))
    arrays = {name: np.array(values) for name, values in found.items()}
    assert {len(values) for values in arrays.values()} == {len(batches)}, "one call a step"
    arrays["names"] = np.array([p.name for p in optimizer.parameters])
    return arrays


def norms(tensors: Iterable[Any]) -> list[float]:
    """The L2 norm of each."""
    return [float(np.linalg.norm(t.asnumpy().astype(np.float64))) for t in tensors]


@contextmanager
def _watched(example: Example, net: Any, keep: Keep) -> Iterator[None]:
    cells = dict(net.cells_and_names())
    wanted = [*example.of_layers(example.softmax), *example.all_norms, example.logits]
    wanted += example.of_layers(example.inner)
    for path in wanted:
        if path in cells:
            cells[path].register_forward_hook(_hook(path, keep))
        else:
            owner, _, attribute = path.rpartition(".")
            primitive = getattr(cells[owner], attribute)
            assert not isinstance(primitive, nn.Cell)
            object.__setattr__(cells[owner], attribute, Copying(primitive, path, keep))
    yield


def _hook(path: str, keep: Keep) -> Callable[[Any, Any, Any], None]:
    def hook(cell: Any, inputs: Any, output: Any) -> None:
        keep(f"in:{path}", inputs[0])
        keep(f"out:{path}", output)

    return hook
