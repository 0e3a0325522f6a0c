"""A user's own measures: a function of framework operators, registered by a decorator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mindpulse.catalogue import MEASURES
from mindpulse.catalogue.measure import Measure, definition
from mindpulse.errors import NameTakenError, UsageError

AXES: dict[str, tuple[str, ...]] = {
    "attention": ("layer", "head"),
    "norm": ("cell",),
    "ffn": ("cell",),
    "logits": (),
    "gradient": ("param",),
    "weight": ("param",),
}
"""Where a user's measure can be taken, and the axes of its columns there."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class UserMeasure:
    """A measure and the function that takes it inside the step."""

    measure: Measure
    function: Callable[..., Any]

    @property
    def tag(self) -> str:
        """The tag of the measure."""
        return self.measure.tag


_REGISTERED: dict[str, UserMeasure] = {}


def measure(
    tag: str,
    *,
    place: str,
    unit: str = "",
    formula: str = "",
    source: str = "",
    reduction: str = "mean",
    within: str = "mean",
    cost: str = "dear",
    reference: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Registers the decorated function as a measure that each monitor takes from now on.

    The function gets one tensor and is made of framework operators only, so that it runs inside
    the compiled step and can be differentiated; it stays what it is and may be a term of the loss
    too. By place it gets, and has to return:

        attention   p (batch, head, query, key) -> (head,)
        norm, ffn   x (..., features)           -> ()
        logits      logits (..., classes)       -> ()
        gradient    one gradient at a time      -> ()
        weight      one weight at a time        -> ()

    Args:
        tag: its name in files, rules and reports; not that of another measure.
        place: where it is taken: a key of `AXES`.
        unit: unit of the values, "" for a pure number.
        formula: how it is computed, in words and symbols; its docstring's first line without it.
        source: paper or document that it comes from.
        reduction: how ranks are merged: mean, max, min, sum, none.
        within: how several calls within one step are merged: mean, max or sum; gradients and
            weights come once a step.
        cost: "cheap" is measured on each step by default, "dear" on each tenth.
        reference: the same in NumPy, if there is one.

    Raises:
        NameTakenError: another measure has this tag; the message names both definitions.
        UsageError: an argument has a value that does not exist, or the function cannot be compiled.
    """
    if place not in AXES:
        raise UsageError(f"place {place!r} of measure {tag!r}: use one of {', '.join(AXES)}")
    if within == "last" and place not in ("gradient", "weight"):
        raise UsageError(
            f"within={within!r} of measure {tag!r}: calls at a place of kind {place!r} are merged "
            "by mean, max or sum"
        )

    def register(function: Function) -> Function:
        _check_function(tag, function)
        _check_free(tag, function)
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        made = Measure(
            tag=tag,
            formula=formula or summary,
            unit=unit,
            axes=AXES[place],
            reduction=reduction,
            source=source or f"{_name(function)}, a measure of the user",
            reference=reference,
            family="user",
            place=place,
            within=within,
            cost=cost,
            level="cheap",
        )
        made.spec([("0",) * len(made.axes)] if made.axes else ())
        _REGISTERED[tag] = UserMeasure(made, function)
        return function

    return register


def registered(place: str | None = None) -> list[UserMeasure]:
    """The users' measures of one place, or of all, in the order in which they were registered."""
    return [user for user in _REGISTERED.values() if place in (None, user.measure.place)]


def registered_tags() -> dict[str, Measure]:
    """The users' measures by tag, as `MEASURES` holds those of the catalogue."""
    return {tag: user.measure for tag, user in _REGISTERED.items()}


def forget(tag: str) -> None:
    """Takes a user's measure out again; a tag that nobody registered is no error."""
    _REGISTERED.pop(tag, None)


def _check_function(tag: str, function: Any) -> None:
    """Refuses what MindSpore could not compile: it reads the source of the function.

    Raises:
        UsageError: not a function, a lambda, not a function of one tensor, or without source.
    """
    if not inspect.isfunction(function):
        raise UsageError(
            f"measure {tag!r}: {function!r} is not a function; decorate a function made by `def` "
            "(a graph is compiled from its source)"
        )
    if function.__name__ == "<lambda>":
        raise UsageError(
            f"measure {tag!r} is a lambda, which cannot be compiled on its own; write it as "
            "`def name(x): return ...` and decorate that"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise UsageError(
            f"measure {tag!r}: {_name(function)} is called with one tensor ({error}); give it one "
            "argument, and any others a default"
        ) from None
    try:
        inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise UsageError(
            f"measure {tag!r}: the source of {_name(function)} cannot be read ({error}), and a "
            "graph is compiled from it; put the function into a file or a notebook cell, not into "
            "exec() or the interactive prompt"
        ) from None


def _check_free(tag: str, function: Any) -> None:
    """Refuses a tag that is taken, unless by an earlier version of the same function.

    Raises:
        NameTakenError: by another measure.
    """
    known = _REGISTERED.get(tag)
    if known is not None and _same(known.function, function):
        return
    other = (
        f"{_name(known.function)} ({_location(known.function)})" if known
        else definition(MEASURES[tag]) if tag in MEASURES
        else None
    )  # fmt: skip
    if other:
        raise NameTakenError(
            f"measure {tag!r} exists already: {other}; {_name(function)} ({_location(function)}) "
            f"needs another name, for example {_free_tag(tag)!r}"
        )


def _same(one: Any, other: Any) -> bool:
    """Whether a definition is the other one loaded again.

    A notebook gives each version of a cell a file of its own, so in `__main__` the name is enough.
    """
    if (one.__module__, one.__qualname__) != (other.__module__, other.__qualname__):
        return False
    files = one.__code__.co_filename, other.__code__.co_filename
    return bool(one.__module__ == "__main__" or files[0] == files[1])


def _name(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _location(function: Any) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _free_tag(tag: str) -> str:
    name = f"my_{tag}"
    while name in MEASURES or name in _REGISTERED:
        name = f"my_{name}"
    return name
