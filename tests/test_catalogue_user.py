"""Measures of the user's own: registered by a decorator, refused with a reason."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindpulse
from mindpulse.catalogue import MEASURES, user
from mindpulse.errors import NameTakenError, UsageError


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for tag in list(user.registered_tags()):
        user.forget(tag)


def peak(p: Any) -> Any:
    """Largest probability of each head.

    More words.
    """
    return p.max((0, 2, 3))


def load(folder: Path, text: str, name: str = "own_measures") -> Any:
    """Imports this text as a module, or again if it was imported before."""
    (folder / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    if name in sys.modules:
        return importlib.reload(sys.modules[name])
    return importlib.import_module(name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("own_measures", None)


def test_the_function_stays_what_it_is_and_is_registered() -> None:
    decorate = mindpulse.measure("attn_peak", place="attention", unit="1", source="a thought")
    assert decorate(peak) is peak
    (found,) = user.registered("attention")
    assert (found.tag, found.function, user.registered("norm")) == ("attn_peak", peak, [])
    measure = found.measure
    assert user.registered_tags() == {"attn_peak": measure}
    assert (measure.formula, measure.source) == ("Largest probability of each head.", "a thought")
    assert (measure.family, measure.place, measure.cost) == ("user", "attention", "dear")
    assert measure.level == "cheap"  # in every selection
    assert measure.spec([("0", "0")]).unit == "1"
    assert found.function(np.full((1, 2, 3, 4), 0.25)).tolist() == [0.25, 0.25]
    user.forget("attn_peak")
    user.forget("attn_peak")
    assert user.registered() == []


@pytest.mark.parametrize("place", user.AXES)
def test_each_place_has_its_columns(place: str) -> None:
    mindpulse.measure("mine", place=place, cost="cheap", within="max", reduction="max")(peak)
    (found,) = user.registered(place)
    assert found.measure.axes == user.AXES[place]
    assert (found.measure.cost, found.measure.within) == ("cheap", "max")
    assert "test_catalogue_user.peak" in found.measure.source


def refused(error: type[UsageError], *words: str) -> Any:
    return pytest.raises(error, match=".*".join(words))


def test_an_unknown_place_is_quoted_and_the_places_are_listed() -> None:
    with refused(UsageError, "'atention'", "attention, norm, ffn, logits, gradient, weight"):
        mindpulse.measure("mine", place="atention")


@pytest.mark.parametrize(
    "wrong", [{"cost": "free"}, {"within": "median"}, {"reduction": "median"}, {"tag": ""}]
)
def test_an_unknown_value_is_quoted(wrong: dict[str, str]) -> None:
    given: dict[str, Any] = {"tag": "mine", "place": "norm", **wrong}
    with refused(UsageError, repr(next(iter(wrong.values())))):
        mindpulse.measure(given.pop("tag"), **given)(peak)
    assert user.registered() == []


class Callable_:  # noqa: N801
    def __call__(self, x: Any) -> Any:
        return x


def two(x: Any, y: Any) -> Any:
    return x + y


def nothing() -> None:
    """Takes no tensor."""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (3, ["3 is not a function", "`def`"]),
        (Callable_(), ["is not a function"]),
        (functools.partial(two, 1), ["is not a function"]),
        (lambda x: x, ["lambda", "`def name"]),
        (two, ["test_catalogue_user.two ", "one tensor", "'y'", "default"]),
        (nothing, ["nothing", "one tensor"]),
    ],
)
def test_what_cannot_be_compiled_is_refused(what: Any, words: list[str]) -> None:
    with refused(UsageError, "'mine'", *words):
        mindpulse.measure("mine", place="norm")(what)
    assert user.registered() == []


def test_a_function_without_source_is_refused() -> None:
    space: dict[str, Any] = {"__name__": "typed"}
    exec("def typed_in(x):\n    return x", space)
    with refused(UsageError, "source of typed.typed_in", "file or a notebook cell"):
        mindpulse.measure("mine", place="norm")(space["typed_in"])


def test_a_tag_of_the_catalogue_is_refused_naming_both() -> None:
    with pytest.raises(NameTakenError) as caught:
        mindpulse.measure("attn_focus", place="attention")(peak)
    told = str(caught.value)
    assert "mindpulse.catalogue.attention.attention_focus" in told
    assert "test_catalogue_user.peak" in told
    assert "'my_attn_focus'" in told
    assert MEASURES["attn_focus"].family == "attention"


def test_a_tag_of_another_function_is_refused_naming_both_with_their_files() -> None:
    def other(p: Any) -> Any:
        return p.sum((0, 2, 3))

    mindpulse.measure("mine", place="attention")(peak)
    mindpulse.measure("my_mine", place="attention")(other)
    with pytest.raises(NameTakenError) as caught:
        mindpulse.measure("mine", place="attention")(other)
    told = str(caught.value)
    assert f"test_catalogue_user.peak ({__file__}:" in told
    assert "<locals>.other" in told
    assert "'my_my_mine'" in told  # the first one is taken
    assert user.registered("attention")[0].function is peak


MODULE = """
import mindpulse


@mindpulse.measure("mine", place="norm", formula="{formula}")
def size(x):
    return x.max()
"""


def test_the_same_function_loaded_again_replaces_itself(folder: Path) -> None:
    for formula in ("first", "second"):
        module = load(folder, "\n" * len(formula) + MODULE.format(formula=formula))
        (found,) = user.registered("norm")
        assert (found.measure.formula, found.function) == (formula, module.size)


def test_the_same_name_in_another_file_is_another_function(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(folder, MODULE.format(formula="here"))
    sys.modules.pop("own_measures")
    there = folder / "there"
    there.mkdir()
    monkeypatch.syspath_prepend(str(there))
    with pytest.raises(NameTakenError, match=r"own_measures\.size.*own_measures\.size.*there"):
        load(there, MODULE.format(formula="there"))


def cell(number: int, text: str) -> Callable[[], None]:
    """A cell of a notebook: code of `__main__` whose source only linecache has."""
    import linecache

    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return lambda: exec(compile(text, name, "exec"), {"__name__": "__main__"})


def test_a_notebook_cell_may_be_run_again() -> None:
    for number in (1, 2):
        cell(number, MODULE.format(formula=f"version {number}"))()
        (found,) = user.registered("norm")
        assert found.measure.formula == f"version {number}"


def test_the_decorator_needs_no_framework() -> None:
    code = (
        "import sys, mindpulse; mindpulse.measure; "
        "print([m for m in ('mindspore', 'click', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout.strip() == "[]"
