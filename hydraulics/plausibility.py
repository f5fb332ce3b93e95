"""Plausibility checks of a circuit: numbers that are probably in a wrong unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from hydraulics.circuit import Circuit
from hydraulics.sources import PressureSource, Tank
from mbsfmu.modelling.plausibility import is_usual, unusual, unusual_numbers

USUAL_STARTS = 500.0, 1e9
"""Plausible range of initial pressures in Pa: least and most."""


def plausibility_warnings(circuit: Circuit, numbers: Mapping[str, float] = MappingProxyType({})) -> Iterator[str]:
    """Yield a warning for each implausible number of a circuit.

    Parameters
    ----------
    circuit
        The circuit.
    numbers
        Values by the names of its parameters that are not as in the data.
    """
    for component in circuit.components:
        yield from unusual_numbers(component, numbers)
    for node, given in circuit.initial_pressures.items():
        pressure = numbers.get(f"{node}.initial_pressure", given) if isinstance(given, float) else 0.0
        if pressure and not is_usual(pressure, USUAL_STARTS):
            yield unusual(f"initial_pressures: that of node '{node}'", pressure, "Pa", USUAL_STARTS)
    tanks = sorted((each for each in circuit.components if isinstance(each, Tank)), key=lambda each: each.pressure)
    for pump in circuit.components:
        if isinstance(pump, PressureSource) and tanks and pump.pressure < tanks[0].pressure:
            yield (
                f"{pump.type} '{pump.name}' has a pressure of {pump.pressure:g} Pa, below that of tank "
                f"'{tanks[0].name}', {tanks[0].pressure:g} Pa: oil flows into it; 1 bar is 1e5 Pa"
            )
