"""Our monitor beside a callback that fetches each tensor and measures on the host.

    python overhead_naive.py MODE SIZE STEPS WARM_UP

What a user writes by hand: a model that also returns its attention probabilities and what its
norms are given, a step that also returns the gradients, and NumPy for the measures. Both measure
the same on every step.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from numpy.typing import NDArray

from mindpulse.demo.bert import Bert
from mindpulse.demo.encoder import HIDDEN_LOGIT, Encoder, EncoderLayer, SelfAttention
from mindpulse.demo.loop import set_mode
from mindpulse.demo.task import build_optimizer
from overhead_cells import Setting
from overhead_models import SCHEDULED_STEPS, Copy, batches, build, task
from overhead_turns import AGAIN, PLAIN, all_extra_ms, take_turns

SAME = Setting.parse(
    "train_loss+grad_norm+grad_norm_param+weight_norm+attn_focus+attn_entropy"
    "+norm_input_mean+norm_input_variance@1"
)
Array = NDArray[np.float32]


class TellingAttention(SelfAttention):
    """Also returns its probabilities."""

    def construct(self, x: Tensor, mask: Tensor) -> Any:
        """-> like x, and (batch, head, query, key)."""
        batch, length, hidden = x.shape
        query = self._heads(self.query(x), batch, length) * self.scale
        key = self._heads(self.key(x), batch, length)
        value = self._heads(self.value(x), batch, length)
        p = self.softmax(ops.matmul(query, key.transpose((0, 1, 3, 2))) + mask)
        mixed = ops.matmul(p, value).transpose((0, 2, 1, 3)).reshape((batch, length, hidden))
        return self.output(mixed), p


class TellingLayer(EncoderLayer):
    """Also returns what its norms are given."""

    def construct(self, x: Tensor, mask: Tensor) -> Any:
        """-> like x, the probabilities, two norm inputs like x."""
        mixed, p = self.attention(self.attention_norm(x), mask)
        y = x + mixed
        return y + self.ffn(self.ffn_norm(y)), p, x, y


class TellingEncoder(Encoder):
    """Also returns what its layers tell."""

    def construct(self, x: Tensor, mask: Tensor) -> Any:
        """-> like x, all probabilities, all norm inputs."""
        seen: tuple[Tensor, ...] = ()
        entering: tuple[Tensor, ...] = ()
        for layer in self.layers:
            x, p, first, second = layer(x, mask)
            seen = (*seen, p)
            entering = (*entering, first, second)
        return self.norm(x), seen, (*entering, x)


class TellingBert(Bert):
    """Also returns what its encoder tells."""

    def construct(self, ids: Tensor, visible: Tensor, positions: Tensor, targets: Tensor) -> Any:
        """As Bert, with all probabilities and all norm inputs after the loss."""
        batch, length = ids.shape
        mask = ((1.0 - visible) * HIDDEN_LOGIT).reshape((batch, 1, 1, length))
        x = self.words(ids) + self.places.embedding_table
        x, seen, entering = self.encoder(x, mask)
        x = ops.gather(x, positions, 1, 1)
        x = self.activation(self.head(x.reshape((-1, self.hidden))))
        logits = ops.matmul(self.head_norm(x), self.words.embedding_table.transpose((1, 0)))
        loss = self.loss(logits + self.head_bias, targets.reshape((-1,)))
        return loss, seen, (*entering, x)


class TellingStep(nn.Cell):  # type: ignore[misc]
    """A training step that returns the loss, the tensors of the forward pass, the gradients."""

    def __init__(self, network: nn.Cell, optimizer: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.run = ms.value_and_grad(network, None, optimizer.parameters, has_aux=True)

    def construct(self, *batch: Tensor) -> Any:
        """A batch -> loss, probabilities, norm inputs, gradients."""
        (loss, seen, entering), gradients = self.run(*batch)
        loss = ops.depend(loss, self.optimizer(gradients))
        return loss, seen, entering, gradients


def telling(net: Bert) -> Bert:
    """The same network, with what it computes told."""
    net.__class__ = TellingBert
    net.encoder.__class__ = TellingEncoder
    for layer in net.encoder.layers:
        layer.__class__ = TellingLayer
        layer.attention.__class__ = TellingAttention
    return net


def measured(told: Sequence[Any], weights: Sequence[Parameter]) -> dict[str, list[Any]]:
    """The measures of one step, every tensor fetched to the host."""
    _, seen, entering, gradients = told
    probabilities = [tensor.asnumpy() for tensor in seen]
    inputs = [tensor.asnumpy() for tensor in entering]
    norms = [norm(tensor.asnumpy()) for tensor in gradients]
    return {
        "grad_norm_param": norms,
        "grad_norm": [float(np.sqrt(np.sum(np.square(norms))))],
        "weight_norm": [norm(parameter.asnumpy()) for parameter in weights],
        "attn_focus": [p.max(-1).mean((0, 2)) for p in probabilities],
        "attn_entropy": [entropy(p) for p in probabilities],
        "norm_input_mean": [float(x.mean()) for x in inputs],
        "norm_input_variance": [float(x.var(-1).mean()) for x in inputs],
    }


def norm(x: Array) -> float:
    """Root of the sum of squares."""
    return float(np.linalg.norm(x.ravel()))


def entropy(p: Array) -> Array:
    """(batch, head, query, key) -> (head,), in nats."""
    found: Array = -(p * np.log(p + 1e-12)).sum(-1).mean((0, 2))
    return found


def naive(size: str) -> Copy:
    """A copy that measures on the host what `SAME` measures in the step."""
    made = task(size)
    optimizer = build_optimizer(made, SCHEDULED_STEPS)
    train_step = TellingStep(telling(made.network), optimizer).set_train()
    history: list[dict[str, list[Any]]] = []

    def step(batch: list[Tensor]) -> float:
        told = train_step(*batch)
        history.append(measured(told, optimizer.parameters))
        return float(told[0].asnumpy())

    return Copy(step)


def main() -> None:
    """Lets plain, plain again, ours and the naive copy take turns; prints."""
    mode, size, steps, warm_up = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    set_mode(mode)
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        makers: dict[str, Callable[[], Copy]] = {
            PLAIN: lambda: build(task(size), mode, None, Path(folder)),
            AGAIN: lambda: build(task(size), mode, None, Path(folder)),
            "ours": lambda: build(task(size), mode, SAME, Path(folder)),
            "theirs": lambda: naive(size),
        }
        copies = {name: make() for name, make in makers.items()}
        run = {name: copy.step for name, copy in copies.items()}
        seconds = take_turns(run, batches(size), warm_up + steps)
        copies["ours"].close(SAME)
    print(json.dumps(all_extra_ms(seconds, warm_up)))


if __name__ == "__main__":
    main()
