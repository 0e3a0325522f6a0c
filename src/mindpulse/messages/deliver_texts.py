"""What messages to people say around the alerts, in English and Chinese."""

from __future__ import annotations

DELIVER_TEXTS: dict[str, tuple[str, str]] = {
    "title.firing.one": (
        "MindPulse [{severity}] {rule} - {run}",
        "MindPulse [{severity}] {rule} - {run}",
    ),
    "title.firing.many": (
        "MindPulse: {count} alerts, the worst: {severity} - {run}",
        "MindPulse：{count} 条警报，最高级别：{severity} - {run}",
    ),
    "title.resolved.one": (
        "MindPulse [resolved] {rule} - {run}",
        "MindPulse [已恢复] {rule} - {run}",
    ),
    "title.resolved.many": (
        "MindPulse: {count} alerts are over - {run}",
        "MindPulse：{count} 条警报已恢复 - {run}",
    ),
    "title.actions": ("MindPulse: what the watcher did", "MindPulse：监视进程的操作"),
    "title.test": (
        "MindPulse: a test of the receiver {receiver}",
        "MindPulse：接收方 {receiver} 的测试消息",
    ),
    "runs": ("{count} runs", "{count} 次运行"),
    "body.test": (
        "Nothing is wrong. This message shows that alerts reach you here.",
        "一切正常。此消息表明警报可以送达此处。",
    ),
    "body.more": ("and {count} more", "以及另外 {count} 条"),
    "body.causes": ("Likely causes: {text}", "可能原因：{text}"),
    "body.next": ("What to do: {text}", "处理建议：{text}"),
    "body.lost": (
        "{count} earlier messages could not be delivered; see alerts.jsonl",
        "此前有 {count} 条消息未能送达；请查看 alerts.jsonl",
    ),
    "body.run": ("run: {path} on {host}", "运行：{path}（主机 {host}）"),
}
