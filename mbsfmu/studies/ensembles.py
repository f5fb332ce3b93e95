"""Points of a study in ensembles: which can be, and how many at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from mbsfmu.analysis.linearization import FORMULATION
from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import has_compiler, is_compiled
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.coupled.ensemble import Ensemble
from mbsfmu.coupled.model_simulation import ensemble_simulation, run_options
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.modelling.variables import Causality
from mbsfmu.native.ensemble_library import EnsembleLibrary, ensemble_library, kept_ensemble_library
from mbsfmu.rules.trapezoidal import Trapezoidal
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.studies.points import StudyPoint

LEAST_STEPS = 2e6
"""Steps of all points with the same settings from which on an ensemble is compiled for them. The compiler takes as long
as single runs take for about so many more, of small and of large models; what is compiled is kept, and used by fewer.
Steps by a tolerance are fewer and more expensive: they count as if they were as long as the model's own.
"""
_TOGETHER = 16
"""Points that are run in one call: twice the machines in the widest vectors …"""
_ROOM = 2**28
"""… if what is recorded of them is at most so many bytes."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class EnsembleCode:
    """Compiled code for ensembles of a model with the settings of points.

    Attributes
    ----------
    simulation
        A simulation that makes no steps itself.
    key
        What its equations follow from; None where nobody knows.
    library
        The code.
    """

    simulation: Simulation
    key: object
    library: EnsembleLibrary

    @classmethod
    def of(cls, model: CoupledModel, settings: Mapping[str, Any]) -> Self:
        """Return the code for a model and settings, compiled where it is not kept.

        Raises
        ------
        InputError
            When the model has no ensembles.
        CompilerError
            When the compiler does not do its work.
        """
        simulation, key = ensemble_simulation(model, run_options(model, None, cast(RunKeywords, settings)))
        return cls(simulation, key, ensemble_library(simulation, key, None, errors=_has_errors(simulation)))


def ensemble_of(code: EnsembleCode, points: Sequence[StudyPoint], names: Mapping[str, str]) -> Ensemble:
    """Return the ensemble of points.

    Parameters
    ----------
    code
        For the model and their settings.
    points
        The points, which vary the same variables.
    names
        Names of variables in the simulation by `system.variable`.
    """
    values = {names[name]: [point.values[name] for point in points] for name in points[0].values}
    inputs = {name for name in values if code.simulation.variable(name).causality is Causality.INPUT}
    parameters = {name: each for name, each in values.items() if name not in inputs}
    driven = {name: values[name] for name in inputs}
    errors = _has_errors(code.simulation)
    return Ensemble(code.simulation, code.key, parameters, driven, {}, None, errors=errors, library=code.library)


def grouped(model: CoupledModel, points: Sequence[StudyPoint], stop: float) -> list[tuple[StudyPoint, ...]]:
    """Return the points as tasks: those that an ensemble can run several at a time, the others one by one.

    Code for ensembles is compiled here, so that the workers find it.

    Parameters
    ----------
    model, points
        The model, and points of monolithic runs.
    stop
        Their end in s.
    """
    by_settings: dict[str, list[StudyPoint]] = {}
    for point in points:
        by_settings.setdefault(repr(sorted(point.settings.items())), []).append(point)
    tasks: list[tuple[StudyPoint, ...]] = []
    for alike in by_settings.values():
        many = _together(model, alike, stop)
        tasks += [tuple(alike[first : first + many]) for first in range(0, len(alike), many)]
    return tasks


def _together(model: CoupledModel, points: Sequence[StudyPoint], stop: float) -> int:
    """Return how many points of the same settings are run at a time."""
    options = run_options(model, None, cast(RunKeywords, points[0].settings)).completed()
    if len(points) < 2 or not points[0].values or not (_has_ensembles(options) and is_compiled() and has_compiler()):
        return 1
    simulation, key = ensemble_simulation(model, options)
    errors = _has_errors(simulation)
    try:
        library = kept_ensemble_library(simulation, key, None, errors=errors)
        if library is None and len(points) * stop / simulation.step_size >= LEAST_STEPS:
            library = ensemble_library(simulation, key, None, errors=errors)
        if library is None:
            return 1
        ensemble_of(EnsembleCode(simulation, key, library), points[:1], simulation.exposed.by_system)
    except (InputError, CompilerError) as error:
        _LOGGER.info("the points are run one by one: %s", error)
        return 1
    bytes_each = 8 * len(simulation.continuous) * (stop / simulation.output_step(stop) + 1.0)
    return max(1, min(_TOGETHER, int(_ROOM / bytes_each)))


def _has_ensembles(options: RunOptions) -> bool:
    own = options.formulation == FORMULATION and options.solver in (Trapezoidal.name, *Rosenbrock.names)
    return own and not (options.check_error or options.iterations or (options.jacobian or "exact") != "exact")


def _has_errors(simulation: Simulation) -> bool:
    """Return whether single runs estimate their errors; steps by a tolerance control them instead."""
    return simulation.solver.error_record is not None
