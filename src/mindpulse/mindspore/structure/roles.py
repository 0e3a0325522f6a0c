"""What a cell is for, told by its parts, its class and its name: attention or a router."""

from __future__ import annotations

import re
from typing import Any

from mindpulse.mindspore.structure.tree import Tree, class_name, last_name, number

_ATTENTION = re.compile(r"attn|attention|scaled_?dot", re.IGNORECASE)
_ROUTER = re.compile(
    r"router|gating|moe|mixture|(^|_)(gate|experts?)(?![a-z])|(?<=[a-z])Gate|^Gate"
)
_PROJECTIONS = (
    {"query", "key", "value"}, {"q", "k", "v"}, {"wq", "wk", "wv"}, {"q_proj", "k_proj", "v_proj"},
    {"qkv"}, {"in_proj"}, {"qkv_proj"}, {"c_attn"}, {"query_key_value"}, {"w_qkv"}, {"to_qkv"},
    {"to_q", "to_k", "to_v"}, {"dense1", "dense2", "dense3"}, {"linear_qkv"}, {"wqkv"},
    {"query_layer", "key_layer", "value_layer"}, {"linear_q", "linear_k", "linear_v"},
    {"w_q", "w_k", "w_v"}, {"q_linear", "k_linear", "v_linear"}, {"fc_q", "fc_k", "fc_v"},
)  # fmt: skip
_PROJECTION_NAMES = set().union(*_PROJECTIONS) - {"dense1", "dense2", "dense3"}
_HEADS = (
    "num_heads", "num_attention_heads", "n_head", "n_heads", "heads", "nhead", "head_num",
    "num_attention_heads_per_partition",
)  # fmt: skip
_EXPERTS = (
    "num_experts", "expert_num", "n_experts", "num_local_experts", "n_routed_experts",
    "experts_num", "expert_dim",
)  # fmt: skip
_TOP_K = ("top_k", "num_experts_per_tok", "num_experts_chosen", "topk", "k")
_CLIMB = 3  # owners above a softmax that may tell the number of heads


def has_projections(owner: Any) -> bool:
    """Whether the cell holds query, key and value layers (or parameters)."""
    names = set(owner._cells) | {name.removesuffix("_weight") for name in owner._params}
    return any(wanted <= names for wanted in _PROJECTIONS)


def is_projection(path: str) -> bool:
    """Whether the last name is one that projections to queries, keys and values go by."""
    return last_name(path) in _PROJECTION_NAMES


def speaks_of_attention(text: str) -> bool:
    """Whether a path, a class or a function is called attention."""
    return bool(_ATTENTION.search(text))


def is_attention(path: str, owner: Any) -> bool:
    """Whether a softmax in `owner` is taken for attention: by parts, class or path."""
    return (
        has_projections(owner)
        or speaks_of_attention(class_name(owner))
        or speaks_of_attention(path)
    )


def is_router(path: str, owner: Any) -> bool:
    """Whether a softmax in `owner` chooses experts: by class, name or attributes."""
    if has_projections(owner) or speaks_of_attention(class_name(owner)):
        return False
    names = (class_name(owner), last_name(path))
    by_name = any(_ROUTER.search(name) or _ROUTER.search(name.lower()) for name in names)
    return by_name or bool(number(owner, _EXPERTS))


def heads(tree: Tree, path: str) -> int:
    """Number of heads by an attribute of the owner at `path` or of those above it, else 0."""
    for near in [path, *tree.ancestors(path)[:_CLIMB]]:
        found = number(tree.cells[near], _HEADS)
        if found:
            return found
    return 0


def experts(tree: Tree, path: str) -> tuple[int, int]:
    """(number of experts, experts that each token goes to) of the router at `path`; 0: unknown."""
    top_k = size = 0
    for near in [path, *tree.ancestors(path)[:1]]:
        top_k = top_k or number(tree.cells[near], _TOP_K)
        size = size or number(tree.cells[near], _EXPERTS)
    inside = [
        linear for linear in tree.linears if linear.path.startswith(f"{path}." if path else "")
    ]
    named = [linear for linear in inside if _ROUTER.search(last_name(linear.path).lower())]
    for linear in named or inside[:1]:
        size = size or linear.outputs
    return size, top_k or 1
