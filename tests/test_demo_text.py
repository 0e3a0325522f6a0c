"""The demo's text: corpus, tokenizer and masked batches. Fast: no MindSpore."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.demo.text import (
    CLS,
    MASK,
    PAD,
    SPECIAL_TOKENS,
    UNKNOWN,
    MaskedText,
    Tokenizer,
    corpus,
    split_words,
    unigram_entropy,
)
from mindpulse.errors import UsageError

VOCABULARY = 1000


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(corpus(), VOCABULARY)


@pytest.fixture(scope="module")
def batches(tokenizer: Tokenizer) -> MaskedText:
    return MaskedText(tokenizer.encode(corpus()), VOCABULARY, batch=32, seed=3)


def test_every_python_carries_enough_english() -> None:
    words = split_words(corpus())
    assert len(words) > 80_000
    assert {"the", "statement", "expression"} <= set(words)


def test_most_words_are_in_the_vocabulary(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(corpus())
    assert len(tokenizer) == VOCABULARY
    assert (ids == UNKNOWN).mean() < 0.08
    assert ids.max() < VOCABULARY


def test_known_words_survive_the_round_trip(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("The statement, then")) == "the statement , then"


def test_ties_in_frequency_are_broken_by_the_alphabet() -> None:
    assert Tokenizer.train("b a c", size=6).words[len(SPECIAL_TOKENS) :] == ("a", "b")


@pytest.mark.parametrize("size", [0, 4])
def test_a_vocabulary_without_words_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=f"vocabulary size {size}: use 5 or more"):
        Tokenizer.train("a b", size)


def test_entropy_of_equal_shares_is_the_logarithm_of_their_number() -> None:
    assert unigram_entropy(np.arange(8, dtype=np.int32)) == pytest.approx(np.log(8))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=200))
@settings(max_examples=50, deadline=None)
def test_entropy_agrees_with_its_definition(tokens: list[int]) -> None:
    shares = [tokens.count(token) / len(tokens) for token in set(tokens)]
    expected = -sum(share * np.log(share) for share in shares)
    assert unigram_entropy(np.array(tokens, np.int32)) == pytest.approx(expected, abs=1e-12)


def test_shapes_and_types_never_change(batches: MaskedText) -> None:
    for index in (0, 1, 299):
        batch = batches[index]
        assert [array.shape for array in batch] == [(32, 64), (32, 64), (32, 10), (32, 10)]
        assert [str(array.dtype) for array in batch] == ["int32", "float32", "int32", "int32"]


def test_a_batch_depends_on_seed_and_index_only(batches: MaskedText) -> None:
    again = MaskedText(batches.tokens, VOCABULARY, batch=32, seed=3)
    other = MaskedText(batches.tokens, VOCABULARY, batch=32, seed=4)
    assert all(np.array_equal(a, b) for a, b in zip(batches[7], again[7], strict=True))
    assert not np.array_equal(batches[7].ids, other[7].ids)
    assert not np.array_equal(batches[7].ids, batches[8].ids)


def test_padding_is_hidden_and_never_predicted(batches: MaskedText) -> None:
    for index in range(20):
        ids, visible, positions, _ = batches[index]
        lengths = visible.sum(axis=1).astype(int)
        assert lengths.min() >= 48
        assert lengths.max() == 64
        assert lengths.min() < 64
        assert (ids[visible == 0] == PAD).all()
        assert (ids[:, 0] == CLS).all()
        assert positions.min() >= 1
        assert (positions < lengths[:, None]).all()


def test_positions_are_distinct_and_targets_stood_there(batches: MaskedText) -> None:
    ids, _, positions, targets = batches[0]
    assert (np.diff(positions, axis=1) > 0).all()
    shown = np.take_along_axis(ids, positions, axis=1)
    kept = shown == targets
    masked = shown == MASK
    assert (kept | masked | (shown >= len(SPECIAL_TOKENS))).all()


def test_of_the_chosen_words_80_percent_are_masked_10_random_10_kept(batches: MaskedText) -> None:
    shown, targets = [], []
    for index in range(60):
        batch = batches[index]
        shown.append(np.take_along_axis(batch.ids, batch.positions, axis=1))
        targets.append(batch.targets)
    seen, wanted = np.concatenate(shown), np.concatenate(targets)
    # 19,200 draws: three standard deviations are below 0.01.
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (seen == wanted).mean() == pytest.approx(0.1, abs=0.01)


def test_targets_follow_the_word_frequencies_of_the_text(batches: MaskedText) -> None:
    targets = np.concatenate([batches[index].targets.ravel() for index in range(300)])
    assert unigram_entropy(targets) == pytest.approx(unigram_entropy(batches.tokens), abs=0.05)


def test_too_many_masked_words_are_refused(batches: MaskedText) -> None:
    with pytest.raises(UsageError, match="60 masked words"):
        MaskedText(batches.tokens, VOCABULARY, masked=60)


def test_too_short_a_text_is_refused() -> None:
    with pytest.raises(UsageError, match="a text of 10 words: use more than 64"):
        MaskedText(np.zeros(10, np.int32), VOCABULARY)
