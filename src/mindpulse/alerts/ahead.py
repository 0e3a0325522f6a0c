"""Which of many swept steps have to be judged: those at which an alert may change.

Where a rule says the same at step after step, its alert stays as it is from some step on, so the
last step of such a stretch stands for the rest of it. While an alert is firing, neither a condition
that goes on holding nor a pause that is too short to resolve it changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.alerts.life import FIRING, AlertState
from mindpulse.rules.functions import Steps
from mindpulse.rules.rule import Rule
from mindpulse.rules.sweep import Says

Places = NDArray[np.intp]
Said = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Steps that were swept, for one rule.

    Attributes:
        rule: whose steps they are.
        steps: (S,) increasing.
        said: (S,) what the rule `Says` at each.
        lasts: (S,) how far ahead the alert stays as it is after this step; for a step at which the
            rule fires: if the alert is firing already.
    """

    rule: Rule
    steps: Steps
    said: Said
    lasts: Places

    @classmethod
    def of(cls, rule: Rule, steps: Steps, said: Said) -> Ahead:
        """At least one step."""
        ends = np.append(np.flatnonzero(said[1:] != said[:-1]), len(said) - 1)
        lasts = np.repeat(ends, np.diff(ends, prepend=-1))
        fired = np.flatnonzero(said == Says.FIRED)
        halts = np.append(_halts(rule, steps, said), len(said))
        lasts[fired] = fired[fired.searchsorted(halts[halts.searchsorted(fired)]) - 1]
        return cls(rule, steps, said, lasts)

    def next_to_judge(self, at: int, state: AlertState) -> int:
        """The first place from `at` on that has to be judged while the alert stands at `state`.

        Example:
            >>> from mindpulse.rules.rule import make_rule
            >>> rule = make_rule({"name": "big", "expr": "last(grad_norm) > 50"})
            >>> said = np.array([Says.QUIET, Says.QUIET, Says.QUIET, Says.FIRED])
            >>> Ahead.of(rule, np.arange(4), said).next_to_judge(0, AlertState())
            2
        """
        says, last = self.said[at], int(self.lasts[at])
        if says == Says.OPEN or (says == Says.FIRED and state.phase != FIRING):
            return at
        if says == Says.QUIET and state.phase == FIRING:
            if state.quiet_since is None:
                return at
            over = min(state.quiet_since + self.rule.hold_steps - 1, int(self.steps[last]))
            return max(at, int(self.steps.searchsorted(over)))
        return last


def _halts(rule: Rule, steps: Steps, said: Said) -> Places:
    """Where an alert that is firing may be resolved, after a step at which the rule fires."""
    quiet, is_open = said == Says.QUIET, said == Says.OPEN
    pause = np.cumsum((said == Says.FIRED) | is_open)
    since = np.zeros(pause[-1] + 1, np.int64)
    places = np.flatnonzero(quiet)[::-1]
    since[pause[places]] = steps[places]  # of several places of a pause the earliest comes last
    long_enough = steps >= since[pause] + max(0, rule.hold_steps - 1)
    return np.flatnonzero((quiet & long_enough) | is_open)
