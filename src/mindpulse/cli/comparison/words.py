"""A comparison in words: what the terminal, Markdown and HTML show, in one language."""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.compare.as_json import place, ratios
from mindpulse.compare.differences import Differences
from mindpulse.compare.facts import Point, RunFacts
from mindpulse.compare.grid import POINTS
from mindpulse.compare.result import Comparison, Courses
from mindpulse.messages import text
from mindpulse.report.scales import format_duration, format_number

UNKNOWN = "–"
SHOWN_TAGS = 8  # of the series that only one run has
WHOLE_SHARE = 0.9  # of the steps common to the runs; less is told among the findings
LAG_FROM_SHARE = 0.01  # of the range; a smaller shift is not worth a sentence
Row = tuple[str, ...]  # what, A, B, B over A


@dataclass(frozen=True, slots=True)
class Told:
    """The words of a comparison.

    Attributes:
        tag: the series compared, or both names.
        state, sentence: the verdict as a word and as a sentence.
        findings, method: further sentences.
        numbers: what, A, B, B over A.
        texts: rows (key, A, B) of the fingerprints where they differ; `notes` on series.
    """

    lang: str
    tag: str
    state: str
    sentence: str
    findings: tuple[str, ...]
    method: tuple[str, ...]
    numbers: tuple[Row, ...]
    texts: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]

    def say(self, key: str, **values: object) -> str:
        """A text of the comparison in this language."""
        return say(key, self.lang, **values)


def say(key: str, lang: str, **values: object) -> str:
    """A text of the comparison."""
    return text(f"compare.{key}", lang, **values)


def tell(found: Comparison, differences: Differences, tags: tuple[str, str], lang: str) -> Told:
    """A comparison in words; `tags` are the series of A and of B."""
    a, b = tags
    courses = found.courses
    return Told(
        lang=lang,
        tag=a if a == b else say("tag.two", lang, a=a, b=b),
        state=say(f"state.{found.verdict.state}", lang),
        sentence=found.verdict.sentence(lang),
        findings=tuple(_findings(found, lang)),
        method=tuple(_method(found, courses, lang)) if courses else (),
        numbers=tuple(_numbers(found, lang)),
        texts=tuple((key, x or UNKNOWN, y or UNKNOWN) for key, x, y in differences.tags),
        notes=tuple(_notes(differences, lang)),
    )


def percent(share: float) -> str:
    """A share as a percentage.

    Example:
        >>> percent(0.5), percent(0.0123)
        ('50 %', '1.2 %')
    """
    return f"{100 * share:.3g} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _findings(found: Comparison, lang: str) -> list[str]:
    lines = []
    if found.courses:
        lines += _about_courses(found, found.courses, lang)
    for side, name in ((found.a, "A"), (found.b, "B")):
        if side.first_bad_step is not None:
            step = format_number(side.first_bad_step)
            lines.append(say("bad", lang, name=name, count=side.bad_rows, step=step))
    return lines


def _about_courses(found: Comparison, courses: Courses, lang: str) -> list[str]:
    settings = found.settings
    distance = say(
        "distance",
        lang,
        distance=f"{courses.distance:.3g}",
        limit=f"{settings.limit:g}",
        unwarped=f"{courses.unwarped:.3g}",
    )
    lines = [distance, _parting(courses, lang)]
    if courses.axis.share < WHOLE_SHARE and courses.axis.align == "step":
        low, high = (format_number(end) for end in (courses.axis.low, courses.axis.high))
        share = percent(courses.axis.share)
        lines.append(say("part_of", lang, share=share, low=low, high=high))
    if abs(courses.lag) >= LAG_FROM_SHARE * (courses.axis.high - courses.axis.low):
        way = "later" if courses.lag > 0 else "sooner"
        lines.append(say(f"lag.{way}", lang, lag=_span(courses, abs(courses.lag), lang)))
    lines.append(_noise(found, courses, lang))
    return lines


def _span(courses: Courses, length: float, lang: str) -> str:
    if courses.axis.align == "step":
        return say("lag.steps", lang, count=format_number(round(length)))
    return say("lag.share", lang, count=percent(length))


def where(courses: Courses, point: int) -> str:
    """A point of the axis as text: its step, or the share of the run."""
    position = place(courses, point)
    return format_number(position) if courses.axis.align == "step" else percent(position)


def _parting(courses: Courses, lang: str) -> str:
    parting = courses.parting
    if not parting.spans:
        return say("part.never", lang)
    kind = "part" if courses.axis.align == "step" else "part.progress"
    if parting.since is not None:
        share = percent(parting.share)
        return say(f"{kind}.since", lang, step=where(courses, parting.since), share=share)
    first, last = parting.spans[0][0], parting.spans[-1][1]
    return say(f"{kind}.between", lang, first=where(courses, first), last=where(courses, last))


def _noise(found: Comparison, courses: Courses, lang: str) -> str:
    seeds = found.seeds
    if seeds is None:
        return say("noise.curves", lang)
    return say(
        "noise.seeds",
        lang,
        least=f"{min(seeds.distances):.3g}",
        most=f"{max(seeds.distances):.3g}",
        distance=f"{courses.distance:.3g}",
        p=f"{seeds.rank_p:.2g}",
        count=len(seeds.distances),
        floor=f"{seeds.least_p:.2g}",
    )


def _method(found: Comparison, courses: Courses, lang: str) -> list[str]:
    axis, scale = courses.axis, courses.scale
    as_text = format_number if axis.align == "step" else percent
    ends = {"low": as_text(axis.low), "high": as_text(axis.high)}
    lines = [say(f"method.{axis.align}", lang, **ends, share=percent(axis.share))]
    for name, rows in zip(_letters(len(courses.rows)), courses.rows, strict=True):
        how = say("method.means" if rows >= POINTS else "method.lines", lang)
        values = {"rows": format_number(rows), "how": how, "points": format_number(POINTS)}
        lines.append(say("method.rows", lang, name=name, **values))
    lines.append(say(f"method.unit.{scale.source}", lang, unit=f"{scale.unit:.3g}"))
    if courses.capped:
        low, high = (format_number(cap) for cap in scale.caps)
        lines.append(say("method.capped", lang, low=low, high=high))
    return lines


def _letters(count: int) -> list[str]:
    return ["A", "B", *(f"A{number}" for number in range(2, count))]


def _numbers(found: Comparison, lang: str) -> list[Row]:
    a, b, ratio = found.a, found.b, ratios(found)
    rows: list[Row] = [
        (say("row.rows", lang), format_number(a.rows), format_number(b.rows), ""),
        (say("row.steps", lang), _steps(a), _steps(b), ""),
        (say("row.bad", lang), format_number(a.bad_rows), format_number(b.bad_rows), ""),
        (say("row.final", lang), _point(a.final, lang), _point(b.final, lang), ""),
    ]
    if found.settings.goal != "none":
        rows.append((say("row.best", lang), _point(a.best, lang), _point(b.best, lang), ""))
    if found.courses:
        rows.append((say("row.level", lang), _value(a.level), _value(b.level), ""))
    if found.target is not None and found.settings.goal != "none":
        rows += _reached(found, found.target, lang)
    factor = ratio["step_time"]
    times = [UNKNOWN if t is None else format_duration(t) for t in (a.step_time_s, b.step_time_s)]
    rows.append((say("row.step_time", lang), *times, "" if factor is None else f"{factor:.3g}"))
    return rows


def _reached(found: Comparison, target: float, lang: str) -> list[Row]:
    a, b, ratio = found.a.reached, found.b.reached, ratios(found)
    never = say("never", lang)
    steps = [say("at.step", lang, step=format_number(r.step)) if r else never for r in (a, b)]
    rows: list[Row] = [
        (
            say("row.reached", lang, target=f"{target:.4g}"),
            *steps,
            _speedup(ratio["speedup_steps"], lang),
        )
    ]
    seconds = [r.seconds if r else None for r in (a, b)]
    if any(s is not None for s in seconds):
        times = [UNKNOWN if s is None else format_duration(s) for s in seconds]
        faster = _speedup(ratio["speedup_time"], lang)
        rows.append((say("row.reached.time", lang), *times, faster))
    tokens = [r.tokens if r else None for r in (a, b)]
    if any(count is not None for count in tokens):
        rows.append((say("row.reached.tokens", lang), *map(_value, tokens), ""))
    return rows


def _speedup(factor: float | None, lang: str) -> str:
    return "" if factor is None else say("speedup", lang, factor=f"{factor:.3g}")


def _steps(side: RunFacts) -> str:
    if side.first_step is None or side.last_step is None:
        return UNKNOWN
    return f"{format_number(side.first_step)} – {format_number(side.last_step)}"


def _point(point: Point | None, lang: str) -> str:
    if point is None:
        return UNKNOWN
    return say("at", lang, value=format_number(point.value), step=format_number(point.step))


def _value(value: float | None) -> str:
    return UNKNOWN if value is None else format_number(value)


def _listed(tags: tuple[str, ...]) -> str:
    more = len(tags) - SHOWN_TAGS
    return ", ".join(tags[:SHOWN_TAGS]) + (f" (+{more})" if more > 0 else "")


def _notes(differences: Differences, lang: str) -> list[str]:
    lines = [] if differences.tags else [say("differences.none", lang)]
    for name, tags in (("A", differences.only_a), ("B", differences.only_b)):
        if tags:
            lines.append(say("only", lang, name=name, tags=_listed(tags)))
    return lines
