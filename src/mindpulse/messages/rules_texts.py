"""Words about rules: functions of the language, keys of a rule file, why a rule is as it is.

Data only; `messages` reads it. Each entry is (English, Chinese); what functions do is said in
English where they are defined.
"""

from __future__ import annotations

Pair = tuple[str, str]

FUNCTION_TEXTS: dict[str, str] = {
    "last": "最新的值，原样给出",
    "first": "窗口中最旧的值，原样给出",
    "mean": "算术平均",
    "median": "中位数",
    "sum": "总和",
    "min": "最小值；若给出两个或更多数值而不是窗口，则逐列取较小者",
    "max": "最大值；若给出两个或更多数值而不是窗口，则逐列取较大者",
    "span": "最大值减最小值",
    "std": "标准差（除以 N）",
    "mad": "与中位数距离的中位数，不缩放",
    "noise": "围绕趋势的波动：1.4826 × 相邻差的中位数 / sqrt(2)",
    "cv": "标准差 / 平均值的绝对值",
    "slope": "最小二乘直线的斜率（每步）",
    "quantile": "分位数，第二个参数在 0 与 1 之间，插值",
    "zscore": "（最新值 - 之前各行的中位数）/（1.4826 × 其 mad，至少为中位数的 0.001 倍）",
    "ratio": "最新值 / 之前各行的中位数",
    "baseline": "不受离群值影响、较新的行权重更大的水平：距中位数 3 个 spread 以内各行的加权平均，"
    "最新一行的权重是中间一行的两倍",
    "spread": "1.4826 × mad，至少为中位数绝对值的 0.01 倍",
    "rate": "计数器每步的增长；数值下降时视为从 0 重新开始",
    "rising": "大于前一行的行所占比例，0 到 1",
    "turns": "由升转降或由降转升的行所占比例，0 到 1",
    "count": "有限值的个数",
    "nonfinite": "NaN 或无穷大的个数",
    "any_column": "至少在一列中成立则为真",
    "all_columns": "在每一列中都成立则为真",
    "share_columns": "成立的列所占比例，0 到 1",
    "max_columns": "各列中的最大值",
    "min_columns": "各列中的最小值",
    "mean_columns": "各列的平均值",
    "median_columns": "各列的中位数",
    "sum_columns": "各列之和",
    "first_layer": "第一层各列的平均值",
    "last_layer": "最后一层各列的平均值",
    "abs": "绝对值",
    "sqrt": "平方根",
    "log": "自然对数",
    "upto": "窗口，或其中已有的部分：upto(x[200]) 除了第一行之外不会缺行",
    "steps": "按步计的窗口：steps(x[200]) 包含最近 200 步的各行，无论多少",
    "age": "距该序列最新一行的步数：age(eval_loss)",
    "known": "第一个参数已知时取第一个，否则取第二个："
    "known(last(grad_norm_unclipped), last(grad_norm))；仅用于单列序列",
    "when": "第一个参数（条件）成立时给出第二个参数；不成立时为未知",
}

# key -> (what it means, what holds without it)
KEY_TEXTS: dict[str, tuple[Pair, Pair]] = {
    "name": (("unique in the file", "在文件中唯一"), ("must be given", "必填")),
    "expr": (("the condition, see below", "条件，见下文"), ("must be given", "必填")),
    "for_steps": (
        (
            "for how many steps it has to hold without a break before the alert fires",
            "须不间断地成立多少步，警报才会触发",
        ),
        ("1", "1"),
    ),
    "severity": (
        ("`info`, `warning`, `error`, `critical`", "`info`、`warning`、`error`、`critical`"),
        ("`warning`", "`warning`"),
    ),
    "worse": (
        (
            "conditions under which it is more severe when it fires, for example "
            '`{ error = "last(grad_norm) > 100" }`',
            '触发时使其更严重的条件，例如 `{ error = "last(grad_norm) > 100" }`',
        ),
        ("nothing", "无"),
    ),
    "part": (
        (
            "part of the health score: `attention`, `gradient`, `memory`, `hardware`, `loss`, "
            "`numerics`, `throughput`",
            "所属的健康分部分：`attention`、`gradient`、`memory`、`hardware`、`loss`、`numerics`、"
            "`throughput`",
        ),
        ("`loss`", "`loss`"),
    ),
    "hold_steps": (
        ("after so many quiet steps the alert is resolved", "安静这么多步后警报恢复"),
        ("20", "20"),
    ),
    "cooldown_steps": (
        ("for so many steps after that it cannot fire again", "此后这么多步内不会再次触发"),
        ("50", "50"),
    ),
    "action": (
        (
            "what to ask the training for while the alert is firing: `request` (see "
            "[control.md](control.md)), its arguments, `when`: a second condition that has to "
            "hold too, and `at_most`: how often one alert may ask",
            "警报触发期间向训练提出的请求：`request`（见 [control.md](control.md)）及其参数，"
            "`when`：还须成立的第二个条件，`at_most`：一次警报最多请求几次",
        ),
        ("nothing", "无"),
    ),
    "group": (
        (
            "rules of one group have one cause: while one of them is firing the others do not ring",
            "同组规则出于同一原因：其中一条触发期间，其余不再报警",
        ),
        ("a group of its own", "自成一组"),
    ),
    "inhibits": (
        (
            "names of rules and groups that say nothing while this alert is firing",
            "此警报触发期间保持沉默的规则或组的名称",
        ),
        ("none", "无"),
    ),
    "summary": (
        ("what the alert says, in English", "警报的英文说明"),
        ("the condition of your rule holds", "自定义规则的条件成立"),
    ),
    "summary_zh": (
        ("what the alert says, in Chinese", "警报的中文说明"),
        ("as `summary`", "同 `summary`"),
    ),
    "disabled": (
        ("`true` takes the rule away", "`true` 停用该规则"),
        ("`false`", "`false`"),
    ),
}

RECORD_KEY_TEXTS: dict[str, tuple[Pair, Pair]] = {
    "name": (("what expressions call it", "表达式中使用的名称"), ("must be given", "必填")),
    "expr": (("a number", "一个数值"), ("must be given", "必填")),
    "unit": (("unit of its values", "数值的单位"), ("a pure number", "无单位")),
}

RULE_REASONS: dict[str, Pair] = {
    "nonfinite": (
        "One NaN in the gradient is in every weight after the next optimizer step; nothing that "
        "comes later is worth computing.",
        "梯度中的一个 NaN 会在下一次优化器更新后进入所有权重；此后的计算都没有价值。",
    ),
    "nonfinite-eval": (
        "The loss of an evaluation, where somebody records it (imported runs do). The training "
        "may be sound, but nothing can be chosen by that loss.",
        "评估损失（若有记录，例如导入的运行）。训练本身可能正常，但无法再依据该损失作选择。",
    ),
    "gradient-explosion": (
        "The fixed threshold of the article that this project started from. Override `expr` where "
        "your gradients are larger by nature (a loss that is summed over tokens).",
        "本项目所依据文章中的固定阈值。若梯度本来就较大（例如损失按词元求和），请覆盖 `expr`。",
    ),
    "gradient-spike": (
        "Adapts to the run: compared with the fifty steps before, needs two of three steps (one "
        "hard batch is no alert), and is silent for the first 53 steps, in which norms fall from "
        "their start. Below 1 a jump in the norm is a small number growing to a small number, "
        "common at the end of a training that fits its data. Reads the norm before clipping where "
        "it is known.",
        "随运行自适应：与之前五十步比较，三步中须有两步超出（单个困难批次不报警），前 53 步范数"
        "从起点下降，期间保持沉默。范数小于 1 时的跳动只是小数变成小数，常见于训练末期。"
        "已知裁剪前的范数时以其为准。",
    ),
    "learning-rate-jump": (
        "The lower quarter of the last fifty steps is what the rate was before, also some steps "
        "after the jump, so that a rate that is still ten times too high is divided again. In a "
        "linear warm-up the newest rate is about four times that quarter, however long the "
        "warm-up. A warm restart of the schedule does jump; then the loss decides whether anything "
        "is asked for.",
        "最近五十步的下四分位数就是此前的学习率，跳变之后若干步内也是如此，因此仍高出十倍的学习率会"
        "再次被除。线性预热中，最新学习率约为该分位数的四倍，与预热长短无关。热重启确实会跳变，"
        "此时由损失决定是否提出请求。",
    ),
    "loss-divergence": (
        "Compares with the best level of the last 200 steps, so that a slow climb counts as well "
        "as a jump. The allowance is a tenth of the loss, or five times its noise; the noise is "
        "taken from differences of neighbours, which a falling loss does not blow up. Unknown for "
        "the first 30 steps. It asks twice at most: a loss that stays up after that is damage that "
        "a lower rate does not undo.",
        "与最近 200 步的最好水平比较，因此缓慢上升与突然跳升同样计入。容许量为损失的十分之一，或其"
        "噪声的五倍；噪声取自相邻差，不会因损失下降而变大。前 30 步未知。最多请求两次：此后仍居高"
        "不下的损失是降低学习率无法挽回的损坏。",
    ),
    "attention-converged": (
        "The rule of the article. It holds at the beginning of every training, when attention is "
        "still uniform, therefore it is no more than info, and the learning rate is lowered only "
        "when more than half of the heads have settled, away from uniform, and the loss has "
        "stopped falling. Rows, not steps: measured every ten steps, 100 rows are 1,000 steps.",
        "文章中的规则。每次训练开始时注意力仍是均匀的，该条件也成立，因此仅为提示；只有当超过一半的"
        "头已稳定且远离均匀、损失也不再下降时，才降低学习率。按行而非按步：每十步测量一次时，"
        "100 行即 1,000 步。",
    ),
    "entropy-collapse": (
        "Attention that becomes sharp within a few rows, in most heads together, is what precedes "
        "a divergence (Zhai et al. 2023); learning sharpens heads one by one and over hundreds of "
        "steps. The alert holds for 50 steps, then the new level is what is compared with.",
        "大多数头在几行之内同时变得尖锐，是发散的前兆（Zhai 等，2023）；正常学习会在数百步中"
        "逐个使头变尖。警报持续 50 步，此后以新水平作比较。",
    ),
    "frozen-weights": (
        "Exactly zero for ten steps: rounding leaves a small number in any gradient that is "
        "connected to the loss. The alert names the parameters. Silent while an expert of a "
        "mixture gets no tokens: then its weights get no gradient.",
        "连续十步恰好为零：凡与损失相连的梯度，舍入都会留下一个小数。警报会指出参数。"
        "混合专家中有专家未分到词元时不报警：此时其权重没有梯度。",
    ),
    "step-time-outlier": (
        "Checkpoints and evaluations do this too.",
        "保存检查点与评估也会造成这种情况。",
    ),
    "attention-logits-large": (
        "QK-Clip keeps logits below 100, and entropy collapse begins with their growth (see "
        "Kimi K2 and sigma-Reparam). 50 is warned of while they double; large and steady is sound. "
        "In healthy runs of the fault benchmark logits stay below 35.",
        "QK-Clip 把打分限制在 100 以下，熵塌缩始于打分增长（见 Kimi K2 与 sigma-Reparam）。"
        "超过 50 且仍在翻倍时警告；大而稳定则视为正常。故障基准的健康运行中打分低于 35。",
    ),
    "activation-growth": (
        "Large activations are no fault by themselves (trained models have some of thousands); "
        "growing fivefold within a few rows is. The first thirty steps are left out, in which a "
        "residual stream grows from its initialisation.",
        "激活值大本身不是故障（训练好的模型中有数千的值）；几行之内增大五倍才是。"
        "前三十步除外，此时残差流从初始化增长。",
    ),
    "future-visible": (
        "A causal model has exactly 0, a bidirectional one about a half, whatever it has learnt. "
        "What lies between from the start (a prefix that sees itself, a local window) may be meant "
        "so and is left alone.",
        "因果模型恒为 0，双向模型约为一半，与学到什么无关。"
        "从一开始就介于两者之间的（前缀可见、局部窗口）可能是有意为之，不报警。",
    ),
    "padding-visible": (
        "A padding mask leaves 0 up to rounding. Measured only where the monitor knows the id of "
        "the padding (`pad_id=`).",
        "填充掩码只留下舍入误差级别的 0。只有监控器知道填充 id（`pad_id=`）时才测量。",
    ),
    "dead-units": (
        "A unit is dead in a row if no token of the batch lets it fire; three rows in a row, so "
        "that one odd batch does not ring. 70 % as in DeepDiagnosis and AutoTrainer (smdebug: "
        "50 %); sparse healthy runs of the fault benchmark reach 63 %.",
        "若批次中没有任何词元激活某单元，则该行视其为死亡；须连续三行，单个异常批次不报警。"
        "70% 与 DeepDiagnosis 和 AutoTrainer 相同（smdebug 取 50%）；"
        "故障基准中稀疏的健康运行可达 63%。",
    ),
    "output-drift": (
        "In healthy runs of the fault benchmark log Z moves by less than 1 after the first fifty "
        "steps; a temperature of 2 moves it by 2.",
        "故障基准的健康运行中，前五十步之后 log Z 的变化小于 1；温度为 2 时变化为 2。",
    ),
    "data-stall": (
        "Compared with the run's own fifty steps before: a loader that is slow from the start is "
        "seen in the report, not rung for. Needs `monitor.timed(batches)` or the callback.",
        "与此前五十步比较：从一开始就慢的加载器在报告中可见，但不报警。"
        "需要 `monitor.timed(batches)` 或回调。",
    ),
    "throughput-drop": (
        "Tokens, not steps: a batch that grows makes longer steps and no fewer tokens a second. "
        "Half, since a shared machine swings by a third; medians, so that checkpoints and "
        "evaluations do not count.",
        "按词元而非按步：批次变大会使每步变长，但每秒词元数不减。取一半，因为共享机器会有三分之一的"
        "波动；取中位数，因此保存检查点与评估不计入。",
    ),
    "loss-jump": (
        "Ten steps against the fifty before: the mean of ten steps has a third of the noise of "
        "one, "
        "so 1.6 times that noise is five times its own; the median has to rise too, so that single "
        "hard batches do not count. In the fault benchmark no healthy run of the tuning part does, "
        "those with two samples a batch included.",
        "最近十步与此前五十步比较：十步均值的噪声是单步的三分之一，因此 1.6 "
        "倍单步噪声相当于其自身的五倍；"
        "中位数也须上升，单个困难批次不计入。故障基准调参部分的健康运行（包括每批两个样本的）均"
        "未触发。",
    ),
    "learning-rate-high": (
        "Weights of a Transformer have a size of 0.02 to 0.1: a rate of 0.012 rewrites them within "
        "a few steps. The bold healthy runs of the fault benchmark learn at 0.006. Only where "
        "Adam's moments are measured.",
        "Transformer 的权重大小约为 0.02 至 0.1：0.012 的学习率几步之内就会改写它们。"
        "故障基准中较大胆的"
        "健康运行以 0.006 学习。仅在测量了 Adam 的矩时判断。",
    ),
    "weights-changed-outside": (
        "A norm cannot grow or shrink faster than the weights are changed: by the update ratio in "
        "each step. Five times that and 1 % a step are allowed, since the ratio is measured on "
        "single steps only; healthy runs reach 1.4 times. The first steps are left out, in which "
        "biases grow from 0.",
        "范数的变化不可能快于权重的更新，即每步的更新比例。容许其五倍再加每步 1%，"
        "因为该比例只在个别步"
        "测量；健康运行最多为 1.4 倍。最初若干步除外，此时偏置从 0 增长。",
    ),
    "overflow-streak": (
        "A dynamic loss scale that searches downwards overflows many times in a row and is sound: "
        "there it falls with each. Here it does not.",
        "动态损失缩放向下搜索时会连续溢出，属正常：每次溢出都会下降。这里没有下降。",
    ),
    "weights-not-updated": (
        "Exactly 0 over two rows, while the rate is above 0 and gradients come. A layer that gets "
        "no gradient is the business of frozen-weights.",
        "连续两行恰好为 0，而学习率大于 0 且有梯度。没有梯度的层由 frozen-weights 负责。",
    ),
    "updates-large": (
        "A change of a thousandth a step is usual. Healthy runs of the fault benchmark stay below "
        "4 %, the bold ones and those with a small initialisation included; MindInsight took 10 % "
        "for the mean.",
        "通常每步变化约千分之一。故障基准的健康运行低于 4%（含学习率较大的与小初始化的）；"
        "MindInsight 对均值取 10%。",
    ),
    "updates-small": (
        "Adam's update of a weight is about the learning rate, whatever the size of the gradient, "
        "and weights are far smaller than 1: in healthy runs of the fault benchmark the median "
        "ratio is at least twice the learning rate. Only judged where Adam's moments are measured.",
        "无论梯度大小，Adam 对权重的更新约等于学习率，而权重远小于 1：故障基准的健康运行中，"
        "该比例的中位数"
        "至少是学习率的两倍。仅在测量了 Adam 的矩时判断。",
    ),
    "causal-mask-leak": (
        "Needs `causal=True` of `attach` or of the callback, which is kept as the series "
        "`model_causal`. A causal mask leaves exactly 0, or rounding; a thousandth is far from "
        "both. Without the declaration future-visible judges by what the run itself did before; "
        "the two have one group and ring once.",
        "需要 `attach` 或回调的 `causal=True`，它记录为序列 `model_causal`。"
        "因果掩码只留下 0 或舍入误差，千分之一远高于此。没有声明时，"
        "由 future-visible 依据该运行此前的情况判断；两者同组，只报一次。",
    ),
    "causal-mask-kept": (
        "Needs `causal=False` of `attach` or of the callback. A softmax leaves something "
        "everywhere that is not masked: below a millionth in each layer and head there is a "
        "mask.",
        "需要 `attach` 或回调的 `causal=False`。softmax 在未屏蔽处总会留下一点：若每一层、"
        "每个头都低于百万分之一，那就是掩码。",
    ),
    "loss-spike": (
        "Two of three steps 30 % and five spreads above the robust level of the fifty before, "
        "which a spike does not teach: one hard batch is none. Lightning takes twice the mean of "
        "ten steps; healthy runs of the fault benchmark, with batches of two samples as well, "
        "stay below 4.2 spreads. A loss that stays up is the business of loss-divergence.",
        "三步中有两步高出此前五十步的稳健水平 30% 和五个 spread；尖峰不会影响该水平，"
        "单个困难批次不算。Lightning 取十步均值的两倍；故障基准的健康运行（包括每批仅两个样本的）"
        "低于 4.2 个 spread。居高不下的损失由 loss-divergence 负责。",
    ),
    "plateau": (
        "Compares medians of a hundred rows, four hundred rows apart; a fall by 0.2 % or by a "
        "tenth of the noise counts. A converged run stands still as well, therefore info; it is "
        "a warning where no row since the start, within 2,000 steps, was clearly above the "
        "present level: then nothing was ever learnt. A loss below 0.1 has little left to fall.",
        "比较相隔四百行的两个百行中位数；下降 0.2% 或噪声的十分之一即算下降。"
        "已收敛的运行同样静止，因此仅为提示；若在前 2,000 步内从未有一行明显高于当前水平，"
        "说明什么也没有学到，则为警告。低于 0.1 的损失已没有多少下降空间。",
    ),
    "vanishing-gradient": (
        "Adapts to the run: norms differ by orders of magnitude between models, so a fixed "
        "threshold (smdebug and DeepDiagnosis: 1e-7) finds only the worst. A model that fits its "
        "data has small gradients as well; there the loss falls with them, by more than 30 %.",
        "随运行自适应：不同模型的范数相差数个数量级，固定阈值（smdebug 与 DeepDiagnosis：1e-7）"
        "只能发现最坏的情况。拟合了数据的模型梯度也小，但其损失同时下降 30% 以上。",
    ),
    "vanishing-with-depth": (
        "The ratio of AutoTrainer (Zhang et al. 2021) over ten rows. Healthy runs of the fault "
        "benchmark lie between 0.1 and 40. Exactly 0 is a layer that is frozen or cut off: the "
        "business of frozen-weights.",
        "AutoTrainer（Zhang 等，2021）的比值，取十行。故障基准的健康运行在 0.1 与 40 之间。"
        "恰好为 0 表示该层被冻结或切断，由 frozen-weights 负责。",
    ),
    "overfit": (
        "Needs the series `eval_loss`: `monitor.add_scalars` or an imported run. Compared with "
        "the best of up to twenty evaluations before; a tenth of the gap (smdebug) or a fixed "
        "patience would depend on how often is evaluated. If the training loss has not fallen "
        "below nearly all of its last 200 steps, or the evaluations get better again, it is "
        "something else.",
        "需要序列 `eval_loss`：`monitor.add_scalars` 或导入的运行。"
        "与此前至多二十次评估中的最好值比较；smdebug 的差距十分之一或固定的耐心值取决于评估的频率"
        "。若训练损失没有低于其最近 200 步的几乎全部值，或评估又开始变好，则是别的情况。",
    ),
    "gradients-never-zeroed": (
        "A sum of gradients changes by one gradient a step: its norm rises at most steps, and by "
        "as much each time. The norm of one batch turns at two of three steps: in healthy runs "
        "of the fault benchmark at most 66 % of thirty steps rise. A divergence grows by a "
        "factor, not by an amount. Not judged in the first fifty steps, in which norms may grow "
        "from their start.",
        "累加的梯度每步只改变一个梯度：其范数在多数步上升，且每次增量相近。"
        "单个批次的范数每三步有两步转向：故障基准的健康运行中，三十步里至多 66% 上升。"
        "发散按倍数而不是按增量增长。前五十步不判断，期间范数可能从起点增长。",
    ),
    "clipping-always-on": (
        "19 of 20 steps above the limit over forty steps. That alone is common: healthy runs "
        "of the fault benchmark clip up to every step, to a third at the least. Below a fifth over "
        "a hundred steps it is told, below a fiftieth warned of. Needs `grad_norm_unclipped`, the "
        "norm before clipping.",
        "四十步中有 95% 超过上限。仅此一点很常见：故障基准的健康运行中可能每步都裁剪，"
        "但至少保留三分之一。一百步低于五分之一时提示，低于五十分之一时警告。"
        "需要 `grad_norm_unclipped`，即裁剪前的范数。",
    ),
    "loss-scale-floor": (
        "Twenty rows at 1 or below, and above it within the 500 before: a scale that is 1 from "
        "the start is no scale at all (bfloat16, float32). Megatron and DeepSpeed end at 1 as "
        "well. Overflows that go on at another floor are the business of overflow-streak.",
        "连续二十行不高于 1，而此前 500 行内曾高于 1：从一开始就是 1 表示没有使用缩放（bfloat16、"
        "float32）。Megatron 与 DeepSpeed 的下限也是 1。"
        "在其他下限持续溢出由 overflow-streak 负责。",
    ),
    "memory-nearly-full": (
        "What holds tensors counts, not what the pool has reserved: pools take nearly all of a "
        "device by intent. Unknown where the device does not tell its size, as on the CPU.",
        "只计张量占用的内存，而不是内存池预留的：内存池会有意占用几乎整个设备。"
        "设备不给出总容量时（例如 CPU）为未知。",
    ),
    "memory-fragmented": (
        "The threshold of the article that this project started from, for the measure the right "
        "way round: 1 - largest piece / all that is free. Three rows in a row, and only where "
        "more than a tenth of the pool is free: the pieces of a full pool do not matter. Few "
        "devices tell their largest free piece.",
        "本项目起源文章的阈值，用于方向正确的指标：1 - 最大空闲块 / 全部空闲。须连续三行，"
        "且内存池空闲超过十分之一：几乎占满的内存池中碎片无关紧要。只有少数设备会给出最大空闲块。",
    ),
    "memory-leak": (
        "Caches fill at first and level out, and an evaluation takes memory once: so not in the "
        "first hundred steps, not where the growth slows down, and not for one or two jumps, but "
        "for growth that goes on over nine rows, seen for 30 steps. smdebug takes 5 % too (of a "
        "GPU's memory). Healthy runs of the fault benchmark grow by less than 1 MiB. A row comes "
        "every ten steps, or every second.",
        "缓存起初增长随后趋平，评估只占用一次内存：因此前一百步不判断，增长放缓时不报警，"
        "一两次跳升也不报警；须在九行中持续增长，并持续 30 步。smdebug 同样取 5%（GPU 内存）。"
        "故障基准的健康运行增长不到 1 MiB。每十步或每秒有一行。",
    ),
    "memory-leak-slow": (
        "Four quarters of 800 rows, each above the one before by a fifth of the whole growth at "
        "least: a cache that levels out, or one jump, is not so. Growth that is faster is told "
        "by memory-leak, of the same group.",
        "800 行分为四段，每段都比前一段高出总增长的至少五分之一：趋平的缓存或单次跳升不会如此。"
        "更快的增长由同组的 memory-leak 报告。",
    ),
    "device-memory-leak": (
        "The floor counts, the least of ten rows: dynamic shapes make the rest go up and down. "
        "Three floors, each above the one before by a fifth of the growth at least: an evaluation "
        "or a checkpoint that takes memory once is not so. Not in the first hundred steps. Growth "
        "of the process on the host is told by memory-leak, of the same group.",
        "看的是底线，即十行中的最小值：动态形状会使其余部分起伏。三条底线，每条都比前一条高出增长量的"
        "至少五分之一：只占用一次内存的评估或检查点不会如此。前一百步不判断。"
        "主机上进程的增长由同组的 memory-leak 报告。",
    ),
    "npu-unhealthy": (
        "The driver's own judgement, as `npu-smi info` prints it: 1 Warning, 2 Alarm, 3 Critical, "
        "4 anything else. The watcher asks where `npu-smi` is installed (docs/devices.md); "
        "elsewhere the rule is unknown.",
        "驱动自己的判断，即 `npu-smi info` 打印的内容：1 警告，2 告警，3 严重，4 其他。"
        "装有 `npu-smi` 时由 watcher 询问（docs/devices.md）；否则规则为未知。",
    ),
    "l2-hit-rate-low": (
        "Advice, no fault. The series comes from a profile of the device, with a column for each "
        "type of attention operator: `mindpulse profile RUN --metrics l2` takes one while the run "
        "trains, and the watcher reads it (docs/devices.md). Other operators may well miss: what "
        "they read is read once.",
        "仅为建议，并非故障。该序列来自设备的性能分析，每类注意力算子一列：训练期间用 "
        "`mindpulse profile RUN --metrics l2` 采集，由 watcher 读取（docs/devices.md）。"
        "其他算子未命中并不奇怪：它们的数据只读一次。",
    ),
}

# Heads and labels of the page, of `mindpulse rules` and of an explanation.
RULES_TEXTS: dict[str, Pair] = {
    "function": ("function", "函数"),
    "value": ("value", "值"),
    "value_in_column": ("value in each column", "每列的值"),
    "key": ("key", "键"),
    "meaning": ("meaning", "含义"),
    "default": ("default", "默认值"),
    "name": ("rule", "规则"),
    "severity": ("severity", "级别"),
    "part": ("part", "部分"),
    "for": ("for", "持续"),
    "group": ("group", "组"),
    "origin": ("from", "来源"),
    "says": ("says", "说明"),
    "unit": ("unit", "单位"),
    "steps": ("{count} steps", "{count} 步"),
    "origin.shipped": ("shipped", "内置"),
    "origin.changed": ("shipped, changed", "内置（已修改）"),
    "origin.own": ("yours", "自定义"),
    "origin.disabled": ("disabled", "已停用"),
    "what": ("What", "含义"),
    "condition": ("Condition", "条件"),
    "lasting": ("For", "持续"),
    "worse": ("Worse", "加重"),
    "worse_if": ("{severity} if `{expr}`", "{severity}：若 `{expr}`"),
    "over": ("Over", "恢复"),
    "over_after": (
        "after {hold} quiet steps; then silent for {cooldown} steps",
        "安静 {hold} 步之后；随后静默 {cooldown} 步",
    ),
    "why": ("Why so", "缘由"),
    "causes": ("Likely causes", "可能原因"),
    "next": ("What to do", "处理建议"),
    "action": ("Action", "动作"),
    "action_if": ("{request}, if `{when}`", "{request}，若 `{when}`"),
    "at_most": ("{request}; at most {count} times", "{request}；最多 {count} 次"),
    "inhibits": ("Silences", "抑制"),
    "in_group": ("Group", "组"),
    "reads": ("Reads", "读取"),
    "reads_rows": ("`{tag}`, the last {rows} rows{tells}", "`{tag}`，最近 {rows} 行{tells}"),
    "tells": (": {words}", "：{words}"),
    "derived": ("Derived series", "派生序列"),
    "record": ("`{name}` = `{expr}`{unit}", "`{name}` = `{expr}`{unit}"),
    "functions": ("Functions", "函数"),
    "now": ("Now", "当前"),
    "now_state": (
        "rank {rank}, step {step}: {state}{detail}",
        "rank {rank}，第 {step} 步：{state}{detail}",
    ),
    "now_comparison": ("    `{text}`: {values}: {state}", "    `{text}`：{values}：{state}"),
    "now_nothing": ("the run has no row of these series", "该运行没有这些序列的数据"),
    "state.fired": ("the condition holds", "条件成立"),
    "state.quiet": ("the condition does not hold", "条件不成立"),
    "state.unknown": ("unknown", "未知"),
    "check.fine": ("{path}: {rules} rules and {records} derived series are fine",
                   "{path}：{rules} 条规则、{records} 个派生序列无误"),
    "check.problems": ("{path}: {count} mistakes", "{path}：{count} 处错误"),
    "check.unmeasured": (
        "note: {rule} reads {tag}, which MindPulse does not measure itself{hint}",
        "提示：{rule} 读取 {tag}，MindPulse 本身不测量它{hint}",
    ),
    "test.passed": ("ok      {scenario}", "通过  {scenario}"),
    "test.failed": ("FAILED  {scenario} (line {line})", "失败  {scenario}（第 {line} 行）"),
    "test.total": ("{passed} of {count} scenarios went as expected",
                   "{count} 个场景中 {passed} 个符合预期"),
}  # fmt: skip
