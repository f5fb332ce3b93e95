"""Registry of system kinds: each registers a function that makes its equations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

from mbsfmu.model.system_kinds import SystemData
from mbsfmu.modelling import Data
from mbsfmu.systems.system import System


@singledispatch
def make_system(data: Data, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    """Return the equations of one system of a model; `@make_system.register` adds a data class.

    Parameters
    ----------
    data, name
        The system, and its name in the model.
    absolute
        Whether a mechanism is in absolute coordinates, as `dca-alm` takes it.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the data.

    Raises
    ------
    InputError
        When a user's part is refused.
    TypeError
        When the class of the data is not registered.
    """
    raise TypeError(f"{type(data).__name__} is no kind of systems")


@make_system.register
def _(data: SystemData, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    return data.make_system(name, dict(start_values))
