"""The allocators' settings: what they say, what they misspell, what would help."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mindpulse.doctor.result import Result
from mindpulse.rules.nearest import nearest

# Of MS_ALLOC_CONF, found in MindSpore 2.10 and in its source.
KEYS = (
    "acl_allocator",
    "defrag_memory_step_freq",
    "enable_mem_huge_1g",
    "enable_small_pool",
    "enable_vmm",
    "memory_recycle",
    "memory_tracker",
    "memory_tracker_path",
    "older_pool",
    "simple_tracker",
    "somas_whole_block",
    "vmm_align_size",
)
TORCH = {"torch-npu": "PYTORCH_NPU_ALLOC_CONF", "cuda": "PYTORCH_CUDA_ALLOC_CONF"}
EXPANDABLE = "expandable_segments"


def read_conf(text: str) -> dict[str, str]:
    """Keys and values of `key:value,key:value`; a key without a value has "".

    Example:
        >>> read_conf("enable_vmm:true,,vmm_align_size:20MB")
        {'enable_vmm': 'true', 'vmm_align_size': '20MB'}
    """
    found = {}
    for part in text.split(","):
        key, _, value = part.strip().partition(":")
        if key:
            found[key.strip()] = value.strip()
    return found


def cure_of(writer: str, environ: Mapping[str, str]) -> str:
    """The setting that lets the allocator of a message join its pieces."""
    if writer in TORCH:
        name = TORCH[writer]
        conf = read_conf(environ.get(name, "")) | {EXPANDABLE: "True"}
        return f"{name}={_written(conf)}"
    conf = read_conf(environ.get("MS_ALLOC_CONF", ""))
    if conf.get("enable_vmm", "").lower() == "true":
        conf["defrag_memory_step_freq"] = "20"
    return f"MS_ALLOC_CONF={_written(conf | {'enable_vmm': 'true'})}"


def _written(conf: Mapping[str, str]) -> str:
    return ",".join(f"{key}:{value}" for key, value in conf.items())


def check_allocator(
    environ: Mapping[str, str] = os.environ, fragmented: bool = False
) -> list[Result]:
    """What the settings say.

    Args:
        fragmented: whether memory was found to lie in pieces: then it matters what is off.
    """
    found = []
    conf = read_conf(environ.get("MS_ALLOC_CONF", ""))
    wrong = [key for key in conf if key not in KEYS]
    if wrong:
        values = {"keys": ", ".join(wrong), "hint": "".join(nearest(key, KEYS) for key in wrong)}
        found.append(Result("memory.settings", "problem", "memory_setting_key", values, weight=0.5))
    empty = [key for key, value in conf.items() if key in KEYS and not value]
    if empty:
        values = {"keys": ", ".join(empty)}
        found.append(
            Result("memory.settings", "problem", "memory_setting_value", values, weight=0.5)
        )
    if conf.get("enable_vmm", "").lower() == "false":
        weight = 0.7 if fragmented else 0.2
        found.append(Result("memory.settings", "problem", "memory_vmm_off", {}, weight=weight))
    if conf.get("memory_tracker", "").lower() == "true":
        found.append(Result("memory.settings", "problem", "memory_tracker_on", {}, weight=0.3))
    for name in TORCH.values():
        if read_conf(environ.get(name, "")).get(EXPANDABLE, "").lower() == "false":
            weight = 0.7 if fragmented else 0.2
            values = {"name": name}
            found.append(
                Result("memory.settings", "problem", "memory_expandable_off", values, weight=weight)
            )
    return found or [Result("memory.settings", "ok", "memory_settings_fine")]
