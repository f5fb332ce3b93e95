"""Gradient of scalars of a run by the discrete adjoint of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.measures import Measure, OutputEnds, measure
from mbsfmu.analysis.run_points import RecordedRun, chunks
from mbsfmu.analysis.sensitivities import computed_variables, parameter_places, read_values
from mbsfmu.analysis.start_derivatives import StartDerivatives, start_by_inputs, start_derivatives, start_follows_inputs
from mbsfmu.analysis.step_derivatives import StepDerivatives, step_matrices
from mbsfmu.base.errors import InputError
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
        Its derivatives by parameters, by their names.
    time
        Ends of the internal steps in s, shape (N + 1,).
    inputs
        Its derivatives by the values of inputs at these times, by the names of the inputs; each of shape (N + 1,). For
        an input that is interpolated between samples, multiply by the weights of the interpolation and add up.
    """

    value: float
    parameters: dict[str, float]
    time: Floats
    inputs: dict[str, Floats]


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


class Adjoint:
    """Discrete adjoint of a run for scalars of it.

    Trapezoidal steps are w_{n+1} = w_n + h/2 (F_n + F_{n+1}); with A = ∂F/∂w, B = ∂F/∂p and a scalar J(w, p) the
    derivative follows backward: (I − h/2 A_{n+1})ᵀ η = μ_{n+1}, μ_n = (I + h/2 A_n)ᵀ η + ∂J/∂w_n, and
    dJ/dp = Σ h/2 (B_n + B_{n+1})ᵀ η + ∂J/∂p + (∂w_0/∂p)ᵀ μ_0: the transpose of the very steps that were made, as
    automatic differentiation in reverse would have it [Sandu 2006; Maciąg, Malczyk, Frączek 2020 for the continuous
    adjoint of HDCA]. The states at all steps are the checkpoints; matrices are made anew from them, some hundred
    steps at a time. Products with Bᵀ are passes of reverse differentiation: their cost does not depend on the number
    of parameters.

    Parameters
    ----------
    simulation
        By `double-step` and the trapezoidal rule.
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
        self.run = RecordedRun(simulation, stop)
        self._read = read_values(self.run, self._rows)
        self._derivatives = StepDerivatives(self.run, self._rows, ())

    @cached_property
    def values(self) -> list[float]:
        """The scalars."""
        return [each.value(self._ends(column)) for each, column in zip(self._measures, self._columns, strict=True)]

    def _ends(self, column: int) -> OutputEnds:
        points = self.run.points
        return OutputEnds(points.times, self._read[points.begins, column], self._read[points.ends, column])

    def gradient(self, index: int, chosen: Sequence[int], inputs: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the derivatives of a scalar with respect to parameters, shape (chosen,), and inputs, (N + 1, inputs).

        Parameters
        ----------
        index
            Index of the measure.
        chosen, inputs
            Indices of parameters and of inputs.
        """
        run, points, derivatives = self.run, self.run.points, self._derivatives
        column = self._columns[index]
        given = self._measures[index].weights(self._ends(column))
        parameters = run.functions.parameters
        by_parameters, count = np.zeros(len(parameters)), len(points.steps)
        by_inputs = np.zeros((count + 1, len(run.functions.inputs)))
        adjoint = np.zeros(run.size)
        follows = len(inputs) > 0 and start_follows_inputs(run.simulation, inputs)
        for part in reversed(chunks(count)):
            begins, ends, sizes = points.begins[part], points.ends[part], points.steps[part]
            places, inverse = np.unique(np.concatenate([begins, ends]), return_inverse=True)
            at_begin, at_end = np.split(inverse, 2)
            slopes = derivatives.slopes(places)
            left, right = step_matrices(sizes, slopes.by_motion[at_begin], slopes.by_motion[at_end])
            backward = np.linalg.inv(left).transpose(0, 2, 1)
            forward = right.transpose(0, 2, 1)
            read_begin = slopes.read_by_motion[at_begin, column] * given.begin[part, None]
            read_end = slopes.read_by_motion[at_end, column] * given.end[part, None]
            solved = np.empty((len(sizes), run.size))
            for step in range(len(sizes) - 1, -1, -1):
                solved[step] = backward[step] @ (adjoint + read_end[step])
                adjoint = forward[step] @ solved[step] + read_begin[step]
                if (change := derivatives.rechosen(part.start + step)) is not None:
                    by_parameters += adjoint @ change[1]
                    adjoint = adjoint @ change[0]
            # What enters each point: rows for F and for what is read.
            by_rates, by_read = np.zeros((len(places), run.size)), np.zeros((len(places), len(self._rows)))
            half = 0.5 * sizes[:, None] * solved
            for index_of, weight in ((at_begin, given.begin[part]), (at_end, given.end[part])):
                np.add.at(by_rates, index_of, half)
                np.add.at(by_read[:, column], index_of, weight)
            free = run.freedom
            by_flow = by_rates[:, 2 * free :]
            pushed = by_rates[:, free : 2 * free]
            pushed = pushed + np.einsum("ij,ijk->ik", by_flow, slopes.flow_by_accelerations)
            pushed = pushed + np.einsum("ij,ijk->ik", by_read, slopes.read_by_accelerations)
            by_load = np.linalg.solve(slopes.mass.transpose(0, 2, 1), pushed[:, :, None])[:, :, 0]
            rows = {"by_load": by_load.T, "by_flow": by_flow.T, "by_read": by_read.T}
            if len(chosen) or follows:
                pulled = run.equations.pulled_back("parameters", self._rows)
                by_parameters += run.evaluate(pulled, places, **rows)[0][:, :, 0].sum(axis=0)
            if len(inputs):
                found = run.evaluate(run.equations.pulled_back("inputs", self._rows), places, **rows)[0][:, :, 0]
                times = np.empty(len(places), dtype=np.intp)
                times[at_begin], times[at_end] = np.arange(part.start, part.stop), np.arange(part.start, part.stop) + 1
                np.add.at(by_inputs, times, found)

        def by_start(start: StartDerivatives) -> Floats:
            return by_parameters @ start.parameters + adjoint @ run.of_states(start.motion)

        if follows:
            by_inputs[0, list(inputs)] += by_start(start_by_inputs(run.simulation, inputs))
        of_parameters = by_start(start_derivatives(run.simulation, chosen)) if len(chosen) else np.zeros(0)
        return of_parameters, by_inputs[:, list(inputs)]


def gradient(
    simulation: Simulation, of: str | Measure, parameters: Sequence[str], inputs: Sequence[str], stop: float
) -> Gradient:
    """Run a simulation and return the derivatives of a scalar with respect to parameters and inputs.

    Parameters
    ----------
    simulation
        By `double-step` and the trapezoidal rule.
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
        When the run fails or its steps are halved.
    """
    if not (parameters or inputs):
        raise InputError("name parameters or inputs to differentiate by")
    system = simulation.functions.system
    chosen = parameter_places(simulation, parameters) if parameters else []
    driving = chosen_places(inputs, system.inputs, "input", simulation) if inputs else []
    adjoint = Adjoint(simulation, [measure(of) if isinstance(of, str) else of], stop)
    by_parameters, by_inputs = adjoint.gradient(0, chosen, driving)
    return Gradient(
        adjoint.values[0],
        dict(zip((system.parameters[each].name for each in chosen), by_parameters.tolist(), strict=True)),
        adjoint.run.points.times,
        dict(zip((system.inputs[each].name for each in driving), by_inputs.T, strict=True)),
    )
