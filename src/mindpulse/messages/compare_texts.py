"""The texts of a comparison of runs in English and Chinese."""

from __future__ import annotations

COMPARE_TEXTS: dict[str, tuple[str, str]] = {
    "state.same": ("Same", "相同"),
    "state.better": ("Better", "更好"),
    "state.worse": ("Worse", "更差"),
    "state.different": ("Different", "不同"),
    "state.unknown": ("Cannot tell", "无法判断"),
    "verdict.same.near": (
        "B converges like A: distance {distance}, below {limit}, and the levels at the end "
        "differ by {difference}, within {bound}.",
        "B 与 A 的收敛行为相同：距离 {distance}，低于 {limit}；"
        "末段水平相差 {difference}，在 {bound} 以内。",
    ),
    "verdict.same.noise": (
        "B never lies apart from A beyond noise, though the distance is {distance}; the levels at "
        "the end differ by {difference}, within {bound}.",
        "B 与 A 之差始终没有持续超出噪声（距离 {distance}）；"
        "末段水平相差 {difference}，在 {bound} 以内。",
    ),
    "verdict.same.seeds": (
        "B lies within the spread of the seeds of A: distance {distance}, while a seed lies up "
        "to {seed} from the others; the levels at the end differ by {difference}, within {bound}.",
        "B 落在 A 的各随机种子的离散范围内：距离 {distance}，而种子之间最远为 {seed}；"
        "末段水平相差 {difference}，在 {bound} 以内。",
    ),
    "verdict.better.below": (
        "B ends better than A: lower by {difference}, more than {bound}; distance {distance}.",
        "B 的末段优于 A：低 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.better.above": (
        "B ends better than A: higher by {difference}, more than {bound}; distance {distance}.",
        "B 的末段优于 A：高 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.worse.below": (
        "B ends worse than A: lower by {difference}, more than {bound}; distance {distance}.",
        "B 的末段差于 A：低 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.worse.above": (
        "B ends worse than A: higher by {difference}, more than {bound}; distance {distance}.",
        "B 的末段差于 A：高 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.worse.broken": (
        "B ends in values that are not finite, from step {step} on; A does not.",
        "B 自第 {step} 步起以非有限值结束，A 没有。",
    ),
    "verdict.better.broken": (
        "A ends in values that are not finite, from step {step} on; B does not.",
        "A 自第 {step} 步起以非有限值结束，B 没有。",
    ),
    "verdict.different.course": (
        "B ends like A ({difference} apart, within {bound}) but takes another course: "
        "distance {distance}, not below {limit}.",
        "B 的末段与 A 相近（相差 {difference}，在 {bound} 以内），但过程不同："
        "距离 {distance}，不低于 {limit}。",
    ),
    "verdict.different.above": (
        "B ends higher than A by {difference}, more than {bound}; distance {distance}.",
        "B 的末段比 A 高 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.different.below": (
        "B ends lower than A by {difference}, more than {bound}; distance {distance}.",
        "B 的末段比 A 低 {difference}，超过 {bound}；距离 {distance}。",
    ),
    "verdict.unknown.range": (
        "The runs have too few rows at common steps to be compared; steps (rows) of each: {spans}.",
        "各次运行在共同步数范围内的行数太少，无法比较；各自的步数（行数）：{spans}。",
    ),
    "verdict.unknown.rows": (
        "A run has fewer than five finite rows; steps (rows) of each: {spans}.",
        "有一次运行的有限值少于五行；各自的步数（行数）：{spans}。",
    ),
    "title": ("Comparison of two runs", "两次运行的比较"),
    "title.tag": ("{tag}: A against B", "{tag}：A 与 B"),
    "tag.two": ("{a} of A against {b} of B", "A 的 {a} 与 B 的 {b}"),
    "reference.seeds": ("mean of {count} seeds of A", "A 的 {count} 个种子的均值"),
    # how it was compared
    "method.step": (
        "Compared by step over steps {low} to {high}, {share} of what the runs cover.",
        "按步对齐，比较第 {low} 到 {high} 步，占各运行所覆盖范围的 {share}。",
    ),
    "method.progress": (
        "Compared by progress: {low} to {high} of each run's own steps.",
        "按进度对齐：各运行自身步数的 {low} 到 {high}。",
    ),
    "method.rows": (
        "{name}: {rows} rows, {how} on {points} points.",
        "{name}：{rows} 行，{how}到 {points} 个点。",
    ),
    "method.means": ("averaged", "取均值"),
    "method.lines": ("interpolated", "线性插值"),
    "method.capped": (
        "Values beyond {low} and {high} are drawn and counted as these.",
        "超出 {low} 与 {high} 的值按这两个界限绘制和计算。",
    ),
    "method.unit.fall": (
        "Distances are shares of {unit}, the larger fall of the two.",
        "距离以 {unit}（两者中较大的下降幅度）为单位。",
    ),
    "method.unit.noise": (
        "Neither curve moves beyond its noise; distances are shares of {unit}, ten times "
        "the noise.",
        "两条曲线的变化均未超出噪声；距离以 {unit}（噪声的十倍）为单位。",
    ),
    "method.unit.level": (
        "Neither curve moves by more than a twentieth of its level; distances are shares of "
        "{unit}, that twentieth.",
        "两条曲线的变化均不到其水平的二十分之一；距离以 {unit}（该二十分之一）为单位。",
    ),
    "bad": (
        "{name} has {count} values that are not finite, first at step {step}; they are left out.",
        "{name} 有 {count} 个非有限值，首次在第 {step} 步；比较时已略去。",
    ),
    # what was found
    "distance": (
        "Distance {distance} (limit {limit}; {unwarped} without warping)",
        "距离 {distance}（界限 {limit}；不做时间规整为 {unwarped}）",
    ),
    "part.since": (
        "They part at step {step} and stay apart; they are apart over {share} of the range.",
        "自第 {step} 步起分开且不再接近；分开部分占比较范围的 {share}。",
    ),
    "part.between": (
        "They are apart from step {first} to {last}, and together again at the end.",
        "第 {first} 到 {last} 步分开，末段重新接近。",
    ),
    "part_of": (
        "Only {share} of the steps that the runs cover are common to them: {low} to {high}.",
        "各运行所覆盖的步数中只有 {share} 是共同的：第 {low} 到 {high} 步。",
    ),
    "part.never": (
        "They never stay apart beyond noise.",
        "两者之差始终没有持续超出噪声。",
    ),
    "part.progress.since": (
        "They part at {step} of the way and stay apart; they are apart over {share} of it.",
        "自进度 {step} 起分开且不再接近；分开部分占 {share}。",
    ),
    "part.progress.between": (
        "They are apart from {first} to {last} of the way, and together again at the end.",
        "进度 {first} 到 {last} 之间分开，末段重新接近。",
    ),
    "noise.curves": (
        "Noise is judged by the curves themselves; seeds of A (--seeds) would show what another "
        "seed changes.",
        "噪声仅由曲线自身估计；提供 A 的其他种子（--seeds）才能看出换种子的影响。",
    ),
    "noise.seeds": (
        "Seeds of A lie {least} to {most} from the mean of the others, B {distance} from the "
        "mean of all; rank p = {p} (with {count} seeds it cannot be below {floor}).",
        "A 的各种子与其余种子均值的距离为 {least} 到 {most}，B 与全体均值的距离为 {distance}；"
        "秩检验 p = {p}（{count} 个种子时不可能低于 {floor}）。",
    ),
    "lag.later": (
        "Where the curves move, B is {lag} later than A.",
        "在曲线变化的部分，B 比 A 晚 {lag}。",
    ),
    "lag.sooner": (
        "Where the curves move, B is {lag} sooner than A.",
        "在曲线变化的部分，B 比 A 早 {lag}。",
    ),
    "lag.steps": ("{count} steps", "{count} 步"),
    "lag.share": ("{count} of the way", "进度的 {count}"),
    # tables
    "column.ratio": ("B / A", "B / A"),
    "row.rows": ("Rows", "行数"),
    "row.steps": ("Steps", "步"),
    "row.bad": ("Not finite", "非有限值"),
    "row.final": ("Final", "最终值"),
    "row.best": ("Best", "最好值"),
    "row.level": ("Level at the end", "末段水平"),
    "row.reached": ("Reaches {target}", "达到 {target}"),
    "row.reached.time": ("  training time", "  训练时间"),
    "row.reached.tokens": ("  tokens", "  token 数"),
    "row.step_time": ("Step time", "单步耗时"),
    "at": ("{value} at step {step}", "{value}（第 {step} 步）"),
    "at.step": ("step {step}", "第 {step} 步"),
    "never": ("never", "从未"),
    "speedup": ("{factor} times as fast", "{factor} 倍速"),
    "differences": ("What differs between the runs", "两次运行的差异"),
    "differences.none": ("No recorded text differs.", "记录的文本没有差异。"),
    "only": ("Series only in {name}: {tags}", "仅 {name} 有的序列：{tags}"),
    # pictures
    "legend.a": ("A: {name}", "A：{name}"),
    "legend.b": ("B: {name}", "B：{name}"),
    "legend.seeds": ("seeds of A", "A 的种子"),
    "legend.parting": ("they part", "分开处"),
    "legend.target": ("level {target}", "水平 {target}"),
    "legend.bound": ("chance, or too little to matter", "偶然或可忽略的范围"),
    "axis.step": ("step", "步"),
    "axis.progress": ("share of the run", "进度"),
    "figure.curves": ("Both courses", "两条曲线"),
    "figure.curves.caption": (
        "Thick: moving average over 2 % of the range. Thin: the rows.",
        "粗线：2% 范围的滑动平均。细线：各行的值。",
    ),
    "figure.difference": ("B less A", "B 减 A"),
    "figure.difference.caption": (
        "Inside the band the difference may be chance, or does not matter.",
        "带内的差异可能是偶然，或可忽略。",
    ),
    "figure.warping": ("Where B matches A", "B 与 A 的对应"),
    "figure.warping.caption": (
        "For each place in A the place in B with the matching value, at most {band} of the range "
        "away; above the dashed line B is later.",
        "A 的每一处与 B 中取值相当的位置，最多相隔范围的 {band}；在虚线之上表示 B 较晚。",
    ),
    "describe.curves": (
        "{tag} from {low} to {high}: A goes from {a_first} to {a_last}, B from {b_first} to "
        "{b_last}.",
        "{tag}，{low} 到 {high}：A 从 {a_first} 到 {a_last}，B 从 {b_first} 到 {b_last}。",
    ),
    "section.numbers": ("In numbers", "数值"),
    "section.pictures": ("Pictures", "图"),
    "section.method": ("How it was compared", "比较方法"),
}
