"""Plausibility checks of a circuit: numbers that are probably in a wrong unit."""

from __future__ import annotations

from collections.abc import Iterator

from hydraulics.circuit import Circuit
from hydraulics.component import Component
from hydraulics.sources import PressureSource, Tank
from mbsfmu.modelling.parameters import parameter_fields

USUAL_STARTS = 500.0, 1e9
"""Plausible range of initial pressures in Pa: least and most."""


def plausibility_warnings(circuit: Circuit) -> Iterator[str]:
    """Yield a warning for each implausible number of a circuit."""
    for component in circuit.components:
        yield from _unusual(component)
    for node, pressure in circuit.initial_pressures.items():
        if isinstance(pressure, float) and pressure and not _within(pressure, USUAL_STARTS):
            yield _sentence(f"initial_pressures: that of node '{node}'", pressure, "Pa", USUAL_STARTS)
    tanks = sorted((each for each in circuit.components if isinstance(each, Tank)), key=lambda each: each.pressure)
    for pump in circuit.components:
        if isinstance(pump, PressureSource) and tanks and pump.pressure < tanks[0].pressure:
            yield (
                f"{pump.type} '{pump.name}' has a pressure of {pump.pressure:g} Pa, below that of tank "
                f"'{tanks[0].name}', {tanks[0].pressure:g} Pa: oil flows into it; 1 bar is 1e5 Pa"
            )


def _unusual(component: Component) -> Iterator[str]:
    for field, parameter in parameter_fields(type(component)).items():
        value = getattr(component, field)
        if parameter.usual is not None and value and not _within(value, parameter.usual):
            thing = f"{component.type} '{component.name}': {field}"
            yield _sentence(thing, value, parameter.unit, parameter.usual)


def _within(value: float, usual: tuple[float, float]) -> bool:
    return usual[0] <= value <= usual[1]


def _sentence(thing: str, value: float, unit: str, usual: tuple[float, float]) -> str:
    least, most = usual
    bound = f"less than {least:g}" if value < least else f"more than {most:g}"
    return f"{thing} is {value:g} {unit}, {bound} {unit}, which is implausible; numbers are in SI units"
