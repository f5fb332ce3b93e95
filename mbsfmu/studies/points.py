"""The points of a study: all combinations of varied values."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.modelling.measured_numbers import ColumnValues, with_common_unit

_WORDS = "values such as 1,2,3, or low:high:count, or low:high:count:log"


@dataclass(frozen=True)
class StudyPoint:
    """One run of a study.

    Attributes
    ----------
    values
        Of the varied parameters, by `system.variable`.
    settings
        Of the run, by name.
    key
        Made from the content: the same model, values and settings give the same one.
    """

    values: Mapping[str, float]
    settings: Mapping[str, Any]
    key: str


def parse_values(text: str) -> list[float]:
    """Parse numbers of the command line.

    Parameters
    ----------
    text
        `1,2,3`; `low:high:count` for values evenly apart; `low:high:count:log` for evenly apart logarithms. Each number
        may have a unit, the same one: `100 bar,200 bar`.

    Raises
    ------
    InputError
        When it does not read so.
    """
    parts = text.split(":")
    refusal = f"'{text}' is no list of values; give {_WORDS}"
    if len(parts) not in (1, 3, 4) or parts[3:] not in ([], ["log"]):
        raise InputError(refusal)
    try:
        values, unit = with_common_unit(text.split(",") if len(parts) == 1 else parts[:2])
    except ValueError as error:
        raise InputError(f"{refusal}: {error}") from None
    if len(parts) > 1:
        if not (parts[2].strip().isascii() and parts[2].strip().isdigit() and int(parts[2])):
            raise InputError(f"{refusal}: '{parts[2]}' is no number of values, an integer of at least 1")
        if parts[3:] and min(values) <= 0.0:
            raise InputError(f"{refusal}: the bounds of logarithms must be positive")
        values = (np.geomspace if parts[3:] else np.linspace)(values[0], values[1], int(parts[2])).tolist()
    if not np.isfinite(values).all():
        raise InputError(f"{refusal}: they must be finite")
    return ColumnValues(values, unit) if unit else values


def make_points(
    vary: Mapping[str, Sequence[float]],
    settings: Mapping[str, Sequence[Any]],
    content: Mapping[str, Any],
    samples: Mapping[str, Sequence[float]] | None = None,
) -> list[StudyPoint]:
    """Return all combinations, settings varying fastest, samples slowest.

    Parameters
    ----------
    vary, settings
        Values of each parameter and of each setting.
    samples
        Values of parameters that belong together, one a sample.
    content
        What else the outcome follows from, as plain data.

    Raises
    ------
    InputError
        When there is nothing to vary, a list is empty or has a value twice, a value is not finite, or there are more
        samples of one parameter than of another.
    """
    drawn = samples or {}
    _check_samples(drawn)
    for kind, lists in (("parameter", vary), ("setting", settings)):
        for name, values in lists.items():
            if not len(values):
                raise InputError(f"the {kind} {name} has no values")
            if len({repr(value) for value in values}) < len(values):
                raise InputError(f"the {kind} {name} has a value twice: {', '.join(str(value) for value in values)}")
            for value in values:
                if isinstance(value, float) and not math.isfinite(value):
                    raise InputError(f"the {kind} {name} is {value}; it must be finite")
    points = []
    rows = list(zip(*drawn.values(), strict=True)) if drawn else [()]
    for row, values in itertools.product(rows, itertools.product(*vary.values())):
        for chosen in itertools.product(*settings.values()):
            numbers = {name: float(value) for name, value in zip((*drawn, *vary), (*row, *values), strict=True)}
            words = dict(zip(settings, chosen, strict=True))
            points.append(StudyPoint(numbers, words, _key({**content, "values": numbers, "settings": words})))
    return points


def _check_samples(drawn: Mapping[str, Sequence[float]]) -> None:
    lengths = {name: len(values) for name, values in drawn.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(f"there are {told}; samples need as many values of each parameter")
    for name, values in drawn.items():
        if not len(values):
            raise InputError(f"the parameter {name} has no samples")
        for number, value in enumerate(values, start=1):
            if not math.isfinite(value):
                raise InputError(f"sample {number} of the parameter {name} is {value}; it must be finite")


def _key(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
