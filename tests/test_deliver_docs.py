"""Every receiver of docs/deliver.md is real: each example is loaded, sends, and is understood."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from mindpulse.deliver.http import Http
from mindpulse.deliver.kinds import KINDS
from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import SENT
from mindpulse.deliver.settings import Settings
from mindpulse.deliver.webhook import NAMES
from receivers import hook, says, targets
from test_deliver_mail import Box, smtp

PAGE = (Path(__file__).parent.parent / "docs" / "deliver.md").read_text("utf-8")
EXAMPLES = {
    re.search(r'type = "(\w+)"', block)[1] + str(number): block  # type: ignore[index]
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
}
ANSWERS = {
    "feishu": {"code": 0},
    "dingtalk": {"errcode": 0},
    "wecom": {"errcode": 0},
    "webhook": {"accepted": True},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str, tmp_path: Path, monkeypatch) -> None:
    kind, text = name.rstrip("0123456789"), EXAMPLES[name]
    monkeypatch.setenv("SMTP_PASSWORD", "p4ssw0rd-of-docs")
    monkeypatch.setenv("OPS_KEY", "0psk3y-of-docs")
    monkeypatch.setenv("FEISHU_SECRET", "f3ishu-of-docs")
    (tmp_path / "dingtalk.key").write_text("SECdingtalk-0f-docs")
    (tmp_path / "dingtalk.key").chmod(0o600)
    with hook(says(ANSWERS.get(kind, "ok"))) as server, smtp(Box()) as mail:
        address = server.url if kind != "apprise" else server.url.replace("http", "json")
        monkeypatch.setenv(f"{'PAGER' if 'PAGER' in text else kind.upper()}_URL", address + "/x")
        assert targets(tmp_path, text)  # as it stands there
        text = re.sub(r'^url = "[^"]*"', f'url = "{server.url}"', text, flags=re.MULTILINE)
        for before, after in (
            ('host = "smtp.example.org"', 'host = "127.0.0.1"'),
            ("port = 587", f"port = {mail.port}"),
            ('security = "starttls"', 'security = "none"'),
            ('user = "watch"\nsecret_env = "SMTP_PASSWORD"\n', ""),
        ):
            text = text.replace(before, after)
        (found,) = targets(tmp_path, text)
        settings = found.settings
        outcome = found.sender.send(Message(settings.name, settings.lang, test=True), 1.7e9)
        assert outcome.state == SENT, outcome
        http = isinstance(getattr(found.sender, "http", None), Http) or kind == "apprise"
        assert len(server.requests) == http
    assert (tmp_path / "alerts-for-my-tool.jsonl").exists() == (kind == "file")


def test_every_type_has_an_example_and_every_key_its_line() -> None:
    assert {name.rstrip("0123456789") for name in EXAMPLES} == set(KINDS)
    for field in fields(Settings):
        key = "type" if field.name == "kind" else field.name
        assert re.search(rf"^\| .*`{key}`", PAGE, re.MULTILINE), key
    document = PAGE[PAGE.index("### A webhook") : PAGE.index("### A file")]
    for name in NAMES:
        assert f"`{name}`" in document
