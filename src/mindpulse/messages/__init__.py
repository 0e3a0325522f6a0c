"""The catalogue of what MindPulse says to its users, in English and Chinese.

Every text has both languages and the same placeholders in both; a test proves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindpulse.catalogue import MEASURES
from mindpulse.errors import UsageError
from mindpulse.messages.act_texts import ACT_TEXTS
from mindpulse.messages.ascend_texts import ASCEND_TEXTS
from mindpulse.messages.compare_texts import COMPARE_TEXTS
from mindpulse.messages.deliver_texts import DELIVER_TEXTS
from mindpulse.messages.doctor_data_texts import DOCTOR_DATA_TEXTS
from mindpulse.messages.doctor_debug_texts import DOCTOR_DEBUG_TEXTS
from mindpulse.messages.doctor_env_texts import DOCTOR_ENV_TEXTS
from mindpulse.messages.doctor_memory_texts import DOCTOR_MEMORY_TEXTS
from mindpulse.messages.doctor_texts import DOCTOR_TEXTS
from mindpulse.messages.measure_texts import MEASURE_TEXTS, SOURCE_TEXTS
from mindpulse.messages.notebook_texts import NOTEBOOK_TEXTS
from mindpulse.messages.rule_texts import RULE_TEXTS, Pair
from mindpulse.messages.rules_texts import RULE_REASONS, RULES_TEXTS
from mindpulse.messages.watch_texts import WATCH_TEXTS, WATCHER_RULE_TEXTS

LANGUAGES = ("en", "zh")

CATALOGUE: dict[str, Pair] = {
    "severity.info": ("info", "提示"),
    "severity.warning": ("warning", "警告"),
    "severity.error": ("error", "错误"),
    "severity.critical": ("critical", "严重"),
    "alert.firing": (
        "[{severity}] {rule}: {summary}; since step {since}{where}{evidence}",
        "[{severity}] {rule}：{summary}；自第 {since} 步起{where}{evidence}",
    ),
    "alert.resolved": (
        "[resolved] {rule}: over at step {step}, began at step {since}{where}",
        "[已恢复] {rule}：第 {step} 步结束，始于第 {since} 步{where}",
    ),
    "alert.own_rule": ("the condition of your rule holds", "自定义规则的条件成立"),
    "alert.where": ("; {columns}", "；{columns}"),
    "alert.more": (" and {count} more", " 等另外 {count} 个"),
    "alert.rank": ("; rank {rank}", "；rank {rank}"),
    "alert.evidence": ("; {terms}", "；{terms}"),
    "action.advice": (
        "advice ({rule}): {request}; start `mindpulse watch --act` to let it be done",
        "建议（{rule}）：{request}；使用 `mindpulse watch --act` 可自动执行",
    ),
    "action.request": (
        "request {seq} ({rule}): {request} before step {step}",
        "请求 {seq}（{rule}）：在第 {step} 步之前{request}",
    ),
    "action.held": (
        "not asked for ({rule}): {request}; {detail}",
        "未提出请求（{rule}）：{request}；{detail}",
    ),
    "action.answer": (
        "answer to request {seq} by rank {rank}: {status} at step {step}{detail}",
        "rank {rank} 对请求 {seq} 的答复：{status}，第 {step} 步{detail}",
    ),
    "action.rejected": (
        "a line of the control log is ignored: {detail}",
        "控制日志中有一行被忽略：{detail}",
    ),
    "status.done": ("done", "已执行"),
    "status.refused": ("refused", "被拒绝"),
    "status.expired": ("expired", "已过期"),
    "status.failed": ("failed", "失败"),
    "verb.scale_lr": ("multiply the learning rate by {factor}", "将学习率乘以 {factor}"),
    "verb.stop": ("stop the training", "停止训练"),
    "verb.burst": (
        "measure everything on each of {steps} steps",
        "在接下来的 {steps} 步中逐步测量全部指标",
    ),
    "verb.snapshot": (
        "keep the attention maps of one step",
        "保存一步的注意力图",
    ),
    "health.no_signal": (
        "too little was recorded to say anything about it",
        "记录的相关数据太少，无法判断",
    ),
    "health.alert": ("{rule} since step {since}", "{rule}：自第 {since} 步起"),
    "health.alert_over": (
        "{rule} since step {since}, over at step {step}",
        "{rule}：自第 {since} 步起，第 {step} 步结束",
    ),
    "health.loss_not_fallen": (
        "the loss has not fallen: {begin} at the beginning, {end} at the end",
        "损失没有下降：开始时 {begin}，结束时 {end}",
    ),
    "health.loss_lost_ground": (
        "the loss was {best} around step {step} and is {end} at the end",
        "损失在第 {step} 步附近为 {best}，结束时为 {end}",
    ),
    "held.outstanding": (
        "request {seq} has not been answered yet",
        "请求 {seq} 尚未得到答复",
    ),
    "held.settling": (
        "the last change was at step {step}; its effect is awaited until step {until}",
        "上次调整在第 {step} 步；等待其效果至第 {until} 步",
    ),
    "held.budget": (
        "{count} of at most {most} requests of this kind were used in this run",
        "本次运行已使用 {count} 次此类请求，上限为 {most} 次",
    ),
    "held.enough": (
        "this alert has asked {count} times; more of the same is not the cure",
        "该警报已请求 {count} 次；继续同样的调整无济于事",
    ),
    "held.floor": (
        "the learning rate would fall below {floor} of what it was",
        "学习率将低于原来的 {floor}",
    ),
    "held.when": (
        "the condition of the action does not hold ({detail})",
        "动作的附加条件不成立（{detail}）",
    ),
    "held.verb": ("--act does not allow {verb}", "--act 未允许 {verb}"),
    "held.refused": (
        "the training did not carry out request {seq} ({status})",
        "训练未执行请求 {seq}（{status}）",
    ),
}
CATALOGUE.update({f"rules.{_key}": _pair for _key, _pair in RULES_TEXTS.items()})
CATALOGUE.update({f"rule.{_name}.why": _pair for _name, _pair in RULE_REASONS.items()})
CATALOGUE.update({f"compare.{_key}": _pair for _key, _pair in COMPARE_TEXTS.items()})
CATALOGUE.update({f"deliver.{_key}": _pair for _key, _pair in DELIVER_TEXTS.items()})
CATALOGUE.update({f"notebook.{_key}": _pair for _key, _pair in NOTEBOOK_TEXTS.items()})
CATALOGUE.update({f"doctor.{_key}": _pair for _key, _pair in DOCTOR_ENV_TEXTS.items()})
CATALOGUE.update({f"doctor.{_key}": _pair for _key, _pair in DOCTOR_MEMORY_TEXTS.items()})
CATALOGUE.update({f"doctor.{_key}": _pair for _key, _pair in DOCTOR_TEXTS.items()})
CATALOGUE.update({f"doctor.{_key}": _pair for _key, _pair in DOCTOR_DATA_TEXTS.items()})
CATALOGUE.update({f"doctor.{_key}": _pair for _key, _pair in DOCTOR_DEBUG_TEXTS.items()})
CATALOGUE.update(WATCH_TEXTS)
for _name, _texts in (*RULE_TEXTS.items(), *WATCHER_RULE_TEXTS.items()):
    CATALOGUE.update({f"rule.{_name}.{part}": pair for part, pair in _texts.items()})

CATALOGUE.update(ACT_TEXTS)
CATALOGUE.update({f"ascend.{_key}": _pair for _key, _pair in ASCEND_TEXTS.items()})
for _tag, (_tells, _formula) in MEASURE_TEXTS.items():
    _source = MEASURES[_tag].source
    CATALOGUE[f"measure.{_tag}.tells"] = _tells
    CATALOGUE[f"measure.{_tag}.formula"] = (MEASURES[_tag].formula, _formula)
    CATALOGUE[f"measure.{_tag}.source"] = (_source, SOURCE_TEXTS.get(_source, _source))


def text(key: str, lang: str = "en", **values: object) -> str:
    """The text of a key with its placeholders filled.

    Raises:
        UsageError: the key or the language does not exist.

    Example:
        >>> text("verb.scale_lr", "zh", factor=0.5)
        '将学习率乘以 0.5'
    """
    if lang not in LANGUAGES:
        raise UsageError(f"language {lang!r}: use one of {', '.join(LANGUAGES)}")
    if key not in CATALOGUE:
        raise UsageError(f"no text {key!r} in the catalogue")
    return CATALOGUE[key][LANGUAGES.index(lang)].format(**values)


def rule_text(rule: str, part: str, lang: str = "en", own: Mapping[str, str] | None = None) -> str:
    """What a rule says.

    Args:
        part: "summary", "why" (it is as it is), "causes" or "next".
        own: the texts of a user's rule by language; a shipped rule has none.

    Returns:
        "" for reasons, causes and next steps of a user's rule.
    """
    if own and part == "summary":
        return own.get(lang) or next(iter(own.values()))
    if f"rule.{rule}.{part}" in CATALOGUE:
        return text(f"rule.{rule}.{part}", lang)
    return text("alert.own_rule", lang) if part == "summary" else ""


def measure_text(tag: str, part: str, lang: str = "en") -> str:
    """What a measure of the catalogue is.

    Args:
        part: "tells" (what it shows), "formula" or "source".

    Raises:
        UsageError: there is no such measure, part or language.

    Example:
        >>> measure_text("learning_rate", "source")
        'the optimizer'
    """
    return text(f"measure.{tag}.{part}", lang)


def request_text(verb: str, args: Mapping[str, float], lang: str = "en") -> str:
    """A request in words, for example "multiply the learning rate by 0.5"."""
    return text(f"verb.{verb}", lang, **{name: f"{value:g}" for name, value in args.items()})
