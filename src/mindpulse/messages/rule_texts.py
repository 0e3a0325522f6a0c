"""What the shipped rules say, in English and Chinese: summary, likely causes, what to do next.

Data only; `messages` reads it. Each entry is (English, Chinese).
"""

from __future__ import annotations

Pair = tuple[str, str]

RULE_TEXTS: dict[str, dict[str, Pair]] = {
    "nonfinite": {
        "summary": (
            "the loss or the gradient is NaN or infinite",
            "损失或梯度出现 NaN 或无穷大",
        ),
        "causes": (
            "a bad batch (NaN in the input, an empty target, log of 0); overflow in half "
            "precision; a learning rate that is far too high; division by zero in a "
            "normalisation of a row that is all masked",
            "坏批次（输入含 NaN、目标为空、对 0 取对数）；半精度溢出；学习率远远过高；"
            "整行被屏蔽时归一化除以零",
        ),
        "next": (
            "stop: every later weight is worthless. Look at the batch of this step, check the "
            "input for NaN, then go on from the last checkpoint before it. If it comes back at "
            "another batch, lower the learning rate or the loss scale",
            "停止训练：此后的权重都不可用。检查该步的批次和输入是否含 NaN，然后从此前最后一个"
            "检查点继续；若换批次后仍出现，请降低学习率或损失缩放",
        ),
    },
    "nonfinite-eval": {
        "summary": (
            "the loss of an evaluation is NaN or infinite",
            "评估损失为 NaN 或无穷大",
        ),
        "causes": (
            "half precision overflows in evaluation only (no loss scaling there); an evaluation "
            "batch without a single target, so that the mean is 0 / 0; a bad sample in the "
            "evaluation data; if the training loss is lost too, the weights are",
            "仅在评估时半精度溢出（评估没有损失缩放）；评估批次中没有任何目标，均值成为 0 / 0；"
            "评估数据中有坏样本；若训练损失也失效，则权重已损坏",
        ),
        "next": (
            "look whether the training loss is finite at this step: if it is, evaluate in float32 "
            "and batch by batch, and look at the first batch that gives NaN; no checkpoint can be "
            "chosen by this loss until then",
            "查看该步的训练损失是否有限：若有限，则用 float32 逐批评估，检查第一个出现 NaN 的批次；"
            "在此之前不能按该损失选择检查点",
        ),
    },
    "gradient-explosion": {
        "summary": (
            "the gradient norm is above 50",
            "梯度范数超过 50",
        ),
        "causes": (
            "a learning rate that is too high or has no warm-up; no gradient clipping; a batch "
            "that is out of line; weights that have grown",
            "学习率过高或没有预热；没有梯度裁剪；异常批次；权重已经过大",
        ),
        "next": (
            "halve the learning rate (watch --act does it) and clip the gradient norm to 1; see "
            "in the layer x step map of the report which layer began",
            "将学习率减半（watch --act 会自动执行），并把梯度范数裁剪到 1；在报告的“层 × 步”"
            "热图中查看从哪一层开始",
        ),
    },
    "gradient-spike": {
        "summary": (
            "the gradient norm is more than five times what it was in the last 50 steps",
            "梯度范数超过最近 50 步水平的五倍",
        ),
        "causes": (
            "a run of unusual batches; the learning rate was raised; the first sign of a "
            "divergence",
            "连续的异常批次；学习率被调高；发散的最初迹象",
        ),
        "next": (
            "watch the loss for the next 20 steps; if it rises too, lower the learning rate; if "
            "it does not, look at the batches of these steps",
            "观察随后 20 步的损失：若同时上升，请降低学习率；若没有上升，请检查这些步的批次",
        ),
    },
    "learning-rate-jump": {
        "summary": (
            "the learning rate is more than ten times what it was in the last 50 steps",
            "学习率超过最近 50 步水平的十倍",
        ),
        "causes": (
            "a zero too much in a configuration that was read again; a schedule that restarts; a "
            "training that went on from a checkpoint with another schedule",
            "重新读取的配置中多写了一个零；学习率计划重启；从检查点继续时使用了不同的学习率计划",
        ),
        "next": (
            "if it was not meant, set it back at once (watch --act divides it by ten when the "
            "loss rises too) and go on from a checkpoint of before; if it is a warm restart, "
            "nothing",
            "若非有意，请立即恢复（若损失同时上升，watch --act 会将其除以十），"
            "并从此前的检查点继续；若是热重启，则无需处理",
        ),
    },
    "loss-divergence": {
        "summary": (
            "the loss is far above the best level that it had before",
            "损失远高于此前达到的最好水平",
        ),
        "causes": (
            "a learning rate that is too high; a change in the data; a restart from a wrong "
            "checkpoint or without the state of the optimizer; damaged weights",
            "学习率过高；数据发生变化；从错误的检查点或在缺少优化器状态时重启；权重已损坏",
        ),
        "next": (
            "lower the learning rate (watch --act does it); if the loss does not come down "
            "within some 50 steps, go back to a checkpoint from before the first step named here",
            "降低学习率（watch --act 会自动执行）；若约 50 步内损失仍未下降，"
            "请回退到此处所示起始步之前的检查点",
        ),
    },
    "attention-converged": {
        "summary": (
            "the focus of these attention heads has stood still for 100 steps",
            "这些注意力头的集中度已连续 100 步几乎不变",
        ),
        "causes": (
            "the attention pattern has settled, late in a training; or it has not begun to move: "
            "in the first steps attention is uniform and its focus constant",
            "训练后期，注意力模式已经稳定；或者尚未开始变化：训练最初注意力是均匀的，集中度为常数",
        ),
        "next": (
            "if the loss has stopped falling too, lower the learning rate; in the first few "
            "hundred steps there is nothing to do",
            "若损失也不再下降，可降低学习率；若在最初几百步内，则无需处理",
        ),
    },
    "entropy-collapse": {
        "summary": (
            "more than half of the attention heads lost 40 % of their entropy at once, or look at "
            "a single token",
            "超过一半的注意力头的熵骤降 40% 以上，或只关注单个词元",
        ),
        "causes": (
            "attention logits that have grown: a learning rate that is too high, query and key "
            "weights without normalisation, a missing 1/sqrt(d), half precision in the scores",
            "注意力打分过大：学习率过高、查询与键权重没有归一化、缺少 1/sqrt(d)、打分使用半精度",
        ),
        "next": (
            "look at the attention maps in the report; lower the learning rate, normalise "
            "queries and keys (QK-norm), or go back to a checkpoint from before it",
            "查看报告中的注意力图；降低学习率、对查询和键做归一化（QK-norm），或回退到此前的检查点",
        ),
    },
    "frozen-weights": {
        "summary": (
            "the gradient of these parameters has been exactly 0 for 10 steps",
            "这些参数的梯度已连续 10 步恰好为 0",
        ),
        "causes": (
            "the parameter is cut off from the loss: stop_gradient, a branch that is not used, "
            "a unit that is dead for every input, a mask that hides everything",
            "该参数与损失断开：stop_gradient、未使用的分支、对所有输入都失效的单元、屏蔽了全部内容的掩码",
        ),
        "next": (
            "if it is meant to be frozen, take it out of the trainable parameters; if not, look "
            "in construct for what cuts the layer off",
            "若有意冻结，请将其移出可训练参数；若非有意，请在 construct 中查找切断该层的位置",
        ),
    },
    "step-time-outlier": {
        "summary": (
            "a step took more than three times as long as the 50 before it",
            "某一步耗时超过此前 50 步的三倍",
        ),
        "causes": (
            "a checkpoint or an evaluation; waiting for data; another job on the machine; the "
            "graph was compiled again",
            "保存检查点或评估；等待数据；机器上有其他任务；计算图重新编译",
        ),
        "next": (
            "nothing if it comes with your checkpoints; if it comes at random, look at the data "
            "pipeline and at what else runs on the machine",
            "若与保存检查点同时出现则无需处理；若随机出现，请检查数据管道和机器上的其他任务",
        ),
    },
    "attention-logits-large": {
        "summary": (
            "an attention logit is above 50 and has doubled within the last six rows",
            "注意力打分超过 50，且在最近六行内翻倍",
        ),
        "causes": (
            "a learning rate that is too high or has no warm-up; a missing 1/sqrt(d); query and "
            "key weights that grow without bound",
            "学习率过高或没有预热；缺少 1/sqrt(d)；查询与键的权重无限增长",
        ),
        "next": (
            "lower the learning rate; normalise queries and keys (QK-norm) or clip their weights; "
            "half precision loses the softmax at such logits",
            "降低学习率；对查询和键做归一化（QK-norm）或裁剪其权重；"
            "在这样的打分下半精度的 softmax 会失真",
        ),
    },
    "activation-growth": {
        "summary": (
            "what goes into a normalisation is four times as large as in the rows before",
            "归一化层的输入是此前各行的四倍",
        ),
        "causes": (
            "a learning rate that is too high; a residual path that is scaled or doubled; weights "
            "that were changed or damaged",
            "学习率过高；残差通路被缩放或重复；权重被改动或损坏",
        ),
        "next": (
            "the first layer that is named is where to look; lower the learning rate; if it came "
            "within one step, compare the weights with the last checkpoint",
            "先查看所指出的第一层；降低学习率；若在一步之内发生，请与最近的检查点比较权重",
        ),
    },
    "future-visible": {
        "summary": (
            "attention falls on keys behind the query where it did not before, or on little else",
            "注意力落到了查询之后的键上（此前没有），或几乎全部落在其后",
        ),
        "causes": (
            "a causal mask with the wrong sign, shape or type; a mask that was lost when the shape "
            "of the batch changed; unsigned integers times a negative number",
            "因果掩码的符号、形状或类型有误；批次形状变化时掩码丢失；无符号整数乘以负数",
        ),
        "next": (
            "look at the attention map of one sample: all above the diagonal has to be 0; a loss "
            "that falls too well does not generate",
            "查看一个样本的注意力图：对角线以上必须全为 0；损失降得过快的模型无法正常生成",
        ),
    },
    "padding-visible": {
        "summary": (
            "more than a thousandth of the attention falls on padding",
            "超过千分之一的注意力落在填充位上",
        ),
        "causes": (
            "the padding mask is missing, has the wrong shape, or is added with too small a number",
            "缺少填充掩码、形状有误，或所加的负数太小",
        ),
        "next": (
            "compare the mask with the ids of one batch; the result depends on the length of the "
            "padding until it is mended",
            "用一个批次的 id 核对掩码；修复之前，结果取决于填充的长度",
        ),
    },
    "dead-units": {
        "summary": (
            "more than half of the units of a feed-forward block never fire",
            "某个前馈块中超过一半的单元从不激活",
        ),
        "causes": (
            "biases pushed far below 0 by a step that was too large; ReLU with a learning rate "
            "that is too high; a bad initialisation",
            "一次过大的更新把偏置推到远低于 0；ReLU 搭配过高的学习率；初始化不当",
        ),
        "next": (
            "they do not come back by themselves: go back to a checkpoint from before it, lower "
            "the learning rate, or use GELU",
            "它们不会自行恢复：回退到此前的检查点、降低学习率，或改用 GELU",
        ),
    },
    "output-drift": {
        "summary": (
            "the normaliser of the output (log Z) moved by more than 1.5 from where it was",
            "输出的归一化项（log Z）偏离此前水平超过 1.5",
        ),
        "causes": (
            "output logits that drift: a high learning rate without z-loss or weight decay; a "
            "temperature or scale that was left in; an output layer that was replaced",
            "输出 logits 漂移：学习率高而没有 z-loss 或权重衰减；遗留的温度或缩放；输出层被替换",
        ),
        "next": (
            "compare with the loss: if it jumped at the same step, something was changed there; if "
            "it drifts, add a z-loss (1e-4) or lower the learning rate",
            "与损失对照：若同一步发生跳变，说明此处有改动；"
            "若是缓慢漂移，请加入 z-loss（1e-4）或降低学习率",
        ),
    },
    "data-stall": {
        "summary": (
            "the training waits for its data for more than 30 % of a step, three times as long as "
            "before",
            "训练等待数据的时间超过一步的 30%，且是此前的三倍",
        ),
        "causes": (
            "a slow or shared file system; too few workers in the loader; augmentation that became "
            "dearer; another job on the same host",
            "文件系统慢或被共享；加载器的工作进程太少；数据增强变慢；同一主机上有其他任务",
        ),
        "next": (
            "look at the load of the host and of the file system at that time; more workers, "
            "prefetching, or a copy of the data on a local disk",
            "查看当时主机与文件系统的负载；增加工作进程、预取，或把数据复制到本地磁盘",
        ),
    },
    "overflow-streak": {
        "summary": (
            "most steps of the last twelve overflowed, and the loss scale does not fall",
            "最近十二步多数溢出，而损失缩放没有下降",
        ),
        "causes": (
            "a fixed loss scale that is too large; a dynamic one at its floor; activations that "
            "half precision cannot hold",
            "固定的损失缩放过大；动态缩放已到下限；激活值超出半精度范围",
        ),
        "next": (
            "these steps do not train: lower the loss scale or let it fall by itself; at its "
            "floor, use bfloat16 or float32 where the activations are largest",
            "这些步没有训练：降低损失缩放或改用动态缩放；若已到下限，"
            "请在激活最大处使用 bfloat16 或 float32",
        ),
    },
    "weights-not-updated": {
        "summary": (
            "weights that get gradients are not changed by the optimizer",
            "有梯度的权重没有被优化器更新",
        ),
        "causes": (
            "parameters that the optimizer was not given; a parameter group with a rate of 0; "
            "updates that are rounded away in half precision",
            "参数没有交给优化器；参数组的学习率为 0；更新在半精度下被舍入掉",
        ),
        "next": (
            "compare the optimizer's parameters with those of the model, and the rates of its "
            "groups; keep weights in float32 where updates are small",
            "核对优化器的参数与模型的参数，以及各组的学习率；更新很小时用 float32 保存权重",
        ),
    },
    "updates-large": {
        "summary": (
            "in one step half of the weights change by more than 3.5 % of their norm",
            "一步之内，半数权重的变化超过其范数的 3.5%",
        ),
        "causes": (
            "a learning rate that is too high, that jumped, or that has no warm-up",
            "学习率过高、突然跳变，或没有预热",
        ),
        "next": (
            "lower the learning rate, by a factor of ten to begin with; what was learnt before is "
            "being overwritten, so go back to a checkpoint if this came suddenly",
            "降低学习率（先降到十分之一）；此前学到的内容正在被覆盖，若是突然出现请回退到检查点",
        ),
    },
    "updates-small": {
        "summary": (
            "Adam changes the weights fifty times less than its learning rate would have it",
            "Adam 对权重的更新比学习率应有的小五十倍",
        ),
        "causes": (
            "an epsilon that is larger than the gradients; gradients clipped to almost nothing; a "
            "loss that is scaled down and not up again",
            "epsilon 大于梯度；梯度被裁剪到几乎为零；损失被缩小而没有还原",
        ),
        "next": (
            "compare grad_norm with the clipping threshold and with epsilon: Adam divides by "
            "sqrt(v) + eps, so gradients have to be much larger than eps",
            "把 grad_norm 与裁剪阈值和 epsilon 比较：Adam 除以 sqrt(v) + eps，梯度必须远大于 eps",
        ),
    },
}
