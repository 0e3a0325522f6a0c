"""The bytes of a `.ms` file: against protobuf, against version 1's files, and damaged."""

from __future__ import annotations

import math
import re
import struct
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import make_v1
from mindpulse.errors import FormatError, UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.format import PAYLOAD_OFFSET, decode_header, encode_header
from mindpulse.store.names import file_name, parse_name
from mindpulse.store.one_file import read_file
from plain_protobuf import summary_file_class
from series_samples import FOCUS, LOAD, LOSS, assert_same, odd_rows, rows_of

GOLDEN = Path(__file__).parent / "golden" / "v1"
SAMPLES = (LOSS, FOCUS, LOAD)
FORMAT_PAGE = Path(__file__).parent.parent / "docs" / "format.md"


def whole_file(spec: SeriesSpec, rows: Rows) -> bytes:
    return encode_header(spec, 1.5e9, 2, 7) + RowCodec(spec).encode(rows)


@pytest.mark.parametrize("spec", SAMPLES, ids=lambda spec: spec.plugin)
def test_rows_come_back_bit_for_bit(spec: SeriesSpec) -> None:
    codec = RowCodec(spec)
    rows = odd_rows(spec)
    data = codec.encode(rows)
    assert len(data) == len(rows) * codec.row_bytes
    found, damaged = codec.decode(data)
    assert_same(found, rows)
    assert not damaged.any()


@pytest.mark.parametrize("spec", SAMPLES, ids=lambda spec: spec.plugin)
def test_many_rows_have_the_bytes_of_single_rows(spec: SeriesSpec) -> None:
    """Checksums of many rows are computed by tables, those of few one by one."""
    codec = RowCodec(spec)
    rows = rows_of(spec, range(500))
    one_by_one = b"".join(codec.encode(rows[i : i + 1]) for i in range(500))
    assert codec.encode(rows) == one_by_one


@given(st.integers(1, 300), st.sampled_from(["float32", "float64"]), st.integers(0, 200))
def test_any_width_and_number_of_rows(width: int, dtype: str, count: int) -> None:
    columns = tuple((str(index),) for index in range(width))
    spec = SeriesSpec("x", axes=("i",), columns=columns, dtype=dtype)
    rows = rows_of(spec, range(count))
    codec = RowCodec(spec)
    found, damaged = codec.decode(codec.encode(rows) + b"torn")
    assert_same(found, rows)
    assert not damaged.any()


def test_decoded_arrays_do_not_alias_the_buffer() -> None:
    data = np.frombuffer(RowCodec(LOSS).encode(rows_of(LOSS, range(1))), np.uint8).copy()
    rows, _ = RowCodec(LOSS).decode(data)
    data[:] = 0
    assert_same(rows, rows_of(LOSS, range(1)))


def test_wrong_shape_is_refused() -> None:
    with pytest.raises(UsageError, match=r"values are \(1, 1\), wanted \(1, 3\)"):
        RowCodec(FOCUS).encode(Rows.one(1, 0.0, 1.0))


@pytest.mark.parametrize("spec", SAMPLES, ids=lambda spec: spec.plugin)
def test_header_comes_back(spec: SeriesSpec) -> None:
    data = encode_header(spec, 1.5e9, 2, 7)
    header = decode_header(data + b"rows")
    assert header is not None
    assert (header.spec, header.start_time, header.rank, header.attempt) == (spec, 1.5e9, 2, 7)
    assert header.size == header.end == len(data)
    assert [decode_header(data[:n]) for n in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize("spec", SAMPLES, ids=lambda spec: spec.plugin)
def test_plain_protobuf_reads_it(spec: SeriesSpec) -> None:
    """With the published file, by protobuf's own parser, down to the last byte."""
    proto = (files("mindpulse.store") / "summary.proto").read_text()
    rows = odd_rows(spec)
    payload = whole_file(spec, rows)[PAYLOAD_OFFSET:]
    message = summary_file_class(proto).FromString(payload)
    meta = message.meta
    assert (meta.tag, meta.plugin, meta.unit) == (spec.tag, spec.plugin, spec.unit)
    assert (meta.rank, meta.attempt, meta.start_time) == (2, 7, 1.5e9)
    assert tuple(meta.axes) == spec.axes
    assert tuple(tuple(column.labels) for column in meta.columns) == spec.columns
    assert (meta.width, meta.row_bytes) == (spec.width, RowCodec(spec).row_bytes)
    assert (meta.value_type, meta.reduction) == (1 + (spec.dtype == "float32"), spec.reduction)
    steps = [value.step for value in message.values]
    values = [
        [value.value] if value.HasField("value") else [*value.doubles, *value.floats]
        for value in message.values
    ]
    walls = [value.wall_time for value in message.values]
    found = Rows(np.array(steps), np.array(walls), np.array(values).astype(spec.dtype))
    assert_same(found, rows)
    assert message.SerializeToString(deterministic=True) == payload


def test_checksums_cover_what_the_format_page_says() -> None:
    data = RowCodec(LOSS).encode(rows_of(LOSS, range(3)))
    row = data[34:68]
    assert struct.unpack("<I", row[-4:])[0] == google_crc32c.value(row[:-4])


def test_golden_files_of_version_1_are_read() -> None:
    found = {path.name for path in GOLDEN.iterdir()}
    assert found == {file_name(spec.tag) for spec in SAMPLES}
    for spec in SAMPLES:
        content = read_file(GOLDEN / file_name(spec.tag))
        assert content.header is not None
        assert (content.header.spec, content.header.attempt, content.header.rank) == (spec, 2, 3)
        assert_same(content.rows, odd_rows(spec))
        assert content.problem == ""
        assert content.header.end == content.size


def test_golden_files_of_version_1_are_still_written(tmp_path: Path) -> None:
    make_v1.write(tmp_path)
    for path in GOLDEN.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_worked_example_of_the_format_page(tmp_path: Path) -> None:
    """The hexadecimal bytes in docs/format.md are a file with the rows that it tells."""
    page = FORMAT_PAGE.read_text()
    block = re.search(r"<!-- worked example -->\n+```text\n(.*?)```", page, re.DOTALL)
    assert block
    lines = [line.split("|")[0] for line in block[1].splitlines()]
    data = bytes.fromhex("".join(lines))
    path = tmp_path / "train_loss.ms"
    path.write_bytes(data)
    content = read_file(path)
    assert content.problem == ""
    assert content.rows.steps.tolist() == [1, 2]
    assert content.rows.wall_times.tolist() == [1700000000.0, 1700000000.5]
    assert content.rows.values.tolist() == [[2.5], [2.25]]
    written = encode_header(LOSS, 1.7e9, 0, 1) + RowCodec(LOSS).encode(content.rows)
    assert data == written[:6] + struct.pack("<I", len(data) - 10) + written[10:]


def test_reader_of_the_format_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = Rows(np.array([1, 2]), np.array([1.7e9, 1.7e9 + 0.5]), np.array([[2.5], [2.25]]))
    data = encode_header(LOSS, 1.7e9, 0, 1) + RowCodec(LOSS).encode(rows)
    (tmp_path / "train_loss.ms").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", FORMAT_PAGE.read_text(), re.DOTALL)[0]
    exec(compile(code, str(FORMAT_PAGE), "exec"), {})
    assert capsys.readouterr().out == "[1 2] [2.5  2.25]\n"


def plain_reader(folder: Path) -> Path:
    """The reader of the format page as a script."""
    page = FORMAT_PAGE.read_text()
    block = re.search(r"<!-- plain reader -->\n+```python\n(.*?)```", page, re.DOTALL)
    assert block
    assert len([line for line in block[1].splitlines() if line.strip()]) <= 42
    script = folder / "plain_reader.py"
    script.write_text(block[1])
    return script


def read_plainly(script: Path, path: Path) -> list[tuple[int, float, tuple[float, ...]]]:
    """What the script prints, run by a Python that sees no installed package."""
    command = [sys.executable, "-I", "-S", str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = {"nan": math.nan, "inf": math.inf}
    rows = (line.split(" ", 2) for line in done.stdout.splitlines())
    return [(int(step), float(time), eval(values, names)) for step, time, values in rows]


def assert_read_plainly(script: Path, path: Path, rows: Rows) -> None:
    found = read_plainly(script, path)
    assert [row[0] for row in found] == rows.steps.tolist()
    np.testing.assert_array_equal([row[1] for row in found], rows.wall_times)
    values = np.array([row[2] for row in found], rows.values.dtype).reshape(rows.values.shape)
    np.testing.assert_array_equal(values, rows.values)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(rows.values))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.ms")), ids=lambda path: path.name)
def test_plain_reader_reads_files_of_version_1(path: Path, tmp_path: Path) -> None:
    assert_read_plainly(plain_reader(tmp_path), path, read_file(path).rows)


@pytest.mark.parametrize("width", [1, 2, 13, 40, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plain_reader_reads_any_width(width: int, dtype: str, tmp_path: Path) -> None:
    columns = tuple((str(index),) for index in range(width))
    spec = SeriesSpec("wide", axes=("i",), columns=columns, dtype=dtype)
    rows = odd_rows(spec)
    path = tmp_path / "wide.ms"
    path.write_bytes(whole_file(spec, rows) + b"\x12\x20torn")
    assert_read_plainly(plain_reader(tmp_path), path, rows)


def test_plain_reader_leaves_out_damaged_rows(tmp_path: Path) -> None:
    rows = rows_of(LOSS, range(20))
    data = bytearray(whole_file(LOSS, rows))
    data[-34 * 3 + 25] ^= 0x10
    path = tmp_path / "train_loss.ms"
    path.write_bytes(data)
    assert_read_plainly(plain_reader(tmp_path), path, rows[np.arange(20) != 17])


def test_plain_reader_of_a_file_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    path.write_bytes(encode_header(LOSS, 1.5e9, 0, 1))
    assert read_plainly(plain_reader(tmp_path), path) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04 a zip", "not a MindPulse file"),
        (b"MSFM\x02\x00\0\0\0\0", "format version 2; this MindPulse reads 1"),
        (b"MSFM\x01\x00\0\0\0\0\x12", "no metadata there"),
        (b"MSFM\x01\x00\0\0\0\0\x0a\x00", "metadata of 0 bytes"),
        (b"MSFM\x01\x00\0\0\0\0\x0a" + b"\xff" * 10, "more than 10 bytes"),
        (b"MSFM\x01\x00\0\0\0\0\x0a\x05abcde", "checksum"),
    ],
)
def test_other_bytes_are_refused_with_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=re.escape(said)):
        decode_header(data)


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_a_format_error(data: bytes) -> None:
    for tried in (data, b"MSFM\x01\x00\0\0\0\0\x0a" + data):
        try:
            header = decode_header(tried)
        except FormatError:
            continue
        assert header is None


def with_meta(meta: bytes) -> bytes:
    """A file with metadata whose checksum is right, whatever they say."""
    summed = b"\x0a" + bytes([len(meta) + 5]) + meta + b"\x7d"
    return b"MSFM\x01\x00\0\0\0\0" + summed + struct.pack("<I", google_crc32c.value(summed))


@given(st.binary(max_size=100))
def test_metadata_that_make_no_sense_are_a_format_error(meta: bytes) -> None:
    with pytest.raises(FormatError):
        decode_header(with_meta(meta))


@pytest.mark.parametrize("tag", ["loss", "a/b", "a.b", "~", "%2F", "..", "行", "x" * 200, "A-_z"])
def test_names_are_reversible_and_safe(tag: str) -> None:
    for part in (1, 2, 12345):
        name = file_name(tag, part)
        assert parse_name(name) == (tag, part)
        assert re.fullmatch(r"[A-Za-z0-9_%-]+(\.\d{4,})?\.ms", name)


@given(
    st.text(min_size=1, max_size=200).filter(lambda t: t.isprintable() and len(t.encode()) < 200)
)
def test_long_names_fit_the_file_system(tag: str) -> None:
    name = file_name(tag, 9999)
    assert len(name) <= 255
    assert parse_name(name) in ((tag, 9999), ("", 9999))


@pytest.mark.parametrize("name", ["x.txt", "x", ".ms", "a.b.ms", "x.2.ms", "%zz.ms", "%FF.ms", ""])
def test_other_names_are_not_ours(name: str) -> None:
    assert parse_name(name) is None
