"""Other people's profiles, and the values that a reader has to report of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from mindpulse.ascend.operators import Operators
from mindpulse.ascend.profile import Profile, by_time, read_profile
from mindpulse.ascend.tables import (
    Blocks,
    CacheRates,
    Cores,
    Memory,
    OldSteps,
    Plain,
    Statistics,
    Steps,
)
from mindpulse.errors import FormatError

REAL = Path(__file__).parent.parent.parent / "shared" / "real" / "ascend_profiler"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not here")
MB = 1024.0**2
LEVEL0, LEVEL1 = "torch_npu_resnet_level0_rank0", "torch_npu_resnet_level1_rank0"
QWEN3 = "torch_npu_qwen_pp2dp2_cann83rc1_rank_3"
GPT3, QWEN = "torch_npu_gpt3_2023_rank0", "torch_npu_qwen_pp2dp2_cann83rc1_rank_0"


def only(name: str, kind: type) -> Any:
    profile = read_profile(REAL / name)
    (table,) = profile.of(kind)
    return table


# file, rows, columns, microseconds together, longest, types by time, first and last start in ns
KERNELS: list[tuple[Any, ...]] = [
    (f"{LEVEL0}/kernel_details.csv", 191, 8, 94344.34, ("hcom_allReduce__868_0_1", 72994.438),
     {"N/A": (191, 94344.34)}, 1736405443881410320, 1736405443997036830, None),
    (f"{LEVEL1}/kernel_details.csv", 191, 46, 114866.0, ("hcom_allReduce__586_0_1", 79089.52),
     {"hcom_allReduce_": (4, 105991.88), "ForeachAddList": (3, 1959.08), "TransData": (57, 1423.2)},
     1736408883704643212, 1736408883840600069, (98.349, "aclnnMm_MatMulCommon_MatMulV2")),
    (f"{GPT3}/kernel_details.csv", 21, 32, 37371.0, ("FlashAttentionScore", 7119.969),
     {"FlashAttentionScore": (4, 21114.69), "hcom_broadcast_": (2, 5517.73),
      "DSAStatelessGenBitMask": (2, 5344.21)}, 1695115378713661000, 1695115378981504800, None),
    (f"{QWEN}/kernel_details.csv", 2463, 47, 651464.0,
     ("hcom_batchSendRecv__128_4_1", 158553.28),
     {"hcom_batchSendRecv_": (3, 313877.8), "FlashAttentionScoreGrad": (28, 63128.66),
      "MatMulV3": (280, 48000.78)}, 1764246877073569640, 1764246877883589080,
     (99.113, "aclnnMatmul_MatMulCommon_MatMulV2")),
    ("mstt_kernel_details_matmul_2025.csv", 29, 46, 10061.2,
     ("aclnnFlashAttentionScoreGrad_FlashAttentionScoreGrad_FlashAttentionScoreGrad", 763.215),
     {"MatMulV3": (8, 4122.34), "FlashAttentionScoreGrad": (4, 3038.44),
      "FlashAttentionScore": (5, 2033.78)},
     1736413971411629128, 1736413974268747953,  # its rows are not in the order of time
     (99.294, "aclnnFlashAttentionScoreGrad_FlashAttentionScoreGrad_FlashAttentionScoreGrad")),
    ("mstt_kernel_details_level0_2023.csv", 8, 7, 1000.85, ("Cast16", 932.05),
     {"N/A": (8, 1000.85)}, 1702866902796675000, 1702866903316761500, None),
    ("op_summary_neopan_mixaic_tab_timestamps.csv", 3, 46, 260795.0, ("main_kernel", 87139.38),
     {"main_kernel": (3, 260794.52)}, 1780676244313289000, 1780676244500755880,
     (0.014, "main_kernel")),
    ("op_summary_neopan_sanitized.csv", 2, 46, 84457.6, ("sanitized_kernel", 42399.12),
     {"sanitized_kernel": (2, 84457.6)}, 1000000000, 1042400000, (0.029, "sanitized_kernel")),
    ("op_summary_lelecheung_blocknum_excerpt.csv", 10, 46, 13358.9,
     ("matmul_bias_activation_kernel", 2573.26),
     {"matmul_bias_activation_kernel": (4, 10041.26), "DSARandomNormal": (3, 3172.36),
      "Cast": (3, 145.3)}, 1791631462725868120, 1791631463246368940,
     (94.771, "matmul_bias_activation_kernel")),
]  # fmt: skip


@pytest.mark.parametrize("expected", KERNELS, ids=lambda e: str(e[0]))
def test_operators(expected: tuple[Any, ...]) -> None:
    name, rows, columns, total, longest, kinds, first, last, cube = expected
    profile = read_profile(REAL / name)
    (file,) = profile.files
    (found,) = profile.of(Operators)
    assert (file.kind, file.rows, file.columns) == ("kernel_details", rows, columns)
    assert file.damaged == (1 if name.startswith(GPT3) else 0)
    assert file.ruined == 0
    assert found.total_us == pytest.approx(total, rel=5e-6)
    assert found.longest == pytest.approx(longest) or found.longest[0] == longest[0]
    assert found.longest[1] == pytest.approx(longest[1], abs=5e-4)
    top = by_time(profile)[: len(kinds)]
    assert [kind for kind, _, _ in top] == list(kinds)
    for kind, count, us in top:
        assert (count, us) == (kinds[kind][0], pytest.approx(kinds[kind][1], abs=5e-3))
    assert (found.first_ns, found.last_ns) == (first, last)
    if cube is None:
        assert math.isnan(found.best_cube[0])
    else:
        assert found.best_cube == (pytest.approx(cube[0] / 100), cube[1])


def test_a_short_row_is_told_with_its_line() -> None:
    (file,) = read_profile(REAL / GPT3 / "kernel_details.csv").files
    assert file.problems == ("line 17: 31 fields instead of 32; those that it has count",)


def test_bandwidth_columns_of_memory_l0() -> None:
    found = only(f"{GPT3}/kernel_details.csv", Operators)
    assert {key[0] for key in found.bandwidth} == {"l0a", "l0b", "l0c"}
    assert "main_mem" not in found.bandwidth  # not what was asked for


@pytest.mark.parametrize(
    ("folder", "victim"),
    [(LEVEL0, (0.066608, 0.841179)), (LEVEL1, (0.23264, 0.846838))],
)
def test_l2_rates_that_no_chip_fills_are_unknown(folder: str, victim: tuple[float, float]) -> None:
    profile = read_profile(REAL / folder)
    (rates,) = profile.of(CacheRates)
    assert (rates.rows, rates.rates) == (179, {})
    assert rates.victims["trans_TransData_1"] == pytest.approx(victim[0])
    assert max(rates.victims, key=lambda n: rates.victims[n]) == (
        "aclnnInplaceCopy_TensorMoveAiCore_TensorMove"
    )
    assert max(rates.victims.values()) == pytest.approx(victim[1])
    assert "l2_hit_rate" not in profile.figures()
    (finding,) = profile.findings()
    assert (finding.key, finding.values, finding.bad) == ("l2_not_filled", {"rows": 179}, False)


MEMORY: list[tuple[str, int, int, dict[str, tuple[int, float]], float]] = [
    (f"{LEVEL0}/memory_record.csv", 1003, 508,
     {"APP": (13, 2109.6015625), "PTA+GE": (495, 1526.75), "PTA": (381, 1452.0),
      "GE": (114, 74.75)}, 1188.1064453125),
    (f"{GPT3}/memory_record.csv", 11, 8,
     {"APP": (2, 11224.375), "PTA": (3, 8664.0), "PTA+GE": (3, 8664.0), "GE": (3, 242.0)},
     4599.86572265625),
    (f"{QWEN}/memory_record.csv", 18659, 9350,
     {"APP": (41, 11925.015625), "PTA": (9309, 10372.0), "PTA+GE": (9309, 10372.0)},
     10282.7490234375),
    (f"{LEVEL0}/npu_module_mem.csv", 1001, 13,
     {"APP": (13, 1452.0), "HCCL": (13, 404.0625), "RUNTIME": (13, 92.234375), "GE": (13, 76.0),
      "SLOG": (13, 0.0)}, math.nan),
    (f"{QWEN}/npu_module_mem.csv", 3465, 45,
     {"APP": (45, 10372.0), "HCCL": (45, 1241.69921875), "SLOG": (45, 158.65234375),
      "RUNTIME": (45, 58.24609375), "IDEDD": (45, 0.0)}, math.nan),
]  # fmt: skip


@pytest.mark.parametrize("expected", MEMORY, ids=lambda e: str(e[0]))
def test_memory(expected: Any) -> None:
    name, rows, times, pools, allocated = expected
    found = only(name, Memory)
    assert sum(pool.rows for pool in found.pools.values()) == rows
    assert found.times == times
    for component, (count, reserved) in pools.items():
        pool = found.pools[component]
        assert (pool.rows, pool.reserved / MB) == (count, reserved)
    most = max((p.allocated for p in found.pools.values() if p.allocated > 0), default=math.nan)
    assert most / MB == pytest.approx(allocated, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "rows", "largest", "kept", "allocated", "reserved"),
    [
        (LEVEL0, 184, ("aten::mm", 147456.5), 24, 1187.9814453125, 1452.0),
        (GPT3, 28, ("cann::Graph_95", 81984.0), 0, 80.125, 242.0),
        (QWEN, 3103, ("aten::embedding_dense_backward", 640564.0), 1, 10282.7490234375, 10372.0),
    ],
)  # fmt: skip
def test_blocks(
    name: str, rows: int, largest: Any, kept: int, allocated: float, reserved: float
) -> None:
    found = only(f"{name}/operator_memory.csv", Blocks)
    assert (found.rows, found.never_released) == (rows, kept)
    assert found.largest == (largest[0], largest[1] * 1024)
    assert (found.allocated / MB, found.reserved / MB) == (allocated, reserved)


@pytest.mark.parametrize(
    ("name", "step", "computing", "alone", "free", "stage", "preparing"),
    [
        (LEVEL0, "50", 8827.473, 81515.607, 25908.102, 116251.25, 19358.0),
        (LEVEL1, "50", 8873.756, 101963.203, 25744.05, 136581.0, 17902.5),
        (GPT3, "2", 75174.57464453117, 146614.02034375005, 69909.50350390615, 291698.0, None),
        (QWEN, "13", 231290.1, 420174.26, 158558.0, 810022.25, 206.25),
        (QWEN3, "13", 401131.7, 261498.44, 147520.2, 810150.25, 278.75),
    ],
)  # fmt: skip
def test_steps(
    name: str, step: str, computing: float, alone: float, free: float, stage: float, preparing: Any
) -> None:
    profile = read_profile(REAL / name)
    (steps,) = profile.of(Steps)
    (row,) = steps.rows
    assert (row.name, row.whose) == (step, "")
    told = [row.parts[p] for p in ("computing", "communication_not_overlapped", "free", "stage")]
    assert told == pytest.approx([computing, alone, free, stage])
    assert row.parts.get("preparing") == preparing
    assert profile.figures()["comm_not_overlapped_share"] == pytest.approx(alone / stage)
    assert profile.figures()["device_free_share"] == pytest.approx(free / stage)


def test_the_number_of_a_device_is_not_a_rank() -> None:
    profile = read_profile(REAL / QWEN3)
    assert (profile.rank, profile.devices) == (3, {"5"})
    assert read_profile(REAL / QWEN).rank == 0


def test_a_cluster_has_rows_of_ranks_and_stages() -> None:
    steps = only("cluster_step_trace_time_msinsight.csv", Steps)
    assert len(steps.rows) == 18
    first = steps.rows[0]
    assert (first.name, first.whose) == ("2", "rank 0")
    assert first.parts["computing"] == 75174.57464453117
    assert {row.whose.split()[0] for row in steps.rows} == {"rank", "stage"}


@pytest.mark.parametrize(
    ("name", "rows", "first", "total"),
    [
        (f"{LEVEL1}/op_statistic.csv", 33, ("ForeachAddList", "AI_VECTOR_CORE", 3, 1959.079),
         8873.751),
        (f"{QWEN}/op_statistic.csv", 35, ("FlashAttentionScoreGrad", "MIX_AIC", 28, 63128.66),
         231290.1),
        (f"{LEVEL1}/api_statistic.csv", 57,
         ("aclrtSynchronizeStreamWithTimeout", None, 7, 97887.24), None),
        (f"{QWEN}/api_statistic.csv", 91,
         ("aclrtSynchronizeDeviceWithTimeout", None, 8, 318142.95), None),
    ],
)  # fmt: skip
def test_statistics(name: str, rows: int, first: Any, total: Any) -> None:
    found = only(name, Statistics)
    assert len(found.rows) == rows
    longest = found.by_time[0]
    assert (longest.name, longest.count) == (first[0], first[2])
    assert longest.total_us == pytest.approx(first[3], abs=5e-3)
    if total is not None:
        assert longest.core == first[1]
        assert sum(row.total_us for row in found.rows) == pytest.approx(total)


@pytest.mark.parametrize(
    ("name", "count", "elapse", "longest", "wait"),
    [
        (LEVEL1, 4, 105.991878, ("hcom_allReduce__586_0_1", 79.08952021875), 5.64663284375),
        (QWEN, 15, 420.17426, ("hcom_batchSendRecv__128_4_1", 158.55328), 158.10198),
        (QWEN3, 23, 261.49844, ("hcom_allReduce__061_1_1", 120.94212), 0),
    ],
)  # fmt: skip
def test_communication(name: str, count: int, elapse: float, longest: Any, wait: float) -> None:
    profile = read_profile(REAL / name)
    transfers = profile.told.transfers
    assert len(transfers) == count
    assert sum(t.elapse_ms for t in transfers) == pytest.approx(elapse)
    most = max(transfers, key=lambda t: t.elapse_ms)
    assert (most.name.split("@")[0], most.elapse_ms) == longest
    assert most.wait_ms == wait


def test_bandwidth_of_links() -> None:
    most = max(read_profile(REAL / LEVEL1).told.transfers, key=lambda t: t.elapse_ms)
    assert most.bandwidth["HCCS"] == pytest.approx(15.7676)
    assert most.bandwidth["SDMA"] == pytest.approx(15.7676)


@pytest.mark.parametrize(
    ("name", "level", "metrics", "cann"),
    [
        (LEVEL0, "Level0", "ACL_AICORE_NONE", None),
        (LEVEL1, "Level1", "ACL_AICORE_PIPE_UTILIZATION", None),
        (GPT3, "Level1", "ACL_AICORE_L0B_AND_WIDTH", None),
        (QWEN, "Level2", "ACL_AICORE_PIPE_UTILIZATION", "8.3.RC1"),
    ],
)  # fmt: skip
def test_what_was_asked_of_the_profiler(name: str, level: str, metrics: str, cann: Any) -> None:
    told = read_profile(REAL / name).told
    assert told.settings["level"] == level
    assert told.settings["aic_metrics"] == metrics
    assert told.versions.get("cann") == cann
    assert told.rank == 0
    kinds = {f.path.name: f.kind for f in read_profile(REAL / name).files}
    assert kinds["profiler_info_0.json"] == "profiler_info"
    assert kinds.get("communication_matrix.json", "communication_matrix") == "communication_matrix"


@pytest.mark.parametrize(
    ("name", "events"),
    [("mstt_trace_view.json", 2212), ("ms_PROF_timeline_msprof_0_2_1.json", 1049)],
)
def test_timelines_are_counted(name: str, events: int) -> None:
    profile = read_profile(REAL / name)
    assert profile.told.events == events


def test_msprof_op_weights_cores_by_their_accesses() -> None:
    found = only("L2Cache_neopan_minimal.csv", Cores)
    assert (found.hits["aic"], found.lookups["aic"]) == (18, 25)
    assert (found.hits["aiv"], found.lookups["aiv"]) == (84, 122)
    assert found.read_hits["aic"] / found.reads["aic"] == pytest.approx(0.695652, abs=1e-6)
    assert found.read_hits["aiv"] / found.reads["aiv"] == pytest.approx(0.784314, abs=1e-6)
    assert found.rate == (18 + 84) / (25 + 122)


def test_msprof_op_adds_up_the_bandwidth_of_cores() -> None:
    found = only("Memory_neopan_shape256.csv", Cores)
    assert found.rows == 6
    assert found.bandwidth["aiv", "main_mem", "read"] / 1e9 == pytest.approx(54.111, abs=1e-3)
    assert found.bandwidth["aiv", "main_mem", "write"] / 1e9 == pytest.approx(26.589, abs=1e-3)
    assert found.bandwidth["aic", "main_mem", "read"] / 1e9 == pytest.approx(2 * 0.272108)


def test_the_old_profiler_of_mindspore() -> None:
    steps = only("ms_step_trace_raw_1_detail_time.csv", OldSteps)
    assert len(steps.total_us) == 322  # and the average
    assert steps.total_us[0] == pytest.approx(284_271.18)
    assert steps.average_us == pytest.approx(205_380.93)
    detail = only("ms_aicore_intermediate_1_detail.csv", Statistics)
    assert len(detail.rows) == 69
    assert (detail.rows[0].name, detail.rows[0].count) == ("Default/GetNext-op6", 3)
    assert detail.rows[0].total_us == pytest.approx(0.05)
    kinds = only("ms_aicore_intermediate_1_type.csv", Statistics)
    assert (len(kinds.rows), kinds.rows[0].name) == (24, "GetNext")
    assert kinds.rows[0].total_us == pytest.approx(0.15)
    flops = only("ms_flops_0.txt", Plain)
    assert (flops.rows, flops.first["FLOPS utilization"]) == (4, "33")
    queue = only("ms_minddata_pipeline_raw_0.csv", Plain)
    assert (queue.rows, queue.first["op_type"], queue.first["output_queue_size"]) == (
        4,
        "Batch",
        "",
    )
    cluster = only("ms_cluster_analyse_pipeline_parallel_2_4_0.csv", Plain)
    assert (cluster.rows, cluster.first["stage_time"]) == (6, "121.8989")


def test_quoted_newlines_are_no_rows() -> None:
    found = only(f"{LEVEL0}/operator_details.csv", Plain)
    assert found.rows == 859


def test_an_empty_file_is_said() -> None:
    profile = read_profile(REAL / "empty_op_summary_20230919172305.csv")
    (file,) = profile.files
    assert file.kind == ""
    assert "empty file" in file.problems[0]


def test_every_file_is_read_or_told() -> None:
    paths = [path for path in REAL.rglob("*") if path.is_file()]
    assert len(paths) == 52
    for path in paths:
        profile: Profile = read_profile(path)
        (file,) = profile.files
        assert file.kind or "empty file" in file.problems[0], path


def test_lone_problems_are_errors_of_the_package() -> None:
    from mindpulse.ascend.csv_file import CsvFile

    with pytest.raises(FormatError, match="empty file"):
        CsvFile(REAL / "empty_op_summary_20230919172305.csv")
