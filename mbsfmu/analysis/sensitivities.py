"""Forward sensitivities of a run: how what it computes changes with parameters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.run_points import RecordedRun, chunks
from mbsfmu.analysis.start_derivatives import start_derivatives
from mbsfmu.analysis.step_derivatives import StepDerivatives, step_matrices
from mbsfmu.base.errors import InputError
from mbsfmu.io.tabular import full_name
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SensitivityResult:
    """A run with its derivatives by parameters, in SI units.

    Attributes
    ----------
    time
        Ends of the internal steps in s, shape (N + 1,).
    outputs, parameters
        Names.
    output_units, parameter_units
        Their SI units.
    values
        What is computed, shape (N + 1, outputs). Where inputs jump these are the values after the jump.
    derivatives
        By the parameters, shape (N + 1, outputs, parameters).
    """

    time: Floats
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    output_units: tuple[str, ...]
    parameter_units: tuple[str, ...]
    values: Floats
    derivatives: Floats

    def __getitem__(self, name: str) -> Floats:
        """Return the values of an output, shape (N + 1,)."""
        return self.values[:, self.outputs.index(full_name(name, self.outputs, "output"))]

    def derivative(self, output: str, parameter: str) -> Floats:
        """Return the derivative of an output by a parameter, shape (N + 1,), in the units of both.

        Raises
        ------
        UnknownNameError
            When there is no such output or parameter.
        """
        row = self.outputs.index(full_name(output, self.outputs, "output"))
        column = self.parameters.index(full_name(parameter, self.parameters, "parameter"))
        return self.derivatives[:, row, column]


@dataclass(frozen=True)
class EndDerivatives:
    """Values and derivatives where steps begin and where they end.

    Attributes
    ----------
    times
        Ends of steps in s, shape (N + 1,).
    begin, end
        What is computed, shape (N, rows).
    begin_slopes, end_slopes
        Their derivatives by parameters, shape (N, rows, parameters).
    """

    times: Floats
    begin: Floats
    end: Floats
    begin_slopes: Floats
    end_slopes: Floats


def computed_variables(simulation: Simulation) -> list[Variable]:
    """Return the differentiable variables: outputs, coordinates, velocities, accelerations, states, integrals."""
    system = simulation.functions.system
    return [
        *system.outputs,
        *system.coordinates,
        *system.velocities,
        *system.accelerations,
        *system.states,
        *system.integrals,
    ]


def parameter_places(simulation: Simulation, names: Sequence[str]) -> list[int]:
    """Return the indices of parameters by their names, short ones where these are unique.

    Raises
    ------
    InputError
        When there is no such parameter, or one is named twice.
    """
    known = [each.name for each in simulation.functions.system.parameters]
    short = simulation.exposed.by_system
    given = [names] if isinstance(names, str) else list(names)
    found = [known.index(full_name(short.get(name, name), known, "parameter")) for name in given]
    if not found:
        raise InputError("no parameter is named; name one at least")
    if twice := [given[place] for place, index in enumerate(found) if index in found[:place]]:
        raise InputError(f"the parameter '{twice[0]}' is named twice")
    return found


def warn_outside(simulation: Simulation, chosen: Sequence[int], low: Floats, high: Floats) -> None:
    """Warn of parameters of which the model's value is not within the bounds: a search begins in their middle.

    Bounds in another unit than SI, as pressures in bar, show here.
    """
    parameters, values = simulation.functions.system.parameters, simulation.run_loop.parameters
    for index, least, greatest in zip(chosen, low.tolist(), high.tolist(), strict=True):
        if not least <= values[index] <= greatest:
            logger.warning(
                "%s is %.6g %s in the model, which is not between %.6g and %.6g: the search begins in their middle",
                *(parameters[index].name, values[index], parameters[index].unit, least, greatest),
            )


def along_run(simulation: Simulation, stop: float, rows: Sequence[int], chosen: Sequence[int]) -> EndDerivatives:
    """Run a simulation and return derivatives of what it computes by parameters.

    The step w_{n+1} = w_n + h/2 (F_n + F_{n+1}) is differentiated as it is, so that derivatives are those of the
    computed run: (I − h/2 A_{n+1}) S_{n+1} = (I + h/2 A_n) S_n + h/2 (B_n + B_{n+1}) with A = ∂F/∂w, B = ∂F/∂p. That is
    the staggered direct method [Caracotsios, Stewart 1985] with the Jacobian of the converged step. Where inputs jump,
    A and B jump with them and w does not; the instants do not depend on parameters. Where other coordinates become
    independent, S follows from the derivatives of the loop equations.

    Parameters
    ----------
    simulation, stop
        As for `sensitivities`.
    rows, chosen
        Indices of what is read, among `computed_variables`, and of the parameters; errors as for `RecordedRun`.
    """
    run = RecordedRun(simulation, stop, rows)
    points = run.points
    start = start_derivatives(simulation, chosen)
    columns: list[int] = np.flatnonzero(np.any(start.parameters != 0.0, axis=1)).tolist()
    derivatives = StepDerivatives(run, rows, columns)
    effect = start.parameters[columns]
    sensitivity = run.of_states(start.motion)
    shape = (len(points.steps), len(rows), len(chosen))
    found = EndDerivatives(
        points.times, run.read[points.begins], run.read[points.ends], np.empty(shape), np.empty(shape)
    )
    for part in chunks(len(points.steps)):
        begins, ends, sizes = points.begins[part], points.ends[part], points.steps[part]
        places, inverse = np.unique(np.concatenate([begins, ends]), return_inverse=True)
        at_begin, at_end = np.split(inverse, 2)
        slopes = derivatives.slopes(places)
        by_parameters, read_by_parameters = (each @ effect for each in derivatives.by_parameters(places, slopes))
        left, right = step_matrices(sizes, slopes.by_motion[at_begin], slopes.by_motion[at_end])
        added = 0.5 * sizes[:, None, None] * (by_parameters[at_begin] + by_parameters[at_end])
        both = np.linalg.solve(left, np.concatenate([right, added], axis=2))
        size = run.size
        entered, left_with = np.empty((2, len(sizes), size, len(chosen)))
        for index in range(len(sizes)):
            if (change := derivatives.rechosen(part.start + index)) is not None:
                sensitivity = change[0] @ sensitivity + change[1] @ start.parameters
            entered[index] = sensitivity
            sensitivity = both[index, :, :size] @ sensitivity + both[index, :, size:]
            left_with[index] = sensitivity
        found.begin_slopes[part] = slopes.read_by_motion[at_begin] @ entered + read_by_parameters[at_begin]
        found.end_slopes[part] = slopes.read_by_motion[at_end] @ left_with + read_by_parameters[at_end]
    return found


def sensitivities(
    simulation: Simulation, parameters: Sequence[str], outputs: Sequence[str], stop: float
) -> SensitivityResult:
    """Run a simulation and differentiate what it computes by parameters.

    Parameters
    ----------
    simulation
        By `double-step` and the trapezoidal rule.
    parameters
        Names of parameters; start values are parameters too.
    outputs
        Patterns such as `cylinder.*`; all outputs by default.
    stop
        End of the run in s.

    Raises
    ------
    InputError
        When a name means nothing, or the model has what is not differentiated.
    SimulationError
        When the run fails or its steps are halved.
    """
    computed, chosen = computed_variables(simulation), parameter_places(simulation, parameters)
    rows = chosen_places(outputs, computed, "output", simulation)
    if not outputs:
        rows = list(range(len(simulation.functions.system.outputs)))
    found = along_run(simulation, stop, rows, chosen)
    given = [simulation.functions.system.parameters[each] for each in chosen]
    read = [computed[each] for each in rows]
    return SensitivityResult(
        found.times,
        tuple(each.name for each in read),
        tuple(each.name for each in given),
        tuple(each.unit for each in read),
        tuple(each.unit for each in given),
        np.vstack([found.begin, found.end[-1:]]),
        np.concatenate([found.begin_slopes, found.end_slopes[-1:]]),
    )
