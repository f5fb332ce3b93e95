"""Machines of one model that go on as they are asked to, their values, rewards and ends of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.sensitivities import parameter_places
from mbsfmu.base.errors import InputError
from mbsfmu.integration.error_measure import ErrorEstimate
from mbsfmu.io.trajectory import NamedValues
from mbsfmu.modelling.variables import Variable, with_unit
from mbsfmu.native.compiled import count_places
from mbsfmu.native.ensemble_library import OpenMachines
from mbsfmu.simulation.run_result import MachineSignals
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import check_value
from mbsfmu.tracing.workspace import Floats

Values = float | str | Sequence[float | str] | np.ndarray[Any, Any]
"""A number for all machines, or one for each."""


def value_array(simulation: Simulation, name: str, value: Any) -> Floats:
    """Return the values of all machines, shape (n,), or the one that all have, shape (); texts have units."""
    if isinstance(value, str | bool):
        value = simulation.variable(name).number(value, name)
    elif isinstance(value, Sequence) and any(isinstance(each, str | bool) for each in value):
        value = simulation.variable(name).numbers(value, name)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim > 1 or not array.size:
        raise InputError(f"{name} must be a number, or an array with a number for each machine, of one dimension")
    return array


def start_parameters(simulation: Simulation, starts: Mapping[str, Values]) -> dict[str, Values]:
    """Return the parameters that are start values of variables."""
    known = {each.name for each in simulation.functions.system.parameters}
    found = {}
    for name, value in starts.items():
        own = simulation.variable(name).name
        if f"{own}_start" not in known:
            there = ", ".join(sorted(each.removesuffix("_start") for each in known if each.endswith("_start")))
            raise InputError(
                f"{name} has no start value that could be given; those that have one are {there or 'none'}"
            )
        found[f"{own}_start"] = value
    return found


def named_values(
    simulation: Simulation, parameters: Mapping[str, Values], starts: Mapping[str, Values]
) -> dict[str, Values]:
    """Return the values of parameters, with those that are start values.

    Raises
    ------
    InputError
        When a variable has no start value, or one is named twice.
    """
    named = {**parameters, **start_parameters(simulation, starts)}
    if len(named) < len(parameters) + len(starts):
        raise InputError("a start value is named among the parameters and the starts; name it once")
    return named


def input_place(name: str, simulation: Simulation) -> int:
    """Return the index of the one input that a name means.

    Raises
    ------
    InputError
        When there is none, or several.
    """
    found = chosen_places((name,), simulation.functions.system.inputs, "input", simulation)
    if len(found) > 1:
        raise InputError(f"the input '{name}' is ambiguous; name one input")
    return found[0]


def check_values(variable: Variable, values: Floats, machines: NDArray[np.int_]) -> None:
    """Refuse values that a variable may not have, with the first machine that has one.

    Parameters
    ----------
    variable
        The variable.
    values
        Its values, shape (n,).
    machines
        The numbers of their machines, shape (n,).

    Raises
    ------
    InputError
        When one is not finite, too large to compute with, or out of the variable's range.
    """
    try:
        for extreme in (np.argmin(values), np.argmax(values)):  # which are the first NaN where there is one
            check_value(variable, float(values[extreme]))
    except InputError:
        for machine, value in zip(machines.tolist(), values.tolist(), strict=True):
            try:
                check_value(variable, value)
            except InputError as error:
                raise InputError(f"machine {machine}: {error}") from None


def machine_name(simulation: Simulation, numbers: Mapping[str, Floats], machine: int) -> str:
    """Return how messages name a machine: its number, and the values by name that it has of its own."""
    told = (
        f"{name} = {with_unit(float(values[machine]), simulation.variable(name))}" for name, values in numbers.items()
    )
    listed = ", ".join(told)
    return f"machine {machine}" + (f" ({listed})" if listed else "")


class SignalValues(MachineSignals):
    """Values of the outputs of machines at one point of each.

    Parameters
    ----------
    like
        Signals of the same names.
    values
        Shape (n, number of signals).
    """

    def __init__(self, like: MachineSignals, values: Floats) -> None:
        self.names, self._units, self._by_system = like.names, like._units, like._by_system
        self._values = values

    @property
    def values_by_column(self) -> Floats:
        """All values, shape (n, number of signals)."""
        return self._values


@dataclass(frozen=True)
class Transition:
    """A step of a learning environment, in all machines.

    Attributes
    ----------
    before, after
        Outputs by their names, each of shape (n,); behind the step NaN of machines that have failed in it.
    actions
        Values of the inputs by their names, each of shape (n,).
    time
        Time in s since the start of the episode, behind the step; shape (n,).
    """

    before: SignalValues
    after: SignalValues
    actions: Mapping[str, Floats]
    time: Floats


Machines = Sequence[int] | Sequence[bool] | np.ndarray[Any, Any]
"""Machines by their numbers, or a truth for each of all."""


class EnsembleSimulation(MachineSignals):
    """Started machines of an ensemble, each at a time of its own; made by `Ensemble.start`.

    It is a mapping: `machines["boom.angle"]` are the values of the outputs where each machine is, shape (n,); NaN of
    those that have failed. What changes at the time of an input that is set changes when the machines go on.

    Parameters
    ----------
    simulation
        A simulation of the model.
    machines
        The machines in compiled code.
    columns
        What is recorded: indices into the variables that change.
    numbers
        What was varied, by name, each of shape (n,).
    errors
        Whether errors are estimated.

    Attributes
    ----------
    names
        The outputs.
    parameters
        What differs between machines, by name, each of shape (n,), as they were last started.
    failures
        Why machines have failed, by their numbers: one sentence each.
    warnings
        What was told of machines since they were last started, by their numbers.
    """

    def __init__(
        self,
        simulation: Simulation,
        machines: OpenMachines,
        columns: Sequence[int],
        numbers: Mapping[str, Floats],
        *,
        errors: bool,
    ) -> None:
        super().__init__([simulation.continuous[column] for column in columns], simulation.exposed.readable)
        self._simulation, self._open, self._errors = simulation, machines, errors
        self._ended = ""
        self._known_inputs: dict[str, tuple[Variable, int]] = {}
        copied = {name: values.copy() for name, values in numbers.items()}
        self.parameters = NamedValues(copied, "varied parameter or input", simulation.exposed.by_system)
        self.failures: dict[int, str] = {}
        self.warnings: dict[int, tuple[str, ...]] = {}
        self._start(np.ones(self.machines, dtype=bool))

    @property
    def machines(self) -> int:
        """Number of machines."""
        return len(self._open.time)

    @property
    def time(self) -> Floats:
        """Time in s since the start of each machine, NaN of those that have failed; shape (n,)."""
        return self._open.time.copy()

    @property
    def running(self) -> NDArray[np.bool_]:
        """Which machines have not failed; shape (n,)."""
        return np.isfinite(self._open.time)

    @property
    def values_by_column(self) -> Floats:
        """All outputs where the machines are, shape (n, number of outputs)."""
        return self._open.rows.copy()

    @property
    def steps(self) -> Floats:
        """Steps of each machine since its start, shape (n,)."""
        return self._open.counts[:, count_places()["steps"]][:, 0].copy()

    @property
    def errors(self) -> tuple[ErrorEstimate, ...]:
        """The estimated error of each machine since its start.

        Raises
        ------
        InputError
            When the ensemble does not estimate errors.
        """
        solver = self._simulation.solver
        record = solver.error_record
        if not self._errors or record is None:
            raise InputError("the ensemble estimates no errors; make it with errors=True")
        return tuple(record.estimate(each, solver.step) for each in self._open.records)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<{type(self).__name__}: {self.machines} machines of {self._simulation.name}{failed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the memory of the machines."""
        self._ended = self._ended or "they were closed"
        self._open.close()

    def advance(self, until: Values, inputs: Mapping[str, Values] | None = None) -> None:
        """Let all machines that have not failed go on to a time; those that fail on the way end, and the others go on.

        Parameters
        ----------
        until
            Time in s since the start of each machine: a number for all, or one for each; a machine that is there stays.
        inputs
            Inputs that are set at the beginning, in the machines that go on: a number for all, or one for each. They
            keep it, and follow no signal any more.

        Raises
        ------
        InputError
            When a time lies before the present one, or an input or a value is not allowed.
        KeyboardInterrupt
            When somebody ends it; the machines end with it.
        """
        self._check_open()
        ends, running = self._spread("until", until), self.running
        if np.any(late := running & ~(ends >= self._open.time)):
            first = int(np.argmax(late))
            raise InputError(
                f"until = {ends[first]:g} s of machine {first} lies before its time, {self._open.time[first]:g} s; it "
                "must not"
            )
        if np.any(late := running & ~np.isfinite(ends)):
            raise InputError(f"until of machine {int(np.argmax(late))} is not finite; it must be a time in s")
        self._took(lambda: self._open.advance(ends, self._inputs(inputs or {})))

    def reset(
        self,
        machines: Machines | None = None,
        parameters: Mapping[str, Values] | None = None,
        starts: Mapping[str, Values] | None = None,
    ) -> None:
        """Start machines again, at time zero: inputs are as at the first start, and follow their signals.

        Parameters
        ----------
        machines
            Which: their numbers, or a truth for each of all; all by default.
        parameters, starts
            New values, as for `CoupledModel.ensemble`: a number for these machines, or one for each of them, in the
            order of their numbers. They stay until others are given.

        Raises
        ------
        InputError
            When there is no such machine, or a name or value is not allowed.
        """
        self._check_open()
        chosen = self._chosen(machines)
        numbers = np.flatnonzero(chosen)
        named = named_values(self._simulation, parameters or {}, starts or {})
        if len(numbers) and named:
            self._take(named, numbers)
        for machine in numbers.tolist():
            self.failures.pop(machine, None)
            self.warnings.pop(machine, None)
        self._start(chosen)

    def _take(self, named: Mapping[str, Values], machines: NDArray[np.int_]) -> None:
        """Give parameters to machines."""
        places = parameter_places(self._simulation, list(named))
        variables = [self._simulation.variable(name) for name in named]
        given = [self._spread(name, value, len(machines)) for name, value in named.items()]
        for variable, values in zip(variables, given, strict=True):
            check_values(variable, values, machines)
        for variable, place, values in zip(variables, places, given, strict=True):
            self._open.parameters[machines, place] = values
            self.parameters[variable.name] = self._open.parameters[:, place].copy()

    def _start(self, chosen: NDArray[np.bool_]) -> None:
        self._took(lambda: self._open.start(chosen))

    def _took(self, call: Any) -> None:
        """Make machines go on or start, and take what is told of them."""
        try:
            failed = call()
        except KeyboardInterrupt:
            self._ended = "somebody ended them on the way"
            raise
        for machine, why in failed.items():
            self.failures[machine] = f"{machine_name(self._simulation, self.parameters, machine)}: {why}"
        while self._open.warnings:
            machine, sentence = self._open.warnings.pop(0)
            told = f"{machine_name(self._simulation, self.parameters, machine)}: {sentence}"
            self.warnings[machine] = (*self.warnings.get(machine, ()), told)

    def _check_open(self) -> None:
        if self._ended:
            raise InputError(f"the machines of {self._simulation.name} do not go on: {self._ended}; start them anew")

    def _inputs(self, inputs: Mapping[str, Values]) -> dict[int, Floats]:
        """Return the values of inputs by their index."""
        numbers, found = np.flatnonzero(self.running), {}
        for name, value in inputs.items():
            variable, place = self._input(name)
            if place in found:
                raise InputError(f"the input '{name}' is named twice; name it once")
            found[place] = values = self._spread(name, value)
            if len(numbers):
                check_values(variable, values[numbers], numbers)
        return found

    def _input(self, name: str) -> tuple[Variable, int]:
        """Return an input and its index."""
        if name not in self._known_inputs:
            inputs = self._simulation.functions.system.inputs
            place = input_place(name, self._simulation)
            self._known_inputs[name] = inputs[place], place
        return self._known_inputs[name]

    def _spread(self, name: str, value: Values, count: int | None = None) -> Floats:
        """Return values of machines, shape (n,)."""
        array, count = value_array(self._simulation, name, value), self.machines if count is None else count
        if array.ndim and len(array) != count:
            raise InputError(f"{name} is given for {len(array)} machines, and there are {count}")
        return np.broadcast_to(array, (count,))

    def _chosen(self, machines: Machines | None) -> NDArray[np.bool_]:
        """Return a truth for each machine."""
        if machines is None:
            return np.ones(self.machines, dtype=bool)
        given = np.asarray(machines)
        if given.dtype == bool:
            if given.shape != (self.machines,):
                raise InputError(f"machines has {given.size} truths, and there are {self.machines} machines")
            return given.copy()
        chosen = np.zeros(self.machines, dtype=bool)
        for machine in given.ravel().tolist():
            if machine != int(machine) or not 0 <= machine < self.machines:
                raise InputError(f"there is no machine {machine}; they are numbered from 0 to {self.machines - 1}")
            chosen[int(machine)] = True
        return chosen
