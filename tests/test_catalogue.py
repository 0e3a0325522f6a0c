"""The catalogue as a whole: every measure says what it is, and no two have one name."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from dataclasses import replace
from typing import Any

import pytest

import mindpulse.catalogue
from mindpulse.catalogue import FAMILIES, MEASURES, Measure, index
from mindpulse.errors import NameTakenError, UsageError

TAGS = {
    "loss": "train_loss learning_rate loss_scale overflow step_time_s samples_per_s tokens_per_s "
    "data_wait_s",
    "attention": "attn_focus attn_entropy attn_max_logit attn_sparsity attn_sink_mass "
    "attn_future_mass attn_padding_mass",
    "gradient": "grad_norm grad_norm_unclipped grad_norm_param grad_norm_ratio grad_max_abs "
    "grad_zero_share grad_nonfinite",
    "weight": "weight_norm weight_update_ratio",
    "activation": "norm_input_mean norm_input_variance norm_input_rms norm_input_max_abs "
    "norm_input_kurtosis ffn_zero_share ffn_dead_share ffn_histogram",
    "optimizer": "adam_m_norm adam_v_norm",
    "output": "logits_log_partition",
    "moe": "expert_load",
    "memory": "memory_allocated memory_reserved memory_total memory_peak memory_free "
    "memory_largest_free memory_contiguity memory_fragmentation host_memory_rss",
    "hardware": "npu_utilization npu_memory_used npu_memory_total npu_temperature npu_power "
    "npu_alarm l2_hit_rate cube_utilization vector_utilization hbm_read_bandwidth "
    "hbm_write_bandwidth comm_not_overlapped_share device_free_share profile_memory_peak "
    "profile_memory_idle",
}
AXES: dict[str, set[tuple[str, ...]]] = {
    "loss": {()},
    "attention": {("layer", "head")},
    "gradient": {(), ("param",)},
    "weight": {("param",)},
    "activation": {("cell",), ("cell", "bin")},
    "optimizer": {("param",)},
    "output": {()},
    "moe": {("layer", "expert")},
    "memory": {()},
    "hardware": {(), ("chip",), ("operator",)},
}
MODULES = [module.name for module in pkgutil.iter_modules(mindpulse.catalogue.__path__)]


def test_every_family_has_its_measures() -> None:
    assert list(FAMILIES) == list(TAGS)
    for family, tags in TAGS.items():
        measures = [m for m in MEASURES.values() if m.family == family]
        assert {m.tag for m in measures} == set(tags.split())
        assert {m.axes for m in measures} <= AXES[family]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda m: m.tag)
def test_every_measure_says_what_it_is_and_makes_its_series(measure: Measure) -> None:
    assert measure.formula
    assert measure.source
    assert measure.reference is not None
    assert ">>>" in (measure.reference.__doc__ or "")
    columns = [tuple("0" for _ in measure.axes)] if measure.axes else []
    spec = measure.spec(columns)
    assert (spec.tag, spec.reduction, spec.unit) == (measure.tag, measure.reduction, measure.unit)
    assert spec.dtype == ("float32" if measure.axes else "float64")


def test_units_and_kinds() -> None:
    assert MEASURES["step_time_s"].unit == MEASURES["data_wait_s"].unit == "s"
    assert MEASURES["host_memory_rss"].unit == "bytes"
    assert MEASURES["memory_fragmentation"].unit == ""
    assert MEASURES["ffn_histogram"].spec([("a", "0")]).plugin == "histogram"
    assert MEASURES["attn_focus"].spec([("0", "0")]).plugin == "vector"
    assert MEASURES["grad_norm"].spec().plugin == "scalar"


def test_what_is_largest_stays_largest_however_it_is_merged() -> None:
    for tag in ("attn_max_logit", "norm_input_max_abs", "overflow"):
        assert (MEASURES[tag].reduction, MEASURES[tag].within) == ("max", "max")


def test_each_step_costs_nothing_dear() -> None:
    for measure in MEASURES.values():
        assert (measure.cost == "cheap") == (measure.level == "cheap"), measure.tag


def test_a_taken_name_is_refused_naming_both_definitions() -> None:
    def mine() -> float:
        return 0.0

    other = replace(MEASURES["grad_norm"], reference=mine)
    with pytest.raises(NameTakenError) as caught:
        index([*MEASURES.values(), other])
    assert "mindpulse.catalogue.gradient.global_norm" in str(caught.value)
    assert "mine" in str(caught.value)
    with pytest.raises(NameTakenError, match="'user' without a reference"):
        index([*MEASURES.values(), replace(other, reference=None, family="user")])


@pytest.mark.parametrize(
    ("field", "value"),
    [("place", "atention"), ("within", "min"), ("cost", "free"), ("level", "most"), ("tag", "")],
)
def test_a_field_with_an_unknown_value_is_refused(field: str, value: str) -> None:
    with pytest.raises(UsageError, match=repr(value)):
        replace(MEASURES["grad_norm"], **{field: value})  # type: ignore[arg-type]


def test_an_unknown_reduction_is_refused_when_the_series_is_made() -> None:
    with pytest.raises(UsageError, match="'median'"):
        replace(MEASURES["grad_norm"], reduction="median").spec()


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_true(name: str) -> None:
    module: Any = importlib.import_module(f"mindpulse.catalogue.{name}")
    assert doctest.testmod(module).failed == 0
