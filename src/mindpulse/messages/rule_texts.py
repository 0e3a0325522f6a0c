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
            "该参数与损失断开：stop_gradient、未使用的分支、对所有输入都失效的单元、"
            "屏蔽了全部内容的掩码",
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
            "an attention logit is above 50 and has doubled within the last sixty rows",
            "注意力打分超过 50，且在最近六十行内翻倍",
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
            "what goes into a normalisation is five times as large as in the rows before",
            "归一化层的输入是此前各行的五倍",
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
            "more than 70 % of the units of a feed-forward block never fire",
            "某个前馈块中超过 70% 的单元从不激活",
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
    "throughput-drop": {
        "summary": (
            "fewer than half as many tokens a second as before, for 35 steps",
            "每秒词元数不到此前的一半，已持续 35 步",
        ),
        "causes": (
            "another job on the machine or a device that throttles; something new in the loop "
            "(logging, synchronising); a slow rank or network; data that comes late",
            "机器上有其他任务或设备降频；循环中新增的操作（日志、同步）；某个 rank 或网络变慢；"
            "数据来得太晚",
        ),
        "next": (
            "compare data_wait_s: if it grew too, look at the loader; else profile a few steps and "
            "look at the temperature and the load of the devices",
            "对照 data_wait_s：若同样变大，请检查加载器；否则对若干步做性能分析，"
            "并查看设备的温度与负载",
        ),
    },
    "loss-jump": {
        "summary": (
            "the loss rose to another level within ten steps and stays there",
            "损失在十步之内升到另一水平并停留",
        ),
        "causes": (
            "other data from this step on (a new shard or domain, wrong labels, targets that are "
            "misaligned); a change of the model or of the loss; the beginning of a divergence",
            "从这一步起数据不同（新的分片或领域、标签错误、目标错位）；模型或损失被改动；"
            "发散的开始",
        ),
        "next": (
            "decode a batch from before and one from after, inputs and targets; if the data was "
            "meant to change, nothing",
            "解码此前与此后的批次各一个，核对输入与目标；若数据变化是有意的，则无需处理",
        ),
    },
    "learning-rate-high": {
        "summary": (
            "a learning rate above 0.012 under Adam",
            "在 Adam 下学习率超过 0.012",
        ),
        "causes": (
            "a rate that was meant for SGD, or a zero too few; a schedule that scales with the "
            "batch; a peak that was set for a far smaller model",
            "学习率原为 SGD 而设，或少写了一个零；随批次大小缩放的学习率计划；"
            "为小得多的模型设定的峰值",
        ),
        "next": (
            "Adam changes each weight by about the rate in each step, whatever the gradient; for "
            "Transformers 1e-4 to 3e-3 is usual",
            "无论梯度大小，Adam 每步对每个权重的改动约等于学习率；Transformer 通常取 1e-4 至 3e-3",
        ),
    },
    "weights-changed-outside": {
        "summary": (
            "the norm of these weights changed far more than the optimizer changed them",
            "这些权重的范数变化远大于优化器所作的更新",
        ),
        "causes": (
            "a bit that flipped in memory; a checkpoint or other weights that were loaded in the "
            "middle of the run; code that writes to weights (tying, clipping, pruning)",
            "内存位翻转；运行中途加载了检查点或其他权重；代码直接改写权重（绑定、裁剪、剪枝）",
        ),
        "next": (
            "compare the named weights with the last checkpoint; if nothing in your code wrote to "
            "them, go back to it and test the device's memory",
            "把所指出的权重与最近的检查点比较；若代码没有改写它们，请回退并检测设备内存",
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
            "in one step half of the weights change by more than 4.5 % of their norm",
            "一步之内，半数权重的变化超过其范数的 4.5%",
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
            "Adam changes the weights far less than its learning rate would have it",
            "Adam 对权重的更新远小于学习率应有的幅度",
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
    "causal-mask-leak": {
        "summary": (
            "attention falls on keys behind the query in a model that was declared causal",
            "声明为因果的模型中，注意力落到了查询之后的键上",
        ),
        "causes": (
            "a causal mask that is missing, has the wrong sign, shape or type, or does not reach "
            "all layers and heads; a bidirectional layer (an encoder, a prefix) under "
            "`causal=True`",
            "因果掩码缺失，符号、形状或类型有误，或没有覆盖所有层和头；"
            "在 `causal=True` 下存在双向层（编码器、前缀）",
        ),
        "next": (
            "look at the attention map of the layer and head that are named: all above the "
            "diagonal has to be 0; until then the loss is better than the model. If some layers "
            "may see the future, leave `causal` out",
            "查看所指层和头的注意力图：对角线以上必须全为 0；修复之前损失好于模型的实际水平。"
            "若有的层本可看到未来，请不要设置 `causal`",
        ),
    },
    "causal-mask-kept": {
        "summary": (
            "no attention at all falls on keys behind the query in a model that was declared "
            "bidirectional",
            "声明为双向的模型中，没有任何注意力落到查询之后的键上",
        ),
        "causes": (
            "a causal mask that was left in; a layer of a decoder in an encoder; a fused "
            "attention operator whose default is causal",
            "遗留了因果掩码；编码器中用了解码器的层；融合注意力算子默认使用因果掩码",
        ),
        "next": (
            "look at the mask that the attention gets; every token sees only half of its context "
            "until it is mended. If the model is meant to be causal, say `causal=True`",
            "检查注意力得到的掩码；修复之前每个词元只看到一半上下文。若模型本应是因果的，"
            "请设置 `causal=True`",
        ),
    },
    "loss-spike": {
        "summary": (
            "the loss is far above the level of the last 50 steps",
            "损失远高于最近 50 步的水平",
        ),
        "causes": (
            "a run of bad batches; a step that was too large (a high learning rate, small beta2 "
            "or second moments that lag behind); damaged weights",
            "连续的坏批次；更新过大（学习率过高、beta2 过小或二阶矩滞后）；权重已损坏",
        ),
        "next": (
            "watch the next 20 steps: a spike that comes down by itself needs nothing but a look "
            "at its batches; if it stays up or comes again, go back to a checkpoint from before "
            "it and skip these batches, or lower the learning rate",
            "观察随后 20 步：自行回落的尖峰只需检查相应批次；若居高不下或再次出现，"
            "请回退到此前的检查点并跳过这些批次，或降低学习率",
        ),
    },
    "plateau": {
        "summary": (
            "the loss has not fallen for 500 steps",
            "损失已有 500 步没有下降",
        ),
        "causes": (
            "the training has converged; a learning rate that is too low, or so high that the "
            "loss only jumps about; a model that learns only how often each class comes: targets "
            "that do not belong to the inputs",
            "训练已经收敛；学习率过低，或过高以致损失只是来回跳动；模型只学到各类别的频率："
            "目标与输入不对应",
        ),
        "next": (
            "compare the loss with that of guessing (the logarithm of the number of classes): "
            "near it, look at a batch and its targets and try to fit ten samples; far below it, "
            "lower the learning rate or end the training",
            "与随机猜测的损失（类别数的对数）比较：若接近，请检查批次及其目标，"
            "并尝试拟合十个样本；若远低于它，可降低学习率或结束训练",
        ),
    },
    "vanishing-gradient": {
        "summary": (
            "the gradient norm is a hundred times smaller than in the last 200 steps, and the "
            "loss has not fallen with it",
            "梯度范数比最近 200 步小一百倍，而损失没有随之下降",
        ),
        "causes": (
            "units that are saturated or dead; weights that were cut off from the loss; a loss "
            "or a loss scale so small that half precision rounds gradients to 0",
            "单元饱和或死亡；权重与损失断开；损失或损失缩放过小，半精度把梯度舍入为 0",
        ),
        "next": (
            "see in the layer x step map of the report where the gradient ends; with half "
            "precision raise the loss scale; if it came within one step, compare the weights "
            "with the last checkpoint",
            "在报告的“层 × 步”热图中查看梯度在哪里消失；半精度时提高损失缩放；若在一步之内发生，"
            "请与最近的检查点比较权重",
        ),
    },
    "vanishing-with-depth": {
        "summary": (
            "the first layer gets less than a thousandth of the gradient of the last",
            "第一层得到的梯度不到最后一层的千分之一",
        ),
        "causes": (
            "a deep network without residual paths or normalisation, or with them in the wrong "
            "place; saturating activations; weights that start too small",
            "深层网络没有残差通路或归一化，或位置不当；激活函数饱和；权重初始值过小",
        ),
        "next": (
            "look at grad_norm_param layer by layer; put the normalisation before each block "
            "(pre-norm), scale the initialisation, use GELU or ReLU",
            "逐层查看 grad_norm_param；把归一化放在每个块之前（pre-norm）、调整初始化、"
            "使用 GELU 或 ReLU",
        ),
    },
    "overfit": {
        "summary": (
            "the loss of the evaluation is 5 % above its best, two times in a row, while the "
            "training loss falls",
            "评估损失连续两次比其最好值高 5%，而训练损失仍在下降",
        ),
        "causes": (
            "too many passes over too little data; a model that is too large for it; too little "
            "dropout or weight decay; evaluation data of another kind",
            "数据太少而遍数太多；模型相对数据过大；dropout 或权重衰减不足；评估数据属于另一种分布",
        ),
        "next": (
            "take the checkpoint with the best evaluation; end here, or go on with more data, "
            "more regularisation or a smaller model",
            "取评估最好的检查点；就此结束，或增加数据、加强正则化、缩小模型后继续",
        ),
    },
    "gradients-never-zeroed": {
        "summary": (
            "the gradient norm grows from step to step along a straight line",
            "梯度范数逐步沿直线增长",
        ),
        "causes": (
            "gradients that are added up and never set to zero; an accumulation that is not "
            "emptied after the update; a loss that is summed over more and more",
            "梯度一直累加而没有清零；累积的梯度在更新后没有清空；求和的损失包含的项越来越多",
        ),
        "next": (
            "look where gradients are set to zero: once for each update, also on steps that are "
            "skipped; then start again from a checkpoint from before it, as the moments of the "
            "optimizer are wrong too",
            "检查梯度在哪里清零：每次更新一次，被跳过的步也要清零；然后从此前的检查点重新开始，"
            "因为优化器的矩也已出错",
        ),
    },
    "clipping-always-on": {
        "summary": (
            "nearly every step is clipped, to less than a fifth of its gradient",
            "几乎每一步都被裁剪，且不到原梯度的五分之一",
        ),
        "causes": (
            "a limit that is too small for this model (a zero too many); a loss that is summed "
            "where it was a mean, or a loss scale that is not taken out before clipping; "
            "gradients that have grown",
            "裁剪上限对该模型过小（多写了一个零）；损失由均值改为求和，或裁剪前没有除去损失缩放；"
            "梯度已经增大",
        ),
        "next": (
            "compare the limit with the median of grad_norm_unclipped: it should cut the peaks "
            "only. With SGD the clipping is the learning rate here; Adam hides it until the "
            "gradients come near its epsilon",
            "将上限与 grad_norm_unclipped 的中位数比较：它只应削去峰值。对 SGD 而言，"
            "此时裁剪就是学习率；Adam 会掩盖这一点，直到梯度接近其 epsilon",
        ),
    },
    "loss-scale-floor": {
        "summary": (
            "the loss scale has fallen to 1 or below and stays there",
            "损失缩放降到 1 或以下，并停留在那里",
        ),
        "causes": (
            "activations or gradients that half precision cannot hold, at any scale; NaN in the "
            "model that is taken for an overflow",
            "激活值或梯度在任何缩放下都超出半精度范围；模型中的 NaN 被当作溢出",
        ),
        "next": (
            "the smallest gradients are rounded away from here on: find the layer that overflows "
            "(norm_input_max_abs, grad_nonfinite) and compute it in float32, or use bfloat16, "
            "which needs no scale",
            "此后最小的梯度会被舍入掉：找出溢出的层（norm_input_max_abs、grad_nonfinite）"
            "并用 float32 计算，或改用不需要缩放的 bfloat16",
        ),
    },
    "memory-nearly-full": {
        "summary": (
            "tensors fill more than 95 % of the memory of the device",
            "张量占用了设备内存的 95% 以上",
        ),
        "causes": (
            "a batch or a sequence that is too long; states that are kept (graphs, losses with "
            "their gradients); activations that are not recomputed; another process on the "
            "device",
            "批次或序列过长；保留了不该保留的状态（计算图、带梯度的损失）；激活值没有重计算；"
            "设备上有其他进程",
        ),
        "next": (
            "the next longer batch ends the training: shorten batches or sequences, recompute "
            "activations, or spread the optimizer's state over ranks; write a checkpoint now",
            "下一个更长的批次就会使训练中断：缩短批次或序列、重计算激活值，"
            "或把优化器状态分散到各卡；请立即保存检查点",
        ),
    },
    "memory-fragmented": {
        "summary": (
            "the free memory of the pool lies in pieces: the largest holds less than 35 % of it",
            "内存池的空闲部分呈碎片：最大的一块不到 35%",
        ),
        "causes": (
            "shapes that change from step to step (sequences of any length); large tensors that "
            "are freed between small ones that stay",
            "形状逐步变化（任意长度的序列）；大张量释放后夹在保留的小张量之间",
        ),
        "next": (
            "pad sequences to a few lengths; allocate what stays first; a pool of virtual "
            "addresses (in PyTorch expandable segments, in MindSpore the virtual memory of the "
            "pool) joins the pieces",
            "把序列填充到少数几种长度；先分配长期保留的张量；"
            "使用虚拟地址的内存池（PyTorch 的 expandable segments、MindSpore 内存池的虚拟内存）"
            "可以合并碎片",
        ),
    },
    "memory-leak": {
        "summary": (
            "the memory of the training process grows steadily: 64 MiB and 5 % within 60 rows",
            "训练进程的内存持续增长：60 行之内超过 64 MiB 和 5%",
        ),
        "causes": (
            "tensors or losses that are kept in a list (take `float(loss.asnumpy())`); a cache "
            "without a limit, one entry for each shape or sample; a data pipeline that holds on "
            "to its batches; a graph that is compiled again and again",
            "张量或损失被保留在列表中（请用 `float(loss.asnumpy())`）；没有上限的缓存，"
            "每个形状或样本一项；数据管道不释放批次；计算图反复编译",
        ),
        "next": (
            "compare two snapshots of tracemalloc, some hundred steps apart; stop the data "
            "pipeline alone for a while, then the evaluation alone, and see what ends the "
            "growth. At this rate the host is full after (free memory / growth) steps",
            "相隔数百步比较两次 tracemalloc 快照；分别单独停用数据管道和评估，"
            "看哪一个使增长停止。照此速度，主机会在（空闲内存 / 增速）步之后耗尽",
        ),
    },
    "memory-leak-slow": {
        "summary": (
            "the memory of the training process grows slowly and does not stop",
            "训练进程的内存缓慢增长且不停止",
        ),
        "causes": (
            "something small that is kept at each step, evaluation or checkpoint: metrics in a "
            "list, open files, logs, a cache without a limit",
            "每一步、每次评估或每次保存检查点都留下少量内容：列表中的指标、打开的文件、日志、"
            "没有上限的缓存",
        ),
        "next": (
            "see whether it rises at evaluations, at checkpoints or at each step; compare two "
            "snapshots of tracemalloc an hour apart. Until it is found, plan a restart from a "
            "checkpoint before the host is full",
            "查看它在评估、保存检查点还是每一步时上升；相隔一小时比较两次 tracemalloc 快照。"
            "找到原因之前，请计划在主机耗尽前从检查点重启",
        ),
    },
    "device-memory-leak": {
        "summary": (
            "what tensors hold on the device grows steadily: 64 MiB and 2 % within 30 rows",
            "设备上张量占用的内存持续增长：30 行之内超过 64 MiB 和 2%",
        ),
        "causes": (
            "losses or outputs that are kept in a list without `float(...)`; a state that grows by "
            "a tensor a step; a shape that is new each time, with a graph compiled and kept for "
            "each; hooks that are registered again and again",
            "损失或输出未经 `float(...)` 就被保留在列表中；每步增加一个张量的状态；每次都是新形状，"
            "每个形状都编译并保留一个图；反复注册的钩子",
        ),
        "next": (
            "`mindpulse doctor memory` reads the log and the memory tracker of MindSpore and names "
            "blocks that never came back; keep numbers instead of tensors; see whether the growth "
            "ends with a fixed shape. At this rate the device is full after (memory_total - "
            "memory_allocated) / growth steps",
            "`mindpulse doctor memory` 读取 MindSpore 的日志与内存跟踪，并指出从未归还的内存块；"
            "保留数值而不是张量；看固定形状后增长是否停止。照此速度，设备会在 "
            "(memory_total - memory_allocated) / 增速 步之后耗尽",
        ),
    },
    "npu-unhealthy": {
        "summary": (
            "the driver says that a chip of this rank is not OK",
            "驱动报告该 rank 的芯片状态不正常",
        ),
        "causes": (
            "heat, power, errors of the chip's memory, a link that is down, or a card that has "
            "fallen off the bus",
            "过热、供电、显存错误、链路断开，或板卡已从总线上掉线",
        ),
        "next": (
            "`npu-smi info -t health -i N` names the events, `npu-smi info -t temp -i N` the heat; "
            "keep a checkpoint now (`mindpulse act RUN checkpoint`), and move the rank to another "
            "card before this one is lost",
            "`npu-smi info -t health -i N` 列出具体事件，`npu-smi info -t temp -i N` 给出温度；"
            "请立即保存检查点（`mindpulse act RUN checkpoint`），"
            "并在板卡丢失之前把该 rank 换到别的卡上",
        ),
    },
    "l2-hit-rate-low": {
        "summary": (
            "an attention operator finds less than 60 % of its data in the L2 cache",
            "某个注意力算子在 L2 缓存中命中的数据不到 60%",
        ),
        "causes": (
            "an attention mask in float32 of batch x heads x length x length, which pushes "
            "everything else out; layouts that are copied; tiles that do not fit",
            "批次 × 头 × 长度 × 长度的 float32 注意力掩码，把其他数据挤出缓存；布局转换的拷贝；"
            "分块不合适",
        ),
        "next": (
            "look whether the attention mask is float32: a boolean or uint8 mask, or the causal "
            "mode of the fused operator without any mask, moves a quarter of the bytes or none",
            "检查注意力掩码是否为 float32：布尔或 uint8 掩码只需搬运四分之一的字节；"
            "融合算子的因果模式无需掩码",
        ),
    },
}
