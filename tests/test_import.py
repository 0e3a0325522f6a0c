"""`mindpulse import`: a run folder that reads back as the source did, and never a lost one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from interop_samples import SAMPLES
from mindpulse.cli import main
from mindpulse.cli.import_folder import write_run
from mindpulse.errors import StoreError
from mindpulse.interop import open_run
from mindpulse.interop.collect import Collector
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.run import Run

REAL = Path(__file__).parent.parent.parent / "shared" / "real"


def mindpulse(*call: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in call])


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def assert_alike(source: Run, target: Run) -> None:
    """The same series of the same ranks and attempts, bit for bit."""
    assert target.attempts == source.attempts
    assert target.ranks == source.ranks
    assert target.specs() == source.specs()
    for tag in source.specs():
        for rank in source.ranks:
            for attempt in (*source.attempts, None, "all"):
                try:
                    want = source.series(tag, rank, attempt)  # type: ignore[arg-type]
                except ValueError:
                    continue
                got = target.series(tag, rank, attempt)  # type: ignore[arg-type]
                np.testing.assert_array_equal(got.steps, want.steps, err_msg=f"{tag} {attempt}")
                assert got.wall_times.tobytes() == want.wall_times.tobytes(), tag
                assert got.values.tobytes() == want.values.tobytes(), tag


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_every_kind_reads_back_as_it_was(tmp_path: Path, kind: str) -> None:
    name, data = SAMPLES[kind]
    path = tmp_path / name
    path.write_bytes(data)
    told = document(mindpulse("import", path, "--output-dir", tmp_path / "run", "--json"))
    assert told["kind"] == kind
    run = open_run(tmp_path / "run")
    assert isinstance(run, FolderRun)
    assert_alike(open_run(path), run)
    assert all(report.valid for report in run.files())
    assert told["rows"] == sum(report.rows for report in run.files())


def test_restarts_ranks_and_odd_values(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "log")
    rng = np.random.default_rng(5)
    for begin in (0, 40, 20):
        for step in range(begin, 60):
            for rank in (0, 3):
                value = float(rng.normal() * 10.0 ** int(rng.integers(-300, 300)))
                odd = {1: np.nan, 2: -np.inf, 3: 5e-324}.get(step % 10, value)
                collector.add(step, {"a": odd, "b": value}, 1.7e9 + step, rank)
        collector.add(59, {"only sometimes": 1.0}, leads=False)
    source = collector.finish()
    assert source.attempts == [1, 2, 3]
    rows = write_run(source, tmp_path / "run", source.tags, lambda _: None)
    assert rows == 2 * 2 * (60 + 20 + 40) + 3
    assert_alike(source, open_run(tmp_path / "run"))


@pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/real")
@pytest.mark.parametrize(
    "name",
    [
        "ms_logs/mindformers_v0.1.2_gpt_stacking_train.log",
        "megatron_logs/megatron_gpt2_n4_tp4_pp4_skipped.out",
        "hf_trainer/trainer_state_wikipediallm_43800.json",
        "other_logs/spam_llama60m_diverged.log",
        "tfevents/wikipediallm_Dec03_16-43-46",
        "tfevents/roberta_lora_agnews_run4",
    ],
)
def test_real_files(tmp_path: Path, name: str) -> None:
    document(mindpulse("import", REAL / name, "--output-dir", tmp_path / "run", "--json"))
    assert_alike(open_run(REAL / name), open_run(tmp_path / "run"))


def test_source_and_names_stand_in_the_run(tmp_path: Path) -> None:
    name, data = SAMPLES["megatron-log"]
    path = tmp_path / name
    path.write_bytes(data)
    done = mindpulse("import", path, "--output-dir", tmp_path / "run")
    assert done.exit_code == 0
    assert "a Megatron log (by the step that line 1 prints)" in done.stdout
    tags = open_run(tmp_path / "run").tags
    assert tags["source_path"] == str(path)
    assert tags["source_bytes"] == str(len(data))
    assert tags["source_sha256"] == hashlib.sha256(data).hexdigest()
    assert tags["alias.train_loss"] == "lm loss"


def test_the_sum_of_several_files_is_that_of_sha256sum(tmp_path: Path) -> None:
    lines = ""
    for tag in ("a", "b"):
        data = f"step,wall_time,value\n1,1.0,{ord(tag)}\n".encode()
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{tag}.csv").write_bytes(data)
        lines += f"{hashlib.sha256(data).hexdigest()}  {tag}.csv\n"
    mindpulse("import", tmp_path / "in", "--output-dir", tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert run.tags["source_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert run.tags["source_files"] == "2"
    assert set(run.specs()) == {"a", "b"}


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(SAMPLES["csv"][1])
    target = tmp_path / "run"
    assert mindpulse("import", path, "--output-dir", target).exit_code == 0
    before = {p: p.read_bytes() for p in target.rglob("*") if p.is_file()}
    done = mindpulse("import", path, "--output-dir", target)
    assert done.exit_code == 2
    assert "exists already and is left as it is" in done.stderr
    assert {p: p.read_bytes() for p in target.rglob("*") if p.is_file()} == before


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("metrics.csv").write_bytes(SAMPLES["csv"][1])
    told = document(mindpulse("import", "metrics.csv", "--dry-run", "--json"))
    assert (told["kind"], told["why"]) == ("csv", "by its first lines")
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.csv"]


def test_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("metrics.csv").write_bytes(SAMPLES["csv"][1])
    assert mindpulse("import", "metrics.csv").exit_code == 0
    assert open_run("imported/metrics.csv").series("train_loss").values.tolist() == [2.5, 2.25]


def test_a_run_of_ours_is_no_source(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(SAMPLES["csv"][1])
    mindpulse("import", path, "--output-dir", tmp_path / "run")
    done = mindpulse("import", tmp_path / "run", "--output-dir", tmp_path / "again")
    assert done.exit_code == 2
    assert "is a MindPulse run already" in done.stderr


def test_an_import_that_fails_leaves_nothing(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "log")
    collector.add(1, {"a": 1.0})

    def full(rows: int) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        write_run(collector.finish(), tmp_path / "out" / "run", {}, full)
    assert list((tmp_path / "out").iterdir()) == []


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n1,2.5\n2,oops\n")
    done = mindpulse("import", path, "--output-dir", tmp_path / "run")
    assert done.exit_code == 0
    assert "1 cells that are no numbers left out, the first: 'oops in line 3" in done.stderr
    assert "has no time stamps" in done.stderr
