"""Did it help? A request is judged some steps later by the rule that led to it. Pure.

"helped"  the rule is quiet
"better"  it still fires, but a term that it compares has come a tenth nearer to being quiet
"none"    it still fires, and no term has
"unknown" the rule could not be judged for a long time
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping

from mindpulse.control import Request
from mindpulse.errors import MindPulseError
from mindpulse.rules.compiler import compile_expression
from mindpulse.rules.expression import FIRED, UNKNOWN
from mindpulse.rules.rule import Rule
from mindpulse.rules.running import ViewLike
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import Limits

JUDGED = frozenset({"scale_lr", "skip_step", "rollback", "set_clip", "free_memory"})
BETTER = 0.1  # share of the value by which a term has to move
LONG = 10  # times judge_steps after which an unknown verdict is one

Numbers = dict[str, float]


def ripe(request: Request, rule: Rule, ledger: Ledger, step: int, limits: Limits) -> bool:
    """Whether it is time to judge a request."""
    if request.verb not in JUDGED or not request.alert or request.seq in ledger.judgements:
        return False
    outcome = ledger.outcome(request.seq)
    if outcome is None or outcome.status != "done" or request.seq in ledger.undone:
        return False
    later = [r for r in ledger.of(request.verb) if r.alert == request.alert and r.seq > request.seq]
    return bool(later) or step >= outcome.step + _patience(request, rule, limits)


def _patience(request: Request, rule: Rule, limits: Limits) -> int:
    return int(request.args.get("steps", 0)) + max(limits.judge_steps, rule.for_steps)


def judge(
    request: Request, rule: Rule, view: ViewLike, done_step: int, limits: Limits
) -> tuple[str, Numbers] | None:
    """(effect, the rule's terms now); None while it cannot be told.

    Args:
        view: what the rule sees now.
        done_step: when the request was carried out.

    Example:
        >>> from mindpulse.rules.rule import make_rule
        >>> from mindpulse.testing import view
        >>> rule = make_rule({"name": "big", "expr": "last(grad_norm) > 50"})
        >>> asked = Request(1, 0.0, "scale_lr", {"factor": 0.5}, "big", "", {"last(grad_norm)": 90},
        ...                 9, 9, 1, "big/a1/r0/s8")
        >>> judge(asked, rule, view(grad_norm=[60.0]), 9, Limits())
        ('better', {'last(grad_norm)': 60.0})
    """
    verdict = rule.expression.evaluate(view)
    if verdict.state == UNKNOWN:
        late = view.step >= done_step + LONG * _patience(request, rule, limits)
        return ("unknown", {}) if late else None
    if verdict.state != FIRED:
        return "helped", values(request.evidence, view)
    better = improved(rule.expression.text, request.evidence, verdict.evidence)
    return ("better" if better else "none"), dict(verdict.evidence)


def values(terms: Mapping[str, float], view: ViewLike) -> Numbers:
    """The terms as they are now; those that have no value are left out."""
    found: Numbers = {}
    for term in terms:
        try:
            verdict = compile_expression(f"({term}) == ({term})").evaluate(view)
        except MindPulseError:
            continue
        numbers = list(verdict.evidence.values())
        if numbers:
            found[term] = numbers[0]
    return found


def improved(text: str, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """Whether a term that the rule compares has moved towards where the rule is quiet.

    Example:
        >>> improved("last(a) > 5", {"last(a)": 100.0}, {"last(a)": 60.0})
        True
        >>> improved("last(a) < 5", {"last(a)": 4.0}, {"last(a)": 3.0})
        False
    """
    for term, sign in directions(text).items():
        if term not in before or term not in after:
            continue
        old, new = before[term], after[term]
        if not math.isfinite(old):
            if math.isfinite(new):
                return True
        elif sign * (old - new) >= BETTER * max(abs(old), 1e-12):
            return True
    return False


def directions(text: str) -> dict[str, int]:
    """For the terms that a rule compares: 1 where a smaller value is quieter, -1 where a larger is.

    Example:
        >>> directions("last(a) > 50 or std(b[9]) < 2 * mean(b[9])")
        {'last(a)': 1, 'std(b[9])': -1}
    """
    try:
        tree = ast.parse(" ".join(text.split()), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return {}  # beyond Python's own grammar: then only "quiet" counts as help
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            above = isinstance(node.ops[0], (ast.Gt, ast.GtE))
            if above or isinstance(node.ops[0], (ast.Lt, ast.LtE)):
                sign = 1 if above else -1
                _note(found, node.left, sign)
                _note(found, node.comparators[0], -sign)
    return found


def _note(found: dict[str, int], node: ast.expr, sign: int) -> None:
    if isinstance(node, ast.Call):
        found.setdefault(ast.unparse(node), sign)


def rank_of(alert: str) -> int:
    """The rank in the id of an alert, 0 where it names none."""
    found = re.search(r"/r(\d+)(/|$)", alert)
    return int(found[1]) if found else 0
