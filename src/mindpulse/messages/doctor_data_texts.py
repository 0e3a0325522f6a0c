"""What the doctor says about data, in English and Chinese."""

from __future__ import annotations

DOCTOR_DATA_TEXTS: dict[str, tuple[str, str]] = {
    "check.data.ids": ("ids", "token id"),
    "check.data.labels": ("labels", "标签"),
    "check.data.mask": ("mask", "掩码"),
    "check.data.padding": ("padding", "填充"),
    "check.data.values": ("values", "数值"),
    "check.data.dtype": ("types", "数据类型"),
    "check.data.shapes": ("shapes", "形状"),
    "check.data.truncation": ("truncation", "截断"),
    "check.data.repeat": ("repeated batches", "重复批次"),
    "check.data.expected": ("what the model wants", "模型的要求"),
    "data_fine.evidence": ("nothing odd in {arrays}", "{arrays} 未见异常"),
    "data_all_fine.evidence": (
        "{count} batch(es), nothing odd; the first: {arrays}",
        "{count} 个批次未见异常；首个批次：{arrays}",
    ),
    "data_none.evidence": ("there was no batch", "没有任何批次"),
    "data_none.cure": (
        "the dataset is empty, or was read to its end before",
        "数据集为空，或此前已读到末尾",
    ),
    "data_empty.evidence": ("the batch holds no value", "批次中没有任何数值"),
    "data_empty.cure": (
        "look at the filter or the split in front of the batch",
        "请检查批次之前的过滤或划分",
    ),
    "data_empty_array.evidence": ("{name}: empty, shape {shape}", "{name}：为空，形状 {shape}"),
    "data_empty_array.cure": (
        "look at what makes this column",
        "请检查该列的生成代码",
    ),
    # -- types --------------------------------------------------------------------------------
    "data_int64.evidence": ("{name} is {dtype}", "{name} 为 {dtype}"),
    "data_int64.cure": (
        "convert to int32, with .astype(np.int32) or TypeCast(mindspore.int32): MindSpore's losses "
        "refuse 64-bit labels, and a device converts 64-bit ids on each step",
        "请用 .astype(np.int32) 或 TypeCast(mindspore.int32) 转为 int32：MindSpore "
        "的损失函数不接受 64 位标签，"
        "设备每步都要转换 64 位 id",
    ),
    "data_float64.evidence": ("{name} is {dtype}", "{name} 为 {dtype}"),
    "data_float64.cure": (
        "convert to float32 (NumPy makes float64 by default): most operators of a device do not "
        "take it, and it is twice the traffic",
        "请转为 float32（NumPy 默认生成 float64）：设备的大多数算子不支持它，且传输量加倍",
    ),
    "data_dtypes_mixed.evidence": (
        "{half} of {count} are half precision; these are still float32: {names}",
        "{count} 项中有 {half} 项为半精度；以下仍为 float32：{names}",
    ),
    "data_dtypes_mixed.cure": (
        "norms, softmax and losses belong in float32; where these are none, cast them: each is "
        "twice the memory and traffic",
        "归一化、softmax 与损失应保持 float32；其余请转换：它们占用双倍显存与带宽",
    ),
    "data_dtypes_fine.evidence": (
        "{half} of {count} are half precision; no float32 among them that is not usual",
        "{count} 项中有 {half} 项为半精度；没有不寻常的 float32",
    ),
    # -- ids ----------------------------------------------------------------------------------
    "data_ids_float.evidence": (
        "{name} is {dtype}, and holds whole numbers only",
        "{name} 为 {dtype}，但只包含整数",
    ),
    "data_ids_float.cure": (
        "ids are looked up in a table: convert to int32",
        "id 用于查表：请转为 int32",
    ),
    "data_ids_negative.evidence": (
        "{name}: {count} id(s) below 0, the least {least}",
        "{name}：{count} 个 id 小于 0，最小为 {least}",
    ),
    "data_ids_negative.cure": (
        "a device reads some other row of the table, or zeros, and says nothing; -100 belongs into "
        "labels only",
        "设备会读到表中其他行或零而不报错；-100 只能用于标签",
    ),
    "data_ids_above.evidence": (
        "{name}: {count} id(s) from {size} up, the largest {most}",
        "{name}：{count} 个 id 不小于 {size}，最大为 {most}",
    ),
    "data_ids_above.cure": (
        "tokenizer and model do not belong together, or tokens were added and the embedding was "
        "not made larger",
        "分词器与模型不匹配，或新增了 token 但未扩大词嵌入",
    ),
    "data_ids_constant.evidence": (
        "{name}: every id is {value}",
        "{name}：所有 id 均为 {value}",
    ),
    "data_ids_constant.cure": (
        "the batch is nothing but padding, or the tokenizer knows no word of the text",
        "批次全是填充，或分词器不认识文本中的任何词",
    ),
    # -- labels -------------------------------------------------------------------------------
    "data_labels_float.evidence": (
        "{name} is {dtype}, and holds classes",
        "{name} 为 {dtype}，但内容是类别",
    ),
    "data_labels_float.cure": (
        "convert to int32; a loss that takes floats would do regression",
        "请转为 int32；接受浮点的损失会做回归",
    ),
    "data_labels_ignored.evidence": (
        "{name}: every label is -100, which the loss leaves out",
        "{name}：所有标签均为 -100，会被损失忽略",
    ),
    "data_labels_ignored.cure": (
        "nothing is learnt from this batch, and a mean over no label is NaN: look at the masking "
        "of the labels",
        "该批次不产生学习信号，对零个标签取平均为 NaN：请检查标签的掩码逻辑",
    ),
    "data_labels_negative.evidence": (
        "{name}: {count} label(s) below 0 that are not -100, the least {least}",
        "{name}：{count} 个标签小于 0 且不是 -100，最小为 {least}",
    ),
    "data_labels_negative.cure": (
        "use -100 for what the loss is to leave out (ignore_index)",
        "希望损失忽略的位置请使用 -100（ignore_index）",
    ),
    "data_labels_above.evidence": (
        "{name}: {count} label(s) from {size} up, the largest {most}",
        "{name}：{count} 个标签不小于 {size}，最大为 {most}",
    ),
    "data_labels_above.cure": (
        "classes count from 0; make the head as wide as the labels are",
        "类别从 0 开始计数；请使输出层与类别数一致",
    ),
    "data_labels_constant.evidence": (
        "{name}: every label is {value}",
        "{name}：所有标签均为 {value}",
    ),
    "data_labels_constant.cure": (
        "shuffle before batching, or look at how labels are made",
        "请在组批之前打乱，或检查标签的生成",
    ),
    # -- mask and padding ---------------------------------------------------------------------
    "data_mask_float32.evidence": (
        "{name} is {dtype}, shape {shape}",
        "{name} 为 {dtype}，形状 {shape}",
    ),
    "data_mask_float32.cure": (
        "bool, uint8 or half precision is a half to a quarter of the traffic, which attention "
        "reads "
        "in every layer; a low L2 hit rate often comes from this",
        "bool、uint8 或半精度可将传输量降到一半至四分之一，而注意力每层都要读取；L2 "
        "命中率低常由此引起",
    ),
    "data_mask_shape.evidence": (
        "{name} has shape {shape}, the ids {ids}: it cannot be laid over them",
        "{name} 形状为 {shape}，id 形状为 {ids}：两者无法对应",
    ),
    "data_mask_shape.cure": (
        "(batch, key), (batch, 1, 1, key) or (batch, 1, query, key), with the lengths of the ids",
        "应为 (batch, key)、(batch, 1, 1, key) 或 (batch, 1, query, key)，长度与 id 一致",
    ),
    "data_mask_nan.evidence": ("{name} holds NaN", "{name} 含有 NaN"),
    "data_mask_nan.cure": (
        "0 times infinity makes NaN: build it with where instead of a product",
        "0 乘以无穷会得到 NaN：请用 where 而不是乘法构造",
    ),
    "data_mask_infinite.evidence": (
        "{name} hides with -inf, type {dtype}",
        "{name} 使用 -inf 进行遮盖，类型 {dtype}",
    ),
    "data_mask_infinite.cure": (
        "a row that is hidden as a whole becomes NaN; use a large finite number (-1e4 in float16)",
        "整行被遮盖时会得到 NaN；请使用有限的大负数（float16 用 -1e4）",
    ),
    "data_mask_zero.evidence": (
        "{name} hides everything",
        "{name} 遮盖了全部内容",
    ),
    "data_mask_zero.cure": (
        "1 (or True) means seen in MindSpore's and Hugging Face's models; some operators mean the "
        "opposite: ask which one yours wants",
        "在 MindSpore 与 Hugging Face 模型中 1（或 True）表示可见；有些算子相反："
        "请确认所用算子的含义",
    ),
    "data_mask_blind.evidence": (
        "{name}: {count} of {of} queries see no key at all",
        "{name}：{of} 个查询中有 {count} 个看不到任何键",
    ),
    "data_mask_blind.cure": (
        "their attention is uniform or NaN; let each see itself, or keep them out of the loss",
        "其注意力为均匀分布或 NaN；请让其至少看到自身，或排除在损失之外",
    ),
    "data_all_padding.evidence": (
        "{name}: {count} of {of} sequences are nothing but padding",
        "{name}：{of} 个序列中有 {count} 个全是填充",
    ),
    "data_all_padding.cure": (
        "drop empty samples before batching: attention over nothing is uniform or NaN",
        "请在组批之前丢弃空样本：对空内容的注意力为均匀分布或 NaN",
    ),
    "data_mask_leaks.evidence": (
        "{name}: {count} pair(s) let a token see a later one, though the model is causal",
        "{name}：有 {count} 处允许 token 看到之后的 token，而模型是因果的",
    ),
    "data_mask_leaks.cure": (
        "combine it with np.tril: the loss falls wonderfully, and the model learns to copy",
        "请与 np.tril 结合：否则损失下降很快，但模型只学会抄写",
    ),
    "data_mask_transposed.evidence": (
        "{name} lets tokens see later ones only ({count} pairs): it is upside down",
        "{name} 只允许看到之后的 token（{count} 处）：方向颠倒",
    ),
    "data_mask_transposed.cure": (
        "np.tril instead of np.triu, or swap its last two axes",
        "请用 np.tril 代替 np.triu，或交换最后两个轴",
    ),
    "data_mask_causal.evidence": (
        "{name} hides later tokens, though the model is not causal",
        "{name} 遮盖了之后的 token，而模型不是因果的",
    ),
    "data_mask_causal.cure": (
        "an encoder sees both sides: use the padding mask alone",
        "编码器应看到两侧：请只使用填充掩码",
    ),
    "data_mask_open.evidence": (
        "{name} hides nothing, and {count} id(s) are padding ({pad})",
        "{name} 没有遮盖任何内容，而有 {count} 个 id 是填充（{pad}）",
    ),
    "data_mask_open.cure": (
        "make it from the ids: ids != pad_id",
        "请由 id 生成：ids != pad_id",
    ),
    "data_mask_inverted.evidence": (
        "{name} is 1 where the ids are {pad} and 0 at all others: it shows the padding and hides "
        "the text",
        "{name} 在 id 为 {pad} 处为 1、其余为 0：显示的是填充，遮盖的是文本",
    ),
    "data_mask_inverted.cure": (
        "turn it over: 1 - mask",
        "请取反：1 - mask",
    ),
    "data_mask_values.evidence": (
        "{name} holds {values}",
        "{name} 的取值为 {values}",
    ),
    "data_mask_values.cure": (
        "a mask has two values: 0 and 1, or 0 and a large negative number that is added",
        "掩码只有两个取值：0 与 1，或 0 与用于相加的大负数",
    ),
    # -- values -------------------------------------------------------------------------------
    "data_not_finite.evidence": (
        "{name}: {count} of {of} values are NaN or infinite, the first at {first}",
        "{name}：{of} 个值中有 {count} 个为 NaN 或无穷，首个位于 {first}",
    ),
    "data_not_finite.cure": (
        "one of them makes the loss NaN: look at the sample, and at a division by a spread of 0",
        "只要一个就会使损失变为 NaN：请检查该样本以及除以零标准差的情况",
    ),
    "data_constant.evidence": (
        "{name}: every value is {value}",
        "{name}：所有值均为 {value}",
    ),
    "data_constant.cure": (
        "the reader returns an empty buffer, or the normalisation made it flat",
        "读取器返回了空缓冲区，或归一化使其变为常数",
    ),
    # -- several batches ----------------------------------------------------------------------
    "data_shapes.evidence": (
        "{name} has {count} shapes: {shapes}",
        "{name} 有 {count} 种形状：{shapes}",
    ),
    "data_shapes.cure": (
        "in graph mode each new shape compiles the step anew: pad to one length or to few, and "
        "drop_remainder=True for the last batch",
        "图模式下每种新形状都会重新编译：请填充到固定或少数几种长度，并对最后一批使用 "
        "drop_remainder=True",
    ),
    "data_truncated.evidence": (
        "all {rows} sequences are exactly {length} long",
        "全部 {rows} 个序列的长度恰为 {length}",
    ),
    "data_truncated.cure": (
        "unless the data is packed, longer texts were cut without a word: count their lengths "
        "before the tokenizer's max_length",
        "除非数据经过拼接，否则更长的文本已被直接截断：请在分词器的 max_length 之前统计长度",
    ),
    "data_repeated.evidence": (
        "batch {second} is batch {first} once more",
        "第 {second} 批与第 {first} 批完全相同",
    ),
    "data_repeated.cure": (
        "an iterator is begun anew for each step, or a generator hands out one buffer again and "
        "again: copy it",
        "每步都重新创建了迭代器，或生成器反复返回同一缓冲区：请复制后再返回",
    ),
    "data_missing.evidence": (
        "{name} is wanted as {wanted} and is not in the batch: {names}",
        "需要 {name}（{wanted}），但批次中没有：{names}",
    ),
    "data_missing.cure": (
        "rename the column, or name the columns of the dataset",
        "请重命名该列，或为数据集指定列名",
    ),
    "data_unexpected.evidence": (
        "{name} is {there}, wanted is {wanted}",
        "{name} 为 {there}，要求为 {wanted}",
    ),
    "data_unexpected.cure": (
        "convert it in the dataset, or correct what the model is told",
        "请在数据集中转换，或修正对模型的说明",
    ),
}
