"""E-mail through a real SMTP server."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from mindpulse.deliver.message import Alert, Message
from mindpulse.deliver.outcome import REFUSED, RETRY, SENT
from receivers import alert, free_port, hangs, hook, targets

PASSWORD = "p4ssw0rd-of-the-mail-server"
RUN = Path("/data/bert/summary")
MESSAGE = Message("mail", "zh", (Alert(alert(), RUN, {"zh": "梯度范数超过 50"}),))


class Box:
    """A handler of aiosmtpd that keeps mails and answers what it was told to."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.mails: list = []
        self.refused: dict[str, str] = {}

    async def handle_RCPT(self, server, session, envelope, address, options) -> str:  # noqa: N802
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope) -> str:  # noqa: N802
        if self.answers:
            return self.answers.pop(0)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 taken"


@contextmanager
def smtp(box: Box, **options: object) -> Iterator[Controller]:
    server = Controller(box, hostname="127.0.0.1", port=free_port(), **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def sender(tmp_path: Path, port: int, *lines: str):
    head = ["[[receiver]]", 'name = "mail"', 'type = "email"', 'host = "127.0.0.1"']
    head += [f"port = {port}", 'from = "watch@lab.example"', "timeout_s = 1"]
    if not any(line.startswith("to =") for line in lines):
        head.append('to = ["a@lab.example", "b@lab.example"]')
    if not any(line.startswith("security =") for line in lines):
        head.append('security = "none"')
    return targets(tmp_path, "\n".join([*head, *lines]))[0].sender


def test_a_mail_in_chinese(tmp_path: Path) -> None:
    box = Box()
    with smtp(box) as server:
        found = sender(tmp_path, server.port).send(MESSAGE, 1.7e9)
    assert (found.state, found.detail) == (SENT, "taken by 127.0.0.1")
    mail = box.mails[0]
    assert mail["Subject"] == "MindPulse [错误] gradient-explosion - bert/summary"
    assert (mail["From"], mail["To"]) == ("watch@lab.example", "a@lab.example, b@lab.example")
    assert mail["Date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "梯度范数超过 50" in mail.get_content()
    assert "学习率" in mail.get_content()


def test_the_same_alerts_have_the_same_id(tmp_path: Path) -> None:
    other = Message("mail", "zh", (Alert(alert(1), RUN),))
    box = Box()
    with smtp(box) as server:
        send = sender(tmp_path, server.port).send
        for message in (MESSAGE, MESSAGE, other):
            assert send(message, 1.7e9).state == SENT
    first, second, third = (mail["Message-ID"] for mail in box.mails)
    assert first == second != third
    assert first.endswith("@lab.example>")


def test_a_name_cannot_add_headers(tmp_path: Path) -> None:
    nasty = Alert(alert(rule="x\r\nBcc: spy@evil.example"), Path("/a/b\nX-Evil: 1"))
    box = Box()
    with smtp(box) as server:
        sent = sender(tmp_path, server.port).send(Message("mail", "en", (nasty,)), 1.0)
    assert sent.state == SENT
    assert box.mails[0]["Bcc"] is None
    assert box.mails[0]["X-Evil"] is None


@pytest.mark.parametrize(
    ("answer", "state"),
    [("451 try later", RETRY), ("452 full", RETRY), ("552 too big", REFUSED), ("554 no", REFUSED)],
)
def test_what_follows_from_a_code(answer: str, state: str, tmp_path: Path) -> None:
    box = Box(answer)
    with smtp(box) as server:
        send = sender(tmp_path, server.port).send
        found = send(MESSAGE, 1.0)
        assert (found.state, found.detail) == (state, f"SMTP {answer[:3]}: {answer[4:]}")
        assert send(MESSAGE, 1.0).state == SENT


def test_recipients_who_are_refused(tmp_path: Path) -> None:
    box = Box()
    box.refused = {"b@lab.example": "550 nobody of that name"}
    with smtp(box) as server:
        send = sender(tmp_path, server.port).send
        found = send(MESSAGE, 1.0)
        assert found.state == SENT
        assert "but not for b@lab.example (SMTP 550: nobody of that name)" in found.detail
        box.refused["a@lab.example"] = "550 nobody"
        assert send(MESSAGE, 1.0).state == REFUSED
        box.refused["a@lab.example"] = "450 greylisted"
        assert send(MESSAGE, 1.0).state == RETRY


def authenticator(server, session, envelope, mechanism, data) -> AuthResult:
    good = (data.login, data.password) == (b"ops", PASSWORD.encode())
    return AuthResult(success=good, handled=good)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return SimpleNamespace(context=context, path=path)


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_encrypted_with_a_password(security, certificates, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    way = {"tls_context" if security == "starttls" else "ssl_context": certificates.context}
    box = Box()
    options = {"authenticator": authenticator, "auth_require_tls": security == "starttls", **way}
    with smtp(box, auth_required=True, **options) as server:
        lines = [f'security = "{security}"', 'user = "ops"', 'secret_env = "SMTP_PASSWORD"']
        untrusted = sender(tmp_path, server.port, *lines).send(MESSAGE, 1.0)
        assert untrusted.state == RETRY
        assert "certificate" in untrusted.detail
        lines.append(f'ca_file = "{certificates.path}"')
        assert sender(tmp_path, server.port, *lines).send(MESSAGE, 1.0).state == SENT
        monkeypatch.setenv("SMTP_PASSWORD", "wr0ng-passw0rd")
        wrong = sender(tmp_path, server.port, *lines).send(MESSAGE, 1.0)
        assert wrong.state == REFUSED
        assert wrong.detail.startswith("SMTP 535")
    assert len(box.mails) == 1


def test_a_server_without_encryption_is_not_trusted_with_a_mail(tmp_path: Path) -> None:
    box = Box()
    with smtp(box) as server:
        found = sender(tmp_path, server.port, 'security = "starttls"').send(MESSAGE, 1.0)
    assert found.state == REFUSED
    assert "STARTTLS" in found.detail
    assert box.mails == []


def test_a_dead_and_a_silent_server(tmp_path: Path) -> None:
    with hook(hangs) as server:
        port = int(server.url.rpartition(":")[2])
        silent = sender(tmp_path, port).send(MESSAGE, 1.0)
    assert (silent.state, silent.detail) == (RETRY, "no answer within 1 s")
    dead = sender(tmp_path, port).send(MESSAGE, 1.0)
    assert (dead.state, dead.detail) == (RETRY, "Connection refused")
