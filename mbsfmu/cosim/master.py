"""Runs coupled units over a grid of communication points."""

from __future__ import annotations

import math
import shutil
import tempfile
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.cosim.algorithms import History, make_algorithm
from mbsfmu.cosim.energy import PowerBond, find_bonds
from mbsfmu.cosim.exchange import Exchange
from mbsfmu.cosim.exposed import add_outputs, behind_connectors
from mbsfmu.cosim.graph import Connection, SystemGraph, check_connections
from mbsfmu.cosim.instance import Archive, Floats, Instance
from mbsfmu.cosim.ssp import read_ssp
from mbsfmu.cosim.texts import Texts
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.signals import LinearSignal, StepSignal
from mbsfmu.trajectory import Trajectory
from mbsfmu.variables import Causality

Signal = Callable[[float], float] | StepSignal | LinearSignal
_ROUND_OFF = 1e-6  # a stop time that misses the grid by less than this share of a step is on it
_SETTLED = 1e-12
_MOST_SWEEPS = 100


class CosimulationResult(Trajectory):
    """Outputs of all units over time, and what the run was and cost.

    Attributes
    ----------
    algorithm, extrapolation, step
        Of the run; the step in s.
    steps
        Communication steps made.
    wall_seconds
        Time that the stepping took.
    energy_residual
        Residual energy of each power bond at the end in J; the signals `energy_residual.<bond>` have it over time.
    texts
        For each String output, the times in s at which it changed, with the text from then on.
    """

    algorithm: str = ""
    extrapolation: str = ""
    step: float = 0.0
    steps: int = 0
    wall_seconds: float = 0.0
    energy_residual: dict[str, float]
    texts: dict[str, list[tuple[float, str]]]

    @property
    def energy_residual_max(self) -> float | None:
        """Largest magnitude of the residual energy over time and bonds in J; None without bonds."""
        signals = [name for name in self.names if name.startswith("energy_residual.")]
        return max((float(np.max(np.abs(self[name]))) for name in signals), default=None)

    def summary(self) -> dict[str, Any]:
        """Return what `cosim --json` writes."""
        return {
            "algorithm": self.algorithm,
            "extrapolation": self.extrapolation,
            "step": self.step,
            "stop": float(self.time[-1]),
            "steps": self.steps,
            "wall_seconds": self.wall_seconds,
            "energy_residual": self.energy_residual,
            "final": self.final(),
        }


class CosimulationError(SimulationError):
    """A run that failed on its way; `result` has what was recorded until then."""

    def __init__(self, message: str, result: CosimulationResult) -> None:
        super().__init__(message)
        self.result = result


class CosimulationInterrupted(KeyboardInterrupt):
    """A run that was interrupted; `result` has what was recorded until then."""

    def __init__(self, result: CosimulationResult) -> None:
        super().__init__()
        self.result = result


def cosimulate(
    source: str | Path | Sequence[str | Path],
    *,
    algorithm: str = "jacobi",
    extrapolation: str = "zero",
    order: Sequence[str] | None = None,
    step: float | None = None,
    stop: float | None = None,
    connections: Sequence[str | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    progress: Callable[[float], None] | None = None,
) -> CosimulationResult:
    """Run coupled FMI 2.0 co-simulation units.

    Parameters
    ----------
    source
        An SSP file, a folder that holds one, or FMU files; the units of FMU files have the files' names.
    algorithm
        `jacobi` or `gauss-seidel`.
    extrapolation
        `zero` or `linear`.
    order
        Names of the units in the order in which Gauss–Seidel steps them; theirs by default.
    step, stop
        Communication step and end in s; from the package or the units by default.
    connections
        `a.y=b.u`, beside those of the package.
    parameters
        Start values by `unit.variable` or connector of the system, set before initialization.
    inputs
        Functions of time by `unit.variable` or connector of the system, for inputs that no connection drives; each
        step takes the value at its beginning.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When the call or a file is wrong.
    SimulationError
        When a unit fails before the first step.
    CosimulationError
        When a unit fails or an output is not finite; the message has unit, time and reason.
    """
    with ExitStack() as stack:
        graph = _load(source, stack)
        parsed = tuple(Connection.parse(each) if isinstance(each, str) else each for each in connections)
        graph = replace(graph, connections=(*graph.connections, *parsed))
        instances = stack.enter_context(_instances(graph))
        check_connections(graph, instances)
        chosen = make_algorithm(algorithm, extrapolation, order, list(instances))
        end, macro = _experiment(graph, instances, stop, step)
        driven = _Inputs(behind_connectors(inputs or {}, graph), instances, graph.connections)
        values = {**graph.parameters, **_by_instance(behind_connectors(parameters or {}, graph), instances)}
        texts = Texts(instances, graph.connections)
        exchange = _initialize(instances, graph.connections, texts, values, driven, graph.start, end)
        run = _Run(exchange, find_bonds(exchange, _between_outputs(graph.connections, instances)), graph.start)
        run.graph = graph
        run.facts = {"algorithm": algorithm, "extrapolation": extrapolation, "step": macro, "texts": texts.changes}
        count = max(1, math.ceil((end - graph.start) / macro - _ROUND_OFF))
        begin = clock.perf_counter()
        try:
            for index in range(count):
                time = graph.start + index * macro
                length = (end if index == count - 1 else graph.start + (index + 1) * macro) - time
                driven.write(time)
                texts.pass_on(time)
                outputs = chosen.step(exchange, run.history, time, length)
                run.record(graph.start + index * macro + length if index < count - 1 else end, outputs, length)
                if progress is not None and index % 100 == 0:
                    progress((index + 1) / count)
            texts.pass_on(end)
        except SimulationError as error:
            raise CosimulationError(str(error), run.result(clock.perf_counter() - begin)) from error
        except KeyboardInterrupt:
            raise CosimulationInterrupted(run.result(clock.perf_counter() - begin)) from None
        return run.result(clock.perf_counter() - begin)


class _Run:
    """What a run records."""

    def __init__(self, exchange: Exchange, bonds: list[PowerBond], start: float) -> None:
        self._exchange = exchange
        self._bonds = bonds
        self.facts: dict[str, Any] = {}
        self.graph = SystemGraph({})
        self.history = History(exchange.read())
        self._times = [start]
        self._rows = [self._row(self.history.now)]

    def _row(self, outputs: Floats) -> Floats:
        return np.concatenate([outputs, [bond.residual for bond in self._bonds]])

    def record(self, time: float, outputs: Floats, step: float) -> None:
        """Take the outputs at the end of a step."""
        if not np.isfinite(outputs).all():
            instance, variable = self._exchange.names[int(np.argmin(np.isfinite(outputs)))]
            raise SimulationError(f"{instance}.{variable} is not finite at t = {time:.9g} s: the run diverges")
        for bond in self._bonds:
            bond.add(self.history.now, outputs, step)
        self.history = History(outputs, self.history.now, step)
        self._times.append(time)
        self._rows.append(self._row(outputs))

    def result(self, wall_seconds: float) -> CosimulationResult:
        """Return what was recorded."""
        variables = {member.instance.name: member.instance.variables for member in self._exchange.members}
        names = [f"{instance}.{variable}" for instance, variable in self._exchange.names]
        units = [variables[instance][variable].unit for instance, variable in self._exchange.names]
        names += [f"energy_residual.{bond.name}" for bond in self._bonds]
        units += ["J"] * len(self._bonds)
        result = CosimulationResult(np.array(self._times), np.array(self._rows), names, units)
        result.algorithm, result.extrapolation = self.facts["algorithm"], self.facts["extrapolation"]
        result.step, result.steps = self.facts["step"], len(self._times) - 1
        result.wall_seconds, result.texts = wall_seconds, self.facts["texts"]
        result.energy_residual = {bond.name: bond.residual for bond in self._bonds}
        add_outputs(result, self.graph)
        return result


class _Inputs:
    """Inputs that follow functions of time."""

    def __init__(
        self,
        signals: Mapping[str, Signal],
        instances: Mapping[str, Instance],
        connections: Sequence[Connection],
    ) -> None:
        self._ports = []
        driven = {connection.target for connection in connections}
        for (name, variable), signal in _by_instance(signals, instances).items():
            if instances[name].variables[variable].causality is not Causality.INPUT:
                raise InputError(f"{name}.{variable} is no input; a signal cannot drive it")
            if (name, variable) in driven:
                raise InputError(f"{name}.{variable} is driven by a connection and by a signal")
            self._ports.append((instances[name].port([variable]), signal))

    def write(self, time: float) -> None:
        """Set all of them to their values at a time in s."""
        for port, signal in self._ports:
            value = signal.after(time) if isinstance(signal, (StepSignal, LinearSignal)) else signal(time)
            port.write(np.array([value]))


def _load(source: str | Path | Sequence[str | Path], stack: ExitStack) -> SystemGraph:
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.is_dir():
            found = sorted(path.glob("*.ssp"))
            if len(found) != 1:
                raise InputError(f"the folder {path} holds {len(found)} SSP files; it must hold one")
            path = found[0]
        if path.suffix == ".ssp":
            folder = Path(tempfile.mkdtemp(prefix="mbsfmu-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return read_ssp(path, folder)
        source = [path]
    files = [Path(each) for each in source]
    units = {file.stem: file for file in files}
    if len(units) < len(files):
        raise InputError("two FMU files have the same name; the units of a run need different ones")
    return SystemGraph(units)


@contextmanager
def _instances(graph: SystemGraph) -> Iterator[dict[str, Instance]]:
    with ExitStack() as stack:
        archives: dict[Path, Archive] = {}
        instances: dict[str, Instance] = {}
        for name, file in graph.units.items():
            if file not in archives:
                archives[file] = Archive(file)
                stack.callback(archives[file].close)
            instances[name] = Instance(name, archives[file])
            stack.callback(instances[name].close)
        yield instances


def _experiment(
    graph: SystemGraph, instances: Mapping[str, Instance], stop: float | None, step: float | None
) -> tuple[float, float]:
    """Return stop time and communication step in s: as called, else as package or units suggest."""
    defaults = [instance.default_experiment for instance in instances.values()]
    stops = [each for each, _ in defaults if each is not None]
    steps = [each for _, each in defaults if each is not None]
    stop = stop if stop is not None else graph.stop if graph.stop is not None else max(stops, default=None)
    step = step if step is not None else min(steps, default=None)
    for what, value, least in (("stop time", stop, graph.start), ("step", step, 0.0)):
        if value is None:
            raise InputError(f"no {what} is given, and no unit suggests one")
        if not (value > least and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g} s; it must be greater than {least:g} s")
    assert stop is not None
    assert step is not None
    return stop, step


def _by_instance(values: Mapping[str, Any], instances: Mapping[str, Instance]) -> dict[tuple[str, str], Any]:
    result = {}
    for reference, value in values.items():
        name, _, variable = reference.partition(".")
        if name not in instances:
            raise InputError(f"there is no unit '{name}' for '{reference}'; units are {', '.join(instances)}")
        if variable not in instances[name].variables:
            raise InputError(f"{name} has no variable '{variable}'")
        result[name, variable] = value
    return result


def _between_outputs(connections: Sequence[Connection], instances: Mapping[str, Instance]) -> list[Connection]:
    """Leave out the connections to parameters: they count at initialization only."""
    return [each for each in connections if instances[each.target[0]].variables[each.target[1]].causality == "input"]


def _initialize(
    instances: Mapping[str, Instance],
    connections: Sequence[Connection],
    texts: Texts,
    parameters: Mapping[tuple[str, str], Any],
    driven: _Inputs,
    start: float,
    stop: float,
) -> Exchange:
    """Bring all instances into step mode, connected values being passed on until they settle."""
    for instance in instances.values():
        instance.setup(start, stop)
    for (name, variable), value in parameters.items():
        instances[name].set_start(variable, value)
    for instance in instances.values():
        instance.enter_initialization()
    driven.write(start)
    everything = Exchange(instances, connections)
    before, words = everything.read(), texts.read()
    moved = np.ones(len(before), dtype=bool)
    for _ in range(_MOST_SWEEPS):
        for member in everything.members:
            if len(member.source_of_entry):
                member.entries.write(before[member.source_of_entry])
        texts.hand_on(words)
        after, new_words = everything.read(), texts.read()
        moved = np.abs(after - before) > _SETTLED * np.maximum(np.abs(after), 1.0)
        if not moved.any() and new_words == words:
            break
        before, words = after, new_words
    else:
        names = ", ".join(".".join(everything.names[index]) for index in np.flatnonzero(moved))
        raise SimulationError(f"initialization does not settle: {names} still change after {_MOST_SWEEPS} sweeps")
    for instance in instances.values():
        instance.exit_initialization()
    return Exchange(instances, _between_outputs(connections, instances))
