"""Results of runs: signals over time and statistics, of one machine or many."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.integration.error_measure import NOT_ESTIMATED, ErrorEstimate
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.tables import optional
from mbsfmu.io.trajectory import NamedValues, Trajectory, full_name
from mbsfmu.model.machine import Machine
from mbsfmu.modelling import html_table
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    import xarray

    from mbsfmu.view.scene import Animation


class Result(Trajectory):
    """A trajectory with the statistics of its run.

    Attributes
    ----------
    model, formulation, solver
        Names.
    step
        Step of the output in s; the largest internal step for fixed-step solvers.
    wall_seconds, interim_seconds
        Time on the clock that the run took, and the part of it in code that is not optimized, in which runs of large
        models begin while optimized code is compiled.
    statistics
        What it cost.
    error
        How far it is off: the largest error that was estimated, as a share of the range of its variable.
    machine
        What ran, with the parameters that it had; None where nobody said.
    qualified
        `system.variable` by the names of signals, which are found by it too.
    driving
        Names of signals by `system.variable` of connected inputs that have their values, which find them too.
    """

    def __init__(
        self,
        time: Floats,
        values: Floats,
        names: Sequence[str],
        units: Sequence[str],
        descriptions: Mapping[str, str] | None = None,
        *,
        model: str,
        formulation: str,
        solver: str,
        step: float,
        wall_seconds: float,
        statistics: Statistics,
        machine: Machine | None = None,
        qualified: Mapping[str, str] | None = None,
        driving: Mapping[str, str] | None = None,
        interim_seconds: float = 0.0,
        error: ErrorEstimate = NOT_ESTIMATED,
    ) -> None:
        super().__init__(time, values, names, units, descriptions)
        self.model = model
        self.formulation = formulation
        self.solver = solver
        self.step = step
        self.wall_seconds = wall_seconds
        self.interim_seconds = interim_seconds
        self.statistics = statistics
        self.error = error
        self.machine = machine
        self._qualified = dict(qualified or {})
        self._by_system = {**(driving or {}), **{full: name for name, full in self._qualified.items()}}

    def full_name(self, name: str) -> str:
        """Return the full name of the signal that `name` refers to; `system.variable` is accepted too.

        Raises
        ------
        UnknownNameError
            When no signal or more than one is meant.
        """
        return full_name(name, self._column_by_name, "signal", by_system=self._by_system)

    def _called(self, name: str) -> tuple[str, ...]:
        return (*super()._called(name), self._qualified.get(name, name))

    def _summary_line(self) -> str:
        return f"{self.model}, {self.formulation}, {self.solver}, {super()._summary_line()}"

    def _metadata(self) -> dict[str, Any]:
        entries = ("model", "formulation", "solver", "step", "wall_seconds")
        return {name: getattr(self, name) for name in entries} | {"steps": self.statistics.steps}

    def animate(self, beside: Trajectory | Mapping[str, Trajectory] | None = None, **chosen: Any) -> Animation:
        """Return an animation of the machine, for notebooks and pages.

        Parameters
        ----------
        beside
            Another run of the same model, or several by their labels: ghosts, so that it is seen how far they are off.
        chosen
            What `mbsfmu.animate` takes beside: `label`, `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, or a run lacks the coordinates of a joint; the sentence names them.
        """
        from mbsfmu.view.scene import animate  # noqa: PLC0415 - few runs are looked at

        if self.machine is None:
            raise InputError(f"the run of {self.model} does not know its model; take mbsfmu.animate(run, model)")
        return animate(self, self.machine, beside, **{"label": self.formulation, **chosen})

    def largest(self, name: str) -> float | None:
        """Return the largest magnitude of a signal over the run; None if there is none."""
        bounds = self.bounds(name)
        return None if bounds is None else max(abs(bound) for bound in bounds)

    def bounds(self, name: str) -> tuple[float, float] | None:
        """Return the least and greatest value of a signal over the run; None if there is none.

        Without the system's name, the bounds are those of all matching signals.
        """
        found = [self[full] for full in self.names if full == name or full.endswith("." + name)]
        if not found:
            return None
        return min(float(np.min(values)) for values in found), max(float(np.max(values)) for values in found)

    def _machine_drift(self) -> float | None:
        """Return the largest drift of the total energy of mechanisms and circuits; None unless both exist.

        Energy delivered by a circuit is work on its mechanism, and cancels in the sum.
        """
        named = {
            kind: [name for name in self.names if name == kind or name.endswith(f".{kind}")]
            for kind in ("energy.drift", "hydraulic_energy.drift")
        }
        if not all(named.values()):
            return None
        drifts = [self[name] for names in named.values() for name in names]
        return float(np.max(np.abs(np.sum(drifts, axis=0))))

    def summary(self) -> dict[str, Any]:
        """Return the summary that `simulate --json` writes."""
        least_work, greatest_work = self.bounds("energy.work") or (None, None)
        return {
            "model": self.model,
            "formulation": self.formulation,
            "solver": self.solver,
            "step": self.step,
            "stop": float(self.time[-1]),
            "wall_seconds": self.wall_seconds,
            "interim_seconds": self.interim_seconds,
            **asdict(self.statistics),
            "embedded_distance": self.statistics.embedded_distance if self.solver == "rk4" else None,
            "error_estimate": self.error.share,
            "error_variable": self.error.variable,
            "error_note": self.error.note or None,
            "newton_mean": self.statistics.newton_mean,
            "unconverged_max": self.largest("solver.unconverged_max"),
            "energy_drift_max": self.largest("energy.drift"),
            "hydraulic_energy_drift_max": self.largest("hydraulic_energy.drift"),
            "machine_energy_drift_max": self._machine_drift(),
            "actuator_work_max": greatest_work,
            "actuator_work_min": least_work,
            "constraint_position_max": self.largest("constraint.position"),
            "constraint_velocity_max": self.largest("constraint.velocity"),
            "final": self.final(),
        }


_MACHINE, _TIME = "machine", "time"


class MachineSignals(Mapping[str, Floats]):
    """Signals of many machines by name, with their units.

    A signal is found by its full name, by `system.variable`, or by any trailing part of its name that is unique.

    Parameters
    ----------
    variables
        The signals.
    readable
        Names of variables by `system.variable`, connected inputs included.
    """

    def __init__(self, variables: Sequence[Variable], readable: Mapping[str, str]) -> None:
        self.names = tuple(variable.name for variable in variables)
        self._units = {variable.name: variable.unit for variable in variables}
        self._by_system = dict(readable)

    @property
    @abstractmethod
    def values_by_column(self) -> Floats:
        """All values; the last axis is that of the signals."""

    def __getitem__(self, name: str) -> Floats:
        return self.values_by_column[..., self.names.index(self.full_name(name))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def full_name(self, name: str) -> str:
        """Return the full name of the one signal that `name` means.

        Raises
        ------
        UnknownNameError
            When no signal or more than one is meant.
        """
        return full_name(name, self.names, "signal", by_system=self._by_system)

    def unit(self, name: str) -> str:
        """Return the unit of a signal."""
        return self._units[self.full_name(name)]


class EnsembleResult(MachineSignals):
    """Signals of many machines: `result["boom.angle"]` has shape (n, k), for n machines at k times.

    A signal is found by its full name, by `system.variable`, or by any trailing part of its name that is unique.

    Parameters
    ----------
    time
        Times in s, shape (k,).
    values
        Shape (n, k, number of signals); NaN behind the end of machines that failed.
    variables
        The signals.
    readable
        Names of variables by `system.variable`, connected inputs included.
    model
        Name of the model.
    parameters
        What was varied: values by machine, each of shape (n,), by the names of parameters and inputs; found as signals
        are.
    parameter_units
        Their units.
    failures
        Why machines failed, by their numbers: one sentence each.
    warnings
        What was told of machines, by their numbers.
    reached
        Time in s that each machine came to, shape (n,).
    errors
        The estimated error of each machine's run.
    steps, scalar_steps
        Steps of each machine, and those among them that were made for it alone, as at events, shape (n,).
    lanes
        How many machines were computed at once.
    vector_mathematics
        Whether a vector library computed sines and the like; else they were computed machine by machine.
    wall_seconds
        Time on the clock that the runs took.
    """

    def __init__(
        self,
        time: Floats,
        values: Floats,
        variables: Sequence[Variable],
        readable: Mapping[str, str],
        *,
        model: str,
        parameters: Mapping[str, Floats],
        parameter_units: Mapping[str, str],
        failures: Mapping[int, str],
        warnings: Mapping[int, Sequence[str]],
        reached: Floats,
        errors: Sequence[ErrorEstimate],
        steps: Floats,
        scalar_steps: Floats,
        lanes: int,
        vector_mathematics: bool,
        wall_seconds: float,
    ) -> None:
        super().__init__(variables, readable)
        self.time = time
        self._values = values
        self._descriptions = {variable.name: variable.description for variable in variables if variable.description}
        self.model = model
        self.parameters = NamedValues(parameters, "varied parameter or input", readable)
        self.parameter_units = NamedValues(parameter_units, "varied parameter or input", readable)
        self.failures = dict(failures)
        self.warnings = {machine: tuple(sentences) for machine, sentences in warnings.items()}
        self.reached = reached
        self.errors = tuple(errors)
        self.steps = steps
        self.scalar_steps = scalar_steps
        self.lanes = lanes
        self.vector_mathematics = vector_mathematics
        self.wall_seconds = wall_seconds

    @property
    def values_by_column(self) -> Floats:
        """All values, shape (n, k, number of signals)."""
        return self._values

    @property
    def machines(self) -> int:
        """Number of machines."""
        return len(self.values_by_column)

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which machines came to the end, shape (n,)."""
        return np.array([machine not in self.failures for machine in range(self.machines)], dtype=bool)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary_line()}>"

    def _summary_line(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        span = f"from {self.time[0]:g} to {self.time[-1]:g} s"
        signals = f"{len(self.names)} signals at {len(self.time)} times"
        return f"{self.machines} machines of {self.model}{failed}, {signals} {span}"

    def _repr_html_(self) -> str:
        columns = ("signal", "unit", "least", "greatest", "least at the end", "greatest at the end")
        rows = ((name, self._units[name], *_bounds(self[name]), *_bounds(self[name][:, -1])) for name in self.names)
        return html_table(columns, rows, f"{type(self).__name__}: {self._summary_line()}")

    def trajectory(self, machine: int) -> Trajectory:
        """Return the signals of one machine, up to where it came.

        Raises
        ------
        InputError
            When there is no such machine.
        """
        if not 0 <= machine < self.machines:
            raise InputError(f"there is no machine {machine}; they are numbered from 0 to {self.machines - 1}")
        come = self.time <= self.reached[machine]
        units = [self._units[name] for name in self.names]
        return Trajectory(self.time[come], self.values_by_column[machine][come], self.names, units, self._descriptions)

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset over `machine` and `time`; what was varied are coordinates of `machine`.

        Variables have the attributes `units` and `description`.

        Raises
        ------
        InputError
            When xarray is not installed, or a signal is called `time` or `machine`.
        """
        if reserved := {_MACHINE, _TIME} & {*self.names, *self.parameters}:
            raise InputError(f"a signal is called '{min(reserved)}', as a dimension of the dataset is; rename it")
        variables = {name: ((_MACHINE, _TIME), self[name], self._attributes(name)) for name in self.names}
        coordinates: dict[str, Any] = {
            _TIME: (_TIME, self.time, {"units": "s"}),
            _MACHINE: np.arange(self.machines),
            **{
                name: (_MACHINE, values, {"units": self.parameter_units[name]})
                for name, values in self.parameters.items()
                if name not in variables
            },
        }
        facts = {"model": self.model, "failed": len(self.failures)}
        return optional("xarray", "to_xarray").Dataset(variables, coordinates, facts)

    def _attributes(self, name: str) -> dict[str, str]:
        told = {"description": self._descriptions[name]} if name in self._descriptions else {}
        return {"units": self._units[name], **told}


def _bounds(values: Floats) -> tuple[str, str]:
    """Return the least and the greatest of numbers as text."""
    there = values[np.isfinite(values)]
    return (f"{there.min():.6g}", f"{there.max():.6g}") if len(there) else ("", "")
