"""Models of MindFormers, small enough for a CPU, and where their attention and the rest lie.

Read by the tests, and in MindFormers' own environment by the worker, which alone builds the models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn
from numpy.typing import NDArray

BATCH, LENGTH, WORDS, WIDTH, HEADS, LAYERS, CLASSES = 2, 16, 64, 32, 4, 2, 5
PAD, PADDED = 0, 3  # the second row of each batch ends with so many padding tokens
EVERY = {"callback": 1, "loop": 2}  # way of training -> steps between dear measures

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Example:
    """One model.

    Attributes:
        build: makes the model; call it after seeding.
        batch: ids (batch, length + 1) -> what the model is called with.
        causal: whether a query sees no later key.
        hides_padding: whether no query sees a padding token.
        softmax: path of a layer's softmax.
        silent: paths of softmaxes that a layer has beside it and that never run.
        norms: paths of a layer's normalisations, and of those outside of the layers.
        inner: path of the cell whose input is the inner activation of a layer's FFN.
        ffn: path of the cell where MindPulse measures it.
        logits: path of the cell that gives the logits.
        loss: path of the cell that takes them, where MindPulse measures them.
    """

    suite: str
    build: Callable[[], Any]
    batch: Callable[[NDArray[np.int64]], Arrays]
    causal: bool
    hides_padding: bool
    softmax: str
    norms: tuple[str, ...]
    outer_norms: tuple[str, ...]
    inner: str
    ffn: str
    logits: str
    loss: str = "loss"
    silent: tuple[str, ...] = ()

    def of_layers(self, path: str) -> list[str]:
        """The path in each layer."""
        return [path.format(layer) for layer in range(LAYERS)]

    @property
    def all_norms(self) -> list[str]:
        """Paths of all normalisations."""
        inside = [path for layer in range(LAYERS) for path in self.of_layer(layer)]
        return [*inside, *self.outer_norms]

    def of_layer(self, layer: int) -> list[str]:
        """Paths of one layer's normalisations."""
        return [path.format(layer) for path in self.norms]

    def visible(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(batch, 1, query, key) which key a query may look at."""
        shown = np.ones((BATCH, 1, LENGTH, LENGTH), bool)
        if self.causal:
            shown &= np.tri(LENGTH, dtype=bool)
        if self.hides_padding:
            shown &= (ids[:, :LENGTH] != PAD)[:, None, None, :]
        return shown


def all_ids(steps: int) -> NDArray[np.int64]:
    """(steps, batch, length + 1) token ids; padding only where a row ends."""
    ids = np.random.default_rng(5).integers(1, WORDS, (steps, BATCH, LENGTH + 1))
    ids[:, 1, LENGTH - PADDED :] = PAD
    return ids


def _llama(kv_heads: int | None) -> Any:
    from mindformers.models.llama import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            batch_size=BATCH, seq_length=LENGTH, hidden_size=WIDTH, num_layers=LAYERS,
            num_heads=HEADS, n_kv_heads=kv_heads, vocab_size=WORDS, multiple_of=8, pad_token_id=PAD,
            compute_dtype="float32", layernorm_compute_type="float32", rotary_dtype="float32",
            softmax_compute_type="float32", param_init_type="float32",
            use_flash_attention=False, use_rope_slice=True, fused_rms_norm=False,
        )
    )  # fmt: skip


class _FloatMask(nn.Cell):
    """The product of GLM2's mask with a number, in floats."""

    def construct(self, mask: Any, by: Any) -> Any:
        return mask.astype(ms.float32) * by


def _mended_glm2() -> Any:
    """GLM2 as it is meant: its mask is of uint8 in MindFormers 2.1.0, and -10000 times 1 is 240."""
    net = _glm2()
    for layer in net.transformer.encoder.layers:
        layer.self_attention.core_attention.mul_mask = _FloatMask()
    return net


def _glm2() -> Any:
    from mindformers.models.glm2.glm2 import ChatGLM2ForConditionalGeneration
    from mindformers.models.glm2.glm2_config import ChatGLM2Config

    return ChatGLM2ForConditionalGeneration(
        ChatGLM2Config(
            batch_size=BATCH, num_layers=LAYERS, padded_vocab_size=WORDS, hidden_size=WIDTH,
            ffn_hidden_size=64, kv_channels=WIDTH // HEADS, num_attention_heads=HEADS,
            seq_length=LENGTH, multi_query_attention=True, multi_query_group_num=2,
            hidden_dropout=0.0, attention_dropout=0.0, pad_token_id=PAD,
            compute_dtype="float32", param_init_type="float32", rotary_dtype="float32",
            layernorm_compute_type="float32", residual_dtype="float32",
            use_flash_attention=False, rmsnorm=False,
        )
    )  # fmt: skip


def _bert() -> Any:
    from mindformers.models.bert import BertConfig
    from mindformers.models.bert.bert import BertForTokenClassification

    return BertForTokenClassification(
        BertConfig(
            batch_size=BATCH, seq_length=LENGTH, vocab_size=WORDS, hidden_size=WIDTH,
            num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=64,
            num_labels=CLASSES, max_position_embeddings=LENGTH, compute_dtype="float32",
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, dropout_prob=0.0,
        )
    )  # fmt: skip


def _gpt2() -> Any:
    from mindformers.models.gpt2 import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            batch_size=BATCH, seq_length=LENGTH, vocab_size=WORDS, hidden_size=WIDTH,
            num_layers=LAYERS, num_heads=HEADS, eos_token_id=1, pad_token_id=PAD, bos_token_id=1,
            compute_dtype="float32", embedding_dropout_prob=0.0, hidden_dropout_rate=0.0,
            attention_dropout_rate=0.0, use_flash_attention=False,
        )
    )  # fmt: skip


def _next_word(ids: NDArray[np.int64]) -> Arrays:
    return (ids.astype(np.int32),)


def _same_words(ids: NDArray[np.int64]) -> Arrays:
    words = ids[:, :-1].astype(np.int32)
    return words, words


def _classes(ids: NDArray[np.int64]) -> Arrays:
    words = ids[:, :-1].astype(np.int32)
    return words, (words != PAD).astype(np.int32), np.zeros_like(words), words % CLASSES


def _next_word_and_mask(ids: NDArray[np.int64]) -> Arrays:
    return ids.astype(np.int32), np.ones(ids.shape, np.float32)


def _llama_example(kv_heads: int | None) -> Example:
    return Example(
        suite="mindformers-2.1.0",
        build=lambda: _llama(kv_heads),
        batch=_next_word,
        causal=True,
        hides_padding=True,
        softmax="model.layers.{}.attention.softmax",
        norms=("model.layers.{}.ffn_norm", "model.layers.{}.attention_norm"),
        outer_norms=("model.norm_out",),
        inner="model.layers.{}.feed_forward.w2",
        ffn="model.layers.{}.feed_forward.w2",
        logits="lm_head",
    )


_OLD_BLOCK = {"bert": "bert.bert_encoder.encoder.blocks.{}.", "gpt2": "backbone.blocks.{}."}


def _old_example(name: str, **others: Any) -> Example:
    block = _OLD_BLOCK[name]
    return Example(
        suite="mindformers-1.3.2",
        softmax=f"{block}attention.softmax",
        silent=(f"{block}attention.softmax_3d",),
        norms=(f"{block}layernorm1", f"{block}layernorm2"),
        inner=f"{block}output.projection",
        ffn=f"{block}output.mapping",
        **others,
    )


def _glm2_example(build: Callable[[], Any], causal: bool) -> Example:
    layer = "transformer.encoder.layers.{}."
    return Example(
        suite="mindformers-2.1.0",
        build=build,
        batch=_same_words,
        causal=causal,
        hides_padding=False,
        softmax=f"{layer}self_attention.core_attention.softmax",
        silent=(f"{layer}self_attention.infer_attention.softmax",),
        norms=(f"{layer}input_layernorm", f"{layer}post_attention_layernorm"),
        outer_norms=("transformer.encoder.final_layernorm",),
        inner=f"{layer}mlp.dense_4h_to_h",
        ffn=f"{layer}mlp.dense_4h_to_h",
        logits="transformer.output_layer",
    )


EXAMPLES = {
    "llama": _llama_example(None),
    "llama_gqa": _llama_example(2),
    "glm2": _glm2_example(_glm2, causal=False),
    "glm2_mended": _glm2_example(_mended_glm2, causal=True),
    "bert": _old_example(
        "bert",
        build=_bert,
        batch=_classes,
        causal=False,
        hides_padding=True,
        outer_norms=("bert.embedding_postprocessor.layernorm",),
        logits="classifier",
        loss="cross_entropy_loss",
    ),
    "gpt2": _old_example(
        "gpt2",
        build=_gpt2,
        batch=_next_word_and_mask,
        causal=True,
        hides_padding=False,
        outer_norms=("backbone.layernorm",),
        logits="head",
    ),
}
