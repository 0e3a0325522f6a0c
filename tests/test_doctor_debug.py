"""A breakpoint does not stop: scripts with one cause each, and what must not be told."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from doctoring import findings, problems
from mindpulse.cli import main
from mindpulse.cli.editor.entries import MATCHER
from mindpulse.doctor.debug import check_debug
from mindpulse.doctor.debug_python import check_environment, check_launch, check_process
from mindpulse.doctor.debug_reading import GRAPH, PYNATIVE, UNKNOWN
from mindpulse.doctor.debug_source import read_script
from mindpulse.doctor.result import Result
from mindpulse.errors import UsageError

HEAD = "import mindspore as ms\nfrom mindspore import nn, ops\n"  # two lines
NET = HEAD + "class Net(nn.Cell):\n    def construct(self, x):\n        {}\n        return x\n"
GRAPH_MODE = "ms.set_context(mode=ms.GRAPH_MODE)\n"


@pytest.fixture
def look(tmp_path: Path):  # type: ignore[no-untyped-def]
    def looked(*texts: str, **environ: str) -> dict[str, Result]:
        scripts = []
        for number, text in enumerate(texts):
            scripts.append(tmp_path / f"script{number}.py")
            scripts[-1].write_text(text)
        return findings(check_debug(scripts, environ))

    return looked


@pytest.mark.parametrize(
    ("stop", "finding"),
    [
        ("breakpoint()", "debug_breakpoint_in_graph"),
        ("import pdb; pdb.set_trace()", "debug_stop_in_graph"),
        ("from pdb import set_trace as here; here()", "debug_stop_in_graph"),
        ("import mindpulse as mp; mp.peek(x)", "debug_look_in_graph"),
        ("from mindpulse import snap; snap('x', x)", "debug_look_in_graph"),
    ],
)
def test_a_stop_in_construct(look, stop: str, finding: str) -> None:  # type: ignore[no-untyped-def]
    text = NET.format(stop)
    result = look(text + GRAPH_MODE)[finding]
    assert ":5: " in result.evidence()
    assert "Net.construct" in result.evidence()
    assert result.command.startswith("python -m mindpulse.mindspore.pynative ")
    eager = look(text + "ms.set_context(mode=ms.PYNATIVE_MODE)\n")
    assert "debug_no_graph" in eager  # where it does stop, nothing is told
    assert finding not in eager
    assert finding not in look(text)  # PyNative is where MindSpore begins


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ("ms.set_context(mode=ms.GRAPH_MODE)", GRAPH),
        ("ms.set_context(mode=0)", GRAPH),
        ("ms.context.set_context(mode=ms.context.GRAPH_MODE, device_target='CPU')", GRAPH),
        ("from mindspore import context as c; c.set_context(mode=c.GRAPH_MODE)", GRAPH),
        ("ms.set_context(mode=1)", PYNATIVE),
        ("ms.set_context(device_target='CPU')", PYNATIVE),
        ("ms.set_context(mode=args.mode)", UNKNOWN),
        ("ms.set_context(mode=args.mode); ms.set_context(mode=0)", GRAPH),
    ],
)
def test_which_mode_a_script_sets(tmp_path: Path, line: str, mode: str) -> None:
    script = tmp_path / "s.py"
    script.write_text(HEAD + line + "\n")
    assert read_script(script).mode == mode


def test_breakpoints_of_the_editor(look) -> None:  # type: ignore[no-untyped-def]
    """They are not in the script, so graph mode by itself is the finding."""
    result = look(NET.format("pass") + GRAPH_MODE)["debug_graph_mode"]
    assert "Net.construct (4)" in result.evidence()
    assert "debug_graph_mode_only" in look(HEAD + GRAPH_MODE)
    assert look(HEAD + "ms.set_context(mode=args.mode)\n")["debug_mode_unknown"].status == "unknown"


def test_the_mode_is_set_in_another_script(look) -> None:  # type: ignore[no-untyped-def]
    found = look(HEAD + GRAPH_MODE, NET.format("breakpoint()"))
    assert "script1.py:5: " in found["debug_breakpoint_in_graph"].evidence()


@pytest.mark.parametrize(
    "jitted",
    [
        "@ms.jit\ndef step(x):\n    {}\n",
        "@ms.jit(jit_level='O0')\ndef step(x):\n    {}\n",
        "from mindspore import jit\n@jit\ndef step(x):\n    {}\n",
        "def step(x):\n    {}\nstep = ms.jit(step)\n",
        "def step(x):\n    {}\nstep = monitor.jit(step)\n",
        "@ms.jit\ndef step(x):\n    return helper(x)\ndef helper(x):\n    {}\n",
        "class N(nn.Cell):\n    @ms.jit\n    def construct(self, x):\n        self.f(x)\n"
        "    def f(self, x):\n        {}\n",
    ],
)
def test_a_stop_under_jit(look, jitted: str) -> None:  # type: ignore[no-untyped-def]
    found = look(HEAD + jitted.format("breakpoint()"))
    assert {"debug_breakpoint_in_graph", "debug_jit"} <= set(found)
    assert "debug_breakpoint_in_graph" not in look(HEAD + jitted.format("pass"))


def test_a_function_that_is_differentiated_is_a_graph_in_graph_mode(look) -> None:  # type: ignore[no-untyped-def]
    text = "def loss(x):\n    breakpoint()\ngrad = ms.value_and_grad(loss)\n"
    assert "debug_breakpoint_in_graph" in look(HEAD + GRAPH_MODE + text)
    assert "debug_breakpoint_in_graph" not in look(HEAD + text)


def test_another_jit_is_none_of_ours(look) -> None:  # type: ignore[no-untyped-def]
    found = look("import numba\n@numba.jit\ndef f(x):\n    breakpoint()\n")
    assert "debug_no_graph" in found


HOOKS = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([nn.ReLU()])
        self.head = nn.Dense(2, 2)
net = Net()
"""


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("net.layers[0].register_forward_hook(hook)", "debug_hook_on_element"),
        ("for cell in net.layers: cell.register_backward_hook(hook)", "debug_hook_on_element"),
        ("for i, c in enumerate(net.layers): c.register_forward_hook(h)", "debug_hook_on_element"),
        ("net.head.register_forward_hook(hook)", "debug_hook_in_graph"),
    ],
)
def test_hooks_in_a_graph(look, line: str, finding: str) -> None:  # type: ignore[no-untyped-def]
    assert finding in look(HEAD + GRAPH_MODE + HOOKS + line + "\n")
    assert finding not in look(HEAD + HOOKS + line + "\n")  # in PyNative they run


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("net.layer.recompute()", "debug_recompute"),
        ("f = ms.jit(g, capture_mode='bytecode')", "debug_capture"),
        ("exec(compile(text, 'x', 'exec'))", "debug_made_code"),
        ("model.train(1, data, dataset_sink_mode=True)", "debug_sink"),
        ("ms.dataset.GeneratorDataset(s, ['x'], num_parallel_workers=4)", "debug_workers"),
        ("data = data.map(f, python_multiprocessing=True)", "debug_workers"),
    ],
)
def test_what_else_moves_a_stop(look, line: str, finding: str) -> None:  # type: ignore[no-untyped-def]
    result = look(HEAD + line + "\n")[finding]
    assert result.status == "problem"
    assert "script0.py:3: " in result.evidence()


@pytest.mark.parametrize(
    "line",
    [
        "f = ms.jit(g, capture_mode='ast')",
        "model.train(1, data, dataset_sink_mode=False)",
        "ms.dataset.GeneratorDataset(s, ['x'], num_parallel_workers=1)",
        "GeneratorDataset(s, num_parallel_workers=4, python_multiprocessing=False)",
        "GeneratorDataset(s, num_parallel_workers=4); ms.dataset.config.set_debug_mode(True)",
        "ms.runtime.launch_blocking()",
    ],
)
def test_what_moves_none(look, line: str) -> None:  # type: ignore[no-untyped-def]
    found = look(HEAD + line + "\n")
    assert not {name for name, r in found.items() if r.status == "problem"} - {"debug_jit"}


def test_the_device_is_behind(look) -> None:  # type: ignore[no-untyped-def]
    assert look(HEAD)["debug_asynchronous"].status == "unknown"
    assert "debug_blocking" in look(HEAD + "ms.runtime.launch_blocking()\n")
    assert "debug_blocking" in look(HEAD + "ms.set_context(pynative_synchronize=True)\n")
    assert "debug_blocking" in look(HEAD, ASCEND_LAUNCH_BLOCKING="1")


def test_a_script_that_is_no_python(look, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = look("def f(:\n")["check_failed"]
    assert (result.status, result.check) == ("unknown", "debug.source")
    assert "script0.py:1:" in result.evidence()
    with pytest.raises(UsageError, match="cannot be read"):
        read_script(tmp_path / "none.py")


def test_an_odd_backslash_is_not_told(look) -> None:  # type: ignore[no-untyped-def]
    assert "debug_no_graph" in look('pattern = "\\d+"\n')


# -- Python's side ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "finding"),
    [
        ("PYTHONBREAKPOINT", "0", "debug_breakpoint_off"),
        ("PYTHONBREAKPOINT", "ipdb.set_trace", "debug_breakpoint_hook"),
        ("PYDEVD_FILTERS", "**/model/**", "debug_filters"),
        ("PYDEVD_FILTER_LIBRARIES", "true", "debug_filters"),
        ("PYTHONOPTIMIZE", "1", "debug_optimized"),
    ],
)
def test_variables_that_keep_a_debugger_from_stopping(name: str, value: str, finding: str) -> None:
    result = problems(check_environment({name: value}))[finding]
    assert f"{name}={value}" in result.evidence()
    assert result.command == f"unset {name}"


def test_no_debugger_is_installed() -> None:
    found = findings(check_environment({}, find=lambda _: None))
    assert found["debug_no_debugpy"].status == "unknown"
    assert "debug_python_fine" in findings(check_environment({}, find=lambda _: object()))


def test_launch_configurations(tmp_path: Path) -> None:
    path = tmp_path / "launch.json"
    ours = {"type": "debugpy", "name": "train"}
    found = problems(check_launch([ours], path))
    assert set(found) == {"debug_just_my_code"}
    wrong = {**ours, "justMyCode": False, "subProcess": False}
    found = problems(check_launch([wrong], path, [Path("train.py")]))
    assert "started by: train.py" in found["debug_no_children"].evidence()
    right = {**ours, "justMyCode": False}
    assert "debug_launch_fine" in findings(check_launch([right], path))
    assert "debug_no_launch" in findings(check_launch([{"type": "cppdbg"}], path))


def test_what_mindpulse_writes_for_the_editor_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["vscode"]).exit_code == 0
    told = json.loads(CliRunner().invoke(main, ["doctor", "debug", "--json"]).output)
    assert "debug_launch_fine" in {result["finding"] for result in told["results"]}
    (tmp_path / ".vscode" / "launch.json").write_text("{oops")
    told = json.loads(CliRunner().invoke(main, ["doctor", "debug", "--json"]).output)
    assert "debug.launch" in {r["check"] for r in told["results"] if r["finding"] == "check_failed"}


def test_the_process_that_is_asked() -> None:
    def tracer() -> None: ...

    with_pydevd = {"pydevd": object()}
    assert "debug_traced" in findings(check_process(tracer, with_pydevd, 0))
    assert "debug_traced_by_other" in problems(check_process(tracer, {}, 0))
    if sys.gettrace() is None:  # no coverage, no debugger
        assert "debug_trace_lost" in problems(check_process(None, with_pydevd, 0))
        assert "debug_not_traced" in problems(check_process(None, {}, 0))
    assert "debug_optimized" in problems(check_process(tracer, with_pydevd, 2))


def test_the_command_quotes_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(NET.format("breakpoint()") + GRAPH_MODE)
    call = CliRunner().invoke(main, ["doctor", "debug", "train.py", "--format", "problems"])
    assert call.exit_code == 1
    first = call.output.splitlines()[0]
    assert first.startswith("doctor: problem: debug.graph: train.py:5: breakpoint() in Net.constr")
    pattern = MATCHER["pattern"]  # as VS Code reads that line
    found = re.match(pattern["regexp"], first)
    assert found is not None
    assert (found[pattern["file"]], found[pattern["line"]]) == ("train.py", "5")
    assert found[pattern["code"]] == "debug.graph"
    assert found[pattern["message"]].startswith("breakpoint() in Net.construct")
