"""The outcome of runs of many machines of one model: arrays over machines and time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.integration.error_measure import ErrorEstimate
from mbsfmu.io.tables import optional
from mbsfmu.io.tabular import NamedValues, full_name
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling import html_table
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    import xarray

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
