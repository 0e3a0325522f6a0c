"""What the measures tell, and their formulas in Chinese. Data only; `messages` reads it.

The English formula and source of a measure stand in the catalogue itself.
"""

from __future__ import annotations

Pair = tuple[str, str]

FAMILY_TEXTS: dict[str, Pair] = {
    "loss": ("Loss and speed", "损失与速度"),
    "attention": ("Attention", "注意力"),
    "gradient": ("Gradients", "梯度"),
    "weight": ("Weights", "权重"),
    "activation": ("Activations", "激活值"),
    "optimizer": ("Optimizer", "优化器"),
    "output": ("Output", "输出"),
    "moe": ("Mixture of experts", "混合专家"),
    "memory": ("Memory", "内存与显存"),
    "hardware": ("Hardware", "硬件"),
}

# Tag -> what it tells, and the formula in Chinese.
MEASURE_TEXTS: dict[str, tuple[Pair, str]] = {
    "train_loss": (
        ("whether the training learns", "训练是否在学习"),
        "训练步返回的损失的均值",
    ),
    "learning_rate": (
        ("the schedule as it was really applied", "实际生效的学习率计划"),
        "优化器在该步使用的学习率；有多个参数组时取最大者",
    ),
    "loss_scale": (
        (
            "how near half precision is to overflow: a scale that keeps falling means that it is",
            "半精度离溢出有多近：持续下降说明已在溢出边缘",
        ),
        "反向传播前该步损失所乘的系数",
    ),
    "overflow": (
        (
            "which steps changed no weight; the gradients of such a step are not real ones",
            "哪些步没有更新权重；这些步的梯度不是真实梯度",
        ),
        "因梯度含 NaN 或无穷大而跳过更新的步为 1，否则为 0",
    ),
    "step_time_s": (
        ("stalls, recompilation, a neighbour on the machine", "卡顿、重新编译、机器上的其他任务"),
        "上一步结束到该步结束的时间",
    ),
    "samples_per_s": (
        ("the throughput; ranks are added", "吞吐量；各 rank 相加"),
        "该 rank 在该步的样本数 / step_time_s",
    ),
    "tokens_per_s": (
        ("the throughput where samples differ in length", "样本长度不一时的吞吐量"),
        "该 rank 在该步的词元数 / step_time_s",
    ),
    "data_wait_s": (
        (
            "whether the data pipeline keeps up: near 0 when it does",
            "数据管道是否跟得上：跟得上时接近 0",
        ),
        "从请求该步的批次到批次就绪的时间",
    ),
    "attn_focus": (
        (
            "how sharply a head looks: 1 / keys is uniform, 1 is a single key",
            "注意力头的集中度：均匀时为 1 / 键数，只看一个键时为 1",
        ),
        "对批次与查询取均值：max_k p / (sum_k p + 1e-8)",
    ),
    "attn_entropy": (
        (
            "the same as a share of the greatest possible entropy: 1 is uniform, 0 a single key; a "
            "collapse to 0 comes before divergence",
            "熵占最大可能熵的比例：1 为均匀，0 为只看一个键；骤降至 0 先于发散出现",
        ),
        "对批次与查询取均值：min(1, -sum_k p ln p / ln(可见键数))",
    ),
    "attn_max_logit": (
        (
            "growth of the attention scores; a steady rise at a high learning rate ends in an "
            "entropy collapse",
            "注意力打分的增长；学习率过高时持续上升，最终导致熵崩溃",
        ),
        "对批次、查询与可见键取最大：进入 softmax 的打分",
    ),
    "attn_sparsity": (
        (
            "how many of the keys that a head may look at it ignores",
            "注意力头忽略了多少本可以看的键",
        ),
        "对批次与查询取均值：(p < 1e-3 的可见键数) / (可见键数)",
    ),
    "attn_sink_mass": (
        (
            "how much goes to the first token; much is normal in a trained decoder, a sudden "
            "change is not",
            "有多少注意力落在第一个词元上；训练好的解码器中较大属正常，突变则不正常",
        ),
        "对批次与查询取均值：第 0 个键上的 p",
    ),
    "attn_future_mass": (
        (
            "whether a causal mask leaks: 0 when it holds; in an encoder it is about a half and "
            "says nothing",
            "因果掩码是否泄漏：掩码有效时为 0；在编码器中约为一半，不说明问题",
        ),
        "对批次与查询取均值：查询之后各键的 sum p",
    ),
    "attn_padding_mass": (
        (
            "whether padding is hidden: 0 when it is. It needs the id of the padding token "
            "(`pad_id`)",
            "填充是否被屏蔽：屏蔽时为 0。需要给出填充词元的编号（`pad_id`）",
        ),
        "对批次与查询取均值：持有填充词元的各键的 sum p",
    ),
    "grad_norm": (
        ("explosion and vanishing, as a whole", "整体的梯度爆炸与消失"),
        "各参数 L2 范数平方和的平方根",
    ),
    "grad_norm_unclipped": (
        (
            "explosion in a training that clips, where grad_norm stays at the limit: how far above "
            "it the gradients are. Taken at ClipNorm, ops.clip_by_global_norm, ops.clip_by_norm "
            "and MindFormers' ClipGradNorm, of the gradients as they get there; no rows without "
            "clipping. Of several optimizers that clip each for itself it is the norm over all of "
            "them; a further call with the same gradients replaces the one before",
            "在做裁剪的训练中发现梯度爆炸：此时 grad_norm 停在阈值上，本指标给出梯度超出阈值多少。"
            "在 ClipNorm、ops.clip_by_global_norm、ops.clip_by_norm 与 MindFormers 的 ClipGradNorm "
            "处测量，取传入时的梯度；不做裁剪则没有数据。多个优化器各自裁剪时为全部梯度的范数；"
            "对同一组梯度再次调用时取最后一次",
        ),
        "传入裁剪的梯度的 grad_norm",
    ),
    "grad_norm_param": (
        (
            "in which parameter it begins; 0 is a parameter without gradient",
            "从哪个参数开始；0 表示该参数没有梯度",
        ),
        "单个参数梯度的平方和的平方根",
    ),
    "grad_norm_ratio": (
        (
            "whether gradients shrink (far below 1) or grow (far above 1) on the way back through "
            "the layers. The layer of a parameter is the first whole number in its path; NaN with "
            "fewer than two layers",
            "梯度在逐层回传中是缩小（远小于 1）还是放大（远大于 1）。参数所在的层取其路径中"
            "第一个整数；少于两层时为 NaN",
        ),
        "编号最小的层的梯度范数 / 编号最大的层的梯度范数",
    ),
    "grad_max_abs": (
        ("a single element that runs away, which a norm hides", "范数掩盖的单个失控元素"),
        "单个参数梯度的 max |g|",
    ),
    "grad_zero_share": (
        (
            "underflow in half precision, dead units, rows of an embedding that no token used",
            "半精度下溢、失效单元、未被任何词元使用的嵌入行",
        ),
        "单个参数梯度中为 0 的元素数 / 全部元素数",
    ),
    "grad_nonfinite": (
        ("in which parameter an overflow begins", "溢出从哪个参数开始"),
        "单个参数梯度中 NaN 与无穷大的元素数",
    ),
    "weight_norm": (
        ("growth of the weights; weight decay at work", "权重的增长；权重衰减是否起作用"),
        "更新之后单个参数的平方和的平方根",
    ),
    "weight_update_ratio": (
        (
            "whether the learning rate fits: about 1e-3 is usual, 0 is a weight that does not "
            "move. NaN where a weight was all zero",
            "学习率是否合适：通常约为 1e-3，0 表示权重未更新。更新前权重全为零时为 NaN",
        ),
        "|w_后 - w_前| / |w_前|，单个参数的 L2 范数",
    ),
    "norm_input_mean": (
        ("drift of the residual stream", "残差流的漂移"),
        "归一化层输入对词元与特征的均值",
    ),
    "norm_input_variance": (
        (
            "growth of the residual stream from layer to layer and from step to step",
            "残差流随层数与步数的增长",
        ),
        "归一化层输入对特征的方差，再对词元取均值",
    ),
    "norm_input_rms": (
        ("the same as an RMSNorm sees it", "RMSNorm 所见的同一量"),
        "x^2 对词元与特征的均值的平方根，x 为归一化层的输入",
    ),
    "norm_input_max_abs": (
        (
            "massive activations, and how far half precision (65504) is away",
            "巨大激活值，以及离半精度上限（65504）还有多远",
        ),
        "|x| 对词元与特征的最大值，x 为归一化层的输入",
    ),
    "norm_input_kurtosis": (
        (
            "a few features that stand far out: 3 is normally distributed, the number of features "
            "is the most. A token whose features are all equal counts with 0",
            "少数特征远离其余：正态分布为 3，最大为特征数。所有特征相等的词元计为 0",
        ),
        "对词元取均值：mean_f (x - mean_f x)^4 / (对特征的方差)^2",
    ),
    "ffn_zero_share": (
        (
            "sparsity of a ReLU network; other activations (GELU, SiLU) are hardly ever exactly 0",
            "ReLU 网络的稀疏度；其他激活函数（GELU、SiLU）几乎不会恰好为 0",
        ),
        "FFN 内部激活值中为 0 的个数 / 总个数",
    ),
    "ffn_dead_share": (
        (
            "units that took part in nothing in this batch; those that stay so are dead",
            "在该批次中毫无作用的单元；一直如此者即为失效单元",
        ),
        "对批次中每个词元都为 0 的 FFN 内部单元数 / 总单元数",
    ),
    "ffn_histogram": (
        (
            "the whole distribution of magnitudes, for a heat map over steps",
            "量级的完整分布，用于随步数变化的热图",
        ),
        "量级落在该区间的 FFN 内部激活值个数 / 总个数",
    ),
    "adam_m_norm": (
        ("the direction that the optimizer has gathered", "优化器累积的方向"),
        "单个参数的 Adam 一阶矩 m 的平方和的平方根",
    ),
    "adam_v_norm": (
        (
            "whether the second moment lags behind a sudden gradient: the sign before a spike",
            "二阶矩是否落后于突增的梯度：尖峰之前的征兆",
        ),
        "单个参数的 Adam 二阶矩 v 的平方和的平方根",
    ),
    "logits_log_partition": (
        (
            "drift of the logits, which cross-entropy cannot see",
            "logits 的漂移，交叉熵看不到它",
        ),
        "对词元取均值：ln sum_c exp(logit_c)",
    ),
    "expert_load": (
        (
            "whether the router uses all experts: 1 / experts each is balanced. Choices are "
            "counted before a limit of capacity drops tokens",
            "路由器是否用到所有专家：各为 1 / 专家数即均衡。在容量上限丢弃词元之前统计",
        ),
        "落在某个专家上的词元选择数 / 该层全部词元选择数",
    ),
    "memory_allocated": (
        ("what the tensors take", "张量占用"),
        "设备内存池中存放张量的字节数",
    ),
    "memory_reserved": (
        ("what other processes cannot have", "其他进程无法使用的部分"),
        "内存池从设备取得的字节数",
    ),
    "memory_total": (
        (
            "what the rule memory-nearly-full holds the rest against",
            "规则 memory-nearly-full 以此为基准",
        ),
        "设备拥有的显存字节数",
    ),
    "memory_peak": (
        ("how near the training came to running out", "训练曾多接近耗尽"),
        "自进程启动以来同时分配的最大字节数",
    ),
    "memory_free": (
        ("what the pool still has, in however many pieces", "内存池剩余，不论分成多少块"),
        "memory_reserved - memory_allocated",
    ),
    "memory_largest_free": (
        (
            "the largest tensor that fits without asking the device",
            "无需再向设备申请即可容纳的最大张量",
        ),
        "内存池中最大的连续空闲块的字节数",
    ),
    "memory_contiguity": (
        ("1 when all that is free lies in one piece", "全部空闲内存连成一块时为 1"),
        "memory_largest_free / memory_free",
    ),
    "memory_fragmentation": (
        (
            "0 when all that is free lies in one piece; high when a large request fails although "
            "enough is free",
            "全部空闲内存连成一块时为 0；较高时，空闲总量足够但大块申请仍会失败",
        ),
        "1 - memory_largest_free / memory_free",
    ),
    "host_memory_rss": (
        (
            "a leak on the host: data pipeline, Python objects. A row every ten steps, or every "
            "second where that is sooner",
            "主机内存泄漏：数据管道、Python 对象。每十步一行；若一秒先到，则每秒一行",
        ),
        "训练进程在主机上的常驻字节数",
    ),
    "npu_utilization": (
        (
            "whether the chip works at all; low beside a good step time it is waiting",
            "芯片是否在工作；步时正常而此值低，说明它在等待",
        ),
        "AI Core 处于使用中的时间占比",
    ),
    "npu_memory_used": (
        ("what the chip holds, other processes included", "芯片显存占用，包括其他进程"),
        "芯片显存的已用字节数，不论由谁使用",
    ),
    "npu_memory_total": (
        ("what npu_memory_used is to be held against", "npu_memory_used 的参照"),
        "芯片拥有的显存字节数",
    ),
    "npu_temperature": (
        ("a chip that is hot lowers its clock", "芯片过热会降频"),
        "芯片温度",
    ),
    "npu_power": (
        ("a limit of power shows as a flat line below the peak", "功率受限时表现为低于峰值的平线"),
        "NPU 的功率",
    ),
    "npu_alarm": (
        ("what the driver says about the chip", "驱动对芯片状态的判断"),
        "0 正常，1 警告（Warning），2 告警（Alarm），3 严重（Critical），4 其他（如 Offline）",
    ),
    "l2_hit_rate": (
        (
            "how much of the traffic of attention the cache takes; low often means a mask in "
            "float32",
            "注意力访存有多少由缓存承担；偏低常因掩码为 float32",
        ),
        "各类注意力算子的 L2 缓存命中 / (命中 + 未命中)",
    ),
    "cube_utilization": (
        ("how well the matrix units are fed", "矩阵单元是否吃饱"),
        "矩阵单元利用率，对各算子按时间加权取均值",
    ),
    "vector_utilization": (
        ("how much of the time goes into vector work", "向量计算所占的时间"),
        "向量单元利用率，对各算子按时间加权取均值",
    ),
    "hbm_read_bandwidth": (
        ("how near reading is to the limit of the chip", "读取离芯片上限有多近"),
        "每秒从 HBM 读取的字节数，均值",
    ),
    "hbm_write_bandwidth": (
        ("how near writing is to the limit of the chip", "写入离芯片上限有多近"),
        "每秒写入 HBM 的字节数，均值",
    ),
    "comm_not_overlapped_share": (
        ("what a better overlap could win", "更好的通算重叠能省下的时间"),
        "未被计算掩盖的通信时间 / 步时间",
    ),
    "device_free_share": (
        ("what a faster host could win", "主机更快能省下的时间"),
        "设备等待主机的时间 / 步时间",
    ),
    "profile_memory_peak": (
        ("how much the pool took within the profiled steps", "被采集的各步内内存池的占用"),
        "框架内存池同时保留的最大字节数",
    ),
    "profile_memory_idle": (
        (
            "what the pool had taken and nobody used when most was in use",
            "用量最大时，内存池已占而无人使用的部分",
        ),
        "分配最多之时的 (reserved - allocated) / reserved",
    ),
}  # fmt: skip

# Sources that are no paper, in Chinese.
SOURCE_TEXTS: dict[str, str] = {
    "the training loop": "训练循环",
    "the optimizer": "优化器",
    "as grad_norm, kept apart for each trainable parameter": "同 grad_norm，按可训练参数分别记录",
    "the concentration measure of the article that this project started from": (
        "本项目起源文章中的集中度指标"
    ),
    "the ratio that the article which this project started from calls fragmentation": (
        "本项目起源文章称之为“碎片率”的比值"
    ),
    "external fragmentation as it is usually meant; the article has it upside down": (
        "通常意义上的外部碎片率；文章把它弄反了"
    ),
    "the device's memory log; MindSpore's Python interface does not tell it": (
        "设备的内存日志；MindSpore 的 Python 接口不提供"
    ),
    "npu-smi info: HBM-Usage(MB); Memory-Usage(MB) where a chip has no HBM": (
        "npu-smi info：HBM-Usage(MB)；无 HBM 的芯片取 Memory-Usage(MB)"
    ),
    "the profiler of MindSpore on Ascend: kernel_details.csv, l2_cache.csv": (
        "MindSpore 在 Ascend 上的性能分析：kernel_details.csv、l2_cache.csv"
    ),
    "the profiler of MindSpore on Ascend: kernel_details.csv": (
        "MindSpore 在 Ascend 上的性能分析：kernel_details.csv"
    ),
    "the profiler of MindSpore on Ascend: hbm_*.csv, kernel_details.csv": (
        "MindSpore 在 Ascend 上的性能分析：hbm_*.csv、kernel_details.csv"
    ),
    "the profiler of MindSpore on Ascend: step_trace_time.csv": (
        "MindSpore 在 Ascend 上的性能分析：step_trace_time.csv"
    ),
    "the profiler of MindSpore on Ascend: memory_record.csv": (
        "MindSpore 在 Ascend 上的性能分析：memory_record.csv"
    ),
}
