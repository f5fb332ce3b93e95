"""One side of a line with a delay: the method of characteristics on the grid that this side needs.

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
from functools import cached_property

import numpy as np

from hydraulics.component_context import ComponentContext
from hydraulics.pipe_friction import WEIGHTINGS, Weighting, laminar_resistance, reynolds_number, turbulent_factor
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import Quantity

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
