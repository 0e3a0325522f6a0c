"""Real English text that every Python carries, its tokenizer, and masked batches of it.

The text is the language reference that `help()` shows, `pydoc_data.topics`: about 465,000
characters, 120,000 words and signs. Nothing is downloaded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError

PAD, UNKNOWN, CLS, MASK = range(4)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]")
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the chosen positions; the rest stay as they are

_WORD_OR_SIGN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def corpus() -> str:
    """The text of all help topics of this Python, in the order of their names."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def split_words(text: str) -> list[str]:
    """Lower-case words, numbers and single signs.

    Example:
        >>> split_words("Call f(x) 12 times.")
        ['call', 'f', '(', 'x', ')', '12', 'times', '.']
    """
    return _WORD_OR_SIGN.findall(text.lower())


@dataclass(frozen=True)
class Tokenizer:
    """Words to numbers: the special tokens first, then the most frequent words.

    Example:
        >>> tokenizer = Tokenizer.train("to be or not to be", size=6)
        >>> tokenizer.words
        ('[PAD]', '[UNK]', '[CLS]', '[MASK]', 'be', 'to')
        >>> tokenizer.encode("to be or").tolist()
        [5, 4, 1]
    """

    words: tuple[str, ...]

    @classmethod
    def train(cls, text: str, size: int) -> Tokenizer:
        """Keeps the `size` - 4 most frequent words, ties in alphabetical order.

        Raises:
            UsageError: `size` leaves no room for a word.
        """
        if size <= len(SPECIAL_TOKENS):
            raise UsageError(f"vocabulary size {size}: use {len(SPECIAL_TOKENS) + 1} or more")
        ranked = sorted(Counter(split_words(text)).items(), key=lambda item: (-item[1], item[0]))
        kept = [word for word, _ in ranked[: size - len(SPECIAL_TOKENS)]]
        return cls(SPECIAL_TOKENS + tuple(kept))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> NDArray[np.int32]:
        """(tokens,) int32; a word that is not in the vocabulary becomes `UNKNOWN`."""
        ids = {word: number for number, word in enumerate(self.words)}
        return np.array([ids.get(word, UNKNOWN) for word in split_words(text)], np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """The words with blanks between them."""
        return " ".join(self.words[number] for number in ids)


def unigram_entropy(tokens: NDArray[np.int32]) -> float:
    """Entropy in nats of the token frequencies: the loss of a model that knows nothing else.

    Example:
        >>> round(unigram_entropy(np.array([4, 5, 4, 5], np.int32)), 4)
        0.6931
    """
    counts = np.bincount(tokens)
    shares = counts[counts > 0] / len(tokens)
    return float(-(shares * np.log(shares)).sum())


class MaskedBatch(NamedTuple):
    """One step's input to the masked language model.

    Attributes:
        ids: (batch, length) int32, `CLS`, then words, some of them masked, then `PAD`.
        visible: (batch, length) float32, 1 on words, 0 on padding.
        positions: (batch, masked) int32, the places to predict.
        targets: (batch, masked) int32, the words that stood there.
    """

    ids: NDArray[np.int32]
    visible: NDArray[np.float32]
    positions: NDArray[np.int32]
    targets: NDArray[np.int32]


@dataclass(frozen=True)
class MaskedText:
    """Masked batches out of a text; batch k depends on the seed and k only.

    Windows begin anywhere; every second one is cut short, so that padding is real. In each a
    fixed number of words is chosen: of these 80 % become `MASK`, 10 % a random word, 10 % stay.

    Args:
        tokens: (tokens,) int32, the text.
        vocabulary: number of words, special tokens included.
        batch: windows in a batch.
        length: tokens in a window, `CLS` included.
        masked: words to predict in each window.
        seed: all randomness comes from it.
    """

    tokens: NDArray[np.int32]
    vocabulary: int
    batch: int = 64
    length: int = 64
    masked: int = 10
    seed: int = 0
    columns: tuple[str, ...] = MaskedBatch._fields

    def __post_init__(self) -> None:
        if self.masked > self.shortest - 1:
            raise UsageError(f"{self.masked} masked words need a window longer than {self.length}")
        if len(self.tokens) <= self.length:
            raise UsageError(f"a text of {len(self.tokens)} words: use more than {self.length}")

    @property
    def shortest(self) -> int:
        """Tokens in the shortest window."""
        return self.length * 3 // 4

    def __getitem__(self, index: int) -> MaskedBatch:
        rng = np.random.default_rng((self.seed, index))
        ids, lengths = self._windows(rng)
        visible = np.arange(self.length) < lengths[:, None]
        positions = self._positions(rng, lengths)
        rows = np.arange(self.batch)[:, None]
        targets = ids[rows, positions]
        ids[rows, positions] = self._disguise(rng, targets)
        return MaskedBatch(
            np.where(visible, ids, PAD).astype(np.int32),
            visible.astype(np.float32),
            positions,
            targets,
        )

    def _windows(self, rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        starts = rng.integers(0, len(self.tokens) - self.length + 1, self.batch)
        ids = self.tokens[starts[:, None] + np.arange(self.length)]
        ids[:, 0] = CLS
        lengths = np.full(self.batch, self.length)
        lengths[::2] = rng.integers(self.shortest, self.length + 1, len(lengths[::2]))
        return ids, lengths

    def _positions(self, rng: np.random.Generator, lengths: NDArray[np.int64]) -> NDArray[np.int32]:
        chosen = [1 + rng.permutation(length - 1)[: self.masked] for length in lengths]
        return np.sort(np.array(chosen, np.int32), axis=1)

    def _disguise(self, rng: np.random.Generator, targets: NDArray[np.int32]) -> NDArray[np.int32]:
        draw = rng.random(targets.shape)
        other = rng.integers(len(SPECIAL_TOKENS), self.vocabulary, targets.shape)
        hidden = np.where(draw < MASK_SHARE + RANDOM_SHARE, other, targets)
        return np.where(draw < MASK_SHARE, MASK, hidden).astype(np.int32)
