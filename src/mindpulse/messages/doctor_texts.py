"""What the doctor says about folders and runs, in English and Chinese."""

from __future__ import annotations

DOCTOR_TEXTS: dict[str, tuple[str, str]] = {
    "head.problem": ("problem", "问题"),
    "head.unknown": ("could not tell", "无法判断"),
    "head.ok": ("ok", "正常"),
    "head.cure": ("cure:", "解决："),
    "head.command": ("next:", "下一步："),
    "line": ("{status} {title} ({check}): {evidence}", "{status} {title} ({check})：{evidence}"),
    "count": (
        "{problems} problem(s), {unknown} could not be told, {ok} fine",
        "{problems} 个问题，{unknown} 项无法判断，{ok} 项正常",
    ),
    # -- what is looked at --------------------------------------------------------------------
    "check.summary.folder": ("the folder", "目录"),
    "check.summary.writable": ("writing into the folder", "目录可写"),
    "check.summary.disk": ("room on the disk", "磁盘空间"),
    "check.summary.network": ("kind of file system", "文件系统类型"),
    "check.summary.kind": ("what the folder is", "目录内容"),
    "check.summary.recording": ("switches in the environment", "环境中的开关"),
    "check.summary.rows": ("rows", "数据行"),
    "check.summary.attach": ("when the monitor came", "监控接入时机"),
    "check.summary.sampling": ("steps on which is measured", "采样步"),
    "check.summary.probes": ("probes", "探针"),
    "check.summary.writers": ("who writes", "写入进程"),
    "check.summary.format": ("version of the format", "格式版本"),
    "check.summary.clock": ("clock", "时钟"),
    "check.run.files": ("files of the run", "运行文件"),
    "check.run.lost": ("what was lost", "丢失的数据"),
    "check.run.errors": ("errors of the monitor", "监控自身的错误"),
    "check.run.end": ("how the training ended", "训练如何结束"),
    "check.run.ranks": ("ranks", "各 rank"),
    "check.run.versions": ("versions of the run", "运行的软件版本"),
    "check.run.alerts": ("alerts", "警报"),
    # -- a check that fails -------------------------------------------------------------------
    "check_failed.evidence": ("this check failed: {error}", "该检查未能完成：{error}"),
    "check_failed.cure": (
        "look at what the error names; the other checks are not touched by it",
        "请查看错误所指的内容；其他检查不受影响",
    ),
    # -- the folder ---------------------------------------------------------------------------
    "summary_folder_there.evidence": ("{path} is there", "{path} 存在"),
    "summary_missing.evidence": (
        "{path} does not exist; {near} does, and no run lies in it",
        "{path} 不存在；{near} 存在，但其中没有运行数据",
    ),
    "summary_missing.cure": (
        "no training has begun to write here: give the summary_dir of the training, which is "
        "relative to the folder that it was started in",
        "尚无训练写入此处：请给出训练所用的 summary_dir，它相对于启动训练时的目录",
    ),
    "summary_missing_but.evidence": (
        "{path} does not exist; beside it there are runs: {runs}",
        "{path} 不存在；旁边有这些运行：{runs}",
    ),
    "summary_missing_but.cure": (
        "give the one that is meant; a relative summary_dir depends on where the training starts",
        "请给出所指的目录；相对路径的 summary_dir 取决于训练的启动目录",
    ),
    "summary_link.evidence": (
        "{path} is a link to something that is not there",
        "{path} 是一个指向不存在目标的链接",
    ),
    "summary_link.cure": (
        "mount or make what it points at, or give another summary_dir",
        "请挂载或创建链接目标，或改用其他 summary_dir",
    ),
    "summary_is_file.evidence": ("{path} is a file", "{path} 是一个文件"),
    "summary_is_file.cure": (
        "give a folder as summary_dir, or the run folder above this file",
        "summary_dir 应为目录；或给出该文件上层的运行目录",
    ),
    "summary_writable.evidence": (
        "a block was written into {path} and brought to the disk",
        "已成功向 {path} 写入数据块并落盘",
    ),
    "summary_read_only.evidence": (
        "{path} is on a file system that is mounted read-only ({error})",
        "{path} 所在的文件系统以只读方式挂载（{error}）",
    ),
    "summary_read_only.cure": (
        "mount it with rw (in a container: without :ro), or give a summary_dir elsewhere",
        "请以 rw 重新挂载（容器中去掉 :ro），或将 summary_dir 放到其他位置",
    ),
    "summary_no_room.evidence": (
        "{path}: nothing more can be written: {error}",
        "{path}：无法再写入：{error}",
    ),
    "summary_no_room.cure": (
        "make room, or raise the quota; the monitor goes on by itself as soon as there is room",
        "请腾出空间或提高配额；一有空间监控会自动继续",
    ),
    "summary_refused.evidence": (
        "{path} has mode {mode} and belongs to user {owner}; user {user} may not write: {error}",
        "{path} 的权限为 {mode}，属主为用户 {owner}；用户 {user} 无权写入：{error}",
    ),
    "summary_refused.cure": (
        "chown or chmod it, or give a summary_dir that the training's user may write",
        "请 chown 或 chmod，或使用训练用户可写的 summary_dir",
    ),
    "summary_write_failed.evidence": (
        "writing into {path} failed: {error}",
        "写入 {path} 失败：{error}",
    ),
    "summary_write_failed.cure": (
        "look at the disk or the server behind it (dmesg); give a summary_dir on a local disk",
        "请检查磁盘或其后的服务器（dmesg）；可将 summary_dir 放到本地磁盘",
    ),
    "summary_mode.evidence": (
        "{path} has mode {mode}: root may write here, nobody else",
        "{path} 的权限为 {mode}：只有 root 能写入",
    ),
    "summary_mode.cure": (
        "chmod u+w, unless the training runs as root",
        "除非训练以 root 运行，否则请 chmod u+w",
    ),
    "summary_room.evidence": (
        "{free} and {files} files are free",
        "剩余 {free}，还可创建 {files} 个文件",
    ),
    "summary_full.evidence": (
        "the disk of {path} is full: {free} left",
        "{path} 所在磁盘已满：剩余 {free}",
    ),
    "summary_full.cure": (
        "make room; rows wait in memory meanwhile, and the oldest are dropped beyond 64 MiB",
        "请腾出空间；期间数据行保存在内存中，超过 64 MiB 时丢弃最旧的",
    ),
    "summary_nearly_full.evidence": (
        "the disk of {path} has {free} left",
        "{path} 所在磁盘仅剩 {free}",
    ),
    "summary_nearly_full.cure": (
        "make room before the training needs it for a checkpoint",
        "请在训练需要保存检查点之前腾出空间",
    ),
    "summary_no_files.evidence": (
        "{path}: only {files} more files can be made (inodes), though {free} are free",
        "{path}：尽管剩余 {free}，但只能再创建 {files} 个文件（inode）",
    ),
    "summary_no_files.cure": (
        "delete small files that nobody needs, for example old caches",
        "请删除不需要的小文件，例如旧缓存",
    ),
    "summary_local.evidence": (
        "{path} is on a file system of this machine",
        "{path} 位于本机文件系统",
    ),
    "summary_network.evidence": (
        "{path} is on a network file system ({kind}): writes may hang with the network, and other "
        "machines see rows late",
        "{path} 位于网络文件系统（{kind}）：写入可能随网络卡住，其他机器看到数据会有延迟",
    ),
    "summary_network.cure": (
        "it works; better is a summary_dir on a local disk that is copied afterwards",
        "可以使用；更好的做法是将 summary_dir 放到本地磁盘，事后再复制",
    ),
    # -- what it is ---------------------------------------------------------------------------
    "summary_run.evidence": (
        "{path} is a run with {attempts} attempt(s)",
        "{path} 是一个运行目录，共 {attempts} 次启动",
    ),
    "summary_part_of_run.evidence": (
        "{path} is a part of the run {run}",
        "{path} 是运行 {run} 的一部分",
    ),
    "summary_part_of_run.cure": ("give the run folder itself", "请给出运行目录本身"),
    "summary_empty.evidence": ("{path} is empty", "{path} 是空目录"),
    "summary_empty.cure": (
        "no training with a monitor was started into it: pass callbacks=[TransformerMonitor(...)] "
        "or call attach(...) before the first step, and look for 'MindPulse does not watch' in the "
        "training's log",
        "没有带监控的训练写入此处：请在第一步之前传入 callbacks=[TransformerMonitor(...)] 或调用 "
        "attach(...)，"
        "并在训练日志中查找 “MindPulse does not watch”",
    ),
    "summary_lfs.evidence": (
        "{count} file(s) are pointers of Git LFS, not data: {first}",
        "{count} 个文件是 Git LFS 指针而非数据：{first}",
    ),
    "summary_lfs.cure": ("fetch the data", "请拉取真实数据"),
    "summary_no_attempt.evidence": (
        "{path} is described, but no training has begun in it",
        "{path} 有描述文件，但没有训练在其中开始",
    ),
    "summary_no_attempt.cure": (
        "the training ended while it opened the folder: look into its log",
        "训练在打开目录时就结束了：请查看训练日志",
    ),
    "summary_no_rank.evidence": (
        "{path} has an attempt, but no rank has a folder in it",
        "{path} 有启动记录，但没有任何 rank 的目录",
    ),
    "summary_no_rank.cure": (
        "the training ended while it opened the folder, or the folders were deleted",
        "训练在打开目录时结束，或目录已被删除",
    ),
    "summary_several.evidence": (
        "{path} holds {count} runs: {runs}",
        "{path} 包含 {count} 个运行：{runs}",
    ),
    "summary_several.cure": ("give one of them", "请给出其中之一"),
    "summary_not_a_run.evidence": (
        "{path} holds no run: {error}",
        "{path} 中没有运行数据：{error}",
    ),
    "summary_not_a_run.cure": (
        "give the summary_dir of the training",
        "请给出训练的 summary_dir",
    ),
    "summary_other_tool.evidence": (
        "{path} was not written by MindPulse; it holds: {kind}",
        "{path} 不是由 MindPulse 写入的；内容为：{kind}",
    ),
    "summary_other_tool.cure": (
        "query, analyze, report and compare read it as it is; for probes, start the training with "
        "a monitor and a summary_dir of its own",
        "query、analyze、report、compare 可直接读取；如需探针，请带监控启动训练并使用独立的 "
        "summary_dir",
    ),
    # -- switches -----------------------------------------------------------------------------
    "recording_on.evidence": (
        "no variable switches recording off",
        "没有环境变量关闭记录",
    ),
    "recording_off.evidence": (
        "{setting}: every monitor that is started under it records nothing",
        "{setting}：在此设置下启动的监控不会记录任何内容",
    ),
    "recording_off.cure": (
        "unset it, also in the launch configuration or the batch script",
        "请取消设置，启动配置或批处理脚本中也要取消",
    ),
    "recording_idle.evidence": (
        "{settings}: MindSpore compiles or pretends to run, so there are no steps to record",
        "{settings}：MindSpore 只编译或模拟执行，因此没有可记录的训练步",
    ),
    "recording_idle.cure": ("unset it for a real training", "真实训练前请取消设置"),
    # -- rows ---------------------------------------------------------------------------------
    "rows_there.evidence": (
        "attempt {attempt} has {rows} rows of {ranks} rank(s), up to step {last}",
        "第 {attempt} 次启动在 {ranks} 个 rank 上有 {rows} 行，直至第 {last} 步",
    ),
    "rows_none_before.evidence": (
        "{count} earlier start(s) left no row: {names}",
        "此前有 {count} 次启动没有留下任何数据：{names}",
    ),
    "rows_none_before.cure": (
        "look into their logs: what ended them may come again",
        "请查看其日志：导致其结束的原因可能再次出现",
    ),
    "rows_just_begun.evidence": (
        "{name} was opened {age} s ago and has said nothing yet",
        "{name} 在 {age} 秒前打开，尚未写入任何内容",
    ),
    "rows_just_begun.cure": ("ask again in a few seconds", "请几秒后再试"),
    "rows_no_notes.evidence": (
        "{name}: the folder was made and nothing was written into it",
        "{name}：目录已创建，但没有写入任何内容",
    ),
    "rows_no_notes.cure": (
        "the training ended within its first second, or the disk was full: look into its log",
        "训练在第一秒内结束，或磁盘已满：请查看训练日志",
    ),
    "rows_never_started.evidence": (
        "{name}: the monitor could not start: {error}",
        "{name}：监控未能启动：{error}",
    ),
    "rows_never_started.cure": (
        "the training ran without it; put right what the error names, for a loop of your own with "
        "attach(net, optimizer)",
        "训练在没有监控的情况下运行；请修正错误所指之处，自写循环请使用 attach(net, optimizer)",
    ),
    "rows_not_yet.evidence": (
        "{name} is at work since {age} s and writes every {flush} s",
        "{name} 已运行 {age} 秒，每 {flush} 秒写一次",
    ),
    "rows_not_yet.cure": (
        "wait, or start `mindpulse watch`: while somebody watches, rows come every second. The "
        "first step, which compiles, may take minutes",
        "请稍候，或启动 `mindpulse watch`：有人观看时每秒写入。第一步需要编译，可能耗时数分钟",
    ),
    "rows_overdue.evidence": (
        "{name} is at work since {age} s, should write every {flush} s, and has no row",
        "{name} 已运行 {age} 秒，本应每 {flush} 秒写一次，但没有任何数据",
    ),
    "rows_overdue.cure": (
        "no step has ended: is it still compiling, does it stand at a breakpoint, is step() called "
        "in a loop of your own?",
        "没有任何一步完成：是否仍在编译、停在断点，或自写循环中没有调用 step()？",
    ),
    "rows_none_ended.evidence": (
        "{name} began at {begun} and was closed without a row",
        "{name} 于 {begun} 开始，关闭时没有任何数据",
    ),
    "rows_none_ended.cure": (
        "no step was counted: the dataset was empty, or a loop of your own did not call "
        "monitor.step(loss)",
        "没有计入任何一步：数据集为空，或自写循环没有调用 monitor.step(loss)",
    ),
    "rows_killed.evidence": (
        "{name} began at {begun}, wrote no row and did not say that it ended: it was killed before "
        "its first write of rows, which is due after {flush} s",
        "{name} 于 {begun} 开始，没有写入数据，也没有结束记录：它在首次写入（{flush} 秒后）"
        "之前被杀死",
    ),
    "rows_killed.cure": (
        "look for the reason in the training's log and in dmesg (out of memory); a shorter "
        "flush_interval, or `mindpulse watch` beside it, loses a second at most",
        "请在训练日志和 dmesg（内存不足）中查找原因；缩短 flush_interval 或同时运行 `mindpulse "
        "watch`，最多丢失一秒",
    ),
    "rows_host_only.evidence": (
        "{name} has nothing but what comes without a probe: {tags}",
        "{name} 只有无需探针的数据：{tags}",
    ),
    "rows_host_only.cure": (
        "no probe measured: see what is said about the monitor's coming and about its probes",
        "没有探针在测量：请查看关于接入时机和探针的结果",
    ),
    # -- attaching, sampling, probes ----------------------------------------------------------
    "attached_in_time.evidence": (
        "the monitor came before the first step",
        "监控在第一步之前接入",
    ),
    "attach_not_told.evidence": (
        "the run does not say when the monitor came: it was not written by the monitor, or by an "
        "older one",
        "运行没有说明监控何时接入：它不是由监控写入的，或监控版本较旧",
    ),
    "attach_not_told.cure": (
        "attach before the first step; a run of this version says it",
        "请在第一步之前接入；此版本的运行会记录接入时机",
    ),
    "attached_late.evidence": (
        "{name}: when the monitor came, the optimizer had made {steps} step(s) and compiled were: "
        "{compiled}; {silent} probe(s) never ran",
        "{name}：监控接入时优化器已完成 {steps} 步，已编译：{compiled}；{silent} 个探针从未运行",
    ),
    "attached_late.cure": (
        "a step that is compiled keeps its graph and ignores what is planted later: call attach "
        "before the first call of the step, give train_cell=, or make a new jit function with "
        "monitor.jit(step)",
        "已编译的步骤保持其计算图，忽略之后植入的探针：请在首次调用之前 attach，传入 train_cell=，"
        "或用 monitor.jit(step) 新建 jit 函数",
    ),
    "attached_after_steps.evidence": (
        "{name}: the optimizer had made {steps} step(s) when the monitor came, which counts from "
        "step {first}",
        "{name}：监控接入时优化器已完成 {steps} 步，而监控从第 {first} 步开始计数",
    ),
    "attached_after_steps.cure": (
        "attach before the first step; where the training goes on from a checkpoint, give "
        "first_step={next}",
        "请在第一步之前接入；若从检查点继续训练，请传入 first_step={next}",
    ),
    "sampling_reached.evidence": (
        "every measure had its turn",
        "每个指标都至少采样过一次",
    ),
    "sampling_not_told.evidence": (
        "the run does not say how often is measured",
        "运行没有说明采样间隔",
    ),
    "sampling_not_told.cure": (
        "a run of this version says it; `mindpulse analyze` shows which steps there are",
        "此版本的运行会记录采样间隔；`mindpulse analyze` 可显示有哪些步",
    ),
    "sampling_not_reached.evidence": (
        "{name} went from step {first} to {last}; {tags} are due every {interval} steps, the first "
        "time at step {next}",
        "{name} 从第 {first} 步到第 {last} 步；{tags} 每 {interval} 步采样一次，首次应在第 "
        "{next} 步",
    ),
    "sampling_not_reached.cure": (
        "train on, or pass interval=1 (or a smaller one) to the monitor",
        "请继续训练，或为监控设置 interval=1（或更小的间隔）",
    ),
    "probes_run.evidence": (
        "no probe that was planted is known to be silent",
        "已植入的探针均未发现静默",
    ),
    "probes_silent.evidence": (
        "{name}: {count} probe(s) were planted and never ran: {paths}; {reason}",
        "{name}：{count} 个探针已植入但从未运行：{paths}；{reason}",
    ),
    "probes_silent.cure": (
        "the step does not come by there: a branch that is not taken, a layer that is not used, or "
        "a step that was compiled before",
        "训练步没有经过该处：未执行的分支、未使用的层，或此前已编译的步骤",
    ),
    "probes_failed.evidence": (
        "{name}: {count} probe(s) were left out, since the step does not compile with them: "
        "{paths}; {reason}",
        "{name}：{count} 个探针被去掉，因为带上它们无法编译：{paths}；{reason}",
    ),
    "probes_failed.cure": (
        "everything else is measured; report the model's cell at that path, or exclude it",
        "其余照常测量；请反馈该路径的模型单元，或用 exclude 排除",
    ),
    "probes_matched_nothing.evidence": (
        "{name}: of {count} places looked at in the model none was planted; most often: {reason}",
        "{name}：在模型中查看了 {count} 处，均未植入；最常见原因：{reason}",
    ),
    "probes_matched_nothing.cure": (
        "check include= and exclude=, and that the model itself was given, not a wrapper without "
        "cells; `mindpulse probe DIR --list` tells the reason for each place",
        "请检查 include= 与 exclude=，并确认传入的是模型本身；`mindpulse probe DIR --list` "
        "会给出每处的原因",
    ),
    # -- writers, format, clock ---------------------------------------------------------------
    "writers_none.evidence": ("nobody writes it now", "目前没有进程写入"),
    "writers_at_work.evidence": ("at work now: {names}", "正在写入：{names}"),
    "writers_no_locks.evidence": (
        "this file system has no locks for folders: who writes cannot be told",
        "该文件系统不支持目录锁：无法判断谁在写入",
    ),
    "writers_no_locks.cure": (
        "look for the training with ps; a local disk has such locks",
        "请用 ps 查找训练进程；本地磁盘支持目录锁",
    ),
    "writers_two_now.evidence": (
        "two processes write this run now: {first}, and {second} since {since}",
        "两个进程正在写入该运行：{first}，以及自 {since} 起的 {second}",
    ),
    "writers_two_now.cure": (
        "give each training its own summary_dir, and each process of one training its RANK_ID: the "
        "later attempt hides the steps of the earlier",
        "请为每个训练使用独立的 summary_dir，并为同一训练的各进程设置 RANK_ID："
        "后一次启动会遮盖前一次的步",
    ),
    "writers_overlap.evidence": (
        "{first} went on writing after {second} had begun at {since}",
        "{second} 于 {since} 开始后，{first} 仍在写入",
    ),
    "writers_overlap.cure": (
        "two trainings shared this folder: read one with --attempt N, and give each its own "
        "summary_dir",
        "两个训练共用了该目录：可用 --attempt N 分别读取，今后请各用独立的 summary_dir",
    ),
    "format_fits.evidence": ("format version {ours}", "格式版本 {ours}"),
    "format_later.evidence": (
        "{files}: format version {theirs}; this MindPulse reads {ours}",
        "{files}：格式版本 {theirs}；当前 MindPulse 读取版本 {ours}",
    ),
    "format_later.cure": (
        "read the run with the MindPulse that wrote it, or a later one",
        "请使用写入它的 MindPulse 或更新版本读取",
    ),
    "clock_fine.evidence": ("the times are possible", "时间合理"),
    "clock_ahead.evidence": (
        "{name} wrote at {time}, which is {ahead} s ahead of this machine's clock ({now})",
        "{name} 的写入时间 {time} 比本机时钟（{now}）超前 {ahead} 秒",
    ),
    "clock_ahead.cure": (
        "set the clocks (chrony, ntp): rates, silence and the order of attempts go by them",
        "请校准时钟（chrony、ntp）：速率、静默判断与启动次序都依赖它",
    ),
    "clock_unset.evidence": (
        "{name} wrote at {time}: the clock of its machine was never set",
        "{name} 的写入时间为 {time}：所在机器的时钟从未校准",
    ),
    "clock_unset.cure": (
        "set the clock of that machine (chrony, ntp)",
        "请校准该机器的时钟（chrony、ntp）",
    ),
    # -- runs ---------------------------------------------------------------------------------
    "run_files_whole.evidence": ("{count} files, all whole", "{count} 个文件，全部完好"),
    "run_damaged.evidence": (
        "{count} file(s) are damaged ({rows} rows): {files}; {first}",
        "{count} 个文件损坏（{rows} 行）：{files}；{first}",
    ),
    "run_damaged.cure": (
        "everything else is read as it is; `mindpulse repair` rebuilds these and keeps the old "
        "ones",
        "其余数据照常读取；`mindpulse repair` 可重建并保留旧文件",
    ),
    "run_description.evidence": ("{problem} (run.json)", "运行描述有问题（run.json）：{problem}"),
    "run_description.cure": (
        "`mindpulse repair` writes it anew out of what the ranks say",
        "`mindpulse repair` 会根据各 rank 的记录重新写入",
    ),
    "run_nothing_lost.evidence": ("nothing was lost", "没有丢失数据"),
    "run_rows_lost.evidence": (
        "{name}: {count} row(s) could not be written and were dropped",
        "{name}：{count} 行无法写入而被丢弃",
    ),
    "run_rows_lost.cure": (
        "the disk was full, or hung for long: see the errors of the recorder",
        "磁盘已满或长时间无响应：请查看记录器的错误",
    ),
    "run_steps_lost.evidence": (
        "{name}: {count} step(s) were overwritten on the device before they were read",
        "{name}：{count} 步在读取之前已在设备上被覆盖",
    ),
    "run_steps_lost.cure": (
        "give the monitor a larger capacity= (rows kept on the device); with data sink, larger "
        "than the steps of a sink",
        "请增大监控的 capacity=（设备上保留的行数）；使用数据下沉时应大于每次下沉的步数",
    ),
    "run_calls_lost.evidence": (
        "{name}: {count} call(s) of step() came without a step of the optimizer",
        "{name}：{count} 次 step() 调用没有对应的优化器步",
    ),
    "run_calls_lost.cure": (
        "give attach the optimizer that the loop really calls",
        "请为 attach 传入循环中真正调用的优化器",
    ),
    "run_no_errors.evidence": (
        "neither recorder nor monitor told an error",
        "记录器与监控均未报告错误",
    ),
    "run_monitor_error.evidence": (
        "{name}: {what} failed ({count} time(s)): {error}",
        "{name}：{what} 失败（{count} 次）：{error}",
    ),
    "run_monitor_error.cure": (
        "the training went on without it; report it with this line if the model is not at fault",
        "训练未受影响；若非模型问题，请附上此行反馈",
    ),
    "run_recorder_error.evidence": (
        "{name}: the recorder met an error ({count} time(s), part: {what}): {error}",
        "{name}：记录器出错（{count} 次，部位：{what}）：{error}",
    ),
    "run_recorder_error.cure": (
        "rows wait and are written when it is over; see what was lost, and the disk",
        "数据会等待并在恢复后写入；请查看丢失情况与磁盘",
    ),
    "run_ended.evidence": ("every attempt ended as it should", "每次启动都正常结束"),
    "run_running.evidence": ("at work now: {names}", "正在运行：{names}"),
    "run_no_end.evidence": (
        "{name} ended without a word, after step {step} at {time}: killed, or the machine went "
        "down",
        "{name} 在 {time}（第 {step} 步之后）无声结束：被杀死或机器宕机",
    ),
    "run_no_end.cure": (
        "look into the training's log and dmesg; rows of the last moments may be missing, at most "
        "those of one flush_interval",
        "请查看训练日志与 dmesg；最后时刻的数据可能缺失，最多一个 flush_interval",
    ),
    "run_hangs.evidence": (
        "{name} is still held by a process, and wrote nothing for {silent} s, since step {step} at "
        "{time}",
        "{name} 仍被进程占用，但自 {time}（第 {step} 步）起已 {silent} 秒没有写入",
    ),
    "run_hangs.cure": (
        "does it compile, wait for another rank, for data, or at a breakpoint? `py-spy dump` of "
        "the "
        "process tells where it stands",
        "它是在编译、等待其他 rank、等待数据，还是停在断点？对进程执行 `py-spy dump` 可知其位置",
    ),
    "run_ranks_together.evidence": (
        "{count} rank(s), none missing or behind",
        "{count} 个 rank，没有缺失或落后",
    ),
    "run_ranks_missing.evidence": (
        "attempt {attempt} has {there} rank(s); missing: {ranks}",
        "第 {attempt} 次启动有 {there} 个 rank；缺少：{ranks}",
    ),
    "run_ranks_missing.cure": (
        "did they start, and may they write the same summary_dir? On several machines it has to be "
        "on a shared file system",
        "它们是否已启动、能否写入同一 summary_dir？多机时该目录应位于共享文件系统",
    ),
    "run_ranks_behind.evidence": (
        "rank {ranks} is at step {step} while others are at {last}",
        "rank {ranks} 停在第 {step} 步，其他已到第 {last} 步",
    ),
    "run_ranks_behind.cure": (
        "look into the log of that rank first: the others wait for it or have lost it",
        "请先查看该 rank 的日志：其他 rank 在等待它，或已失去它",
    ),
    "run_versions_fit.evidence": (
        "made with MindSpore {version}; nothing is known to misfit",
        "使用 MindSpore {version}；未发现不配套之处",
    ),
    "run_no_versions.evidence": (
        "the run does not say with which versions it was made",
        "运行没有记录软件版本",
    ),
    "run_no_versions.cure": (
        "runs of the monitor do; for others ask `mindpulse doctor env` on the machine",
        "由监控写入的运行会记录；其他情况请在该机器上执行 `mindpulse doctor env`",
    ),
    "run_misfit.evidence": (
        "made with {of} {version} and {other} {there}; wanted: {wanted}",
        "使用 {of} {version} 与 {other} {there}；要求：{wanted}",
    ),
    "run_misfit.cure": (
        "install what goes together; `mindpulse doctor env` says it for this machine",
        "请安装配套的版本；`mindpulse doctor env` 会针对本机给出说明",
    ),
    "run_fit_unknown.evidence": (
        "made with {of} {version} and {other} {there}: whether they go together is not known "
        "(known: {wanted})",
        "使用 {of} {version} 与 {other} {there}：是否配套未知（已知：{wanted}）",
    ),
    "run_fit_unknown.cure": (
        "see docs/versions.md for what is known and from where",
        "已知内容及来源见 docs/versions.md",
    ),
    "run_no_alerts.evidence": (
        "a watcher judged it by {count} rules and raised nothing above info",
        "监视器按 {count} 条规则判断，没有高于提示级别的警报",
    ),
    "run_not_watched.evidence": ("no watcher has judged this run", "尚无监视器判断过该运行"),
    "run_not_watched.cure": (
        "`mindpulse report` judges it afterwards, `mindpulse watch` while it trains",
        "`mindpulse report` 可事后判断，`mindpulse watch` 可在训练中判断",
    ),
    "run_alert.evidence": (
        "alert {rule} ({severity}) on rank {rank} since step {since}, and it still holds",
        "警报 {rule}（{severity}）：rank {rank}，自第 {since} 步起，仍然成立",
    ),
    "run_alert.cure": (
        "the rule explains itself: causes and what to do next",
        "该规则会说明原因与下一步",
    ),
    "run_alert_over.evidence": (
        "alert {rule} ({severity}) on rank {rank} since step {since}; it is over",
        "警报 {rule}（{severity}）：rank {rank}，自第 {since} 步起；已结束",
    ),
    "run_alert_over.cure": (
        "the rule explains itself: causes and what to do next",
        "该规则会说明原因与下一步",
    ),
}
