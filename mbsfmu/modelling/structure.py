"""Structure of data: all that equations depend on except the numbers that are their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mbsfmu.modelling.data import Data
from mbsfmu.modelling.parameters import is_table, parameter_fields

_NUMBER = math.nan
"""Stands for the value of a parameter; no number in data is it."""


class Role(Enum):
    """What the numbers of a field are to equations, where `Parameter` does not say it; an annotation of its type."""

    PARAMETER = "parameters with names of their own, as masses and start values are, or structural zeros"
    PICTURE = "nothing: they are for pictures"


def structure_of(value: Any) -> Any:
    """Return data without the numbers of parameters: the same for data whose traced equations are the same.

    Whether there is a number stays, and so do all numbers that equations have inside: directions, sample times, places
    of tables. A mechanism leaves zeros out of its equations; which these are shows in the names of its parameters.

    Parameters
    ----------
    value
        Data, or a value of a field.

    Returns
    -------
    object
        Nested tuples of names, numbers and texts.
    """
    return _structure(value, is_hidden=False)


def _structure(value: Any, *, is_hidden: bool) -> Any:
    if isinstance(value, Data):
        kind = type(value)
        fields = [(name, _field(kind, name, getattr(value, name), is_hidden)) for name in kind.model_fields]
        return (kind.__module__, kind.__qualname__, *fields)
    if isinstance(value, Mapping):
        return tuple((key, _structure(each, is_hidden=is_hidden)) for key, each in value.items())
    if isinstance(value, tuple):
        return tuple(_structure(each, is_hidden=is_hidden) for each in value)
    return _NUMBER if is_hidden and isinstance(value, float) else value


def _field(kind: type[Data], name: str, value: Any, is_hidden: bool) -> Any:
    field = kind.model_fields[name]
    if Role.PICTURE in field.metadata:
        return ()
    if name in parameter_fields(kind) and is_table(field.annotation) and value is not None:
        return tuple((place, _NUMBER) for place, _ in value)
    is_parameter = name in parameter_fields(kind) or Role.PARAMETER in field.metadata
    return _structure(value, is_hidden=is_hidden or is_parameter)
