"""Continuous states of a simulation for external solvers: y in ẏ = f(t, y)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Self

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import combined
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import Pattern, through

_MOMENTA = {"rad": "N.m.s", "m": "N.s"}


@dataclass(frozen=True)
class ContinuousStates:
    """Continuous states, their derivatives, and dependencies.

    Attributes
    ----------
    states
        Variables in the order of y: positions, velocities or momenta, states of circuits and blocks, integrals.
    own
        Those of them that the simulation does not show: momenta, coordinates that are chosen as independent, in whose
        place others may be chosen at an event, and all where it shows outputs alone.
    integrated
        The states, with all coordinates and their velocities in the place of those that are chosen among them.
    derivatives
        `der(…)` of each.
    indicators
        The event indicators that are asked for.
    dependencies
        Inputs and states that outputs, derivatives and event indicators depend on; None where it may be all.
    derivatives_known
        Whether rates and outputs have derivatives by the states.
    """

    states: tuple[Variable, ...]
    own: tuple[Variable, ...]
    integrated: tuple[Variable, ...]
    derivatives: tuple[Variable, ...]
    indicators: tuple[Variable, ...]
    dependencies: Mapping[str, tuple[str, ...] | None]
    derivatives_known: bool

    @classmethod
    def of(cls, simulation: Simulation, *, event_indicators: bool = False) -> Self:
        """Return the continuous states of a simulation, with its event indicators where these are asked for.

        Raises
        ------
        InputError
            When its formulation has no ẏ = f(t, y), or they are hidden, or their names are taken.
        """
        formulation = simulation.formulation
        if not formulation.has_explicit_form:
            having = ", ".join(name for name in FORMULATIONS.names() if FORMULATIONS.find(name).has_explicit_form)
            raise InputError(
                f"the formulation '{formulation.name}' has no rates of states for model exchange: its equations "
                f"are those of steps; {having} have them"
            )
        exposed = {variable.name: variable for variable in simulation.variables}
        moving, own = _moving(simulation)
        states = [*moving, *simulation.functions.system.states, *simulation.functions.system.integrals]
        system = simulation.functions.system
        integrated = (*system.coordinates, *system.velocities) if formulation.freedom_chosen else moving
        derivatives = tuple(_derivative(each) for each in states)
        indicators = system.event_indicators if event_indicators else ()
        if taken := [each.name for each in (*own, *derivatives, *indicators) if each.name in exposed]:
            raise InputError(f"model exchange calls a variable '{taken[0]}'; rename the part that has this name")
        own = tuple(replace(each, causality=Causality.LOCAL) for each in states if each.name not in exposed)
        return cls(
            states=tuple(exposed.get(each.name, each) for each in states),
            own=own,
            integrated=(*integrated, *states[len(moving) :]),
            derivatives=derivatives,
            indicators=indicators,
            dependencies=_dependencies(simulation, [each.name for each in states], [each.name for each in indicators]),
            derivatives_known=formulation.changes_known
            and not (formulation.freedom_chosen and simulation.functions.driven),
        )


def _moving(simulation: Simulation) -> tuple[list[Variable], list[Variable]]:
    """Return the variables of positions and velocities or momenta, and the new ones among them."""
    formulation, system = simulation.formulation, simulation.functions.system
    if formulation.freedom_chosen:
        own = [*_chosen("position", system.coordinates, formulation.freedom)]
        own += _chosen("velocity", system.velocities, formulation.freedom)
        return own, own
    if formulation.moving == "velocities":
        return [*system.coordinates, *system.velocities], []
    own = [
        Variable(
            f"momentum.{each.name}",
            unit=_MOMENTA.get(each.unit, "1"),
            nominal=float(magnitude),
            description=f"canonical momentum of {each.name}, with impulses of the loops",
        )
        for each, magnitude in zip(system.coordinates, formulation.explicit_scale[formulation.freedom :], strict=False)
    ]
    return [*system.coordinates, *own], own


def _chosen(what: str, among: Sequence[Variable], count: int) -> Iterator[Variable]:
    """Yield variables for independent coordinates; they have a unit if all candidates have the same."""
    first, *others = (each.unit for each in among)
    unit = "1" if any(each != first for each in others) else first
    for number in range(1, count + 1):
        told = f"{what} of the independent coordinate {number}, in SI units; which it is may change at an event"
        yield Variable(f"independent.{what}[{number}]", unit=unit, description=told)


def _derivative(state: Variable) -> Variable:
    unit = combined((state.unit, 1), ("s", -1))
    return Variable(f"der({state.name})", unit=unit, description=f"rate of {state.name}")


def _dependencies(
    simulation: Simulation, states: Sequence[str], indicators: Sequence[str]
) -> dict[str, tuple[str, ...] | None]:
    """Return the states and inputs on which each computed variable, derivative and event indicator depends."""
    inputs = [each.name for each in simulation.functions.system.inputs]
    computed = [each.name for each in simulation.variables if each.causality in (Causality.OUTPUT, Causality.LOCAL)]
    computed += indicators
    if simulation.functions.in_loops:
        return dict.fromkeys((*computed, *(f"der({each})" for each in states)))
    known = [*states, *inputs]
    found = _Patterns(simulation, len(states))
    rows = {**found.variables, **{f"der({name})": row for name, row in zip(states, found.rates, strict=True)}}
    result: dict[str, tuple[str, ...] | None] = {}
    for name in (*computed, *(f"der({each})" for each in states)):
        row = rows.get(name)
        result[name] = None if row is None else tuple(each for each, used in zip(known, row, strict=True) if used)
    return result


class _Patterns:
    """Sparsity patterns with respect to continuous states and inputs.

    Parameters
    ----------
    simulation
        The simulation.
    states
        Number of the states.
    """

    def __init__(self, simulation: Simulation, states: int) -> None:
        self._formulation = formulation = simulation.formulation
        self._functions = functions = simulation.functions
        self._given, self._system = functions.expressions, functions.system
        system = self._system
        self._width = states + len(system.inputs)
        everything = np.eye(self._width, dtype=bool)
        moving = formulation.freedom
        edges = np.cumsum([0, moving, moving, len(system.states), len(system.integrals), len(system.inputs)])
        positions, self._moving, own, integrals, inputs = (everything[first:last] for first, last in pairwise(edges))
        self._parts = {"states": own, "integrals": integrals, "inputs": inputs}
        self._add_motion(positions)
        flow = [self._parts["velocities"], self._moving_rates]
        if formulation.freedom_chosen:
            flow = [self._moving, self._of_any(self._parts["accelerations"], moving)]
        flow += [self._of(self._given.rates), self._of(self._given.integral_rates)]
        self.rates = np.concatenate(flow)

    @property
    def variables(self) -> dict[str, Pattern]:
        """Patterns of all variables."""
        system, parts = self._system, self._parts
        none = np.zeros((len(system.discrete), self._width), dtype=bool)
        rows = {
            "event_indicators": self._of(self._given.event_indicators),
            "coordinates": parts["coordinates"],
            "velocities": parts["velocities"],
            "accelerations": parts["accelerations"],
            "states": parts["states"],
            "discrete": none,
            "integrals": parts["integrals"],
            "outputs": self._of(self._given.outputs),
            "reactions": self._of_any(self._parts["accelerations"], len(system.reactions))
            | self._of(self._given.reactions),
        }
        return dict(
            chain.from_iterable(
                zip((each.name for each in getattr(system, part)), pattern, strict=True)
                for part, pattern in rows.items()
            )
        )

    def _of(self, value: ca.SX) -> Pattern:
        """Return the pattern of an expression of the context and the multipliers."""
        result = np.zeros((value.numel(), self._width), dtype=bool)
        for part, pattern in self._parts.items():
            result = result | through(self._given.depends(value, part), pattern)
        return result

    def _of_any(self, pattern: Pattern, rows: int) -> Pattern:
        """Return rows that are the union of a pattern's rows."""
        return np.tile(pattern.any(axis=0), (rows, 1))

    def _add_motion(self, positions: Pattern) -> None:
        """Add the dependencies of positions, velocities, accelerations and multipliers."""
        formulation, parts, given = self._formulation, self._parts, self._given
        count = len(self._system.coordinates)
        if isinstance(formulation, FirstOrderFormulation):
            parts |= {"coordinates": positions, formulation.moving: self._moving}
            velocities, self._moving_rates = (self._of(each) for each in formulation.kinetics)
            accelerations, multipliers = (self._of(each) for each in formulation.dynamics)
            parts |= {"velocities": velocities, "accelerations": accelerations, "multipliers": multipliers}
            return
        located, moved = positions, self._moving
        if formulation.freedom_chosen:
            driven = self._of(given.closure)
            located = self._of_any(np.concatenate([positions, driven]), count)
            moved = self._of_any(np.concatenate([located, self._moving, self._of(given.closure_rate)]), count)
        parts |= {"coordinates": located, "velocities": moved}
        forced = np.concatenate([self._of(given.residual), self._of(given.quadratic), self._of(given.closure)])
        # Accelerations of what is coupled follow from all equations of motion together.
        parts["accelerations"] = self._moving_rates = self._of_any(forced, count)
        parts["multipliers"] = self._of_any(forced, len(self._functions.rows))
