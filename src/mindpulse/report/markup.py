"""HTML as small functions: every text is escaped, every attribute is quoted."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is HTML already and must not be escaped again."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | int | float | None) -> Html:
    """An element; a child that is not `Html` is escaped.

    An attribute is written with `_` as `-` (`class_` as `class`); None leaves it out.

    Example:
        >>> tag("p", "a < b", class_="note", aria_label=None)
        '<p class="note">a &lt; b</p>'
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(*children)}</{name}>")


def void(name: str, /, **attributes: str | int | float | None) -> Html:
    """An element without content; closed by a slash, as SVG inside HTML needs it.

    Example:
        >>> void("img", alt="")
        '<img alt=""/>'
    """
    return Html(f"<{name}{_attributes(attributes)}/>")


def join(*children: str) -> Html:
    """The children one after the other."""
    return Html("".join(c if isinstance(c, Html) else escape(c, quote=False) for c in children))


def _attributes(attributes: dict[str, str | int | float | None]) -> str:
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return "".join(f' {key}="{escape(str(value))}"' for key, value in named if value is not None)


def table(head: list[str], rows: list[list[str]], caption: str = "", class_: str = "") -> Html:
    """A table with a header row; wrapped so that a narrow screen scrolls it, not the page."""
    top = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in head)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    title = tag("caption", caption) if caption else Html("")
    inner = tag("table", title, top, body, class_=class_ or None)
    # A region that scrolls must be reachable by the keyboard.
    return tag(
        "div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption or head[0]
    )
