"""What is said about actions: the verbs, why they are held back, what came of them."""

from __future__ import annotations

ACT_TEXTS: dict[str, tuple[str, str]] = {
    "verb.skip_step": (
        "leave out the update of {steps} step(s)",
        "跳过 {steps} 步的参数更新",
    ),
    "verb.rollback": (
        "go back to a kept state from before step {before} and multiply the learning rate by "
        "{factor}",
        "回滚到第 {before} 步之前保存的状态，并将学习率乘以 {factor}",
    ),
    "verb.keep": (
        "keep a state in memory every {every} steps (0: no more)",
        "每 {every} 步在内存中保存一次状态（0 表示停止保存）",
    ),
    "verb.set_clip": ("clip gradients at {limit}", "将梯度裁剪阈值设为 {limit}"),
    "verb.free_memory": ("free cached device memory", "释放设备缓存内存"),
    "verb.checkpoint": ("save a checkpoint", "保存检查点"),
    "verb.profile": (
        "profile {steps} steps (rank {rank}, -1: all; counters {metrics})",
        "对 {steps} 步进行性能采集（rank {rank}，-1 表示全部；计数器组 {metrics}）",
    ),
    "verb.undo": ("take request {seq} back", "撤销请求 {seq}"),
    "profile.taken": (
        "profile: {folder}; look at it with `mindpulse ascend show {folder}`",
        "性能数据：{folder}；使用 `mindpulse ascend show {folder}` 查看",
    ),
    "profile.late": (
        "{folder}: nothing has been analysed there yet; the steps may still be running, or their "
        "analysis; look again with `mindpulse ascend show {folder}`",
        "{folder}：尚无解析结果；训练步或解析可能仍在进行；请稍后使用 "
        "`mindpulse ascend show {folder}` 查看",
    ),
    "status.ready": ("ready", "就绪"),
    "action.go": (
        "request {seq}: all ranks are ready and go before step {step} ({request})",
        "请求 {seq}：所有 rank 均已就绪，将在第 {step} 步之前执行（{request}）",
    ),
    "action.withdrawn": (
        "request {seq} is withdrawn, no rank acts ({request}); {detail}",
        "请求 {seq} 已撤回，所有 rank 均不执行（{request}）；{detail}",
    ),
    "action.apart": (
        "request {seq} ({request}) was not carried out alike by all ranks; {detail}; roll back to "
        "a kept state, or start again from a checkpoint",
        "各 rank 对请求 {seq}（{request}）的执行不一致；{detail}；请回滚到已保存的状态，"
        "或从检查点重新开始",
    ),
    "action.judged": (
        "request {seq} ({rule}: {request}), judged at step {step}: {detail}",
        "请求 {seq}（{rule}：{request}），第 {step} 步评估：{detail}",
    ),
    "effect.helped": (
        "it helped, the rule is quiet; before: {before}; now: {after}",
        "有效，规则已恢复正常；之前：{before}；现在：{after}",
    ),
    "effect.better": (
        "it is better; before: {before}; now: {after}",
        "有所改善；之前：{before}；现在：{after}",
    ),
    "effect.none": (
        "it did not help; before: {before}; now: {after}",
        "没有效果；之前：{before}；现在：{after}",
    ),
    "effect.unknown": (
        "the rule could not be judged since; before: {before}",
        "此后无法评估该规则；之前：{before}",
    ),
    "act.asked": (
        "request {seq}: {request}, before step {step} at the earliest",
        "请求 {seq}：{request}，最早在第 {step} 步之前执行",
    ),
    "act.waiting": (
        "not all ranks have answered within {seconds} s; the request stands until step {step}",
        "{seconds} 秒内并非所有 rank 都已答复；该请求在第 {step} 步之前有效",
    ),
    "act.nothing": ("nothing was asked in this run", "本次运行没有任何请求"),
    "act.open": ("open", "未答复"),
    "act.undone": ("taken back", "已撤销"),
    "held.apart": ("{reason}", "{reason}"),
    "held.hour": (
        "{count} of at most {most} requests of this kind were used in the last hour",
        "最近一小时内已使用 {count} 次此类请求，上限为 {most} 次",
    ),
    "held.undone": (
        "request {seq} for this alert did not help and was taken back",
        "针对该警报的请求 {seq} 没有效果，已被撤销",
    ),
}
