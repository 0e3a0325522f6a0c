"""From evidence to a probability: an additive model of the log-odds, fitted to recorded runs.

    log-odds(healthy) = log-odds(prior) + sum over parts of (quiet, where known) - (lost)
    lost = weight of the part x (its costliest rule + further x the sum of its other rules)
           + stale_loss, where the loss did not come down for good

A rule costs what its gravest alert does: `lost` by severity, times `resolved` once it is over. All
constants are zero or more, `lost` does not fall from info to critical, `resolved` and `further` are
at most 1: so no alert, no higher severity, and none that goes on raises the score. A part that is
not known adds nothing, and so does a part of which the recorded runs told nothing.

The constants are in fit.toml, written by `python -m benchmarks.faults.calibrate`; docs/health.md.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from mindpulse.health.evidence import Evidence
from mindpulse.rules.derived import Record
from mindpulse.rules.expression import Expression
from mindpulse.rules.rule import PARTS, SEVERITIES, Rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIT_FILE = "fit.toml"


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted constants; log-odds are in nats.

    Attributes:
        rules: fingerprint of the rules that judged the recorded runs.
        prior: share of healthy runs that is taken for granted before anything is seen.
        runs, healthy, faulty, recipes: what it was fitted to.
        lost: log-odds that an alert of a severity costs.
        resolved: share of it once the alert is over.
        further: share of it for all rules of a part but the costliest.
        stale_loss: log-odds that a loss costs that did not come down for good.
        weight: of each part.
        quiet: log-odds that each part gains by being known.
    """

    rules: str
    prior: float
    runs: int
    healthy: int
    faulty: int
    recipes: int
    lost: Mapping[str, float]
    resolved: float
    further: float
    stale_loss: float
    weight: Mapping[str, float]
    quiet: Mapping[str, float]

    def cost(self, part: str, evidence: Evidence) -> float:
        """Log-odds that the findings of a part cost, 0 or more."""
        rules: dict[str, float] = {}
        for found in evidence.found:
            cost = self.lost[found.severity] * (self.resolved if found.over else 1.0)
            rules[found.rule] = max(cost, rules.get(found.rule, 0.0))
        worst = max(rules.values(), default=0.0)
        lost = worst + self.further * (math.fsum(rules.values()) - worst)
        return self.weight[part] * lost + (self.stale_loss if evidence.stale_loss else 0.0)

    def probability(self, parts: Mapping[str, Evidence]) -> float:
        """The probability that a run with this evidence is healthy.

        Example:
            >>> fit = load_fit()
            >>> fit.probability({}) == fit.prior
            True
        """
        odds = [self.quiet[name] for name, evidence in parts.items() if evidence.known]
        odds += [-self.cost(name, evidence) for name, evidence in parts.items()]
        return _logistic(_log_odds(self.prior) + math.fsum(odds))

    @property
    def best(self) -> float:
        """The probability of a run without findings of which all parts are known."""
        return self.probability(dict.fromkeys(PARTS, Evidence(known=True)))

    def part_score(self, part: str, evidence: Evidence) -> float:
        """100 x the probability with the findings of this part alone, as a share of `best`."""
        run = dict.fromkeys(PARTS, Evidence(known=True))
        run[part] = replace(evidence, known=True)
        return 100.0 * self.probability(run) / self.best


@cache
def load_fit() -> Fit:
    """The constants that ship."""
    return read_fit(files("mindpulse.health").joinpath(FIT_FILE).read_text(encoding="utf-8"))


def read_fit(content: str) -> Fit:
    """The constants in the text of a file.

    Raises:
        ValueError: they would let an alert raise the score.
    """
    table = tomllib.loads(content)
    measured, lost = table["measured_on"], table["lost"]
    fit = Fit(
        rules=table["rules"],
        prior=table["prior"],
        lost={name: lost[name] for name in SEVERITIES},
        resolved=table["resolved"],
        further=table["further"],
        stale_loss=table["stale_loss"],
        weight={name: table["weight"][name] for name in PARTS},
        quiet={name: table["quiet"][name] for name in PARTS},
        **{name: measured[name] for name in ("runs", "healthy", "faulty", "recipes")},
    )
    _check(fit)
    return fit


def _check(fit: Fit) -> None:
    points = list(fit.lost.values())
    constants = [*points, fit.stale_loss, *fit.weight.values(), *fit.quiet.values()]
    if points != sorted(points) or min(constants) < 0:
        raise ValueError(f"{fit}: want constants of 0 or more, `lost` rising with the severity")
    if not (0 <= fit.resolved <= 1 and 0 <= fit.further <= 1 and 0 < fit.prior < 1):
        raise ValueError(f"{fit}: want resolved and further from 0 to 1, prior between 0 and 1")


def write_fit(fit: Fit) -> str:
    """The text of the file, as `read_fit` takes it."""
    lines = [
        "# The constants of the health score; docs/health.md says what each of them means.",
        "# Written by `python -m benchmarks.faults.calibrate RECORDINGS --write`, not by hand.",
        f'rules = "{fit.rules}"',
        f"prior = {fit.prior:g}",
        *(f"{name} = {getattr(fit, name):.4f}" for name in ("resolved", "further", "stale_loss")),
        "\n[measured_on]",
        *(f"{name} = {getattr(fit, name)}" for name in ("runs", "healthy", "faulty", "recipes")),
    ]
    for table in ("lost", "weight", "quiet"):
        lines += [f"\n[{table}]"]
        lines += [f"{name} = {value:.4f}" for name, value in getattr(fit, table).items()]
    return "\n".join(lines) + "\n"


def fingerprint(rules: Iterable[Rule]) -> str:
    """What tells rules from others that judge differently; their words and actions do not count.

    Example:
        >>> from mindpulse.rules.load import load_rules
        >>> rules = load_rules()
        >>> fingerprint(reversed(rules)) == fingerprint(rules) != fingerprint(rules[1:])
        True
    """
    told = sorted(repr(_judging(rule)) for rule in rules)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _judging(rule: Rule) -> tuple[object, ...]:
    return (
        *(rule.name, rule.severity, rule.part, rule.for_steps),
        *(rule.hold_steps, rule.cooldown_steps),
        *_texts(rule.expression),
        *((severity, *_texts(expression)) for severity, expression in rule.worse),
    )


def _texts(expression: Expression) -> tuple[str, ...]:
    """The expression and the derived series that it reads, whatever their line breaks."""
    records = [w.record for w in expression.windows if isinstance(w.record, Record)]
    inner = [(record.name, *_texts(record.expression)) for record in records]
    return (" ".join(expression.text.split()), *(" ".join(texts) for texts in inner))


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


def _logistic(log_odds: float) -> float:
    """Without overflow, however grave the evidence."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)
