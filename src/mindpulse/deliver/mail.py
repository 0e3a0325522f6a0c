"""E-mail through an SMTP server."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import REFUSED, RETRY, SENT, Outcome
from mindpulse.deliver.secret import Secret, redact

SECURITY = ("starttls", "tls", "none")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True, slots=True)
class Mail:
    """Sends a plain text to some people.

    Attributes:
        security: "starttls", "tls" from the first byte, or "none".
        user: name for the server, "" if it asks for none; the password is `secret`.
        ca_file: certificates to trust instead of the system's, "" for those.
    """

    host: str
    port: int
    sender: str
    to: Sequence[str]
    security: str = "starttls"
    user: str = ""
    secret: Secret | None = None
    ca_file: str = ""
    timeout_s: float = 10.0

    def send(self, message: Message, now: float) -> Outcome:
        """Sends to all; delivered when the server took it for at least one."""
        letter = self._letter(message, now)
        try:
            server = self._connection()
            try:
                refused = server.send_message(letter, self.sender, list(self.to))
            finally:
                _hang_up(server)
        except smtplib.SMTPRecipientsRefused as error:
            return self._all_refused(error)
        except smtplib.SMTPResponseException as error:
            return _answered(error.smtp_code, error.smtp_error)
        except smtplib.SMTPNotSupportedError as error:
            return Outcome(REFUSED, redact(str(error)))
        except ssl.SSLCertVerificationError as error:
            return Outcome(RETRY, redact(f"no secure connection: {error.verify_message}"))
        except (OSError, smtplib.SMTPException) as error:
            if TimeoutError in (type(error), type(error.__context__)):
                return Outcome(RETRY, f"no answer within {self.timeout_s:g} s")
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            return Outcome(RETRY, redact(words))
        return Outcome(SENT, f"taken by {self.host}{_some_refused(refused)}")

    def _connection(self) -> smtplib.SMTP:
        trusted = ssl.create_default_context(cafile=self.ca_file or None)
        if self.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=self.timeout_s, context=trusted
            )
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)
        try:
            if self.security == "starttls":
                server.starttls(context=trusted)
            if self.secret:
                server.login(self.user, self.secret.reveal())
        except BaseException:
            server.close()
            raise
        return server

    def _letter(self, message: Message, now: float) -> EmailMessage:
        letter = EmailMessage()
        letter["Subject"] = " ".join(message.title().split())
        letter["From"], letter["To"] = self.sender, ", ".join(self.to)
        letter["Date"] = format_datetime(datetime.fromtimestamp(now, timezone.utc))
        letter["Message-ID"] = _message_id(message, self.sender)
        letter["Auto-Submitted"] = "auto-generated"
        letter["X-MindPulse-Status"] = message.status
        letter["X-MindPulse-Severity"] = message.severity
        letter.set_content(message.body() + "\n")
        return letter

    def _all_refused(self, error: smtplib.SMTPRecipientsRefused) -> Outcome:
        codes = [code for code, _ in error.recipients.values()]
        code, words = next(iter(error.recipients.values()))
        later = any(400 <= code < 500 for code in codes)
        return Outcome(RETRY if later else REFUSED, _answered(code, words).detail)


def _message_id(message: Message, sender: str) -> str:
    """The same for the same alerts, so that a mail sent twice is shown once."""
    domain = sender.rpartition("@")[2].strip("> ") or "localhost"
    if not message.alerts:
        return make_msgid(domain=domain)
    told = [(str(a.run_dir), a.event.id, a.event.state) for a in message.alerts]
    digest = hashlib.sha256(repr((message.receiver, told)).encode()).hexdigest()
    return f"<mindpulse-{digest[:32]}@{domain}>"


def _hang_up(server: smtplib.SMTP) -> None:
    """Says good-bye; what comes back to that changes nothing about the mail."""
    with suppress(OSError, smtplib.SMTPException):
        server.quit()
    server.close()


def _answered(code: int, words: bytes | str) -> Outcome:
    said = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    state = RETRY if 400 <= code < 500 or code < 0 else REFUSED
    return Outcome(state, redact(f"SMTP {code}: {' '.join(said.split())[:200]}"))


def _some_refused(refused: dict[str, tuple[int, bytes]]) -> str:
    if not refused:
        return ""
    code, words = next(iter(refused.values()))
    return f", but not for {', '.join(refused)} ({_answered(code, words).detail})"
