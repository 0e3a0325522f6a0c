"""A place that the user points out, where structure cannot tell."""

from __future__ import annotations

from typing import Any

from mindspore import nn

from mindpulse.errors import UsageError

KINDS = ("attention", "norm", "ffn", "logits", "router")


class Mark(nn.Cell):  # type: ignore[misc]
    """Hands a tensor through unchanged, so that it can be measured.

    ```python
    self.mark = Mark("attention", heads=8)      # in __init__
    p = self.mark(p, logits)                    # in construct: (batch, head, query, key)
    ```

    Args:
        kind: "attention", "norm", "ffn", "logits" or "router".
        heads: number of heads, for attention.
        size: number of experts, for a router.
        top_k: experts that each token goes to, for a router.
    """

    def __init__(self, kind: str, *, heads: int = 0, size: int = 0, top_k: int = 1) -> None:
        if kind not in KINDS:
            raise UsageError(f"Mark({kind!r}): use one of {', '.join(KINDS)}")
        super().__init__(auto_prefix=False)
        self.kind, self.heads, self.size, self.top_k = kind, heads, size, top_k

    def construct(self, measured: Any, before: Any = None) -> Any:
        """Returns `measured`; `before` is what it was made of (for attention: the logits)."""
        return measured
