"""What the watcher says by itself: rules that compare ranks or look at the clock, and their words.

Data only; `messages` reads it. Each entry is (English, Chinese).
"""

from __future__ import annotations

from mindpulse.messages.rule_texts import Pair

WATCH_TEXTS: dict[str, Pair] = {
    "alert.origin": ("; began in {origin}", "；始于 {origin}"),
}

WATCHER_RULE_TEXTS: dict[str, dict[str, Pair]] = {
    "stalled-run": {
        "summary": (
            "nothing is written any more, and nobody has said that the training ended",
            "不再写入任何数据，且没有训练结束的记录",
        ),
        "causes": (
            "the process was killed (out of memory, the scheduler) when process_gone is 1; a "
            "collective operation waits for a rank that will not come; the data pipeline or the "
            "disk hangs; an evaluation or a compilation that takes far longer than any before",
            "process_gone 为 1 时进程已被终止（内存不足、调度器）；集合通信在等待不会到来的 rank；"
            "数据管道或磁盘挂起；评估或编译耗时远超以往",
        ),
        "next": (
            "look whether the process lives and what its stack says (py-spy dump); the rank named "
            "here is the one that came least far; go on from the last checkpoint. A pause that "
            "was meant is learnt: twice as long as the last one is no alert the next time",
            "检查进程是否存活及其调用栈（py-spy dump）；此处所示 rank 是进度最落后的；"
            "从最后一个检查点继续。正常的停顿会被学习，下次同样长度的停顿不再告警",
        ),
    },
    "rank-stopped": {
        "summary": (
            "this rank writes nothing any more while others go on",
            "该 rank 不再写入数据，而其他 rank 仍在继续",
        ),
        "causes": (
            "its process was killed (process_gone is 1) or has raised an error; its device or "
            "its machine fell out; its disk is full",
            "其进程被终止（process_gone 为 1）或抛出错误；设备或机器掉线；磁盘已满",
        ),
        "next": (
            "read the log of this rank and the system log of its machine; the others will hang at "
            "their next collective operation: stop the job and go on from the last checkpoint "
            "without that machine",
            "查看该 rank 的日志和所在机器的系统日志；其他 rank 会在下一次集合通信处挂起："
            "停止作业，排除该机器后从最后一个检查点继续",
        ),
    },
    "ranks-out-of-step": {
        "summary": (
            "this rank's state differs from that of the other replicas, with which it was equal",
            "该 rank 的状态与其他副本不同，而此前它们是一致的",
        ),
        "causes": (
            "a gradient that was not reduced over all ranks (a parameter outside the reducer, a "
            "branch that only some ranks take); clipping on one rank only; a bit that flipped in "
            "the memory of a device; an operation that is not deterministic",
            "某个梯度没有在所有 rank 间归约（归约器之外的参数、只有部分 rank 进入的分支）；"
            "仅在一个 rank 上裁剪；设备内存位翻转；非确定性算子",
        ),
        "next": (
            "compare this rank with another: `mindpulse query DIR --tag TAG --rank N`; go back to "
            "a checkpoint from before the step named here, broadcast the weights from rank 0, and "
            "test the device if it comes back at the same rank",
            "与其他 rank 比较：`mindpulse query DIR --tag TAG --rank N`；回退到此处所示步之前的"
            "检查点，从 rank 0 广播权重；若同一 rank 再次出现，请检测该设备",
        ),
    },
    "straggler": {
        "summary": (
            "this rank's steps take at least a third longer than the median of the ranks",
            "该 rank 的单步耗时比各 rank 的中位数长三分之一以上",
        ),
        "causes": (
            "a device that runs hot or with a lower clock; another job on its machine; a slow "
            "disk or data pipeline of its own; more work than the others have (long samples, an "
            "expert that is in demand)",
            "设备过热或降频；机器上有其他任务；该 rank 的磁盘或数据管道较慢；"
            "工作量比其他 rank 多（样本更长、专家更繁忙）",
        ),
        "next": (
            "all ranks wait for it at each step: look at the clock, the temperature and the "
            "neighbours of this device, and at data_wait_s; take the machine out if it stays",
            "所有 rank 每一步都在等它：检查该设备的频率、温度、同机任务以及 data_wait_s；"
            "若持续存在，请排除该机器",
        ),
    },
}
