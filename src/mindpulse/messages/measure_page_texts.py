"""The words of the page of the measures, in English and Chinese. Data only.

Its prose stands in `measure_page.en.md` and `measure_page.zh.md`.
"""

from __future__ import annotations

Pair = tuple[str, str]

LABELS: dict[str, Pair] = {
    "tells": ("What it tells", "含义"),
    "formula": ("Formula", "公式"),
    "columns": ("Columns", "列"),
    "unit": ("Unit", "单位"),
    "reduction": ("Over ranks", "跨 rank 合并"),
    "within": ("Over calls within a step", "同一步内多次调用的合并"),
    "interval": ("By default", "默认"),
    "selection": ("selection", "选择级别"),
    "each": ("each step", "每步"),
    "every": ("every {steps} steps", "每 {steps} 步"),
    "watched": (
        "while `mindpulse watch` is on and `npu-smi` is there",
        "`mindpulse watch` 运行且有 `npu-smi` 时",
    ),
    "profiled": (
        "one row for each profile of the run, by `mindpulse watch`",
        "运行的每次性能分析一行，由 `mindpulse watch` 写入",
    ),
    "source": ("Source", "来源"),
    "family": ("Family", "类别"),
    "measures": ("Measures", "指标"),
    "place": ("Taken at", "测量位置"),
    "looked": ("what is looked at", "测量对象"),
    "own": ("what a measure of your own gets -> returns", "自定义指标的输入 -> 返回"),
}

COLUMN_TEXTS: dict[tuple[str, ...], Pair] = {
    (): ("one value", "单个值"),
    ("layer", "head"): ("layer, head", "层、注意力头"),
    ("layer", "expert"): ("layer, expert", "层、专家"),
    ("param",): ("parameter", "参数"),
    ("cell",): ("cell", "单元"),
    ("cell", "bin"): ("cell, bin", "单元、区间"),
    ("chip",): ("chip", "芯片"),
    ("operator",): ("type of operator", "算子类型"),
}

REDUCTION_TEXTS: dict[str, Pair] = {
    "mean": ("mean", "均值"),
    "max": ("max", "最大"),
    "min": ("min", "最小"),
    "sum": ("sum", "求和"),
    "last": ("the last one", "取最后一次"),
    "none": ("kept apart", "不合并"),
}

# Place -> what is looked at there, and what a measure of the user's gets and returns ("" for none).
PLACE_TEXTS: dict[str, tuple[Pair, str]] = {
    "attention": (
        ("the softmax of an attention: its input and its output", "注意力的 softmax：输入与输出"),
        "p (batch, head, query, key) -> (head,)",
    ),
    "norm": (
        ("the input of a LayerNorm or an RMSNorm", "LayerNorm 或 RMSNorm 的输入"),
        "x (..., features) -> ()",
    ),
    "ffn": (
        ("the inside of a feed-forward block, after its activation", "前馈块内部，激活函数之后"),
        "x (..., units) -> ()",
    ),
    "logits": (
        ("what goes into the loss", "进入损失函数的值"),
        "logits (..., classes) -> ()",
    ),
    "router": (("the probabilities of a router over its experts", "路由器对各专家的概率"), ""),
    "gradient": (
        (
            "the gradients that the optimizer gets, unscaled",
            "优化器收到的梯度，已还原损失缩放",
        ),
        "one gradient -> ()",
    ),
    "clipping": (
        (
            "what is handed to clipping by the global norm: before it, and after unscaling where "
            "the training unscales first",
            "传入全局范数裁剪的梯度：裁剪之前；若训练先还原损失缩放，则为还原之后",
        ),
        "",
    ),
    "weight": (
        ("the weights, when the optimizer has changed them", "优化器更新之后的权重"),
        "one weight -> ()",
    ),
    "optimizer": (
        ("what the optimizer keeps: moments, learning rate", "优化器的状态：矩、学习率"),
        "",
    ),
    "loss": (("what the training step returns", "训练步的返回值"), ""),
    "host": (
        ("outside the step, by the training loop", "步外，由训练循环测量"),
        "",
    ),
    "watcher": (
        (
            "beside the training, by `mindpulse watch`: the chips, and profiles of the run",
            "训练之外，由 `mindpulse watch` 测量：芯片状态与运行的性能分析",
        ),
        "",
    ),
    "": (("computed from other measures when they are read back", "读回后由其他指标算出"), ""),
}  # fmt: skip
