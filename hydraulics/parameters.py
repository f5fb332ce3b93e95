"""The parameters of a circuit: every physical number of its components."""

from __future__ import annotations

from collections.abc import Iterator

from hydraulics.circuit import Balanced, Circuit
from hydraulics.components import Cylinder
from hydraulics.fluid import ISOTHERMAL
from hydraulics.quantity import Quantity

# Unit, whether it must be positive (or may be zero, or has any sign), and what it is.
_UNITS: dict[str, tuple[str, str, str]] = {
    "pressure": ("Pa", "non-negative", "pressure"),
    "volume": ("m3", "positive", "volume"),
    "bulk_modulus": ("Pa", "positive", "bulk modulus"),
    "orifice_diameter": ("m", "positive", "diameter of the orifice"),
    "discharge_coefficient": ("1", "positive", "flow discharge coefficient"),
    "laminar_pressure": ("Pa", "positive", "pressure drop below which the flow is laminar"),
    "flow_coefficient": ("m3/(s.V)", "positive", "flow per volt at a pressure drop of 1 Pa, with whose root it grows"),
    "time_constant": ("s", "positive", "time constant of the spool"),
    "command_limit": ("V", "positive", "command at which it saturates"),
    "dead_band": ("V", "non-negative", "spool position up to which the valve stays closed"),
    "initial_spool": ("V", "any", "spool position at the start"),
    "piston_diameter": ("m", "positive", "diameter of the piston"),
    "rod_diameter": ("m", "positive", "diameter of the rod"),
    "stroke": ("m", "positive", "stroke"),
    "retracted_length": ("m", "positive", "length from end to end when fully retracted"),
    "initial_load": ("N", "any", "force at the start"),
    "viscous_friction": ("N.s/m", "non-negative", "viscous friction"),
    "coulomb_friction": ("N", "non-negative", "friction in motion"),
    "static_friction": ("N", "non-negative", "friction at breakaway"),
    "stribeck_velocity": ("m/s", "positive", "velocity of the Stribeck curve"),
    "smoothing_velocity": ("m/s", "positive", "velocity within which friction changes its sign"),
    "stop_stiffness": ("N/m", "non-negative", "stiffness of the end stops"),
    "stop_damping": ("s/m", "non-negative", "damping of the end stops, relative to their force"),
}
_TUNABLE = frozenset(
    {
        *("pressure", "orifice_diameter", "discharge_coefficient", "laminar_pressure"),
        *("flow_coefficient", "time_constant", "command_limit", "dead_band"),
        *("viscous_friction", "coulomb_friction", "static_friction", "stribeck_velocity", "smoothing_velocity"),
    }
)
"""What may change while a circuit works: settings and wear. Geometry, volumes and the oil would change what is stored,
and what is given for the start counts there alone."""
_SMALLEST = 1e-12  # positive quantities must stay so whatever is set at run time
_LARGEST = {"discharge_coefficient": 1.0}  # no orifice lets more through than an ideal one


def list_parameters(circuit: Circuit) -> tuple[Quantity, ...]:
    """Return the parameters of a circuit, start values being those of its data."""
    return tuple(_parameters(circuit))


def _parameters(circuit: Circuit) -> Iterator[Quantity]:
    yield Quantity("oil.bulk_modulus", "Pa", circuit.oil.bulk_modulus, _SMALLEST, description="bulk modulus")
    yield Quantity("oil.density", "kg/m3", circuit.oil.density, _SMALLEST, description="density")
    if circuit.oil.air_content > 0.0:
        content, index = circuit.oil.air_content, circuit.oil.polytropic_index
        yield Quantity("oil.air_content", "1", content, 1e-6, 1.0, description="air at atmospheric pressure, by volume")
        if index != ISOTHERMAL:
            yield Quantity("oil.polytropic_index", "1", index, ISOTHERMAL, 2.0, description="index of the air's law")
        yield Quantity(
            "oil.vapour_pressure", "Pa", circuit.oil.vapour_pressure, 0.0, description="vapour pressure of the oil"
        )
    for component in circuit.components:
        for field in type(component).model_fields:
            value = getattr(component, field)
            if field not in _UNITS:
                continue
            unit, sign, description = _UNITS[field]
            minimum = {"positive": _SMALLEST, "non-negative": 0.0, "any": None}[sign]
            most = _LARGEST.get(field)
            tunable = field in _TUNABLE
            name = f"{component.name}.{field}"
            yield Quantity(name, unit, value, minimum, most, description=description, tunable=tunable)
    for node, pressure in circuit.initial_pressures.items():
        if not isinstance(pressure, Balanced):
            yield Quantity(f"{node}.initial_pressure", "Pa", pressure, 0.0, description="pressure at the start")


def initial_length(cylinder: Cylinder) -> float:
    """Return the length of a cylinder in m where nothing else gives it: as said, or at mid-stroke."""
    if cylinder.initial_length is not None:
        return cylinder.initial_length
    return cylinder.retracted_length + 0.5 * cylinder.stroke
