"""The texts of the report in English and Chinese, for the one catalogue of messages."""

from __future__ import annotations

from mindpulse.messages import CATALOGUE

PREFIX = "report."

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Training health report", "训练健康报告"),
    "skip": ("Skip to the findings", "跳到结论"),
    "nav.curves": ("Curves", "曲线"),
    "nav.timeline": ("Timeline", "时间线"),
    "nav.layers": ("Layers", "各层"),
    "nav.attention": ("Attention", "注意力"),
    "nav.score": ("Health score", "健康分"),
    "nav.run": ("This run", "本次运行"),
    # the first screen
    "verdict.healthy": ("Healthy", "健康"),
    "verdict.recovered": ("Recovered", "已恢复"),
    "verdict.attention": ("Needs attention", "需要关注"),
    "verdict.unhealthy": ("Unhealthy", "不健康"),
    "verdict.unknown": ("Cannot tell", "无法判断"),
    "verdict.healthy.text": (
        'No rule above "info" fired in steps {first} to {last}.',
        "第 {first} 到 {last} 步没有触发“提示”以上的规则。",
    ),
    "verdict.recovered.text": (
        'Rules above "info" that fired: {count}. All were over by step {last}.',
        "触发的“提示”以上规则：{count} 次。到第 {last} 步均已解除。",
    ),
    "verdict.attention.text": (
        'Rules above "info" that fired: {count}. Still open at step {last}: {firing}.',
        "触发的“提示”以上规则：{count} 次。到第 {last} 步仍未解除：{firing}。",
    ),
    "verdict.unhealthy.text": (
        'Rules above "info" that fired: {count}. Still open at step {last}: {firing}.',
        "触发的“提示”以上规则：{count} 次。到第 {last} 步仍未解除：{firing}。",
    ),
    "verdict.unknown.text": (
        "Too little was recorded to judge this run. Missing data is not health.",
        "记录的数据太少，无法判断。缺少数据并不等于健康。",
    ),
    "full_stop": (".", "。"),
    "list.comma": (", ", "、"),
    "verdict.blind": ("Not judged, no signal: {parts}.", "无信号、未判断：{parts}。"),
    "finding.first": ("Look at this first", "首先查看"),
    "finding.where": ("Where", "位置"),
    "finding.since": ("Since", "起始"),
    "finding.evidence": ("Evidence", "依据"),
    "finding.causes": ("Likely causes", "可能原因"),
    "finding.next": ("What to do", "如何处理"),
    "finding.whole": ("whole model", "整个模型"),
    "finding.rank": ("rank {rank}", "rank {rank}"),
    "finding.more": ("and {count} more", "另有 {count} 处"),
    "finding.span": ("step {since} to {end}", "第 {since} 到 {end} 步"),
    "finding.open": ("step {since}, still open", "第 {since} 步，仍未解除"),
    "finding.others": ("Also", "其他问题"),
    "finding.other": ("{what}: {span}", "{what}：{span}"),
    "finding.done": ("What the watcher asked for", "守护进程提出的请求"),
    # figures in short
    "fact.steps": ("Steps", "步数"),
    "fact.loss": ("Loss, last", "最后损失"),
    "fact.best": ("best {value} at step {step}", "最好 {value}（第 {step} 步）"),
    "fact.grad": ("Gradient norm, last", "最后梯度范数"),
    "fact.max": ("largest {value} at step {step}", "最大 {value}（第 {step} 步）"),
    "fact.step_time": ("Step time, median", "单步耗时中位数"),
    "fact.p99_last": (
        "99 % below {value}, of the last {count} rows",
        "99% 低于 {value}（最后 {count} 行）",
    ),
    "fact.p99": ("99 % below {value}", "99% 低于 {value}"),
    "fact.duration": ("Recorded for", "记录时长"),
    "fact.alerts": ("Alerts", "告警"),
    "fact.open": ("{count} open", "{count} 个未解除"),
    "fact.none": ("none", "无"),
    "fact.attempts": ("attempts {attempts}, ranks {ranks}", "尝试 {attempts}，rank 数 {ranks}"),
    "fact.not_finite": ("{count} not finite", "{count} 个非有限值"),
    # axes and legends
    "axis.step": ("step", "步"),
    "axis.log": ("{unit} (log)", "{unit}（对数）"),
    "legend.raw": ("each step", "每步"),
    "legend.smooth": ("moving average", "滑动平均"),
    "legend.bad": (
        "NaN or infinite: {count}, first at step {step}",
        "NaN 或无穷：{count} 个，首次在第 {step} 步",
    ),
    "legend.not_finite": ("NaN or infinite", "NaN 或无穷"),
    "legend.no_row": ("not recorded", "未记录"),
    "legend.alert": ("alert: {name}", "告警：{name}"),
    "legend.action": ("action taken", "已执行动作"),
    "table.open": ("Data as a table", "以表格查看数据"),
    "table.means": ("{name}, means of twelve parts of the run", "{name}：全程十二段的均值"),
    "table.caption": ("{name}, twelve rows spread over the run", "{name}：全程均匀选取的 12 行"),
    # pictures
    "curve.train_loss": ("Loss", "损失"),
    "curve.train_loss.caption": (
        "The thin line is every step, so a one-step spike stays visible.",
        "细线为每一步的值，单步尖峰不会被隐藏。",
    ),
    "curve.grad_norm": ("Gradient norm", "梯度范数"),
    "curve.grad_norm.caption": (
        "L2 norm over all parameters, before any clipping by the optimizer.",
        "全部参数的 L2 范数，优化器裁剪之前。",
    ),
    "curve.learning_rate": ("Learning rate", "学习率"),
    "curve.learning_rate.caption": (
        "As the optimizer used it, actions included.",
        "优化器实际使用的值，包含动作的影响。",
    ),
    "curve.step_time_s": ("Step time", "单步耗时"),
    "curve.step_time_s.caption": (
        "Wall time of one optimizer step.",
        "一次优化器步的墙钟时间。",
    ),
    "describe.curve": (
        "{name} over steps {first} to {last}: starts at {start}, ends at {end}, "
        "least {low} at step {low_step}, largest {high} at step {high_step}; "
        "{bad} values are not finite.",
        "{name}，第 {first} 到 {last} 步：起始 {start}，结束 {end}，"
        "最小 {low}（第 {low_step} 步），最大 {high}（第 {high_step} 步）；{bad} 个非有限值。",
    ),
    "describe.no_finite": (
        "{name} over steps {first} to {last}: none of the {bad} values is finite.",
        "{name}，第 {first} 到 {last} 步：{bad} 个值均非有限值。",
    ),
    "heat.grad_norm_param": ("Gradient norm by layer", "各层梯度范数"),
    "heat.grad_norm_param.unit": ("L2 norm", "L2 范数"),
    "heat.grad_norm_param.caption": (
        "One row per layer. A dark row has stopped learning, a bright column is a spike.",
        "每行一层。整行变暗表示该层停止学习，整列变亮表示尖峰。",
    ),
    "heat.attn_entropy": ("Attention entropy by head", "各注意力头的熵"),
    "heat.attn_entropy.unit": ("entropy, 0 to 1", "熵，0 到 1"),
    "heat.attn_entropy.caption": (
        "0: a head looks at one position only; 1: it looks everywhere alike.",
        "0：该头只看一个位置；1：均匀地看所有位置。",
    ),
    "heat.attn_focus": ("Attention focus by head", "各注意力头的聚焦度"),
    "heat.attn_focus.unit": ("largest weight, mean", "最大权重的均值"),
    "heat.attn_focus.caption": (
        "Mean over queries of the largest weight. A row that never changes has converged.",
        "对所有查询取最大权重的均值。长期不变的行表示已收敛。",
    ),
    "heat.cell.max": (
        "Each cell shows the largest of about {count} steps.",
        "每格为约 {count} 步中的最大值。",
    ),
    "heat.cell.min": (
        "Each cell shows the smallest of about {count} steps.",
        "每格为约 {count} 步中的最小值。",
    ),
    "heat.table": ("{name}: what each row of the picture holds", "{name}：图中每行的数值"),
    "column.row": ("Row", "行"),
    "column.least": ("Least", "最小"),
    "column.largest": ("Largest", "最大"),
    "column.last": ("Last", "最后"),
    "column.bad": ("Cells with NaN or infinity", "含 NaN 或无穷的格"),
    "describe.heat": (
        "Heat map, {rows} rows over steps {first} to {last}; values from {low} to {high}.",
        "热图，{rows} 行，第 {first} 到 {last} 步；取值 {low} 到 {high}。",
    ),
    "maps.title": ("Attention maps", "注意力图"),
    "maps.caption": (
        "Last snapshot, step {step}. Query positions run down, key positions run right; "
        "the colours follow the square root of the weight, so that weak links show.",
        "最后一次快照，第 {step} 步。纵轴为查询位置，横轴为键位置；"
        "颜色按权重的平方根，便于看清弱连接。",
    ),
    "maps.some": ("{shown} of {total} heads are shown.", "共 {total} 个头，显示 {shown} 个。"),
    "maps.unit": ("attention weight", "注意力权重"),
    "maps.layer": ("Layer {layer}", "第 {layer} 层"),
    "maps.step": ("step {step}", "第 {step} 步"),
    "maps.head": ("head {head}", "头 {head}"),
    "maps.focus": ("focus {value}", "聚焦 {value}"),
    "maps.alt": (
        "Attention of layer {layer}, head {head} at step {step}; focus {focus}",
        "第 {layer} 层头 {head} 在第 {step} 步的注意力；聚焦度 {focus}",
    ),
    "none.maps": (
        "No snapshot of attention maps was recorded in this run.",
        "本次运行没有记录注意力图快照。",
    ),
    "none.heat": (
        "No gradient norm per parameter was recorded, so layers cannot be told apart.",
        "没有记录各参数的梯度范数，无法区分各层。",
    ),
    "none.curve": ("No loss was recorded in this run.", "本次运行没有记录损失。"),
    "timeline.title": ("Alerts and actions", "告警与动作"),
    "timeline.caption": (
        "A bar lasts from the first step on which the rule's condition held until it was over.",
        "横条从规则条件首次成立的步开始，到解除为止。",
    ),
    "timeline.actions": ("actions", "动作"),
    "timeline.bar": (
        "{severity}: {rule}, step {since} to {end}",
        "{severity}：{rule}，第 {since} 步到 {end}",
    ),
    "timeline.open": ("the end", "结束"),
    "none.timeline": ("No rule fired in this run.", "本次运行没有触发任何规则。"),
    "alerts.caption": ("All alerts", "全部告警"),
    "actions.caption": ("All actions", "全部动作"),
    "column.severity": ("Severity", "级别"),
    "column.rule": ("Rule", "规则"),
    "column.steps": ("Steps", "步"),
    "column.where": ("Where", "位置"),
    "column.what": ("What", "内容"),
    "column.action": ("Action", "动作"),
    "column.asked": ("Asked for step", "请求的步"),
    "column.done": ("Answered at step", "应答的步"),
    "column.status": ("Status", "状态"),
    "column.reason": ("Why", "原因"),
    "column.key": ("Name", "名称"),
    "column.value": ("Value", "值"),
    "status.open": ("no answer", "无应答"),
    # the score
    "score.title": ("Health score", "健康分"),
    "score.of": ("of 100", "满分 100"),
    "score.unknown": ("unknown", "未知"),
    "score.at_best": ("{best} without findings", "无发现时为 {best}"),
    "score.uncalibrated": ("not measured with these rules", "未按这些规则测定"),
    "score.meaning": (
        "100 x the probability that a run with such findings is healthy, measured on {runs} "
        "recorded runs; before anything is seen, {prior} % of runs are taken to be healthy. With "
        "the signals of this run and no finding it would be {best}: not every fault is found. The "
        "number of a part is 100 without findings; with some it is how likely health is with these "
        "alone, in percent of what it is without. A part without a signal is unknown and changes "
        "nothing.",
        "健康分 = 100 × 有这些发现的训练健康的概率，由 {runs} 次已记录的训练测定；"
        "在看到任何数据之前，假定 {prior}% 的训练是健康的。以本次训练已有的信号，若无任何发现，"
        "该分为 {best}，因为并非每个故障都能被发现。各部分无发现时为 100；有发现时，"
        "为仅有这些发现时健康的概率与无发现时之比（百分数）。没有信号的部分为未知，不影响总分。",
    ),
    "score.caption": (
        "The score was measured with the rules that ship. With other rules it orders runs, but 90 "
        "does not mean a 90 % chance of health. A part without a signal is unknown, not healthy.",
        "健康分是用自带规则测定的；使用其他规则时可用于排序，但 90 分不等于 90% 的健康概率。"
        "没有信号的部分为未知，不等于健康。",
    ),
    "part.attention": ("Attention", "注意力"),
    "part.gradient": ("Gradient", "梯度"),
    "part.memory": ("Memory", "内存"),
    "part.hardware": ("Hardware", "硬件"),
    "part.loss": ("Loss", "损失"),
    "part.numerics": ("Numerics", "数值"),
    "part.throughput": ("Throughput", "吞吐"),
    # the run
    "run.title": ("This run", "本次运行"),
    "run.files": (
        "{total} files: {valid} valid, {damaged} damaged, {foreign} not ours; "
        "{rows} rows, {lost} damaged",
        "共 {total} 个文件：有效 {valid}，损坏 {damaged}，其他 {foreign}；"
        "{rows} 行，损坏 {lost} 行",
    ),
    "run.fingerprint": ("Fingerprint of the run", "运行指纹"),
    "run.problems": ("Could not be read", "无法读取"),
    "run.troubles": ("What the monitor reported about itself", "监控器自身的报告"),
    "run.time": ("{name}, {first} to {last} UTC", "{name}，{first} 至 {last} UTC"),
    "run.created": (
        "Written by MindPulse {version} on {date}.",
        "由 MindPulse {version} 于 {date} 生成。",
    ),
}


def register() -> None:
    """Adds these texts to the catalogue, each under "report." and its key."""
    CATALOGUE.update({PREFIX + key: pair for key, pair in TEXTS.items()})
