"""Simulations by the names of their formulation and solver."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mbsfmu.errors import InputError
from mbsfmu.formulations.dca import Dca
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import Formulation, Tolerances
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.hdca import Hdca
from mbsfmu.formulations.initialization import Initialization
from mbsfmu.formulations.penalty import Penalty
from mbsfmu.formulations.system import System
from mbsfmu.signals import AnySignal
from mbsfmu.simulation.adams import Adams
from mbsfmu.simulation.explicit import ClassicalRungeKutta, ExplicitSolver
from mbsfmu.simulation.newton import Jacobian
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.solver import Solver
from mbsfmu.simulation.trapezoidal import TrapezoidalRule

FORMULATIONS: dict[str, type[Formulation]] = {each.name: each for each in (DoubleStep, Penalty, Dca, Hdca)}
SOLVERS = ("trapezoidal", "rk4", "adams", *ExplicitSolver.METHODS)


def make_simulation(
    system: System,
    *,
    name: str,
    signals: Mapping[str, AnySignal],
    formulation: str = DoubleStep.name,
    solver: str = "trapezoidal",
    step: float = 1e-3,
    jacobian: str = Jacobian.EXACT,
    relative_tolerance: float = 1e-6,
    absolute_tolerance: float = 1e-6,
    stabilisation: float = 0.0,
    tolerances: Tolerances | None = None,
    description: str = "",
    stop_time: float = 10.0,
) -> Simulation:
    """Make a simulation of a system.

    Parameters
    ----------
    system
        The system.
    name, description, stop_time
        Of the model.
    signals
        Signals by the input's name.
    formulation
        A key of `FORMULATIONS`.
    solver
        One of `SOLVERS`.
    step
        Internal step of the trapezoidal rule, and step of the output, in s.
    jacobian
        `exact` or `forward-difference`, for the trapezoidal rule.
    relative_tolerance, absolute_tolerance
        For the explicit solvers.
    stabilisation
        Rate in 1/s at which `dca` brings back loops that have drifted open, after Baumgarte; 0 for never.
    tolerances
        Of the Newton iteration.

    Raises
    ------
    InputError
        When a name is unknown, a number is out of range, or formulation and solver do not fit.
    """
    if formulation not in FORMULATIONS:
        raise InputError(f"there is no formulation '{formulation}'; there are {', '.join(FORMULATIONS)}")
    if solver not in SOLVERS:
        raise InputError(f"there is no solver '{solver}'; there are {', '.join(SOLVERS)}")
    if jacobian not in list(Jacobian):
        raise InputError(f"there is no jacobian '{jacobian}'; there are {', '.join(Jacobian)}")
    for what, value in (
        ("step", step),
        ("relative tolerance", relative_tolerance),
        ("absolute tolerance", absolute_tolerance),
    ):
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g}; it must be positive")
    if not (stabilisation >= 0 and math.isfinite(stabilisation)):
        raise InputError(f"the stabilisation is {stabilisation:g} 1/s; it must not be negative")
    kind = FORMULATIONS[formulation]
    if stabilisation and kind is not Dca:
        raise InputError(
            f"stabilisation is for the formulation 'dca', which closes loops in their accelerations; "
            f"'{formulation}' needs none"
        )
    if solver != "trapezoidal" and not kind.has_explicit_form:
        fitting = ", ".join(each.name for each in FORMULATIONS.values() if each.has_explicit_form)
        raise InputError(
            f"the solver '{solver}' needs an explicit form, which '{formulation}' does not have; "
            f"take the solver trapezoidal or the formulation {fitting}"
        )
    initialization = Initialization(system)
    functions = SystemFunctions(system, initialization.rows)
    limits = tolerances or Tolerances()
    chosen = Dca(functions, limits, stabilisation) if kind is Dca else kind(functions, limits)
    made: Solver
    if solver == "trapezoidal":
        made = TrapezoidalRule(chosen, step, jacobian=Jacobian(jacobian))
    elif solver == "rk4":
        made = ClassicalRungeKutta(chosen, step)
    elif solver == "adams":
        made = Adams(chosen, step, relative_tolerance=relative_tolerance, absolute_tolerance=absolute_tolerance)
    else:
        made = ExplicitSolver(
            chosen,
            step,
            method=solver,
            relative_tolerance=relative_tolerance,
            absolute_tolerance=absolute_tolerance,
        )
    return Simulation(name, initialization, made, signals, description=description, stop_time=stop_time)
