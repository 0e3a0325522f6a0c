"""Every snippet of docs/mindspore-notes.md still shows what its text says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "mindspore-notes.md"
SNIPPETS = [
    pytest.param(code, id=title)
    for title, code in re.findall(
        r"^## (.+?)\n.*?^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S
    )
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet(code: str, tmp_path: Path) -> None:
    script = tmp_path / "snippet.py"  # the graph compiler reads the source from a file
    script.write_text(code)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_page_has_its_snippets() -> None:
    assert len(SNIPPETS) == PAGE.read_text().count("\n## ")
