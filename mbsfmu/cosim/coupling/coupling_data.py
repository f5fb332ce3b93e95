"""Coupling data: inputs and outputs of instances, their connections, driven inputs, strings."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.coupling.extrapolation import mean
from mbsfmu.cosim.coupling.graph import Connection, is_text, value_map
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError, Instance, Port
from mbsfmu.modelling.variables import Causality, Variability


@runtime_checkable
class EventSignal(Protocol):
    """A signal with events, as those of `mbsfmu.io.signals`."""

    @property
    def events(self) -> tuple[float, ...]:
        """Times in s."""
        ...

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        ...

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        ...


@dataclass(frozen=True)
class Constant:
    """A signal that never changes."""

    value: float

    def __call__(self, time: float) -> float:
        """Return its value at a time in s."""
        del time
        return self.value


Signal = Callable[[float], float] | EventSignal


class DrivenInputs:
    """Inputs driven by signals.

    Parameters
    ----------
    signals
        Signals by (instance, input).
    instances, connections
        What they are driven beside.
    step
        Communication step in s, the first one where steps are controlled: an event that misses a communication point
        by less than `mbsfmu.base.times.tolerance` is at it.

    Attributes
    ----------
    targets
        (instance, input) of each signal.

    Raises
    ------
    InputError
        When a variable is no numeric input, or is driven by a connection already.
    """

    def __init__(
        self,
        signals: Mapping[tuple[str, str], Signal],
        instances: Mapping[str, Instance],
        connections: Iterable[Connection],
        step: float,
    ) -> None:
        driven = {connection.target for connection in connections}
        for name, variable in signals:
            if instances[name].variables[variable].causality is not Causality.INPUT:
                raise InputError(f"{name}.{variable} is no input; a signal cannot drive it")
            if instances[name].kinds[variable] in ("String", "Binary", "Clock"):
                raise InputError(f"{name}.{variable} is a {instances[name].kinds[variable]}; a signal cannot drive it")
            if (name, variable) in driven:
                raise InputError(f"{name}.{variable} is driven by a connection and by a signal")
        self.targets = tuple(signals)
        self._step = step
        self._variables = [instances[name].variables[variable] for name, variable in signals]
        self._followers = [
            _Follower(each, step) if isinstance(each, EventSignal) else each for each in signals.values()
        ]

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def are_constant(self) -> bool:
        """Whether no signal ever changes."""
        return all(isinstance(each, Constant) for each in self._followers)

    def nominals(self) -> Floats:
        """Return the nominal value of each driven input, 1 where none is declared; shape (number of signals,)."""
        return np.array([abs(variable.nominal or 1.0) for variable in self._variables], dtype=float)

    def after(self, time: float) -> Floats:
        """Return the values from a time in s on, shape (number of signals,)."""
        return np.array(
            [each.after(time) if isinstance(each, _Follower) else each(time) for each in self._followers], dtype=float
        )

    def before(self, time: float) -> Floats:
        """Return the values just before a time in s, shape (number of signals,)."""
        return np.array(
            [each.before(time) if isinstance(each, _Follower) else each(time) for each in self._followers], dtype=float
        )

    def jumps(self, time: float) -> bool:
        """Return whether a signal is discontinuous at a time in s."""
        return any(each.before(time) != each.after(time) for each in self._followers if isinstance(each, _Follower))

    def events(self, start: float, stop: float) -> list[float]:
        """Return the event times of the signals inside (start, stop) in s, without duplicates."""
        same = tolerance(self._step, start, stop)
        found = sorted({time for each in self._followers if isinstance(each, _Follower) for time in each.events})
        kept = [start]
        kept += [time for time in found if start < time < stop - same]
        return [later for earlier, later in pairwise(kept) if later - earlier > same]


class _Follower:
    """A signal evaluated at communication points: an event within round-off is at the point."""

    def __init__(self, signal: EventSignal, step: float) -> None:
        self.events = sorted(signal.events)
        self._signal, self._step = signal, step

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        same = tolerance(self._step, time)
        passed = bisect_right(self.events, time + same)
        is_event = passed and self.events[passed - 1] >= time - same
        return self._signal.after(self.events[passed - 1] if is_event else time)

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        same = tolerance(self._step, time)
        passed = bisect_left(self.events, time - same)
        is_event = passed < len(self.events) and self.events[passed] <= time + same
        return self._signal.before(self.events[passed] if is_event else time)


NUMERIC = ("Real", "Integer", "Enumeration", "Boolean")
"""Numeric kinds of variables."""


class CoupledInstance:
    """An instance with its connected inputs and outputs.

    Parameters
    ----------
    instance
        The instance.
    connections
        What drives its inputs; the sources are found in `columns`.
    driven
        Names of the inputs that follow signals.
    columns
        Place of each (instance, variable) among the outputs of all members, of each followed signal after them.
    outputs
        Where its outputs stand among those of all members.
    names
        Names of its outputs.
    rate
        Number of steps that it makes in a communication step.
    rows
        Number of coefficients of the polynomials.

    Attributes
    ----------
    sources
        For each entry, its column in the polynomials.
    factors, offsets, converts
        What entries are multiplied by and what is added; whether that changes anything.
    taken
        Coefficients of what the entries ran along in the last communication step, shape (rows, number of entries).
    ramps
        Whether entries are set with slopes.
    shares
        Whether `taken` is what is set.
    finishes
        Whether it makes the rest of a step of which its FMU has discarded all but a part; else the step fails.
    direct, perhaps_direct
        Outputs that depend on entries without delay: those of which the FMU says so, and with them those of which it
        says nothing.
    """

    def __init__(
        self,
        instance: Instance,
        connections: Sequence[Connection],
        driven: Sequence[str],
        columns: Mapping[tuple[str, str], int],
        outputs: Floats,
        names: Sequence[str],
        rate: int,
        rows: int,
    ) -> None:
        self.instance = instance
        self.outputs = instance.port(names, outputs)
        self.rate = rate
        self.finishes = False
        sources = [each.source for each in connections] + [(instance.name, name) for name in driven]
        self.sources = np.array([columns[source] for source in sources], dtype=np.intp)
        self.place = slice(0, 0)
        self.entry_place = slice(0, 0)
        self.factors = np.array([*(each.factor for each in connections), *[1.0] * len(driven)])
        self.offsets = np.array([*(each.offset for each in connections), *[0.0] * len(driven)])
        self.converts = bool((self.factors != 1.0).any() or self.offsets.any())
        self.taken = np.zeros((rows, len(sources)))
        shared = self.taken[0] if rows == 1 and rate == 1 else None
        self.entries = instance.port([*(each.target[1] for each in connections), *driven], shared)
        self.shares = shared is not None
        self.ramps = rows > 1 and instance.interpolates and self.entries.all_real
        self.direct = {name for name in names if self._depends(name) is True}
        self.perhaps_direct = {name for name in names if self._depends(name) is not False}

    def _depends(self, output: str) -> bool | None:
        """Return whether an output depends directly on a connected input; None if not declared."""
        needed = self.instance.dependencies.get(output)
        return None if needed is None else not set(self.entries.names).isdisjoint(needed)

    @property
    def applied(self) -> Floats:
        """Mean value of each input over the last communication step."""
        return mean(self.taken)

    def mean_of(self, entry: int) -> float:
        """Return the mean value of one input over the last communication step."""
        result = self.taken.item(0, entry)
        for power in range(1, len(self.taken)):
            result += self.taken.item(power, entry) / (power + 1)
        return result

    @property
    def steps_apart(self) -> bool:
        """Whether a communication step can be begun, and waited for later, while others step."""
        return self.rate == 1 and self.instance.steps_apart

    def step(self, time: float, step: float) -> None:
        """Make one of the instance's own steps in s.

        Raises
        ------
        FmuError, FmuEnded
            As of `Instance.step`; a step that is discarded but for a part is completed where that is wanted.
        """
        try:
            self.instance.step(time, step)
        except FmuError as error:
            self.finish(error, time, step)

    def complete(self, time: float, step: float) -> None:
        """Wait for the end of a step in s that was begun; raises what `step` raises."""
        try:
            self.instance.finish_step()
        except FmuError as error:
            self.finish(error, time, step)

    def finish(self, error: FmuError, time: float, step: float) -> None:
        """Complete a partly discarded step of the instance in s; its inputs continue.

        Raises
        ------
        FmuError
            The same, where there is no such part, or members do not finish steps; what the rest leads to otherwise.
        """
        reached = error.reached
        if not self.finishes or error.fatal or reached is None or not time < reached < time + step:
            raise error
        if self.ramps:
            self.entries.values[:] += (reached - time) * self.entries.slopes
            self.entries.write()
            self.entries.write_slopes()
        self.step(reached, time + step - reached)


class CouplingData:
    """All members, and the vector of all their outputs.

    Parameters
    ----------
    instances
        Instances by name.
    connections
        Connections between outputs and inputs; those of texts are left to `Texts`.
    driven
        Inputs that follow signals.
    rates
        Number of steps in a communication step, by instance; 1 where nothing is said.
    rows
        Number of coefficients of the polynomials that inputs run along.

    Attributes
    ----------
    members
        The members, in the order of the instances.
    names
        (instance, variable) of each output.
    columns
        Place of each output and, after them, of each followed signal in the polynomials.
    outputs
        Outputs as they were read last, shape (number of names,).
    rows
        Number of coefficients of the polynomials.
    entry_sources
        For all entries of all members in turn, the columns that drive them.
    ends
        By instance, the time in s at which it ended the run by itself.
    rate_ports
        Outputs that give their derivative by time: their columns, and what reads them.
    """

    def __init__(
        self,
        instances: Mapping[str, Instance],
        connections: Sequence[Connection],
        driven: DrivenInputs,
        rates: Mapping[str, int] | None = None,
        rows: int = 1,
    ) -> None:
        connections = [_converting(each, instances) for each in connections if not is_text(each, instances)]
        self.connections = tuple(connections)
        names: dict[str, list[str]] = {}
        for name, instance in instances.items():
            driving = [each.source[1] for each in connections if each.source[0] == name]
            outs = [each.name for each in instance.variables.values() if each.causality == "output"]
            numeric = [each for each in outs if instance.kinds[each] in NUMERIC and each not in instance.unread]
            names[name] = list(dict.fromkeys([*numeric, *driving]))
        self.driven = driven
        self.names = [(name, variable) for name, variables in names.items() for variable in variables]
        self.columns = {name: index for index, name in enumerate([*self.names, *driven.targets])}
        self.outputs = np.zeros(len(self.names))
        self.members: list[CoupledInstance] = []
        self.ends: dict[str, float] = {}
        self.rows = rows
        first = first_entry = 0
        for name, instance in instances.items():
            place = slice(first, first + len(names[name]))
            member = CoupledInstance(
                instance,
                [each for each in connections if each.target[0] == name],
                [variable for target, variable in driven.targets if target == name],
                self.columns,
                self.outputs[place],
                names[name],
                (rates or {}).get(name, 1),
                rows,
            )
            instance.ends = self.ends
            member.place = place
            member.entry_place = slice(first_entry, first_entry + len(member.sources))
            self.members.append(member)
            first, first_entry = place.stop, member.entry_place.stop
        self.entry_sources = np.concatenate([member.sources for member in self.members]).astype(np.intp)
        self.held = [
            index for index, (name, variable) in enumerate(self.names) if not _is_continuous(instances[name], variable)
        ]
        self._rates = np.full(len(self.names), np.nan)
        self.rate_ports: list[tuple[NDArray[np.intp], Port]] = []

    def member(self, name: str) -> CoupledInstance:
        """Return the member of an instance."""
        return next(member for member in self.members if member.instance.name == name)

    def nominals(self) -> Floats:
        """Return the nominal value of each output, 1 without a declaration; shape (outputs,)."""
        variables = {member.instance.name: member.instance.variables for member in self.members}
        return np.array([abs(variables[name][variable].nominal or 1.0) for name, variable in self.names])

    def read(self) -> Floats:
        """Read all outputs into `outputs` and return it; it is overwritten in the next call."""
        for member in self.members:
            member.outputs.read()
        return self.outputs

    def applied(self) -> Floats:
        """Return the mean values of all inputs over the last communication step, shape (entries,)."""
        return mean(np.concatenate([member.taken for member in self.members], axis=1))

    def save(self, slot: str, time: float) -> None:
        """Save the states of all instances at a time in s under a name."""
        for member in self.members:
            member.instance.save(slot, time)

    def release(self, slot: str) -> None:
        """Discard the states under a name."""
        for member in self.members:
            member.instance.release(slot)

    def restore(self, slot: str) -> None:
        """Restore the states of all instances under a name."""
        for member in self.members:
            member.instance.restore(slot)

    def next_event(self, time: float) -> float:
        """Return when a signal inside an FMU jumps or bends next after a time in s; infinity where none says so."""
        events = (member.instance.read_next_event() for member in self.members)
        return min((event for event in events if event > time), default=math.inf)

    def forget_events(self) -> None:
        """Reset `first_event`."""
        for member in self.members:
            member.instance.happened = math.inf

    def first_event(self) -> float:
        """Return the first event inside of steps since `forget_events`, in s; infinity without one."""
        return min(member.instance.happened for member in self.members)

    def without_states(self) -> list[str]:
        """Return the names of the instances without saved states."""
        return [member.instance.name for member in self.members if not member.instance.saves_state]

    def find_rates(self) -> list[str]:
        """Determine which driving outputs have time derivatives, for `read_rates`.

        Those that depend directly on inputs are left out: what an FMU says of them has the slopes in it that its
        inputs were given for the last step, or none.

        Returns
        -------
        list of str
            Names of the driving outputs that give none.
        """
        missing = []
        given: dict[CoupledInstance, list[str]] = {}
        for source in dict.fromkeys(each.source for each in self.connections):
            member = self.member(source[0])
            if source[1] in member.perhaps_direct and len(member.sources):
                continue
            port = member.instance.port([source[1]])
            if member.instance.gives_rates and port.all_real:
                try:
                    port.read_rates()
                except FmuError:
                    missing.append(".".join(source))
                else:
                    given.setdefault(member, []).append(source[1])
            else:
                missing.append(".".join(source))
        self.rate_ports = [
            (
                np.array([self.columns[member.instance.name, name] for name in names], dtype=np.intp),
                member.instance.port(names),
            )
            for member, names in given.items()
        ]
        return missing

    def read_rates(self) -> Floats:
        """Return the time derivatives of the outputs, NaN for missing ones; overwritten in the next call."""
        for columns, port in self.rate_ports:
            self._rates[columns] = port.read_rates()
        return self._rates


def _converting(connection: Connection, instances: Mapping[str, Instance]) -> Connection:
    """Return a connection whose factor and offset include the unit conversion."""
    way = value_map(connection, instances)
    return replace(connection, factor=way.factor, offset=way.offset, convert_units=False)


def _is_continuous(instance: Instance, name: str) -> bool:
    return instance.kinds[name] == "Real" and instance.variables[name].variability is Variability.CONTINUOUS


class Texts:
    """All String outputs of a system, and the connections between String variables.

    Text is not continued over a step: every algorithm hands it on at the communication points.

    Parameters
    ----------
    instances
        Instances by name.
    connections
        All connections; those of numbers are left out.

    Attributes
    ----------
    changes
        For each output by `instance.variable`, the times in s at which it changed, with the text from then on.
    """

    CHANGES: ClassVar = ("_until_now",)

    def __init__(self, instances: Mapping[str, Instance], connections: Sequence[Connection]) -> None:
        self._instances = instances
        self._connections = [each for each in connections if is_text(each, instances)]
        outputs = [
            (name, variable.name)
            for name, instance in instances.items()
            for variable in instance.variables.values()
            if variable.causality == "output" and instance.kinds[variable.name] == "String"
        ]
        self._sources = list(dict.fromkeys([*outputs, *(each.source for each in self._connections)]))
        self.changes: dict[str, list[tuple[float, str]]] = {".".join(source): [] for source in self._sources}

    @property
    def _until_now(self) -> dict[str, list[tuple[float, str]]]:
        return {name: list(each) for name, each in self.changes.items()}

    @_until_now.setter
    def _until_now(self, changes: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        for name, each in changes.items():
            self.changes[name][:] = [(time, text) for time, text in each]

    def read(self) -> dict[tuple[str, str], str]:
        """Return the present text of each output."""
        return {(name, variable): self._instances[name].read_text(variable) for name, variable in self._sources}

    def hand_on(self, texts: Mapping[tuple[str, str], str]) -> None:
        """Set the connected inputs to the texts of `read`."""
        for each in self._connections:
            self._instances[each.target[0]].set_start(each.target[1], texts[each.source])

    def record(self, time: float, texts: Mapping[tuple[str, str], str]) -> None:
        """Record changes up to a time in s."""
        for source, text in texts.items():
            changes = self.changes[".".join(source)]
            if not changes or changes[-1][1] != text:
                changes.append((time, text))

    def propagate(self) -> None:
        """Pass texts on at the start until nothing changes.

        Raises
        ------
        SimulationError
            When texts go round and change without end.
        """
        texts = before = self.read()
        for _ in range(len(self._connections) + 1):
            self.hand_on(texts)
            before, texts = texts, self.read()
            if texts == before:
                return
        changing = ", ".join(".".join(source) for source, text in texts.items() if text != before[source])
        raise SimulationError(f"initialization does not converge: the texts of {changing} change without end")

    def pass_on(self, time: float) -> None:
        """Read, record and hand on at a communication point in s."""
        if self._sources:
            texts = self.read()
            self.record(time, texts)
            self.hand_on(texts)
