"""Which operators are attention."""

from __future__ import annotations

import re

# Fused kernels of CANN: FlashAttentionScore(Grad), PromptFlashAttention, IncreFlashAttention,
# FusedInferAttentionScore, PagedAttention, RingAttentionUpdate; and the softmax of unfused ones.
_FUSED = re.compile(r"attention", re.IGNORECASE)
_NOT = re.compile(r"hcom|allreduce|allgather", re.IGNORECASE)


def is_attention(kind: str, name: str = "") -> bool:
    """Whether an operator computes attention, by its type, else by its name.

    Example:
        >>> is_attention("FlashAttentionScoreGrad"), is_attention("MatMulV3")
        (True, False)
    """
    text = kind or name
    return bool(_FUSED.search(text)) and not _NOT.search(text)
