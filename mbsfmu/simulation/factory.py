"""Construction of simulations from options."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Unpack

from mbsfmu.base.identity import Origin, content_key
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.initialization.closing_loops import loops_at
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.solver import Solver
from mbsfmu.io.signals import AnySignal
from mbsfmu.model.machine import Machine
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import ExposedVariables
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.stepping.state import fingerprint
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.system import LARGE, Code, System, starts
from mbsfmu.tracing.kept_traces import Traces

STEP = 1e-3
"""Default internal step in s."""
WEAK = 1e-3
"""Relative singular value below which residuals of locked loops matter."""
_LOGGER = logging.getLogger(__name__)


def make_simulation(
    system: System,
    *,
    name: str,
    signals: Mapping[str, AnySignal],
    options: RunOptions | None = None,
    description: str = "",
    stop_time: float = 10.0,
    content: object = None,
    origin: Origin = Origin(),  # noqa: B008 - it is frozen
    traces: Traces | None = None,
    exposed: ExposedVariables = ExposedVariables(),  # noqa: B008 - it is frozen
    machine: Machine | None = None,
    start: Collection[str] = (),
    **given: Unpack[RunKeywords],
) -> Simulation:
    """Return a simulation of a system.

    Parameters
    ----------
    system
        The system, in absolute coordinates where the formulation takes these.
    name, description, stop_time
        Of the model.
    signals
        Signals by the input's name.
    options, given
        Options, and those of them that are given by name.
    origin
        Where the model comes from.
    content
        What the system was made from: it identifies the simulation, together with all that decides its steps.
    traces
        Has what was traced of the system before.
    exposed
        Which variables are shown, and which are outputs.
    machine
        What the system was made of, for pictures of its results.
    start
        Inputs among others that were given a value to start with, as `system.variable`: nobody has forgotten them.

    Raises
    ------
    InputError
        When an option is refused, or the system cannot be assembled.
    """
    chosen = RunOptions.of(options, given).completed()
    rule = chosen.method[1]
    step = STEP if chosen.step is None else chosen.step
    system = CoupledSystem.of(system)
    inputs = InputValues(system.inputs, signals, system.connected, start)
    qualified = system.qualified()
    inputs.check_rates([each.name for each in system.inputs if qualified.get(each.name, each.name) in start])
    initialization = Initialization(system, traces, starts(inputs.starting()))
    initialization.warn_unused_starts()
    solver = _made_solver(system, initialization, chosen, step)
    if isinstance(solver, ImplicitSolver):
        solver.warn_round_off()
    # Step and tolerances are in saved states: what differs in them alone takes each other's. Nor do checks matter.
    decisive = chosen.content("step", "relative_tolerance", "absolute_tolerance", "check_error")
    made_from = (content, system.inputs, system.parameters, fingerprint(rule), sorted(signals.items()))
    return Simulation(
        name,
        initialization,
        solver,
        inputs,
        description=description,
        stop_time=stop_time,
        identity=content_key(made_from, decisive),
        origin=origin,
        exposed=replace(exposed, qualified=qualified, driving=system.driving()),
        machine=machine,
        check_error=bool(chosen.check_error),
    )


def _made_solver(system: System, initialization: Initialization, chosen: RunOptions, step: float) -> Solver:
    """Return the solver of completed options with its formulation, for steps of a size in s."""
    kind, rule = chosen.method
    limits = chosen.tolerances or NewtonTolerances()
    steps, own = chosen.kind, chosen.own
    if initialization.locked and (own.form is Code.STRAIGHT or len(initialization.system.coordinates) <= LARGE):
        # Without independent coordinates its steps are statics: nothing is integrated that could drift.
        system, steps, own = initialization.system, DoubleStep, DoubleStep.Options()
    formulation = steps.of(initialization, system, limits, rule, own, step, kind.kind)
    _warn_unrolled_code(system, formulation)
    _warn_motionless(system.name, initialization, formulation)
    return kind.of(chosen.chosen_solver, formulation, step, **{each: getattr(chosen, each) for each in kind.options})


def _warn_unrolled_code(system: System, formulation: Formulation) -> None:
    """Warn of the long preparation of unrolled code for a large system."""
    count = len(system.start_system.coordinates)
    if not formulation.functions.in_loops and count > LARGE:
        _LOGGER.warning(
            "%s: the code of %s is unrolled here: with %d coordinates tracing and compiling it takes minutes, growing "
            "as the square of their number (a chain of 200 took five, one of 1024 hours and 15 GB); that of dca, hdca "
            "and dca-alm is in loops where no loop of connections is solved at every instant",
            *(system.name, formulation.name, count),
        )


def _warn_motionless(name: str, initialization: Initialization, formulation: Formulation) -> None:
    """Warn of motionless parts: all bodies fixed, or loops without freedom."""
    start, locked = initialization.system, initialization.loops.locked
    if not start.coordinates and start.reactions:
        _LOGGER.warning("%s: no body moves: all joints are fixed, and every variable of motion stays as it is", name)
    elif initialization.locked:
        statics = formulation.name == DoubleStep.name
        _LOGGER.warning(
            "%s: no body moves: no freedom is left by %s, with as many independent equations as there are joint "
            "coordinates, %d; a joint too many, or an axis in the wrong direction, does that; %s",
            name,
            loops_at(start, locked.rows),
            len(start.coordinates),
            "accelerations are zero, and reactions those of statics by the formulation double-step"
            if statics
            else "with the formulation double-step accelerations are exactly zero",
        )
    elif locked.firmness < WEAK and not formulation.holds_locked_loops:
        _LOGGER.warning(
            "%s: no freedom is left by %s, but next to none is taken: the least singular value of the equations is "
            "%.2g of the largest, and with %s what they hold may creep, with reactions that are far off; take the "
            "formulation double-step",
            *(name, loops_at(start, locked.rows), locked.firmness, formulation.name),
        )
