"""Forward sensitivities of a run: how what it computes changes with parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mbsfmu.analysis.derivative_errors import tell_inexact
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.start_derivatives import start_derivatives
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.io.tabular import full_name
from mbsfmu.modelling.variables import Variable
from mbsfmu.native.sensitivity_library import (
    ForwardSteps,
    SensitivityLibrary,
    library_of_points,
    sensitivity_library,
)
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class SensitivityResult:
    """A run with its derivatives by parameters, in SI units.

    Attributes
    ----------
    time
        Ends of the internal steps in s, and output times where steps pass over them; shape (N + 1,).
    outputs, parameters
        Names.
    output_units, parameter_units
        Their SI units.
    values
        What is computed, shape (N + 1, outputs). Where inputs jump these are the values after the jump.
    derivatives
        By the parameters, shape (N + 1, outputs, parameters).
    by_system
        Names by `system.variable`, which finds outputs and parameters too.
    """

    time: Floats
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    output_units: tuple[str, ...]
    parameter_units: tuple[str, ...]
    values: Floats
    derivatives: Floats
    by_system: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __getitem__(self, name: str) -> Floats:
        """Return the values of an output, shape (N + 1,)."""
        return self.values[:, self._row(name)]

    def derivative(self, output: str, parameter: str) -> Floats:
        """Return the derivative of an output by a parameter, shape (N + 1,), in the units of both.

        Raises
        ------
        UnknownNameError
            When there is no such output or parameter.
        """
        meant = full_name(parameter, self.parameters, "parameter", by_system=self.by_system)
        return self.derivatives[:, self._row(output), self.parameters.index(meant)]

    def _row(self, output: str) -> int:
        return self.outputs.index(full_name(output, self.outputs, "output", by_system=self.by_system))


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
    given = [names] if isinstance(names, str) else list(names)
    found = [known.index(full_name(name, known, "parameter", by_system=simulation.exposed.by_system)) for name in given]
    if not found:
        raise InputError("no parameter is named; name one at least")
    return named_once(given, found)


def named_once(given: Sequence[str], found: list[int]) -> list[int]:
    """Return the indices of parameters that names were found to mean.

    Raises
    ------
    InputError
        When one is named twice.
    """
    if twice := [given[place] for place, index in enumerate(found) if index in found[:place]]:
        raise InputError(f"the parameter '{twice[0]}' is named twice")
    return found


def check_numbers(*derivatives: Floats) -> None:
    """Refuse derivatives of a run that are no numbers.

    Raises
    ------
    SimulationError
        When one of them is not.
    """
    if not all(np.isfinite(each).all() for each in derivatives):
        raise SimulationError(
            "the derivatives of the run are no numbers: an equation has no derivative at one of its points, or none of "
            "second order, which steps of Rosenbrock methods take; take differences of runs"
        )


class DifferentiableRun:
    """A run, and the derivatives of what it computes by parameters, which are found when they are asked for.

    Steps are differentiated as they are, so that derivatives are those of the computed run: those of Rosenbrock methods
    as in `RosenbrockStepEquations`, and w_{n+1} = w_n + h/2 (F_n + F_{n+1}) as
    (I − h/2 A_{n+1}) S_{n+1} = (I + h/2 A_n) S_n + h/2 (B_n + B_{n+1}) with A = ∂F/∂w, B = ∂F/∂p, the staggered direct
    method [Caracotsios, Stewart 1985] with the Jacobian of the converged step. Where inputs jump, A and B jump with
    them and w does not; the instants do not depend on parameters. Where other coordinates become independent, S follows
    from the derivatives of the loop equations. Long runs by the trapezoidal rule, and such runs that are repeated, do
    it in compiled code (`runtime/adjoint/sensitivities.c`).

    Parameters
    ----------
    simulation, stop
        As for `sensitivities`.
    rows
        Indices of what is read, among `computed_variables`; errors as for `RecordedRun`.

    Attributes
    ----------
    times
        Ends of steps and output times in s, shape (N + 1,).
    begin, end
        What is computed where steps begin and end, shape (N, rows).
    """

    def __init__(self, simulation: Simulation, stop: float, rows: Sequence[int]) -> None:
        self._simulation, self._rows = simulation, list(rows)
        self._library = library_of_points(simulation)
        self._run = RecordedRun(simulation, stop, rows, self._library)
        readings = self._run.readings
        self.times, self.begin, self.end = readings.times, readings.begin, readings.end

    def slopes(self, chosen: Sequence[int]) -> tuple[Floats, Floats]:
        """Return derivatives by parameters where steps begin and end, each of shape (N, rows, parameters).

        The simulation must still have the parameters of the run. Errors as for `check_numbers`.

        Parameters
        ----------
        chosen
            Indices of the parameters.
        """
        return self._slopes(chosen, 1)[0]

    def slopes_by_formulas(self, chosen: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Return derivatives as `slopes` does, and those by the embedded formula of the steps where there is one."""
        return self._slopes(chosen, self._run.equations.formula_count)

    def _slopes(self, chosen: Sequence[int], formulas: int) -> list[tuple[Floats, Floats]]:
        run, count = self._run, len(self.begin)
        start = start_derivatives(self._simulation, chosen)
        columns: list[int] = np.flatnonzero(np.any(start.parameters != 0.0, axis=1)).tolist()
        library = sensitivity_library(self._simulation, columns, self._rows, count)
        if library is not None and self._library is None:
            run.reduced.complete_in(library, self._rows)
        found = np.empty((formulas, 2, count, len(self._rows), len(chosen)))
        changed = run.changes
        lasts = [*(step for step, _ in changed), count]
        sensitivity = np.stack([run.equations.at_start(start)] * formulas)
        for (first, change), last in zip([(0, None), *changed], lasts, strict=True):
            if change is not None:
                sensitivity = change[0] @ sensitivity + change[1] @ start.parameters
            effect, steps = start.parameters[columns], slice(first, last)
            if library is None:
                _go_forward(run, steps, (columns, self._rows), effect, sensitivity, found)
            else:
                sensitivity[0] = _go_forward_compiled(library, run, steps, effect, sensitivity[0], found[0])
        check_numbers(sensitivity)
        return [(begin, end) for begin, end in found]


def _go_forward_compiled(
    library: SensitivityLibrary, run: RecordedRun, part: slice, effect: Floats, sensitivity: Floats, found: Floats
) -> Floats:
    """Do the same as `_go_forward` in compiled code."""
    steps = ForwardSteps(
        first=part.start,
        last=part.stop,
        begins=run.points.begins.astype(np.intc),
        ends=run.points.ends.astype(np.intc),
        sizes=run.points.steps,
        along=np.ascontiguousarray(effect.T),
        motion=np.array(sensitivity.T, order="C"),
        at_begin=found[0],
        at_end=found[1],
    )
    library.go_forward(run.reduced.arrays, steps)
    return steps.motion.T


def _go_forward(
    run: RecordedRun,
    steps: slice,
    chosen: tuple[Sequence[int], Sequence[int]],
    effect: Floats,
    sensitivity: Floats,
    found: Floats,
) -> None:
    """Write the derivatives of steps with one choice of coordinates, by one formula or more.

    Parameters
    ----------
    run, steps
        The run, and the steps.
    chosen
        Indices of the parameters by which equations are differentiated, and of what is read.
    effect
        Directions in the columns of these derivatives, shape (columns, directions).
    sensitivity
        Derivatives of w before the first step, which become those behind the last one, shape (formulas, size,
        directions).
    found
        Gets those of what is read where steps begin and end, shape (formulas, 2, N, rows, directions).
    """
    equations, (columns, rows) = run.equations, chosen
    for part in equations.chunks(steps.start, steps.stop):
        own = equations.steps(part, rows)
        for reached, (at_begin, at_end), slopes in zip(sensitivity, found, equations.formulas(own), strict=False):
            along = equations.steps_by_parameters(slopes, columns, rows)
            added, read_begin, read_end = (each @ effect for each in along)
            both = np.linalg.solve(slopes.left, np.concatenate([slopes.right, added], axis=2))
            size = equations.size
            entered, left_with = np.empty((2, len(both), size, effect.shape[1]))
            for index in range(len(both)):
                entered[index] = reached
                reached[:] = both[index, :, :size] @ reached + both[index, :, size:]
                left_with[index] = reached
            at_begin[part] = slopes.read_begin @ entered + read_begin
            at_end[part] = slopes.read_end @ left_with + read_end


def sensitivities(
    simulation: Simulation, parameters: Sequence[str], outputs: Sequence[str], stop: float
) -> SensitivityResult:
    """Run a simulation and differentiate what it computes by parameters.

    Parameters
    ----------
    simulation
        By a formulation of `DIFFERENTIATED`, and the trapezoidal rule or a Rosenbrock method.
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
        When the run fails, its trapezoidal steps are halved, or derivatives are no numbers.
    """
    computed, chosen = computed_variables(simulation), parameter_places(simulation, parameters)
    rows = chosen_places(outputs, computed, "output", simulation)
    if not outputs:
        rows = list(range(len(simulation.functions.system.outputs)))
    run = DifferentiableRun(simulation, stop, rows)
    (at_begin, at_end), *embedded = run.slopes_by_formulas(chosen)
    given = [simulation.functions.system.parameters[each] for each in chosen]
    read = [computed[each] for each in rows]
    for _, other in embedded:
        tell_inexact(
            simulation.solver.name, [each.name for each in read], [each.name for each in given],
            simulation.functions.parameters[chosen], (at_end, other), run.end,
        )  # fmt: skip
    return SensitivityResult(
        run.times,
        tuple(each.name for each in read),
        tuple(each.name for each in given),
        tuple(each.unit for each in read),
        tuple(each.unit for each in given),
        np.vstack([run.begin, run.end[-1:]]),
        np.concatenate([at_begin, at_end[-1:]]),
        simulation.exposed.by_system,
    )
