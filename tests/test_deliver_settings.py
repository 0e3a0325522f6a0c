"""The file of receivers: every mistake is answered with what to do, and never with a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindpulse.deliver.alertmanager import Alertmanager
from mindpulse.deliver.kinds import KINDS
from mindpulse.deliver.mail import Mail
from mindpulse.deliver.settings import load_receivers
from mindpulse.deliver.table import Table
from mindpulse.deliver.webhook import Webhook
from mindpulse.errors import UsageError
from receivers import targets

HOOK = "https://hooks.example/services/T0AB/B0CD/x9y8z7w6v5u4"
SECRET = "SEC00aa11bb22cc33dd44ee55"


@pytest.fixture(autouse=True)
def _environment(monkeypatch) -> None:
    monkeypatch.setenv("HOOK_URL", HOOK)
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.delenv("NO_SUCH", raising=False)


def table(*lines: str, kind: str = "webhook", url: str = 'url = "https://ops.example/in"') -> str:
    return "\n".join(["[[receiver]]", 'name = "ops"', f'type = "{kind}"', url, *lines])


def test_defaults(tmp_path: Path) -> None:
    (found,) = targets(tmp_path, table())
    ours = found.settings
    assert (ours.min_severity, ours.lang, ours.resolved) == ("warning", "en", True)
    assert (ours.every_s, ours.burst, ours.give_up_s) == (10.0, 5, 3600.0)
    assert isinstance(found.sender, Webhook)


def test_a_secret_that_no_header_can_carry(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "geheimnis-\u00e4-4711")
    with pytest.raises(UsageError, match="printable ASCII") as caught:
        targets(tmp_path, table('secret_env = "HOOK_SECRET"'))
    assert "4711" not in str(caught.value)


def test_machines_are_told_at_once(tmp_path: Path) -> None:
    (found,) = targets(tmp_path, table(kind="alertmanager"))
    assert (found.settings.group_s, found.settings.every_s) == (0.0, 0.0)
    (found,) = targets(tmp_path, table("every_s = 5", kind="alertmanager"))
    assert found.settings.every_s == 5.0


def test_an_alertmanager_is_found_under_its_path(tmp_path: Path) -> None:
    for base in ("http://am.example:9093", "http://am.example:9093/api/v2/alerts/"):
        (found,) = targets(tmp_path, table(kind="alertmanager", url=f'url = "{base}"'))
        assert isinstance(found.sender, Alertmanager)
        assert found.sender.http.address == "http://am.example:9093/api/v2/alerts"


def test_ports_of_mail(tmp_path: Path) -> None:
    lines = ['from = "a@b.example"', 'to = "c@d.example"', 'host = "mail.example"']
    ports = []
    for security in ("starttls", "tls", "none"):
        (found,) = targets(
            tmp_path, table(*lines, f'security = "{security}"', kind="email", url="")
        )
        assert isinstance(found.sender, Mail)
        ports.append(found.sender.port)
    assert ports == [587, 465, 25]


def test_one_that_is_disabled_needs_no_secret(tmp_path: Path) -> None:
    off = table("disabled = true", kind="slack", url='url_env = "NO_SUCH"')
    assert targets(tmp_path, off) == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "no receiver"),
        ("x = ", "not TOML"),
        ("[receiver]\nname = 1", "[[receiver]]"),
        ('[[reciever]]\nname = "a"', "reciever"),
        ("[[receiver]]", "receiver 1: name is missing"),
        ('[[receiver]]\nname = "a b"', "name = 'a b'"),
        ('[[receiver]]\nname = "a"', "type is missing; use one of feishu, dingtalk"),
        (table() + "\n" + table(), "'ops' is there twice"),
        (table(kind="telegramm"), "type = 'telegramm': use one of"),
        (table(kind="slak"), "did you mean 'slack'"),
        (table('min_severity = "warn"'), "min_severity = 'warn': use one of info, warning"),
        (table('lang = "de"'), "lang = 'de': use one of en, zh"),
        (table("every_s = -1"), "every_s = -1: use a number from 0"),
        (table("every_s = nan"), "every_s = nan"),
        (table("burst = 2.5"), "burst = 2.5: use a whole number from 1"),
        (table("burst = true"), "burst = True"),
        (table("give_up_s = inf"), "give_up_s = inf"),
        (table('resolved = "yes"'), "resolved = 'yes': use true or false"),
        (table("min_severty = 'info'"), "min_severty: no such key; did you mean 'min_severity'"),
        (table(url=""), "url_env is missing"),
        (table(url='url = "ops.example/in"'), "https://HOST/PATH"),
        (table(url='url = "https://ops.example/in?key=12345678"'), "url_env"),
        (table(url='url = "https://me:passw0rd@ops.example/in"'), "url_env"),
        (table(url='url = "http://ops.example/in"') + '\nsecret_env = "HOOK_SECRET"', "https"),
        (table('secret_env = "HOOK_SECRET"', 'auth = "basic"'), "user is missing"),
        (table('secret_env = "HOOK_SECRET"', 'auth = "header"'), "auth_header"),
        (table('secret_env = "HOOK_SECRET"', 'auth = "digest"'), "auth = 'digest'"),
        (table('headers = { X-Auth-Token = "abcdefgh" }'), "'X-Auth-Token' may hold a secret"),
        (table('headers = { "X A" = "abcdefgh" }'), "'X A': use letters"),
        (table('headers = { X-A = "abcdefgh\\n" }'), "'X-A': use letters"),
        (table('secret_env = "HOOK_SECRET"', 'auth = "header"', 'auth_header = "X:"'), "X-Api-Key"),
        (table('url_env = "HOOK_URL"'), "url and url_env (or url_file): give one"),
        (table('json = { a = "$titel" }'), "$titel: no such name; there are $title"),
        (table('text = "100 $"'), "a dollar without a name"),
        (table('text = "x"', "json = {}"), "json and text: give one"),
        (table('ca_file = "missing.pem"'), "no such file"),
        (table(kind="slack", url=f'url = "{HOOK}"'), "url: secrets do not belong in this file"),
        (table(kind="slack", url='url_env = "NO_SUCH"'), "NO_SUCH is not set; export it"),
        (table(kind="slack", url=f'url_env = "{HOOK}"'), "name of an environment variable"),
        (table(kind="slack", url='url_env = "HOOK_SECRET"'), "url: is no address"),
        (
            table(f'secret = "{SECRET}"', kind="feishu", url='url_env = "HOOK_URL"'),
            "secret: secrets do not belong",
        ),
        (
            table(f'secret_env = "{SECRET}x"', kind="feishu", url='url_env = "HOOK_URL"'),
            "takes the name of an environment variable",
        ),
        (
            table('secret_file = "no.key"', kind="feishu", url='url_env = "HOOK_URL"'),
            "cannot be read: No such file",
        ),
        (
            table('url_file = "a"', kind="slack", url='url_env = "HOOK_URL"'),
            "url_env and url_file: give one",
        ),
        (table('labels = { "a-b" = "x" }', kind="alertmanager"), "'a-b': use letters"),
        (table(kind="email", url=""), "host is missing"),
        (table('host = "h"', 'to = "a@b"', kind="email", url=""), "from is missing"),
        (table('host = "h"', 'from = "a@b"', 'to = []', kind="email", url=""), "to = []"),
        (table('host = "h"', 'from = "a@b"', 'to = "bob"', kind="email", url=""), "'bob' is no"),
        (
            table('host = "h"', 'from = "a@b\\nBcc: x@y"', 'to = "a@b"', kind="email", url=""),
            "is no e-mail address",
        ),
        (
            table('host = "h"', 'from = "a@b"', 'to = "a@b"', 'user = "u"', kind="email", url=""),
            "user and secret_env",
        ),
        (
            table(
                'host = "h.example"', 'from = "a@b"', 'to = "a@b"', 'user = "u"',
                'secret_env = "HOOK_SECRET"', 'security = "none"', kind="email", url="",
            ),
            "in the clear",
        ),
        (table('path = "no/such/folder/x"', kind="file", url=""), "no such folder"),
        (table(kind="apprise", url='url_env = "HOOK_SECRET"'), "no address that Apprise knows"),
    ],
)  # fmt: skip
def test_mistakes(text: str, wanted: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        targets(tmp_path, text)
    told = str(caught.value)
    assert wanted in told
    assert str(tmp_path / "receivers.toml") in told
    for secret in (HOOK, "x9y8z7w6v5u4", SECRET, "12345678", "passw0rd", "abcdefgh"):
        assert secret not in told


def test_a_chat_address_must_not_travel_in_the_clear(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOOK_URL", HOOK.replace("https", "http"))
    with pytest.raises(UsageError, match="in the clear"):
        targets(tmp_path, table(kind="slack", url='url_env = "HOOK_URL"'))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_receivers(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text"):
        load_receivers(tmp_path / "binary.toml")


def secret_file(tmp_path: Path, data: bytes = SECRET.encode() + b"\n", mode: int = 0o600) -> str:
    path = tmp_path / "feishu.key"
    path.write_bytes(data)
    path.chmod(mode)
    return table('secret_file = "feishu.key"', kind="feishu", url='url_env = "HOOK_URL"')


def test_a_secret_of_a_file_of_ones_own(tmp_path: Path) -> None:
    (found,) = targets(tmp_path, secret_file(tmp_path))
    assert found.sender.secret.reveal() == SECRET  # type: ignore[attr-defined]
    assert targets(tmp_path, secret_file(tmp_path, mode=0o400))


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o610, 0o602, 0o777])
def test_a_file_that_others_may_open_is_refused(mode: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"chmod 600 .*feishu\.key"):
        targets(tmp_path, secret_file(tmp_path, mode=mode))


@pytest.mark.parametrize("data", [b"", b"one\ntwo\n", b"\xff\xfe\xfd\xfc", b"x" * 9000, b"abc"])
def test_a_file_that_holds_no_secret_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"feishu\.key|3 characters"):
        targets(tmp_path, secret_file(tmp_path, data))


def test_a_secret_is_read_from_a_file_only(tmp_path: Path) -> None:
    text = secret_file(tmp_path)
    (tmp_path / "feishu.key").unlink()
    os.mkfifo(tmp_path / "feishu.key", 0o600)  # would block whoever opens it
    with pytest.raises(UsageError, match="not a file"):
        targets(tmp_path, text)


KEYS = (
    "url", "url_env", "url_file", "secret", "secret_env", "secret_file", "auth", "auth_header",
    "user", "headers", "json", "text", "content_type", "expect", "labels", "link", "hold_s", "host",
    "port", "security", "from", "to", "path", "timeout_s", "ca_file", "min_severity", "lang",
    "resolved", "actions", "group_s", "every_s", "burst", "give_up_s", "disabled", "other",
)  # fmt: skip
WORDS = st.sampled_from(
    ["", "HOOK_URL", "https://a.example/x", "http://[", "a@b", "basic", "none", "$title", "$", "\0"]
)
SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=20), st.datetimes()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8))
def test_any_table_is_taken_or_refused_in_words(kind: str, values: dict[str, object]) -> None:
    here = Path(__file__).parent
    found = {"name": "ops", "type": kind, **values}
    told = ""
    try:
        KINDS[kind](Table(found, "here", here))
    except UsageError as error:
        told = str(error)
    assert told == "" or told.startswith("here: ")
