"""Forward sensitivities of a run: how what it computes changes with parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mbsfmu.analysis.derivative_steps import DerivativeErrors, DerivativeSteps, Steps, common_times, derivative_errors
from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.start_derivatives import start_derivatives
from mbsfmu.analysis.state_equations import regular
from mbsfmu.analysis.step_equations import chained
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.io.trajectory import full_name
from mbsfmu.modelling.variables import Variable
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
    errors
        Errors of the derivatives and of what is computed, which come of the steps.
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
    errors: DerivativeErrors
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
    from the derivatives of the loop equations.

    Parameters
    ----------
    simulation, stop
        As for `sensitivities`.
    rows
        Indices of what is read, among `computed_variables`; errors as for `RecordedRun`.
    reading_times
        As for `RecordedRun`.

    Attributes
    ----------
    times
        Ends of steps and output times in s, shape (N + 1,).
    begin, end
        What is computed where steps begin and end, shape (N, rows).
    """

    def __init__(
        self, simulation: Simulation, stop: float, rows: Sequence[int], reading_times: Floats | None = None
    ) -> None:
        self._simulation, self._rows = simulation, list(rows)
        self._run = RecordedRun(simulation, stop, rows, reading_times)
        readings = self._run.readings
        self.times, self.begin, self.end = readings.times, readings.begin, readings.end

    @property
    def recorded(self) -> RecordedRun:
        """The run."""
        return self._run

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

    @regular()
    def _slopes(self, chosen: Sequence[int], formulas: int) -> list[tuple[Floats, Floats]]:
        run, count = self._run, len(self.begin)
        start = start_derivatives(self._simulation, chosen)
        columns: list[int] = np.flatnonzero(np.any(start.parameters != 0.0, axis=1)).tolist()
        found = np.empty((formulas, 2, count, len(self._rows), len(chosen)))
        changed = run.changes
        lasts = [*(step for step, _ in changed), count]
        sensitivity = np.stack([run.equations.states.at_start(start)] * formulas)
        for (first, change), last in zip([(0, None), *changed], lasts, strict=True):
            if change is not None:
                sensitivity = change[0] @ sensitivity + change[1] @ start.parameters
            _go_forward(run, slice(first, last), (columns, self._rows), start.parameters[columns], sensitivity, found)
        check_numbers(sensitivity)
        return [(begin, end) for begin, end in found]


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
            moved = chained(slopes.forward, added, reached)
            at_begin[part] = slopes.read_begin @ moved[:-1] + read_begin
            at_end[part] = slopes.read_end @ moved[1:] + read_end
            reached[:] = moved[-1]


@dataclass(frozen=True)
class RunDerivatives:
    """A run and its derivatives by parameters where steps begin and end, each of shape (N, rows, parameters)."""

    run: DifferentiableRun
    at_begin: Floats
    at_end: Floats

    @property
    def interpolated(self) -> bool:
        """Whether it depends on the output step: only times do."""
        return False

    @property
    def recorded(self) -> RecordedRun:
        """The run."""
        return self.run.recorded


@dataclass(frozen=True)
class DifferentiatedOutputs:
    """What is read along runs of a model, and by which parameters it is differentiated.

    Attributes
    ----------
    rows
        Indices among `computed_variables`.
    chosen, values
        Indices of parameters, and the values that runs have of them; those of the model by default.
    stop
        End of the runs in s.
    reading_times
        Times in s at which steps by a tolerance are read besides where they end; output times by default.
    """

    rows: Sequence[int]
    chosen: Sequence[int]
    stop: float
    values: Sequence[float] | None = None
    reading_times: Floats | None = None

    @property
    def set(self) -> tuple[Sequence[int], Sequence[float]]:
        """Indices and values of parameters that are set before runs."""
        return ((), ()) if self.values is None else (self.chosen, self.values)

    def run(self, steps: Steps) -> DifferentiableRun:
        """Return a run with steps."""
        return DifferentiableRun(steps.begun(*self.set), self.stop, self.rows, self.reading_times)

    def evaluate(self, steps: Steps) -> list[RunDerivatives]:
        """Return the derivatives along steps, and those by their embedded formula where there is one."""
        run = self.run(steps)
        return [RunDerivatives(run, *slopes) for slopes in run.slopes_by_formulas(self.chosen)]

    def compare(self, found: RunDerivatives, other: RunDerivatives, factor: float) -> DerivativeErrors:
        """Return the errors from other derivatives, and from the ratio of error and difference."""
        simulation = found.recorded.simulation
        computed, parameters = computed_variables(simulation), simulation.functions.system.parameters
        own, others = common_times(found.run.times[1:], other.run.times[1:])
        return derivative_errors(
            [computed[each].name for each in self.rows], [parameters[each].name for each in self.chosen],
            simulation.functions.parameters[list(self.chosen)],
            (found.at_end[own], other.at_end[others]), (found.run.end[own], other.run.end[others]),
            times=found.run.times[1:][own], factor=factor,
        )  # fmt: skip


def sensitivities(
    steps: DerivativeSteps, parameters: Sequence[str], outputs: Sequence[str], stop: float
) -> SensitivityResult:
    """Run a model and differentiate what it computes by parameters.

    Parameters
    ----------
    steps
        Steps of the model's runs.
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
        When the run fails, trapezoidal steps that are named are halved, or derivatives are no numbers.
    """
    simulation = steps.any
    computed, chosen = computed_variables(simulation), parameter_places(simulation, parameters)
    rows = chosen_places(outputs, computed, "output", simulation)
    if not outputs:
        rows = list(range(len(simulation.functions.system.outputs)))
    wanted = DifferentiatedOutputs(rows, chosen, stop)
    made = steps.choose(wanted.evaluate, wanted.compare, stop)
    run, errors = made.found.run, made.errors
    errors.warn(steps.remedy(made.steps))
    given = [simulation.functions.system.parameters[each] for each in chosen]
    return SensitivityResult(
        run.times,
        errors.of,
        errors.by,
        tuple(computed[each].unit for each in rows),
        tuple(each.unit for each in given),
        np.vstack([run.begin, run.end[-1:]]),
        np.concatenate([made.found.at_begin, made.found.at_end[-1:]]),
        errors,
        simulation.exposed.by_system,
    )
