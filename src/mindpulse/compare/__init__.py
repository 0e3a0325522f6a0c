"""Two runs compared: do they converge alike, where do they part, which is better, how surely.

dtw          dynamic time warping inside a band, exact
curve        one curve: rows in order, what is not finite apart
grid         curves of any length and sampling on one axis of a thousand points
scale        the unit of distances: how far the better run came
noise        how far curves may lie apart by chance: out of themselves, or out of seeds
parting      the spans in which a difference lies beyond noise
facts        ends, bests, speed, when a level was reached
verdict      same, better, worse, different, unknown
result comparison   what is asked and answered; all of it for two curves, pure
read differences as_json   out of runs, and into JSON
"""

from mindpulse.compare.comparison import compare
from mindpulse.compare.curve import Curve, curve_of
from mindpulse.compare.dtw import warped_cost, warping_path
from mindpulse.compare.result import Comparison, Settings, Side

__all__ = [
    "Comparison",
    "Curve",
    "Settings",
    "Side",
    "compare",
    "curve_of",
    "warped_cost",
    "warping_path",
]
