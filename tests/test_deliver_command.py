"""`mindpulse deliver`, `mindpulse watch --deliver`, and that secrets show up nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest

from mindpulse.deliver import Deliveries
from mindpulse.deliver.message import Message
from mindpulse.deliver.secret import Secret, redact
from mindpulse.errors import UsageError
from receivers import alert, hook, ids, quick, resets, says, targets, tell
from synthetic import write_run
from test_cli_group import call
from test_deliver_mail import Box, smtp


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_test_says_what_came_back(tmp_path: Path) -> None:
    with hook() as good, hook(says("no such hook", 404)) as bad:
        text = quick("good", good.url) + quick("bad-one", bad.url)
        config = write(tmp_path / "receivers.toml", text)
        result = call("deliver", "test", config)
        found = json.loads(call("deliver", "test", config, "--json").stdout)
        assert good.requests[0].json["status"] == "test"
    assert result.exit_code == 1, result.output
    first, second = result.stdout.splitlines()
    assert first.startswith("good     webhook       sent  HTTP 200 OK (")
    assert second.startswith("bad-one  webhook       FAILED  HTTP 404 Not Found: no such hook (")
    assert [(one["receiver"], one["state"]) for one in found] == [
        ("good", "sent"),
        ("bad-one", "refused"),
    ]


def test_all_reached_is_exit_code_0_and_check_sends_nothing(tmp_path: Path) -> None:
    with hook() as server:
        config = write(tmp_path / "receivers.toml", quick("good", server.url))
        assert call("deliver", "check", config).stdout == "good  webhook       fine\n"
        assert server.requests == []
        assert call("deliver", "test", config).exit_code == 0
        assert len(server.requests) == 1


@pytest.mark.parametrize("command", [["deliver", "test"], ["watch", "DIR", "--once", "--deliver"]])
def test_a_wrong_file_ends_the_call(command: list[str], tmp_path: Path) -> None:
    config = write(tmp_path / "receivers.toml", '[[receiver]]\nname = "x"\ntype = "slak"\n')
    run = write_run(tmp_path / "run", steps=20, snapshots=False)
    result = call(*(run if word == "DIR" else word for word in command), config)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'slack'" in result.stderr


@pytest.mark.parametrize("way", ["option", "environment"])
def test_the_watcher_delivers_what_it_finds_once(way: str, tmp_path: Path, monkeypatch) -> None:
    run = write_run(tmp_path / "run", fault="lr-explosion", snapshots=False)
    with hook() as server:
        config = write(tmp_path / "receivers.toml", quick("ops", server.url, group_s=0.2))
        words = ["--deliver", str(config)]
        if way == "environment":
            monkeypatch.setenv("MINDPULSE_DELIVER", str(config))
            words = []
        first = call("watch", run, "--once", *words)
        assert first.exit_code == 1
        told = [a for request in server.requests for a in request.json["alerts"]]
        assert "gradient-explosion" in {a["rule"] for a in told}
        assert "receiver 'ops': " in first.stderr
        assert "alert sent in 1 message" in first.stderr  # one cause, one alert
        count = len(server.requests)
        second = call("watch", run, "--once", *words)
        assert len(server.requests) == count
        assert "receiver" not in second.stderr
    assert json.loads(call("analyze", run, "--json").stdout)["files"]["foreign"] == 0
    assert len(ids(server.requests)) == len({(a["id"], a["state"]) for a in told})


def test_the_watcher_says_what_was_not_delivered(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", fault="lr-explosion", snapshots=False)
    with hook(says("", 404)) as server:
        config = write(tmp_path / "receivers.toml", quick("ops", server.url))
        result = call("watch", run, "--once", "--deliver", config)
    assert result.exit_code == 1  # the alerts, not the receiver
    assert "gradient-explosion" in result.stdout
    assert "refused (HTTP 404 Not Found)" in result.stderr.splitlines()[-1]


def test_the_watcher_passes_actions_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", fault="lr-explosion", snapshots=False)
    with hook() as server:
        config = write(tmp_path / "receivers.toml", quick("ops", server.url, actions=True))
        call("watch", run, "--once", "--act", "scale_lr", "--deliver", config)
        notes = [note for request in server.requests for note in request.json["notes"]]
    assert any("multiply the learning rate by 0.5" in note for note in notes)


TOKEN = "T0kenPart-a1b2c3d4e5f60718"
SIGNING = "SECs1gn1ng-99887766554433"
PASSWORD = "Pa55+word/with=odd&signs"
SECRETS = (TOKEN, SIGNING, PASSWORD, "Pa55%2Bword", "d0oR-k3y-from-a-file")


def everything(tmp_path: Path, url: str, port: int) -> str:
    common = "every_s = 0\ngroup_s = 0\ntimeout_s = 1\n"
    chats = "".join(
        f'[[receiver]]\nname = "{kind}"\ntype = "{kind}"\nurl_env = "SECRET_URL"\n{common}'
        + ('secret_env = "SECRET_SIGN"\n' if kind in ("feishu", "dingtalk") else "")
        for kind in ("feishu", "dingtalk", "wecom", "slack", "webhook")
    )
    (tmp_path / "door.key").write_text("d0oR-k3y-from-a-file")
    (tmp_path / "door.key").chmod(0o600)
    return (
        chats
        + f'[[receiver]]\nname = "am"\ntype = "alertmanager"\nurl = "{url}"\n{common}'
        + 'secret_file = "door.key"\nauth = "basic"\nuser = "ops"\n'
        + f'[[receiver]]\nname = "mail"\ntype = "email"\nhost = "127.0.0.1"\nport = {port}\n'
        + common
        + 'security = "none"\nuser = "ops"\nsecret_env = "SECRET_PASSWORD"\n'
        + 'from = "a@b.example"\nto = "c@d.example"\n'
        + '[[receiver]]\nname = "apprise"\ntype = "apprise"\nurl_env = "SECRET_APPRISE"\n'
        + "every_s = 0\ngroup_s = 0\n"
    )


def echo(handler) -> None:
    """A server that answers a refusal with everything that it was told."""
    told = f"{handler.path} {dict(handler.headers)} is wrong: {TOKEN} {SIGNING} {PASSWORD}"
    says(told, 403)(handler)


@pytest.mark.parametrize("server_does", ["echoes", "resets", "is-gone"])
def test_secrets_show_up_nowhere(
    server_does: str, tmp_path: Path, monkeypatch, caplog, capfd
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    run, shown = tmp_path / "run", []
    with hook(echo if server_does == "echoes" else resets) as server, smtp(Box()) as mail:
        monkeypatch.setenv("SECRET_URL", f"{server.url}/hook/{TOKEN}?access_token={TOKEN}")
        monkeypatch.setenv("SECRET_APPRISE", f"{server.url}/{TOKEN}".replace("http", "json"))
        monkeypatch.setenv("SECRET_SIGN", SIGNING)
        monkeypatch.setenv("SECRET_PASSWORD", PASSWORD)
        found = targets(tmp_path, everything(tmp_path, server.url, mail.port))
        shown += [repr(found), str(found)]
        if server_does != "is-gone":
            shown += deliver(run, found, said)
    if server_does == "is-gone":
        shown += deliver(run, found, said)
    result = call("deliver", "test", tmp_path / "receivers.toml")
    assert result.exit_code == 1, result.output
    shown += [result.output, *said, caplog.text, *capfd.readouterr()]
    shown += [file.read_text() for file in run.iterdir()]
    assert len(said) >= 6  # it was really tried, and failed
    for secret in SECRETS:
        assert not any(secret in text for text in shown), secret


def deliver(run: Path, found, said: list[str]) -> list[str]:
    with Deliveries(found, [run], report=said.append, close_s=3) as deliveries:
        tell(run, alert())
        deliveries.deliver(alert())
    now = [target.sender.send(Message("x", test=True), 1.7e9) for target in found]
    return [repr(deliveries.tallies), *(t.sentence() for t in deliveries.tallies), repr(now)]


def test_a_secret_keeps_itself_out_of_errors_and_pickles() -> None:
    secret = Secret("v3ry-s3cret/value+1")
    texts = [repr(secret), str(secret), f"{secret}", repr({"a": [secret]})]
    try:
        raise ValueError(secret)
    except ValueError as error:
        texts += traceback.format_exception(error)
    assert not any("v3ry" in text for text in texts)
    with pytest.raises(TypeError, match="not written"):
        __import__("pickle").dumps(secret)
    assert redact("at https://h/?key=v3ry-s3cret%2Fvalue%2B1&x") == "at https://h/?key=***&x"
    with pytest.raises(UsageError, match="3 characters"):
        Secret("abc")


def test_a_library_that_logs_an_address_logs_it_without_the_secret(caplog) -> None:
    caplog.set_level(logging.DEBUG)
    Secret("https://h.example/services/T0AAAAAAA/l0gged-t0ken-4711")
    logging.getLogger("urllib3.connectionpool").debug(
        '%s "POST %s HTTP/1.1" %d',
        "https://h.example",
        "/services/T0AAAAAAA/l0gged-t0ken-4711",
        200,
    )
    assert '"POST *** HTTP/1.1" 200' in caplog.text
