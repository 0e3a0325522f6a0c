"""What the doctor says about memory, in English and Chinese."""

from __future__ import annotations

DOCTOR_MEMORY_TEXTS: dict[str, tuple[str, str]] = {
    "check.memory.files": ("files", "文件"),
    "check.memory.refused": ("memory that was refused", "内存申请失败"),
    "check.memory.pool": ("the memory pool", "内存池"),
    "check.memory.blocks": ("replay of memory_block.csv", "memory_block.csv 回放"),
    "check.memory.run": ("memory of the run", "运行的内存"),
    "check.memory.precision": ("precision of intermediates", "中间结果的精度"),
    "check.memory.log": ("messages about memory", "内存相关日志"),
    "check.memory.settings": ("settings of the allocator", "内存分配器设置"),
    "memory_unreadable.evidence": ("{path}: {reason}", "{path}：{reason}"),
    "memory_unreadable.cure": ("give a file that can be read", "请提供可读取的文件"),
    "memory_nothing.evidence": (
        "nothing about device memory is said in {path}",
        "{path} 中没有关于设备内存的信息",
    ),
    "memory_nothing.cure": (
        "give the log of the rank that failed (worker_N.log), its plog, or run again with "
        "MS_DEV_RUNTIME_CONF=memory_statistics:True",
        "请提供出错 rank 的日志（worker_N.log）或 plog，或设置 "
        "MS_DEV_RUNTIME_CONF=memory_statistics:True 后重新运行",
    ),
    "memory_fragmented.evidence": (
        "{path}:{line}: {asked} was refused although {idle} of the pool lay idle: every free "
        "piece was smaller, so fragmentation was more than {share} ({count} times)",
        "{path}:{line}：内存池中有 {idle} 空闲，但申请 {asked} 被拒绝：每块空闲内存都更小，"
        "碎片率高于 {share}（{count} 次）",
    ),
    "memory_fragmented.cure": (
        "let the allocator join its pieces: export {setting}",
        "让分配器合并碎片：export {setting}",
    ),
    "memory_fragmented_device.evidence": (
        "{path}:{line}: {asked} was refused although {left} was free, {idle} in the pool and "
        "{free} on the device: together enough, but not in one piece ({count} times)",
        "{path}:{line}：共有 {left} 空闲（内存池 {idle}，设备 {free}），但申请 {asked} 被拒绝："
        "合计足够，却不连续（{count} 次）",
    ),
    "memory_fragmented_device.cure": (
        "let the allocator join its pieces: export {setting}; or free the pool's cache before "
        "the large tensor is made",
        "让分配器合并碎片：export {setting}；或在创建大张量之前释放内存池缓存",
    ),
    "memory_full.evidence": (
        "{path}:{line}: {asked} was asked for and {left} was left: the memory is really full "
        "({count} times)",
        "{path}:{line}：申请 {asked}，仅剩 {left}：内存确实已满（{count} 次）",
    ),
    "memory_full.cure": (
        "make the batch or the sequence smaller, recompute activations, train in half "
        "precision, or spread the model and the optimizer over more devices; the allocator's "
        "settings do not help here",
        "减小 batch 或序列长度、启用重计算、使用半精度训练，或将模型和优化器切分到更多设备；"
        "此时调整分配器设置没有帮助",
    ),
    "memory_too_large.evidence": (
        "{path}:{line}: {asked} was asked for at once, more than the device has ({total}; "
        "{count} times)",
        "{path}:{line}：一次申请 {asked}，超过设备全部内存（{total}；{count} 次）",
    ),
    "memory_too_large.cure": (
        "look for a tensor of the wrong shape, for example a broadcast or a mask of the full "
        "length, and else make the batch smaller",
        "检查是否有形状错误的张量（例如广播或全长掩码），否则请减小 batch",
    ),
    "memory_limit.evidence": (
        "{path}:{line}: {asked} was asked for, and MindSpore may use {limit} of the device's "
        "{total} ({count} times)",
        "{path}:{line}：申请 {asked}，而 MindSpore 只能使用设备 {total} 中的 {limit}（{count} 次）",
    ),
    "memory_limit.cure": (
        "raise the limit: mindspore.runtime.set_memory(max_size=...), or max_device_memory in "
        "the context; leave a few GiB to the communication library",
        "提高上限：mindspore.runtime.set_memory(max_size=...) 或 context 中的 "
        "max_device_memory；请为通信库预留数 GiB",
    ),
    "memory_occupied.evidence": (
        "{path}:{line}: device {device} refused {asked}, and the message blames another process "
        "that holds the device ({count} times)",
        "{path}:{line}：设备 {device} 拒绝了 {asked} 的申请，日志提示设备被其他进程占用"
        "（{count} 次）",
    ),
    "memory_occupied.cure": (
        "see who holds it, end what an earlier training left behind, or take another device "
        "(ASCEND_RT_VISIBLE_DEVICES)",
        "查看占用者，结束之前训练遗留的进程，或换用其他设备（ASCEND_RT_VISIBLE_DEVICES）",
    ),
    "memory_refused.evidence": (
        "{path}:{line}: {asked} was refused on device {device}; the message does not say how "
        "much was left ({count} times)",
        "{path}:{line}：设备 {device} 拒绝了 {asked} 的申请；日志未说明剩余多少（{count} 次）",
    ),
    "memory_refused.cure": (
        "see how much of the device is in use and by whom; if it is this training alone, make "
        "the batch smaller",
        "查看设备内存的占用情况和占用者；若只有本训练占用，请减小 batch",
    ),
    "memory_pool_fragmented.evidence": (
        "{path}:{line}: of {idle} that lie idle in the pool no block holds more than {largest}: "
        "fragmentation is at least {share}",
        "{path}:{line}：内存池空闲 {idle}，单个块最多 {largest}：碎片率至少为 {share}",
    ),
    "memory_pool_fragmented.cure": (
        "let the allocator join its pieces: export {setting}",
        "让分配器合并碎片：export {setting}",
    ),
    "memory_pool_fine.evidence": (
        "{path}:{line}: {idle} lie idle in the pool, {largest} in one block; fragmentation is "
        "at least {share}",
        "{path}:{line}：内存池空闲 {idle}，单块最多 {largest}；碎片率至少为 {share}",
    ),
    "memory_peaks_fragmented.evidence": (
        "{path}:{line}: the peak was {actual_peak} with what lay between the pieces and "
        "{used_peak} without: {share} of it was lost",
        "{path}:{line}：含碎片峰值为 {actual_peak}，不含碎片为 {used_peak}：损失 {share}",
    ),
    "memory_peaks_fragmented.cure": (
        "let the allocator join its pieces: export {setting}",
        "让分配器合并碎片：export {setting}",
    ),
    "memory_peaks_fine.evidence": (
        "{path}:{line}: the peak was {actual_peak} of {limit}, {share} of it between the pieces",
        "{path}:{line}：峰值为 {actual_peak}（上限 {limit}），其中碎片占 {share}",
    ),
    "memory_blocks_rows.evidence": (
        "{path}: {rows} rows could not be used and were left out; the first: {first}",
        "{path}：有 {rows} 行无法使用，已跳过；第一处：{first}",
    ),
    "memory_blocks_rows.cure": (
        "if it is many, the process was killed while it wrote; run again",
        "若数量较多，说明进程在写入时被终止；请重新运行",
    ),
    "memory_blocks_empty.evidence": (
        "{path} holds no block: MindSpore tracks the device's pools only, not the CPU's",
        "{path} 中没有任何内存块：MindSpore 只跟踪设备内存池，不跟踪 CPU",
    ),
    "memory_blocks_empty.cure": (
        "run on the device with MS_ALLOC_CONF=memory_tracker:True and let the process end",
        "请在设备上设置 MS_ALLOC_CONF=memory_tracker:True 运行，并让进程正常结束",
    ),
    "memory_blocks_fragmented.evidence": (
        "{path}, pool {pool}: after operation {time} {free} was free in {pieces} pieces, the "
        "largest of them {largest}: fragmentation {share}",
        "{path}，内存池 {pool}：第 {time} 次操作后空闲 {free}，分为 {pieces} 块，最大 {largest}："
        "碎片率 {share}",
    ),
    "memory_blocks_fragmented.cure": (
        "let the allocator join its pieces: export {setting}; make the tensors that live long "
        "before those that live short; at the peak the most was held by: {holders}",
        "让分配器合并碎片：export {setting}；先创建长期存活的张量，再创建短期的；峰值时占用最多"
        "的是：{holders}",
    ),
    "memory_blocks_left.evidence": (
        "{path}, pool {pool}: {left} blocks of {left_bytes} never came back, made by: "
        "{left_holders}",
        "{path}，内存池 {pool}：有 {left} 个块（{left_bytes}）从未释放，来自：{left_holders}",
    ),
    "memory_blocks_left.cure": (
        "keep no tensors in lists or attributes from step to step; where the process ended in "
        "an error, they may be those that were in use",
        "不要把张量跨步保存在列表或属性中；若进程因错误结束，它们可能只是当时正在使用的块",
    ),
    "memory_blocks_peak.evidence": (
        "{path}, pool {pool}: {blocks} blocks, at most {peak} in use at once, fragmentation then "
        "{at_peak}; the most was held by: {holders}",
        "{path}，内存池 {pool}：{blocks} 个块，同时占用最多 {peak}，此时碎片率 {at_peak}；占用最多"
        "的是：{holders}",
    ),
    "memory_run_none.evidence": (
        "{path} has no series about device memory; on the CPU MindSpore tells none",
        "{path} 中没有设备内存序列；在 CPU 上 MindSpore 不提供这些数据",
    ),
    "memory_run_none.cure": ("give the log of the training", "请提供训练日志"),
    "memory_run_fine.evidence": (
        "{path}: at most {allocated} allocated; recorded: {known}",
        "{path}：最多分配 {allocated}；已记录：{known}",
    ),
    "memory_run_fragmented.evidence": (
        "{path}, rank {rank}: fragmentation was {share} at step {step}, and free memory there was",
        "{path}，rank {rank}：第 {step} 步碎片率为 {share}，而当时有空闲内存",
    ),
    "memory_run_fragmented.cure": (
        "let the allocator join its pieces: export {setting}",
        "让分配器合并碎片：export {setting}",
    ),
    "memory_run_full.evidence": (
        "{path}, rank {rank}: {allocated} of {total} were allocated at step {step} ({share})",
        "{path}，rank {rank}：第 {step} 步已分配 {allocated}（共 {total}，{share}）",
    ),
    "memory_run_full.cure": (
        "make the batch or the sequence smaller, or recompute activations, before a longer "
        "sequence ends the run",
        "请减小 batch 或序列长度，或启用重计算，以免遇到更长序列时中断",
    ),
    "memory_scores_full.evidence": (
        "{path}: the attention scores of {count} of {all} layers ({layers}) are float32, while "
        "{half} of {others} other places that were looked at compute in half precision; a layer's "
        "scores are {size} (batch x heads x queries x keys), and the backward pass keeps them",
        "{path}：{all} 层中有 {count} 层（{layers}）的注意力分数为 float32，"
        "而其他 {others} 处中间结果中有 {half} 处为半精度；"
        "每层分数占 {size}（批次 × 头 × 查询 × 键），且反向传播会保留它们",
    ),
    "memory_scores_full.cure": (
        "let the softmax compute in the type of the model (MindFormers: softmax_compute_dtype; "
        "automatic mixed precision: take Softmax off its list; a mask in float32 that is added "
        "makes the scores float32), which saves about {saved} for each "
        "copy that is kept; or use the fused attention, which keeps no scores at all and is as "
        "exact. Float32 may be meant: then nothing is wrong",
        "让 softmax 使用模型的数据类型（MindFormers：softmax_compute_dtype；"
        "自动混合精度：把 Softmax 移出名单；检查加在分数上的掩码是否为 float32），"
        "每保留一份约可节省 {saved}；或使用融合注意力，它不保存分数且同样精确。"
        "若有意使用 float32，则无需处理",
    ),
    "memory_setting_key.evidence": (
        "MS_ALLOC_CONF has keys that MindSpore does not know: {keys}{hint}",
        "MS_ALLOC_CONF 中有 MindSpore 不认识的键：{keys}{hint}",
    ),
    "memory_setting_key.cure": (
        "correct them: MindSpore passes over them without a word",
        "请更正：MindSpore 会直接忽略它们",
    ),
    "memory_setting_value.evidence": (
        "MS_ALLOC_CONF has keys without a value: {keys}",
        "MS_ALLOC_CONF 中有没有值的键：{keys}",
    ),
    "memory_setting_value.cure": (
        "write key:value, for example enable_vmm:true",
        "请写成 键:值，例如 enable_vmm:true",
    ),
    "memory_vmm_off.evidence": (
        "MS_ALLOC_CONF says enable_vmm:false: the pool cannot join pieces through virtual memory",
        "MS_ALLOC_CONF 设置了 enable_vmm:false：内存池无法通过虚拟内存合并碎片",
    ),
    "memory_vmm_off.cure": (
        "leave enable_vmm out (it is on with driver 24 and later), unless jit_level is O2, which "
        "does not support it",
        "去掉 enable_vmm（驱动 24 及以上默认开启）；jit_level 为 O2 时除外，该级别不支持",
    ),
    "memory_tracker_on.evidence": (
        "MS_ALLOC_CONF says memory_tracker:True: every block of every step is kept in the host's "
        "memory until the process ends",
        "MS_ALLOC_CONF 设置了 memory_tracker:True：每步的每个内存块都会保留在主机内存中直到进程"
        "结束",
    ),
    "memory_tracker_on.cure": (
        "switch it off for a long training",
        "长时间训练请关闭",
    ),
    "memory_expandable_off.evidence": (
        "{name} says expandable_segments:False: pieces cannot be joined",
        "{name} 设置了 expandable_segments:False：无法合并碎片",
    ),
    "memory_expandable_off.cure": (
        "export {name}=expandable_segments:True",
        "export {name}=expandable_segments:True",
    ),
    "memory_settings_fine.evidence": (
        "the allocator's settings hold nothing that is wrong",
        "分配器设置没有问题",
    ),
}
