"""Power loss: what was synced is there, what is read is right, at most a second is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.writer import RankWriter
from power_training import calls_of_a_training, check, lost_run, one_row
from series_samples import LOSS

pytestmark = pytest.mark.slow

SEEDS = 200


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> int:
    return calls_of_a_training(tmp_path_factory.mktemp("calls"))


@pytest.mark.parametrize("block", range(10))
def test_power_loss_costs_a_second_at_most(tmp_path: Path, calls: int, block: int) -> None:
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        training, run_dir = lost_run(folder, seed, calls)
        check(run_dir, training.safe(), seed)


def test_the_next_attempt_goes_on_where_the_power_was_lost(tmp_path: Path, calls: int) -> None:
    for seed in range(0, SEEDS, 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _, run_dir = lost_run(folder, seed, calls)
        before = open_folder(run_dir).files() if run_dir.is_dir() else []
        rank = create_attempt(run_dir)
        writer = RankWriter(rank, 0, 2)
        writer.append(LOSS, one_row(LOSS, 1000))
        writer.close()
        run = open_folder(run_dir)
        assert len(run.id) == 32
        assert run.series("train_loss").steps[-1] == 1000
        kept = {report.path: report for report in run.files()}
        assert all(kept[report.path] == report for report in before)


def test_an_empty_description_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b"")
    create_attempt(tmp_path)
    assert json.loads((tmp_path / "run.json").read_bytes())["id"]
    (tmp_path / "run.json").write_bytes(b"{ somebody's own")
    create_attempt(tmp_path)
    assert (tmp_path / "run.json").read_bytes() == b"{ somebody's own"
