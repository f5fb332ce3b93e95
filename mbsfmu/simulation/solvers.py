"""Solvers by their names: rules of integration, which make implicit steps, and explicit methods."""

from __future__ import annotations

from mbsfmu.data import meant
from mbsfmu.errors import InputError
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.rules import Rule, find_rule, rule_names, rule_texts
from mbsfmu.simulation.adams import Adams
from mbsfmu.simulation.classical_runge_kutta import ClassicalRungeKutta
from mbsfmu.simulation.explicit import ExplicitSolver
from mbsfmu.simulation.implicit import ImplicitSolver
from mbsfmu.simulation.newton import Jacobian
from mbsfmu.simulation.solver import Solver

_EXPLICIT = ("rk4", "adams", *ExplicitSolver.METHODS)
REMEMBERING = ("adams", "radau", "bdf", "lsoda")
"""Explicit methods that remember earlier steps and cannot go on where these change."""


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers, rules first."""
    return *rule_names(), *_EXPLICIT


def solver_texts() -> tuple[str, ...]:
    """Return the names of all solvers, rules with their options as these are by default."""
    return *rule_texts(), *_EXPLICIT


def checked_rule(solver: str) -> Rule | None:
    """Return the rule of a solver that makes implicit steps; None for the other solvers.

    Raises
    ------
    InputError
        When there is no such solver, or its rule has no such option.
    """
    rule = None if solver in _EXPLICIT else find_rule(str(solver))
    if rule is None and solver not in _EXPLICIT:
        raise InputError(f"there is no solver '{solver}'; {meant(str(solver), solver_names())}")
    return rule


def adaptive_solvers() -> tuple[str, ...]:
    """Return the names of the solvers that choose their steps."""
    return tuple(each for each in _EXPLICIT if each != "rk4")


def makes_equal_steps(solver: str) -> bool:
    """Tell whether a solver has no step control."""
    return solver not in adaptive_solvers()


def make_solver(
    solver: str,
    formulation: Formulation,
    step: float,
    *,
    jacobian: Jacobian,
    relative_tolerance: float,
    absolute_tolerance: float,
) -> Solver:
    """Make a solver; one that makes implicit steps makes them by the formulation's rule."""
    if solver not in _EXPLICIT:
        return ImplicitSolver(formulation, step, jacobian=jacobian)
    if solver == "rk4":
        return ClassicalRungeKutta(formulation, step)
    if solver == "adams":
        return Adams(formulation, step, relative_tolerance=relative_tolerance, absolute_tolerance=absolute_tolerance)
    return ExplicitSolver(
        formulation,
        step,
        method=solver,
        relative_tolerance=relative_tolerance,
        absolute_tolerance=absolute_tolerance,
    )
