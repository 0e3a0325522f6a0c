"""The parts of the demo that need no MindSpore: what it requires, shows and says."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mindpulse import demo
from mindpulse.demo import again, program
from mindpulse.demo.display import Bar, open_display
from mindpulse.demo.outcome import Trained, as_object, summary, write_report
from mindpulse.demo.pulse import Pulse
from mindpulse.demo.require import check_packages
from mindpulse.demo.watching import Watcher
from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.report.words import Words
from mindpulse.testing import write_run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A short run whose loss turns NaN at step 30."""
    folder = tmp_path / "run"
    recorder = Recorder(folder)
    for step in range(1, 41):
        loss = float("nan") if step >= 30 else 5.0 - step / 100
        recorder.add_scalars(step, {"train_loss": loss, "grad_norm": 1.0})
    recorder.close()
    return folder


def trained(**changes: object) -> Trained:
    facts: dict[str, object] = {
        "title": "a model",
        "steps": 40,
        "losses": [5.0, 4.0, 3.0],
        "duration_s": 12.0,
        "reference": ("unigram entropy of the text", 4.5),
    }
    return Trained(**{**facts, **changes})  # type: ignore[arg-type]


def check(
    kind: str = "bert",
    missing: tuple[str, ...] = (),
    numpy: str = "1.26.4",
    python: tuple[int, int] = (3, 11),
) -> None:
    check_packages(
        kind, has=lambda name: name not in missing, version=lambda _: numpy, python=python
    )


def test_a_complete_environment_is_accepted() -> None:
    check("bert", missing=("sklearn",))
    check("vit")


@pytest.mark.parametrize(
    ("kind", "missing", "numpy", "command"),
    [
        (
            "bert",
            ("mindspore",),
            "1.26.4",
            '-m pip install "mindspore>=2.7,<2.11" "numpy>=1.26,<2"',
        ),
        ("bert", (), "2.3.5", '-m pip install "numpy>=1.26,<2"'),
        ("vit", ("sklearn",), "1.26.4", '-m pip install "scikit-learn>=1.4" "numpy>=1.26,<2"'),
    ],
)
def test_what_is_missing_is_told_with_the_command(
    kind: str, missing: tuple[str, ...], numpy: str, command: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{sys.executable} {command}")):
        check(kind, missing, numpy)


def test_a_python_without_mindspore_is_named() -> None:
    with pytest.raises(UsageError, match=r"no MindSpore for Python 3\.13"):
        check(missing=("mindspore",), python=(3, 13))


def test_an_unknown_demo_is_refused() -> None:
    with pytest.raises(UsageError, match="demo 'gpt': use one of bert, vit"):
        demo.run("gpt")


def test_importing_the_demo_does_not_import_mindspore() -> None:
    code = "import sys, mindpulse.demo; sys.exit('mindspore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_pipe_gets_plain_lines() -> None:
    stream = io.StringIO()
    with open_display(stream, steps=50) as display:
        for step in range(1, 51):
            display.advance(step, 4.0 - step / 100, "100")
        display.say("done")
    assert stream.getvalue().splitlines() == [
        "step 1/50  loss 3.990  health: 100",
        "step 20/50  loss 3.800  health: 100",
        "step 40/50  loss 3.600  health: 100",
        "step 50/50  loss 3.500  health: 100",
        "done",
    ]


def test_a_terminal_gets_a_bar_with_loss_and_health(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with open_display(stream, steps=2) as display:
        assert isinstance(display, Bar)
        display.say("[critical] nonfinite")
        display.advance(2, 3.25, "35 (numerics: critical)")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "[critical] nonfinite" in shown
    assert "2/2 loss 3.250 health: 35 (numerics: critical)" in shown


def test_pulse_knows_nothing_before_the_first_row(tmp_path: Path) -> None:
    assert Pulse(tmp_path / "nothing here").look() == "not known yet"


def test_pulse_names_the_part_that_ails(run_folder: Path) -> None:
    assert re.fullmatch(r"\d+ \(.*numerics: critical.*\)", Pulse(run_folder).look())


def test_watcher_is_a_process_that_says_what_it_found(run_folder: Path) -> None:
    lines: list[str] = []
    with Watcher(run_folder, act=False, say=lines.append):
        pass
    assert any("nonfinite" in line and "critical" in line for line in lines), lines
    assert not (run_folder / "watcher.json").exists()


def test_the_end_tells_loss_reference_score_and_paths(run_folder: Path) -> None:
    outcome = write_report(trained(fault="nan-batch", fault_step=30), run_folder)
    said = "\n".join(summary(outcome, "mindpulse", "mindpulse demo bert --fault nan-batch"))
    assert "loss: 4.000 nats" in said
    assert "unigram entropy of the text: 4.500 nats; the loss is 0.500 nats below it" in said
    note = Words("en").score_note(outcome.data.health)
    assert re.search(rf"health score: \d+ of 100 \({note}\)", said)
    assert "critical: nonfinite since step 30, still on" in said
    assert str(run_folder / "report.html") in said
    assert "mindpulse demo bert --fault nan-batch --act" in said
    assert "<html" in outcome.report.read_text(encoding="utf-8")


def test_a_busy_machine_is_no_faulty_training(run_folder: Path, tmp_path: Path) -> None:
    assert not write_report(trained(), run_folder).is_sound
    speed = np.r_[np.full(100, 9000.0), np.full(100, 2000.0)]
    write_run(tmp_path / "busy", train_loss=np.linspace(4, 3, 200), tokens_per_s=speed)
    busy = write_report(trained(), tmp_path / "busy")
    assert [alert.rule for alert in busy.findings] == ["throughput-drop"]
    assert busy.is_sound


def test_the_outcome_as_values(run_folder: Path) -> None:
    found = as_object(write_report(trained(), run_folder))
    assert found["fault"] is None
    assert found["reference"] == {"name": "unigram entropy of the text", "value": 4.5}
    assert [finding["rule"] for finding in found["findings"]] == ["nonfinite"]


def test_a_loss_that_is_nan_is_not_compared(run_folder: Path) -> None:
    outcome = write_report(trained(losses=[float("nan")]), run_folder)
    said = "\n".join(summary(outcome, "mindpulse", "mindpulse demo bert"))
    assert "loss: nan" in said
    assert "nats below" not in said


def test_commands_are_told_as_they_are_typed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv/bin/python"))
    assert program() == f"{tmp_path}/.venv/bin/python -m mindpulse.cli"
    (tmp_path / ".venv/bin/mindpulse").touch()
    assert again("bert", "nan-batch") == ".venv/bin/mindpulse demo bert --fault nan-batch"
    (tmp_path / "mindpulse").touch(0o755)
    assert again("vit", "") == "mindpulse demo vit"
