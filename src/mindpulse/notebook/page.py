"""The whole report in a notebook: in a frame of its own, which can neither ask nor reach out."""

from __future__ import annotations

import time

from mindpulse import __version__
from mindpulse.report.data import ReportData
from mindpulse.report.html import write_html
from mindpulse.report.markdown import write_markdown
from mindpulse.report.markup import tag
from mindpulse.report.words import Words

HEIGHT = 720  # pixels


class Page:
    """The training health report of a run.

    Args:
        data: what `report.collect` found.
        lang: "en" or "zh".
        height: of the frame, in pixels.
    """

    def __init__(self, data: ReportData, lang: str = "en", height: int = HEIGHT) -> None:
        self.data, self._words, self._height = data, Words(lang), height

    def __repr__(self) -> str:
        """Markdown, where there is no HTML."""
        return write_markdown(self.data, self._words)

    def _repr_html_(self) -> str:
        page = write_html(self.data, self._words, time.time(), __version__)
        # Its scripts may run, but see nothing of the notebook: the frame has no origin.
        return tag(
            "iframe",
            srcdoc=page,
            sandbox="allow-scripts",
            title=self._words.say("title"),
            style=f"width:100%;height:{self._height}px;border:0",
        )
