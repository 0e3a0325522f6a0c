"""What the doctor says about the software around a training, in English and Chinese."""

from __future__ import annotations

DOCTOR_ENV_TEXTS: dict[str, tuple[str, str]] = {
    "check.env.python": ("Python", "Python"),
    "check.env.mindspore": ("MindSpore", "MindSpore"),
    "check.env.numpy": ("NumPy", "NumPy"),
    "check.env.protobuf": ("protobuf", "protobuf"),
    "check.env.mindformers": ("MindFormers", "MindFormers"),
    "check.env.mindnlp": ("MindNLP", "MindNLP"),
    "check.env.cann": ("CANN", "CANN"),
    "check.env.driver": ("driver of the NPU", "NPU 驱动"),
    "check.env.firmware": ("firmware of the NPU", "NPU 固件"),
    "check.env.machine": ("kind of machine", "机器架构"),
    "check.env.paths": ("paths in environment variables", "环境变量中的路径"),
    "check.env.settings": ("settings in environment variables", "环境变量中的设置"),
    "env_fits.evidence": ("{part} {version}", "{part} {version}"),
    "env_python.evidence": (
        "this is Python {version}; MindSpore 2.10 and MindPulse run on 3.10 to 3.12",
        "当前 Python 为 {version}；MindSpore 2.10 和 MindPulse 支持 3.10 至 3.12",
    ),
    "env_python.cure": (
        "make a virtual environment with Python 3.10, 3.11 or 3.12 and install into it",
        "用 Python 3.10、3.11 或 3.12 新建虚拟环境，并安装到其中",
    ),
    "env_mindspore_missing.evidence": (
        "MindSpore is not installed for this Python",
        "当前 Python 未安装 MindSpore",
    ),
    "env_mindspore_missing.cure": (
        "install it, or run the Python in which it is installed",
        "请安装，或使用已安装 MindSpore 的 Python",
    ),
    "env_numpy.evidence": (
        "NumPy {there} is installed, MindSpore {version} needs {wanted}: with NumPy 2 gradients "
        "in PyNative mode fail with 'numpy.core.multiarray failed to import' or with a "
        "SystemError, while graph mode works",
        "已安装 NumPy {there}，而 MindSpore {version} 需要 {wanted}：在 NumPy 2 下 PyNative 模式"
        "求梯度会失败，报 numpy.core.multiarray failed to import 或 SystemError，而图模式正常",
    ),
    "env_numpy.cure": (
        "pip install 'numpy<2' (then pyarrow<23, pandas<3)",
        "pip install 'numpy<2'（同时需要 pyarrow<23、pandas<3）",
    ),
    "env_protobuf.evidence": (
        "protobuf {there} is installed, MindSpore {version} needs {wanted}: with an older one "
        "`import mindspore` fails with a VersionError",
        "已安装 protobuf {there}，而 MindSpore {version} 需要 {wanted}：版本过旧时 "
        "import mindspore 会失败并报 VersionError",
    ),
    "env_protobuf.cure": (
        "pip install 'protobuf{wanted}'; if another package holds it back, give that package an "
        "environment of its own",
        "pip install 'protobuf{wanted}'；若有其他软件包限制其版本，请为该软件包单独建立环境",
    ),
    "env_pair.evidence": (
        "{of} {version} needs {other} {wanted}; {there} is installed ({source})",
        "{of} {version} 需要 {other} {wanted}；已安装的是 {there}（{source}）",
    ),
    "env_pair.cure": (
        "install {other} {wanted}, or a version of {of} that goes with {other} {there}",
        "安装 {other} {wanted}，或改用与 {other} {there} 配套的 {of} 版本",
    ),
    "env_pair_missing.evidence": (
        "{of} {version} needs {other} {wanted}, and it is not installed ({source})",
        "{of} {version} 需要 {other} {wanted}，但未安装（{source}）",
    ),
    "env_pair_missing.cure": ("install {other} {wanted}", "安装 {other} {wanted}"),
    "env_pair_unknown.evidence": (
        "nothing is known about {of} {version} together with {other} {there}",
        "{of} {version} 与 {other} {there} 是否配套未知",
    ),
    "env_pair_unknown.cure": (
        "look it up in the manual of {of}; docs/versions.md lists what is known",
        "请查阅 {of} 的手册；已知的配套关系见 docs/versions.md",
    ),
    "env_pair_unknown_but.evidence": (
        "whether {of} {version} goes with {other} {there} is not known; known to fit: {wanted} "
        "({source})",
        "{of} {version} 与 {other} {there} 是否配套未知；已知配套的是：{wanted}（{source}）",
    ),
    "env_pair_unknown_but.cure": (
        "if something fails, try {other} {wanted} first",
        "如果出现故障，请先改用 {other} {wanted}",
    ),
    "env_mindformers_dependency.evidence": (
        "MindFormers {version} imports hyper_parallel, and it is not installed; pip cannot "
        "install it, because PyPI does not have it",
        "MindFormers {version} 会导入 hyper_parallel，但未安装；PyPI 上没有该软件包，pip 无法安装",
    ),
    "env_mindformers_dependency.cure": (
        "build hyper-parallel from its repository, or use MindFormers 1.9 with MindSpore 2.9; "
        "MindFormers 2.1.0 runs without it as long as no PyNative model is used",
        "从代码仓编译 hyper-parallel，或使用 MindFormers 1.9 和 MindSpore 2.9；MindFormers 2.1.0 "
        "在不使用 PyNative 模型时可以没有它",
    ),
    "env_custom_op.evidence": (
        "MindSpore's own operators were compiled with CANN {wanted}, and {there} is installed: "
        "MindSpore then leaves them out, AllFinite among them, and looks for overflow another way",
        "MindSpore 自带的算子用 CANN {wanted} 编译，而安装的是 {there}：MindSpore 因此不使用"
        "这些算子（包括 AllFinite），改用其他方式检测溢出",
    ),
    "env_custom_op.cure": (
        "install CANN {wanted}, or live with slower overflow checks",
        "安装 CANN {wanted}，或接受较慢的溢出检测",
    ),
    "env_machine.evidence": (
        "this CANN is made for {wanted}, and this machine is {there}",
        "该 CANN 面向 {wanted}，而本机为 {there}",
    ),
    "env_machine.cure": (
        "install the CANN package for {there}",
        "请安装面向 {there} 的 CANN 软件包",
    ),
    "env_driver.evidence": (
        "CANN {version} and the driver {there} do not list each other as compatible; CANN lists "
        "{wanted}",
        "CANN {version} 与驱动 {there} 互未列为兼容；CANN 列出的是 {wanted}",
    ),
    "env_driver.cure": (
        "install the driver that belongs to CANN {version}, or the CANN that belongs to the "
        "driver {there}",
        "安装与 CANN {version} 配套的驱动，或与驱动 {there} 配套的 CANN",
    ),
    "env_firmware.evidence": (
        "the driver {version} goes with firmware {wanted}; installed is {there}",
        "驱动 {version} 适配固件 {wanted}；已安装的是 {there}",
    ),
    "env_firmware.cure": (
        "install the firmware of the driver's release, and restart the machine",
        "安装与驱动同一版本的固件，并重启机器",
    ),
    "env_no_ascend.evidence": (
        "there is no driver and no CANN: this machine trains on the CPU",
        "未发现驱动和 CANN：本机只能在 CPU 上训练",
    ),
    "env_cann_missing.evidence": (
        "no CANN was found, although there is {why}",
        "未找到 CANN，但存在 {why}",
    ),
    "env_cann_missing.cure": (
        "install the CANN toolkit, or let ASCEND_HOME_PATH name the folder in which it is; in a "
        "container, mount that folder",
        "安装 CANN toolkit，或让 ASCEND_HOME_PATH 指向其目录；在容器中请挂载该目录",
    ),
    "env_cann_unreadable.evidence": (
        "there is a CANN in {home}, but none of its files says which version it is",
        "{home} 中有 CANN，但其中没有文件说明版本",
    ),
    "env_cann_unreadable.cure": (
        "install it anew: its installation was interrupted or its files were changed",
        "请重新安装：安装曾被中断，或文件已被改动",
    ),
    "env_cann_not_set.evidence": (
        "CANN is in {home}, but ASCEND_HOME_PATH is not set: MindSpore does not find it and "
        "compares no versions",
        "CANN 位于 {home}，但未设置 ASCEND_HOME_PATH：MindSpore 找不到它，也不会比较版本",
    ),
    "env_cann_not_set.cure": (
        "source CANN's set_env.sh in the shell that starts the training",
        "在启动训练的 shell 中 source CANN 的 set_env.sh",
    ),
    "env_cann_no_compiler.evidence": (
        "{home} has no compiler/version.info: MindSpore cannot compare versions and skips its own "
        "check",
        "{home} 中没有 compiler/version.info：MindSpore 无法比较版本，会跳过自身的检查",
    ),
    "env_cann_no_compiler.cure": (
        "let ASCEND_HOME_PATH name the folder in which `compiler` lies, if there is one",
        "如有 compiler 目录，请让 ASCEND_HOME_PATH 指向它所在的目录",
    ),
    "env_cann_mixed.evidence": (
        "the variables point at different versions of CANN: {versions}",
        "环境变量指向不同版本的 CANN：{versions}",
    ),
    "env_cann_mixed.cure": (
        "start a new shell and source one set_env.sh only",
        "新开一个 shell，只 source 一个 set_env.sh",
    ),
    "env_paths_nowhere.evidence": (
        "these folders do not exist: {paths}",
        "以下目录不存在：{paths}",
    ),
    "env_paths_nowhere.cure": (
        "source the set_env.sh of the CANN that is installed; in a container, mount the folders",
        "source 已安装 CANN 的 set_env.sh；在容器中请挂载这些目录",
    ),
    "env_paths_lacking.evidence": (
        "MindSpore looks for these in the variables and does not find them: {names}",
        "MindSpore 在环境变量中查找以下内容但未找到：{names}",
    ),
    "env_paths_lacking.cure": (
        "source CANN's set_env.sh in the shell that starts the training",
        "在启动训练的 shell 中 source CANN 的 set_env.sh",
    ),
    "env_paths_fine.evidence": (
        "all folders that the variables name are there",
        "环境变量所指的目录均存在",
    ),
    "env_settings_fine.evidence": (
        "no variable switches anything off",
        "没有环境变量关闭任何功能",
    ),
    "env_simulation.evidence": (
        "{name}={value}: operators are not executed, so every value is meaningless",
        "{name}={value}：算子不会真正执行，所有数值都没有意义",
    ),
    "env_simulation.cure": ("unset {name} for a real training", "真实训练前请取消设置 {name}"),
    "env_compile_only.evidence": (
        "{name}={value}: graphs are compiled and not run",
        "{name}={value}：只编译计算图，不执行",
    ),
    "env_compile_only.cure": ("unset {name} for a real training", "真实训练前请取消设置 {name}"),
    "env_saturation.evidence": (
        "{name}={value}: what overflows becomes the largest number instead of inf or nan, so "
        "checks for finite values find nothing and a loss that overflows looks like a loss",
        "{name}={value}：溢出值会变为最大有限数而不是 inf 或 nan，有限性检查什么也查不到，"
        "溢出的损失看起来仍像正常损失",
    ),
    "env_saturation.cure": (
        "export {name}=INFNAN_MODE (not on Ascend 910A, which has this mode only)",
        "export {name}=INFNAN_MODE（Ascend 910A 除外，它只支持饱和模式）",
    ),
    "env_overflow_value.evidence": (
        "{name}={value} is neither SATURATION_MODE nor INFNAN_MODE",
        "{name}={value} 既不是 SATURATION_MODE，也不是 INFNAN_MODE",
    ),
    "env_overflow_value.cure": ("export {name}=INFNAN_MODE", "export {name}=INFNAN_MODE"),
    "env_dump.evidence": (
        "{name}={value}: tensors are dumped to disk, which makes steps many times slower",
        "{name}={value}：张量会转储到磁盘，使每步慢数倍",
    ),
    "env_dump.cure": (
        "unset {name} unless you want the dump",
        "如不需要转储，请取消设置 {name}",
    ),
    "env_blocking.evidence": (
        "{name}={value}: the host waits for every operator, so step times mean little",
        "{name}={value}：主机等待每个算子完成，步时间没有参考意义",
    ),
    "env_blocking.cure": (
        "unset {name} except when looking for the operator that fails",
        "除定位出错算子外，请取消设置 {name}",
    ),
    "env_log_loud.evidence": (
        "{name}={value}: debug or info logs are written, which slows the training and fills the "
        "disk",
        "{name}={value}：会输出 debug 或 info 日志，拖慢训练并占满磁盘",
    ),
    "env_log_loud.cure": ("unset {name}", "取消设置 {name}"),
    "env_log_silent.evidence": (
        "{name}={value}: errors are not logged",
        "{name}={value}：错误不会写入日志",
    ),
    "env_log_silent.cure": ("export {name}=3", "export {name}=3"),
    "env_protobuf_cpp.evidence": (
        "{name}={value}: large checkpoints can hit a limit of memory when they are loaded, as "
        "MindSpore itself warns",
        "{name}={value}：加载大的检查点时可能触及内存限制，MindSpore 自身也有此提示",
    ),
    "env_protobuf_cpp.cure": ("export {name}=python", "export {name}=python"),
    "env_optimize.evidence": (
        "{name}={value}: assert statements are not executed, so checks in your code are off",
        "{name}={value}：assert 语句不会执行，代码中的检查已失效",
    ),
    "env_optimize.cure": ("unset {name}", "取消设置 {name}"),
    "env_developer.evidence": (
        "switches for developers of MindSpore are set: {names}; they change what is compiled "
        "and are not documented",
        "设置了面向 MindSpore 开发者的开关：{names}；它们会改变编译结果，且没有文档",
    ),
    "env_developer.cure": (
        "unset those that you do not know",
        "不清楚用途的请取消设置",
    ),
}
