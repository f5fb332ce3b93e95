"""Fits of FMUs, whose runs are differentiated by differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.analysis.fitted_machines import FittedMachine, FittedRun, Request, RunSlopes, checked_bounds
from mbsfmu.analysis.fitting import FitResult, Free, checked_delay, checked_noise, fit
from mbsfmu.analysis.residuals import Experiment, Loss, Measured, listed, read_experiment
from mbsfmu.analysis.sensitivities import named_once
from mbsfmu.base.errors import InputError
from mbsfmu.base.repeated_warnings import each_once
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.variable_descriptions import (
    all_elements,
    described_aliases,
    described_measurement_units,
    described_variable,
    kind_of,
    refused_start,
)
from mbsfmu.cosim.runs.master import cosimulate
from mbsfmu.io.signals import AnySignal
from mbsfmu.io.trajectory import full_name
from mbsfmu.modelling.measurement_units import Bounds
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.tracing.workspace import Floats

_TOLERANCE = 1e-6
"""Relative error of runs of FMUs that suggest no tolerance: the default of most tools."""
_LEAST_SHARE = 1e-3
"""Of the range between the bounds: a parameter next to zero is changed by differences as if it were as large."""


@dataclass(frozen=True)
class _Description:
    """An FMU as its description has it, units included.

    Attributes
    ----------
    name
        Its name.
    parameters, inputs, outputs
        What can be fitted, driven and measured.
    step, tolerance
        Suggested communication step in s, and tolerance; None without.
    aliases
        The variable behind each other name of it.
    """

    name: str
    parameters: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    step: float | None
    tolerance: float | None
    aliases: Mapping[str, str] = field(default_factory=dict)

    def place(self, name: str) -> int:
        """Return the index of a parameter from a name of it, which may be an alias."""
        own = name.removeprefix(f"{self.name}.")
        return _place(self.aliases.get(own, own), self.parameters, self.name, "parameter")


@dataclass
class _Run:
    """A run of an FMU; see `FittedRun`."""

    times: Floats
    begin: Floats
    end: Floats
    differences: Callable[[Sequence[int]], RunSlopes]

    def slopes(self, chosen: Sequence[int]) -> RunSlopes:
        """Return derivatives by parameters; see `FittedRun`."""
        return self.differences(chosen)


class FmuMachine(FittedMachine):
    """An FMU that is fitted; its runs are differentiated by differences of second order.

    Central differences go to either side by the cube root of the tolerance of the FMU's runs, as a share of the
    parameter: round-off and error of the difference are then least about [Nocedal, Wright 2006, sect. 8.1]. At a bound
    they go to one side.

    Parameters
    ----------
    source
        The FMU file.
    described
        What it has.
    values
        Values of other parameters, by their names.
    signals
        Of its inputs, by their names.
    bounds
        Of the fitted parameters, by their indices.
    step
        Communication step in s.
    """

    def __init__(
        self,
        source: Path,
        described: _Description,
        values: Mapping[str, Any],
        signals: Mapping[str, AnySignal],
        bounds: Mapping[int, tuple[float, float]],
        step: float,
    ) -> None:
        self._source, self._name = source, described.name
        self._values, self._signals, self._bounds, self._step = dict(values), dict(signals), dict(bounds), step
        self.parameters = described.parameters
        self.outputs = described.outputs
        self.given = np.array([each.start for each in described.parameters], dtype=float)
        for place, each in enumerate(described.parameters):
            self.given[place] = values.get(each.name, self.given[place])
        tolerance = described.tolerance or _TOLERANCE
        self._share = float(np.cbrt(tolerance))
        self.derivatives = (
            f"derivatives by differences: {described.name} is an FMU, which gives none of a run by its parameters; "
            f"parameters are changed by {100.0 * self._share:.2g} %, the cube root of its tolerance of {tolerance:g}"
        )

    @property
    def steps(self) -> str:
        """The steps of its runs in words."""
        return f"communication steps of {1e3 * self._step:.4g} ms"

    def finer(self) -> tuple[FmuMachine, float]:
        """Return the FMU with half the communication step, where its error is of first order; see `FittedMachine`."""
        machine = copy(self)
        machine._step = 0.5 * self._step
        return machine, 2.0

    def run(self, request: Request) -> FittedRun:
        """Run the FMU; see `FittedMachine`."""
        chosen, values, stop, rows = request.chosen, request.values, request.stop, request.rows
        times, read = self._rows(chosen, values, stop, rows)

        def differences(by: Sequence[int]) -> RunSlopes:
            slopes = np.empty((len(times), len(rows), len(by)))
            for column, index in enumerate(by):
                place = list(chosen).index(index)
                (first, second), weights = self._points(index, float(values[place]))
                ends = []
                for value in (first, second):
                    moved = values.copy()
                    moved[place] = value
                    others, found = self._rows(chosen, moved, stop, rows)
                    ends.append([np.interp(times, others, each) for each in found.T])
                slopes[:, :, column] = weights[0] * read + np.tensordot(weights[1:], np.array(ends), 1).T
            return RunSlopes(times, slopes[:-1], slopes[1:])

        return _Run(times, read[:-1], read[1:], differences)

    def _points(self, index: int, value: float) -> tuple[tuple[float, float], Floats]:
        """Return two values next to one of a parameter, and weights of the run there and at these for the slope."""
        low, high = self._bounds[index]
        step = self._share * max(abs(value), _LEAST_SHARE * (high - low))
        step = min(step, 0.25 * (high - low))
        if low <= value - step and value + step <= high:
            return (value - step, value + step), np.array([0.0, -0.5, 0.5]) / step
        step = step if value + 2.0 * step <= high else -step
        return (value + step, value + 2.0 * step), np.array([-1.5, 2.0, -0.5]) / step

    def _rows(self, chosen: Sequence[int], values: Floats, stop: float, rows: Sequence[int]) -> tuple[Floats, Floats]:
        """Return times and outputs of a run with parameters, shapes (N + 1,) and (N + 1, rows)."""
        given = {self.parameters[index].name: value for index, value in zip(chosen, values.tolist(), strict=True)}
        names = [f"{self._name}.{self.outputs[row].name}" for row in rows]
        result = cosimulate(
            f"{self._name}={self._source}",
            step=self._step,
            stop=max(math.ceil(stop / self._step - 1e-9), 1) * self._step,
            parameters={f"{self._name}.{name}": value for name, value in {**self._values, **given}.items()},
            inputs={f"{self._name}.{name}": signal for name, signal in self._signals.items()},
            record=names,
        )
        times = np.asarray(result.time, dtype=float)
        once = np.append(np.diff(times) > 0.0, True)  # of several rows at an event the last one
        return times[once], np.column_stack([result[name] for name in names])[once]


def fit_fmu(
    source: str | Path,
    measured: Measured | Sequence[Measured],
    free: Mapping[str, Bounds],
    *,
    noise: Mapping[str, float | str] | None = None,
    delays: Mapping[str, Bounds] | None = None,
    loss: Loss = "linear",
    parameters: Mapping[str, Any] | None = None,
    step: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> FitResult:
    """Fit parameters of an FMU to measured signals, with derivatives by differences.

    Parameters
    ----------
    source
        The FMU file.
    measured
        As for `CoupledModel.fit`; columns are named as variables of the FMU. Without units they are in its units.
    free
        Least and greatest values of parameters, and of other start values that can be set, in its units.
    noise
        Standard deviations of measured outputs in its units; what the fit leaves, where they are not given.
    delays, loss, progress
        As for `CoupledModel.fit`.
    parameters
        Values of others of its parameters.
    step
        Communication step in s; by default what the FMU suggests, or half of the least time between measured values
        where this is shorter.

    Returns
    -------
    result
        As of models; `derivatives` and a sentence say that derivatives are differences. It has no model.

    Raises
    ------
    InputError
        When a name means nothing, bounds are none, there are fewer measured values than parameters, or the file is no
        FMU.
    SimulationError
        When the run with the first values fails.
    """
    path = Path(source)
    if path.suffix != ".fmu":
        raise InputError(f"{source} is refused: a fit is of a model or of one FMU, a file *.fmu")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise InputError(f"the step is {step:g} s; it must be positive")
    described = _described(path)
    short = {f"{described.name}.{each.name}": each.name for each in (*described.inputs, *described.outputs)}
    short |= {
        key: behind for alias, behind in described.aliases.items() for key in (alias, f"{described.name}.{alias}")
    }
    experiments = [
        read_experiment(each, f"experiment {number}", described.inputs, described.outputs, lambda name: name, short)
        for number, each in enumerate(listed(measured), start=1)
    ]
    places = [described.place(name) for name in free]
    chosen = named_once(list(free), places)
    known = [each.name for each in described.parameters]
    held = [described.place(name) for name in parameters or {}]
    values = {
        known[place]: described.parameters[place].number(value)
        for place, value in zip(named_once(list(parameters or {}), held), (parameters or {}).values(), strict=True)
    }
    delayed = [_place(name, described.outputs, described.name, "output") for name in delays or {}]
    noisy = {name: _place(name, described.outputs, described.name, "output") for name in noise or {}}
    deviations = {
        place: checked_noise(name, (noise or {})[name], described.outputs[place]) for name, place in noisy.items()
    }
    freed = zip(chosen, free.values(), strict=True)
    pairs = [checked_bounds(described.parameters[index], bounds) for index, bounds in freed]
    pairs += [checked_delay(name, bounds) for name, bounds in (delays or {}).items()]
    low, high = np.array(pairs).reshape(-1, 2).T
    bounds = dict(zip(chosen, zip(low.tolist(), high.tolist(), strict=False), strict=False))
    machines = [
        FmuMachine(path, described, values, each.signals, bounds, step or _step(each, described))
        for each in experiments
    ]
    with each_once():
        return fit(
            list(zip(experiments, machines, strict=True)),
            Free(tuple(chosen), tuple(delayed), low, high),
            deviations,
            loss,
            progress,
        )


def _described(path: Path) -> _Description:
    """Return what an FMU has; errors as for `fit_fmu`."""
    with closing(Archive(path)) as archive:
        description = archive.description
        units, aliases = described_measurement_units(description), described_aliases(description)
        parameters, inputs, outputs = [], [], []
        for element in all_elements(description):
            if kind_of(element.described) != "Real":
                continue
            variable, is_alias = described_variable(element, units[element.name]), element.name in aliases
            if variable.causality is Causality.INPUT and is_alias:
                continue
            if variable.causality is Causality.INPUT:
                inputs.append(variable)
            elif variable.variability is Variability.CONTINUOUS:
                outputs.append(variable)
            start = None if refused_start(element.described) else _number(element.described.start)
            if variable.causality is not Causality.INPUT and start is not None and not is_alias:
                parameters.append(replace(variable, start=start))
    suggested = description.defaultExperiment
    step, tolerance = (
        float(given) if given else None
        for given in (getattr(suggested, name, None) for name in ("stepSize", "tolerance"))
    )
    name = path.stem.replace(".", "_")  # a dot would part it from its variables
    return _Description(name, tuple(parameters), tuple(inputs), tuple(outputs), step, tolerance, aliases)


def _number(written: str | None) -> float | None:
    """Return the number that a description has as start value; None where there is none."""
    if written is None:
        return None
    try:
        return float(written)
    except ValueError:  # of an array
        return None


def _place(name: str, variables: Sequence[Variable], fmu: str, kind: str) -> int:
    names = [each.name for each in variables]
    return names.index(full_name(name.removeprefix(f"{fmu}."), names, kind))


def _step(experiment: Experiment, described: _Description) -> float:
    """Return the communication step in s: values between its ends are interpolated."""
    steps = [float(np.min(found)) for each in experiment.times if len(found := np.diff(each)[np.diff(each) > 0.0])]
    suggested = [] if described.step is None else [described.step]
    return min([*suggested, *(0.5 * each for each in steps)], default=experiment.stop)
