"""A watcher in a process of its own, to be killed."""

from __future__ import annotations

from multiprocessing.connection import Connection

from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.watcher import watch

TABLES = (
    {"name": "norm-lost", "expr": "nonfinite(grad_norm) > 0", "group": "lost", "hold_steps": 2,
     "cooldown_steps": 0, "severity": "error", "part": "gradient"},
    {"name": "loss-lost", "expr": "nonfinite(train_loss) > 0", "group": "lost", "hold_steps": 2,
     "cooldown_steps": 0, "severity": "critical", "inhibits": ["high"], "part": "numerics"},
    {"name": "high", "expr": "median(grad_norm[3]) > 20", "hold_steps": 3, "for_steps": 3,
     "cooldown_steps": 5, "part": "gradient"},
    {"name": "slow", "expr": "last(step_time_s) > 2 and last(grad_norm) > 0", "hold_steps": 1,
     "cooldown_steps": 7, "part": "throughput"},
)  # fmt: skip


def rules() -> list[Rule]:
    """The shipped rules, and some that come and go often."""
    own = [make_rule(table) for table in TABLES]
    return [*(rule for rule in load_rules() if rule.name not in {r.name for r in own}), *own]


RULES = rules()  # once, in the process that the others are forked from


def watch_for_ever(run: str, ready: Connection) -> None:
    """Watches; says when it is about to begin."""
    ready.send(True)
    for _ in watch(run, RULES):
        pass
