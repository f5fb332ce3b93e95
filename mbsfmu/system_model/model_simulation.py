"""Simulations and fits of whole models and of single systems, with other values of variables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from mbsfmu.analysis.derivative_steps import DerivativeSteps
from mbsfmu.analysis.fitted_machines import ModelMachine, checked_bounds
from mbsfmu.analysis.fitting import FitResult, Free, checked_delay, checked_noise, fit
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.residuals import Experiment, Loss, Measured, listed, read_experiment
from mbsfmu.analysis.sensitivities import computed_variables, parameter_places
from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import Origin
from mbsfmu.base.registry import is_built_in
from mbsfmu.io.part_files import UserParts, read_part_file
from mbsfmu.model.body import without_shapes
from mbsfmu.model.machine import Machine, log_model_remarks
from mbsfmu.model.mechanism import mechanisms_of
from mbsfmu.model.model_data import ModelData
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import Bounds
from mbsfmu.modelling.variables import Variable
from mbsfmu.native.compiled import compile_in_process
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.simulation.run_options import RunKeywords, RunOptions, usual_formulation
from mbsfmu.simulation.simulation import Simulation, make_simulation
from mbsfmu.simulation.variable_table import ExposedVariables
from mbsfmu.systems.model_systems import coupled_system
from mbsfmu.systems.part_variables import make_system
from mbsfmu.tracing.workspace import Floats


class ValuedModel(Protocol):
    """A model whose variables have values at the start."""

    @property
    def signals(self) -> Mapping[str, Any]:
        """Signals by `system.variable`."""
        ...

    @property
    def start(self) -> Mapping[str, float]:
        """Values at the start by `system.variable`."""
        ...

    def model_copy(self, *, update: Mapping[str, Any]) -> Any:
        """Return a copy with other fields."""
        ...


Valued = TypeVar("Valued", bound=ValuedModel)


def with_values(model: Valued, simulation: Simulation, values: Mapping[str, float | str]) -> Valued:
    """Return a model with other values; see `CoupledModel.with_values`. The simulation is one of the model."""
    found: dict[str, float] = {}
    for name, given in values.items():
        variable = simulation.variable(name)
        value = simulation.number(name, given)
        reference = simulation.exposed.qualified.get(variable.name, variable.name)
        if reference in found:
            raise InputError(f"{variable.name} is given twice")
        simulation.set(name, value)
        found[reference] = float(value)
    signals = {reference: signal for reference, signal in model.signals.items() if reference not in found}
    return model.model_copy(update={"signals": signals, "start": {**model.start, **found}})


_LOGGER = logging.getLogger(__name__)
_UNLICENSED = "of the model: not stated; of the runtime in this unit: BSD-3-Clause"


def run_options(
    model: ModelData, options: RunOptions | None, given: RunKeywords, beside: Iterable[str] = ()
) -> RunOptions:
    """Return options with the default formulation of a model, if none is given; otherwise as `RunOptions.of`."""
    if given.get("formulation") is None and not (isinstance(options, RunOptions) and options.formulation):
        given = {**given, "formulation": (usual := formulation_of(model))}
        if usual != usual_formulation(0):
            _LOGGER.info("%s: the formulation is %s, as none is named and the model is large", model.name, usual)
    return RunOptions.of(options, given, beside)


def formulation_of(model: ModelData) -> str:
    """Return the default formulation of a model."""
    return usual_formulation(sum(each.topology.coordinates for each in mechanisms_of(model.systems).values()))


def monolithic_simulation(
    model: ModelData, options: RunOptions, *, compiled: bool, local_variables: bool = True
) -> Simulation:
    """Return a monolithic simulation of a model by options of `run_options`; see `CoupledModel.simulation`."""
    simulation, key = _traced_simulation(model, options, keeps_traces=compiled, local_variables=local_variables)
    if compiled:
        compile_in_process(simulation, key)
    return simulation


def ensemble_simulation(model: ModelData, options: RunOptions) -> tuple[Simulation, object]:
    """Return a simulation that runs no steps itself, and what its equations follow from; None where nobody knows."""
    return _traced_simulation(model, options, keeps_traces=True, local_variables=True)


def _traced_simulation(
    model: ModelData, options: RunOptions, *, keeps_traces: bool, local_variables: bool
) -> tuple[Simulation, object]:
    """Return a monolithic simulation with cached traces, and the data that determine its compiled code.

    New traces may be cached. The data are None where user-defined code is part of the equations.
    """
    log_model_remarks(model)
    content, parts = _content(model), UserParts.of(model)
    # Data and options determine the code, which user-defined code may prevent: signals too, as what they say of the
    # start, and so which loop equations count, stands in it.
    known = is_built_in(options.kind) and not parts
    equations = {"name": model.name, **content}
    absolute = options.kind.absolute
    system, traces = coupled_system(model, absolute=absolute, keeps_traces=known, for_others=keeps_traces)
    signals = {system.input_name(reference): signal for reference, signal in model.signals.items()}
    exposed = ExposedVariables(model.outputs, local_variables=local_variables)
    options = _completed(model, options)
    described = {
        **_described(model, model.name, (content, model.name, parts.texts)),
        "exposed": exposed,
        "machine": Machine.of(model),
        "start": model.start,
    }
    simulation = make_simulation(system, **described, signals=signals, options=options, traces=traces)
    # The step is given to compiled code, and so is a second run: they do not enter it, but for what follows from them.
    formulation = simulation.formulation
    decisive = options.content("step", "check_error"), formulation.options.content(), formulation.fitted
    return simulation, (equations, *decisive) if known else None


def in_equal_steps(options: RunOptions) -> RunOptions:
    """Return options with a fixed-step solver if they specify neither a solver nor a tolerance."""
    named = options.solver or options.relative_tolerance or options.absolute_tolerance
    return options if named else RunOptions.of(options, {"solver": Trapezoidal.name})


def _completed(model: ModelData, options: RunOptions) -> RunOptions:
    """Return options completed with the model's step."""
    chosen = options.completed()
    return chosen if chosen.step is not None else chosen.model_copy(update={"step": model.step})


def _content(model: ModelData) -> dict[str, Any]:
    """Return the data that determine the equations of a model, and its signals."""
    return without_shapes(model.model_dump(mode="json", include={"systems", "connections", "signals", "start"}))


def starts_of(model: ModelData, options: RunOptions) -> dict[str, dict[str, float]]:
    """Return the initial values of connected inputs and parameters, by system; see `CoupledModel.starts`."""
    whole = monolithic_simulation(model, options, compiled=False)
    names = whole.exposed.by_system
    result: dict[str, dict[str, float]] = {name: {} for name in model.systems}
    for source, target in model.connections:
        system, _, variable = target.partition(".")
        result[system][variable] = whole.get(names[source])
    return result


def simulation_of_system(
    model: ModelData,
    name: str,
    options: RunOptions,
    starts: Mapping[str, float] | None,
    *,
    local_variables: bool = True,
) -> Simulation:
    """Return a simulation of one system of a model alone; see `CoupledModel.simulation_of`.

    Its inputs are set at each communication point; it uses a fixed-step solver unless its options specify another.
    """
    options = in_equal_steps(options)
    if name not in model.systems:
        raise InputError(f"there is no system '{name}' in {model.name}; {closest_match(name, model.systems)}")
    values = starts_of(model, options)[name] if starts is None else starts
    values = {**model.start_of(name), **values}
    system = make_system(model.systems[name], name, absolute=options.kind.absolute, start_values=values)
    signals = {
        reference.removeprefix(f"{name}."): signal
        for reference, signal in model.signals.items()
        if reference.startswith(f"{name}.")
    }
    sources = [source.partition(".") for source, _ in model.connections]
    needed = tuple(variable for system, _, variable in sources if system == name)
    exposed = ExposedVariables(model.outputs, needed, whole=False, local_variables=local_variables)
    content = _content(model), f"{model.name}.{name}", UserParts.of(model).texts
    described = {
        **_described(model, f"{model.name}.{name}", content),
        "exposed": exposed,
        "machine": Machine.of(model, name),
    }
    return make_simulation(system, **described, signals=signals, options=_completed(model, options))


def _described(model: ModelData, name: str, content: object) -> dict[str, Any]:
    return {
        "name": name,
        "content": content,
        "origin": Origin(model.version, model.author, model.copyright, model.license or _UNLICENSED),
        "description": model.description,
        "stop_time": model.stop_time,
    }


def unit_from_dict(arguments: dict[str, Any], folder: Path | None = None) -> Simulation:
    """Return the simulation of an exported FMU.

    Parameters
    ----------
    arguments
        `model`: the model as a dictionary; `system`: name of the system that it is alone, or None for the
        whole; `starts`: start values of a system alone; `options`: those of `RunOptions`; `parts`: names of
        the files that define parts of it; `locals`: whether variables that are no outputs are shown.
    folder
        Where the files of parts are; None where what they define is given already.
    """
    files = [] if folder is None else [read_part_file(folder / name) for name in arguments["parts"]]
    with UserParts.from_files(files).given():
        model = ModelData.from_dict(arguments["model"])
    options = run_options(model, RunOptions.from_dict(arguments["options"]), {})
    exposed = {"local_variables": arguments["locals"]}
    if arguments["system"] is None:
        return monolithic_simulation(model, options, compiled=False, **exposed)
    return simulation_of_system(model, arguments["system"], options, arguments["starts"], **exposed)


class FittableModel(Protocol):
    """Protocol of models whose runs can be differentiated."""

    @property
    def signals(self) -> Mapping[str, Any]:
        """Signals by `system.variable`."""
        ...

    @property
    def start(self) -> Mapping[str, float]:
        """Start values by `system.variable`."""
        ...

    def differentiated_steps(self, subject: str, given: RunKeywords) -> DerivativeSteps:
        """Return the steps of runs that can be differentiated."""
        ...

    def model_copy(self, *, update: Mapping[str, Any]) -> Any:
        """Return a copy with changed fields."""
        ...


def fit_model(
    model: FittableModel,
    measured: Measured | Sequence[Measured],
    free: Mapping[str, Bounds],
    noise: Mapping[str, float | str],
    delays: Mapping[str, Bounds],
    loss: Loss,
    progress: Callable[[int], None] | None,
    given: RunKeywords,
) -> FitResult:
    """Fit a model; see `CoupledModel.fit`."""
    steps = model.differentiated_steps("a fit", given)
    simulation = steps.any
    computed, qualified = computed_variables(simulation), simulation.exposed.qualified
    read = [
        read_experiment(
            each,
            f"experiment {number}",
            simulation.functions.system.inputs,
            computed,
            lambda name: qualified.get(name, name),
            simulation.exposed.by_system,
        )
        for number, each in enumerate(listed(measured), start=1)
    ]
    chosen = parameter_places(simulation, list(free))
    delayed = [_output(name, simulation, computed) for name in delays]
    freed = [simulation.functions.system.parameters[index] for index in chosen]
    bounds = [checked_bounds(variable, each) for variable, each in zip(freed, free.values(), strict=True)]
    bounds += [checked_delay(name, each) for name, each in delays.items()]
    low, high = np.array(bounds).T
    measured_by = {name: _output(name, simulation, computed) for name in noise}
    deviations = {place: checked_noise(name, noise[name], computed[place]) for name, place in measured_by.items()}
    pairs = [(each, ModelMachine(_following(model, each, steps, given))) for each in read]
    found = fit(pairs, Free(tuple(chosen), tuple(delayed), low, high), deviations, loss, progress)
    count = len(chosen)
    short = dict(simulation.exposed.by_system)
    short |= {f"delay({reference})": f"delay({name})" for reference, name in short.items()}
    fitted = with_parameters(model, simulation, found.names[:count], found.values[:count])
    return replace(found, model=fitted, by_system=short)


def with_parameters(model: FittableModel, simulation: Simulation, names: Sequence[str], values: Floats) -> Any:
    """Return a model with other parameter values, by their names in a simulation of it."""
    qualified = simulation.exposed.qualified
    found = {qualified.get(name, name): value for name, value in zip(names, values.tolist(), strict=True)}
    return model.model_copy(update={"start": {**model.start, **found}})


def _following(
    model: FittableModel, experiment: Experiment, usual: DerivativeSteps, given: RunKeywords
) -> DerivativeSteps:
    """Return the steps of runs with the inputs of an experiment."""
    if not experiment.signals:
        return usual
    driven = model.model_copy(update={"signals": {**model.signals, **experiment.signals}})
    return driven.differentiated_steps("a fit", given)


def _output(name: str, simulation: Simulation, computed: Sequence[Variable]) -> int:
    found = chosen_places([name], computed, "output", simulation)
    if len(found) != 1:
        raise InputError(f"'{name}' means {len(found)} outputs; name one")
    return found[0]
