"""Solvers by name: integration rules for implicit steps, and registered methods."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.integration.explicit import Adams, ClassicalRungeKutta, ExplicitSolver
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.integration.solver import SOLVERS, AdaptiveSolver, Solver
from mbsfmu.modelling import closest_match
from mbsfmu.rules import Rule, find_rule, rule_names, rule_texts
from mbsfmu.rules.implicit_rules import Trapezoidal

SHIPPED = (ClassicalRungeKutta, Adams, ExplicitSolver, Rosenbrock)
"""Modules whose solvers are registered when this module is imported."""


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers, rules first."""
    return *rule_names(), *SOLVERS.names()


def solver_texts() -> tuple[str, ...]:
    """Return the names of all solvers; rules with options and defaults."""
    return *rule_texts(), *SOLVERS.names()


def find_solver(name: str) -> tuple[type[Solver], Rule]:
    """Return the solver class of a name, and the integration rule of its formulation.

    Explicit methods ignore the rule.

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
    """Return the names of the solvers with a given own option."""
    return tuple(name for name in solver_names() if option in find_solver(name)[0].options)


def of_one_step() -> tuple[str, ...]:
    """Return the names of the one-step methods."""
    return tuple(name for name in solver_names() if name not in find_solver(name)[0].remembering)


def makes_equal_steps(solver: str) -> bool:
    """Return whether a solver has fixed steps."""
    return not issubclass(find_solver(solver)[0], AdaptiveSolver)
