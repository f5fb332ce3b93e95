"""Lines with a delay, whole and cut between two circuits, by the method of characteristics with unsteady friction.

One side of a line with a delay: the method of characteristics on the grid that this side needs.

A line of n reaches has the points j = 0 … n, from this side to the far one, and the step Δ = T / n of its delay
T = l / c. Along the characteristics [Wylie, Streeter: Fluid Transients in Systems, 1993, ch. 3], with the flow Q away
from this side, Z = ρ c / A and the friction f of a reach,

    C⁺:  p − p_left  + Z (Q − Q_left)  + ½ (f + f_left)  = 0,
    C⁻:  p − p_right − Z (Q − Q_right) − ½ (f + f_right) = 0,

    f = R_Δ (Q + ½ Σ y) + X,   y⁺ = e^(−n θ) y + m (1 − e^(−n θ)) / (n θ) (Q⁺ − Q),   θ = 4 ν Δ / d²,

the integral of the weighting function with flows that are linear within a step. By X turbulent friction exceeds laminar
friction; it is taken at the foot of the characteristic, and not by the trapezoidal rule. What arrives are the
waves u = p + Z Q − ½ f − ½ X away from this side, and v = p − Z Q + ½ f + ½ X towards it.

Each side follows the characteristic that will arrive at it at its next sample, point j at the time of sample k + 1 − j.
It begins with the wave that has left the far end n − 1 samples ago, and meets the waves that this side has sent itself.
Two sides therefore exchange nothing but waves that are a delay old, though each reach has its friction; both find the
same pressures and flows within the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, ComponentContext, Port
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, ISOTHERMAL, Fluid, Mixture, Oil
from mbsfmu.modelling.data import Array, DataError, Measured, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity


def laminar_resistance(length: Array | float, diameter: Array, viscosity: Array) -> Array:
    """Return Δp / Q in Pa s/m³ of laminar flow [Hagen and Poiseuille]; lengths in m, the dynamic viscosity in Pa s."""
    return 128.0 * viscosity * length / (np.pi * diameter**4)


def reynolds_number(flow: Array, diameter: Array, kinematic_viscosity: Array) -> Array:
    """Return the Reynolds number of a flow in m³/s in a pipe with a diameter in m; viscosity in m²/s."""
    return 4.0 * np.abs(flow) / (np.pi * diameter * kinematic_viscosity)


def turbulent_factor(reynolds: Array) -> Array:
    """Return the friction factor divided by that of laminar flow, 64 / Re; 1 in laminar flow.

    Turbulent flow has 0.3164 / Re^¼ [Blasius 1913, up to Re = 10⁵; Merritt: Hydraulic Control Systems, 1967].
    """
    return np.maximum(0.3164 / 64.0 * np.maximum(reynolds, 1.0) ** 0.75, 1.0)


class Weighting(NamedTuple):
    """Weighting function W(τ) = Σ m e^(−n τ) of the acceleration in wall friction, τ = 4 ν t / d² [Zielke 1968].

    Laminar flow loses Δp = R (Q + ½ ∫ W(τ(t − u)) Q̇(u) du) with the resistance R of steady flow.

    Attributes
    ----------
    factors, rates
        m and n, dimensionless.
    """

    factors: tuple[float, ...]
    rates: tuple[float, ...]


UnsteadyFriction = Literal["trikha", "kagawa"]
WEIGHTINGS: dict[str, Weighting] = {
    "trikha": Weighting((40.0, 8.1, 1.0), (8000.0, 200.0, 26.4)),
    "kagawa": Weighting(
        (1.0, 1.16725, 2.20064, 3.92861, 6.78788, 11.6761, 20.0612, 34.4541, 59.1642, 101.590),
        (26.3744, 72.8033, 187.424, 536.626, 1570.60, 4618.13, 13601.1, 40082.5, 118153.0, 348316.0),
    ),
}
"""Approximations of Zielke's weighting function: by three terms [A. K. Trikha: An efficient method for simulating
frequency-dependent friction in transient liquid flow, J. Fluids Eng. 97 (1975)], and by ten [T. Kagawa et al.: High
speed and accurate computing method of frequency-dependent friction in laminar pipe flow for characteristics method,
Trans. JSME B 49 (1983)]."""

_STILL = Weighting((), ())
"""No friction by acceleration."""


@dataclass(frozen=True)
class LineGrid:
    """The grid of a line.

    Attributes
    ----------
    length, wave_speed
        l in m and c in m/s.
    reaches
        n, at least 2.
    friction
        As for `TransmissionLine`.
    """

    length: float
    wave_speed: float
    reaches: int
    friction: str

    @property
    def period(self) -> float:
        """Step Δ in s."""
        return self.length / self.wave_speed / self.reaches

    @property
    def has_friction(self) -> bool:
        """Whether flow loses pressure."""
        return self.friction != "none"

    @property
    def weighting(self) -> Weighting:
        """Weighting function of the acceleration."""
        return WEIGHTINGS.get(self.friction, _STILL)


class LineNumbers:
    """Coefficients of a line in one evaluation.

    Parameters
    ----------
    grid
        The grid.
    now
        Context of the component: parameters `diameter` and, with friction, `viscosity`; the oil.
    """

    def __init__(self, grid: LineGrid, now: ComponentContext) -> None:
        self._grid, self._now = grid, now
        area = 0.25 * np.pi * now["diameter"] ** 2
        self.volume = grid.length * area
        self.impedance = now.oil.density * grid.wave_speed / area
        self.compliance = self.volume / (now.oil.density * grid.wave_speed**2)

    @cached_property
    def _viscosity(self) -> Array:
        """Kinematic viscosity ν in m²/s."""
        return self._now["viscosity"] / self._now.oil.density

    @cached_property
    def resistance(self) -> Array:
        """R_Δ in Pa s/m³ of a reach."""
        reach = self._grid.length / self._grid.reaches
        return laminar_resistance(reach, self._now["diameter"], self._now["viscosity"])

    @cached_property
    def decays(self) -> list[Array]:
        """e^(−n θ) of each term of the weighting function."""
        return [np.exp(-exponent) for exponent in self._exponents]

    @cached_property
    def gains(self) -> list[Array]:
        """M (1 − e^(−n θ)) / (n θ) of each term."""
        terms = zip(self._grid.weighting.factors, self.decays, self._exponents, strict=True)
        return [factor * (1.0 - decay) / exponent for factor, decay, exponent in terms]

    @cached_property
    def _exponents(self) -> list[Array]:
        step = 4.0 * self._viscosity * self._grid.period / self._now["diameter"] ** 2
        return [rate * step for rate in self._grid.weighting.rates]

    @cached_property
    def gain(self) -> Array | float:
        """Sum of `gains`."""
        return sum(self.gains, start=0.0)

    @cached_property
    def arriving_impedance(self) -> Array:
        """Z + ½ R_Δ (1 + ½ Σ gains): pressure over flow where a wave arrives."""
        if not self._grid.has_friction:
            return self.impedance
        return self.impedance + 0.5 * self.resistance * (1.0 + 0.5 * self.gain)

    def excess(self, flow: Array) -> Array:
        """Return X in Pa."""
        factor = turbulent_factor(reynolds_number(flow, self._now["diameter"], self._viscosity))
        return self.resistance * (factor - 1.0) * flow

    def drop(self, flow: Array) -> Array | float:
        """Return the friction of a reach in steady flow in Pa."""
        return self.resistance * flow + self.excess(flow) if self._grid.has_friction else 0.0


@dataclass(frozen=True)
class _Point:
    """A point of the grid at one time.

    Attributes
    ----------
    pressure, flow
        p in Pa and Q in m³/s, away from this side.
    memories
        y of each term of the weighting function in m³/s.
    numbers
        Coefficients of the line.
    """

    pressure: Array
    flow: Array
    memories: list[Array]
    numbers: LineNumbers

    @cached_property
    def _laminar(self) -> Array:
        return self.numbers.resistance * (self.flow + 0.5 * sum(self.memories, start=np.asarray(0.0)))

    @cached_property
    def _excess(self) -> Array:
        return self.numbers.excess(self.flow)

    @cached_property
    def _leaving(self) -> Array:
        """Z Q − ½ f − ½ X."""
        return self.numbers.impedance * self.flow - 0.5 * self._laminar - self._excess

    @property
    def onward(self) -> Array:
        """Wave away from this side in Pa."""
        return self.pressure + self._leaving

    @property
    def back(self) -> Array:
        """Wave towards this side in Pa."""
        return self.pressure - self._leaving

    @property
    def loss(self) -> Array:
        """Power in W that friction takes from a reach with this flow."""
        return (self._laminar + self._excess) * self.flow


class LineSide:
    """Variables of one side of a line, and their update.

    Parameters
    ----------
    grid
        The grid.
    prefix
        What the names of the variables begin with.
    """

    def __init__(self, grid: LineGrid, prefix: str) -> None:
        self._grid, self._prefix = grid, prefix

    def _name(self, *words: str | int) -> str:
        return self._prefix + "_".join(map(str, words))

    # -- variables ------------------------------------------------------------------------------------------

    def states(self) -> tuple[Quantity, ...]:
        """Return the characteristic: the pressure less what the flow adds to it, linear between samples."""
        description = "pressure that the line would have at this end without flow there"
        return (Quantity(self._name("characteristic"), "Pa", nominal=1e6, description=description),)

    def discrete_states(self) -> tuple[Quantity, ...]:
        """Return the slope of the characteristic and, with friction, the waves and flows within the line."""
        slope = Quantity(self._name("slope"), "Pa/s", nominal=1e8, description="slope of the characteristic")
        if not self._grid.has_friction:
            return (slope,)
        flows = "flow within the line, away from this end"
        return (
            slope,
            Quantity(self._name("loss"), "W", nominal=1e3, description="friction of the half of the line at this end"),
            *(self._wave("older", point) for point in self._inner[:-1]),
            *(self._wave("newer", point) for point in self._inner),
            *(
                Quantity(self._name("flow", point), "m3/s", nominal=1e-4, description=flows)
                for point in self._remembering
            ),
            *(
                Quantity(self._name("memory", point, term), "m3/s", nominal=1e-4, description="past accelerations")
                for point in self._remembering
                for term in self._terms
            ),
        )

    def _wave(self, *words: str | int) -> Quantity:
        return Quantity(self._name(*words), "Pa", nominal=1e6, description="wave within the line")

    @property
    def _inner(self) -> range:
        """Points between the ends."""
        return range(1, self._grid.reaches)

    @property
    def _remembering(self) -> range:
        """Points with a memory of accelerations, from this end on."""
        return range(self._grid.reaches if self._terms else 0)

    @property
    def _terms(self) -> range:
        return range(1, 1 + len(self._grid.weighting.rates))

    # -- equations ------------------------------------------------------------------------------------------

    def flow(self, now: ComponentContext, port: str) -> Array:
        """Return the flow rate into the line at the port of this side in m³/s."""
        numbers = LineNumbers(self._grid, now)
        return (now.pressure(port) - now[self._name("characteristic")]) / numbers.arriving_impedance

    def rate(self, now: ComponentContext) -> dict[str, Array]:
        """Return the derivative of the characteristic."""
        return {self._name("characteristic"): now[self._name("slope")]}

    def loss(self, now: ComponentContext) -> Array | float:
        """Return the friction of the half of the line at this side in W."""
        return now[self._name("loss")] if self._grid.has_friction else 0.0

    def update(self, now: ComponentContext, port: str, arriving: Array, last: Array) -> tuple[dict[str, Array], Array]:
        """Return the discrete states after a sample, and the wave that leaves this end.

        Parameters
        ----------
        now
            Context of the component.
        port
            Port of this side.
        arriving
            Wave in Pa that left the far end n − 1 samples ago.
        last
            Wave in Pa that left this end at the last sample.
        """
        numbers = LineNumbers(self._grid, now)
        pressure, flow = now.pressure(port), self.flow(now, port)
        if not self._grid.has_friction:
            return self._sloped(now, arriving), pressure + numbers.impedance * flow
        here = self._point(now, numbers, 0, pressure, flow)
        points: dict[int, _Point] = {}
        for index in reversed(self._inner):
            met = last if index == 1 else now[self._name("older", index - 1)]
            kept = self._kept(now, numbers, index)
            through = (met - arriving - 2.0 * kept) / (2.0 * numbers.arriving_impedance)
            points[index] = self._point(now, numbers, index, 0.5 * (met + arriving), through)
            arriving = points[index].back
        points[0] = here
        start = self._memory_term(numbers, here.memories, flow)
        updated = {
            **self._sloped(now, arriving + start),
            self._name("loss"): self._half_loss(points),
            **{self._name("older", index): now[self._name("newer", index)] for index in self._inner[:-1]},
            **{self._name("newer", index): points[index].onward for index in self._inner},
            **self._memories(points),
        }
        return updated, here.onward

    def _sloped(self, now: ComponentContext, characteristic: Array) -> dict[str, Array]:
        """Return the slope by which the characteristic arrives at a pressure at the next sample."""
        return {self._name("slope"): (characteristic - now[self._name("characteristic")]) / self._grid.period}

    def _kept(self, now: ComponentContext, numbers: LineNumbers, index: int) -> Array | float:
        """Return the friction in Pa by earlier accelerations at a point at its new time."""
        if not self._terms:
            return 0.0
        memories = [now[self._name("memory", index, term)] for term in self._terms]
        return self._memory_term(numbers, memories, now[self._name("flow", index)])

    def _memory_term(self, numbers: LineNumbers, memories: list[Array], flow: Array) -> Array | float:
        """Return ¼ R_Δ (Σ e^(−n θ) y − Σ gains Q) in Pa, from y and Q of the last sample."""
        if not memories:
            return 0.0
        left = sum((decay * each for decay, each in zip(numbers.decays, memories, strict=True)), start=np.asarray(0.0))
        return 0.25 * numbers.resistance * (left - numbers.gain * flow)

    def _point(self, now: ComponentContext, numbers: LineNumbers, index: int, pressure: Array, flow: Array) -> _Point:
        """Return a point at its new time."""
        memories = [
            decay * now[self._name("memory", index, term)] + gain * (flow - now[self._name("flow", index)])
            for term, decay, gain in zip(self._terms, numbers.decays, numbers.gains, strict=True)
        ]
        return _Point(pressure, flow, memories, numbers)

    def _memories(self, points: Mapping[int, _Point]) -> dict[str, Array]:
        return {
            **{self._name("flow", index): points[index].flow for index in self._remembering},
            **{
                self._name("memory", index, term): points[index].memories[term - 1]
                for index in self._remembering
                for term in self._terms
            },
        }

    def _half_loss(self, points: Mapping[int, _Point]) -> Array:
        """Return the friction in W of the half of the line at this side, by the trapezoidal rule over its reaches."""
        loss = 0.5 * points[0].loss
        for index in self._inner:
            share = 1.0 if 2 * index < self._grid.reaches else 0.5 if 2 * index == self._grid.reaches else 0.0
            if share:
                loss = loss + share * points[index].loss
        return loss

    # -- start ----------------------------------------------------------------------------------------------

    def initial_state(self, now: ComponentContext, port: str, flow: Array) -> dict[str, Array]:
        """Return the characteristic at the start, with a flow in m³/s into the line at this side."""
        numbers = LineNumbers(self._grid, now)
        return {self._name("characteristic"): now.pressure(port) - numbers.arriving_impedance * flow}

    def initial_discrete(
        self, now: ComponentContext, pressure: Callable[[int], Array], flow: Array
    ) -> tuple[dict[str, Array | float], Array]:
        """Return the discrete states of steady flow, and the wave that leaves this end.

        Parameters
        ----------
        now
            Context of the component at the start.
        pressure
            Returns the pressure in Pa at a point.
        flow
            In m³/s away from this side.
        """
        numbers = LineNumbers(self._grid, now)
        none = np.asarray(0.0)
        if not self._grid.has_friction:
            return {self._name("slope"): 0.0}, pressure(0) + numbers.impedance * flow
        still = [none for _ in self._terms]
        points = {index: _Point(pressure(index), flow, still, numbers) for index in range(self._grid.reaches)}
        begun: dict[str, Array | float] = {
            self._name("slope"): 0.0,
            self._name("loss"): self._half_loss(points),
            **{self._name("older", index): points[index].onward for index in self._inner[:-1]},
            **{self._name("newer", index): points[index].onward for index in self._inner},
            **self._memories(points),
        }
        return begun, points[0].onward


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
    other end sent a delay ago. Grid and friction: see `hydraulics.transmission_line`.

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
