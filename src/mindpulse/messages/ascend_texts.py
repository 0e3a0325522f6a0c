"""What `mindpulse ascend show` says about numbers."""

from __future__ import annotations

ASCEND_TEXTS: dict[str, tuple[str, str]] = {
    "l2_low": (
        "fewer than {bound} of the L2 accesses of attention are hits: {operators}; look at the "
        "attention mask: in float32 it is twice the traffic of a mask in half precision, four "
        "times that of a boolean one",
        "注意力算子的 L2 命中率低于 {bound}：{operators}；请检查注意力掩码的数据类型："
        "float32 掩码的访存量是半精度的两倍、布尔掩码的四倍",
    ),
    "l2_not_filled": (
        "L2 hit rate unknown: l2_cache.csv has {rows} rows and this chip fills none of their "
        "rates; ask for the counters with aic_metrics = L2Cache "
        "(`mindpulse profile RUN --metrics l2`)",
        "L2 命中率未知：l2_cache.csv 有 {rows} 行，但该芯片不填写命中率；"
        "请用 aic_metrics = L2Cache 采集计数器（`mindpulse profile RUN --metrics l2`）",
    ),
    "l2_not_asked": (
        "L2 hit rate unknown: the profile was taken with aic_metrics = {metrics}, which has no "
        "counters of it; L2Cache has (`mindpulse profile RUN --metrics l2`)",
        "L2 命中率未知：采集时 aic_metrics = {metrics}，不含相应计数器；"
        "请使用 L2Cache（`mindpulse profile RUN --metrics l2`）",
    ),
    "rows_damaged": (
        "{count} rows do not have the columns of their header",
        "{count} 行的列数与表头不符",
    ),
    "cells_ruined": (
        "{count} cells should be numbers and are not, or have lost digits in a spreadsheet; "
        "they do not count",
        "{count} 个单元格应为数字却不是，或在电子表格中丢失了位数；不计入统计",
    ),
}
