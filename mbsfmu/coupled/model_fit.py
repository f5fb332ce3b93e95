"""Fits of models: conversion of names, bounds and files, and the fitted model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from mbsfmu.analysis.derivative_steps import DerivativeSteps
from mbsfmu.analysis.experiments import Experiment, Measured, listed, read_experiment
from mbsfmu.analysis.fitted_machines import ModelMachine, checked_bounds
from mbsfmu.analysis.fitting import FitResult, Free, checked_delay, checked_noise, fit
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.residuals import Loss
from mbsfmu.analysis.sensitivities import computed_variables, parameter_places
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.measured_numbers import Bounds
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.run_options import RunKeywords
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


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
