"""Lines with a delay, by the method of characteristics: whole, and cut between two circuits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import sqrt
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, Port
from hydraulics.component_context import ComponentContext
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, ISOTHERMAL, Fluid, Mixture, Oil
from hydraulics.line_side import LineGrid, LineNumbers, LineSide
from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array, Measured, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

LineFriction = Literal["none", "steady", "trikha", "kagawa"]
SLOWEST, FASTEST = 10.0, 5000.0
"""Wave speeds in m/s that lines can have: of soft hoses with much air, and above that of any liquid."""
SHORTEST = 1e-6
"""Shortest step of a line's grid in s."""
_SAME = 1e-9
"""Difference of impedances relative to them within which both ends are of one line."""


class _DelayedLine(Component, abstract=True):
    """What whole and cut lines have in common; attributes: see `TransmissionLine`."""

    diameter: Annotated[Positive, Parameter("m", "diameter", usual=(1e-4, 3.0))]
    length: Annotated[Positive, Measured("m")]
    wave_speed: Annotated[float, Field(ge=SLOWEST, le=FASTEST), Measured("m/s")]
    friction: LineFriction = "kagawa"
    viscosity: Annotated[
        OptionalPositive, Parameter("Pa.s", "dynamic viscosity of the oil", tunable=True, usual=(1e-4, 10.0))
    ] = None
    reaches: Annotated[int, Field(ge=2, le=200)] = 10
    initial_flow: Annotated[float, Parameter("m3/s", "flow at the start")] = 0.0

    @model_validator(mode="after")
    def _is_line(self) -> Self:
        if self.friction == "none" and self.viscosity is not None:
            raise DataError(
                f"{self.type} '{self.name}' has a viscosity of {self.viscosity:g} Pa s, but no friction; leave the "
                "viscosity out, or choose the friction steady, trikha or kagawa"
            )
        if self.friction != "none" and self.viscosity is None:
            raise DataError(
                f"{self.type} '{self.name}' has no viscosity; its friction '{self.friction}' needs it in Pa s, and "
                "without friction it is 'none'"
            )
        if self.sample_period < SHORTEST:
            raise DataError(
                f"{self.type} '{self.name}' has a delay of {self.delay:.3g} s in {self.reaches} reaches, "
                f"{self.sample_period:.3g} s each; a reach must take at least {SHORTEST:g} s: take fewer reaches, "
                "or for so short a line a hose or a throttle"
            )
        return self

    @property
    def delay(self) -> float:
        """Time in s that a wave takes from one end to the other."""
        return self.length / self.wave_speed

    @property
    def sample_period(self) -> float:
        """Time in s that a wave takes through a reach."""
        return self._grid.period

    @property
    def _grid(self) -> LineGrid:
        return LineGrid(self.length, self.wave_speed, self.reaches, self.friction)


class TransmissionLine(_DelayedLine):
    """Round line in which waves travel: linear compressible flow with a delay, by the method of characteristics.

    Each end has the pressure p = a + Z Q with the flow Q into it, its impedance Z, and the characteristic a that the
    other end sent a delay ago. Grid and friction: see `hydraulics.line_side`.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    diameter, length
        In m. The length is no parameter, as the delay l / c is fixed.
    wave_speed
        c in m/s, of oil and walls; see `wave_speed`.
    friction
        "none", "steady" for that of fully developed flow, laminar or turbulent, or that of accelerated flow too, by the
        weighting function of Trikha (3 terms) or Kagawa (10 terms).
    viscosity
        Dynamic viscosity μ of the oil in Pa s; None without friction.
    reaches
        Number of equal reaches, at least 2: waves are sampled each time they have passed one.
    initial_flow
        In m³/s, from inlet to outlet.
    """

    type: Literal["transmission-line"] = "transmission-line"
    inlet: Port
    outlet: Port

    @property
    def _sides(self) -> dict[str, LineSide]:
        """The sides by their port."""
        return {port: LineSide(self._grid, f"{port}_") for port in ("inlet", "outlet")}

    def states(self) -> tuple[Quantity, ...]:
        """Return the characteristics at both ends, and the oil and energy of the line."""
        return (
            *(state for side in self._sides.values() for state in side.states()),
            Quantity(
                "volume", "m3", nominal=1e-3, description="oil in the line, by its volume at atmospheric pressure"
            ),
            Quantity("stored_energy", "J", nominal=1e3, description="energy of pressure and flow in the line"),
        )

    def discrete_states(self) -> tuple[Quantity, ...]:
        """Return what the sides have, and the waves that have left both ends."""
        sides = (each for side in self._sides.values() for each in side.discrete_states())
        description = "wave that left this end"
        waves = (
            Quantity(f"{port}_wave_{index}", "Pa", nominal=1e6, description=f"{description} {index} samples ago")
            for port in self._sides
            for index in range(1, self.reaches)
        )
        return (*sides, *waves)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates at both ends."""
        return (
            Quantity("inlet_flow", "m3/s", description="flow into the line at the inlet, at atmospheric pressure"),
            Quantity("outlet_flow", "m3/s", description="flow out of the line at the outlet, at atmospheric pressure"),
        )

    def uptakes(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates into the line."""
        return {port: side.flow(now, port) for port, side in self._sides.items()}

    def stored_volume(self, now: ComponentContext) -> Array:
        """Return the oil in the line in m³."""
        return now["volume"]

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivatives of characteristics, oil and energy."""
        into = self.uptakes(now)
        return {
            **{name: rate for side in self._sides.values() for name, rate in side.rate(now).items()},
            "volume": into["inlet"] + into["outlet"],
            "stored_energy": self.energy_rate(now),
        }

    def updates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the discrete states after a sample."""
        updated: dict[str, Array] = {}
        for port, other in (("inlet", "outlet"), ("outlet", "inlet")):
            arriving, last = now[f"{other}_wave_{self.reaches - 1}"], now[f"{port}_wave_1"]
            own, leaving = self._sides[port].update(now, port, arriving, last)
            earlier = {f"{port}_wave_{index + 1}": now[f"{port}_wave_{index}"] for index in range(1, self.reaches - 1)}
            updated |= {**own, **earlier, f"{port}_wave_1": leaving}
        return updated

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates at both ends."""
        into = self.uptakes(now)
        return {"inlet_flow": into["inlet"], "outlet_flow": -into["outlet"]}

    def energy(self, now: ComponentContext) -> Array:
        """Return the energy of the waves in J."""
        return now["stored_energy"]

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power of the pressures at both ends, less that of friction, in W."""
        power = sum((now.pressure(port) * flow for port, flow in self.uptakes(now).items()), start=np.asarray(0.0))
        return power - sum((side.loss(now) for side in self._sides.values()), start=np.asarray(0.0))

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return characteristics, oil and energy of steady flow, with pressures that are linear between both ends."""
        numbers, flow = LineNumbers(self._grid, now), now["initial_flow"]
        inlet, outlet = now.pressure("inlet"), now.pressure("outlet")
        mean, square = 0.5 * (inlet + outlet), (inlet**2 + inlet * outlet + outlet**2) / 3.0
        inertance = numbers.impedance * self.delay
        stored = 0.5 * numbers.compliance * (square - ATMOSPHERIC_PRESSURE**2) + 0.5 * inertance * flow**2
        # a side knows the flow within its half a quarter of the delay late on average, and so the friction
        stored = stored + 0.25 * self.delay * self.reaches * numbers.drop(flow) * flow
        return {
            **self._sides["inlet"].initial_state(now, "inlet", flow),
            **self._sides["outlet"].initial_state(now, "outlet", -flow),
            "volume": numbers.volume + numbers.compliance * (mean - ATMOSPHERIC_PRESSURE),
            "stored_energy": stored,
        }

    def initial_discrete(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the waves of steady flow with the pressures at both ends, linear between them."""
        begun: dict[str, Array | float] = {}
        for port, other, sign in (("inlet", "outlet", 1.0), ("outlet", "inlet", -1.0)):
            pressure = partial(_between, now.pressure(port), now.pressure(other), self.reaches)
            own, leaving = self._sides[port].initial_discrete(now, pressure, sign * now["initial_flow"])
            begun |= {**own, **{f"{port}_wave_{index}": leaving for index in range(1, self.reaches)}}
        return begun


class LineEnd(_DelayedLine):
    """One end of a transmission line, whose other end is in another circuit or FMU.

    The ends exchange the waves that have left them, each with the place of its sample, so that nothing is interpolated:
    coupled FMUs find what one circuit with a `TransmissionLine` does, at communication steps up to the delay less one
    sample. The oil in the line belongs to neither circuit; its energy comes from outside.

    Attributes
    ----------
    node
        Node at this end; flow into the line counts as positive.
    diameter, length
        Of the line in m; all data of the line are the same at both ends.
    wave_speed
        In m/s.
    friction
        As for `TransmissionLine`.
    viscosity
        Dynamic viscosity of the oil in Pa s; None without friction.
    reaches
        Number of equal reaches.
    initial_flow
        In m³/s, into the line.
    """

    type: Literal["line-end"] = "line-end"
    node: Port

    @property
    def update_advice(self) -> str:
        """Clause of the message where the waves of the far end are not there."""
        return (
            f"waves of the far end are missing; {self._far('samples')}, {self._far('impedance')} and "
            f"{self._far('wave_1')} to {self._far(f'wave_{self._places}')} must come from an equal line-end, at "
            f"communication steps of at most {self.delay - self.sample_period:.6g} s, the delay less one sample"
        )

    @property
    def _side(self) -> LineSide:
        return LineSide(self._grid, "")

    @property
    def _places(self) -> int:
        """Number of waves that are kept: those of two delays, for an end that runs ahead of the other one."""
        return 2 * self.reaches

    @staticmethod
    def _far(name: str) -> str:
        return f"far_{name}"

    def states(self) -> tuple[Quantity, ...]:
        """Return the characteristic."""
        return self._side.states()

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the waves of the far end, the number of its samples, and its impedance."""
        waves = (
            Quantity(self._far(f"wave_{place}"), "Pa", description="wave_ of the far end with the same number")
            for place in range(1, 1 + self._places)
        )
        return (
            Quantity(self._far("samples"), "1", description="number of samples of the far end"),
            Quantity(self._far("impedance"), "Pa.s/m3", description="impedance of the far end, the same as this one"),
            *waves,
        )

    def discrete_states(self) -> tuple[Quantity, ...]:
        """Return what the side has, the waves that have left, and the count of samples."""
        waves = (
            Quantity(f"wave_{place}", "Pa", nominal=1e6, description="wave that left at a sample")
            for place in range(1, 1 + self._places)
        )
        return (
            *self._side.discrete_states(),
            Quantity("samples", "1", nominal=1.0, description="number of samples since the start"),
            Quantity("place", "1", nominal=1.0, description="number of the wave of the next sample"),
            Quantity("last_wave", "Pa", nominal=1e6, description="wave that left at the last sample"),
            *waves,
        )

    def outputs(self) -> tuple[Quantity, ...]:
        """Return flow rate, power and impedance."""
        return (
            Quantity("flow", "m3/s", description="flow into the line, at atmospheric pressure"),
            Quantity("power", "W", description="power into the circuit"),
            Quantity("impedance", "Pa.s/m3", description="impedance of the line", shared=True),
        )

    def uptakes(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate into the line."""
        return {"node": self._side.flow(now, "node")}

    def work_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that the line brings into the circuit."""
        return -now.pressure("node") * self._side.flow(now, "node")

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the characteristic."""
        return self._side.rate(now)

    def updates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the discrete states after a sample; not finite without the waves of the far end."""
        numbers = range(1, 1 + self._places)
        read = _wrapped(now["place"] + (self.reaches + 1.0), self._places)
        waves = (np.where(read == number, now[self._far(f"wave_{number}")], 0.0) for number in numbers)
        arriving = sum(waves, start=np.asarray(0.0)) / self._are_there(now)
        own, leaving = self._side.update(now, "node", arriving, now["last_wave"])
        return {
            **own,
            "samples": now["samples"] + 1.0,
            "place": _wrapped(now["place"] + 1.0, self._places),
            "last_wave": leaving,
            **{f"wave_{each}": np.where(now["place"] == each, leaving, now[f"wave_{each}"]) for each in numbers},
        }

    def _are_there(self, now: ComponentContext) -> Array:
        """Return 1 where the wave that arrives is known, and 0 where it is not sampled yet, or no longer kept.

        FMUs initialize before the far end has said anything, and once more when it has: nothing is missing then.
        """
        ahead = now[self._far("samples")] - now["samples"]
        own = LineNumbers(self._grid, now).impedance
        known = np.logical_and(ahead >= 2.0 - self.reaches, ahead <= 1.0 + self.reaches)
        same = np.abs(now[self._far("impedance")] - own) <= _SAME * own
        waits = np.logical_and(now["samples"] == 0.0, now[self._far("impedance")] == 0.0)
        return np.where(np.logical_or(np.logical_and(known, same), waits), 1.0, 0.0)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return flow rate, power and impedance."""
        return {
            "flow": self._side.flow(now, "node"),
            "power": self.work_rate(now),
            "impedance": LineNumbers(self._grid, now).impedance,
        }

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the characteristic of steady flow."""
        return self._side.initial_state(now, "node", now["initial_flow"])

    def initial_discrete(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the waves of steady flow."""
        drop = LineNumbers(self._grid, now).drop(now["initial_flow"])
        own, leaving = self._side.initial_discrete(
            now, lambda index: now.pressure("node") - index * drop, now["initial_flow"]
        )
        waves = {f"wave_{place}": leaving for place in range(1, 1 + self._places)}
        return {**own, "samples": 0.0, "place": 1.0, "last_wave": leaving, **waves}


def line_connections(one: str, other: str, reaches: int = 10) -> tuple[tuple[str, str], ...]:
    """Return the connections of two line ends, pairs of source and target.

    Parameters
    ----------
    one, other
        The ends as `system.component`.
    reaches
        Number of reaches of the line.
    """
    names = ("samples", "impedance", *(f"wave_{place}" for place in range(1, 1 + 2 * reaches)))
    return tuple(
        (f"{source}.{name}", f"{target}.far_{name}")
        for source, target in ((one, other), (other, one))
        for name in names
    )


def _wrapped(place: Array, places: int) -> Array:
    """Return a place beyond the last one counted from the first."""
    return np.where(place > places, place - places, place)


def _between(here: Array, there: Array, reaches: int, index: int) -> Array:
    """Return the pressure at a point of a line, linear between both ends."""
    return here + (there - here) * (index / reaches)


def wave_speed(oil: Oil, pressure: float, wall_modulus: float | None = None) -> float:
    """Return the speed in m/s of waves in a line, c = √(K / ρ) with 1 / K = 1 / K_oil + 1 / K_walls.

    Parameters
    ----------
    oil
        The oil; with its air where it has some.
    pressure
        Mean pressure in the line in Pa, against vacuum.
    wall_modulus
        Bulk modulus of the walls in Pa, as of a `Hose`; None for rigid ones.

    Raises
    ------
    DataError
        When the pressure is not above the vapour pressure, or the modulus not positive.
    """
    if pressure <= oil.vapour_pressure:
        raise DataError(
            f"pressure is {pressure:g} Pa; it must be above the vapour pressure of {oil.vapour_pressure:g} Pa"
        )
    if wall_modulus is not None and not wall_modulus > 0.0:
        raise DataError(f"wall_modulus is {wall_modulus:g} Pa; it must be positive, or None for rigid walls")
    air = Mixture(
        oil.bulk_modulus, oil.air_content, oil.polytropic_index if oil.polytropic_index > ISOTHERMAL else None
    )
    fluid = Fluid(oil.density, oil.bulk_modulus, oil.vapour_pressure, air if oil.air_content > 0.0 else None)
    compliance = float(fluid.compliance(np.asarray(pressure)))
    return 1.0 / sqrt(oil.density * (compliance + (0.0 if wall_modulus is None else 1.0 / wall_modulus)))
