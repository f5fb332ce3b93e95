"""Scalar measures of a run, and their gradient by the discrete adjoint of its steps."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.analysis.derivative_steps import DerivativeErrors, DerivativeSteps, Steps, derivative_errors
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.sensitivities import check_numbers, computed_variables, parameter_places
from mbsfmu.analysis.start_derivatives import StartDerivatives, start_by_inputs, start_derivatives, start_follows_inputs
from mbsfmu.analysis.state_equations import regular
from mbsfmu.analysis.step_equations import chained
from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import combined
from mbsfmu.io.trajectory import NamedValues
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class OutputEnds:
    """One output at both ends of each step.

    Attributes
    ----------
    times
        Ends of the steps in s, shape (N + 1,).
    begin, end
        Values where each step begins and ends, shape (N,).
    """

    times: Floats
    begin: Floats
    end: Floats

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


@dataclass(frozen=True)
class OutputWeights:
    """Derivatives of a scalar with respect to an output at both ends of each step, shape (N,)."""

    begin: Floats
    end: Floats


class Measure(ABC):
    """A scalar of one output of a run.

    Attributes
    ----------
    output
        Name of the output.
    """

    output: str

    @abstractmethod
    def value(self, ends: OutputEnds) -> float:
        """Return the scalar."""

    @abstractmethod
    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return the derivatives with respect to the output."""

    def unit(self, output_unit: str) -> str:
        """Return the unit of the scalar, of an output in a unit."""
        return output_unit


@dataclass(frozen=True)
class EndValue(Measure):
    """The output at the end of the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return y(T)."""
        return float(ends.end[-1])

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 1 at the end, 0 elsewhere."""
        end = np.zeros_like(ends.end)
        end[-1] = 1.0
        return OutputWeights(np.zeros_like(end), end)


@dataclass(frozen=True)
class Integral(Measure):
    """∫ y^power dt over the run, by the trapezoidal rule."""

    output: str
    power: int = 1

    def value(self, ends: OutputEnds) -> float:
        """Return Σ h/2 (y_n^power + y_{n+1}^power)."""
        return float(np.sum(0.5 * ends.steps * (ends.begin**self.power + ends.end**self.power)))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return h/2 · power · y^(power − 1)."""
        half = 0.5 * ends.steps * self.power
        return OutputWeights(half * ends.begin ** (self.power - 1), half * ends.end ** (self.power - 1))

    def unit(self, output_unit: str) -> str:
        """Return the unit of the output to its power, by time."""
        try:
            return combined((output_unit, self.power), ("s", 1))
        except InputError:  # of an FMU, in a unit that is not of the SI
            return f"({output_unit}){self.power if self.power > 1 else ''}.s"


@dataclass(frozen=True)
class Mean(Measure):
    """The mean of the output over the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return ∫ y dt / T."""
        return Integral(self.output).value(ends) / float(ends.times[-1] - ends.times[0])

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return h / (2 T)."""
        share = 0.5 * ends.steps / float(ends.times[-1] - ends.times[0])
        return OutputWeights(share, share)


@dataclass(frozen=True)
class RootMeanSquare(Measure):
    """The root mean square of the output over the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return √(∫ y² dt / T)."""
        return float(np.sqrt(Integral(self.output, 2).value(ends) / float(ends.times[-1] - ends.times[0])))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return the derivatives of ∫ y² dt over 2 T times the value; 0 where the output is 0 throughout."""
        value = self.value(ends)
        inner = Integral(self.output, 2).weights(ends)
        share = 0.5 / (value * float(ends.times[-1] - ends.times[0])) if value > 0.0 else 0.0
        return OutputWeights(share * inner.begin, share * inner.end)


@dataclass(frozen=True)
class Largest(Measure):
    """The largest or smallest value of the output at ends of steps, with one derivative."""

    output: str
    sign: float = 1.0

    def value(self, ends: OutputEnds) -> float:
        """Return max y, or min y with the sign −1."""
        return float(self.sign * np.max(self.sign * np.concatenate([ends.begin, ends.end])))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 1 where the first of the largest values is, 0 elsewhere."""
        both = np.zeros(2 * len(ends.begin))
        both[int(np.argmax(self.sign * np.concatenate([ends.begin, ends.end])))] = 1.0
        return OutputWeights(*np.split(both, 2))


class LeastSquares(Measure):
    """Σ ((y(t_k) − m_k) / σ)² to measured values, y being interpolated between the ends of steps.

    Parameters
    ----------
    output
        Name of the output.
    times, values
        Times in s and measured values in the SI unit of the output, shape (k,).
    noise
        Standard deviation σ of the measured values; 1 by default.

    Raises
    ------
    InputError
        When shapes differ, a number is not finite, or the noise is not positive.
    """

    def __init__(self, output: str, times: ArrayLike, values: ArrayLike, noise: float = 1.0) -> None:
        self.output = output
        self._times, self._values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        if self._times.ndim != 1 or self._times.shape != self._values.shape:
            raise InputError(f"{output} is measured at {self._times.shape} times with {self._values.shape} values")
        if not (np.isfinite(self._times).all() and np.isfinite(self._values).all()):
            raise InputError(f"{output} has measured times or values that are no finite numbers")
        if not noise > 0.0:
            raise InputError(f"the noise of {output} is {noise:g}; it must be positive")
        self._noise = noise

    def value(self, ends: OutputEnds) -> float:
        """Return the sum of squares."""
        return float(np.sum(self._off(ends)[2] ** 2))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 2 (y − m) / σ², distributed over the ends of the steps of the measurements."""
        step, share, off = self._off(ends)
        begin, end = np.zeros_like(ends.begin), np.zeros_like(ends.end)
        np.add.at(begin, step, 2.0 * off * (1.0 - share) / self._noise)
        np.add.at(end, step, 2.0 * off * share / self._noise)
        return OutputWeights(begin, end)

    def unit(self, output_unit: str) -> str:  # noqa: ARG002
        """Return the unit of a ratio."""
        return "1"

    def _off(self, ends: OutputEnds) -> tuple[np.ndarray, Floats, Floats]:
        step, share = places_in_steps(ends.times, self._times, self.output)
        found = (1.0 - share) * ends.begin[step] + share * ends.end[step]
        return step, share, (found - self._values) / self._noise


def places_in_steps(ends: Floats, times: Floats, name: str) -> tuple[np.ndarray, Floats]:
    """Return the step of each time, and the fraction of the step before it.

    Raises
    ------
    InputError
        When a time is outside the run.
    """
    slack = 1e-9 * (ends[-1] - ends[0])
    if len(times) and (times.min() < ends[0] - slack or times.max() > ends[-1] + slack):
        raise InputError(
            f"{name} is measured from {times.min():g} s to {times.max():g} s, and the run is from {ends[0]:g} s to "
            f"{ends[-1]:g} s"
        )
    step = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(ends) - 2)
    return step, np.clip((times - ends[step]) / np.diff(ends)[step], 0.0, 1.0)


_KINDS = {
    "end": EndValue,
    "integral": Integral,
    "mean": Mean,
    "rms": RootMeanSquare,
    "max": Largest,
    "min": lambda output: Largest(output, -1.0),
}
_WRITTEN = re.compile(r"\s*(?:(\w+)\(\s*([^()]+?)\s*\)|([^()]+?))\s*")


def measure(text: str) -> Measure:
    """Return the measure of a text: `max(cylinder.pressure_piston)`, or the end value for a bare output.

    Raises
    ------
    InputError
        When it is none of end, integral, mean, rms, max and min of an output.
    """
    found = _WRITTEN.fullmatch(text)
    kind, inner, bare = found.groups() if found else (None, None, None)
    if bare is not None:
        return EndValue(bare)
    if kind not in _KINDS or inner is None:
        raise InputError(f"'{text}' is no measure of a run; write {', '.join(f'{each}(output)' for each in _KINDS)}")
    return _KINDS[kind](inner)


@dataclass(frozen=True)
class Gradient:
    """A scalar of a run and its derivatives.

    Attributes
    ----------
    value
        The scalar.
    parameters
        Its derivatives by parameters, by their names; `system.variable` and unique endings find them too.
    time
        Ends of the internal steps in s, shape (N + 1,).
    inputs
        Its derivatives by the values of inputs at these times, found in the same way; each of shape (N + 1,). For an
        input that is interpolated between samples, multiply by the weights of the interpolation and add up.
    errors
        Errors of the derivatives and of the scalar, which come of the steps.
    """

    value: float
    parameters: NamedValues[float]
    time: Floats = field(repr=False)
    inputs: NamedValues[Floats] = field(repr=False)
    errors: DerivativeErrors


def measured_outputs(simulation: Simulation, measures: Sequence[Measure]) -> list[int]:
    """Return the index of each measure's output among the computed variables.

    Raises
    ------
    InputError
        When there is no such output, or a pattern matches several.
    """
    computed = computed_variables(simulation)
    rows = [chosen_places([each.output], computed, "output", simulation) for each in measures]
    for each, found in zip(measures, rows, strict=True):
        if len(found) != 1:
            raise InputError(f"'{each.output}' means {len(found)} outputs; a scalar is of one")
    return [found[0] for found in rows]


@dataclass(frozen=True)
class _Rows:
    """Derivatives of a scalar so far: by w, shape (size,), by all parameters, and by inputs, shape (N + 1, inputs)."""

    motion: Floats
    parameters: Floats
    inputs: Floats


class Adjoint:
    """Discrete adjoint of a run for scalars of it.

    Trapezoidal steps are w_{n+1} = w_n + h/2 (F_n + F_{n+1}); with A = ∂F/∂w, B = ∂F/∂p and
    a scalar J(w, p) the derivative follows backward: (I − h/2 A_{n+1})ᵀ η = μ_{n+1}, μ_n = (I + h/2 A_n)ᵀ η + ∂J/∂w_n,
    and dJ/dp = Σ h/2 (B_n + B_{n+1})ᵀ η + ∂J/∂p + (∂w_0/∂p)ᵀ μ_0: the transpose of the very steps that were made, as
    automatic differentiation in reverse would have it [Sandu 2006; Maciąg, Malczyk, Frączek 2020 for the continuous
    adjoint of HDCA]. The states at all steps are the checkpoints; matrices are made anew from them, some hundred at a
    time. Products with Bᵀ are passes of reverse differentiation: their cost does not depend on the number of
    parameters.

    Parameters
    ----------
    simulation
        By double-step, and the trapezoidal rule or a Rosenbrock method.
    measures
        Scalars of the run.
    stop
        End of the run in s.
    """

    def __init__(self, simulation: Simulation, measures: Sequence[Measure], stop: float) -> None:
        rows = measured_outputs(simulation, measures)
        self._rows = list(dict.fromkeys(rows))
        self._columns = [self._rows.index(row) for row in rows]
        self._measures = list(measures)
        self.run = RecordedRun(simulation, stop, self._rows)

    @cached_property
    def values(self) -> list[float]:
        """The scalars."""
        return [each.value(self._ends(column)) for each, column in zip(self._measures, self._columns, strict=True)]

    def _ends(self, column: int) -> OutputEnds:
        readings = self.run.readings
        return OutputEnds(readings.times, readings.begin[:, column], readings.end[:, column])

    def gradient(self, index: int, chosen: Sequence[int], inputs: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the derivatives of a scalar with respect to parameters, shape (chosen,), and inputs, (N + 1, inputs).

        Errors as for `check_numbers`.

        Parameters
        ----------
        index
            Index of the measure.
        chosen, inputs
            Indices of parameters and of inputs.
        """
        return self._gradients(index, chosen, inputs, 1)[0]

    def gradient_by_formulas(
        self, index: int, chosen: Sequence[int], inputs: Sequence[int]
    ) -> list[tuple[Floats, Floats]]:
        """Return derivatives as `gradient`, and those by the embedded formula of the steps where there is one."""
        return self._gradients(index, chosen, inputs, self.run.equations.formula_count)

    @regular()
    def _gradients(
        self, index: int, chosen: Sequence[int], inputs: Sequence[int], formulas: int
    ) -> list[tuple[Floats, Floats]]:
        run = self.run
        column = self._columns[index]
        weights = self._measures[index].weights(self._ends(column))
        found = [
            _Rows(
                np.zeros(run.equations.size),
                np.zeros(len(run.functions.parameters)),
                np.zeros((len(run.readings.times), len(run.functions.inputs))),
            )
            for _ in range(formulas)
        ]
        last = len(run.readings.begin)
        for first, change in [*reversed(run.changes), (0, None)]:
            self._go_back(column, weights, slice(first, last), found)
            if change is not None:
                for rows in found:
                    rows.parameters[:] += rows.motion @ change[1]
                    rows.motion[:] = rows.motion @ change[0]
            last = first
        return [self._from_start(rows, chosen, inputs) for rows in found]

    def _from_start(self, rows: _Rows, chosen: Sequence[int], inputs: Sequence[int]) -> tuple[Floats, Floats]:
        """Return derivatives by parameters and inputs, which enter the start too; errors as for `check_numbers`."""
        run = self.run

        def by_start(start: StartDerivatives) -> Floats:
            return rows.parameters @ start.parameters + rows.motion @ run.equations.states.at_start(start)

        by_inputs = rows.inputs[run.equations.step_ends][:, list(inputs)]
        if inputs and start_follows_inputs(run.simulation, inputs):
            by_inputs[0] += by_start(start_by_inputs(run.simulation, inputs))
        by_parameters = by_start(start_derivatives(run.simulation, chosen)) if len(chosen) else np.zeros(0)
        check_numbers(by_parameters, by_inputs)
        return by_parameters, by_inputs

    def _go_back(self, column: int, given: OutputWeights, steps: slice, found: Sequence[_Rows]) -> None:
        """Go back over steps with one choice of coordinates, by a formula for each; rows become those before them."""
        equations, row = self.run.equations, self._rows[column]
        for part in reversed(equations.chunks(steps.start, steps.stop)):
            own = equations.steps(part, [row])
            for rows, along in zip(found, equations.formulas(own), strict=False):
                weights = given.begin[part], given.end[part]
                back = along.forward[::-1].transpose(0, 2, 1)
                read_begin = along.read_begin[:, 0] * weights[0][:, None]
                read_end = along.read_end[:, 0] * weights[1][:, None]
                entering = np.einsum("ijk,ik->ij", back, read_end[::-1]) + read_begin[::-1]
                moved = chained(back, entering, rows.motion)[::-1]
                solved = moved[1:] + read_end
                rows.motion[:] = moved[0]
                by_parameters, inputs_begin, inputs_end = equations.steps_pulled_back(along, solved, row, weights)
                rows.parameters[:] += by_parameters
                rows.inputs[part] += inputs_begin
                rows.inputs[part.start + 1 : part.stop + 1] += inputs_end


@dataclass(frozen=True)
class _Found:
    """A scalar of a run with its derivatives by parameters, and by inputs at times; shapes (p,) and (N + 1, inputs)."""

    recorded: RecordedRun
    interpolated: bool
    value: float
    parameters: Floats
    inputs: Floats

    @property
    def times(self) -> Floats:
        """Ends of steps in s, shape (N + 1,)."""
        return self.recorded.points.times


def gradient(
    steps: DerivativeSteps, of: str | Measure, parameters: Sequence[str], inputs: Sequence[str], stop: float
) -> Gradient:
    """Run a model and return the derivatives of a scalar with respect to parameters and inputs.

    Parameters
    ----------
    steps
        Steps of the model's runs.
    of
        The scalar: a measure, or its text as `max(cylinder.pressure_piston)`.
    parameters
        Names of parameters; start values are parameters too.
    inputs
        Patterns of inputs.
    stop
        End of the run in s.

    Raises
    ------
    InputError
        When a name means nothing, or the model has what is not differentiated.
    SimulationError
        When the run fails, or trapezoidal steps that are named are halved.
    """
    if not (parameters or inputs):
        raise InputError("name parameters or inputs to differentiate by")
    simulation = steps.any
    system, short = simulation.functions.system, simulation.exposed.by_system
    chosen = parameter_places(simulation, parameters) if parameters else []
    driving = chosen_places(inputs, system.inputs, "input", simulation) if inputs else []
    scalar = measure(of) if isinstance(of, str) else of
    by = [each.name for each in (*(system.parameters[k] for k in chosen), *(system.inputs[k] for k in driving))]

    def evaluate(tried: Steps) -> list[_Found]:
        adjoint = Adjoint(tried.begun(), [scalar], stop)
        return [
            _Found(adjoint.run, not isinstance(scalar, EndValue), adjoint.values[0], *rows)
            for rows in adjoint.gradient_by_formulas(0, chosen, driving)
        ]

    def compare(found: _Found, other: _Found, factor: float) -> DerivativeErrors:
        # Samples of an input are judged together: what counts is the effect of them all.
        coarse, fine = sorted((found, other), key=lambda each: len(each.times))
        samples = np.linalg.norm(found.inputs, axis=0)
        apart = np.linalg.norm(_at_times(fine, coarse.times) - coarse.inputs, axis=0)
        sizes = np.concatenate([found.parameters, samples])
        differing = np.concatenate([other.parameters, samples + apart])
        return derivative_errors(
            [of if isinstance(of, str) else f"the scalar of {of.output}"], by,
            np.append(simulation.functions.parameters[chosen], np.ones(len(driving))),
            (sizes[None, None], differing[None, None]), (np.array([[found.value]]), np.array([[other.value]])),
            factor=factor,
        )  # fmt: skip

    made = steps.choose(evaluate, compare, stop)
    made.errors.warn(steps.remedy(made.steps))
    found, names = made.found, [system.parameters[each].name for each in chosen]
    driven = [system.inputs[each].name for each in driving]
    return Gradient(
        found.value,
        NamedValues(dict(zip(names, found.parameters.tolist(), strict=True)), "parameter", short),
        found.times,
        NamedValues(dict(zip(driven, found.inputs.T, strict=True)), "input", short),
        made.errors,
    )


def _at_times(fine: _Found, times: Floats) -> Floats:
    """Return derivatives by inputs at fewer times, between which inputs are linear, shape (times, inputs)."""
    place = np.clip(np.searchsorted(times, fine.times, side="right") - 1, 0, len(times) - 2)
    share = np.clip((fine.times - times[place]) / np.diff(times)[place], 0.0, 1.0)[:, None]
    found = np.zeros((len(times), fine.inputs.shape[1]))
    np.add.at(found, place, (1.0 - share) * fine.inputs)
    np.add.at(found, place + 1, share * fine.inputs)
    return found
