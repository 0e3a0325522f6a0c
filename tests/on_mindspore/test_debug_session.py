"""A real debugger in a real training: breakpoints, watch expressions, the variables pane, snap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dap_client import DebugClient, free_port
from mindpulse.cli import main

HERE = Path(__file__).parent
TRAINING = """
import json
import sys

import mindspore as ms

ms.set_context(mode=ms.GRAPH_MODE)
sys.path[:0] = [{here!r}]
import mindpulse
from mindpulse.mindspore import attach
from nets import Encoder, batches
from mindspore import nn


class Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(layers=1)

    def construct(self, ids, labels):
        loss = self.encoder(ids, labels)
        return loss  # inside


def train():
    ms.set_seed(7)
    net = Model()
    cell = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-2))
    cell.set_train()
    monitor = attach(net, cell.optimizer, summary_dir="summary", train_cell=cell)
    table = net.encoder.embedding.embedding_table
    for step, batch in enumerate(batches(9), start=1):
        loss = cell(*batch)
        monitor.step()  # between
    print(json.dumps({{"loss": float(loss.asnumpy()), "mode": ms.get_context("mode")}}))
    monitor.close()


train()
"""


def line_of(script: Path, mark: str) -> int:
    return next(
        number for number, line in enumerate(script.read_text().splitlines(), 1) if mark in line
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a training and what `mindpulse vscode` makes of it."""
    (tmp_path / "train.py").write_text(TRAINING.format(here=str(HERE)))
    assert CliRunner().invoke(main, ["vscode", str(tmp_path)]).exit_code == 0
    return tmp_path


def configuration(project: Path, name: str) -> dict[str, Any]:
    """One of the launch configurations, with the folder filled in."""
    text = (project / ".vscode" / "launch.json").read_text()
    text = text.replace("${workspaceFolder}", str(project))
    return next(c for c in json.loads(text)["configurations"] if name in c["name"])


class Debugged:
    """A training that waits for its debugger, as a launch configuration starts it."""

    def __init__(self, project: Path, name: str) -> None:
        wanted, self.port = configuration(project, name), free_port()
        module = ["-m", wanted["module"], *wanted["args"]] if "module" in wanted else []
        command = [
            sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", "--listen",
            f"127.0.0.1:{self.port}", "--wait-for-client", *(module or [wanted["program"]]),
        ]  # fmt: skip
        # Into files: the debugger's adapter, a process of its own, would keep a pipe open.
        self._out, self._errors = project / "out.txt", project / "errors.txt"
        with self._out.open("w") as out, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command, cwd=wanted["cwd"], stdout=out, stderr=errors, start_new_session=True,
                env={**os.environ, "GLOG_v": "3"},
            )  # fmt: skip

    def ends(self) -> dict[str, Any]:
        """What the training printed last."""
        assert self._process.wait(60) == 0, self._errors.read_text()
        printed: dict[str, Any] = json.loads(self._out.read_text().splitlines()[-1])
        return printed

    def end(self) -> None:
        """Ends it, and the adapter with it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def debugged(project: Path, name: str) -> Iterator[tuple[Debugged, DebugClient]]:
    training = Debugged(project, name)
    try:
        with closing(DebugClient(training.port)) as client:
            yield training, client
    finally:
        training.end()


def test_a_conditional_breakpoint_watch_expressions_and_a_snap(project: Path) -> None:
    script = project / "train.py"
    with debugged(project, "MindPulse: train") as (training, client):
        stop = {"line": line_of(script, "# between"), "condition": "step == 7"}
        client.attach({script: [stop]}, justMyCode=False)
        stopped = client.event("stopped")
        assert stopped["reason"] == "breakpoint"
        frame = client.top_frame(stopped)
        assert (frame["name"], frame["line"]) == ("train", stop["line"])
        seen = client.locals(frame)
        assert seen["step"]["value"] == "7"
        # The variables pane: our text, and below it the numbers.
        assert "Float32 (50, 16) mean=" in seen["table"]["value"]
        children = client.variables(seen["table"]["variablesReference"])
        assert {"shape", "dtype", "mean", "max", "nonfinite", "array"} <= set(children)
        assert children["shape"]["value"] == "(50, 16)"
        watched = client.evaluate(frame, "mindpulse.peek(table)", "watch")
        assert "quantiles" in watched
        assert "(50, 16) on CPU" in watched
        mean = float(client.evaluate(frame, "float(table.asnumpy().mean())", "watch"))
        assert float(children["mean"]["value"]) == pytest.approx(mean, rel=1e-4)
        total = float(client.evaluate(frame, "float(table.asnumpy().sum())", "repl"))
        path = client.evaluate(frame, "str(mindpulse.snap('table', table))", "repl").strip("'")
        # At once, while the training stands: another process sees it.
        shown = CliRunner().invoke(main, ["analyze", str(project / "summary"), "--json"])
        (listed,) = json.loads(shown.output)["snaps"]
        assert (listed["name"], listed["step"], listed["shape"]) == ("table", 7, [50, 16])
        assert Path(listed["file"]).resolve() == (project / path).resolve()
        with np.load(listed["file"], allow_pickle=False) as content:
            assert float(content["tensor"].sum()) == pytest.approx(total, rel=1e-5)
        client.request("continue", threadId=stopped["threadId"])
        client.event("terminated", "exited")
        assert training.ends()["mode"] == 0


def test_a_breakpoint_in_construct_stops_in_pynative_mode_only(project: Path) -> None:
    script = project / "train.py"
    inside = {"line": line_of(script, "# inside")}
    after = {"line": line_of(script, "# between"), "condition": "step == 2"}
    with debugged(project, "MindPulse: train") as (_, client):
        client.attach({script: [inside, after]}, justMyCode=False)
        stopped = client.event("stopped")
        assert client.top_frame(stopped)["name"] == "train"  # the graph came by without a stop
    with debugged(project, "PyNative") as (training, client):
        client.attach({script: [inside | {"condition": "True"}, after]}, justMyCode=False)
        stopped = client.event("stopped")
        frame = client.top_frame(stopped)
        assert frame["name"] == "construct"
        assert "Float32 () mean=" in client.locals(frame)["loss"]["value"]
        for path in ([inside], []):  # no more stops
            client.request("setBreakpoints", source={"path": str(script)}, breakpoints=path)
        client.request("continue", threadId=stopped["threadId"])
        client.event("terminated", "exited")
        assert training.ends()["mode"] == 1
