"""Any bytes: a reader gives a run or one of our errors, and does so at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interop_samples import SAMPLES
from mindpulse.errors import MindPulseError
from mindpulse.interop import identify, open_run
from mindpulse.interop.detect import LOGS, WHOLE

MANY = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LIMIT_S = 5.0


def use(path: Path, kind: str) -> None:
    """Reads with the reader of a kind and as whatever it looks like; only our errors may come."""
    begun = time.monotonic()
    readers = [lambda: {**WHOLE, **LOGS}[kind].read(path), lambda: open_run(path)]
    for read in readers:
        try:
            run = read()
        except MindPulseError:
            continue
        for tag in run.specs():
            for rank in run.ranks:
                for attempt in (*run.attempts, None, "all"):
                    try:
                        series = run.series(tag, rank, attempt)
                    except MindPulseError:
                        continue
                    assert series.rows.values.shape == (len(series), series.spec.width)
        assert run.files()
    assert time.monotonic() - begun < LIMIT_S


@pytest.mark.parametrize("kind", list(SAMPLES))
@MANY
@given(data=st.data())
def test_changed_bytes(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    name, content = SAMPLES[kind]
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(place, min(len(changed), place + 8)))
        changed[place:end] = data.draw(st.binary(max_size=8))
    path = tmp_path / name
    path.write_bytes(bytes(changed))
    use(path, kind)


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_cut_at_every_byte(tmp_path: Path, kind: str) -> None:
    name, content = SAMPLES[kind]
    path = tmp_path / name
    for end in range(len(content)):
        path.write_bytes(content[:end])
        use(path, kind)


@MANY
@given(content=st.binary(max_size=400), name=st.sampled_from(["a.csv", "a.json", "a.log", "a"]))
def test_any_bytes(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for kind in SAMPLES:
        use(path, kind)


@MANY
@given(content=st.text(alphabet='01.,;"\n\t{}[]:-eEnaif|/ steploriun\r#', max_size=300))
def test_text_of_the_letters_that_matter(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content, "utf-8", newline="")
    for kind in SAMPLES:
        use(path, kind)


@pytest.mark.parametrize(
    "line",
    [
        b"iteration 1/ 1 | " + b"a: 1 | " * 20_000,
        b"iteration 1/ 1 |" * 20_000,
        b" iteration 1/ 1 | " + b"x" * 500_000,
        b"{'loss': 1, " + b"'a': 1, " * 50_000,
        b"{'" * 200_000,
        b"epoch: 1 step: 1, " * 20_000,
        b"Epoch:[ 1/ 1], step:[ 1/ 1]," + b"loss: " * 50_000,
        b"Epoch 1/1, Step 1/1, " + b"a b " * 100_000,
        b"DLL 2020-01-01 1 - " + b"Training Epoch: 0 " * 20_000,
        b"DLL 2020-01-01 1 - " + b"a " * 200_000,
        b"steps: 1 loss: " + b"1" * 500_000,
        b"[Rank 1] (after 1 iterations) memory (MB)" + b" | a: 1" * 50_000,
        b"validation loss at iteration 1 on a set | " * 10_000,
        b"," * 500_000,
        b'"' * 500_000,
        b"[" * 500_000,
        b'{"a":' * 100_000,
        b"1 " * 300_000,
        b"\x1b[" * 300_000,
        b"2020-01-01 00:00:00" * 20_000,
    ],
)
def test_lines_that_are_made_to_be_slow(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "slow.log"
    path.write_bytes(line + b"\n" + line + b"\n")
    begun = time.monotonic()
    for kind, reader in {**WHOLE, **LOGS}.items():
        try:
            reader.sniff(line[:65536], path)
            reader.read(path)
        except MindPulseError:
            pass
        assert time.monotonic() - begun < 20, kind


def test_what_is_recognised_never_depends_on_the_name(tmp_path: Path) -> None:
    for kind, (_, content) in SAMPLES.items():
        path = tmp_path / "x.bin"
        path.write_bytes(content)
        assert identify(path).kind == kind
