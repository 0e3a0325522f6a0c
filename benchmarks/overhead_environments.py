"""Virtual environments for other tools that see the packages of this one.

Only what the tool adds is installed (200 to 300 MB); MindSpore and MindPulse are the same for all.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from training_thread import cache


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and what its installation needs.

    Attributes:
        alone: requirements whose own requirements cannot be had or contradict each other.
        more: further requirements.
    """

    name: str
    alone: tuple[str, ...]
    more: tuple[str, ...]


HERE = Tool("this environment", (), ())
# 2.1.0 asks for MindSpore 2.11, which is not to be had, and runs on 2.10; pyarrow 23 refuses its
# NumPy below 2.
MINDFORMERS = Tool(
    "mindformers-2.1.0",
    ("mindformers==2.1.0",),
    (
        *("pyyaml", "deprecated", "regex", "requests", "jieba", "rouge_chinese", "datasets<4.5"),
        *("tokenizers", "sentencepiece", "tiktoken", "mindpet", "tensorboardX"),
        *("numpy<2", "pyarrow<23"),
    ),
)
MSPROBE = Tool("mindstudio-probe-26.2.0", (), ("mindstudio-probe==26.2.0", "numpy<2", "pandas<3"))


def interpreter(tool: Tool) -> Path:
    """The Python that has `tool`; its environment is made at the first call and kept.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    if tool is HERE:
        return Path(sys.executable)
    folder = cache() / f"{tool.name}-py{sys.version_info.major}{sys.version_info.minor}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"installing {tool.name} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        _look_into(python, sysconfig.get_path("purelib"))
        install = [str(python), "-m", "pip", "install", "--quiet"]
        if tool.alone:
            subprocess.run([*install, "--no-deps", *tool.alone], check=True)
        subprocess.run([*install, *tool.more], check=True)
        ready.touch()
    return python


def _look_into(python: Path, packages: str) -> None:
    """Lets an environment find the packages of another one after its own."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True)
    line = f"import site; site.addsitedir({packages!r})\n"
    (Path(own.stdout.strip()) / "packages-of-mindpulse.pth").write_text(line)
