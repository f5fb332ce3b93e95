"""The connectors of a whole system: values and signals go through them to the variables behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import Exposed, SystemGraph
from mbsfmu.io.signals import LinearSignal, SineSignal, StepSignal, in_unit
from mbsfmu.io.smooth_signals import PolynomialSignal
from mbsfmu.modelling.measured_numbers import number_in
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap


def behind_connectors(values: Mapping[str, Any], graph: SystemGraph) -> dict[str, Any]:
    """Return values or signals by `unit.variable`, where some were given by the name of a connector of the system.

    What is given for a variable itself counts more than what comes through a connector.
    """
    result: dict[str, Any] = {}
    names = {exposed.name for exposed in graph.inputs}
    for exposed in graph.inputs:
        if exposed.name in values:
            result[".".join(exposed.end)] = _mapped(values[exposed.name], exposed)
    return {**result, **{name: value for name, value in values.items() if name not in names}}


def _mapped(value: Any, exposed: Exposed) -> Any:
    """Return a value or signal of a connector for the variable behind, from the unit that it has or the connector's."""
    way = exposed.map
    if isinstance(value, str) and way != IDENTITY:
        try:
            return way(number_in(value, exposed.unit))
        except InputError as error:
            raise InputError(f"{exposed.name}: {error}") from None
    value = in_unit(value, exposed.unit, exposed.name)
    if way == IDENTITY:
        return value
    if isinstance(value, (StepSignal, LinearSignal, SineSignal, PolynomialSignal)):
        return value.mapped(way.factor, way.offset)
    if callable(value):
        return _mapped_function(value, way)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [way(float(each)) for each in np.asarray(value, dtype=float).ravel().tolist()]
    return way(float(value))


def _mapped_function(function: Callable[..., Any], way: LinearMap) -> Callable[[float], float]:
    return lambda time: way(float(function(time)))
