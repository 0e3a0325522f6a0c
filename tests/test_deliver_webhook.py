"""A webhook of one's own: documents, templates, keys, certificates, proxies; and Apprise, files."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
from pathlib import Path

import pytest
import trustme

from mindpulse.deliver.message import Alert, Message
from mindpulse.deliver.outcome import REFUSED, RETRY, SENT
from mindpulse.deliver.webhook import fill
from receivers import alert, hook, says, targets

RUN = Path("/data/bert/summary")
WORDS = {"en": "the gradient norm is above 50", "zh": "梯度范数超过 50"}
NEWS = (
    Alert(alert(0), RUN, WORDS),
    Alert(alert(1, evidence={"last(grad_norm)": float("inf")}), RUN, WORDS),
    Alert(alert(0, "resolved"), RUN, {"en": "over"}),
)
MESSAGE = Message("own", "en", NEWS, ("request 3: stop",), lost=2)
KEY = "wh-5ecret-0123456789abcdef"


def sender(tmp_path: Path, url: str, *lines: str):
    head = ["[[receiver]]", 'name = "own"', 'type = "webhook"', f'url = "{url}"', "timeout_s = 2"]
    return targets(tmp_path, "\n".join([*head, *lines]))[0].sender


def test_the_document(tmp_path: Path) -> None:
    with hook() as server:
        assert sender(tmp_path, server.url).send(MESSAGE, 1.7e9).state == SENT
    request = server.requests[0]
    found = request.json
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert (found["version"], found["status"], found["severity"]) == (1, "firing", "error")
    assert (found["run"], found["count"], found["lost"]) == ("bert/summary", 3, 2)
    assert found["time"] == "2023-11-14T22:13:20.000Z"
    assert [a["id"] for a in found["alerts"]] == [a.event.id for a in NEWS]
    assert found["alerts"][1]["evidence"] == {"last(grad_norm)": "inf"}
    assert found["alerts"][0]["message"]["zh"] == "梯度范数超过 50"
    assert "learning rate" in found["alerts"][0]["causes"]["en"]
    assert "request 3: stop" in found["text"]
    assert "2 earlier messages" in found["text"]


def test_a_template_of_json(tmp_path: Path) -> None:
    table = 'json = { msg = "$title ($count)", list = "$alerts", n = ["$step", 7], price = "$$5" }'
    with hook() as server:
        assert sender(tmp_path, server.url, table).send(MESSAGE, 1.0).state == SENT
    found = server.requests[0].json
    assert found["msg"] == "MindPulse: 3 alerts, the worst: error - bert/summary (3)"
    assert [a["step"] for a in found["list"]] == [10, 11, 15]
    assert (found["n"], found["price"]) == ([10, 7], "$5")


def test_what_a_template_is_given_cannot_break_out_of_it(tmp_path: Path) -> None:
    nasty = Alert(alert(rule='x", "admin": "$text'), RUN, {"en": 'say "hi" \\ $title\n{0}'})
    with hook() as server:
        send = sender(tmp_path, server.url, 'json = { a = "$rule", b = "$text" }').send
        assert send(Message("own", "en", (nasty,)), 1.0).state == SENT
    found = server.requests[0].json
    assert set(found) == {"a", "b"}
    assert found["a"] == 'x", "admin": "$text'
    assert 'say "hi" \\ $title\n{0}' in found["b"]


def test_a_template_of_text(tmp_path: Path) -> None:
    lines = ['text = "title=$title&n=$count"', 'content_type = "application/x-custom"']
    with hook() as server:
        assert sender(tmp_path, server.url, *lines).send(MESSAGE, 1.0).state == SENT
    assert server.requests[0].body.startswith(b"title=MindPulse: 3 alerts")
    assert server.requests[0].body.endswith(b"&n=3")
    assert server.requests[0].headers["Content-Type"] == "application/x-custom"


def test_a_value_that_is_expected_in_the_answer(tmp_path: Path) -> None:
    with hook(says({"ok": True}), says({"ok": False}), says("fine")) as server:
        send = sender(tmp_path, server.url, "expect = { ok = true }").send
        assert [send(MESSAGE, 1.0).state for _ in range(3)] == [SENT, REFUSED, REFUSED]


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ([], "Authorization", f"Bearer {KEY}"),
        (['auth = "basic"', 'user = "ops"'], "Authorization", "Basic "),
        (['auth = "header"', 'auth_header = "X-Api-Key"'], "X-Api-Key", KEY),
    ],
)
def test_ways_to_show_a_key(lines, name, value, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WEBHOOK_KEY", KEY)
    with hook() as server:
        send = sender(tmp_path, server.url, 'secret_env = "WEBHOOK_KEY"', *lines).send
        assert send(MESSAGE, 1.0).state == SENT
    if value == "Basic ":
        value += base64.b64encode(f"ops:{KEY}".encode()).decode()
    assert server.requests[0].headers[name] == value


def test_a_signed_body(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WEBHOOK_KEY", KEY)
    with hook() as server:
        send = sender(tmp_path, server.url, 'secret_env = "WEBHOOK_KEY"', 'auth = "hmac"').send
        assert send(MESSAGE, 1.0).state == SENT
    request = server.requests[0]
    wanted = hmac.new(KEY.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-MindPulse-Signature"] == f"sha256={wanted}"


def test_passwords_of_netrc_are_not_sent(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password netrc-passw0rd\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with hook() as server:
        assert sender(tmp_path, server.url).send(MESSAGE, 1.0).state == SENT
    assert "Authorization" not in server.requests[0].headers


def test_certificates_are_verified(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "own-ca.pem"))
    with hook(tls=context) as server:
        refused = sender(tmp_path, server.url).send(MESSAGE, 1.0)
        assert refused.state == RETRY
        assert refused.detail.startswith("no secure connection: ")
        assert "certificate" in refused.detail
        assert server.requests == []
        trusting = sender(tmp_path, server.url, 'ca_file = "own-ca.pem"')
        assert trusting.send(MESSAGE, 1.0).state == SENT
    assert len(server.requests) == 1


def test_a_proxy_of_the_environment(tmp_path: Path, monkeypatch) -> None:
    with hook() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "")
        assert sender(tmp_path, "http://alerts.example/in").send(MESSAGE, 1.0).state == SENT
        assert proxy.requests[0].headers["Host"] == "alerts.example"
        with hook() as direct:  # is not to be reached through a proxy
            assert sender(tmp_path, direct.url).send(MESSAGE, 1.0).state == SENT
            assert len(direct.requests) == 1
    assert len(proxy.requests) == 1


def test_apprise(tmp_path: Path, monkeypatch) -> None:
    with hook(says("ok"), says("no", 500)) as server:
        monkeypatch.setenv("APPRISE_URL", server.url.replace("http", "json") + "/in")
        text = '[[receiver]]\nname = "many"\ntype = "apprise"\nurl_env = "APPRISE_URL"\n'
        send = targets(tmp_path, text)[0].sender.send
        assert send(MESSAGE, 1.0).state == SENT
        assert send(MESSAGE, 1.0).state == RETRY
    found = server.requests[0].json
    assert "3 alerts" in found["title"]
    assert "the gradient norm is above 50" in found["message"]


def test_a_file_of_lines(tmp_path: Path) -> None:
    text = '[[receiver]]\nname = "log"\ntype = "file"\npath = "alerts-for-tool.jsonl"\n'
    send = targets(tmp_path, text)[0].sender.send
    assert [send(MESSAGE, 1.0).state for _ in range(2)] == [SENT, SENT]
    lines = (tmp_path / "alerts-for-tool.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line).get("state") for line in lines] == [
        "firing", "firing", "resolved", None,
    ] * 2  # fmt: skip
    assert json.loads(lines[3])["notes"] == ["request 3: stop"]


def test_filling_keeps_what_is_no_text() -> None:
    assert fill([1, None, True, {"a": "$x"}], {"x": [2]}) == [1, None, True, {"a": [2]}]
    assert fill("x is $x", {"x": [2]}) == "x is [2]"
