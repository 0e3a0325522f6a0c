"""What the live view in a notebook says. Data only; `messages` reads it: (English, Chinese)."""

from __future__ import annotations

from mindpulse.messages.rule_texts import Pair

NOTEBOOK_TEXTS: dict[str, Pair] = {
    "waiting": ("nothing is recorded in {path} yet", "{path} 中尚无记录"),
    "none": ("no rows yet", "尚无数据行"),
    "step": ("step {step}", "第 {step} 步"),
    "rank": ("rank {rank} of {count} ranks", "共 {count} 个 rank，显示 rank {rank}"),
    "age": ("last row {age} ago", "最后一行写于 {age} 前"),
    "ended": ("the training has ended", "训练已结束"),
    "more": ("and {count} more open alerts", "另有 {count} 个未解除的告警"),
    "least": ("least {value} at step {step}", "最小 {value}（第 {step} 步）"),
    "largest": ("largest {value} at step {step}", "最大 {value}（第 {step} 步）"),
}
