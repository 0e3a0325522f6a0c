"""What goes together with what: the table `fit.toml`, and the lists that the files themselves hold.

A pair is a misfit where a source says so, and unknown where no source speaks of it: only what a
source says fits is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from mindpulse.ascend.version import Version, listed, satisfies

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MANUAL = "https://www.mindspore.cn/mindformers/docs/en/r1.9.0/installation.html"
INSTALLED = "mindspore/run_check/_check_version.py of the installed MindSpore"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; `wanted` in words is `needs` or the listed beginnings."""

    name: str
    of: str
    when: str
    other: str
    source: str
    needs: str = ""
    first_two: tuple[str, ...] = ()
    missing: str = ""
    optional: bool = False

    @property
    def wanted(self) -> str:
        return self.needs or ", ".join(self.first_two)

    def about(self, version: str) -> bool:
        """Whether it speaks of this version of `of`."""
        return satisfies(version, self.when)

    def fits(self, version: str) -> bool:
        """Whether this version of the other part fits."""
        if self.first_two:
            return Version(version).parts() in self.first_two
        return satisfies(version, self.needs)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Two parts that do not go together, or of which it is not known.

    Attributes:
        name: which pair: "mindspore-numpy", "driver-cann", "firmware-driver", ...
        status: "misfit" or "unknown".
        of, version: the part that needs something.
        other, other_version: the other part; "" where it is missing.
        wanted: what would fit, as the source writes it; "" where nothing is known.
        source: where that is known from.
    """

    name: str
    status: Literal["misfit", "unknown"]
    of: str
    version: str
    other: str
    other_version: str = ""
    wanted: str = ""
    source: str = ""


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    """The rows of the table."""
    found = []
    for row in _table()["row"]:
        first_two = tuple(row.pop("first_two", ()))
        found.append(Row(other=row.pop("with"), first_two=first_two, **row))
    return tuple(found)


@lru_cache(maxsize=1)
def pairs() -> tuple[dict[str, str], ...]:
    """What the manual names together: MindSpore, CANN, driver."""
    return tuple(_table()["pair"])


def _table() -> dict[str, list[dict[str, Any]]]:
    text = files("mindpulse.ascend").joinpath("fit.toml").read_text("utf-8")
    table: dict[str, list[dict[str, Any]]] = tomllib.loads(text)
    return table


def misfits(versions: Mapping[str, str]) -> list[Misfit]:
    """What does not go together, or is not known to, among versions from `versions()`.

    Example:
        >>> [(m.name, m.status) for m in misfits({"mindspore": "2.10.0", "numpy": "2.2.6"})]
        [('mindspore-numpy', 'misfit'), ('mindspore-protobuf', 'misfit')]
    """
    found = [m for m in _by_table(versions) if m is not None]
    for check in (_mindspore_cann, _custom_op, _machine, _driver_cann, _firmware_driver):
        misfit = check(versions)
        if misfit is not None:
            found.append(misfit)
    return found


def _by_table(versions: Mapping[str, str]) -> Iterator[Misfit | None]:
    names = dict.fromkeys(row.name for row in rows() if row.other != "cann_compiler")
    for name in names:
        group = [row for row in rows() if row.name == name]
        of, other = group[0].of, group[0].other
        if of not in versions:
            continue
        about = next((row for row in group if row.about(versions[of])), None)
        there = versions.get(other, "")
        if about is None:
            if there and not group[0].optional:
                yield Misfit(name, "unknown", of, versions[of], other, there)
        elif not there:
            if about.missing:
                yield _misfit(about, versions[of], "")
        elif not about.fits(there):
            yield _misfit(about, versions[of], there)


def _misfit(row: Row, version: str, there: str) -> Misfit:
    return Misfit(row.name, "misfit", row.of, version, row.other, there, row.wanted, row.source)


def _mindspore_cann(versions: Mapping[str, str]) -> Misfit | None:
    """By the list in the installed MindSpore, else by the table, else by the manual."""
    mindspore, cann = versions.get("mindspore", ""), versions.get("cann", "")
    compiler = versions.get("cann_compiler", "")
    if not mindspore or not (cann or compiler):
        return None
    if not compiler:
        return _by_manual(mindspore, cann)
    accepted = tuple(versions.get("mindspore_accepts", "").split())
    row = next((r for r in rows() if r.name == "mindspore-cann" and r.about(mindspore)), None)
    wanted = accepted or (row.first_two if row else ())
    if not wanted:
        return _by_manual(mindspore, cann or compiler)
    if Version(compiler).parts() in wanted:
        return None
    source = INSTALLED if accepted else row.source if row else ""
    shown = f"{cann} ({compiler})" if cann else compiler
    return Misfit(
        "mindspore-cann", "misfit", "mindspore", mindspore, "cann", shown, ", ".join(wanted), source
    )


def _by_manual(mindspore: str, cann: str) -> Misfit | None:
    named = [pair["cann"] for pair in pairs() if Version(pair["mindspore"]) == Version(mindspore)]
    if any(Version(cann) == Version(name) for name in named):
        return None
    return Misfit(
        "mindspore-cann",
        "unknown",
        "mindspore",
        mindspore,
        "cann",
        cann,
        ", ".join(named),
        MANUAL if named else "",
    )


def _custom_op(versions: Mapping[str, str]) -> Misfit | None:
    """MindSpore's own operators run only with the CANN they were compiled with."""
    compiled, cann = versions.get("mindspore_custom_op", ""), versions.get("cann_compiler", "")
    if not compiled or not cann or Version(compiled).parts() == Version(cann).parts():
        return None
    return Misfit(
        "mindspore-custom-op",
        "misfit",
        "mindspore",
        versions.get("mindspore", ""),
        "cann",
        cann,
        Version(compiled).parts(),
        "custom_ascendc_910b/version.info of the installed MindSpore",
    )


def _machine(versions: Mapping[str, str]) -> Misfit | None:
    made, here = versions.get("cann_machine", ""), versions.get("machine", "")
    if not made or not here or made == here:
        return None
    source = "arch in ascend_toolkit_install.info, or the name of the folder MACHINE-linux"
    return Misfit("cann-machine", "misfit", "cann", made, "machine", here, made, source)


def _driver_cann(versions: Mapping[str, str]) -> Misfit | None:
    """CANN lists older drivers that it runs on, the driver older CANN: one of them is enough."""
    driver, cann = versions.get("driver", ""), versions.get("cann", "")
    if not driver or not cann:
        return None
    by_driver = listed(versions.get("cann_inner", ""), versions.get("driver_compatible", ""))
    by_cann = listed(versions.get("driver_inner", ""), versions.get("cann_compatible", ""))
    if by_driver or by_cann:
        return None
    return Misfit(
        "driver-cann",
        "unknown" if None in (by_driver, by_cann) else "misfit",
        "cann",
        cann,
        "driver",
        driver,
        versions.get("cann_compatible", ""),
        "compatible_version of CANN and of the driver",
    )


def _firmware_driver(versions: Mapping[str, str]) -> Misfit | None:
    driver, firmware = versions.get("driver", ""), versions.get("firmware", "")
    if not driver or not firmware:
        return None
    by_driver = listed(firmware, versions.get("driver_firmware", ""))
    by_firmware = listed(driver, versions.get("firmware_driver", ""))
    if by_driver or (by_driver is None and by_firmware):
        return None
    return Misfit(
        "firmware-driver",
        "unknown" if by_driver is None and by_firmware is None else "misfit",
        "driver",
        driver,
        "firmware",
        firmware,
        versions.get("driver_firmware", ""),
        "compatible_version_fw of the driver, compatible_version_drv of the firmware",
    )
