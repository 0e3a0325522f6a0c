"""The doctor's look at memory: each cause is written down as software writes it, and found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindpulse.doctor.memory import check_memory
from mindpulse.doctor.memory_settings import KEYS, cure_of, read_conf
from mindpulse.doctor.result import Result, in_order
from mindpulse.doctor.sizes import human, share
from mindpulse.errors import UsageError
from mindpulse.messages import CATALOGUE
from mindpulse.messages.doctor_memory_texts import DOCTOR_MEMORY_TEXTS
from mindpulse.series import Rows, SeriesSpec
from run_files import part_path, write_part
from test_ascend_memory_block import NEVER, row, written
from test_ascend_memory_log import ALL_POOLS, COMMON, CUDA, DRIVER, DRYRUN, GE, NPU, OLD, STATISTIC

GIB = float(1 << 30)


def findings(results: list[Result]) -> dict[str, Result]:
    """By finding; both languages can say each, and quote no `?` where a value is known."""
    for result in results:
        for lang in ("en", "zh"):
            assert result.evidence(lang)
            assert bool(result.cure(lang)) == (result.status != "ok")
        assert f"doctor.check.{result.check}" in CATALOGUE
    return {result.finding: result for result in results}


def look(path: Path, text: str, **environ: str) -> dict[str, Result]:
    path.write_text(text)
    return findings(check_memory([path], environ))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker_0.log"


@pytest.mark.parametrize(
    ("text", "finding", "quoted"),
    [
        (CUDA, "memory_fragmented", "2 GiB was refused although 2.5 GiB of the pool lay idle"),
        (NPU.format("53.00"), "memory_fragmented_device", "3.5 GiB was refused although 4.5 GiB"),
        (NPU.format("50.25"), "memory_full", "3.5 GiB was asked for and 1.75 GiB was left"),
        (STATISTIC, "memory_full", "1.01 GiB was asked for and 584 MiB was left"),
        (OLD.replace("malloc[600]", "malloc[2000]"), "memory_too_large", "1.95 KiB was asked"),
        (STATISTIC.replace("30684M", "1024M"), "memory_limit", "may use 1 GiB of the device's 32"),
        (DRIVER, "memory_occupied", "device 6 refused 30 GiB"),
        (GE, "memory_refused", "3 GiB, 1.5 GiB was refused on device 0"),
    ],
)
def test_why_memory_was_refused(log: Path, text: str, finding: str, quoted: str) -> None:
    result = look(log, text)[finding]
    assert (result.check, result.status) == ("memory.refused", "problem")
    assert quoted in result.evidence()


def test_the_cure_is_the_setting_of_the_allocator_that_failed(log: Path) -> None:
    found = look(log, CUDA, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")["memory_fragmented"]
    wanted = "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,expandable_segments:True"
    assert wanted in found.cure()
    assert "PYTORCH_NPU_ALLOC_CONF" in look(log, NPU.format("57"))["memory_fragmented"].cure("zh")
    assert cure_of("mindspore-2", {}) == "MS_ALLOC_CONF=enable_vmm:true"
    on = {"MS_ALLOC_CONF": "enable_vmm:True,vmm_align_size:20MB"}
    assert cure_of("mindspore-2", on) == (
        "MS_ALLOC_CONF=enable_vmm:true,vmm_align_size:20MB,defrag_memory_step_freq:20"
    )


def test_a_refusal_that_comes_again_is_counted(log: Path) -> None:
    text = ("\n" * 100).join([CUDA] * 3)
    result = look(log, text)["memory_fragmented"]
    assert (result.values["count"], result.values["line"]) == (3, 201)


def test_the_state_of_the_pool(log: Path) -> None:
    assert look(log, COMMON)["memory_pool_fine"].status == "ok"
    pieces = COMMON.replace("idle size:900M", "idle size:500M")
    for index in range(3, 8):
        pieces += f", block[{index}] stream id:0 block size:1024M idle size:500M actual size: 9M."
    result = look(log, pieces)["memory_pool_fragmented"]
    assert result.values["share"] == share(1 - 600 / 4100)
    assert look(log, ALL_POOLS)["memory_peaks_fragmented"].values["share"] == "20 %"
    assert look(log, DRYRUN)["memory_peaks_fine"].status == "ok"


def test_a_log_that_says_nothing(log: Path) -> None:
    result = look(log, "epoch: 1 step: 1, loss is 2.0\n")["memory_nothing"]
    assert result.status == "unknown"
    assert "memory_statistics:True" in result.cure()


def blocks(pages: int = 40) -> list[str]:
    """Every second block comes back and leaves a hole of its size."""
    return [
        row(n + 1, 1000 + n if n % 2 else NEVER, n * 4096, 4096, f"op{n % 2}", kept=1 - n % 2)
        for n in range(pages)
    ]


def test_holes_between_blocks(tmp_path: Path) -> None:
    path = written(tmp_path / "memory_block.csv", blocks())
    found = findings(check_memory([path], {}))
    result = found["memory_blocks_fragmented"]
    assert result.values["pieces"] == 20
    assert result.values["share"] == share(1 - 1 / 20)
    assert "op0 80 KiB, op1 80 KiB" in found["memory_blocks_peak"].evidence()
    assert "memory_blocks_left" not in found


def test_blocks_that_never_came_back(tmp_path: Path) -> None:
    rows = [row(1, NEVER, 0, 4096, "kept by a list"), row(2, 3, 8192, 4096, "other")]
    found = findings(check_memory([written(tmp_path / "memory_block.csv", rows)], {}))
    assert "kept by a list 4 KiB" in found["memory_blocks_left"].evidence()


def test_a_tracker_file_of_the_cpu_and_one_with_bad_rows(tmp_path: Path) -> None:
    empty = written(tmp_path / "memory_block.csv", [])
    assert findings(check_memory([empty], {}))["memory_blocks_empty"].status == "unknown"
    bad = written(tmp_path / "other.csv", [row(1, 2, 0, 512), "nonsense"])
    assert findings(check_memory([bad], {}))["memory_blocks_rows"].values["rows"] == 1


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "msrun" / "deep").mkdir(parents=True)
    (tmp_path / "msrun" / "worker_0.log").write_text("step 1\n")
    (tmp_path / "msrun" / "worker_1.log").write_text(CUDA)
    written(tmp_path / "msrun" / "deep" / "memory_block.csv", blocks())
    (tmp_path / "msrun" / "weights.ckpt").write_text(NPU.format("57"))
    found = findings(check_memory([tmp_path / "msrun"], {}))
    assert {"memory_fragmented", "memory_blocks_fragmented"} <= set(found)
    assert "memory_nothing" not in found
    assert str(found["memory_fragmented"].values["path"]).endswith("worker_1.log")
    (tmp_path / "empty").mkdir()
    assert "memory_nothing" in findings(check_memory([tmp_path / "empty"], {}))


def test_ranks_that_fail_alike_are_not_all_told(tmp_path: Path) -> None:
    for rank in range(8):
        (tmp_path / f"worker_{rank}.log").write_text(CUDA)
    (tmp_path / "worker_8.log").write_text(DRIVER)
    told = [result.finding for result in check_memory([tmp_path], {})]
    assert told.count("memory_fragmented") == 3
    assert told.count("memory_occupied") == 1


def test_what_cannot_be_read(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        check_memory([tmp_path / "missing"], {})
    log.write_text("x")

    def refused(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    found = findings(check_memory([log], {}))
    assert "Permission denied" in found["memory_unreadable"].evidence()


def run_of(folder: Path, **series: list[float]) -> Path:
    run = folder / "run"
    for tag, values in series.items():
        spec = SeriesSpec(f"memory_{tag}")
        steps = np.arange(1, len(values) + 1)
        rows = Rows(steps, np.full(len(values), 1.7e9), np.array(values)[:, None])
        write_part(part_path(run, spec), spec, rows)
    return run


def test_a_run_that_is_well(tmp_path: Path) -> None:
    run = run_of(tmp_path, allocated=[GIB, 2 * GIB], total=[64 * GIB] * 2, fragmentation=[0.1, 0.2])
    assert (
        "at most 2 GiB allocated" in findings(check_memory([run], {}))["memory_run_fine"].evidence()
    )


def test_a_run_in_pieces_and_one_that_is_full(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        allocated=[GIB, 63 * GIB, GIB],
        total=[64 * GIB] * 3,
        reserved=[10 * GIB] * 3,
        free=[4 * GIB, GIB / 2, 4 * GIB],
        fragmentation=[0.8, 0.99, float("nan")],
    )
    found = findings(check_memory([run], {}))
    pieces = found["memory_run_fragmented"]  # not step 2: hardly anything was free then
    assert (pieces.values["step"], pieces.values["share"]) == (1, "80 %")
    assert found["memory_run_full"].values["step"] == 2


def test_a_run_without_memory(tmp_path: Path) -> None:
    run = run_of(tmp_path, allocated=[1.0])
    (run / "attempt-0001" / "rank-0000" / "memory_allocated.ms").rename(
        run / "attempt-0001" / "rank-0000" / "memory_allocated.txt"
    )
    assert findings(check_memory([run], {}))["memory_run_none"].status == "unknown"


@pytest.mark.parametrize(
    ("environ", "finding"),
    [
        ({"MS_ALLOC_CONF": "enable_vvm:true"}, "memory_setting_key"),
        ({"MS_ALLOC_CONF": "enable_vmm"}, "memory_setting_value"),
        ({"MS_ALLOC_CONF": "enable_vmm:False"}, "memory_vmm_off"),
        ({"MS_ALLOC_CONF": "memory_tracker:True"}, "memory_tracker_on"),
        ({"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:False"}, "memory_expandable_off"),
        ({"MS_ALLOC_CONF": "enable_vmm:true"}, "memory_settings_fine"),
        ({}, "memory_settings_fine"),
    ],
)
def test_the_settings_of_the_allocator(environ: dict[str, str], finding: str) -> None:
    assert list(findings(check_memory([], environ))) == [finding]


def test_a_key_that_is_misspelled_is_named_with_the_right_one() -> None:
    (result,) = check_memory([], {"MS_ALLOC_CONF": "enable_vvm:true"})
    assert "enable_vvm; did you mean 'enable_vmm'?" in result.evidence()
    assert set(read_conf(",".join(f"{key}:1" for key in KEYS))) == set(KEYS)


def test_what_is_off_matters_more_where_memory_lay_in_pieces(log: Path) -> None:
    off = {"MS_ALLOC_CONF": "enable_vmm:false"}
    alone = findings(check_memory([], off))["memory_vmm_off"].weight
    found = look(log, COMMON + "\n" + CUDA, **off)
    assert found["memory_vmm_off"].weight > alone
    assert in_order(list(found.values()))[0].finding == "memory_fragmented"


def test_every_text_is_used() -> None:
    source = "".join(
        path.read_text() for path in (Path(__file__).parent.parent / "src").rglob("memory*.py")
    )
    for key in DOCTOR_MEMORY_TEXTS:
        name = key.removeprefix("check.").split(".")[0] if not key.startswith("check.") else ""
        stem = name.removesuffix("_fine").removesuffix("_fragmented")
        assert f'"{name}"' in source or f'"{stem}"' in source, key


def test_sizes() -> None:
    assert [human(value) for value in (0, 1023, 1024, 1000 * 1024, 3725884129, None)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1000 KiB",
        "3.47 GiB",
        "?",
    ]
    assert human(5 * GIB * 1024**2) == "5120 TiB"
    assert share(None) == "?"
