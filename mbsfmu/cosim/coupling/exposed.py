"""The connectors of a whole system: values and signals go through them to the variables behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mbsfmu.cosim.coupling.graph import SystemGraph
from mbsfmu.cosim.fmus.measurement_units import IDENTITY, LinearMap
from mbsfmu.io.signals import LinearSignal, SineSignal, StepSignal


def behind_connectors(values: Mapping[str, Any], graph: SystemGraph) -> dict[str, Any]:
    """Return values or signals by `unit.variable`, where some were given by the name of a connector of the system.

    What is given for a variable itself counts more than what comes through a connector.
    """
    result: dict[str, Any] = {}
    names = {exposed.name for exposed in graph.inputs}
    for exposed in graph.inputs:
        if exposed.name in values:
            result[".".join(exposed.end)] = _mapped(values[exposed.name], exposed.map)
    return {**result, **{name: value for name, value in values.items() if name not in names}}


def _mapped(value: Any, way: LinearMap) -> Any:
    if way == IDENTITY:
        return value
    if isinstance(value, (StepSignal, LinearSignal, SineSignal)):
        return value.mapped(way.factor, way.offset)
    if callable(value):
        return _mapped_function(value, way)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [way(float(each)) for each in np.asarray(value, dtype=float).ravel().tolist()]
    return way(float(value))


def _mapped_function(function: Callable[..., Any], way: LinearMap) -> Callable[[float], float]:
    return lambda time: way(float(function(time)))
