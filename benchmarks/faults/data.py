"""Real text that every Python carries, as batches of characters for a decoder and an encoder.

The main text is that of the demo, the language reference that `help()` shows. The second domain is
the source of some modules of the standard library.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.demo.text import corpus

PAD, MASK, OTHER = range(3)
SPECIAL = 3
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
VOCABULARY = SPECIAL + len(CHARACTERS)
IGNORED = -100  # a target that does not count
HIDDEN_LOGIT = -10000.0  # added to the logit of a key that must not be seen
HELD_OUT = 0.1  # share of the text, at its end, that is never trained on
MASKED, MASK_SHARE, RANDOM_SHARE = 0.2, 0.8, 0.1
SOURCES = (argparse, ast, collections, dataclasses, inspect, json, os)


@dataclass(frozen=True)
class Batch:
    """One step's input.

    Attributes:
        ids: (batch, length) int32.
        targets: (batch, length) int32, `IGNORED` where nothing is to be predicted.
        bias: (batch, 1, length, length) float32, added to the logits of attention.
        places: (length,) int32, rows of the position table.
    """

    ids: NDArray[np.int32]
    targets: NDArray[np.int32]
    bias: NDArray[np.float32]
    places: NDArray[np.int32]

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """In the order in which the network takes them."""
        return self.ids, self.targets, self.bias, self.places

    @property
    def padding(self) -> NDArray[np.bool_]:
        """(batch, length), True on padding."""
        found: NDArray[np.bool_] = self.ids == PAD
        return found


Source = Callable[[int], Batch]


def encode(text: str) -> NDArray[np.int32]:
    """(characters,) int32; what is no printable ASCII becomes `OTHER`.

    Example:
        >>> encode("ab\\u00e9").tolist()
        [69, 70, 2]
    """
    codes = {character: SPECIAL + i for i, character in enumerate(CHARACTERS)}
    return np.array([codes.get(character, OTHER) for character in text], np.int32)


@cache
def tokens(domain: str) -> NDArray[np.int32]:
    """(characters,) of a domain: "reference" or "source"."""
    if domain == "reference":
        return encode(corpus())
    return encode("\n".join(Path(inspect.getfile(m)).read_text("utf-8") for m in SOURCES))


def train_part(domain: str) -> NDArray[np.int32]:
    """What may be trained on."""
    text = tokens(domain)
    return text[: int(len(text) * (1 - HELD_OUT))]


def held_out_part(domain: str) -> NDArray[np.int32]:
    """What only evaluation sees."""
    text = tokens(domain)
    return text[int(len(text) * (1 - HELD_OUT)) :]


def causal_bias(length: int) -> NDArray[np.float32]:
    """(length, length), 0 where a query may look, `HIDDEN_LOGIT` on the keys after it."""
    return np.triu(np.full((length, length), HIDDEN_LOGIT, np.float32), 1)


@dataclass(frozen=True)
class Text:
    """Batches of a text; batch k depends on the seed and k only.

    Args:
        kind: "decoder" predicts each next character; "encoder" predicts masked ones, in windows of
            which every second one is padded.
        characters: (characters,) int32, the text.
        batch, length: windows in a batch, characters in a window.
        seed: all randomness comes from it.
    """

    kind: str
    characters: NDArray[np.int32]
    batch: int
    length: int
    seed: int

    def __call__(self, index: int) -> Batch:
        rng = np.random.default_rng((self.seed, index))
        span = self.length + 1
        starts = rng.integers(0, len(self.characters) - span + 1, self.batch)
        windows = self.characters[starts[:, None] + np.arange(span)]
        places = np.arange(self.length, dtype=np.int32)
        if self.kind == "decoder":
            ids, targets = windows[:, :-1], windows[:, 1:]
            bias = np.broadcast_to(
                causal_bias(self.length), (self.batch, 1, self.length, self.length)
            )
            return Batch(ids.copy(), targets.copy(), bias.copy(), places)
        return self._masked(rng, windows[:, :-1], places)

    def _masked(
        self, rng: np.random.Generator, windows: NDArray[np.int32], places: NDArray[np.int32]
    ) -> Batch:
        shape = windows.shape
        lengths = np.full(self.batch, self.length)
        lengths[::2] = rng.integers(self.length * 3 // 4, self.length + 1, len(lengths[::2]))
        visible = np.arange(self.length) < lengths[:, None]
        chosen = (rng.random(shape) < MASKED) & visible
        chosen[:, 0] = True  # never a batch without a target
        draw = rng.random(shape)
        other = rng.integers(SPECIAL, VOCABULARY, shape)
        hidden = np.where(draw < MASK_SHARE + RANDOM_SHARE, other, windows)
        hidden = np.where(draw < MASK_SHARE, MASK, hidden)
        ids = np.where(visible, np.where(chosen, hidden, windows), PAD)
        targets = np.where(chosen, windows, IGNORED)
        bias = np.where(visible, 0.0, HIDDEN_LOGIT)[:, None, None, :]
        whole = np.broadcast_to(bias, (self.batch, 1, self.length, self.length))
        return Batch(
            ids.astype(np.int32), targets.astype(np.int32), whole.astype(np.float32), places
        )


def from_step(source: Source, step: int, change: Callable[[Batch, int], Batch]) -> Source:
    """`source`, but from a 1-based step on each batch goes through `change(batch, index)`."""

    def changed(index: int) -> Batch:
        batch = source(index)
        return change(batch, index) if index >= step - 1 else batch

    return changed


def with_targets(batch: Batch, chosen: NDArray[np.bool_], values: NDArray[np.int32]) -> Batch:
    """The batch with other targets where `chosen` (batch, length) and a target counts."""
    put = chosen & (batch.targets != IGNORED)
    return replace(batch, targets=np.where(put, values, batch.targets).astype(np.int32))


def unigram_entropy(characters: NDArray[np.int32]) -> float:
    """Entropy in nats of the characters' frequencies: the loss of a model that knows no more."""
    counts = np.bincount(characters)
    shares = counts[counts > 0] / len(characters)
    return float(-(shares * np.log(shares)).sum())
