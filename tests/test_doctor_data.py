"""Is the data what the model wants: each fault is put into a batch, and clean ones stay quiet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from doctoring import findings, problems
from mindpulse.cli import main
from mindpulse.doctor.data import check_batch, check_batches
from mindpulse.doctor.data_arrays import columns_of
from mindpulse.doctor.data_dtypes import check_dtypes
from mindpulse.doctor.data_source import batches_from
from mindpulse.doctor.result import Result
from mindpulse.errors import UsageError

ROWS, LENGTH, WORDS, PAD = 8, 16, 100, 0


def clean(seed: int = 0) -> dict[str, Any]:
    """A padded batch as BERT wants it."""
    rng = np.random.default_rng(seed)
    lengths = np.array([16, 12, 9, 16, 5, 7, 10, 11])
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.uint8)
    ids = rng.integers(5, WORDS, (ROWS, LENGTH)).astype(np.int32) * mask
    labels = np.where(mask & (rng.random((ROWS, LENGTH)) < 0.4), ids, -100).astype(np.int32)
    types = np.zeros((ROWS, LENGTH), np.int32)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, "token_type_ids": types}


def look(**changed: Any) -> dict[str, Result]:
    known = {"vocab_size", "num_labels", "causal", "expected", "pad_id"}
    words = {name: changed.pop(name) for name in known & set(changed)}
    return problems(check_batch({**clean(), **changed}, vocab_size=WORDS, **words))


def test_a_clean_batch_is_quiet() -> None:
    assert set(findings(check_batch(clean()))) == {"data_fine"}
    assert look(pad_id=PAD, causal=False) == {}
    as_tuple = tuple(clean().values())
    assert [c.role for c in columns_of(as_tuple)] == ["ids", "mask", "labels", "mask"]
    pictures = np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype(np.float32)
    vit = {"pixel_values": pictures, "labels": np.arange(4, dtype=np.int32)}
    assert set(findings(check_batch(vit, num_labels=10))) == {"data_fine"}
    regression = {"x": pictures, "labels": np.linspace(0.1, 2.2, 4, dtype=np.float32)}
    assert set(findings(check_batch(regression))) == {"data_fine"}


@pytest.mark.parametrize("name", ["input_ids", "labels", "token_type_ids"])
def test_whole_numbers_of_64_bits(name: str) -> None:
    found = look(**{name: clean()[name].astype(np.int64)})
    assert set(found) == {"data_int64"}
    assert f"{name} is int64" == found["data_int64"].evidence()


def test_ids_that_the_table_does_not_have() -> None:
    ids = clean()["input_ids"].copy()
    ids[0, :3] = 100, 250, -1
    found = look(input_ids=ids)
    assert "2 id(s) from 100 up, the largest 250" in found["data_ids_above"].evidence()
    assert "1 id(s) below 0, the least -1" in found["data_ids_negative"].evidence()
    assert set(look(input_ids=clean()["input_ids"].astype(np.float32))) == {"data_ids_float"}
    assert "data_ids_constant" in look(input_ids=np.full((ROWS, LENGTH), 7, np.int32))


def test_labels() -> None:
    wrong = np.array([0, 1, 2, 3, -1, -100, 0, 1], np.int32)
    found = look(labels=wrong, num_labels=3)
    assert "1 label(s) from 3 up, the largest 3" in found["data_labels_above"].evidence()
    assert "that are not -100, the least -1" in found["data_labels_negative"].evidence()
    assert set(look(labels=np.full(ROWS, -100, np.int32))) == {"data_labels_ignored"}
    classes = np.array([0, 1, 2, 0, 1, 2, 0, 1], np.float32)
    assert set(look(labels=classes, num_labels=3)) == {"data_labels_float"}
    assert set(look(labels=classes)) == {"data_labels_float"}
    assert set(look(labels=np.full(16, 2, np.int32), num_labels=3)) == {"data_labels_constant"}
    words = clean()["labels"].copy()
    words[0, 0] = WORDS  # a label of a language model is a word of the vocabulary
    assert set(look(labels=words)) == {"data_labels_above"}


def test_types_of_the_mask() -> None:
    mask = clean()["attention_mask"]
    assert set(look(attention_mask=mask.astype(np.float32))) == {"data_mask_float32"}
    for dtype in (np.bool_, np.int32, np.float16):
        assert look(attention_mask=mask.astype(dtype)) == {}


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((ROWS, LENGTH), True),
        ((ROWS, 1, LENGTH), True),
        ((ROWS, 1, 1, LENGTH), True),
        ((ROWS, 2, LENGTH, LENGTH), True),
        ((1, 1, LENGTH, LENGTH), True),
        ((LENGTH, LENGTH), True),
        ((ROWS, LENGTH + 1), False),
        ((ROWS + 1, LENGTH), False),
        ((LENGTH,), False),
        ((ROWS, LENGTH, 1), False),
    ],
)
def test_shapes_of_the_mask(shape: tuple[int, ...], fits: bool) -> None:
    found = look(attention_mask=np.ones(shape, np.bool_))
    assert set(found) == (set() if fits else {"data_mask_shape"})


def test_what_a_mask_hides() -> None:
    batch = clean()
    mask = batch["attention_mask"]
    assert "shows the padding" in look(attention_mask=1 - mask)["data_mask_inverted"].evidence()
    assert set(look(attention_mask=np.zeros_like(mask))) == {"data_mask_zero"}
    assert set(look(attention_mask=np.ones_like(mask), pad_id=PAD)) == {"data_mask_open"}
    assert set(look(attention_mask=mask * np.arange(LENGTH, dtype=np.uint8))) >= {
        "data_mask_values"
    }
    empty = mask.copy()
    empty[3] = 0
    assert "1 of 8 sequences" in look(attention_mask=empty)["data_all_padding"].evidence()


def test_a_batch_of_padding_only() -> None:
    ids, mask = np.zeros((ROWS, LENGTH), np.int32), np.zeros((ROWS, LENGTH), np.uint8)
    found = look(input_ids=ids, attention_mask=mask, pad_id=PAD)
    assert {"data_ids_constant", "data_mask_zero", "data_all_padding"} <= set(found)
    some = clean()["input_ids"].copy()
    some[2] = PAD
    only = problems(check_batch({"input_ids": some}, pad_id=PAD))
    assert "1 of 8 sequences are nothing but padding" in only["data_all_padding"].evidence()


def test_masks_of_pairs() -> None:
    lower = np.tril(np.ones((1, 1, LENGTH, LENGTH), np.bool_))
    assert look(attention_mask=lower, causal=True) == {}
    assert set(look(attention_mask=lower, causal=False)) == {"data_mask_causal"}
    assert set(look(attention_mask=lower.swapaxes(2, 3), causal=True)) == {"data_mask_transposed"}
    leak = lower.copy()
    leak[0, 0, 3, 9] = True
    assert "1 pair(s)" in look(attention_mask=leak, causal=True)["data_mask_leaks"].evidence()
    assert look(attention_mask=leak) == {}  # nobody said that it is causal
    blind = lower.copy()
    blind[0, 0, 0] = False
    assert "1 of 16 queries" in look(attention_mask=blind)["data_mask_blind"].evidence()


def test_masks_that_are_added() -> None:
    lower = np.tril(np.ones((1, 1, LENGTH, LENGTH)))
    added = np.where(lower, 0, -1e4).astype(np.float16)
    assert look(attention_mask=added, causal=True) == {}
    infinite = np.where(lower, 0, -np.inf).astype(np.float16)
    assert set(look(attention_mask=infinite, causal=True)) == {"data_mask_infinite"}
    with np.errstate(invalid="ignore"):
        spoilt = ((1 - lower) * -np.inf).astype(np.float16)
    assert set(look(attention_mask=spoilt)) == {"data_mask_nan"}


def test_values_that_are_no_data() -> None:
    picture = np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32)
    spoilt = picture.copy()
    spoilt[1, 2, 3, 4] = np.nan
    told = problems(check_batch({"image": spoilt}))["data_not_finite"].evidence()
    assert told == "image: 1 of 768 values are NaN or infinite, the first at (1, 2, 3, 4)"
    assert set(problems(check_batch({"image": np.zeros_like(picture)}))) == {"data_constant"}
    assert set(problems(check_batch({"image": picture.astype(np.float64)}))) == {"data_float64"}


def test_what_the_model_expects() -> None:
    wanted = {"input_ids": "int32", "labels": (None, LENGTH), "position_ids": "int32"}
    found = look(expected=wanted, input_ids=clean()["input_ids"].astype(np.int16))
    assert set(found) == {"data_unexpected", "data_missing"}
    assert found["data_unexpected"].evidence() == "input_ids is int16, wanted is int32"
    assert "data_unexpected" in look(expected={"labels": (None, 8)})


def test_batches_against_each_other() -> None:
    batches = [clean(seed) for seed in range(4)]
    assert set(findings(check_batches(batches, vocab_size=WORDS))) == {"data_all_fine"}
    again = problems(check_batches([batches[0], batches[1], clean(1)]))
    assert again["data_repeated"].evidence() == "batch 3 is batch 2 once more"
    shorter = {name: array[:, :12] for name, array in clean(5).items()}
    told = problems(check_batches([*batches, shorter]))["data_shapes"].evidence()
    assert told == "input_ids has 2 shapes: (8, 16) (batch 1), (8, 12) (batch 5)"


def test_silent_truncation() -> None:
    full = [{**clean(s), "attention_mask": np.ones((ROWS, LENGTH), np.uint8)} for s in range(2)]
    found = problems(check_batches(full))
    assert found["data_truncated"].evidence() == "all 16 sequences are exactly 16 long"
    assert "data_truncated" not in problems(check_batches(full, causal=True))  # packed


def test_what_is_told_once_and_only_of_the_first_batches() -> None:
    wrong = [{"input_ids": clean(s)["input_ids"].astype(np.int64)} for s in range(5)]
    results = [r for r in check_batches(wrong) if r.finding == "data_int64"]
    assert len(results) == 1
    assert check_batches([])[0].finding == "data_none"
    spoilt = {"input_ids": np.full((2, 2), 500, np.int32)}
    assert problems(check_batches([clean(), spoilt], most=1, vocab_size=WORDS)) == {}
    assert check_batch({"input_ids": np.empty((0, 4), np.int32)})[0].finding == "data_empty"


def test_what_is_no_batch() -> None:
    with pytest.raises(UsageError, match="text: str of type"):
        check_batch({"text": "to be or not to be"})
    (result,) = check_batches([{"text": "to be"}])
    assert (result.finding, result.status) == ("check_failed", "unknown")


class Tensor:
    """As much of MindSpore's as is asked for."""

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    def asnumpy(self) -> Any:
        assert self.dtype != "BFloat16", "NumPy has no such type"
        return self.array

    def float(self) -> Tensor:
        return Tensor(self.array, "Float32")


def test_tensors_are_asked_not_imported() -> None:
    tensor = Tensor(np.arange(40).reshape(2, 20), "Int64")
    assert set(problems(check_batch({"input_ids": tensor}))) == {"data_int64"}
    half = Tensor(np.random.default_rng(0).normal(size=(2, 20)).astype(np.float32), "BFloat16")
    assert columns_of({"x": half})[0].dtype == "bfloat16"
    assert set(findings(check_batch({"pixels": half}))) == {"data_fine"}


def test_which_arrays_are_still_float32() -> None:
    half = {f"layers.{n}.q.weight": "BFloat16" for n in range(8)}
    usual = {"layers.0.norm.gamma": "Float32", "loss_scale": "Float32"}
    assert "data_dtypes_fine" in findings(check_dtypes(half | usual))
    found = problems(check_dtypes(half | usual | {"layers.0.scores": "mindspore.float32"}))
    assert "still float32: layers.0.scores" in found["data_dtypes_mixed"].evidence()


# -- where batches come from ------------------------------------------------------------------

MODULE = """
import numpy as np

ids = np.arange(64, dtype=np.int64).reshape(4, 16)

def batches():
    return [{"input_ids": ids}, {"input_ids": ids + 1}]

class Dataset:
    def create_dict_iterator(self, num_epochs, output_numpy):
        assert output_numpy
        return iter(batches())

def nothing():
    return 3
"""


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_data.py").write_text(MODULE)
    assert len(list(batches_from("own_data:batches"))) == 2
    assert len(list(batches_from("own_data.py:Dataset"))) == 2
    np.savez(tmp_path / "batch.npz", **clean())
    (batch,) = batches_from("batch.npz")
    assert {column.name for column in columns_of(batch)} == set(clean())
    np.save(tmp_path / "ids.npy", clean()["input_ids"])
    (ids,) = batches_from("ids.npy")
    assert columns_of(ids)[0].role == "ids"
    (tmp_path / "bad.npz").write_bytes(b"no zip")
    for wrong in ("own_data:none", "own_data:nothing", "nobody:f", "own_data", "bad.npz", "no.npy"):
        with pytest.raises(UsageError):
            batches_from(wrong)


def test_a_file_of_pickles_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(UsageError, match="cannot be read as arrays"):
        batches_from(str(tmp_path / "p.npy"))


def test_the_command(tmp_path: Path) -> None:
    batch = clean()
    batch["input_ids"] = batch["input_ids"].astype(np.int64)
    np.savez(tmp_path / "batch.npz", **batch)
    words = ["doctor", "data", str(tmp_path / "batch.npz"), "--vocab", "10", "--json"]
    call = CliRunner().invoke(main, words)
    assert call.exit_code == 1
    told = {result["finding"] for result in json.loads(call.output)["results"]}
    assert {"data_int64", "data_ids_above"} <= told
    assert CliRunner().invoke(main, ["doctor", "data", "nowhere.npz"]).exit_code == 2
