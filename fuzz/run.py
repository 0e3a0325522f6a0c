"""Fuzzing of every reader with atheris: no crash, no hang, memory bounded.

    python fuzz/run.py [--seconds 60] [--targets ms_file,notes]

A target is a module in fuzz/targets with `one_input(data: bytes)` and `seeds() -> list[bytes]`. It
may raise nothing but a MindPulseError; add a file there, and it is fuzzed. What was found stays in
build/fuzz/NAME; a crash is written to build/fuzz/crash-* and printed. tests/test_durability_fuzz.py
runs the same targets with hypothesis.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import logging
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "fuzz"
TARGETS = sorted(path.stem for path in (HERE / "targets").glob("[a-z]*.py"))
MEMORY_MB, ONE_INPUT_S, INPUT_BYTES = 2048, 20, 1 << 16


def main() -> int:
    """Runs the targets one after the other; how many failed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=60, help="for each target; default 60")
    options.add_argument("--targets", default=",".join(TARGETS), help="default: all")
    options.add_argument("--one", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        fuzz(arguments.one, arguments.seconds)
        return 0
    failed = [name for name in arguments.targets.split(",") if not run(name, arguments.seconds)]
    print(f"{len(failed)} of {len(arguments.targets.split(','))} failed", *failed)
    return min(len(failed), 1)


def run(name: str, seconds: int) -> bool:
    """Fuzzes one target in a process of its own; False if it failed."""
    if name not in TARGETS:
        raise SystemExit(f"no target {name!r}; there are: {', '.join(TARGETS)}")
    print(f"== {name}, {seconds} s", flush=True)
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    lines = done.stderr.splitlines()
    shown = lines[-40:] if done.returncode else [line for line in lines if line.startswith("Done")]
    print(*shown, sep="\n", flush=True)
    return done.returncode == 0


def fuzz(name: str, seconds: int) -> None:
    """Does not return: libFuzzer ends the process."""
    import atheris

    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    with atheris.instrument_imports(include=["mindpulse"]):
        target = importlib.import_module(f"targets.{name}")
    logging.getLogger("mindpulse").setLevel(logging.CRITICAL)  # not a warning for each input
    corpus = BUILD / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    limits = [
        f"-max_total_time={seconds}",
        f"-timeout={ONE_INPUT_S}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={INPUT_BYTES}",
        f"-artifact_prefix={BUILD}/",
        "-print_final_stats=0",
    ]
    atheris.Setup([name, *limits, str(corpus)], target.one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
