"""`mindpulse query --sql`: right answers, and doors that stay shut."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb")

from mindpulse.cli import query
from mindpulse.cli.sql.engine import locked_database, plain_error, quick_interrupt
from mindpulse.cli.sql.parse import parse
from mindpulse.cli.sql.query import run_query
from mindpulse.cli.sql.tables import attempts_of_rows
from mindpulse.errors import UsageError
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.folder_run import FolderRun, open_folder
from synthetic import write_run
from test_cli_group import call, process
from test_export import ODD_STEPS, ODD_VALUES, SCALAR, WIDE, bits, odd, ranks, wide_values

__all__ = ["odd", "ranks"]  # fixtures


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "healthy", steps=120)


def ask(folder: Path, sql: str, *words: str) -> list[list[object]]:
    result = call("query", folder, "--sql", sql, "--json", "--limit", "0", *words)
    assert result.exit_code == 0, result.stderr
    rows: list[list[object]] = json.loads(result.stdout, parse_constant=pytest.fail)["rows"]
    return rows


def refused(folder: Path, sql: str, *words: str) -> str:
    result = call("query", folder, "--sql", sql, *words)
    assert result.exit_code == 2, result.stdout
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("mindpulse: ")
    return result.stderr


# right answers


def test_a_series_is_a_table_with_every_bit(odd: Path) -> None:
    rows = ask(odd, f'select rank, attempt, step, wall_time, value from "{SCALAR.tag}"')
    assert {tuple(row[:2]) for row in rows} == {(0, 1)}
    assert [row[2] for row in rows] == ODD_STEPS.tolist()
    assert np.array_equal(bits([float(str(row[4])) for row in rows]), bits(ODD_VALUES))


def test_a_wide_series_has_a_column_for_each_of_its_own(odd: Path) -> None:
    names = ", ".join(
        '"' + WIDE.column_name(index).replace('"', '""') + '"' for index in range(WIDE.width)
    )
    rows = ask(odd, f"select {names} from wide")
    table = np.array([[np.float32(str(value)) for value in row] for row in rows])
    assert np.array_equal(bits(table, "float32"), bits(wide_values(), "float32"))


def test_nan_is_a_value_and_not_a_null(odd: Path) -> None:
    tag = SCALAR.tag
    assert ask(odd, f'select count(*), count(value) from "{tag}"') == [[len(ODD_VALUES)] * 2]
    assert ask(odd, f'select count(*) from "{tag}" where isnan(value)') == [[1]]
    assert ask(odd, f'select value from "{tag}" where isinf(value) order by 1') == [
        ["-inf"],
        ["inf"],
    ]


def test_points_is_the_same_as_the_tables(run: Path) -> None:
    series = {tag: open_folder(run).series(tag) for tag in ("train_loss", "attn_focus")}
    rows = ask(run, "select tag, count(*), sum(value), min(step) from points group by 1 order by 1")
    told = {row[0]: row[1:] for row in rows}
    assert len(told) == 7
    for tag, found in series.items():
        total = float(found.values.astype(np.float64).sum())
        assert told[tag] == [found.values.size, pytest.approx(total, rel=1e-12), 1]
    rows = ask(run, "select \"column\", value from points where tag = 'attn_focus' and step = 7")
    assert rows[5][0] == "layer=1 head=1"
    stored = series["attn_focus"].values[6].astype(np.float64)
    assert [row[1] for row in rows] == stored.tolist()
    assert ask(run, "select distinct \"column\" from points where tag = 'train_loss'") == [[""]]


def test_series_lists_what_there_is(run: Path, ranks: Path) -> None:
    rows = ask(
        run, "select tag, unit, plugin, axes, width, rows, first_step, last_step from series"
    )
    told = {str(row[0]): row[1:] for row in rows}
    assert told["train_loss"] == ["", "scalar", "", 1, 120, 1, 120]
    assert told["attn_focus"] == ["", "vector", "layer x head", 16, 120, 1, 120]
    assert told["step_time_s"][0] == "s"
    rows = ask(ranks, "select tag, ranks, rows, first_step, last_step from series order by tag")
    assert rows == [["other", 1, 2, 1, 2], ["train_loss", 2, 6, 1, 5]]


def test_rows_know_their_rank_and_attempt(ranks: Path) -> None:
    sql = "select rank, attempt, step, value from train_loss order by rank, attempt, step"
    merged = [[0, 1, 1, 5.0], [0, 1, 2, 4.0], [0, 1, 3, 3.0], [0, 2, 4, 2.5], [0, 2, 5, 1.5]]
    other = [[1, 3, 1, 9.0]] if ask(ranks, sql, "--rank", "1")[0][1] == 3 else [[1, 1, 1, 9.0]]
    assert ask(ranks, sql) == merged + other
    assert ask(ranks, sql, "--rank", "0") == merged
    everything = ask(ranks, sql, "--attempt", "all", "--rank", "0")
    assert [row[1:3] for row in everything] == [[1, 1], [1, 2], [1, 3], [1, 4], [2, 4], [2, 5]]
    assert [row[2] for row in ask(ranks, sql, "--attempt", "2", "--rank", "0")] == [4, 5]


def test_attempts_of_a_series_that_one_of_them_lacks(tmp_path: Path) -> None:
    for tag, step in (("a", 1), ("b", 1), ("a", 5)):
        recorder = Recorder(tmp_path)
        recorder.write(SeriesSpec(tag), Rows.one(step, step * 1.0, 1.0))
        recorder.close()
    run = open_folder(tmp_path)
    for attempt in (None, "all"):
        series = run.series("a", 0, attempt)
        assert attempts_of_rows(run, "a", 0, attempt, series).tolist() == [1, 3][-len(series) :]


def test_notes_and_alerts_are_tables(run: Path) -> None:
    kinds = dict(ask(run, "select kind, count(*) from notes group by 1"))  # type: ignore[arg-type]
    assert kinds["snapshot"] == 8
    assert ask(run, "select step is null from notes where kind = 'fingerprint'") == [[True]]
    assert ask(run, "select count(*) from alerts") == [[0]]
    bad = write_run(run.parent / "bad", fault="lr-explosion", snapshots=False)
    call("watch", bad, "--once")
    rules = ask(bad, "select distinct rule from alerts where state = 'firing'")
    assert ["gradient-explosion"] in rules


def test_joins_windows_and_own_names(run: Path) -> None:
    loss = open_folder(run).series("train_loss").values
    sql = """
        with train_loss as (select step, value from train_loss where step <= 100)
        select a.step, a.value - b.value, avg(a.value) over (order by a.step rows 4 preceding)
        from train_loss a join grad_norm g using (step) join train_loss b on b.step = a.step - 1
        order by 1
    """
    rows = ask(run, sql)
    assert [row[0] for row in rows] == list(range(2, 101))
    assert [row[1] for row in rows] == (loss[1:100] - loss[:99]).tolist()
    assert rows[10][2] == pytest.approx(loss[7:12].mean(), rel=1e-12)
    assert ask(run, "select * from generate_series(1, 3)") == [[1], [2], [3]]
    assert ask(run, "with q as (select 1 as x) select x from q") == [[1]]
    assert len(ask(run, "describe train_loss")) == 5


def test_a_table_may_be_written_in_any_case(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    for tag in ("Loss", "loss", "Mean", 'quo"te', "a.b", "notes", "x; drop table y", "空 格"):
        recorder.write(SeriesSpec(tag), Rows.one(1, 1.0, float(len(tag))))
    recorder.close()
    assert ask(tmp_path, "select value from MEAN") == [[4.0]]
    assert ask(tmp_path, 'select value from "Loss"') == [[4.0]]
    assert ask(tmp_path, 'select value from "quo""te"') == [[6.0]]
    assert ask(tmp_path, 'select value from "a.b"') == [[3.0]]
    assert ask(tmp_path, 'select value from main."a.b"') == [[3.0]]
    assert ask(tmp_path, 'select value from "x; drop table y"') == [[15.0]]
    assert ask(tmp_path, 'select value from "空 格"') == [[3.0]]
    assert ask(tmp_path, "select value from points where tag = 'notes'") == [[5.0]]
    assert 'did you mean "Loss" or "loss"?' in refused(tmp_path, 'select * from "LOSS"')
    assert "differ in case only" in refused(tmp_path, 'select * from "Loss", "loss"')


PAGE = (Path(__file__).parent.parent / "docs" / "export.md").read_text("utf-8")


@pytest.mark.parametrize(
    "line", re.findall(r"^\$ mindpulse query (.*--sql.*)$", PAGE, re.MULTILINE)
)
def test_the_examples_of_the_manual_run(line: str, run: Path) -> None:
    folder, *words = shlex.split(line)
    assert folder == "./summary"
    result = call("query", run, *words)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 3


def test_the_manual_lists_the_tables_as_they_are(run: Path) -> None:
    for name, columns in re.findall(r"^\| `(\w+)` \| (`.*`)[^`]*\|$", PAGE, re.MULTILINE):
        told = ask(run, f"describe {name}")
        assert [row[0] for row in told] == re.findall(r"`(\w+)`", columns), name


# only what is named is read


class CountingRun(FolderRun):
    """Remembers which series were read whole."""

    read: list[str] = []  # noqa: RUF012

    def series(self, tag, rank=0, attempt=None, columns=None) -> Series:
        self.read.append(tag)
        return FolderRun.series(self, tag, rank, attempt, columns)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("select 1", []),
        ("select * from train_loss", ["train_loss"]),
        ("select (select max(value) from grad_norm)", ["grad_norm"]),
        ("select * from train_loss a join train_loss b using (step)", ["train_loss"]),
        ("select * from notes", []),
        ("select * from points where tag = 'grad_norm'", ["grad_norm"]),
        ("select * from points p where 'x' < p.tag and p.tag = 'grad_norm'", ["grad_norm"]),
        (
            "select * from points where tag in ('grad_norm', 'nosuch', 'train_loss') and step > 1",
            ["grad_norm", "train_loss"],
        ),
        (
            "select * from points where tag = 'grad_norm' "
            "union all select * from points where tag = 'train_loss'",
            ["grad_norm", "train_loss"],
        ),
        ("select * from points where tag = 'nosuch'", []),
        ("select * from points where tag = 'grad_norm' or step = 1", None),
        ("select * from points where tag <> 'grad_norm'", None),
        ("select * from points where not tag = 'grad_norm'", None),
        ("select * from points where 'a' in (tag, 'a')", None),
        ("select * from points where lower(tag) = 'grad_norm'", None),
        ("select * from points where tag = 'grad_norm' union all select * from points", None),
        ("select * from points p join points q using (step) where p.tag = 'grad_norm'", None),
        (
            "select * from (select 'grad_norm' as tag) s where exists "
            "(select 1 from points where s.tag = 'grad_norm')",
            None,
        ),
    ],
)
def test_only_the_named_series_are_read(run: Path, sql: str, wanted: list[str] | None) -> None:
    found = open_folder(run)
    counting = CountingRun(found.path, found.id, found.created, found.run_tags)
    counting.read.clear()
    run_query(counting, sql, [0], None, 0, 60.0)
    assert sorted(counting.read) == sorted(found.specs() if wanted is None else wanted)


def test_the_rest_of_an_endless_answer_is_never_computed(run: Path) -> None:
    result = call("query", run, "--sql", "select * from range(1000000000000)", "--limit", "3")
    assert result.stdout.split() == ["range", "0", "1", "2"]
    assert "--limit 0 prints all" in result.stderr


# shut doors


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from read_csv('/etc/passwd')", "read_csv() is not allowed"),
        ("select * from read_text('/etc/passwd')", "read_text() is not allowed"),
        ("select * from read_blob('/etc/passwd')", "read_blob() is not allowed"),
        ("select * from read_parquet('https://example.com/x.parquet')", "not allowed"),
        ("select * from (select * from glob('/etc/*'))", "glob() is not allowed"),
        ("select (select count(*) from sniff_csv('/etc/passwd'))", "not allowed"),
        ("with x as (select * from read_json('/etc/hosts')) select * from x", "not allowed"),
        ("select * from '/etc/passwd'", "no table '/etc/passwd'"),
        ("select * from 'https://example.com/x.csv'", "no table"),
        ("select * from pandas_scan(1::POINTER)", "pandas_scan() is not allowed"),
        ("select * from arrow_scan(1::POINTER, 1::POINTER, 1::POINTER)", "not allowed"),
        ("from query('select 1')", "query() is not allowed"),
        ("from query_table('train_loss')", "query_table() is not allowed"),
        ("from duckdb_settings()", "not allowed"),
        ("from duckdb_secrets()", "not allowed"),
        ("from information_schema.tables", "no table 'information_schema.tables'"),
        ("from pg_catalog.pg_tables", "no table"),
        ("from _mindpulse_0", "no table '_mindpulse_0'"),
        ("select getenv('HOME')", "getenv"),
        ("copy train_loss to '{place}/x.csv'", "changes nothing; this is COPY"),
        ("copy (select 1) to '{place}/x.parquet'", "this is COPY"),
        ("copy train_loss from '/etc/passwd'", "this is COPY"),
        ("attach '{place}/x.db'", "this is ATTACH"),
        ("detach memory", "this is DETACH"),
        ("install httpfs", "changes nothing"),
        ("load httpfs", "this is LOAD"),
        ("set memory_limit = '100GB'", "this is SET"),
        ("reset memory_limit", "changes nothing"),
        ("pragma database_list", "changes nothing"),
        ("pragma enable_external_access", None),
        ("export database '{place}/x'", "this is EXPORT"),
        ("import database '{place}/x'", None),
        ("create secret (type s3)", "this is CREATE"),
        ("create table t as select 1", "this is CREATE"),
        ("insert into train_loss values (1)", "this is INSERT"),
        ("delete from train_loss", "this is DELETE"),
        ("update train_loss set value = 0", "this is UPDATE"),
        ("drop view train_loss", "this is DROP"),
        ("with x as (delete from train_loss returning *) from x", None),
        ("call pragma_version()", "changes nothing"),
        ("checkpoint", "changes nothing"),
        ("begin", "this is TRANSACTION"),
        ("prepare x as select 1", "this is PREPARE"),
        ("set variable x = 1", "changes nothing"),
        ("use memory", "changes nothing"),
        ("select 1; select 2", "2 statements"),
        ("select 1; copy (select 1) to '{place}/x'", "2 statements"),
        ("", "0 statements"),
        ("-- nothing", "0 statements"),
        ("select * from json_execute_serialized_sql('x')", "not allowed"),
        ("show tables", "'select tag from series' lists them"),
        ("select $1", "parameter"),
    ],
)
def test_what_is_not_a_plain_question_is_refused(sql, told, run: Path, tmp_path: Path) -> None:
    message = refused(run, sql.format(place=tmp_path))
    assert (told or "") in message
    assert "root:" not in message
    assert not list(tmp_path.iterdir())


LOCKED = [
    "select * from read_csv('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from glob('/etc/*')",
    "copy (select 1) to '{place}/x.csv'",
    "attach '{place}/x.db'",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '100GB'",
    "set enable_external_access = true",
    "set lock_configuration = false",
    "set python_enable_replacements = true",
    "export database '{place}/x'",
    "select * from secret_list",
]


@pytest.mark.parametrize("sql", LOCKED)
def test_the_database_itself_is_locked(sql: str, tmp_path: Path) -> None:
    """The second wall: had the first one let it through, nothing would come of it."""
    import duckdb

    secret_list = {"word": np.array([1.0])}
    with locked_database() as connection, pytest.raises(duckdb.Error):
        connection.execute(sql.format(place=tmp_path)).fetchall()
    assert secret_list
    assert not list(tmp_path.iterdir())


def test_every_setting_is_in_force() -> None:
    with locked_database() as connection:
        wanted = "enable_external_access autoinstall_known_extensions autoload_known_extensions "
        wanted += "allow_community_extensions python_enable_replacements python_scan_all_frames"
        for name in wanted.split():
            (row,) = connection.execute(f"select current_setting('{name}')").fetchall()
            assert row[0] is False, name
        settings = "select current_setting('temp_directory'), current_setting('memory_limit')"
        (row,) = connection.execute(settings).fetchall()
        assert row == ("", "1.0 GiB")


BOMBS = [
    ("select count(*) from range(100000000000) a, range(10000000) b", "stopped after 0.5 s"),
    (
        "with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) from r",
        "stopped after 0.5 s",
    ),
]


@pytest.mark.parametrize(("sql", "told"), BOMBS)
def test_a_query_that_takes_too_long_is_stopped(sql: str, told: str, run: Path) -> None:
    began = time.monotonic()
    result = process("query", run, "--sql", sql, "--timeout", "0.5")
    assert result.returncode == 2
    assert told in result.stderr.decode()
    assert b"Traceback" not in result.stderr
    assert time.monotonic() - began < 20


DEAF = """
import time
from mindpulse.cli.sql.engine import time_limit
class Deaf:
    def interrupt(self):
        print("asked", flush=True)
with time_limit(Deaf(), 0.2):
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_query_that_hears_no_interrupt_ends_with_its_process() -> None:
    command = [sys.executable, "-c", DEAF]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("mindpulse: the query was stopped after 0.2 s")
    assert done.stdout.count("asked") > 3


GREEDY = [
    "select list(i) from range(10000000000) t(i)",
    "select string_agg(repeat('x', 1000000), '') from range(100000)",
    "select list_sort(range(1000000000))",
    "select repeat('x', 2000000000), repeat('y', 2000000000)",
    "select * from range(1000000000) order by random()",
]


@pytest.mark.parametrize("sql", GREEDY)
def test_a_query_that_wants_too_much_memory_is_refused(sql: str, run: Path) -> None:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # a child begins with the parent's
    before = max(resource.getrusage(one).ru_maxrss for one in who)
    result = process("query", run, "--sql", sql, "--timeout", "30")
    assert result.returncode == 2
    assert b"more than 1GiB of memory" in result.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 2_200_000)


def test_the_memory_of_the_process_is_free_again_after_a_query(run: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    refused(run, "select list(i) from range(10000000000) t(i)")
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize(
    "text", ["(" * 40_000 + "1" + ")" * 40_000, "1+" * 40_000 + "1", "x" * 10**6]
)
def test_a_query_that_is_nested_or_long_beyond_reason(text: str, run: Path) -> None:
    assert len(refused(run, f"select {text}")) < 1000


# errors


def test_an_error_shows_the_place_and_the_nearest_names(run: Path) -> None:
    message = refused(run, "select step, valu from train_loss")
    assert 'Candidate bindings: "value"' in message
    assert "LINE 1: select step, valu from train_loss" in message
    assert message.splitlines()[-1].strip("^").isspace()
    assert refused(run, "select 1 +\nfrom train_los").splitlines()[-1].strip() != ""
    lines = refused(run, "select '训练', 1\nfrom train_los where 1").splitlines()
    assert "no table 'train_los'; did you mean \"train_loss\"?" in lines[0]
    assert lines[1:] == ["  from train_los where 1", "       ^"]
    assert "syntax error" in refused(run, "selec 1")


def test_plain_error_drops_advice_that_cannot_be_followed() -> None:
    text = 'Parser Error: Max depth exceeded. Use "SET max_expression_depth TO x" to raise it.'
    assert plain_error(text) == "SQL: Max depth exceeded."


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--tag", "train_loss", "--sql", "select 1"],
        ["--sql", "select 1", "--follow"],
        ["--sql", "select 1", "--columns", "x"],
        ["--sql", "select 1", "--steps", "1:2"],
        ["--sql", "select 1", "--rank", "9"],
        ["--tag", "train_loss", "--csv"],
        ["--tag", "train_loss", "--follow", "--steps", "1:2"],
        ["--sql", "select 1", "--timeout", "0"],
    ],
)
def test_options_that_do_not_go_together(words: list[str], run: Path) -> None:
    result = call("query", run, *words)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


# output

LONG = "12345678901234567890.5"
VALUES = "select 0.1::float as f, 1::double / 3 as d, null as n, 'a b' as t, [1.5::double] as l, "
VALUES += "{'k': 1} as s, date '2026-01-02' as day, true as yes, 'nan'::double as nan, "
VALUES += "0.25 as dec, 12345678901234567890.5 as long"


def test_json_and_csv_keep_every_digit(run: Path) -> None:
    told = json.loads(call("query", run, "--sql", VALUES, "--json").stdout)
    assert told["columns"] == ["f", "d", "n", "t", "l", "s", "day", "yes", "nan", "dec", "long"]
    assert told["rows"][0][:2] == [0.1, 1 / 3]
    assert told["rows"][0][2:] == [
        None,
        "a b",
        [1.5],
        {"k": 1},
        "2026-01-02",
        True,
        "nan",
        0.25,
        LONG,
    ]
    assert told["more"] is False
    sql = "select step, value from train_loss order by step"
    text = call("query", run, "--sql", sql, "--csv", "--limit", "0").stdout
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["step", "value"]
    values = np.array([float(row[1]) for row in rows])
    assert np.array_equal(bits(values), bits(open_folder(run).series("train_loss").values))
    assert call("query", run, "--sql", VALUES, "--csv").stdout.splitlines()[1].startswith("0.1,")


def test_a_table_is_aligned_and_bounded(run: Path) -> None:
    result = call("query", run, "--sql", "select step, value from train_loss", "--limit", "3")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["step", "value"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]
    assert "the first 3 rows" in result.stderr
    told = json.loads(
        call("query", run, "--sql", "from train_loss", "--limit", "3", "--json").stdout
    )
    assert (len(told["rows"]), told["more"]) == (3, True)
    wide = call("query", run, "--sql", f"select '{'x' * 500}' as t, null as n").stdout
    assert max(map(len, wide.splitlines())) < 60
    assert "NULL" in wide
    assert call("query", run, "--sql", "select 1 as x where false").stdout == "x\n"


# query --tag: the last rows, and a range of steps


class LastOnly(FolderRun):
    """A run that can only be asked for its last rows, or block by block."""

    def series(self, tag, rank=0, attempt=None, columns=None) -> Series:
        raise AssertionError("the whole series was asked for")

    def last(self, tag, limit, rank=0, attempt=None) -> Series:
        return open_folder(self.path).last(tag, limit, rank, attempt)

    def blocks(self, tag, rank=0, attempt=None) -> Iterator[Series]:
        whole = open_folder(self.path).series(tag, rank, attempt)
        for start in range(0, len(whole), 7):
            yield Series(whole.spec, whole.rows[start : start + 7])


def test_the_last_rows_and_a_range_need_not_the_whole_series(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "open_run", lambda path: LastOnly(path, "", math.nan, {}))

    def steps(*words: str) -> list[int]:
        result = call("query", run, "--tag", "train_loss", "--json", *words)
        return [row["step"] for row in json.loads(result.stdout)["rows"]]

    assert steps("--limit", "2") == [119, 120]
    assert steps() == list(range(101, 121))
    assert steps("--steps", "30:60") == list(range(30, 61))
    assert steps("--steps", ":50", "--limit", "9") == list(range(42, 51))
    assert steps("--steps", "119:") == [119, 120]
    assert steps("--steps", "500:") == []


def test_parse_lists_tables_by_the_parser_itself() -> None:
    with locked_database() as connection:
        told = parse(
            connection, "select * from a, (select * from \"b c\" where 'from d' <> '') -- e"
        )
        assert [table.name for table in told.tables] == ["a", "b c"]
        with pytest.raises(UsageError, match="over 100000 bytes"):
            parse(connection, "select '" + "x" * 100_000 + "'")


def test_no_thread_is_left_behind(run: Path) -> None:
    ask(run, "select 1")
    names = [
        Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")
    ]
    assert not [name for name in names if "sql-limit" in name]


def test_ctrl_c_ends_a_query_at_once() -> None:
    """DuckDB does not come back to Python until it is done, and Python hears signals only then."""
    before = signal.getsignal(signal.SIGINT)
    with quick_interrupt():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == before
