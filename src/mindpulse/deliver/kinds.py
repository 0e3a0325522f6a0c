"""From the table of a receiver to what carries its messages, one function for each type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from mindpulse.deliver.alertmanager import PATH, Alertmanager
from mindpulse.deliver.chat import DingTalk, Feishu, Slack, WeCom
from mindpulse.deliver.http import Http, check_address, is_loopback
from mindpulse.deliver.mail import PORTS, SECURITY, Mail
from mindpulse.deliver.others import Apprise, Lines
from mindpulse.deliver.outcome import Sender
from mindpulse.deliver.secret import Secret
from mindpulse.deliver.table import SECRET_KEYS, Table
from mindpulse.deliver.webhook import WAYS, Key, Webhook, check_template
from mindpulse.errors import UsageError

HEADER = re.compile(r"[A-Za-z0-9-]+")


def _http(table: Table, address: Secret | str, headers: Mapping[str, str] | None = None) -> Http:
    return Http(
        address,
        timeout_s=table.number("timeout_s", 10.0, 0.1, 120),
        ca_file=table.certificates("ca_file"),
        headers=headers or {},
    )


def _chat(table: Table) -> Http:
    """The address of a chat robot, which is a secret."""
    address = table.needed_secret("url")
    _checked(table, address.reveal(), secret_inside=True)
    return _http(table, address)


def _checked(table: Table, address: str, *, secret_inside: bool) -> None:
    try:
        check_address(address, secret_inside=secret_inside)
    except UsageError as error:
        raise UsageError(f"{table.where}: url: {error}") from None


def _address(table: Table, key: Key | None) -> Secret | str:
    """An address that may stand in the file, unless something in it may be a secret."""
    shows_key = key is not None and key.way != "hmac"
    url = table.text("url")
    if not url:
        address = table.needed_secret("url")
        _checked(table, address.reveal(), secret_inside=shows_key)
        return address
    if table.text("url_env") or table.text("url_file"):
        raise UsageError(f"{table.where}: url and url_env (or url_file): give one of them")
    if any(mark in url for mark in "?@#"):
        raise UsageError(
            f"{table.where}: url: what stands behind '?', '#' or before '@' may be a secret (not "
            'shown); put the address into an environment variable and write url_env = "ITS_NAME"'
        )
    _checked(table, url, secret_inside=shows_key)
    return url


def _key(table: Table) -> Key | None:
    way = table.text("auth", "bearer", WAYS)
    user, header = table.text("user"), table.text("auth_header")
    secret = table.secret("secret")
    if secret is None:
        return None
    if way == "basic" and not user:
        raise UsageError(f'{table.where}: auth = "basic": the user is missing; write user = "NAME"')
    if way == "header" and not header:
        raise UsageError(
            f'{table.where}: auth = "header": write auth_header = "X-Api-Key" or what it is called'
        )
    if way in ("bearer", "header") and not _fits_header(secret.reveal()):
        raise UsageError(
            f"{table.where}: secret: holds what no header can carry; use printable ASCII characters"
        )
    if header and not HEADER.fullmatch(header):
        raise table.error("auth_header", "use the name of a header, for example X-Api-Key")
    return Key(secret, way, user, header)


def _fits_header(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _headers(table: Table) -> dict[str, str]:
    headers = table.texts("headers")
    for name in headers:
        if SECRET_KEYS.search(name) or "cookie" in name.lower():
            raise UsageError(
                f"{table.where}: headers: {name!r} may hold a secret (not shown); write "
                f'secret_env = "ITS_NAME", auth = "header", auth_header = {name!r}'
            )
        if not HEADER.fullmatch(name) or not _fits_header(headers[name]):
            raise UsageError(
                f"{table.where}: headers: {name!r}: use letters, digits and dashes for the name, "
                "printable ASCII characters for the value"
            )
    return headers


def _webhook(table: Table) -> Webhook:
    key, headers = _key(table), _headers(table)
    template, text = table.table("json"), table.text("text")
    if template is not None and text:
        raise UsageError(f"{table.where}: json and text: give one of them")
    for name, given in (("json", template), ("text", text)):
        try:
            check_template(given)
        except UsageError as error:
            raise UsageError(f"{table.where}: {name}: {error}") from None
    return Webhook(
        _http(table, _address(table, key), headers),
        key,
        template,
        text,
        table.text("content_type", "text/plain; charset=utf-8"),
        table.table("expect") or {},
    )


def _alertmanager(table: Table) -> Alertmanager:
    key, headers = _key(table), _headers(table)
    address = _address(table, key)
    base = (address if isinstance(address, str) else address.reveal()).rstrip("/")
    full = base if base.endswith(PATH) else base + PATH
    labels = table.texts("labels")
    for name in labels:
        if not name.isidentifier() or not name.isascii():
            raise table.error("labels", f"{name!r}: use letters, digits and underscores")
    return Alertmanager(
        _http(table, full if isinstance(address, str) else Secret(full), headers),
        key,
        labels,
        table.text("link"),
        table.text("lang", "en"),
        table.number("hold_s", 300.0, 2, 86400),
    )


def _email(table: Table) -> Mail:
    security = table.text("security", "starttls", SECURITY)
    host = table.text("host", None)
    user, secret = table.text("user"), table.secret("secret")
    if bool(user) != bool(secret):
        raise UsageError(f"{table.where}: user and secret_env (or secret_file): give both or none")
    if secret and security == "none" and not is_loopback(host):
        raise table.error(
            "security", 'would send the password in the clear; use "starttls" or "tls"'
        )
    to = table.names("to")
    for key, addresses in (("from", [table.text("from", None)]), ("to", to)):
        for address in addresses:
            if "@" not in address or any(c.isspace() or c in ",;" for c in address):
                raise table.error(key, f"{address!r} is no e-mail address; write name@example.org")
    return Mail(
        host,
        table.whole("port", PORTS[security], 1, 65535),
        table.text("from"),
        to,
        security,
        user,
        secret,
        table.certificates("ca_file"),
        table.number("timeout_s", 10.0, 0.1, 120),
    )


def _lines(table: Table) -> Lines:
    table.text("path", None)
    path = Path(table.path("path"))
    if not path.parent.is_dir():
        raise table.error("path", f"{path.parent}: no such folder; make it first")
    return Lines(path)


def _apprise(table: Table) -> Apprise:
    address = table.needed_secret("url")
    try:
        return Apprise(address)
    except UsageError as error:
        raise UsageError(f"{table.where}: url: {error}") from None


KINDS: dict[str, Callable[[Table], Sender]] = {
    "feishu": lambda table: Feishu(_chat(table), table.secret("secret")),
    "dingtalk": lambda table: DingTalk(_chat(table), table.secret("secret")),
    "wecom": lambda table: WeCom(_chat(table)),
    "slack": lambda table: Slack(_chat(table)),
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "email": _email,
    "file": _lines,
    "apprise": _apprise,
}
