"""Every measure of the catalogue in a real training, against NumPy, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray

from mindpulse import open_run
from mindpulse.catalogue import MEASURES
from mindpulse.catalogue import attention as on_attention
from mindpulse.mindspore import attach
from nets import LENGTH, MODES, batches, make_training, weights

STEPS = 5  # in PyNative the last two run as graphs of their own; elsewhere fewer are compared
SHOWN = np.arange(LENGTH) < LENGTH - 3  # the nets hide the last three keys
PAD = 7
NOT_HERE = {"expert_load", "grad_norm_unclipped"}  # no experts, no clipping
# float32, and the modes round differently (fused kernels): the weights drift apart a little.
CLOSE = {"rtol": 2e-3, "atol": 2e-5}


class Seen:
    """The same training in PyNative, each tensor copied to NumPy; rows by tag."""

    def __init__(self) -> None:
        self.rows: dict[str, list[NDArray[Any]]] = {}
        training = make_training("pynative")
        net, optimizer = training.net, training.optimizer
        kept: dict[str, list[Any]] = {"logits": [], "p": [], "norm": [], "ffn": [], "head": []}

        def keep(name: str, value: Any) -> None:
            kept[name].append(value.asnumpy().astype(np.float64))

        for layer in net.layers:
            softmax = layer.attention.softmax
            softmax.register_forward_hook(lambda cell, inputs, out: keep("logits", inputs[0]))
            softmax.register_forward_hook(lambda cell, inputs, out: keep("p", out))
            for norm in (layer.norm1, layer.norm2):
                norm.register_forward_hook(lambda cell, inputs, out: keep("norm", inputs[0]))
            layer.outer.register_forward_hook(lambda cell, inputs, out: keep("ffn", inputs[0]))
        net.head.register_forward_hook(lambda cell, inputs, out: keep("head", out))
        gradients = ms.value_and_grad(net, None, optimizer.parameters)
        for ids, labels in batches(STEPS):
            before = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
            _, grads = gradients(ids, labels)
            optimizer(grads)
            after = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
            self._forward(kept, ids.asnumpy() == PAD)
            self._optimizer([g.asnumpy() for g in grads], before, after, optimizer)
            for values in kept.values():
                values.clear()

    def _add(self, tag: str, values: Any) -> None:
        self.rows.setdefault(tag, []).append(np.asarray(values, np.float64).reshape(-1))

    def _forward(self, kept: dict[str, list[Any]], padding: NDArray[np.bool_]) -> None:
        p, logits = kept["p"], kept["logits"]
        masked = [np.where(SHOWN, x, -np.inf) for x in logits]
        for tag, values in (
            ("attn_focus", [on_attention.attention_focus(x) for x in p]),
            ("attn_entropy", [on_attention.attention_entropy(x, SHOWN) for x in p]),
            ("attn_sparsity", [on_attention.attention_sparsity(x, SHOWN) for x in p]),
            ("attn_max_logit", [x.max(axis=(0, 2, 3)) for x in masked]),
            ("attn_sink_mass", [x[..., 0].mean(axis=(0, 2)) for x in p]),
            ("attn_future_mass", [np.triu(x, 1).sum(-1).mean(axis=(0, 2)) for x in p]),
            (
                "attn_padding_mass",
                [(x * padding[:, None, None, :]).sum(-1).mean(axis=(0, 2)) for x in p],
            ),
        ):
            self._add(tag, np.concatenate(values))
        for tag in (t for t, m in MEASURES.items() if m.place == "norm"):
            self._add(tag, [MEASURES[tag].reference(x) for x in kept["norm"]])
        for tag in (t for t, m in MEASURES.items() if m.place == "ffn"):
            self._add(tag, [MEASURES[tag].reference(x) for x in kept["ffn"]])
        (head,) = kept["head"]
        most = head.max(-1, keepdims=True)
        self._add(
            "logits_log_partition", (np.log(np.exp(head - most).sum(-1)) + most[..., 0]).mean()
        )

    def _optimizer(self, grads: list[Any], before: Any, after: Any, optimizer: Any) -> None:
        norms = np.array([np.linalg.norm(g.astype(np.float64)) for g in grads])
        self._add("grad_norm", np.linalg.norm(norms))
        self._add("grad_norm_param", norms)
        names = [p.name for p in optimizer.parameters]
        layers = [np.linalg.norm(norms[[f"layers.{i}." in n for n in names]]) for i in (0, 1)]
        self._add("grad_norm_ratio", layers[0] / layers[1])
        self._add("grad_max_abs", [np.abs(g).max() for g in grads])
        self._add("grad_zero_share", [(g == 0).mean() for g in grads])
        self._add("grad_nonfinite", [(~np.isfinite(g)).sum() for g in grads])
        self._add("weight_norm", [np.linalg.norm(w) for w in after])
        changes = np.array([np.linalg.norm(a - b) for a, b in zip(after, before, strict=True)])
        old = np.array([np.linalg.norm(b) for b in before])
        self._add(
            "weight_update_ratio", np.where(old == 0, np.nan, changes / np.where(old, old, 1))
        )
        self._add("adam_m_norm", [np.linalg.norm(m.asnumpy()) for m in optimizer.moments1])
        self._add("adam_v_norm", [np.linalg.norm(v.asnumpy()) for v in optimizer.moments2])


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


def watched(mode: str, folder: Path, steps: int = STEPS, **options: Any) -> Any:
    training = make_training(mode)
    monitor = attach(
        training.net, training.optimizer, summary_dir=folder, train_cell=training.cell, **options
    )
    step = monitor.jit(training.step) if mode == "jit" else training.step
    for ids, labels in batches(steps):
        monitor.step(step(ids, labels) if mode != "graph" else (step(ids, labels), None)[1])
    monitor.close()
    assert monitor.problem == ""
    return training


@pytest.mark.parametrize("mode", MODES)
def test_every_measure_is_what_numpy_says(mode: str, tmp_path: Path, seen: Seen) -> None:
    steps = STEPS if mode == "pynative" else 3
    watched(mode, tmp_path / "run", steps, measures="all", interval=1, pad_id=PAD)
    run = open_run(tmp_path / "run")
    wanted = {
        tag
        for tag, measure in MEASURES.items()
        if measure.family not in ("loss", "memory", "hardware") and tag not in NOT_HERE
    }
    assert wanted == set(seen.rows)
    assert not [n.data for n in run.notes() if n.kind == "monitor_error"]
    for tag in wanted:
        series = run.series(tag)
        assert series.steps.tolist() == list(range(1, steps + 1)), tag
        found = series.values.reshape(steps, -1)
        wanted_rows = np.array(seen.rows[tag][:steps])
        np.testing.assert_allclose(found, wanted_rows, **CLOSE, err_msg=tag)
    assert run.series("host_memory_rss").values[-1] > 10e6
    assert run.series("tokens_per_s").values.min() > 0 if mode != "pynative" else True


@pytest.mark.parametrize("mode", MODES)
def test_all_measures_change_no_bit(mode: str, tmp_path: Path) -> None:
    plain = make_training(mode)
    for ids, labels in batches(6):
        plain.step(ids, labels)
    probed = watched(mode, tmp_path / "run", 6, measures="all", interval=3, pad_id=PAD)
    for name, value in weights(plain.net).items():
        assert value.tobytes() == weights(probed.net)[name].tobytes(), name
    run = open_run(tmp_path / "run")
    assert run.series("attn_sink_mass").steps.tolist() == [1, 4]
    assert run.series("adam_v_norm").steps.tolist() == [1, 4]
    assert run.series("grad_norm").steps.tolist() == list(range(1, 7))
