"""Places are found by structure: in hand-written models, the framework's own, and odd ones."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, amp, mint, nn, ops
from mindspore.experimental import optim

import zoo
from mindpulse.errors import UsageError
from mindpulse.mindspore.mark import Mark
from mindpulse.mindspore.structure import (
    Place,
    find_optimizers,
    find_places,
    parameter_names,
    table,
)
from mindpulse.mindspore.structure.tree import without_wrappers
from zoo.parts import HEADS, INNER, WIDTH, CellAttention, GatedNet, ReluNet, RMSNorm

SOFTMAX = {
    "cell": ("softmax", "cell"),
    "primitive": ("softmax", "primitive"),
    "call": ("softmax()", "function"),
    "method": ("softmax()", "function"),
    "helper": ("softmax()", "function"),
}


def planted(places: list[Place], kind: str) -> list[tuple[str, str, str]]:
    return [
        (place.path, place.how, place.side)
        for place in places
        if place.kind == kind and place.state == "planted"
    ]


def skipped(places: list[Place], kind: str) -> list[tuple[str, str]]:
    return [
        (place.path, place.reason)
        for place in places
        if place.kind == kind and place.state == "skipped"
    ]


@pytest.mark.parametrize("style", ["cell", "primitive", "helper"])
def test_bert(style: str) -> None:
    places = find_places(zoo.build(f"bert_{style}")[0])
    name, how = SOFTMAX[style]
    layers = [f"layers.{number}" for number in range(2)]
    assert planted(places, "attention") == [
        (f"{layer}.attention.{name}", how, "output") for layer in layers
    ]
    assert planted(places, "norm") == [
        ("embeddings.layernorm", "cell", "input"),
        *(
            (f"{layer}.{norm}", "cell", "input")
            for layer in layers
            for norm in ("layernorm", "output.layernorm")
        ),
    ]
    assert planted(places, "ffn") == [
        (f"{layer}.intermediate.intermediate_act_fn", "cell", "output") for layer in layers
    ]
    assert planted(places, "logits") == [("loss", "cell", "input")]
    assert planted(places, "embedding") == [("embeddings.word_embeddings", "cell", "input")]
    assert [place.heads for place in places if place.kind == "attention"] == [HEADS, HEADS]
    assert [place.size for place in places if place.kind == "ffn"] == [INNER, INNER]
    assert [place.size for place in places if place.kind == "embedding"] == [24]


@pytest.mark.parametrize("style", ["cell", "primitive", "call"])
def test_vit(style: str) -> None:
    places = find_places(zoo.build(f"vit_{style}")[0])
    name, how = SOFTMAX[style]
    blocks = [f"blocks.{number}" for number in range(2)]
    assert planted(places, "attention") == [(f"{b}.attn.{name}", how, "output") for b in blocks]
    norms = [f"{block}.{norm}" for block in blocks for norm in ("norm1", "norm2")]
    assert planted(places, "norm") == [(path, "cell", "input") for path in [*norms, "norm"]]
    assert planted(places, "ffn") == [(f"{block}.mlp.1", "cell", "output") for block in blocks]
    assert planted(places, "logits") == [("head", "cell", "output")]
    [(path, reason)] = skipped(places, "embedding")
    assert path == ""
    assert "no embedding cell was found" in reason


@pytest.mark.parametrize("style", list(SOFTMAX))
def test_decoder(style: str) -> None:
    places = find_places(zoo.build(f"decoder_{style}")[0])
    name, how = SOFTMAX[style]
    layers = [f"model.layers.{number}" for number in range(2)]
    assert planted(places, "attention") == [
        (f"{layer}.self_attn.{name}", how, "output") for layer in layers
    ]
    norms = [f"{layer}.{norm}" for layer in layers for norm in ("input_norm", "post_norm")]
    assert planted(places, "norm") == [(path, "cell", "input") for path in [*norms, "model.norm"]]
    assert planted(places, "ffn") == [
        (f"{layer}.feed_forward.w2", "cell", "input") for layer in layers
    ]
    assert planted(places, "logits") == [("lm_head", "cell", "output")]
    assert planted(places, "embedding") == [("model.tok_embeddings", "cell", "input")]
    assert skipped(places, "attention") == []


def test_a_shared_layer_is_one_place() -> None:
    places = find_places(zoo.build("albert")[0])
    assert planted(places, "attention") == [("layers.0.attention.softmax", "cell", "output")]


def test_experts_and_their_router() -> None:
    places = find_places(zoo.build("experts")[0])
    owners = [f"model.layers.{number}.feed_forward" for number in range(2)]
    assert planted(places, "router") == [(f"{o}.softmax", "cell", "output") for o in owners]
    routers = [place for place in places if place.kind == "router"]
    assert [(place.size, place.top_k) for place in routers] == [(4, 2), (4, 2)]
    experts = [f"{owner}.experts.{number}.w2" for owner in owners for number in range(4)]
    assert planted(places, "ffn") == [(path, "cell", "input") for path in experts]
    assert planted(places, "logits") == [("lm_head", "cell", "output")]


def test_a_tied_head_is_seen_at_the_loss() -> None:
    places = find_places(zoo.build("tied")[0])
    assert planted(places, "logits") == [("cross_entropy()", "function", "input")]
    layers = [f"model.layers.{number}" for number in range(2)]
    assert planted(places, "ffn") == [
        (f"{layer}.feed_forward.fc2", "cell", "input") for layer in layers
    ]


def test_the_frameworks_own_encoder() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.1)
    places = find_places(nn.TransformerEncoder(layer, 2))
    layers = [f"layers.{number}" for number in range(2)]
    assert planted(places, "attention") == [
        (f"{layer}.self_attn.softmax()", "function", "output") for layer in layers
    ]
    # The dropout lies between activation and contraction, so the activation itself is taken.
    assert planted(places, "ffn") == [(f"{x}.activation", "primitive", "output") for x in layers]
    assert planted(places, "norm") == [
        (f"{layer}.norm{number}", "cell", "input") for layer in layers for number in (1, 2)
    ]
    kinds = [place.kind for place in places if not place.path]
    assert kinds == ["logits", "embedding"]


def test_the_frameworks_own_decoder_layer_has_two_attentions() -> None:
    places = find_places(nn.TransformerDecoderLayer(WIDTH, HEADS, INNER))
    assert [path for path, _, _ in planted(places, "attention")] == [
        "self_attn.softmax()", "multihead_attn.softmax()",
    ]  # fmt: skip


MIXED = [
    (model, level)
    for model in ("decoder_primitive", "decoder_helper", "bert_cell")
    for level in ("O1", "O2", "O3", "auto")
    if (model, level) != ("decoder_helper", "O1")  # O1 rewrites ops.softmax itself, or fails to
]


@pytest.mark.parametrize(("model", "level"), MIXED)
def test_mixed_precision_hides_nothing(model: str, level: str) -> None:
    plain = find_places(zoo.build(model)[0])
    mixed = find_places(amp.auto_mixed_precision(zoo.build(model)[0], level))

    def names(places: list[Place]) -> list[tuple[str, str, str]]:
        return [(p.kind, without_wrappers(p.path), p.how) for p in places]

    assert names(mixed) == names(plain)
    assert all(place.state == "planted" for place in mixed)


def test_globs_see_through_mixed_precision() -> None:
    net = amp.auto_mixed_precision(zoo.build("decoder_cell")[0], "O2")
    places = find_places(net, include="model.layers.0.*")
    assert planted(places, "attention") == [
        ("_backbone.model.layers.0.self_attn.softmax", "cell", "output")
    ]


@pytest.mark.parametrize("globs", ["*layers.0.*", ["model.layers.0.*", "nothing"]])
def test_include_and_exclude_hold_for_all_kinds(globs: Any) -> None:
    net = zoo.build("decoder_cell")[0]
    chosen = [place.path for place in find_places(net, include=globs) if place.cell is not None]
    assert chosen == [
        "model.layers.0.input_norm", "model.layers.0.post_norm",
        "model.layers.0.self_attn.softmax", "model.layers.0.feed_forward.w2",
    ]  # fmt: skip
    others = find_places(net, exclude=globs)
    assert not {place.path for place in others if place.cell is not None} & set(chosen)
    assert {place.path for place in others} == {place.path for place in find_places(net)}
    assert skipped(others, "norm") == [
        (path, f"matches exclude={globs!r}") for path in chosen if path.endswith("norm")
    ]


class Twins(nn.Cell):
    """Older models keep two softmaxes and use one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.dense2 = nn.Dense(8, 8), nn.Dense(8, 8)
        self.dense3, self.n_head = nn.Dense(8, 8), 2
        self.softmax = nn.Softmax().to_float(ms.float32)
        self.softmax_3d = nn.Softmax().to_float(ms.float32)


class Other(nn.Cell):
    """Softmaxes that are no attention over keys."""

    def __init__(self, softmax: Any) -> None:
        super().__init__()
        self.softmax = softmax


class Pointed(Other):
    def __init__(self, softmax: Any) -> None:
        super().__init__(softmax)
        self.query = self.key = self.value = nn.Dense(8, 8)


def test_twin_softmaxes_are_two_places() -> None:
    places = find_places(Twins())
    assert [path for path, _, _ in planted(places, "attention")] == ["softmax", "softmax_3d"]
    assert {place.heads for place in places if place.cell is not None} == {2}


def test_one_softmax_of_several_owners_counts_once() -> None:
    one = nn.Softmax()
    net = nn.CellList([Pointed(one), Pointed(one)])
    assert [path for path, _, _ in planted(find_places(net), "attention")] == ["0.softmax"]


@pytest.mark.parametrize("softmax", [nn.Softmax(1), ops.Softmax(1)])
def test_a_softmax_over_another_axis_is_skipped(softmax: Any) -> None:
    [(path, reason)] = skipped(find_places(Pointed(softmax)), "attention")
    assert path == "softmax"
    assert reason == "softmax over axis 1, not keys"


@pytest.mark.parametrize("softmax", [nn.Softmax(), ops.Softmax(), ops.softmax, mint.nn.Softmax(-1)])
def test_a_lone_softmax_is_skipped(softmax: Any) -> None:
    [(path, reason)] = skipped(find_places(Other(softmax)), "attention")
    assert path == "softmax"
    assert "owner Other has no query, key and value" in reason


@pytest.mark.parametrize("softmax", [ops.softmax, mint.nn.functional.softmax])
def test_a_softmax_function_held_as_an_attribute(softmax: Any) -> None:
    found = planted(find_places(Pointed(softmax)), "attention")
    assert found == [("softmax", "primitive", "output")]


class ByTensor(Pointed):
    def construct(self, x: Any) -> Any:
        return self.query(x).softmax(-1)


def test_a_tensors_own_softmax_cannot_be_reached() -> None:
    net = ByTensor(None)
    [(path, reason)] = skipped(find_places(net), "attention")
    assert path == "softmax()"
    assert "method of a tensor" in reason
    assert "Mark" in reason


class Marked(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.mark = Mark("attention", heads=4)
        self.rated = Mark("router", size=8, top_k=2)


def test_marks() -> None:
    attention, router = (place for place in find_places(Marked()) if place.path)
    assert (attention.path, attention.how, attention.heads) == ("mark", "mark", 4)
    assert (router.kind, router.path, router.size, router.top_k) == ("router", "rated", 8, 2)
    with pytest.raises(UsageError, match="use one of attention"):
        Mark("attn")


class Gate(nn.Cell):
    """A router that tells nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax = nn.Softmax()


class SwitchRouter(nn.Cell):
    """A router that tells the number of experts by its layer, and calls the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier, self.topk = nn.Dense(8, 6), 3

    def construct(self, x: Any) -> Any:
        return ops.softmax(self.classifier(x), -1)


def test_routers() -> None:
    [(path, reason)] = skipped(find_places(Gate()), "router")
    assert path == "softmax"
    assert "Gate.num_experts" in reason
    places = find_places(SwitchRouter())
    assert planted(places, "router") == [("softmax()", "function", "output")]
    assert [(p.size, p.top_k) for p in places if p.kind == "router"] == [(6, 3)]


class FlashAttention(nn.Cell):
    """A fused attention as an operator that nothing can be seen of."""


class FlashAttentionScore(nn.Cell):
    """Stands for the fused operator, which has no CPU kernel."""


class Fused(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.flash_attention, self.head_num = FlashAttentionScore(), 4


class CallsFused(nn.Cell):
    def construct(self, q: Any, k: Any, v: Any) -> Any:
        return ops.flash_attention_score(q, k, v, 4)


def test_fused_attention() -> None:
    for net in (FlashAttention(), CallsFused()):
        [(_, reason)] = skipped(find_places(net), "attention")
        assert "probabilities never exist" in reason
    places = find_places(nn.SequentialCell(Fused()))
    assert planted(places, "attention") == [("0.flash_attention", "fused", "output")]
    assert [p.heads for p in places if p.kind == "attention"] == [4]


class Named(nn.LayerNorm):
    """A norm by inheritance."""


def test_norms() -> None:
    inside = nn.SequentialCell(RMSNorm(8), Named((8,)), nn.BatchNorm1d(8), nn.GroupNorm(2, 8))
    assert planted(find_places(inside), "norm") == [("0", "cell", "input"), ("1", "cell", "input")]


class Flat(nn.Cell):
    """A whole layer in one cell."""

    def __init__(self, activation: Any = None) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Dense(8, 16) for _ in range(3))
        self.o_proj, self.norm = nn.Dense(16, 8), nn.LayerNorm((8,))
        self.up, self.down = nn.Dense(8, 32, activation=activation), nn.Dense(32, 8)
        self.dropout = nn.Dropout(p=0.1)


class Doubled(nn.Cell):
    """Gate and value in one expanding layer."""

    def __init__(self) -> None:
        super().__init__()
        self.dense_h_to_4h, self.dense_4h_to_h = nn.Dense(8, 64), nn.Dense(32, 8)
        self.act = nn.SiLU()


def test_feed_forward_networks() -> None:
    assert planted(find_places(Flat()), "ffn") == [("down", "cell", "input")]
    assert "dropout" in next(p.reason for p in find_places(Flat()) if p.kind == "ffn")
    assert planted(find_places(Flat("relu")), "ffn") == [("up", "cell", "output")]
    assert planted(find_places(Doubled()), "ffn") == [("dense_4h_to_h", "cell", "input")]
    assert planted(find_places(ReluNet()), "ffn") == [("act", "cell", "output")]
    assert planted(find_places(GatedNet()), "ffn") == [("w2", "cell", "input")]
    assert planted(find_places(CellAttention()), "ffn") == []
    adapter = nn.SequentialCell(nn.Dense(16, 4), nn.ReLU(), nn.Dense(4, 16))
    assert planted(find_places(adapter), "ffn") == []


def test_neighbouring_layers_are_not_paired() -> None:
    """Heads side by side in a list look like expansion and contraction, but belong to nobody."""
    net = nn.CellList([nn.Dense(8, 32), nn.Dense(32, 8)])
    assert planted(find_places(net), "ffn") == []


class TwoHeads(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.pooler = nn.Dense(8, 8)
        self.classifier, self.span_head = nn.Dense(8, 3), nn.Dense(8, 2)


def test_several_heads_are_all_places() -> None:
    places = find_places(TwoHeads())
    assert planted(places, "logits") == [
        ("classifier", "cell", "output"),
        ("span_head", "cell", "output"),
    ]


def test_what_is_missing_has_a_row() -> None:
    places = find_places(nn.SequentialCell(nn.ReLU()))
    assert [(place.path, place.kind, place.state) for place in places] == [
        ("", kind, "skipped") for kind in ("attention", "norm", "ffn", "logits", "embedding")
    ]


def test_table() -> None:
    places = find_places(zoo.build("experts")[0], exclude="*post_norm")
    lines = table(places).splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].split() == ["path", "kind", "how", "size", "state", "reason"]
    assert lines[4].startswith(
        "model.layers.0.self_attn.softmax     attention     primitive 4 heads"
    )
    assert "model.layers.0.fe…rward.experts.3.w2 ffn           cell      32" in table(places)
    assert "model.layers.0.feed_forward.softmax  router        cell      2 of 4" in table(places)
    assert "matches exclude='*post_norm'" in table(places)


class Gan(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Dense(2, 3), nn.Dense(3, 2)
        groups = [{"params": [self.one.weight], "lr": 0.1}, {"params": [self.one.bias]}]
        self.first = nn.Adam(groups, 0.2)
        self.second = optim.SGD([{"params": [self.two.bias]}, {"params": [self.two.weight]}], 0.1)


def test_optimizers() -> None:
    net = Gan()
    assert find_optimizers(net) == [net.first, net.second]
    assert find_optimizers(net.one) == []
    assert parameter_names(net.first) == ["first.one.weight", "first.one.bias"]
    assert parameter_names(net.second) == ["second.two.bias", "second.two.weight"]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: nn.SGD(p, 0.5),
        lambda p: nn.AdamWeightDecay([{"params": p[1:]}, {"params": p[:1], "lr": 0.1}], 0.5),
        lambda p: nn.Momentum(
            [{"params": p[1:]}, {"params": p[:1]}, {"order_params": p}], 0.5, 0.0
        ),
        lambda p: optim.SGD([{"params": p[1:]}, {"params": p[:1]}], 0.5),
        lambda p: optim.AdamW(p[::-1], 0.5),
        lambda p: mint.optim.SGD(p[::-1], 0.5),
    ],
)
def test_parameter_names_are_in_the_order_of_the_gradients(make: Any) -> None:
    """Each parameter has a size of its own, so gradients in another order would not fit."""
    parameters = [
        Parameter(Tensor(np.ones(size), ms.float32), name=f"size{size}") for size in (2, 3, 4)
    ]
    optimizer = make(parameters)
    by_name = {parameter.name: parameter for parameter in parameters}
    names = parameter_names(optimizer)
    assert sorted(names) == ["size2", "size3", "size4"]
    optimizer(tuple(Tensor(np.ones(by_name[name].shape), ms.float32) for name in names))
