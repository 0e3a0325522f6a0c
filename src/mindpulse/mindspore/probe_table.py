"""What was found in a model, as a list that prints as a table."""

from __future__ import annotations

from collections.abc import Iterable

from mindpulse.mindspore.structure import Place, table

NEVER_RAN, PLANTED = "never ran", "planted"


class ProbeTable(list[Place]):
    """The places of a model, planted or not, with the reason."""

    def table(self) -> str:
        """The places as a table: path, kind, how, size, state, reason."""
        return table(self)

    def ran(self, places: Iterable[Place]) -> None:
        """Takes back that these never ran."""
        for place in places:
            if place.state == NEVER_RAN:
                place.state, place.reason = PLANTED, ""

    def __str__(self) -> str:
        return self.table()
