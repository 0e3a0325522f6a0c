"""Chat robots: exact signatures, and only the code in the answer says that a message was taken."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from mindpulse.deliver.chat import Feishu, dingtalk_sign, feishu_sign
from mindpulse.deliver.message import Alert, Message
from mindpulse.deliver.outcome import REFUSED, RETRY, SENT, Outcome
from mindpulse.deliver.secret import Secret
from receivers import Hook, alert, drips, hangs, hook, resets, says, targets

RUN = Path("/data/bert/summary")
WORDS = {"en": "[error] the gradient <norm> is above 50 & rising", "zh": "[错误] 梯度范数超过 50"}
MESSAGE = Message("team", "en", (Alert(alert(), RUN, WORDS),))
SECRET = "SEC9f8e7d6c5b4a39281706f5e4d3c2b1a0"


def hmac_sha256(key: bytes, text: bytes) -> str:
    """RFC 2104 by hand: an implementation of its own to compare with."""
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(k ^ 0x36 for k in key) + text).digest()
    return base64.b64encode(hashlib.sha256(bytes(k ^ 0x5C for k in key) + inner).digest()).decode()


def sender(kind: str, server: Hook, tmp_path: Path, monkeypatch, secret: str = "", **keys: object):
    monkeypatch.setenv("HOOK_URL", server.url + "/robot/send?access_token=t0k3n-1234567890")
    lines = [f'type = "{kind}"', 'name = "team"', 'url_env = "HOOK_URL"']
    if secret:
        monkeypatch.setenv("HOOK_SECRET", secret)
        lines.append('secret_env = "HOOK_SECRET"')
    lines += [f"{key} = {value}" for key, value in keys.items()]
    return targets(tmp_path, "[[receiver]]\n" + "\n".join(lines))[0].sender


def test_feishu_signs_and_says_it_in_the_body(tmp_path: Path, monkeypatch) -> None:
    with hook(says({"code": 0, "msg": "success"})) as server:
        found = sender("feishu", server, tmp_path, monkeypatch, SECRET).send(MESSAGE, 1.7e9 + 0.9)
    assert found == Outcome(SENT, "HTTP 200 OK")
    sent = server.requests[0].json
    assert sent["timestamp"] == "1700000000"
    assert sent["sign"] == hmac_sha256(f"1700000000\n{SECRET}".encode(), b"")
    assert sent["msg_type"] == "text"
    assert "the gradient <norm> is above 50" in sent["content"]["text"]


def test_feishu_without_a_secret_sends_no_signature(tmp_path: Path, monkeypatch) -> None:
    with hook(says({"code": 0})) as server:
        assert sender("feishu", server, tmp_path, monkeypatch).send(MESSAGE, 1.0).state == SENT
    assert set(server.requests[0].json) == {"msg_type", "content"}


def test_a_name_calls_nobody_and_any_folder_can_be_told(tmp_path: Path, monkeypatch) -> None:
    odd = Path(os.fsdecode(b"/data/caf\xe9/\xff"))
    nasty = Alert(alert(), odd, {"en": '<at user_id="all">all</at>'})
    with hook(says({"code": 0})) as server:
        send = sender("feishu", server, tmp_path, monkeypatch).send
        assert send(Message("team", "en", [nasty]), 1.0).state == SENT
    text = server.requests[0].json["content"]["text"]
    assert "<at" not in text
    assert "/data/caf\ufffd/\ufffd" in text


def test_dingtalk_signs_in_the_address(tmp_path: Path, monkeypatch) -> None:
    with hook(says({"errcode": 0, "errmsg": "ok"})) as server:
        send = sender("dingtalk", server, tmp_path, monkeypatch, SECRET).send
        assert send(MESSAGE, 1.7e9 + 0.123).state == SENT
    request = server.requests[0]
    assert request.query == {
        "access_token": "t0k3n-1234567890",
        "timestamp": "1700000000123",
        "sign": hmac_sha256(SECRET.encode(), f"1700000000123\n{SECRET}".encode()),
    }
    assert request.json["msgtype"] == "text"
    assert "gradient" in request.json["text"]["content"]


def test_dingtalk_agrees_with_apprise() -> None:
    from apprise.plugins.dingtalk import NotifyDingTalk

    stamp, sign = NotifyDingTalk(token="abcdef", secret=SECRET.replace("-", "")).get_signature()
    ours = dingtalk_sign(str(stamp), Secret(SECRET))
    assert NotifyDingTalk.unquote(sign) == ours


def test_signatures_depend_on_each_part() -> None:
    for sign in (feishu_sign, dingtalk_sign):
        assert len({sign("1", Secret("abcdefgh")), sign("2", Secret("abcdefgh"))}) == 2
        assert sign("1", Secret("abcdefgh")) != sign("1", Secret("abcdefgi"))


def test_wecom_cuts_at_its_2048_bytes(tmp_path: Path, monkeypatch) -> None:
    long = Message("team", "zh", [Alert(alert(n), RUN, {"zh": "梯" * 200}) for n in range(9)])
    with hook(says({"errcode": 0, "errmsg": "ok"})) as server:
        assert sender("wecom", server, tmp_path, monkeypatch).send(long, 1.0).state == SENT
    content = server.requests[0].json["text"]["content"]
    assert 2040 <= len(content.encode()) <= 2048
    assert content.endswith("梯...")
    assert "\\u" not in server.requests[0].body.decode()


def test_slack_escapes_and_wants_ok(tmp_path: Path, monkeypatch) -> None:
    with hook(says("ok"), says("invalid_payload")) as server:
        send = sender("slack", server, tmp_path, monkeypatch).send
        assert send(MESSAGE, 1.0).state == SENT
        assert send(MESSAGE, 1.0) == Outcome(REFUSED, 'HTTP 200, but not "ok": invalid_payload')
    assert "the gradient &lt;norm&gt; is above 50 &amp; rising" in server.requests[0].json["text"]


@pytest.mark.parametrize(
    ("kind", "answer", "state", "wait_s", "words"),
    [
        ("feishu", {"code": 19021, "msg": "sign match fail"}, REFUSED, 0, "code 19021: sign match"),
        ("feishu", {"code": 11232, "msg": "frequency limited"}, RETRY, 60, "code 11232"),
        ("feishu", {"StatusMessage": "success"}, RETRY, 0, "without 'code'"),
        ("feishu", {"code": False}, REFUSED, 0, "code False"),
        ("dingtalk", {"errcode": 310000, "errmsg": "sign not match"}, REFUSED, 0, "310000: sign"),
        ("dingtalk", {"errcode": 130101, "errmsg": "send too fast"}, RETRY, 60, "130101"),
        ("dingtalk", {"errcode": -1, "errmsg": "busy"}, RETRY, 0, "errcode -1"),
        ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, REFUSED, 0, "93000"),
        ("wecom", {"errcode": 45009, "errmsg": "api freq out of limit"}, RETRY, 60, "45009"),
        ("wecom", "<html>please log in</html>", RETRY, 0, "please log in"),
        ("wecom", [0], RETRY, 0, "without 'errcode'"),
    ],
)
def test_http_200_is_not_success(
    kind, answer, state, wait_s, words, tmp_path: Path, monkeypatch
) -> None:
    with hook(says(answer)) as server:
        found = sender(kind, server, tmp_path, monkeypatch).send(MESSAGE, 1.0)
    assert (found.state, found.wait_s) == (state, wait_s)
    assert words in found.detail


def busy_for_half_an_hour(handler: BaseHTTPRequestHandler) -> None:
    """Names a time of day, counted from when it is asked."""
    end = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1800))
    says("", 503, Retry_After=end)(handler)


@pytest.mark.parametrize(
    ("answer", "state", "least_s", "most_s"),
    [
        (says("slow down", 429, Retry_After="7"), RETRY, 7, 7),
        (says("", 429), RETRY, 60, 60),
        (busy_for_half_an_hour, RETRY, 1700, 1800),
        (says("", 503, Retry_After="soon"), RETRY, 0, 0),
        (says("", 429, Retry_After="9" * 30), RETRY, 3600, 3600),
        (says("", 500), RETRY, 0, 0),
        (says("", 408), RETRY, 0, 0),
        (says("no_service", 404), REFUSED, 0, 0),
        (says("", 302, Location="http://127.0.0.1:1/elsewhere"), REFUSED, 0, 0),
        (says("", 599), RETRY, 0, 0),
        (resets, RETRY, 0, 0),
    ],
)
def test_what_follows_from_a_status(
    answer, state, least_s, most_s, tmp_path: Path, monkeypatch
) -> None:
    with hook(answer) as server:
        found = sender("slack", server, tmp_path, monkeypatch).send(MESSAGE, 1.0)
    assert found.state == state
    assert least_s <= found.wait_s <= most_s
    assert len(server.requests) == 1  # neither redirected nor tried again behind our back


@pytest.mark.parametrize("answer", [hangs, drips])
def test_an_attempt_ends_in_time(answer, tmp_path: Path, monkeypatch) -> None:
    with hook(answer) as server:
        begun = time.monotonic()
        found = sender("slack", server, tmp_path, monkeypatch, timeout_s=0.4).send(MESSAGE, 1.0)
        assert time.monotonic() - begun < 2.0
    assert found == Outcome(RETRY, "no answer within 0.4 s")


def test_nobody_there(tmp_path: Path, monkeypatch) -> None:
    with hook() as server:
        send = sender("slack", server, tmp_path, monkeypatch).send
    assert send(MESSAGE, 1.0) == Outcome(RETRY, "Connection refused")


def closes(handler) -> None:
    handler.close_connection = True


def test_a_connection_that_is_closed(tmp_path: Path, monkeypatch) -> None:
    with hook(closes) as server:
        found = sender("slack", server, tmp_path, monkeypatch).send(MESSAGE, 1.0)
    assert found == Outcome(RETRY, "the connection was closed without an answer")


def test_a_name_that_nobody_knows(monkeypatch) -> None:
    from mindpulse.deliver.http import Http

    found = Feishu(Http(Secret("https://no-such-host.invalid/hook/4711-abcdef"))).send(MESSAGE, 1.0)
    assert found.state == RETRY
    assert "resolved" in found.detail or "proxy" in found.detail
