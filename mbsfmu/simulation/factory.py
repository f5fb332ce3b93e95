"""Simulations by the names of their formulation and solver."""

from __future__ import annotations

import inspect
import logging
import math
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Real

from mbsfmu.data import meant
from mbsfmu.errors import InputError
from mbsfmu.formulations.dca import Dca
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import TRAPEZOIDAL, Formulation, Tolerances
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.hdca import Hdca
from mbsfmu.formulations.history_layout import fingerprint
from mbsfmu.formulations.initialization import Initialization
from mbsfmu.formulations.loop_equations import LoopEquations
from mbsfmu.formulations.penalty import Penalty, suitable_penalty
from mbsfmu.formulations.system import System
from mbsfmu.identity import Origin, content_key
from mbsfmu.rules import Rule, rule_names
from mbsfmu.signals import AnySignal
from mbsfmu.simulation.newton import Jacobian
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.solvers import (
    REMEMBERING,
    adaptive_solvers,
    checked_rule,
    make_solver,
    makes_equal_steps,
    solver_names,
)

FORMULATIONS: dict[str, type[Formulation]] = {each.name: each for each in (DoubleStep, Penalty, Dca, Hdca, DcaAlm)}
_SMALLEST_RELATIVE = 1e-13
_SMALLEST_NEWTON, _LARGEST_NEWTON = 1e-15, 1e-4
TOLERANCE = 1e-6
"""Relative and absolute tolerance of adaptive solvers, where nothing is said."""
_OPENING, _LEAST_OPENING = 1e4, 1e-4
"""How far loops may drift open with adaptive solvers: by so many times their tolerance, and at least by that much."""
_ROUND_OFF = 1e-3
"""Of accelerations in rad/s² and m/s², for each rad or m, beyond which a step is told to be too small."""
_LOGGER = logging.getLogger(__name__)


def make_simulation(
    system: System,
    *,
    name: str,
    signals: Mapping[str, AnySignal],
    formulation: str = DoubleStep.name,
    solver: str = "trapezoidal",
    step: float = 1e-3,
    jacobian: str | None = None,
    relative_tolerance: float | None = None,
    absolute_tolerance: float | None = None,
    stabilisation: float | None = None,
    projections: bool | None = None,
    restart_momenta: bool | None = None,
    penalty: float | None = None,
    newton_tolerance: float | None = None,
    tolerances: Tolerances | None = None,
    description: str = "",
    stop_time: float = 10.0,
    content: object = None,
    origin: Origin = Origin(),  # noqa: B008 - it is frozen
) -> Simulation:
    """Make a simulation of a system.

    Parameters
    ----------
    system
        The system, in absolute coordinates where the formulation takes these.
    name, description, stop_time
        Of the model.
    signals
        Signals by the input's name.
    formulation
        A key of `FORMULATIONS`.
    solver
        One of `solver_names()`; rules of integration with their options as `name:option=value`.
    step
        Internal step of implicit solvers and rk4, and step of the output, in s.
    jacobian
        `exact`, the default, or `forward-difference`, of implicit solvers; with `dca-alm` the latter needs a Newton
        tolerance of 1e-10 where masses differ by orders of magnitude.
    relative_tolerance, absolute_tolerance
        For the adaptive solvers; `TOLERANCE` by default.
    stabilisation
        Rate in 1/s at which `dca`, `hdca`, and `dca-alm` without projections, bring back constraints that have
        drifted, after Baumgarte; 0 for never. By default 0 with `dca`, 10/s with `hdca` and 1/s with
        `dca-alm`.
    projections
        Whether `dca-alm` projects positions and velocities onto the constraints after each step; it does by default.
    restart_momenta
        Whether `hdca` starts its momenta anew where the impulses of the loops outweigh them; it does by default, but
        not with solvers that remember earlier steps (adams, radau, bdf, lsoda).
    penalty
        Penalty factor: of `penalty` in N/m and N m/rad, of `dca-alm` as a multiple of the bodies' mean mass in kg.
    newton_tolerance
        Largest increment with which Newton's iteration of implicit solvers ends: of a state as a share of its
        magnitude, its nominal value at least; of a coordinate ten times that in rad and m, or as a share of one that
        exceeds one. By default 1e-8.
    tolerances
        The same for coordinates and states apart.
    origin
        Where the model comes from.
    content
        What the system was made from: it identifies the simulation, together with all that decides its steps.

    Raises
    ------
    InputError
        When a name is unknown, a number is out of range, an option has no effect, or formulation and solver do not
        fit.
    """
    rule = checked_rule(solver)
    kind = _formulation(formulation, solver, rule)
    _check_numbers(
        {
            "step": step,
            "relative tolerance": relative_tolerance,
            "absolute tolerance": absolute_tolerance,
            "stabilisation": stabilisation,
            "penalty factor": penalty,
            "Newton tolerance": newton_tolerance,
        }
    )
    jacobian = _jacobian(jacobian, solver, rule)
    _refuse_tolerances(solver, {"relative tolerance": relative_tolerance, "absolute tolerance": absolute_tolerance})
    relative_tolerance = TOLERANCE if relative_tolerance is None else relative_tolerance
    absolute_tolerance = TOLERANCE if absolute_tolerance is None else absolute_tolerance
    _check_positive({"step": step, "relative tolerance": relative_tolerance, "absolute tolerance": absolute_tolerance})
    _check_resolved(relative_tolerance)
    _check_newton(solver, rule, newton_tolerance)
    _check_constraints(kind, stabilisation, penalty, projections)
    projections = _projects(kind, solver, projections)
    restart_momenta = _restarts(kind, solver, restart_momenta)
    if rule is not None and kind in (DoubleStep, Penalty) and system.coordinates:
        _tell_round_off(solver, step)
    initialization = Initialization(system)
    loops = _every_joint(initialization, system, projections) if kind.absolute else initialization.loops
    functions = SystemFunctions(system, loops)
    limits = tolerances or Tolerances()
    if newton_tolerance is not None:
        limits = replace(limits, coordinates=10.0 * newton_tolerance, states=newton_tolerance)
    if not makes_equal_steps(solver):
        limits = replace(limits, opening=min(limits.opening, max(_LEAST_OPENING, _OPENING * relative_tolerance)))
    basic = functions, limits, rule or TRAPEZOIDAL
    given = {} if penalty is None else {"penalty": penalty}
    chosen: Formulation
    if kind is Dca:
        chosen = Dca(*basic, stabilisation=stabilisation or 0.0)
    elif kind is Hdca:
        chosen = Hdca(*basic, stabilisation=stabilisation, restart_momenta=restart_momenta)
    elif kind is DcaAlm:
        chosen = DcaAlm(*basic, projections=projections, stabilisation=stabilisation, **given)
    elif kind is Penalty:
        suitable = suitable_penalty(initialization.largest_inertia, step)
        chosen = Penalty(*basic, penalty=suitable if penalty is None else penalty)
    else:
        chosen = kind(*basic)
    made = make_solver(
        solver,
        chosen,
        step,
        jacobian=jacobian,
        relative_tolerance=relative_tolerance,
        absolute_tolerance=absolute_tolerance,
    )
    # Step and tolerances are in saved states: what differs in them alone takes each other's.
    equations = (
        content,
        system.inputs,
        system.parameters,
        chosen.name,
        made.name,
        fingerprint(chosen.rule),
        str(jacobian),
    )
    constraints = (stabilisation, projections, restart_momenta, penalty, limits, sorted(signals.items()))
    identity = content_key(equations, constraints)
    described = {"description": description, "stop_time": stop_time, "origin": origin}
    return Simulation(name, initialization, made, signals, **described, identity=identity)


_OF_THE_MODEL = ("system", "name", "signals", "description", "stop_time", "content", "origin")
OPTIONS = tuple(each for each in inspect.signature(make_simulation).parameters if each not in _OF_THE_MODEL)
"""What may be chosen of a simulation; the rest comes from its model."""


def refuse_unknown_options(given: Iterable[str], known: Collection[str] = OPTIONS) -> None:
    """Check the names of options of a simulation.

    Raises
    ------
    InputError
        When one is unknown.
    """
    for name in given:
        if name not in known:
            raise InputError(f"there is no option '{name}' of a simulation; {meant(name, known)}")


def _every_joint(initialization: Initialization, system: System, projections: bool) -> LoopEquations:
    """Return the equations of all joints, of which as many are redundant as of the loop equations.

    With projections they count as independent: where constraints hold to round-off, multipliers come out with the
    least norm, and reactions with them.
    """
    redundant = len(initialization.functions.rows) - initialization.loops.rank
    every = len(system.constraints)
    return LoopEquations(tuple(range(every)), every if projections else every - redundant, (1.0,) * every)


def _tell_round_off(solver: str, step: float) -> None:
    """Warn where a step in s is so small that accelerations, differences of positions by its square, are round-off."""
    round_off = 4.0 * sys.float_info.epsilon / step**2
    if round_off > _ROUND_OFF:
        _LOGGER.warning(
            "with steps of %.3g s accelerations by the solver %s, differences of positions by the square of the step, "
            "have a round-off of up to %.2g rad/s2 or m/s2 for each rad or m; take larger steps, or the formulation "
            "dca, hdca or dca-alm, which find them from the equations",
            step,
            solver,
            round_off,
        )


def _jacobian(jacobian: str | None, solver: str, rule: Rule | None) -> Jacobian:
    """Return where the Jacobian comes from; only implicit solvers have one."""
    if jacobian is None:
        return Jacobian.EXACT
    if jacobian not in list(Jacobian):
        raise InputError(f"there is no jacobian '{jacobian}'; {meant(jacobian, Jacobian)}")
    if rule is None:
        having = ", ".join(rule_names())
        raise InputError(f"jacobian = {jacobian} has no effect with the solver '{solver}'; it has with {having}")
    return Jacobian(jacobian)


def _refuse_tolerances(solver: str, given: Mapping[str, float | None]) -> None:
    """Check that tolerances are given to adaptive solvers only."""
    for what, value in given.items():
        if value is not None and makes_equal_steps(solver):
            raise InputError(
                f"{what} = {value:g} has no effect with the solver '{solver}', which makes equal steps; it has with "
                f"{', '.join(adaptive_solvers())}"
            )


def _formulation(formulation: str, solver: str, rule: Rule | None) -> type[Formulation]:
    """Return the formulation of a name; the solver must fit."""
    if formulation not in FORMULATIONS:
        raise InputError(f"there is no formulation '{formulation}'; {meant(str(formulation), FORMULATIONS)}")
    kind = FORMULATIONS[formulation]
    if rule is None and not kind.has_explicit_form:
        fitting = ", ".join(each.name for each in FORMULATIONS.values() if each.has_explicit_form)
        raise InputError(
            f"the solver '{solver}' needs an explicit form, which '{formulation}' does not have; "
            f"take the solver {', '.join(rule_names())}, or the formulation {fitting}"
        )
    return kind


def _check_numbers(given: Mapping[str, object]) -> None:
    """Check that what is given are finite numbers: from Python, anything may come."""
    for what, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"the {what} is {value!r}; it must be a number")
        if not math.isfinite(value):
            raise InputError(f"the {what} is {value:g}; it must be finite")


def _check_positive(values: Mapping[str, float]) -> None:
    for what, value in values.items():
        if not value > 0:
            raise InputError(f"the {what} is {value:g}; it must be positive")


def _check_resolved(relative_tolerance: float) -> None:
    if relative_tolerance < _SMALLEST_RELATIVE:
        raise InputError(
            f"the relative tolerance is {relative_tolerance:g}; it must be at least {_SMALLEST_RELATIVE:g}, round-off"
        )


def _check_newton(solver: str, rule: Rule | None, tolerance: float | None) -> None:
    if tolerance is None:
        return
    if rule is None:
        raise InputError(
            f"the Newton tolerance is for the solvers {', '.join(rule_names())}; '{solver}' has no Newton iteration of "
            "ours"
        )
    if not _SMALLEST_NEWTON <= tolerance <= _LARGEST_NEWTON:
        raise InputError(
            f"the Newton tolerance is {tolerance:g}; it must lie between {_SMALLEST_NEWTON:g}, round-off, and "
            f"{_LARGEST_NEWTON:g}"
        )


def _restarts(kind: type[Formulation], solver: str, restart_momenta: bool | None) -> bool:
    """Tell whether momenta are started anew; only `hdca` has some, and what remembers steps would have to as well."""
    if restart_momenta is None:
        return kind is Hdca and solver not in REMEMBERING
    if kind is not Hdca:
        raise InputError(
            f"restart_momenta = {restart_momenta} has no effect with the formulation '{kind.name}', which has no "
            "momenta; it has with hdca"
        )
    if restart_momenta and solver in REMEMBERING:
        raise InputError(
            f"restart_momenta = True does not go with the solver '{solver}', which remembers earlier steps; take "
            f"{_of_one_step()}, or no restarts"
        )
    return restart_momenta


def _projects(kind: type[Formulation], solver: str, projections: bool | None) -> bool:
    """Tell whether steps end with projections; only `dca-alm` has a choice."""
    if projections is not None and kind is not DcaAlm:
        raise InputError(
            f"projections = {projections} has no effect with the formulation '{kind.name}'; it has with dca-alm"
        )
    projects = kind is DcaAlm and projections is not False
    if projects and solver in REMEMBERING:
        raise InputError(
            f"the solver '{solver}' remembers earlier steps, which projections change; take {_of_one_step()}, or no "
            "projections"
        )
    return projects


def _of_one_step() -> str:
    return ", ".join(each for each in solver_names() if each not in REMEMBERING)


def _check_constraints(
    kind: type[Formulation], stabilisation: float | None, penalty: float | None, projections: bool | None
) -> None:
    """Check the factors that keep the constraints."""
    if stabilisation is not None and stabilisation < 0:
        raise InputError(f"the stabilisation is {stabilisation:g} 1/s; it must not be negative")
    if stabilisation is not None and not (kind in (Dca, Hdca) or (kind is DcaAlm and projections is False)):
        raise InputError(
            f"stabilisation is for the formulations 'dca', 'hdca', and 'dca-alm' without projections, which close "
            f"loops in their accelerations or velocities; '{kind.name}' needs none"
        )
    if penalty is not None:
        _check_positive({"penalty factor": penalty})
    if penalty is not None and kind not in (Penalty, DcaAlm):
        raise InputError(f"a penalty factor is for the formulations 'penalty' and 'dca-alm'; '{kind.name}' has none")
