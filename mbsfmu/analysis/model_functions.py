"""Equations of a model as CasADi functions with names and units, for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.linear import pivot_columns
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class FunctionArgument:
    """Argument of a model's functions, with its elements.

    Attributes
    ----------
    names, units
        Of the elements; SI units.
    start
        Values at the start of a run, consistent with each other; shape (size,).
    nominal
        Magnitudes, shape (size,).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    start: Floats
    nominal: Floats

    @classmethod
    def of(cls, variables: Sequence[Variable], start: Floats) -> FunctionArgument:
        """Return the argument of some variables."""
        nominal = np.array([each.nominal or 1.0 for each in variables])
        return cls(
            tuple(each.name for each in variables),
            tuple(each.unit for each in variables),
            np.array(start, dtype=float),
            nominal,
        )


@dataclass(frozen=True)
class ModelFunctions:
    """The equations ẋ = f(x, y, u, p), 0 = g(x, y, u, p), outputs h(x, y, u, p) of a model, of index 1.

    x are independent coordinates z^i, their velocities, states of circuits and blocks and integrals of energy. y are
    dependent coordinates and their velocities, all accelerations and the multipliers of the loop equations. g are
    Φ = 0, Φ̇ = 0, M z̈ − Q + Φ_zᵀ λ = 0 and Φ̈ = 0 [Brenan, Campbell, Petzold 1996, sect. 2.5; the dependent
    coordinates are those of Jaiswal2021, sect. 2.2]: nothing drifts, as long as the dependent coordinates follow from
    the independent ones.

    Attributes
    ----------
    rates, residual, outputs
        CasADi functions of x, y, u, p with these names: f, shape of x; g, shape of y; h.
    x, y, u, p
        Names, units, start values and magnitudes of their arguments.
    output_names, output_units
        Of h.
    """

    rates: ca.Function
    residual: ca.Function
    outputs: ca.Function
    x: FunctionArgument
    y: FunctionArgument
    u: FunctionArgument
    p: FunctionArgument
    output_names: tuple[str, ...]
    output_units: tuple[str, ...]

    def dae(self) -> dict[str, ca.SX]:
        """Return them as `casadi.integrator` takes them: x, z (here y), u, p, ode and alg."""
        x, y, u, p = (ca.SX.sym(name, len(getattr(self, name).names)) for name in ("x", "y", "u", "p"))
        return {"x": x, "z": y, "u": u, "p": p, "ode": self.rates(x, y, u, p), "alg": self.residual(x, y, u, p)}


def model_functions(simulation: Simulation) -> ModelFunctions:
    """Return the equations of a simulation's system as functions.

    Parameters
    ----------
    simulation
        By `double-step`; it is initialized.

    Raises
    ------
    InputError
        When a function of x, y, u, p does not say all: of sampled blocks, and of algebraic loops that are solved by
        iteration.
    """
    functions, formulation = simulation.functions, simulation.formulation
    assert isinstance(formulation, DoubleStep)
    system, given = functions.system, functions.expressions
    if system.discrete:
        raise InputError(
            f"{simulation.name} has sampled blocks or lines with a delay ({system.discrete[0].name}), whose updates "
            "are no functions of time and state; replace them by continuous blocks and lines"
        )
    if system.loop_iterates:
        raise InputError(
            f"{simulation.name} has an algebraic loop that is solved by iteration, of {system.loop_iterates[0].name}: "
            "its equations are no CasADi expressions; break the loop by a state"
        )
    simulation.initialize()
    state = simulation.run_loop.present
    assert state.partition is not None
    free, bound = state.partition.independent.tolist(), state.partition.dependent.tolist()
    n, k = len(system.coordinates), len(system.states)
    rows = _independent_rows(simulation)
    symbols = {name: ca.SX.sym(name, size) for name, size in _sizes(simulation, len(rows)).items()}
    f, b = len(free), len(bound)
    parts = ca.vertsplit(symbols["x"], [0, f, 2 * f, 2 * f + k, symbols["x"].numel()])
    algebraic = ca.vertsplit(symbols["y"], [0, b, 2 * b, 2 * b + n, symbols["y"].numel()])
    multipliers = ca.SX(len(functions.rows), 1)
    for place, row in enumerate(rows):
        multipliers[row] = algebraic[3][place]
    values = {
        "coordinates": _merged(parts[0], free, algebraic[0], bound),
        "velocities": _merged(parts[1], free, algebraic[1], bound),
        "accelerations": algebraic[2],
        "multipliers": multipliers,
        "states": parts[2],
        "integrals": parts[3],
        "inputs": symbols["u"],
        "parameters": symbols["p"],
        "references": ca.SX(ca.DM(state.references)),
    }
    closed = [ca.SX(each)[rows, :] for each in (given.closure, given.closure_rate, given.closure_acceleration)]
    rates = ca.vertcat(
        given.symbol_by_part["velocities"][free],
        given.symbol_by_part["accelerations"][free],
        given.rates,
        given.integral_rates,
    )
    results = given.at([rates, ca.vertcat(*closed[:2], given.balance, closed[2]), given.outputs], values)
    arguments, names = list(symbols.values()), list(symbols)
    made = [
        ca.Function(name, arguments, [ca.densify(result)], names, [name])
        for name, result in zip(("rates", "residual", "outputs"), results, strict=True)
    ]
    coordinates, velocities = system.coordinates, system.velocities
    moving = [*(coordinates[each] for each in free), *(velocities[each] for each in free)]
    bound_ones = [*(coordinates[each] for each in bound), *(velocities[each] for each in bound)]
    loads = [Variable(f"multiplier.{system.constraints[functions.rows[row]]}", unit="1") for row in rows]
    shares: Floats = state.multipliers[rows]
    if len(rows) < len(functions.rows):  # of redundant loop equations other multipliers add up to the same loads
        jacobian = _jacobian(simulation)
        shares = np.asarray(
            np.linalg.lstsq(jacobian[rows].T, jacobian.T @ state.multipliers, rcond=None)[0], dtype=float
        )
    return ModelFunctions(
        *made,
        x=FunctionArgument.of(
            [*moving, *system.states, *system.integrals],
            np.concatenate([state.coordinates[free], state.velocities[free], state.states, state.integrals]),
        ),
        y=FunctionArgument.of(
            [*bound_ones, *system.accelerations, *loads],
            np.concatenate([state.coordinates[bound], state.velocities[bound], state.accelerations, shares]),
        ),
        u=FunctionArgument.of(system.inputs, simulation.run_loop.effective),
        p=FunctionArgument.of(system.parameters, simulation.run_loop.parameters),
        output_names=tuple(each.name for each in system.outputs),
        output_units=tuple(each.unit for each in system.outputs),
    )


def _jacobian(simulation: Simulation) -> Floats:
    """Return Φ_z of the loop equations in use where a simulation is, shape (m, n)."""
    simulation.formulation.load(simulation.run_loop.present)
    return simulation.functions.closure()[1].copy()


def _independent_rows(simulation: Simulation) -> list[int]:
    """Return which loop equations in use are independent at the start, as many as their rank."""
    functions = simulation.functions
    if functions.rank == len(functions.rows):
        return list(range(functions.rank))
    return sorted(pivot_columns(_jacobian(simulation).T, functions.rank)[1].tolist())


def _sizes(simulation: Simulation, rows: int) -> dict[str, int]:
    functions = simulation.functions
    n, free = len(functions.coordinates), len(functions.coordinates) - functions.rank
    return {
        "x": 2 * free + len(functions.states) + len(functions.integrals),
        "y": 2 * (n - free) + n + rows,
        "u": len(functions.inputs),
        "p": len(functions.parameters),
    }


def _merged(first: ca.SX, first_places: list[int], second: ca.SX, second_places: list[int]) -> ca.SX:
    """Return a vector combined from two others by index."""
    merged = ca.SX(len(first_places) + len(second_places), 1)
    for values, places in ((first, first_places), (second, second_places)):
        for index, place in enumerate(places):
            merged[place] = values[index]
    return merged
