"""What was found in a model, as a list that prints as a table."""

from __future__ import annotations

from collections.abc import Iterable

from mindpulse.mindspore.structure import Place, table

NEVER_RAN, PLANTED, SKIPPED = "never ran", "planted", "skipped"
_NO_CLIPPING = (
    "the step hands the optimizer's gradients to none of them; where it clips in a way of its own, "
    "use mindpulse.mindspore.ClipNorm"
)


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

    def clips(self, ran: bool) -> None:
        """Says of the clipping whether any was seen; that a training has none is no fault."""
        for place in self:
            if place.kind == "clip" and place.state in (PLANTED, SKIPPED):
                place.reason = place.reason.partition(": ")[0] + (
                    "" if ran else f": {_NO_CLIPPING}"
                )
                place.state = PLANTED if ran else SKIPPED

    def __str__(self) -> str:
        return self.table()
