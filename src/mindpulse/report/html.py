"""The report as one HTML file that needs nothing else: no network, no second file."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path

from mindpulse.report import figures, first_screen, tables
from mindpulse.report.data import ReportData
from mindpulse.report.markup import Html, tag, void
from mindpulse.report.words import Words

SECTIONS = ("curves", "timeline", "layers", "attention", "score", "run")


def write_html(
    data: ReportData, words: Words, now: float, version: str, renew_s: float | None = None
) -> str:
    """The whole page.

    The page forbids itself every request by its own content security policy; the one script is
    allowed by its hash, and without scripts only the read-out under the pointer is missing.

    Args:
        now: seconds since the epoch, shown in the footer.
        version: of this package, shown in the footer.
        renew_s: after so many seconds the browser loads the file again; None for never.
    """
    return document(
        f"{words.say('title')} · {Path(data.path).resolve().name}",
        words.lang,
        tag("a", words.say("skip"), href="#findings", class_="skip"),
        _top(data, words),
        _menu(words),
        _main(data, words),
        _footer(words, now, version),
        renew_s=renew_s,
    )


def document(
    title: str, lang: str, *body: str, style: str = "", renew_s: float | None = None
) -> str:
    """A page in the looks of the report that needs nothing else and may ask for nothing.

    Args:
        style: CSS to add.
        renew_s: seconds after which the page is loaded again.
    """
    script = _asset("report.js")
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", http_equiv="refresh", content=f"{renew_s:g}") if renew_s else Html(""),
        tag("title", title),
        tag("style", Html(_asset("report.css") + style)),
    )
    whole = tag("body", *body, tag("script", Html(script)))
    return "<!doctype html>\n" + tag("html", head, whole, lang=lang) + "\n"


def _asset(name: str) -> str:
    return (files("mindpulse.report") / "assets" / name).read_text("utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    rules = ("default-src 'none'", "img-src data:", "style-src 'unsafe-inline'")
    return "; ".join((*rules, f"script-src 'sha256-{digest}'"))


def _top(data: ReportData, words: Words) -> Html:
    title, name = tag("h1", words.say("title")), Path(data.path).resolve().name
    if data.wall_times is None:
        return tag("header", title, tag("p", name), class_="top")
    first, last = (_date(moment) for moment in data.wall_times)
    text = words.say("run.time", name=name, first=first, last=last)
    return tag("header", title, tag("p", text), class_="top")


def _date(wall_time: float) -> str:
    return datetime.fromtimestamp(wall_time, timezone.utc).strftime("%Y-%m-%d %H:%M")


def _menu(words: Words) -> Html:
    items = [tag("li", tag("a", words.say(f"nav.{name}"), href=f"#{name}")) for name in SECTIONS]
    return tag("nav", tag("ul", *items), aria_label=words.say("title"))


def _main(data: ReportData, words: Words) -> Html:
    return tag(
        "main",
        first_screen.draw(data, words),
        figures.curves(data, words),
        figures.events(data, words),
        figures.layers(data, words),
        figures.attention(data, words),
        tables.score(data, words),
        tables.run(data, words),
    )


def _footer(words: Words, now: float, version: str) -> Html:
    date = f"{_date(now)} UTC"
    return tag("footer", tag("p", words.say("run.created", version=version, date=date)))
