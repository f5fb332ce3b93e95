"""Circuits under test, and their equations read by names instead of places in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hydraulics import (
    Circuit,
    CircuitEquations,
    Cylinder,
    DirectionalValve,
    Hose,
    Oil,
    PressureSource,
    Quantity,
    Tank,
    Throttle,
    balanced,
)

PUMP, TANK = 7.6e6, 0.1e6
OIL, HOSE, WALL = 1500e6, 150e6, 31500e6
HOSE_1, HOSE_2, HOSE_3 = 3.14e-5, 7.85e-5, 4.71e-5
STROKE = 0.9
AREA_2 = pi * 0.080**2 / 4.0
AREA_3 = pi * (0.080**2 - 0.035**2) / 4.0
VALVE = 4e-4 / (10.0 * 35e5**0.5)
TIME_CONSTANT = 1.0 / (2.0 * pi * 35.0)
THROTTLE = 0.8 * (pi * 0.006**2 / 4.0) * (2.0 / 850.0) ** 0.5
LAMINAR = 2e5
AIRLESS = Oil(bulk_modulus=OIL, density=850.0, air_content=0.0, conserves="volume")
"""Oil of the paper's eqs. 22 and 23."""
AIRY = Oil(bulk_modulus=OIL, density=850.0, air_content=0.01, polytropic_index=1.3, vapour_pressure=200.0)
"""Oil in which every number counts."""

FRICTION: dict[str, Any] = {
    "viscous_friction": 400.0,
    "coulomb_friction": 120.0,
    "static_friction": 200.0,
    "stribeck_velocity": 0.02,
    "smoothing_velocity": 0.003,
}


def _sources_and_valve(a: str, b: str, **valve: Any) -> tuple[PressureSource, Tank, DirectionalValve]:
    return (
        PressureSource(name="pump", node="P", pressure=PUMP),
        Tank(name="tank", node="T", pressure=TANK),
        DirectionalValve(
            name="valve",
            supply="P",
            tank="T",
            a=a,
            b=b,
            flow_coefficient=VALVE,
            time_constant=TIME_CONSTANT,
            **valve,
        ),
    )


def _cylinder(**fields: Any) -> Cylinder:
    return Cylinder(
        name="cylinder",
        piston="V2",
        rod="V3",
        piston_diameter=0.080,
        rod_diameter=0.035,
        stroke=STROKE,
        retracted_length=0.9,
        bulk_modulus=WALL,
        **fields,
    )


def paper_circuit(valve: Mapping[str, Any] | None = None, oil: Oil = AIRLESS, **cylinder: Any) -> Circuit:
    """Return the circuit of the paper with three volumes, with other fields of valve and cylinder on wish."""
    return Circuit(
        oil=oil,
        components=(
            *_sources_and_valve("V1", "V3", **(valve or {})),
            Hose(name="hose_1", node="V1", volume=HOSE_1, bulk_modulus=HOSE),
            Throttle(name="throttle", inlet="V1", outlet="V2", orifice_diameter=0.006, discharge_coefficient=0.8),
            Hose(name="hose_2", node="V2", volume=HOSE_2, bulk_modulus=HOSE),
            _cylinder(**cylinder),
            Hose(name="hose_3", node="V3", volume=HOSE_3, bulk_modulus=HOSE),
        ),
        initial_pressures={"V3": 3.5e6, "V2": balanced("cylinder"), "V1": balanced("cylinder")},
    )


def two_volume_circuit(oil: Oil = AIRLESS, **cylinder: Any) -> Circuit:
    """Return a circuit whose valve is joined to the cylinder without a throttle."""
    return Circuit(
        oil=oil,
        components=(
            *_sources_and_valve("V2", "V3"),
            Hose(name="hose_2", node="V2", volume=HOSE_2, bulk_modulus=HOSE),
            _cylinder(**cylinder),
            Hose(name="hose_3", node="V3", volume=HOSE_3, bulk_modulus=HOSE),
        ),
        initial_pressures={"V2": 5e6, "V3": 3.5e6},
    )


class Bench:
    """Equations of a circuit, called and read by names; arrays are read-only, as pure functions allow."""

    def __init__(self, circuit: Circuit) -> None:
        self.equations = CircuitEquations(circuit)

    def rates(self, parameters: Mapping[str, float] | None = None, /, **groups: float) -> dict[str, float]:
        """Return the rates at states and inputs given as `valve__spool=3.0`, the others at their start."""
        rates = self.equations.rates(*self._arrays(groups), self._parameters(parameters))
        return dict(zip(names(self.equations.states), rates.tolist(), strict=True))

    def outputs(self, parameters: Mapping[str, float] | None = None, /, **groups: float) -> dict[str, float]:
        """Return the outputs at states and inputs given as for `rates`."""
        outputs = self.equations.evaluate_outputs(*self._arrays(groups), self._parameters(parameters))
        return dict(zip(names(self.equations.outputs), outputs.tolist(), strict=True))

    def start(self, parameters: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the states at the start."""
        states = self.equations.initial_states(self._parameters(parameters))
        return dict(zip(names(self.equations.states), states.tolist(), strict=True))

    def _parameters(self, changes: Mapping[str, float] | None) -> NDArray[np.float64]:
        values = {each.name: each.start for each in self.equations.parameters}
        assert set(changes or {}) <= set(values), "no such parameter"
        return _frozen({**values, **(changes or {})}.values())

    def _arrays(self, groups: Mapping[str, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        given = {name.replace("__", "."): value for name, value in groups.items()}
        states = self.start()
        inputs = {each.name: each.start for each in self.equations.inputs}
        assert set(given) <= {*states, *inputs}, "no such state or input"
        return (
            _frozen(given.get(name, value) for name, value in states.items()),
            _frozen(given.get(name, value) for name, value in inputs.items()),
        )


def names(quantities: tuple[Quantity, ...]) -> list[str]:
    """Return the names of quantities."""
    return [each.name for each in quantities]


def _frozen(values: Any) -> NDArray[np.float64]:
    array = np.array(list(values), dtype=float)
    array.setflags(write=False)
    return array
