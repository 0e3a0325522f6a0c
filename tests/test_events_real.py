"""Event files that other people's trainings wrote give exactly the values known of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mindpulse.errors import UsageError
from mindpulse.interop.events.run import EventsRun

REAL = Path(__file__).parent.parent.parent / "shared" / "real"
INDEX = REAL / "INDEX.md"
pytestmark = pytest.mark.skipif(not INDEX.is_file(), reason=f"no {REAL.name} files at {REAL}")
SERIES = re.compile(
    r"([^\s;][^;:]*): n=(\d+), steps (\d+)\.\.(\d+), first (\S+), last (\S+), max ([^\s;]+)"
)
COUNTS = re.compile(r"(\d+) records, (\d+) scalar points in (\d+) tags")
TORN = re.compile(r"truncated record at byte (\d+) \(record \d+; (\d+) of \d+ bytes present\)")


def known() -> dict[str, str]:
    """What is said of each event file: the line of its right values, by its path."""
    if not INDEX.is_file():
        return {}
    found = {}
    for section in INDEX.read_text().split("\n### ")[1:]:
        path, _, rest = section.partition("\n")
        if path.startswith("tfevents/"):
            line = re.search(r"^- right values: (.*)$", rest, re.MULTILINE)
            found[path.strip()] = line[1] if line else ""
    return found


@pytest.mark.parametrize("path", [path for path, line in known().items() if COUNTS.search(line)])
def test_right_values(path: str) -> None:
    line = known()[path]
    run = EventsRun(REAL / path)
    counts = COUNTS.search(line)
    assert counts
    (report,) = run.files()
    whole = {tag: run.series(tag) for tag in run.specs()}
    assert report.rows == int(counts[1])
    assert sum(len(series) for series in whole.values()) == int(counts[2])
    assert len(whole) == int(counts[3])
    said = SERIES.findall(line.split("end: ")[1])
    assert len(said) == int(counts[3])
    for tag, n, first_step, last_step, first, last, most in said:
        series = run.series(tag)
        values = series.values.astype(np.float64)
        found = (str(len(series)), str(series.steps.min()), str(series.steps.max()))
        assert found == (n, first_step, last_step)
        shown = tuple(f"{float(value):.6g}" for value in (values[0], values[-1], values.max()))
        assert shown == (first, last, most), tag


def test_a_cut_file_gives_what_is_before_the_cut() -> None:
    (path,) = (path for path in known() if "derived_truncated" in path)
    torn = TORN.search(known()[path])
    assert torn
    (report,) = EventsRun(REAL / path).files()
    assert report.valid
    assert report.torn_bytes == int(torn[2])
    assert (REAL / path).stat().st_size - report.torn_bytes == int(torn[1])


def test_graphs_are_passed_over() -> None:
    (path,) = (path for path in known() if "with_graph" in path)
    run = EventsRun(REAL / path)
    assert "1 x graph_def passed over; 1 x meta_graph_def passed over" in run.files()[0].problem
    assert run.series("train_loss").values[-1] == np.float32(2.9325056e-05)


def test_a_pointer_is_named() -> None:
    (path,) = (path for path in known() if "lfs_pointer" in path)
    with pytest.raises(UsageError, match="a Git LFS pointer"):
        EventsRun(REAL / path)


def test_three_trainings_in_one_folder() -> None:
    folder = next(REAL / path for path in known() if "Dec03" in path).parent
    run = EventsRun(folder)
    assert [report.valid for report in run.files()] == [True, True, True]
    assert run.attempts == [1, 2]
    assert run.series("epoch").steps.tolist() == [63, 126, 189, 189, 500]
    assert {note.data["tag"] for note in run.notes()} == {
        "args/text_summary",
        "model_config/text_summary",
    }
