"""Solvers by their names: rules of integration, which make implicit steps, and the methods that register themselves."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.integration.adams import Adams
from mbsfmu.integration.classical_runge_kutta import ClassicalRungeKutta
from mbsfmu.integration.explicit import ExplicitSolver
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.integration.solver import SOLVERS, AdaptiveSolver, Solver
from mbsfmu.modelling import closest_match
from mbsfmu.rules import Rule, find_rule, rule_names, rule_texts
from mbsfmu.rules.trapezoidal import Trapezoidal

SHIPPED = (ClassicalRungeKutta, Adams, ExplicitSolver, Rosenbrock)
"""What registers itself when this module is loaded."""


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers, rules first."""
    return *rule_names(), *SOLVERS.names()


def solver_texts() -> tuple[str, ...]:
    """Return the names of all solvers, rules with their options as these are by default."""
    return *rule_texts(), *SOLVERS.names()


def find_solver(name: str) -> tuple[type[Solver], Rule]:
    """Return the kind of solver of a name, and the rule of integration of its formulation.

    Explicit methods take notice of no rule.

    Raises
    ------
    InputError
        When there is no such solver, or its rule has no such option.
    """
    if kind := SOLVERS.get(name):
        return kind, Trapezoidal()
    rule = find_rule(name)
    if rule is None:
        raise InputError(f"there is no solver '{name}'; {closest_match(name, solver_names())}")
    return ImplicitSolver, rule


def having(option: str) -> tuple[str, ...]:
    """Return the names of the solvers that have an option of their own."""
    return tuple(name for name in solver_names() if option in find_solver(name)[0].options)


def of_one_step() -> tuple[str, ...]:
    """Return the names of the solvers that do not remember earlier steps."""
    return tuple(name for name in solver_names() if name not in find_solver(name)[0].remembering)


def makes_equal_steps(solver: str) -> bool:
    """Tell whether a solver has no step control."""
    return not issubclass(find_solver(solver)[0], AdaptiveSolver)
