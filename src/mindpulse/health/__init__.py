"""The health of a run as a number from 0 to 100: 100 x the probability that it is healthy.

judging   the rules replayed over a run       trend   how its loss went as a whole
evidence  what speaks for and against it      fitted  evidence to probability, and the constants
scoring   all of it for one run               values  what comes out

The probability is measured on recorded trainings with and without faults: docs/health.md.
"""

from __future__ import annotations

from mindpulse.health.fitted import load_fit
from mindpulse.health.judging import Judgement, judge_run, replay
from mindpulse.health.scoring import score, score_of
from mindpulse.health.trend import thinned
from mindpulse.health.values import Health, Part, Reason

__all__ = [
    "Health",
    "Judgement",
    "Part",
    "Reason",
    "judge_run",
    "load_fit",
    "replay",
    "score",
    "score_of",
    "thinned",
]
