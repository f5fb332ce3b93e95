"""Checks of user-defined parts: equations can be traced, with the same results as with numbers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import Data, DataError
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.symbols import TracingError, expression, no_number_of_symbols, symbols

_LIBRARIES = ("hydraulics", "mbsfmu", "numpy", "casadi", "pydantic")
_AGREEMENT, _ROUND_OFF = 1e-9, 1e-13
"""Round-off tolerances between symbolic and numeric results: relative to a number, and to the function's largest."""
_LAST_DIGITS, _SAMPLES, _SAFETY = 1e-15, 8, 10.0
"""Estimation of round-off: relative perturbation of arguments, number of samples, safety factor."""

Answer = TypeVar("Answer")
Answers = Callable[..., Mapping[str, Sequence[Array | float]]]


def check_part(owner: str, kind: type[Data], answers: Answers, points: Callable[[], Sequence[Sequence[Array]]]) -> None:
    """Refuse a part whose equations cannot be traced, or whose symbolic results differ.

    Parameters
    ----------
    owner
        Type and name of the part.
    kind
        Its class.
    answers
        Returns what each of its functions gives, by the function's name; takes arrays of numbers or of symbols.
    points
        Tells where symbols are to give what numbers give: for each point, the arguments of `answers`.

    Raises
    ------
    InputError
        When the part fails, with the line where it does.
    """
    with np.errstate(all="ignore"):
        places = _answered(owner, kind, points)
        numbers = [_answered(owner, kind, lambda place=place: answers(*place)) for place in places]
        made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(places[0])]
        with no_number_of_symbols():
            traced = _answered(owner, kind, lambda: answers(*(array for _, array in made)))
    for name, expected in traced.items():
        stacked = ca.vertcat(ca.SX(0, 1), *(expression(value) for value in expected))
        function = ca.Function("answer", [vector for vector, _ in made], [stacked])
        given = [np.array([float(value) for value in each[name]]) for each in numbers]
        for point, numeric in zip(places, given, strict=True):
            symbolic = np.asarray(function(*point)).ravel()
            if _agree(symbolic, numeric, given):
                continue

            def by_numbers(place: Sequence[Array], name: str = name) -> Array:
                return np.array([float(value) for value in answers(*place)[name]])

            def by_symbols(place: Sequence[Array], function: ca.Function = function) -> Array:
                return np.asarray(function(*place)).ravel()

            if symbolic.shape != numeric.shape or not _within(
                symbolic - numeric, max(round_off(by_numbers, point), round_off(by_symbols, point))
            ):
                raise InputError(
                    f"{owner} is refused: {name} of {_place(kind)} gives {_formatted(numeric)} with numbers and "
                    f"{_formatted(symbolic)} when it is traced; equations follow from what they are given alone"
                )


def round_off(function: Callable[[Sequence[Array]], Array], point: Sequence[Array]) -> float:
    """Return the round-off of a function's largest number.

    If large numbers cancel to zero, as in the distance of two points that a joint connects, the result is pure
    round-off, and its size is unknown from the result. Perturbed arguments show it.

    Parameters
    ----------
    function
        Takes the arguments.
    point
        The arguments.
    """
    random = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        there = function(point)
        if not np.array_equal(there, function(point), equal_nan=True):
            return 0.0  # it depends on more than it is given, which is no round-off
        near = [[each * _nearly_one(random, each) for each in point] for _ in range(_SAMPLES)]
        changes = [function(arguments) - there for arguments in near]
    return _SAFETY * float(np.max(np.abs(changes), initial=0.0, where=np.isfinite(changes)))


def _nearly_one(random: np.random.Generator, values: Array) -> Array:
    return 1.0 + _LAST_DIGITS * random.uniform(-1.0, 1.0, len(values))


def _within(differences: Array, most: float) -> bool:
    return bool(np.all(np.abs(differences) <= most))


def _agree(symbolic: Array, numeric: Array, everywhere: Sequence[Array]) -> bool:
    """Return whether two vectors of numbers differ by round-off only."""
    if any(symbolic.shape != each.shape for each in everywhere):
        return False
    largest = np.max(np.abs(everywhere), axis=0, where=np.isfinite(everywhere), initial=0.0)
    tolerance = _AGREEMENT * largest + _ROUND_OFF * np.max(largest[np.isfinite(largest)], initial=0.0)
    same = (symbolic == numeric) | (np.isnan(symbolic) & np.isnan(numeric))
    return bool(np.all(same | (np.abs(symbolic - numeric) <= tolerance)))


def _answered(owner: str, kind: type[Data], call: Callable[[], Answer]) -> Answer:
    """Call functions of a part; report exceptions with their location."""
    try:
        return call()
    except (DataError, InputError):
        raise
    except Exception as error:  # whatever a user's function raises
        # NumPy says of some that they are no numbers in words of its own.
        known = next((each for each in (error, error.__cause__) if isinstance(each, TracingError)), None)
        reason = f"raises {type(error).__name__}: {' '.join(str(error).split())}" if known is None else str(known)
        raise InputError(f"{owner} is refused: {_line(error, kind)} {reason}") from error


def _line(error: BaseException, kind: type[Data]) -> str:
    """Return the user's source line of an error, in words."""
    folders = tuple(str(Path(str(module.__file__)).parent) for module in map(__import__, _LIBRARIES))
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(folders)]
    if not own:
        return f"a function of {_place(kind)}"
    return f"{own[-1].filename}, line {own[-1].lineno} (`{own[-1].line}`),"


def _place(kind: type[Data]) -> str:
    return kind.__name__


def _formatted(values: Array) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
