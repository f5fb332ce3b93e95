"""Lines under test, and their closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import jv

from hydraulics import Circuit, Component, LineEnd, Oil, PressureInput, PressureSource, TransmissionLine, Volume
from hydraulics.transmission_line import WEIGHTINGS
from mbsfmu import CoupledModel, LinearSignal

OIL = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0)
DIAMETER, LENGTH, SPEED, VISCOSITY = 0.012, 9.6, 1200.0, 0.04
AREA = pi * DIAMETER**2 / 4.0
IMPEDANCE = OIL.density * SPEED / AREA
DELAY = LENGTH / SPEED
RESISTANCE = 128.0 * VISCOSITY * LENGTH / (pi * DIAMETER**4)
PRESSURE = 1e7

Complex = NDArray[np.complex128]


def fields(friction: str = "none", **others: Any) -> dict[str, Any]:
    """Return the data of a line without its nodes."""
    friction_fields = {"friction": friction, "viscosity": None if friction == "none" else VISCOSITY}
    return {"diameter": DIAMETER, "length": LENGTH, "wave_speed": SPEED, **friction_fields, **others}


def line(friction: str = "none", **others: Any) -> TransmissionLine:
    """Return a line from A to B."""
    return TransmissionLine(name="line", inlet="A", outlet="B", **fields(friction, **others))


def end(node: str, friction: str = "none", **others: Any) -> LineEnd:
    """Return an end of this line."""
    return LineEnd(name="line", node=node, **fields(friction, **others))


def source(node: str = "A", pressure: float = PRESSURE) -> PressureSource:
    """Return a source that holds a node at a pressure."""
    return PressureSource(name=f"source_{node}", node=node, pressure=pressure)


def volume(node: str = "B", size: float = 1e-7) -> Volume:
    """Return a rigid volume."""
    return Volume(name=f"volume_{node}", node=node, volume=size)


def model(
    *components: Component, signals: Mapping[str, LinearSignal] | None = None, **pressures: float
) -> CoupledModel:
    """Return the model of one circuit of components, with pressures at the start by node."""
    circuit = Circuit(oil=OIL, components=components, initial_pressures=pressures)
    return CoupledModel(name="lines", systems={"circuit": circuit}, signals=signals or {})


def driven() -> PressureInput:
    """Return a pressure at A that is an input."""
    return PressureInput(name="drive", node="A", initial_pressure=PRESSURE)


def friction_function(s: Complex, weighting: str) -> Complex | float:
    """Return N with Γ = T s √N and Z_c = Z √N; that of viscous flow by Bessel functions for `exact`."""
    if weighting == "none":
        return 1.0
    relative = s * (0.5 * DIAMETER) ** 2 * OIL.density / VISCOSITY
    if weighting == "exact":
        argument = 1j * np.sqrt(relative)
        return -jv(0, argument) / jv(2, argument)
    terms = zip(*WEIGHTINGS[weighting], strict=True) if weighting in WEIGHTINGS else ()
    return 1.0 + 8.0 / relative + 4.0 * sum(m / (relative + n) for m, n in terms)


def closed_line(s: Complex, weighting: str, size: float) -> tuple[Complex, Complex]:
    """Return inlet flow and outlet pressure over inlet pressure of a line that ends at a volume; Z_c tanh Γ."""
    factor = np.sqrt(friction_function(s, weighting))
    exponent, impedance, load = DELAY * s * factor, IMPEDANCE * factor, s * size / OIL.bulk_modulus
    across = np.cosh(exponent) + impedance * load * np.sinh(exponent)
    return (np.sinh(exponent) + impedance * load * np.cosh(exponent)) / (impedance * across), 1.0 / across
