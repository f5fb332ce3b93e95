"""Gradient of scalars of a run by the discrete adjoint of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mbsfmu.analysis.derivative_errors import DerivativeErrors, derivative_errors
from mbsfmu.analysis.derivative_steps import DerivativeSteps, Steps
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.measures import EndValue, Measure, OutputEnds, OutputWeights, measure
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.run_points import regular
from mbsfmu.analysis.sensitivities import check_numbers, computed_variables, parameter_places
from mbsfmu.analysis.start_derivatives import StartDerivatives, start_by_inputs, start_derivatives, start_follows_inputs
from mbsfmu.analysis.step_equations import chained
from mbsfmu.base.errors import InputError
from mbsfmu.io.trajectory import NamedValues
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


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
