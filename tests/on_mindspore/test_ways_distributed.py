"""Two processes in data parallel, each writing its own rank."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from distributed_worker import STEPS
from mindpulse import open_run
from nets import batches
from ways import builder, expected

TESTS = Path(__file__).parent


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_each_rank_writes_its_own_files(mode: str, tmp_path: Path) -> None:
    train_with_msrun(mode, tmp_path)
    ranks = [dict(np.load(tmp_path / f"rank{rank}.npz")) for rank in range(2)]
    for kept in ranks:
        assert str(kept["problem"]) == ""
        for name in kept:
            if name.startswith("plain/"):
                watched = kept[name.replace("plain/", "watched/")]
                assert kept[name].tobytes() == watched.tobytes(), name
            if name.startswith("plain/weights/"):
                assert ranks[0][name].tobytes() == ranks[1][name].tobytes(), name
    run = open_run(tmp_path / "run")
    assert run.ranks == [0, 1]
    losses = [run.series("train_loss", rank=rank) for rank in range(2)]
    norms = [run.series("grad_norm", rank=rank) for rank in range(2)]
    for rank in range(2):
        assert (
            losses[rank].steps.tolist() == norms[rank].steps.tolist() == list(range(1, STEPS + 1))
        )
        np.testing.assert_allclose(losses[rank].values, ranks[rank]["plain/losses"], rtol=1e-6)
    assert not np.isclose(losses[0].values, losses[1].values).any()
    np.testing.assert_array_equal(norms[0].values, norms[1].values)
    # The mean gradient of both ranks is that of one process that accumulates both batches.
    pairs = zip(batches(STEPS, seed=0), batches(STEPS, seed=1), strict=True)
    flat = [batch for pair in pairs for batch in pair]
    wanted = np.square(expected(builder("pynative"), flat, micro=2).norms).sum(1)
    np.testing.assert_allclose(norms[0].values, np.sqrt(wanted), rtol=2e-3)


def train_with_msrun(mode: str, folder: Path) -> None:
    paths = [str(TESTS), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    scripts = os.path.dirname(sys.executable)  # not resolved: a virtual environment's own
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
    }
    command = ["--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}",
               f"--log_dir={folder / 'logs'}", "--join=True"]  # fmt: skip
    worker = [str(TESTS / "distributed_worker.py"), str(folder), mode]
    result = subprocess.run(
        [os.path.join(scripts, "msrun"), *command, *worker],
        capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=300,
    )  # fmt: skip
    told = "\n".join(log.read_text()[-2000:] for log in folder.glob("logs/worker_*.log"))
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:] + told
    assert len(list(folder.glob("rank*.npz"))) == 2, told


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
