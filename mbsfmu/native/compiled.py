"""Runs in process in compiled code: who makes it, and when."""

from __future__ import annotations

import logging
import os

from mbsfmu.compiling.compiler import SWITCH, CompilerError, compile_library, has_compiler, kept_library
from mbsfmu.compiling.kept import tell_once
from mbsfmu.errors import InputError
from mbsfmu.formulations.history_layout import fingerprint
from mbsfmu.formulations.traces import toolkit
from mbsfmu.identity import content_key
from mbsfmu.native.header import native_solver
from mbsfmu.native.loop import CompiledRunner, MisfitError
from mbsfmu.native.sources import LOOP, identity_source, step_sources
from mbsfmu.simulation.implicit import ImplicitSolver
from mbsfmu.simulation.newton import Jacobian
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.solver import Solver

_LOGGER = logging.getLogger(__name__)


def compile_in_process(simulation: Simulation, key: object) -> None:
    """Let a simulation run in compiled code, where its solver can be compiled and there is a compiler or kept code.

    Whatever goes wrong with that never stops a run: it is told once, and CasADi's interpreter makes the steps.

    Parameters
    ----------
    simulation
        A simulation; it stays as it is with solvers that native units do not have, or a forward-difference Jacobian.
    key
        What the equations follow from: the model and the options that enter the code. What was compiled for it
        once is used again. None where nobody knows: then they are traced, and code is known by what it says.
    """
    if os.environ.get(SWITCH) == "0" or not _has_code(simulation.solver):
        return
    sources = step_sources(simulation) if key is None else None
    made_from = key if sources is None else sorted(sources.items())
    name = content_key(made_from, fingerprint(simulation.formulation.rule), toolkit(), sorted(LOOP.items()))
    try:
        runner = _kept(simulation, name)
        if runner is None and not has_compiler():
            return
        if runner is None:
            system = simulation.functions.system
            _LOGGER.info("%s: equations of %d coordinates are traced", system.name, len(system.coordinates))
            sources = {**(sources or step_sources(simulation)), **identity_source(name)}
            library = compile_library(sources, LOOP, None, key=name, portable=False)
            runner = CompiledRunner(library, simulation, name)
    except (CompilerError, OSError) as error:
        tell_once(f"{error}; runs in process are not compiled, CasADi's interpreter makes their steps")
        return
    simulation.runner = runner


def _has_code(solver: Solver) -> bool:
    """Tell whether there is C that makes the steps of a solver."""
    if isinstance(solver, ImplicitSolver):
        return type(solver) is ImplicitSolver and solver.jacobian is Jacobian.EXACT
    try:
        native_solver(solver)
    except InputError:
        return False
    return True


def _kept(simulation: Simulation, name: str) -> CompiledRunner | None:
    """Return what is kept under a name; what does not fit is told, and kept no longer."""
    library = kept_library(name)
    if library is None:
        return None
    try:
        return CompiledRunner(library, simulation, name)
    except MisfitError as error:
        tell_once(f"{error}; it is made anew")
        library.unlink(missing_ok=True)
        return None
