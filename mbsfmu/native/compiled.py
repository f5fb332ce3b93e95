"""Compiled runners for runs in process, in quickly compiled code first.

Runs that start in quickly compiled code and continue in optimized code.

Optimizing the code of a large model takes several times as long as all else of its first run. Both compute the same to
the last bit: where a run goes over changes nothing of it.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept
from mbsfmu.compiling.compilation import SOURCES, CompilerError
from mbsfmu.compiling.compiler import (
    compile_library,
    has_compiler,
    is_compiled,
    is_level_given,
    is_unoptimized,
    kept_library,
)
from mbsfmu.compiling.kept import warn_once
from mbsfmu.integration.implicit import ImplicitSolver, Jacobian
from mbsfmu.integration.solver import Solver
from mbsfmu.native.c_sources import LOOP, QUICK, StepSources, identity_source
from mbsfmu.native.loop import CompiledRunner, MisfitError
from mbsfmu.native.model_tables import native_solver
from mbsfmu.simulation.run_loop import Recording, RunLoop, Runner
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.state import fingerprint
from mbsfmu.tracing.kept_traces import toolkit

_LOGGER = logging.getLogger(__name__)


_NOTED = 0.1
"""Of the patience: for what less was spent in nobody is told."""


class Spent:
    """Time spent by steps of a model in unoptimized code.

    Attributes
    ----------
    seconds
        In all of its runs.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def note(self) -> None:
        """Take notice that it has grown."""


class TieredRunner(Runner):
    """Runner of unoptimized code until optimized code is available.

    Parameters
    ----------
    quick
        Makes the steps at first.
    optimized
        Makes the runner of optimized code, which takes long; called once, in a thread, while steps are made.
    patience
        For how many s of steps nothing is optimized: processor time, as a clock runs on while others compute; that of
        the process, as runs that record are made in a thread of their own.
    spent
        How many were spent already.
    """

    def __init__(
        self, quick: CompiledRunner, optimized: Callable[[], CompiledRunner], patience: float, spent: Spent
    ) -> None:
        self._runner = quick
        self._optimized = optimized
        self._patience = patience
        self._made: Future[CompiledRunner] | None = None
        self._is_last = False
        self._spent = spent
        self._noted = spent.seconds
        self._began = 0.0

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        begin, self._began = time.perf_counter(), time.process_time()
        self.interim_seconds = 0.0
        self._goes_over()
        if self._is_last:
            self._runner.run(run_loop, recording)
            return
        try:
            stands = self._runner.attempt(run_loop, recording, self._goes_over)
        finally:
            self.interim_seconds = time.perf_counter() - begin
            self._spend(time.process_time() - self._began)
        if not stands:
            self._runner.run(run_loop, recording)

    def _spend(self, seconds: float) -> None:
        self._spent.seconds += seconds
        if self._spent.seconds - self._noted > _NOTED * self._patience:
            self._noted = self._spent.seconds
            self._spent.note()

    def _goes_over(self) -> bool:
        """Return whether an optimized runner has become available; start its compilation when due."""
        if self._is_last:
            return False
        if self._made is None:
            if self._spent.seconds + time.process_time() - self._began > self._patience:
                self._made = Future()
                threading.Thread(target=self._make, args=(self._made,), daemon=True).start()
            return False
        if not self._made.done():
            return False
        self._is_last = True
        try:
            self._runner = self._made.result()
        except (CompilerError, OSError) as error:
            warn_once(f"{error}; code of runs in process stays as it is, not optimized")
            return False
        return True

    def _make(self, made: Future[CompiledRunner]) -> None:
        _LOGGER.info("steps are made while their code is optimized; the run restarts with it, and gives the same")
        try:
            made.set_result(self._optimized())
        except Exception as error:
            made.set_exception(error)


_LARGE = 8e3  # operations that take more than a second to be optimized
_PATIENCE = 27e-6  # s for each of them: a quarter of what optimizing takes, which another processor does
_KEPT_SOURCES, _NAME, _SPENT = ".sources", ".name", ".spent"
_FASTEST = 1


def compile_in_process(simulation: Simulation, key: object) -> None:
    """Use a compiled runner for a simulation, if its solver has C code and there is a compiler or cached code.

    A failure never stops a run: it is reported once, and CasADi's interpreter is used.

    Parameters
    ----------
    simulation
        A simulation; it stays as it is with solvers that native FMUs do not have, or a forward-difference Jacobian.
    key
        What the equations follow from: the model and the options that enter the code. The code that was made for it
        and for the rule's equations once is used again. None where nobody knows: then the equations are traced.

    Compiled code is known by its sources: models that differ in numbers alone, which are no part of these, share it.
    """
    if not is_compiled() or not _has_code(simulation.solver):
        return
    rule = fingerprint(simulation.formulation.rule)
    model = None if key is None else content_key(key, rule, toolkit())
    name = None if model is None else kept_name(model)
    sources = None
    if name is None:
        sources = _traced(simulation)
        name = content_key(sources.to_dict(), rule, toolkit(), sorted(LOOP.items()))
    try:
        runner = _kept(simulation, name, name) or _started(simulation, name, sources)
    except (CompilerError, OSError) as error:
        warn_once(f"{error}; runs in process are not compiled, CasADi's interpreter makes their steps")
        return
    if runner is None:
        return
    simulation.runner = runner
    if sources is not None and model is not None:
        keep_name(model, name)


def _started(simulation: Simulation, name: str, sources: StepSources | None) -> Runner | None:
    """Return the first runner without optimized code; None if nothing is compiled."""
    quick = content_key(name, sorted(QUICK.items()))
    if not has_compiler():
        if (runner := _kept(simulation, quick, name)) is None:
            warn_once(
                "there is no C compiler: CasADi's interpreter makes the steps of runs in process, a hundred times as "
                "slowly; install one (Debian: apt install gcc) or pip install 'mbsfmu[cross]'"
            )
        return runner
    read = SOURCES in os.environ  # by somebody, who looks for C
    soonest = is_unoptimized() and not read
    if soonest and (runner := _kept(simulation, quick, name)):
        return runner
    traced = sources is not None or (sources := _kept_sources(name)) is None
    if sources is None:
        sources = _traced(simulation)

    def made(key: str, files: Mapping[str, str], levels: Mapping[str, str]) -> CompiledRunner:
        files = {**files, **identity_source(name)}
        library = compile_library(files, levels, None, key=key, portable=False, as_given=levels is QUICK)
        return CompiledRunner(library, simulation, name)

    if soonest:
        return made(quick, sources.tables(), QUICK)
    patience = sources.length * _PATIENCE
    if is_level_given() or sources.length < _LARGE or (spent := _Spent(name)).seconds > patience:
        return made(name, sources.code(), LOOP)
    if traced:
        kept.store(name, toolkit(), _KEPT_SOURCES, zlib.compress(json.dumps(sources.to_dict()).encode(), _FASTEST))
    first = _kept(simulation, quick, name) or made(quick, sources.code() if read else sources.tables(), QUICK)
    return TieredRunner(first, lambda: made(name, sources.code(), LOOP), patience, spent)


def _traced(simulation: Simulation) -> StepSources:
    system = simulation.functions.system
    _LOGGER.info("%s: C is written for the equations of %d coordinates", system.name, len(system.coordinates))
    return StepSources.of(simulation)


def _has_code(solver: Solver) -> bool:
    """Return whether a solver has C code."""
    if isinstance(solver, ImplicitSolver):
        return type(solver) is ImplicitSolver and solver.jacobian is Jacobian.EXACT
    try:
        native_solver(solver)
    except InputError:
        return False
    return True


# -- what is kept -----------------------------------------------------------------------------------------------------


def _kept(simulation: Simulation, key: str, identity: str) -> CompiledRunner | None:
    """Return the cached library of a key; an incompatible one is reported and discarded."""
    library = kept_library(key)
    if library is None:
        return None
    try:
        return CompiledRunner(library, simulation, identity)
    except MisfitError as error:
        warn_once(f"{error}; it is compiled again")
        library.unlink(missing_ok=True)
        return None


class _Spent(Spent):
    """Stored time of a model, which accumulates over processes with short runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file = kept.find(name, toolkit(), _SPENT)
        try:
            super().__init__(0.0 if self._file is None else float(self._file.read_text()))
        except OSError:  # gone since
            super().__init__()

    def note(self) -> None:
        """Store the spent time."""
        before = self._file
        self._file = kept.store(self._name, toolkit(), _SPENT, f"{self.seconds:.6g}".encode())
        if before is not None and before != self._file:
            before.unlink(missing_ok=True)


def kept_name(key: str) -> str | None:
    """Return the name of the code that was made for a model before; None where none was."""
    file = kept.find(key, toolkit(), _NAME)
    try:
        return None if file is None else file.read_text()
    except OSError:  # gone since
        return None


def keep_name(key: str, name: str) -> None:
    """Keep the name of the code that was made for a model."""
    kept.store(key, toolkit(), _NAME, name.encode())


def _kept_sources(name: str) -> StepSources | None:
    """Return the cached sources of a key, so that later optimization needs no tracing."""
    file = kept.find(name, toolkit(), _KEPT_SOURCES)
    try:
        return None if file is None else StepSources.kept(json.loads(zlib.decompress(file.read_bytes())))
    except OSError:  # gone since
        return None
