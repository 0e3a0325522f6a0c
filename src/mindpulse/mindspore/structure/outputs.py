"""Where logits leave the model, and where token ids enter it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mindpulse.mindspore.structure import calls, feedforward, roles
from mindpulse.mindspore.structure.place import Place
from mindpulse.mindspore.structure.tree import Linear, Tree, class_name, is_token_table, last_name

_HEADS = re.compile(
    r"^(lm_?)?head$|classifier|output_layer|^score$|_head$|^fc_out$|^logits", re.IGNORECASE
)
_LOSS = re.compile(r"cross_?entropy", re.IGNORECASE)
_MARK = "hand the logits to a mindpulse.mindspore.Mark('logits') in construct"


def embedding_places(tree: Tree) -> Iterator[Place]:
    """The embedding of the tokens: the first whose name does not speak of positions or segments."""
    for table in tree.tables[:1]:
        place = Place(
            table.path, "embedding", table.cell, size=table.rows, side="input", owner=table.cell,
            reason="token ids, for what is padding",
        )  # fmt: skip
        yield place if is_token_table(table) else place.skip("only positions or segments")


def logits_places(tree: Tree) -> list[Place]:
    """The classes' logits: a head as wide as the vocabulary, else the loss, else the last head."""
    return _by_vocabulary(tree) or _by_loss(tree) or _by_call(tree) or _by_name(tree)


def _by_vocabulary(tree: Tree) -> list[Place]:
    rows = {table.rows for table in tree.tables if is_token_table(table)}
    heads = [linear for linear in _free(tree) if linear.outputs in rows]
    return [_head(linear, "as wide as the vocabulary") for linear in heads]


def _by_loss(tree: Tree) -> list[Place]:
    found = [(path, cell) for path, cell in tree.cells.items() if _LOSS.search(class_name(cell))]
    inner = [
        (path, cell)
        for path, cell in found
        if not any(other != path and other.startswith(f"{path}.") for other, _ in found)
    ]
    return [
        Place(
            path, "logits", cell, side="input", owner=cell, attribute=last_name(path),
            reason=f"what goes into {class_name(cell)}",
        )
        for path, cell in inner
    ]  # fmt: skip


def _by_call(tree: Tree) -> list[Place]:
    """A cross-entropy that a cell's construct calls, where no head is named."""
    if any(_HEADS.search(last_name(linear.path)) for linear in _free(tree)):
        return []
    places = []
    for path, cell in tree.cells.items():
        reached = calls.reach(cell, calls.CROSS_ENTROPY)
        if reached.found and not reached.obstacle:
            name = f"{path}.cross_entropy()" if path else "cross_entropy()"
            places.append(
                Place(
                    name, "logits", cell, how="function", side="input", owner=cell,
                    attribute="cross_entropy",
                    reason=f"what goes into cross_entropy in {', '.join(reached.callers)}",
                )
            )  # fmt: skip
    return places


def _by_name(tree: Tree) -> list[Place]:
    free = _free(tree)
    named = [linear for linear in free if _HEADS.search(last_name(linear.path))]
    if named:
        return [_head(linear, f"called {last_name(linear.path)}") for linear in named]
    last = [linear for linear in free if linear.outputs != linear.inputs][-1:]
    return [_head(linear, "the last linear layer") for linear in last]


def _head(linear: Linear, why: str) -> Place:
    return Place(
        linear.path, "logits", linear.cell, size=linear.outputs, owner=linear.cell,
        attribute=last_name(linear.path), reason=f"output of the head ({why})",
    )  # fmt: skip


def _free(tree: Tree) -> list[Linear]:
    """Linear layers outside attention, feed-forward networks and routers."""
    used = {
        id(linear)
        for pair in feedforward.pairs(tree)
        for linear in (*pair.expanding, pair.contracting)
    }
    return [
        linear
        for linear in tree.linears
        if id(linear) not in used
        and not roles.is_projection(linear.path)
        and not any(
            above and roles.is_attention(above, tree.cells[above])
            for above in tree.ancestors(linear.path)
        )
        and not any(
            roles.is_router(above, tree.cells[above])
            for above in (linear.path, *tree.ancestors(linear.path)[:1])
        )
    ]
