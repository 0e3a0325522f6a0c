"""`%load_ext mindpulse`: the magic in a real kernel, and the parts of the live view."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import mindpulse.notebook
from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.notebook.arguments import parse_snap, parse_view
from mindpulse.notebook.following import views
from mindpulse.notebook.live import Live, Waiting
from mindpulse.notebook.look import PAUSE_TO_WORK, Eye
from mindpulse.notebook.magic import register
from mindpulse.notebook.page import Page
from mindpulse.notebook.spark import BUCKETS, HEIGHT, WIDTH, spark
from mindpulse.recorder import Recorder, living
from mindpulse.report.collect import collect
from mindpulse.report.scalar import read_scalar
from mindpulse.rules.load import load_rules
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.summary import SummaryRecord
from synthetic import START, InMemory, write_run

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "debugging.md").read_text("utf-8")
RULES = load_rules()


class Time:
    """A clock that moves when somebody sleeps, and by `cost` when somebody looks at it."""

    def __init__(self, cost: float = 0.0) -> None:
        self.now, self.cost = 0.0, cost

    def __call__(self) -> float:
        self.now += self.cost
        return self.now

    def sleep(self, seconds: float) -> None:
        """Takes no time."""
        self.now += seconds


@pytest.fixture(autouse=True)
def _nothing_is_recorded() -> None:
    for recorder in living():
        recorder.close()


# A real notebook in a real kernel.


def notebook_cells() -> list[str]:
    """What docs/debugging.md shows of a notebook."""
    return re.findall(r"```ipython\n(.*?)```", PAGE, re.DOTALL)


def run_notebook(folder: Path, cells: list[str], allow_errors: bool = False) -> list[list[Any]]:
    """The outputs of each cell."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    v4 = nbformat.v4
    book = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        book,
        kernel_name="python3",
        timeout=120,
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    )
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    return [cell.outputs for cell in book.cells]


def html(outputs: list[Any]) -> str:
    (found,) = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    return str(found)


WRITING = """
import numpy as np
from mindpulse import SummaryRecord
record = SummaryRecord("my summary")
for step in range(1, 301):
    record.add_value("scalar", "train_loss", 5.0 / step, step=step)
    record.add_value("scalar", "grad_norm", float("nan") if step == 200 else 1.0, step=step)
scores = np.arange(12.0).reshape(3, 4)
"""


def test_a_notebook_that_trains_and_looks(tmp_path: Path) -> None:
    outputs = run_notebook(
        tmp_path,
        [
            "%load_ext mindpulse",
            WRITING,
            "%mindpulse live",  # what this kernel writes, though nothing was flushed by hand
            '%mindpulse live "my summary" --seconds 0.3 --every 0.1 --lang zh',
            "%mindpulse peek scores * {1: 2}[1]",
            "%mindpulse snap --step 7 halves scores / 2",
            "record.close()\nplace = 'my summary'",
            "%mindpulse live '{place}' --seconds 600",  # has ended: comes back at once
            '%mindpulse report "$place" --height 300',
        ],
    )
    live = html(outputs[2])
    assert "step 300" in live
    assert "1 not finite" in live
    assert live.count("<svg") == 2
    assert "last row" in live
    updated = html(outputs[3])
    assert "健康分" in updated
    assert len(outputs[3]) == 1  # in its place, not one below the other
    peeked = outputs[4][0]["data"]
    assert "float64 (3, 4) on host" in peeked["text/plain"]
    assert "max 22" in peeked["text/plain"]
    assert "<svg" in peeked["text/html"]
    assert "halves_s000007.npz" in outputs[5][0]["data"]["text/plain"]
    assert "the training has ended" in html(outputs[7])
    assert 'sandbox="allow-scripts"' in html(outputs[8])
    assert "height:300px" in html(outputs[8])
    (path,) = (tmp_path / "my summary").glob("attempt-*/rank-*/snapshots/*.npz")
    with np.load(path, allow_pickle=False) as content:
        np.testing.assert_array_equal(content["tensor"], np.arange(12.0).reshape(3, 4) / 2)
    command = [sys.executable, "-m", "mindpulse.cli", "analyze", "my summary", "--json"]
    seen = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert [snap["name"] for snap in json.loads(seen.stdout)["snaps"]] == ["halves"]


def test_mistakes_are_told_without_a_traceback_and_the_stop_button_works(tmp_path: Path) -> None:
    stopping = (
        "import _thread, threading, mindpulse\n"
        "threading.Timer(1.0, _thread.interrupt_main).start()\n"
        "get_ipython().run_line_magic('mindpulse', 'live late --seconds 500 --every 0.1')\n"
    )
    outputs = run_notebook(
        tmp_path,
        [
            "%load_ext mindpulse",
            "%mindpulse live",
            "%mindpulse fly away",
            "%mindpulse live nowhere",
            "%mindpulse peek 'words'",
            "%mindpulse",
            stopping,
            "%unload_ext mindpulse\nprint(get_ipython().find_line_magic('mindpulse'))",
        ],
        allow_errors=True,
    )
    told = ["".join(o.get("text", "") for o in each) for each in outputs]
    assert "UsageError: which run? this notebook writes none" in told[1]
    assert "%mindpulse fly: no such verb" in told[2]
    assert "nowhere" in told[3]
    assert "holds no numbers" in told[4]
    assert not any("Traceback" in text for text in told)
    assert "%mindpulse snap [--step N]" in told[5]
    assert "nothing is recorded in late yet" in outputs[6][0]["data"]["text/plain"]
    assert [o for o in outputs[6] if o["output_type"] == "error"] == []
    assert told[7].strip() == "None"


def test_the_notebook_of_the_docs(tmp_path: Path) -> None:
    write_run(tmp_path / "summary", fault="lr-explosion")
    cells = notebook_cells()
    assert len(cells) >= 2
    outputs = run_notebook(tmp_path, cells)
    shown = [str(o["data"]) for each in outputs for o in each if "data" in o]
    for text in ("gradient-explosion", "iframe", "scores_s000007.npz", "on host"):
        assert any(text in data for data in shown), text


# Its parts.


@pytest.fixture(scope="module")
def exploded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("live") / "exploded", fault="lr-explosion")


def test_a_glance_agrees_with_the_report(exploded: Path) -> None:
    glance = Eye(exploded, RULES, clock=lambda: START + 500).look()
    whole = collect(open_run(exploded), RULES)
    assert glance.ended
    assert glance.data.health == whole.health
    assert glance.data.alerts == whole.alerts
    assert glance.data.steps == whole.steps
    assert glance.age_s == pytest.approx(500 - 0.42 * 300)
    for tag, scalar in glance.data.series.items():
        assert (scalar.low, scalar.high) == (whole.series[tag].low, whole.series[tag].high)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_view_is_well_formed_and_says_the_same_twice(exploded: Path, lang: str) -> None:
    view = Live(Eye(exploded, RULES).look(), lang)
    page = view._repr_html_()
    root = ElementTree.fromstring(page)
    curves = list(root.iter("svg"))
    assert len(curves) == len(view.data.series) > 2
    assert not any(name in page for name in ("<style", "<script", "class="))
    text = " ".join(root.itertext())
    for line in repr(view).splitlines():
        words = re.sub(r"^\s*\[\S+\] ", "", line).split(": ", 1)[-1].strip()
        assert words.split("; ")[0].split(":")[0] in text
    opened = [a for a in view.data.alerts if a.end_step is None]
    assert all(a.rule in text for a in sorted(opened, key=lambda a: -a.level)[:1])


def test_names_of_a_user_are_no_markup(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path / "<b>run") as record:
        record.add_value("scalar", "<script>alert(1)</script>", 1.0, step=1)
    glance = Eye(tmp_path / "<b>run", RULES).look()
    page = Live(glance)._repr_html_()
    assert "<script" not in page
    assert "&lt;b&gt;run" in page
    frame = Page(glance.data)._repr_html_()
    assert re.fullmatch(r'<iframe srcdoc="[^"<>]*" sandbox="allow-scripts"[^<>]*></iframe>', frame)


def curve_of(values: Any) -> Any:
    steps = np.arange(1, len(values) + 1)
    rows = Rows(steps, steps * 1.0, np.asarray(values, np.float64)[:, None])
    return read_scalar(InMemory(Series(SeriesSpec("x"), rows)), "x", 0, 5000)


def test_a_small_curve_keeps_a_spike_and_marks_what_is_not_finite() -> None:
    values = np.zeros(50 * BUCKETS)
    values[3210], values[5000] = 9.0, np.nan
    root = ElementTree.fromstring(spark(curve_of(values), [], "a spike"))
    places = re.findall(r"[ML]([\d.]+) ([\d.]+)", root.find("path").attrib["d"])  # type: ignore[union-attr]
    top = min(places, key=lambda place: float(place[1]))
    assert float(top[0]) == pytest.approx(3210.5 / len(values) * WIDTH, abs=0.1)
    assert float(top[1]) < HEIGHT / 8
    (mark,) = root.iter("circle")
    assert float(mark.attrib["cx"]) == pytest.approx(5000.5 / len(values) * WIDTH, abs=0.1)


@pytest.mark.parametrize("values", [[np.nan], [1.0], [np.inf, -np.inf], [1e308, -1e308, 0.0]])
def test_odd_curves_are_drawn(values: list[float]) -> None:
    root = ElementTree.fromstring(spark(curve_of(values), [], "odd"))
    numbers = re.findall(r"-?[\d.]+|nan|inf", root.find("path").attrib["d"])  # type: ignore[union-attr]
    assert all(0 <= float(n) <= WIDTH for n in numbers)


def test_a_run_that_is_still_written_is_looked_at_until_the_time_is_over(tmp_path: Path) -> None:
    recorder, clock = Recorder(tmp_path / "run", flush_interval=600), Time()
    eye = Eye(tmp_path / "run", RULES)
    seen: list[Any] = []

    def more() -> Iterator[None]:
        for step in range(1, 100):
            recorder.add_scalars(step, {"train_loss": 1.0 / step})
            yield

    steps = more()

    def sleep(seconds: float) -> None:
        next(steps)
        clock.sleep(seconds)

    for view in views(eye, 10, 3, "en", stopwatch=clock, sleep=sleep):
        seen.append(view)
    assert [view.data.steps for view in seen] == [None, (1, 1), (1, 2), (1, 3), (1, 4)]
    assert not any(view.ended for view in seen)
    assert clock.now == 10.0
    assert "no rows yet" in repr(seen[0])
    assert "<svg" not in seen[0]._repr_html_()
    recorder.close()
    views_left = list(views(eye, 10, 3, "en", stopwatch=clock, sleep=sleep))
    assert len(views_left) == 1  # it has ended


def test_a_second_attempt_that_runs_is_not_over(tmp_path: Path) -> None:
    write_run(tmp_path, steps=30)
    assert Eye(tmp_path, []).look().ended
    second = Recorder(tmp_path)
    second.add_scalars(31, {"train_loss": 1.0})
    assert not Eye(tmp_path, []).look().ended
    second.close()
    assert Eye(tmp_path, []).look().ended


def test_a_folder_that_is_not_there_yet_is_waited_for_only_while_there_is_time(
    tmp_path: Path,
) -> None:
    clock = Time()
    eye = Eye(tmp_path / "late", RULES)
    found = views(eye, 4, 2, "zh", stopwatch=clock, sleep=clock.sleep)
    waited = [next(found), next(found)]
    assert all(isinstance(view, Waiting) for view in waited)
    assert "尚无记录" in repr(waited[0])
    write_run(tmp_path / "late", steps=20)
    assert isinstance(next(found), Live)
    with pytest.raises(UsageError, match="nowhere"):
        list(views(Eye(tmp_path / "nowhere", []), 0, 1, "en", stopwatch=clock, sleep=clock.sleep))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("no run")
    with pytest.raises(Exception, match="other"):  # it will never be one
        list(views(Eye(tmp_path / "other", []), 9, 1, "en", stopwatch=clock, sleep=clock.sleep))


def test_judging_rests_ten_times_as_long_as_it_took(
    exploded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[float] = []
    stopwatch = Time(cost=1.0)
    real = mindpulse.health.judge_run

    def counted(*args: Any) -> Any:
        judged.append(stopwatch.now)
        return real(*args)

    monkeypatch.setattr("mindpulse.health.judge_run", counted)
    eye = Eye(exploded, RULES, stopwatch=stopwatch)
    for _ in range(25):
        eye.look()
    assert len(judged) > 1
    assert min(np.diff(judged)) >= PAUSE_TO_WORK


# What is asked for.


def test_options_of_views() -> None:
    asked = parse_view("live", "'my run' --seconds 30 --every=0.5 --lang zh --rules mine.toml")
    assert (asked.run, asked.seconds, asked.every, asked.lang) == ("my run", 30.0, 0.5, "zh")
    assert parse_view("report", "").run is None


@pytest.mark.parametrize(
    ("verb", "line", "told"),
    [
        ("live", "a b", "unrecognized arguments: b"),
        ("live", "--seconds nan", "invalid"),
        ("live", "--seconds -1", "invalid|expected"),
        ("live", "--lang fr", "invalid choice"),
        ("live", "'open", "close the quotation mark"),
        ("report", "--seconds 3", "unrecognized"),
        ("report", "--height tall", "invalid int"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used(verb: str, line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_view(verb, line)


def test_names_and_expressions() -> None:
    assert parse_snap("x y") == ("x", "y", {})
    assert parse_snap('"a name"  f("b c")[1:] ') == ("a name", 'f("b c")[1:]', {})
    line = f"--run={shlex.quote('./r')} --step 3 w a if b else c"
    assert parse_snap(line) == ("w", "a if b else c", {"step": 3, "run": "./r"})
    for bad in ("", "x", '"x"', "--step x a b", "--step -1 a b"):
        with pytest.raises(UsageError):
            parse_snap(bad)


def test_nothing_is_written_by_looking(exploded: Path) -> None:
    def listing() -> dict[str, int]:
        files = (p for p in exploded.rglob("*") if p.is_file())
        return {str(p): p.stat().st_mtime_ns for p in files}

    before = listing()
    repr(Live(Eye(exploded, RULES).look())), Page(collect(open_run(exploded), RULES))._repr_html_()
    assert listing() == before


def test_no_shell_is_needed_to_import_it() -> None:
    code = "import sys, mindpulse.notebook.magic; print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert callable(register)
