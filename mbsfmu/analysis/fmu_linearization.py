"""Linear systems of single and coupled FMUs, of each at its present state in its own units."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.analysis.linear_system import Floats, LinearSystem, OperatingValue
from mbsfmu.analysis.linearization import has_kink
from mbsfmu.analysis.modal_analysis import RootLocus, root_locus
from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.cosim.coupling.consistent_start import initialize_values
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.graph import Connection, Exposed
from mbsfmu.cosim.fmus.archive import read_fmu
from mbsfmu.cosim.fmus.fmu_instance import FmuError, Instance, Port
from mbsfmu.cosim.fmus.model_exchange import ModelExchangeInstance
from mbsfmu.cosim.fmus.variable_descriptions import unit_name
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.load_fmus import load_graph
from mbsfmu.modelling.measurement_units import BASE_UNITS, IDENTITY, UnitOfMeasurement, numbers_in
from mbsfmu.modelling.variables import Causality, Variability

_DIFFERENCE = float(np.cbrt(np.finfo(float).eps))
"""Share of a magnitude by which central differences go to either side: their error is least about there."""
_CHOSEN = re.compile(r"independent\.(position|velocity)\[\d+\]")
"""States of our FMUs of machines with loops, which are the coordinates that are independent at the time."""
_OF_COORDINATES = ("m", "rad", "m/s", "rad/s")
"""Units of joint coordinates and their velocities."""
_ROUND_OFF = 1e-9
"""Share by which a derivative of a coordinate by itself may differ from 1, and by other states from 0."""


def continuous_variables(instance: Instance, causality: Causality) -> list[str]:
    """Return the names of an FMU's continuous Real variables of one causality, without aliases of inputs."""
    return [
        name
        for name, each in instance.variables.items()
        if (each.causality, each.variability, instance.kinds[name]) == (causality, Variability.CONTINUOUS, "Real")
        and not (causality is Causality.INPUT and name in instance.aliases)
    ]


class FmuPoint:
    """Linearization point of an FMU: δẋ = A δx + B δu, δy = C δx + D δu.

    Parameters
    ----------
    instance
        The FMU, at its start or between two steps.
    outputs
        Names of the variables y.

    Attributes
    ----------
    states, inputs, outputs
        Names of x, u and y.
    state_values, input_values, output_values
        Values there.
    rates
        ẋ there.
    a, b, c, d
        The matrices.
    note
        What has to be said of the derivatives, in sentences; empty where they are the FMU's own, and nothing is held.

    Raises
    ------
    InputError
        When the FMU is for co-simulation and gives no derivatives of its states.
    SimulationError
        When the FMU cannot be evaluated there.
    """

    def __init__(self, instance: Instance, outputs: Sequence[str]) -> None:
        self.instance = instance
        self.states, self.outputs = list(instance.states), list(outputs)
        self.inputs = continuous_variables(instance, Causality.INPUT)
        self._inputs, self._outputs = instance.port(self.inputs), instance.port(self.outputs)
        self.input_values = _read(self._inputs)
        self.output_values = _read(self._outputs)
        self.note = ""
        if isinstance(instance, ModelExchangeInstance):
            self.state_values = instance.current_states
            self.rates = self._rates(self.state_values)
        else:
            self._check_states()
            self.state_values = _read(instance.port(self.states))
            self.rates = _read(instance.port(instance.derivatives))
        self.a, self.b, self.c, self.d = self._matrices()
        if isinstance(instance, ModelExchangeInstance) and np.isfinite(event := instance.read_next_event()):
            held = (
                f"what changes at events of {instance.name}, the next of which is at t = {event:.6g} s, is held, as "
                "samples of controllers and waves in lines with a delay"
            )
            self.note = "; ".join(filter(None, (self.note, held)))

    def _check_states(self) -> None:
        """Check that a co-simulation FMU declares its states and their derivatives."""
        instance = self.instance
        if self.states and len(instance.derivatives) == len(self.states) and instance.gives_directional_derivatives:
            return
        lacks = "lists no states" if not self.states else "gives no directional derivatives"
        raise InputError(
            f"{instance.name} is an FMU for co-simulation that {lacks}: it cannot be linearized; take one for "
            "model exchange, of a model of ours by mbsfmu export MODEL --layout separate --kind cs,me"
        )

    def _matrices(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return A, B, C and D by directional derivatives of the FMU, or differences."""
        size, instance = len(self.states), self.instance
        if instance.gives_directional_derivatives:
            try:
                found = instance.directional_derivative(
                    [*instance.derivatives, *self.outputs], [*self.states, *self.inputs]
                )
                return found[:size, :size], found[:size, size:], found[size:, :size], found[size:, size:]
            except FmuError as error:
                if error.fatal or not isinstance(instance, ModelExchangeInstance):
                    raise
                self.note = f"the derivatives of {instance.name} are found by differences: {error}"
        elif self.states or self.inputs:
            self.note = f"the derivatives of {instance.name} are found by differences: the FMU provides none"
        columns = [
            *(self._difference(self._moved_state, k, scale) for k, scale in enumerate(self._state_scale())),
            *(self._difference(self._moved_input, k, scale) for k, scale in enumerate(self._input_scale())),
        ]
        found = np.array(columns).reshape(len(columns), size + len(self.outputs)).T
        return found[:size, :size], found[:size, size:], found[size:, :size], found[size:, size:]

    # -- values next to the point -----------------------------------------------------------------------------

    def _difference(self, moved: Callable[[int, float], Floats], place: int, scale: float) -> Floats:
        step = _DIFFERENCE * scale
        return (moved(place, step) - moved(place, -step)) / (2.0 * step)

    def _rates(self, states: Floats) -> Floats:
        instance = self.instance
        assert isinstance(instance, ModelExchangeInstance)
        return instance.rates(instance.current_time, states)[: len(self.states)]

    def _everything(self, states: Floats) -> Floats:
        return np.concatenate([self._rates(states), self._outputs.read()])

    def _moved_state(self, place: int, distance: float) -> Floats:
        states = self.state_values.copy()
        states[place] += distance
        found = self._everything(states)
        self._rates(self.state_values)
        return found

    def _moved_input(self, place: int, distance: float) -> Floats:
        self._write_inputs(self.input_values + distance * (np.arange(len(self.inputs)) == place))
        found = self._everything(self.state_values)
        self._write_inputs(self.input_values)
        return found

    def _write_inputs(self, values: Floats) -> None:
        self._inputs.values[:] = values
        self._inputs.write()

    def _state_scale(self) -> Floats:
        instance = self.instance
        nominal = instance.tolerances if isinstance(instance, ModelExchangeInstance) else np.ones(len(self.states))
        return np.maximum(np.abs(self.state_values), nominal[: len(self.states)])

    def _input_scale(self) -> Floats:
        nominal = [self.instance.variables[name].nominal or 1.0 for name in self.inputs]
        return np.maximum(np.abs(self.input_values), np.abs(nominal))

    def coordinates(self) -> dict[str, str]:
        """Return the joint coordinate that each state of our FMUs is at this point, where a variable tells it.

        It is the variable that has the state's value, and the derivative 1 by it and 0 by all other states.
        """
        instance, places = self.instance, [k for k, name in enumerate(self.states) if _CHOSEN.fullmatch(name)]
        if not places or instance.carried is None or not instance.gives_directional_derivatives:
            return {}
        others = {*self.states, *instance.derivatives}
        read = [
            name
            for causality in (Causality.OUTPUT, Causality.LOCAL)
            for name in continuous_variables(instance, causality)
            if name not in others and instance.units[name].name in _OF_COORDINATES
        ]
        alike = np.isin(_read(instance.port(read)), self.state_values[places])
        named = [name for name, equal in zip(read, alike, strict=True) if equal]
        if not named:
            return {}
        slopes = instance.directional_derivative(named, self.states)
        found: dict[str, str] = {}
        for place in places:
            unit = np.arange(len(self.states)) == place
            of_it = np.flatnonzero(np.all(np.abs(slopes - unit) < _ROUND_OFF, axis=1))
            if len(of_it):
                found[self.states[place]] = named[of_it[0]]
        return found

    def kinks(self) -> list[str]:
        """Return the states and inputs along which rates or outputs have a kink; none for co-simulation FMUs."""
        if not isinstance(self.instance, ModelExchangeInstance):
            return []
        states, inputs = self._state_scale(), self._input_scale()
        ranges = np.max(
            np.abs(np.block([[self.a, self.b], [self.c, self.d]])) * np.concatenate([states, inputs]), axis=1, initial=0
        )
        found = []
        for names, scales, moved in (
            (self.states, states, self._moved_state),
            (self.inputs, inputs, self._moved_input),
        ):
            for place, (name, scale) in enumerate(zip(names, scales.tolist(), strict=True)):
                if has_kink(partial(moved, place), scale, ranges):
                    found.append(name)
        return found


def _read(port: Port) -> Floats:
    return port.read().copy() if port.names else np.zeros(0)


_SINGULAR = 1e-10
"""Reciprocal condition number of I − K D, rows and columns scaled, below which algebraic loops have no single solution:
round-off of their gains, 1e-16, would then change the result in its sixth digit."""
_STEP = 1e-3
"""Communication step in s of a run of no length, where nothing is to be stepped."""
_NAMED: dict[tuple[int, ...], str] = {(1, -1, -2): "Pa", (1, 1, -2): "N", (1, 2, -2): "J", (1, 2, -3): "W"}
"""SI units with a name, by their exponents of kg, m and s."""
_INTEGRALS = frozenset(("energy", "hydraulic_energy"))
"""Parts of the names of integrals of energy, which nothing depends on."""

End = tuple[str, str]
"""Instance and variable."""


def linearize(
    source: str | Path | Sequence[str | Path],
    *,
    at: float | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    step: float | None = None,
) -> LinearSystem:
    """Linearize FMUs, alone or coupled: δẋ = A δx + B δu, δy = C δx + D δu, in SI units.

    FMUs are taken for model exchange where they are for that. Their directional derivatives are used; where they
    provide none, differences, and a sentence in `notes` says so. FMUs for co-simulation alone can be linearized if they
    list their states and provide directional derivatives.

    Parameters
    ----------
    source
        An FMU file, an SSP file, a folder that holds one, or several FMU files as for `cosimulate`.
    at
        Time in s; the start by default. A run with the options of `cosimulate` leads there.
    inputs, outputs
        Patterns such as `valve.*`, by `variable` of one FMU, `unit.variable` of several, or connectors of the system.
        By default all continuous inputs that no connection drives, and all continuous outputs. States and other
        continuous variables can be outputs too, if FMUs give their derivatives.
    parameters
        Start values, as for `cosimulate`; of one FMU also without its name.
    connections
        As for `cosimulate`.
    step
        Communication step of the run in s; what FMUs suggest by default.

    Raises
    ------
    InputError
        When a pattern means nothing, an FMU cannot be linearized, or connections close an algebraic loop that has no
        single solution.
    SimulationError
        When the run to the time fails.
    """
    chosen = [source] if isinstance(source, str | Path) else list(source)
    with ExitStack() as stack:
        graph = load_graph(source if isinstance(source, str | Path) else chosen, stack)
        exchanged = [name for name, file in graph.units.items() if is_exchanged(file)]
        if graph.joints:
            raise InputError(f"FMUs with the joint {graph.joints[0]} between them cannot be linearized")
        names, start = list(graph.units), graph.start
    time = start if at is None else at
    if not (np.isfinite(time) and time >= start):
        raise InputError(f"FMUs are linearized at {start:g} s or later; {time:g} s is not")
    alone = names[0] if len(names) == 1 and not graph.connections and not connections else ""
    values = {_qualified(name, alone): value for name, value in (parameters or {}).items()}
    moving = time > start
    stop, length = (time, step) if moving else (start + _STEP, _STEP)
    with Cosimulation(
        source, connections=connections, parameters=values, stop=stop, step=length, model_exchange=exchanged or None
    ) as run:
        if moving:
            run.run()
        connectors = (*graph.inputs, *graph.outputs)
        coupled = _Coupled(run.coupling, connectors, alone, time, moving=moving)
        return coupled.system(alone or Path(chosen[0]).stem, _given(inputs), _given(outputs))


def root_locus_of_fmus(
    source: str | Path | Sequence[str | Path],
    parameter: str,
    values: Sequence[float | str],
    *,
    parameters: Mapping[str, Any] | None = None,
    **given: Any,
) -> RootLocus:
    """Return the modes of FMUs for several values of a parameter.

    Parameters
    ----------
    source, parameters, given
        As for `linearize`.
    parameter
        Name of a parameter, start value or input, as in `parameters`.
    values
        Its values, in the unit that its FMU declares or with units of their own; two at least.

    Raises
    ------
    InputError
        As `linearize`; when the number of states changes with the parameter.
    SimulationError
        As `linearize`.
    """

    def system(value: float) -> LinearSystem:
        return linearize(source, parameters={**(parameters or {}), parameter: value}, **given)

    unit = _declared_unit(source, parameter)
    return root_locus(parameter, unit, numbers_in(values, unit), system)


def _declared_unit(source: str | Path | Sequence[str | Path], name: str) -> str:
    """Return the unit that an FMU declares for a variable; empty without one."""
    with ExitStack() as stack:
        files = load_graph(source, stack).units
        owner, _, variable = name.partition(".")
        pairs = [(file, variable) for unit, file in files.items() if unit == owner]
        pairs += [(file, name) for file in files.values() if len(files) == 1]
        for file, wanted in pairs:
            described = read_fmu(file).description.modelVariables
            found = [each for each in described if each.name == wanted]
            if found:
                return unit_name(found[0])
    return ""


def is_exchanged(file: Path) -> bool:
    """Return whether an FMU is for model exchange; an unreadable file is refused when loaded."""
    try:
        return read_fmu(file).description.modelExchange is not None
    except InputError:
        return False


def _qualified(name: str, alone: str) -> str:
    return f"{alone}.{name}" if alone and not name.startswith(f"{alone}.") else name


def _given(patterns: Sequence[str]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


@dataclass(frozen=True)
class _Signal:
    """An input, state or output: its FMU, its name, and the names that patterns may match."""

    end: End
    names: tuple[str, ...]


class _Coupled:
    """FMUs at the linearization point, and their connections.

    Parameters
    ----------
    coupling
        The FMUs and their connections.
    connectors
        Connectors of the system.
    alone
        Name of the FMU if there is one alone, whose variables then need it not.
    time
        Time in s.
    moving
        Whether a run has led there.
    """

    def __init__(
        self, coupling: CouplingData, connectors: Iterable[Exposed], alone: str, time: float, *, moving: bool
    ) -> None:
        self._coupling, self._alone, self._time = coupling, alone, time
        self._instances = {member.instance.name: member.instance for member in coupling.members}
        self._connections = list(coupling.connections)
        self._connectors: dict[End, list[str]] = {}
        for each in connectors:
            if each.map == IDENTITY:
                self._connectors.setdefault(each.end, []).append(each.name)
        self._notes = self._match() if moving and self._connections else []

    def _match(self) -> list[str]:
        """Set connected inputs to the present outputs; return a message if this is impossible."""
        held = [name for name, each in self._instances.items() if not isinstance(each, ModelExchangeInstance)]
        if held:
            return [f"connected inputs are those of the last communication step: {', '.join(held)} can take no others"]
        initialize_values(self._coupling, self._time)
        return []

    def system(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> LinearSystem:
        """Return the linear system with the inputs and outputs that match patterns."""
        read = self._chosen(outputs, self._outputs() if outputs else self._signals(Causality.OUTPUT), "output")
        sources = [each.source for each in self._connections]
        wanted = dict.fromkeys((*(each.end for each in read), *sources))
        points = {
            unit: FmuPoint(instance, [variable for owner, variable in wanted if owner == unit])
            for unit, instance in self._instances.items()
        }
        parts = _Blocks(points)
        driven = [each.target for each in self._connections]
        free = self._chosen(
            inputs, [each for each in self._signals(Causality.INPUT) if each.end not in driven], "input"
        )
        a, b, c, d = parts.coupled(self._connections, [each.end for each in free])
        integrals = np.array([self._is_integral(end) for end in parts.states], dtype=bool)
        rows = [parts.outputs.index(each.end) for each in read]
        if not outputs:
            kept = [place for place, row in enumerate(rows) if not np.any(c[row, integrals])]
            rows, read = [rows[place] for place in kept], [read[place] for place in kept]
        for row, each in zip(rows, read, strict=True):
            if np.any(c[row, integrals]):
                raise InputError(f"'{each.names[0]}' is an integral of energy, and no output of a linear system")
        states = [each for each, integral in zip(parts.states, integrals, strict=True) if not integral]
        keep = ~integrals
        to_states = self._factors(states)
        to_inputs, to_outputs = (self._factors([each.end for each in signals]) for signals in (free, read))
        kinks = {(unit, each) for unit, point in points.items() for each in point.kinks()}
        told = {(unit, state): name for unit, point in points.items() for state, name in point.coordinates().items()}
        seen = [*states, *(each.end for each in free)]
        return LinearSystem(
            name=name,
            time=self._time,
            a=_scaled(a[keep][:, keep], to_states, to_states),
            b=_scaled(b[keep], to_states, to_inputs),
            c=_scaled(c[rows][:, keep], to_outputs, to_states),
            d=_scaled(d[rows], to_outputs, to_inputs),
            states=tuple(
                self._value(end, value, told.get(end)) for end, value in parts.state_values.items() if end in states
            ),
            inputs=tuple(self._value(each.end, parts.input_values[each.end]) for each in free),
            outputs=tuple(self._value(each.end, parts.output_values[each.end]) for each in read),
            rates=parts.rates[keep] * to_states,
            kinks=tuple(self._called((end[0], told.get(end, end[1])))[0] for end in seen if end in kinks),
            notes=(*self._notes, *(point.note for point in points.values() if point.note)),
        )

    # -- names ------------------------------------------------------------------------------------------------

    def _called(self, end: End) -> tuple[str, ...]:
        """Return the names of a variable, that of tables first."""
        aliases = [name for name, behind in self._instances[end[0]].aliases.items() if behind == end[1]]
        names = [name for each in (end[1], *aliases) for name in (each, f"{end[0]}.{each}")]
        return (*(names if end[0] == self._alone else names[1::2]), *self._connectors.get(end, ()))

    def _signals(self, causality: Causality) -> list[_Signal]:
        return [
            _Signal((unit, variable), self._called((unit, variable)))
            for unit, instance in self._instances.items()
            for variable in continuous_variables(instance, causality)
        ]

    def _outputs(self) -> list[_Signal]:
        """Return the possible outputs: outputs, local variables, states."""
        return [*self._signals(Causality.OUTPUT), *self._signals(Causality.LOCAL)]

    def _chosen(self, patterns: Sequence[str], among: Sequence[_Signal], kind: str) -> list[_Signal]:
        """Return the signals that match patterns, in order; all without a pattern."""
        if not patterns:
            return list(among)
        found: dict[End, _Signal] = {}
        for pattern in patterns:
            meant = [each for each in among if means(pattern, each.names)]
            if not meant:
                driven = [self._called(each.target) for each in self._connections]
                if kind == "input" and any(means(pattern, names) for names in driven):
                    raise InputError(f"'{pattern}' is driven by a connection; leave that out for an input")
                called = {each.names[0]: each.names for each in among}
                raise InputError(f"there is no {kind} '{pattern}'; {nearest(pattern, called, called.__getitem__)}")
            found |= {each.end: each for each in meant}
        return list(found.values())

    def _is_integral(self, end: End) -> bool:
        """Return whether a state is an energy integral of one of our FMUs, on which nothing depends."""
        instance, parts = self._instances[end[0]], end[1].split(".")
        return (
            instance.carried is not None and bool(_INTEGRALS & set(parts[:-1])) and instance.units[end[1]].name == "J"
        )

    # -- units of measurement ---------------------------------------------------------------------------------

    def _factors(self, ends: Sequence[End]) -> Floats:
        """Return the conversion factors of the variables to SI."""
        return np.array([self._instances[unit].units[variable].factor for unit, variable in ends], dtype=float)

    def _value(self, end: End, value: float, told: str | None = None) -> OperatingValue:
        """Return a value in SI with its name, or that of the variable that tells what a state is."""
        end = (end[0], told or end[1])
        unit = self._instances[end[0]].units[end[1]]
        return OperatingValue(self._called(end)[0], _si_name(unit), unit.in_base_units(value))


class _Blocks:
    """Block-diagonal linear systems of FMUs without coupling.

    Attributes
    ----------
    states, inputs, outputs
        The variables.
    state_values, input_values, output_values
        Their values.
    rates
        Derivatives of the states.
    """

    def __init__(self, points: Mapping[str, FmuPoint]) -> None:
        def named(kind: str) -> dict[End, float]:
            return {
                (unit, name): value
                for unit, point in points.items()
                for name, value in zip(
                    getattr(point, f"{kind}s"), getattr(point, f"{kind}_values").tolist(), strict=True
                )
            }

        self.state_values, self.input_values, self.output_values = map(named, ("state", "input", "output"))
        self.states, self.inputs, self.outputs = map(list, (self.state_values, self.input_values, self.output_values))
        every = list(points.values())
        self.rates = np.concatenate([each.rates for each in every])
        from scipy.linalg import block_diag  # noqa: PLC0415 - takes long to load

        self._a, self._b, self._c, self._d = (
            block_diag(*(getattr(each, matrix) for each in every)) for matrix in ("a", "b", "c", "d")
        )

    def coupled(self, connections: Sequence[Connection], free: Sequence[End]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return A, B, C and D with connected inputs: u = K y + u₀, so (I − K D) u = K C x + u₀.

        Raises
        ------
        InputError
            When algebraic loops have no single solution.
        """
        gains = np.zeros((len(self.inputs), len(self.outputs)))
        for each in connections:
            if each.target in self.inputs:
                gains[self.inputs.index(each.target), self.outputs.index(each.source)] = each.factor
        chosen = np.zeros((len(self.inputs), len(free)))
        chosen[[self.inputs.index(end) for end in free], range(len(free))] = 1.0
        loops = np.eye(len(self.inputs)) - gains @ self._d
        self._check(loops)
        by_states, by_inputs = np.linalg.solve(loops, gains @ self._c), np.linalg.solve(loops, chosen)
        return (
            self._a + self._b @ by_states,
            self._b @ by_inputs,
            self._c + self._d @ by_states,
            self._d @ by_inputs,
        )

    def _check(self, loops: Floats) -> None:
        """Check that algebraic loops have one solution, independent of units."""
        from scipy.linalg import matrix_balance  # noqa: PLC0415 - takes long to load

        if not len(loops):
            return
        balanced = np.asarray(matrix_balance(loops, permute=False)[0], dtype=float)
        left, sizes, _ = np.linalg.svd(balanced)
        if sizes[-1] > _SINGULAR * sizes[0]:
            return
        most = np.abs(left[:, -1])
        names = [".".join(end) for end, size in zip(self.inputs, most, strict=True) if size > 0.1 * np.max(most)]
        raise InputError(
            f"connections close an algebraic loop over {', '.join(names)} whose gain is 1: it has no single solution, "
            "and the FMUs no linear system"
        )


def _scaled(matrix: Floats, rows: Floats, columns: Floats) -> Floats:
    return matrix * rows[:, None] / columns


def _si_name(unit: UnitOfMeasurement) -> str:
    """Return the SI name of a unit of measurement; the unit itself if it is one, or undefined."""
    if unit.exponents is None or (unit.factor == 1.0 and unit.offset == 0.0):
        return unit.name
    if not any(unit.exponents[3:]) and (named := _NAMED.get(unit.exponents[:3])):
        return named
    powers = zip(BASE_UNITS, unit.exponents, strict=True)
    return ".".join(name if power == 1 else f"{name}{power}" for name, power in powers if power) or "1"
