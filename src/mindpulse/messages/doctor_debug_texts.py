"""What the doctor says about debugging, in English and Chinese."""

from __future__ import annotations

DOCTOR_DEBUG_TEXTS: dict[str, tuple[str, str]] = {
    "check.debug.python": ("Python's side of debugging", "Python 层的调试"),
    "check.debug.launch": ("launch configurations", "启动配置"),
    "check.debug.process": ("this process", "当前进程"),
    "check.debug.source": ("the script", "脚本"),
    "check.debug.graph": ("functions that become a graph", "被编译为计算图的函数"),
    "check.debug.device": ("the device", "设备"),
    "check.debug.model": ("the model", "模型"),
    "check.debug.data": ("processes of the dataset", "数据集的工作进程"),
    # -- Python -------------------------------------------------------------------------------
    "debug_python_fine.evidence": (
        "{python} has debugpy, and no variable keeps it from stopping",
        "{python} 已安装 debugpy，没有环境变量阻止断点",
    ),
    "debug_breakpoint_off.evidence": (
        "{name}={value}: breakpoint() does nothing",
        "{name}={value}：breakpoint() 不起作用",
    ),
    "debug_breakpoint_off.cure": ("unset it", "请取消设置"),
    "debug_breakpoint_hook.evidence": (
        "{name}={value}: breakpoint() calls that instead of the debugger",
        "{name}={value}：breakpoint() 调用的是它而不是调试器",
    ),
    "debug_breakpoint_hook.cure": (
        "unset it unless that is the debugger you want",
        "除非这正是所需的调试器，否则请取消设置",
    ),
    "debug_filters.evidence": (
        "{name}={value}: the debugger skips files by this",
        "{name}={value}：调试器会据此跳过文件",
    ),
    "debug_filters.cure": (
        "unset it, or take the file with the breakpoint out of it",
        "请取消设置，或从中去掉断点所在的文件",
    ),
    "debug_optimized.evidence": (
        "{name}={value}: assert statements are not executed, so a breakpoint on one never stops",
        "{name}={value}：assert 语句不会执行，设在其上的断点不会停",
    ),
    "debug_optimized.cure": ("debug without it", "调试时请去掉"),
    "debug_no_debugpy.evidence": (
        "{python} has no debugpy; VS Code brings its own for what it launches itself",
        "{python} 未安装 debugpy；VS Code 自己启动的程序会使用自带的版本",
    ),
    "debug_no_debugpy.cure": (
        "to attach to ranks that something else starts, install it for this interpreter",
        "若要附加到由其他方式启动的 rank，请为该解释器安装",
    ),
    "debug_launch_fine.evidence": (
        "{path} debugs library code and child processes too",
        "{path} 也会调试库代码和子进程",
    ),
    "debug_no_launch.evidence": (
        "{path} has no configuration for Python",
        "{path} 中没有 Python 配置",
    ),
    "debug_no_launch.cure": (
        "`mindpulse vscode` writes configurations, or go on with the editor you have",
        "`mindpulse vscode` 可写入配置；也可继续使用现有编辑器",
    ),
    "debug_just_my_code.evidence": (
        "{path}: justMyCode is on in: {names}; breakpoints in MindSpore, MindFormers and whatever "
        "else is installed do not stop",
        "{path}：以下配置启用了 justMyCode：{names}；MindSpore、MindFormers "
        "等已安装包中的断点不会停",
    ),
    "debug_just_my_code.cure": ('add "justMyCode": false', '请添加 "justMyCode": false'),
    "debug_no_children.evidence": (
        "{path}: subProcess is off in: {names}; processes that are started are not debugged "
        "(started by: {scripts})",
        "{path}：以下配置关闭了 subProcess：{names}；启动的子进程不会被调试（启动者：{scripts}）",
    ),
    "debug_no_children.cure": (
        'set "subProcess": true, or attach to the ranks',
        '请设置 "subProcess": true，或附加到各 rank',
    ),
    "debug_traced.evidence": (
        "this process is debugged ({tracer}), {threads} thread(s)",
        "当前进程正在被调试（{tracer}），{threads} 个线程",
    ),
    "debug_trace_lost.evidence": (
        "pydevd is loaded, but this thread is not traced: something called sys.settrace, or the "
        "thread was not started by Python",
        "pydevd 已加载，但当前线程未被跟踪：有代码调用了 sys.settrace，或该线程不是由 Python 启动",
    ),
    "debug_trace_lost.cure": (
        "call debugpy.debug_this_thread() in it; leave coverage and profilers out while debugging",
        "请在该线程中调用 debugpy.debug_this_thread()；调试时不要使用 coverage 或性能分析器",
    ),
    "debug_traced_by_other.evidence": (
        "{tracer} traces this process, and only one can",
        "{tracer} 正在跟踪当前进程，而同时只能有一个",
    ),
    "debug_traced_by_other.cure": (
        "start without it (coverage, a profiler, another debugger)",
        "启动时请去掉它（coverage、性能分析器或其他调试器）",
    ),
    "debug_not_traced.evidence": (
        "no debugger is in this process",
        "当前进程中没有调试器",
    ),
    "debug_not_traced.cure": (
        "launch it from the editor, or call mindpulse.debugging.attach.listen() early and attach",
        "请从编辑器启动，或尽早调用 mindpulse.debugging.attach.listen() 再附加",
    ),
    # -- MindSpore ----------------------------------------------------------------------------
    "debug_no_graph.evidence": (
        "{path} sets no graph mode and has no function under jit",
        "{path} 未设置图模式，也没有使用 jit 的函数",
    ),
    "debug_stop_in_graph.evidence": (
        "{path}:{line}: {text} in {function}, which becomes a graph: it is dropped without a word",
        "{path}:{line}：{function} 会被编译为计算图，其中的 {text} 会被直接丢弃",
    ),
    "debug_stop_in_graph.cure": (
        "run the script in PyNative mode with MS_JIT=0, as the command does",
        "请按下述命令以 PyNative 模式和 MS_JIT=0 运行脚本",
    ),
    "debug_breakpoint_in_graph.evidence": (
        "{path}:{line}: {text}() in {function}, which becomes a graph: it stops in a frame of its "
        "own, without your variables, and once more while compiling",
        "{path}:{line}：{function} 会被编译为计算图，其中的 {text}() 停在另一个栈帧中，"
        "看不到变量，编译时还会多停一次",
    ),
    "debug_breakpoint_in_graph.cure": (
        "run the script in PyNative mode with MS_JIT=0, as the command does",
        "请按下述命令以 PyNative 模式和 MS_JIT=0 运行脚本",
    ),
    "debug_look_in_graph.evidence": (
        "{path}:{line}: {text} in {function}, which becomes a graph: there are no values there",
        "{path}:{line}：{function} 会被编译为计算图，其中的 {text} 没有数值可看",
    ),
    "debug_look_in_graph.cure": (
        "call it outside, on what the function returns, or run in PyNative mode as the command "
        "does",
        "请在函数外对返回值调用，或按下述命令以 PyNative 模式运行",
    ),
    "debug_graph_mode.evidence": (
        "{path}:{line}: graph mode: no line of {functions} is run by Python, so breakpoints of the "
        "editor in them never stop",
        "{path}:{line}：图模式：Python 不会执行 {functions} 中的任何一行，编辑器中的断点不会停",
    ),
    "debug_graph_mode.cure": (
        "debug in PyNative mode: the command changes nothing in the script. (MS_JIT=0 alone is not "
        "enough in graph mode: MindSpore's own gradients then call themselves without end)",
        "请以 PyNative 模式调试：下述命令无需改动脚本。（图模式下仅设 MS_JIT=0 不够：MindSpore "
        "自身的梯度会无限递归）",
    ),
    "debug_graph_mode_only.evidence": (
        "{path}:{line}: graph mode: cells become graphs, wherever they are defined",
        "{path}:{line}：图模式：无论定义在何处，Cell 都会被编译为计算图",
    ),
    "debug_graph_mode_only.cure": (
        "debug in PyNative mode, as the command does; give the file of the model too to see which "
        "functions are meant",
        "请按下述命令以 PyNative 模式调试；同时给出模型文件可查看涉及哪些函数",
    ),
    "debug_jit.evidence": (
        "{path}:{line}: under jit, in every mode: {functions}",
        "{path}:{line}：在任何模式下都经 jit 编译：{functions}",
    ),
    "debug_jit.cure": (
        "MS_JIT=0 in the environment runs them line by line; the command sets it",
        "在环境中设置 MS_JIT=0 可逐行执行；下述命令会设置",
    ),
    "debug_mode_unknown.evidence": (
        "{path}:{line}: the mode is decided while it runs: {text}",
        "{path}:{line}：模式在运行时决定：{text}",
    ),
    "debug_mode_unknown.cure": (
        "if it is graph mode, no breakpoint in construct stops; the command runs it in PyNative "
        "mode in any case",
        "若为图模式，construct 中的断点不会停；下述命令始终以 PyNative 模式运行",
    ),
    # -- model --------------------------------------------------------------------------------
    "debug_hook_on_element.evidence": (
        "{path}:{line}: a hook on an element of a CellList or SequentialCell (lines {lines}): a "
        "graph ignores it without a word",
        "{path}:{line}：在 CellList 或 SequentialCell 的元素上注册钩子（第 {lines} 行）："
        "计算图会直接忽略",
    ),
    "debug_hook_on_element.cure": (
        "register it on a cell inside of the element, or measure with a probe of MindPulse, which "
        "works there",
        "请注册在元素内部的 Cell 上，或使用 MindPulse 探针，它在此处有效",
    ),
    "debug_hook_in_graph.evidence": (
        "{path}:{line}: {text} (lines {lines}): in a graph the hook is compiled, its Python lines "
        "are not run, and one that is registered after the first step is ignored",
        "{path}:{line}：{text}（第 {lines} 行）：在计算图中钩子会被编译，其 Python 语句不执行；"
        "首步之后注册的会被忽略",
    ),
    "debug_hook_in_graph.cure": (
        "let the hook write into a Parameter (ops.assign), or debug in PyNative mode",
        "请让钩子写入 Parameter（ops.assign），或以 PyNative 模式调试",
    ),
    "debug_recompute.evidence": (
        "{path}:{line}: recompute (lines {lines}): these cells run once more on the way back, so a "
        "breakpoint in them stops twice a step",
        "{path}:{line}：recompute（第 {lines} 行）：这些 Cell 在反向时会再执行一次，断点每步停两次",
    ),
    "debug_recompute.cure": (
        "leave recompute out while debugging, or expect the second stop",
        "调试时去掉 recompute，或预期第二次停止",
    ),
    "debug_capture.evidence": (
        "{path}:{line}: capture_mode={text}: hooks are not run, and cells that write into "
        "Parameters can crash or give wrong values",
        "{path}:{line}：capture_mode={text}：钩子不会执行，写入 Parameter 的 Cell "
        "可能崩溃或给出错误数值",
    ),
    "debug_capture.cure": (
        'use capture_mode="ast", which is the default',
        '请使用默认的 capture_mode="ast"',
    ),
    "debug_made_code.evidence": (
        "{path}:{line}: {text}: code that is made while it runs has no file, so no breakpoint of "
        "the editor belongs to it, and MindSpore cannot compile it",
        "{path}:{line}：{text}：运行时生成的代码没有源文件，编辑器断点无法对应，MindSpore "
        "也无法编译",
    ),
    "debug_made_code.cure": (
        "write it into a module and import it",
        "请写入模块再导入",
    ),
    # -- device and data ----------------------------------------------------------------------
    "debug_sink.evidence": (
        "{path}:{line}: dataset_sink_mode=True: callbacks come once per sink, not once per step",
        "{path}:{line}：dataset_sink_mode=True：回调每次下沉触发一次，而不是每步一次",
    ),
    "debug_sink.cure": (
        "dataset_sink_mode=False while debugging, or sink_size=1",
        "调试时使用 dataset_sink_mode=False 或 sink_size=1",
    ),
    "debug_blocking.evidence": (
        "{path} or the environment lets the host wait for every operator",
        "{path} 或环境变量已让主机等待每个算子",
    ),
    "debug_asynchronous.evidence": (
        "{path} does not call mindspore.runtime.launch_blocking(): the device works behind the "
        "line that Python is at, so an error shows some lines later than its cause",
        "{path} 没有调用 mindspore.runtime.launch_blocking()：设备落后于 Python 当前行，"
        "错误会晚几行出现",
    ),
    "debug_asynchronous.cure": (
        "call it first of all while looking for the line that fails; it is slow on a device",
        "定位出错行时请首先调用它；在设备上会较慢",
    ),
    "debug_workers.evidence": (
        "{path}:{line}: {text} (lines {lines}): the dataset's functions run in processes or "
        "threads of their own",
        "{path}:{line}：{text}（第 {lines} 行）：数据集函数在独立的进程或线程中执行",
    ),
    "debug_workers.cure": (
        "mindspore.dataset.config.set_debug_mode(True) before the dataset is made, or "
        "python_multiprocessing=False and num_parallel_workers=1",
        "请在创建数据集之前调用 mindspore.dataset.config.set_debug_mode(True)，"
        "或设置 python_multiprocessing=False 与 num_parallel_workers=1",
    ),
}
