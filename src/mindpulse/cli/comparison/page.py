"""A comparison as a file: one HTML page, Markdown, or one SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mindpulse.cli.comparison.figures import STYLE, Figure, draw, figures_of
from mindpulse.cli.comparison.words import Told
from mindpulse.compare.result import Comparison
from mindpulse.errors import UsageError
from mindpulse.report.html import document
from mindpulse.report.markup import Html, join, table, tag, void
from mindpulse.report.scales import Scale, format_number

WRITERS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".svg": "svg"}
ACCENTS = {"same": "healthy", "better": "healthy", "worse": "unhealthy", "different": "attention"}
ICONS = {"same": "✅", "better": "✅", "worse": "❌", "different": "⚠️", "unknown": "❔"}
WIDTH, PLOT_HEIGHT, LEFT, TOP, GAP = 960, 300, 76, 64, 110


def format_of(output: Path) -> str:
    """The format that the ending of a file name means.

    Raises:
        UsageError: the ending means none; lists those that do.

    Example:
        >>> format_of(Path("two-runs.html"))
        'html'
    """
    ending = output.suffix.lower()
    if ending not in WRITERS:
        raise UsageError(f"--output {str(output)!r}: end the name with .html, .svg or .md")
    return WRITERS[ending]


def render(found: Comparison, told: Told, format_: str) -> str:
    """The comparison as the text of a file."""
    if format_ == "md":
        return write_markdown(found, told)
    return write_html(found, told) if format_ == "html" else write_svg(found, told)


def write_html(found: Comparison, told: Told) -> str:
    """A page in the looks of the report; asks the network for nothing."""
    title = told.say("title")
    names = f"A: {found.a.name} · B: {found.b.name}"
    pictures = [draw(figure) for figure in figures_of(found, told)]
    main = tag(
        "main",
        tag("section", _verdict(found, told)),
        _section("pictures", told, tag("div", *pictures, class_="grid")) if pictures else Html(""),
        _section("numbers", told, tag("div", _numbers(told), class_="card")),
        tag("section", tag("h2", told.say("differences")), _differences(told)),
        _section("method", told, tag("div", _list(told.method), class_="card")),
    )
    head = tag("header", tag("h1", title), tag("p", names), class_="top")
    return document(f"{title} · {told.tag}", told.lang, head, main, style=STYLE)


def _section(key: str, told: Told, body: Html) -> Html:
    return tag("section", tag("h2", told.say(f"section.{key}")), body)


def _verdict(found: Comparison, told: Told) -> Html:
    accent = ACCENTS.get(found.verdict.state, "")
    lines = tag("p", told.say("title.tag", tag=told.tag), class_="soft")
    head = tag("div", tag("div", told.state, class_="state"), tag("p", told.sentence), lines)
    return tag(
        "div",
        tag("div", head, class_="head"),
        tag("div", _list(told.findings), class_="finding whole"),
        class_=f"verdict {accent}".strip(),
    )


def _list(lines: Sequence[str]) -> Html:
    return tag("ul", *(tag("li", text) for text in lines))


def _numbers(told: Told) -> Html:
    rows = [list(row) for row in told.numbers]
    return table(["", "A", "B", told.say("column.ratio")], rows, told.say("section.numbers"))


def _differences(told: Told) -> Html:
    rows = [list(row) for row in told.texts]
    found = table(["", "A", "B"], rows, told.say("differences")) if rows else Html("")
    return tag("div", found, _list(told.notes) if told.notes else Html(""), class_="card")


def write_markdown(found: Comparison, told: Told) -> str:
    """Short enough for a merge request."""
    head = f"# {ICONS[found.verdict.state]} {told.tag}: {told.state}\n\n{told.sentence}"
    names = f"- A: `{found.a.name}`\n- B: `{found.b.name}`"
    numbers = _markdown_table(["", "A", "B", told.say("column.ratio")], told.numbers)
    parts = [head, names, _bullets(told.findings), numbers]
    if told.texts:
        parts += [f"## {told.say('differences')}", _markdown_table(["", "A", "B"], told.texts)]
    parts += [_bullets(told.notes), f"## {told.say('section.method')}", _bullets(told.method)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def write_svg(found: Comparison, told: Told) -> str:
    """The courses and their difference as one picture with its own labels, for a page or a slide.

    Raises:
        UsageError: nothing could be compared, so that there is nothing to draw.
    """
    figures = figures_of(found, told)[:2]
    if not figures:
        raise UsageError(f"no picture: {told.sentence}")
    height = TOP + len(figures) * (PLOT_HEIGHT + GAP)
    head = [
        tag("title", f"{told.tag}: {told.sentence}"),
        tag("style", Html(SVG_STYLE)),
        void("rect", width=WIDTH, height=height, class_="paper"),
        tag("text", f"{told.tag}: {told.state}", x=LEFT, y=26, class_="title"),
        tag("text", told.sentence, x=LEFT, y=46, class_="small"),
    ]
    drawn = [_panel(f, TOP + 34 + i * (PLOT_HEIGHT + GAP)) for i, f in enumerate(figures)]
    picture = tag(
        "svg",
        *head,
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        width=WIDTH,
        height=height,
        viewBox=f"0 0 {WIDTH} {height}",
    )
    return picture + "\n"


def _panel(figure: Figure, top: int) -> Html:
    width = WIDTH - LEFT - 24
    plot = tag(
        "svg",
        *figure.layers,
        x=LEFT,
        y=top,
        width=width,
        height=PLOT_HEIGHT,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        class_="plot",
    )
    frame = void("path", d=f"M{LEFT} {top}v{PLOT_HEIGHT}h{width}", class_="frame")
    down = [
        tag("text", text, x=LEFT - 8, y=f"{top + (1 - at) * PLOT_HEIGHT + 4:.1f}", class_="end")
        for at, text in _ticks(figure.y)
    ]
    across = [
        tag("text", text, x=f"{LEFT + at * width:.1f}", y=top + PLOT_HEIGHT + 18, class_="middle")
        for at, text in _ticks(figure.x)
    ]
    name = tag("text", figure.x_name, x=LEFT + width, y=top + PLOT_HEIGHT + 36, class_="end")
    return join(plot, frame, *down, *across, name, *_svg_legend(figure, top - 12))


def _svg_legend(figure: Figure, y: int) -> list[Html]:
    parts, x = [], LEFT
    for class_, text in figure.legend:
        area = class_ == "chance"
        swatch = f"M{x} {y - 10}h18v11h-18Z" if area else f"M{x} {y - 4}h18"
        parts.append(void("path", d=swatch, class_=class_))
        parts.append(tag("text", text, x=x + 24, y=y, class_="small"))
        x += 48 + sum(7 if letter.isascii() else 13 for letter in text)
    return parts


def _ticks(scale: Scale) -> list[tuple[float, str]]:
    places = [(scale.place(value), format_number(value)) for value in scale.ticks(6)]
    return [(at, text) for at, text in places if -0.001 <= at <= 1.001]


SVG_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1c2430; }
text.title { font-size: 18px; font-weight: 600; } text.small { fill: #5b6675; }
text.end { text-anchor: end; } text.middle { text-anchor: middle; }
.paper { fill: #fff; }
path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
path.frame { stroke: #b9c0c9; } path.grid { stroke: #e3e6ea; }
path.line { stroke: #1a6fc4; stroke-width: 2; } path.b { stroke: #b4470b; stroke-width: 2; }
path.a-raw { stroke: #9cc3e6; opacity: 0.7; } path.b-raw { stroke: #dc9d76; opacity: 0.7; }
path.seed { stroke: #8fb8de; stroke-width: 1.2; }
path.diagonal { stroke: #5b6675; stroke-dasharray: 4 3; }
path.action { stroke: #6b46c1; stroke-width: 1.6; stroke-dasharray: 4 3; }
path.chance { fill: #5b6675; opacity: 0.16; }
"""
