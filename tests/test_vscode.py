"""`mindpulse vscode`: what it writes, and that it leaves alone what people wrote."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mindpulse.cli import main
from mindpulse.cli.editor.jsonc import blanked, parse, with_entries
from mindpulse.debugging import attach
from mindpulse.errors import UsageError

LAUNCH = {
    "type": "object",
    "required": ["version", "configurations"],
    "properties": {
        "version": {"const": "0.2.0"},
        "configurations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "request"],
                "properties": {
                    "type": {"enum": ["debugpy", "node"]},
                    "request": {"enum": ["launch", "attach"]},
                    "program": {"type": "string"},
                    "module": {"type": "string"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "connect": {"type": "object", "required": ["host", "port"]},
                },
            },
        },
        "compounds": {
            "type": "array",
            "items": {"type": "object", "required": ["name", "configurations"]},
        },
    },
}
TASKS = {
    "type": "object",
    "required": ["version", "tasks"],
    "properties": {
        "version": {"const": "2.0.0"},
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["label", "type", "command", "problemMatcher"],
                "properties": {"type": {"enum": ["process", "shell"]}},
            },
        },
    },
}
OWN = """// launch what I need
{
  "version": "0.2.0", /* as ever */
  "configurations": [
    {
      "name": "mine, // not a comment",
      "type": "node",
      "request": "launch", // trailing comma next
    },
  ],
}
"""


def vscode(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["vscode", str(folder), *words])


def read(folder: Path, name: str) -> Any:
    return parse((folder / ".vscode" / name).read_text(), name)


def test_a_new_folder_gets_both_files(tmp_path: Path) -> None:
    assert vscode(tmp_path, "--ranks", "3", "--script", "run/pretrain.py").exit_code == 0
    launch, tasks = read(tmp_path, "launch.json"), read(tmp_path, "tasks.json")
    jsonschema.validate(launch, LAUNCH)
    jsonschema.validate(tasks, TASKS)
    ports = [c["connect"]["port"] for c in launch["configurations"] if c["request"] == "attach"]
    assert ports == [5678, 5679, 5680]
    assert len(launch["compounds"][0]["configurations"]) == 3
    assert launch["configurations"][0]["program"] == "${workspaceFolder}/run/pretrain.py"
    json.loads((tmp_path / ".vscode" / "launch.json").read_text())  # ours is plain JSON


def test_every_task_is_a_command_that_exists(tmp_path: Path) -> None:
    vscode(tmp_path)
    known = set(main.list_commands(None))  # type: ignore[arg-type]
    for task in read(tmp_path, "tasks.json")["tasks"]:
        assert task["args"][:2] == ["-m", "mindpulse.cli"]
        assert task["args"][2] in known


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_a_person_wrote_stays_byte_for_byte(newline: str, tmp_path: Path) -> None:
    own = OWN.replace("\n", newline).encode()
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    path.write_bytes(own)
    path.chmod(0o640)
    assert vscode(tmp_path).exit_code == 0
    written = path.read_bytes()
    begin = written.index(b"MindPulse") - 60
    assert own[:begin] == written[:begin]
    assert own.split(b"trailing comma next")[1].strip() in written.replace(b"    ", b"  ") or (
        written.rstrip().endswith(b"}")
    )
    for piece in (b"// launch what I need", b"/* as ever */", b"// trailing comma next"):
        assert piece in written
    assert (b"\r\n" in written) == (newline == "\r\n")
    assert path.stat().st_mode & 0o777 == 0o640
    launch = read(tmp_path, "launch.json")
    jsonschema.validate(launch, LAUNCH)
    assert launch["configurations"][0]["name"] == "mine, // not a comment"
    assert len(launch["configurations"]) == 4


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    vscode(tmp_path, "--ranks", "2")
    before = {p: p.read_bytes() for p in (tmp_path / ".vscode").iterdir()}
    told = vscode(tmp_path, "--ranks", "2")
    assert "nothing to add" in told.output
    assert {p: p.read_bytes() for p in (tmp_path / ".vscode").iterdir()} == before
    more = json.loads(vscode(tmp_path, "--ranks", "3", "--json").output)
    assert more[0]["added"] == ["MindPulse: attach to rank 2"]


def test_an_entry_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    mine = {"name": "MindPulse: train", "type": "debugpy", "request": "launch", "program": "x.py"}
    path.write_text(json.dumps({"version": "0.2.0", "configurations": [mine]}))
    told = vscode(tmp_path)
    assert "left as it is: MindPulse: train" in told.output
    assert read(tmp_path, "launch.json")["configurations"][0] == mine


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "version": "0.2.0",\n  "tasks": [ {"name": } ]\n}', r"launch\.json:3: .*name"),
        ("[1, 2]", "holds list, want an object"),
        ('{"configurations": 5}', "'configurations' is no array"),
        ("nonsense", r"launch\.json:1"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_and_left_alone(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    path.write_text(text)
    result = vscode(tmp_path)
    assert result.exit_code == 2
    assert re.search(told, result.output), result.output
    assert path.read_text() == text
    assert not (path.parent / "tasks.json").exists()


def test_empty_files_and_files_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    path.write_text("  // nothing yet\n")
    assert vscode(tmp_path).exit_code == 0
    jsonschema.validate(read(tmp_path, "launch.json"), LAUNCH)
    path.write_bytes(b'{"a": "\xff"}')
    refused = vscode(tmp_path)
    assert refused.exit_code == 2
    assert "save it as UTF-8" in refused.output


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    told = vscode(tmp_path, "--dry-run")
    assert "would add: MindPulse: train" in told.output
    assert not (tmp_path / ".vscode").exists()
    assert vscode(tmp_path / "missing").exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks": []}',
        '{"tasks": [1]}',
        '{"tasks": [1,]}',
        '{"tasks": [1, // one\n]}',
        '{"a": {"tasks": [3]}, "tasks": [1]}',
        '{"a": "]}", "tasks": [{"b": "[,]"}]}',
        "{}",
        '{"a": 1}',
        '{"a": 1,}',
        '{ // c\n}',
        "",
    ],
)  # fmt: skip
def test_entries_are_put_in_at_the_end(text: str) -> None:
    new = [{"label": "x"}, {"label": "y"}]
    before = parse(text, "f")
    after = parse(with_entries(text, "tasks", new, "f"), "f")
    assert after["tasks"] == [*before.get("tasks", []), *new]
    assert {k: v for k, v in after.items() if k != "tasks"} == {
        k: v for k, v in before.items() if k != "tasks"
    }


def test_comments_keep_their_places() -> None:
    text = '{"a": "//", /* ,} */ "b": [1,2,], // end\n}'
    plain = blanked(text)
    assert len(plain) == len(text)
    assert json.loads(plain) == {"a": "//", "b": [1, 2]}


def test_listening_needs_a_free_port(tmp_path: Path) -> None:
    code = (
        "from mindpulse.debugging.attach import listen\n"
        "print(listen())\n"
        "try:\n    listen()\nexcept ValueError as error:\n    print(error)\n"
    )
    port = attach.FIRST_PORT + 4321
    done = subprocess.run(
        [sys.executable, "-Xfrozen_modules=off", "-c", code], capture_output=True, text=True,
        check=True, timeout=60, env={**os.environ, "RANK_ID": "4321"},
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first == str(port)
    assert f"port {port} cannot be used" in second


def test_a_rank_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_ID", "first")
    with pytest.raises(UsageError, match="RANK_ID is 'first'"):
        attach.listen()
