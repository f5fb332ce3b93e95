"""Description of an FMU, independent of the FMI version: units, variables, vectors, clocks, terminals, magnitudes."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Protocol, Self

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import Origin, content_key
from mbsfmu.base.physical_units import dimension
from mbsfmu.compiling.compiler import Clocks
from mbsfmu.modelling.variables import (
    STRUCTURED_NAME,
    Causality,
    ModelExchangeData,
    Naming,
    Variability,
    Variable,
    flat_description,
    flat_names,
    identifier,
)

UNIT_FILE = "unit.json"
"""Resource of a Python FMU that says what its simulation is made from."""
FILES = "parts"
"""Folder in the resources of the files that the unit's factory asks for."""


class FmuSimulation(Protocol):
    """A simulation seen from outside; `mbsfmu.simulation.simulation.Simulation` is one."""

    name: str
    description: str
    stop_time: float
    origin: Origin

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order of the FMU."""
        ...

    @property
    def dependencies(self) -> Mapping[str, tuple[str, ...]]:
        """Inputs on which each output depends directly while stepping."""
        ...

    @property
    def initial_dependencies(self) -> Mapping[str, tuple[str, ...] | None]:
        """Parameters and inputs on which outputs and calculated parameters depend after initialization.

        None where it may be all.
        """
        ...

    @property
    def step_size(self) -> float:
        """Largest internal step in s."""
        ...

    @property
    def tolerance(self) -> float:
        """Relative tolerance."""
        ...

    def set_tolerance(self, relative: float) -> None:
        """Change the relative tolerance, where there is one."""
        ...

    @property
    def time(self) -> float:
        """Present time in s."""
        ...

    def initialize(self, time: float = 0.0) -> None:
        """Find the consistent state at the start."""
        ...

    def step(self, time: float, step: float) -> None:
        """Advance by any step in s."""
        ...

    def get(self, name: str) -> float:
        """Return the value of a variable."""
        ...

    def set(self, name: str, value: float) -> None:
        """Set the value of a variable."""
        ...

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if `set` would take it now; raise an InputError if not."""
        ...

    def save(self) -> bytes:
        """Return the complete state."""
        ...

    def restore(self, saved: bytes) -> None:
        """Go back to a saved state."""
        ...

    def reset(self) -> None:
        """Go back to start values."""
        ...


LOG_CATEGORIES = {
    "logStatusWarning": "What should be looked at.",
    "logStatusDiscard": "Steps that could not be made.",
    "logStatusError": "Calls that were refused, with the reason.",
    "logStatusFatal": "Failures after which the FMU cannot be used.",
    "logRemark": "What happened in the run, as an end stop that was reached.",
    "logAll": "Everything.",
}

_COMPONENTS = ("wxyz", "xyz")  # of quaternions, and of vectors in space


@dataclass(frozen=True)
class Entry:
    """One variable or one array of several, as a description lists it.

    Attributes
    ----------
    name
        Its name; of an array that of its components without their last part.
    first, size
        Index of the first variable, and how many there are.
    """

    name: str
    first: int
    size: int


def entries(variables: Sequence[Variable], apart: Collection[str] = ()) -> tuple[Entry, ...]:
    """Return variables in order, with components of vectors combined.

    `payload.force.x`, `.y` and `.z` are the array `payload.force` of three where all of them follow each other and are
    alike in all that a description says of an array as a whole, and where nothing else has that name.

    Parameters
    ----------
    variables
        All of a unit.
    apart
        Names of variables that stay single, with all components of their vectors.
    """
    names = {each.name for each in variables}
    found: list[Entry] = []
    place = 0
    while place < len(variables):
        size = next((len(axes) for axes in _COMPONENTS if _is_vector(variables[place : place + len(axes)], axes)), 1)
        components = [each.name for each in variables[place : place + size]]
        name = components[0].rpartition(".")[0]
        if size == 1 or name in names or not set(components).isdisjoint(apart):
            found += [Entry(single, place + index, 1) for index, single in enumerate(components)]
        else:
            found.append(Entry(name, place, size))
        place += size
    return tuple(found)


def _is_vector(variables: Sequence[Variable], axes: str) -> bool:
    """Return whether variables are the components of one vector, complete and in order."""
    vector = variables[0].name.rpartition(".")[0]
    if not vector or [each.name for each in variables] != [f"{vector}.{axis}" for axis in axes]:
        return False
    return len({(v.causality, v.variability, v.unit, v.minimum, v.maximum) for v in variables}) == 1


class Sampled(Protocol):
    """What is updated at instants; `mbsfmu.systems.system.Sampling` is one."""

    @property
    def owner(self) -> str:
        """Name of what is updated."""
        ...

    @property
    def sample_time(self) -> float:
        """Time between instants in s."""
        ...

    @property
    def offset(self) -> float:
        """First instant in s."""
        ...

    @property
    def delays(self) -> bool:
        """Whether it brings back later what has happened to continuous states: then it has no clock."""
        ...


@dataclass(frozen=True)
class ClockVariable:
    """A clock in a description.

    Attributes
    ----------
    name, description
        As they are written.
    number
        Among all that is updated; the value reference follows from it.
    interval, shift
        Of a periodic one, in s; None of one that the host triggers.
    """

    name: str
    description: str
    number: int
    interval: float | None
    shift: float | None


def clock_variables(clocks: Clocks, samplings: Iterable[Sampled], taken: Collection[str]) -> tuple[ClockVariable, ...]:
    """Return the clocks of an FMU's sampled blocks.

    Parameters
    ----------
    clocks
        Which there are.
    samplings
        All that is updated.
    taken
        Names of variables, which clocks must not have. They tell whether those of a block begin with its name, as
        the clock's then does.
    """
    if clocks == "none":
        return ()
    names, found = set(taken), []
    for number, each in enumerate(samplings):
        if each.delays:
            continue
        prefix = f"{each.owner}."
        name = f"{prefix}clock" if any(other.startswith(prefix) for other in taken) else "clock"
        while name in names:
            name += "_"
        names.add(name)
        times = (each.sample_time, each.offset) if clocks == "periodic" else (None, None)
        found.append(ClockVariable(name, f"updates of {each.owner}", number, *times))
    return tuple(found)


_EXCHANGED = (Causality.INPUT, Causality.OUTPUT)
_MECHANICAL = {"N": ("m/s", "m"), "N.m": ("rad/s", "rad")}
"""Units of efforts, with those of the rates that make a power with them, and of what these are the rates of."""
_PRESSURE, _FLOW = "Pa", "m3/s"


@dataclass(frozen=True)
class TerminalMember:
    """A variable of a terminal.

    Attributes
    ----------
    variable
        Its name in the unit.
    name
        Its name in the port: ports are connected by these.
    kind
        `inflow` and `outflow` of what adds up to zero where ports meet, positive into the unit and out of it; `signal`
        of what is the same in all of them.
    """

    variable: str
    name: str
    kind: str


@dataclass(frozen=True)
class Terminal:
    """A terminal: its name and its variables."""

    name: str
    members: tuple[TerminalMember, ...]


def terminals(variables: Sequence[Variable]) -> tuple[Terminal, ...]:
    """Return the terminals: inputs and outputs of one component whose product is a power, one in, one out.

    Force and velocity, torque and angular velocity, with the length or angle on the side of the rate; pressure and
    flow. A force or torque that comes in acts on the unit, one that goes out acts on what it is connected with; flows
    are positive into the unit.
    """
    exchanged: dict[str, list[Variable]] = {}
    for variable in variables:
        owner, dot, _ = variable.name.rpartition(".")
        if dot and variable.causality in _EXCHANGED:
            exchanged.setdefault(owner, []).append(variable)
    found = ((owner, tuple(_members(own))) for owner, own in exchanged.items())
    return tuple(Terminal(owner, members) for owner, members in found if members)


def _members(variables: Sequence[Variable]) -> Iterator[TerminalMember]:
    """Return the members of the terminal of one component's variables; none if there is none, or several."""
    pairs = [
        (effort, rate)
        for effort in variables
        for rate in variables
        if effort.causality is not rate.causality and _makes_power(effort.unit, rate.unit)
    ]
    if len(pairs) != 1:
        return
    ((effort, rate),) = pairs
    if effort.unit == _PRESSURE:
        yield _member(effort, "signal")
        yield _member(rate, "inflow")
        return
    yield _member(effort, "inflow" if effort.causality is Causality.INPUT else "outflow")
    yield _member(rate, "signal")
    position = _MECHANICAL[effort.unit][1]
    yield from (_member(v, "signal") for v in variables if (v.unit, v.causality) == (position, rate.causality))


def _makes_power(effort: str, rate: str) -> bool:
    return (effort, rate) == (_PRESSURE, _FLOW) or (effort in _MECHANICAL and _MECHANICAL[effort][0] == rate)


def _member(variable: Variable, kind: str) -> TerminalMember:
    return TerminalMember(variable.name, variable.name.rpartition(".")[2], kind)


_STANDARD_GRAVITY = 9.81


@dataclass(frozen=True)
class Scale:
    """Scale of a model: mass, length and time, from which nominal values follow by unit.

    Attributes
    ----------
    mass
        Of all bodies, in kg.
    length
        Geometric mean of the lengths among the parameters, in m.
    time
        In which something falls so far, in s.
    """

    mass: float
    length: float
    time: float

    @classmethod
    def of(cls, variables: Iterable[Variable]) -> Self:
        """Return the scale from the start values of the parameters."""
        given: dict[str, list[float]] = {}
        for variable in variables:
            if variable.causality is Causality.PARAMETER and variable.start:
                given.setdefault(variable.unit, []).append(abs(variable.start))
        if "m" not in given:
            return cls(1.0, 1.0, 1.0)  # nothing tells: what the FMI takes where nothing is said
        length = float(np.exp(np.mean(np.log(given["m"]))))
        gravity = hypot(*given.get("m/s2", [])) or _STANDARD_GRAVITY
        return cls(sum(given.get("kg", [1.0])), length, (length / gravity) ** 0.5)

    def nominal(self, variable: Variable) -> float | None:
        """Return the nominal value of a variable, to one digit; None for discrete ones.

        The variable's own nominal value has priority, then its start value, then the scale.
        """
        if variable.variability is not Variability.CONTINUOUS:
            return None
        magnitude = variable.nominal or abs(variable.start or 0.0)
        if not magnitude:
            scale = {"kg": self.mass, "m": self.length, "s": self.time}
            exponents = dimension(variable.unit)
            magnitude = float(np.prod([scale.get(base, 1.0) ** exponent for base, exponent in exponents.items()]))
        return float(f"{magnitude:.0e}")


_GIVEN = (Causality.PARAMETER, Causality.INPUT)
MOST_LISTED = 100_000
"""Dependencies that are listed where an unknown of model exchange may depend on everything, which a missing list says
as well: CasADi reads lists only. Each takes some five characters of the description."""
_NAMESPACE = uuid.UUID("6f2bd5b8-9f5e-4b0e-8f3e-3a7d0a3f4c51")


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of an FMU's binaries.

    Attributes
    ----------
    needs_tool
        Whether something must be installed where it runs.
    takes_any_step
        Whether communication steps may differ.
    takes_slopes
        Whether inputs may be given with derivatives by time.
    gives_rates
        Whether outputs have derivatives by time.
    gives_derivatives
        Whether unknowns have directional derivatives.
    saves_state
        Whether the state can be saved and restored.
    has_events
        Whether signals of its own jump or bend, or discrete states are updated.
    serializes_state
        Whether saved states can be turned into bytes.
    only_once
        Whether a process can have only one instance.
    """

    needs_tool: bool
    takes_any_step: bool = True
    takes_slopes: bool = False
    gives_rates: bool = False
    gives_derivatives: bool = False
    saves_state: bool = True
    has_events: bool = False
    serializes_state: bool = True
    only_once: bool = False


@dataclass(frozen=True)
class Integrated:
    """Continuous states and derivatives for an importer's solver, by the indices of variables.

    Attributes
    ----------
    derivatives
        The derivative of each continuous state by the state, in the order in which solvers have them.
    dependencies
        The inputs and continuous states that each derivative depends on; None where it may be all.
    indicators
        The event indicators, each with the inputs and continuous states that it depends on.
    gives_derivatives
        Whether unknowns have directional derivatives by the states.
    """

    derivatives: dict[int, int]
    dependencies: dict[int, tuple[int, ...] | None]
    indicators: dict[int, tuple[int, ...] | None]
    gives_derivatives: bool


@dataclass(frozen=True)
class Described:
    """A variable in a description; its value reference is its index.

    Attributes
    ----------
    variable
        The variable.
    name, description
        As they are written.
    nominal
        Usual magnitude, where it changes continuously.
    """

    variable: Variable
    name: str
    description: str
    nominal: float | None


@dataclass(frozen=True)
class FmuDescription:
    """Description of an FMU.

    Attributes
    ----------
    name, description, origin, tool
        What it is called and is, where it comes from, and what made it.
    identifier
        Name of the binaries.
    identity
        Made from the content and from what the unit does: what behaves in the same way has the same one, on every
        platform, and nothing else has.
    capabilities
        What it can do.
    stop_time, step_size
        Of the experiment that it suggests, in s.
    tolerance
        Relative.
    variables
        All of them; what follows goes by their indices.
    outputs
        Which inputs each output depends on directly while stepping.
    initial_unknowns
        Which parameters and inputs each output and calculated parameter depends on after initialization; None where it
        may be all of them.
    naming
        Whether names are structured or flat.
    arrays
        Whether components of vectors are arrays, in versions of the FMI that have them.
    apart
        Names of variables that are no elements of arrays, though they are components of a vector: something refers to
        them one by one.
    co_simulation
        Whether it can make its steps itself.
    integrated
        What it has for model exchange; None where it has none.
    clocks
        By which hosts make the updates of sampled blocks.
    foreign_units
        Units of measurement that are not ours, by their names, with the attributes that define them in base units; None
        where nothing defines them.
    """

    name: str
    description: str
    origin: Origin
    tool: str
    identifier: str
    identity: str
    capabilities: Capabilities
    stop_time: float
    step_size: float
    tolerance: float
    variables: tuple[Described, ...]
    outputs: dict[int, tuple[int, ...] | None]
    initial_unknowns: dict[int, tuple[int, ...] | None]
    naming: Naming = "structured"
    arrays: bool = False
    apart: tuple[str, ...] = ()
    co_simulation: bool = True
    integrated: Integrated | None = None
    clocks: tuple[ClockVariable, ...] = ()
    foreign_units: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)

    @property
    def states_of(self) -> dict[int, int]:
        """The state of each derivative."""
        if self.integrated is None:
            return {}
        return {derivative: state for state, derivative in self.integrated.derivatives.items()}


def describe(
    unit: FmuSimulation,
    capabilities: Capabilities,
    tool: str,
    behaviour: str,
    naming: Naming = "structured",
    arrays: bool = False,
    apart: Collection[str] = (),
    exchange: ModelExchangeData | None = None,
    clocks: tuple[ClockVariable, ...] = (),
) -> FmuDescription:
    """Return the description of an FMU.

    Parameters
    ----------
    unit
        The unit.
    capabilities
        What the binaries can do.
    tool
        Name and version of what makes it.
    behaviour
        A key of the equations and of all that runs them: units with the same variables may compute different values.
    naming
        Whether names are structured or flat.
    arrays
        Whether components of vectors are arrays, in versions of the FMI that have them.
    apart
        Names of variables that stay single where others are elements of arrays.
    exchange
        What it has for model exchange; None where it is for co-simulation alone.
    clocks
        By which hosts make the updates of sampled blocks, in FMI 3.0.

    Raises
    ------
    InputError
        When a variable's name or unit cannot stand in a description.
    """
    variables = (*unit.variables, *(exchange.added if exchange else ()))
    index = {variable.name: place for place, variable in enumerate(variables)}
    outputs = _named(unit.variables, Causality.OUTPUT)
    unknowns = _named(unit.variables, Causality.OUTPUT, Causality.CALCULATED_PARAMETER)
    dependencies, initial = unit.dependencies, unit.initial_dependencies
    integrated = None
    if exchange:
        dependencies = exchange.dependencies
        unknowns = sorted({*unknowns, *exchange.derivatives, *exchange.derivatives.values()}, key=index.__getitem__)
        initial = _listed({**dict.fromkeys(unknowns), **initial}, _named(variables, *_GIVEN))
        dependencies = _listed(dependencies, [*exchange.derivatives, *_named(variables, Causality.INPUT)])
        exchange = replace(exchange, dependencies=dependencies)
        integrated = _integrated(exchange, index)
    content = FmuDescription(
        name=unit.name,
        description=unit.description,
        origin=unit.origin,
        tool=tool,
        identifier=identifier(unit.name),
        identity="",
        capabilities=capabilities,
        stop_time=unit.stop_time,
        step_size=unit.step_size,
        tolerance=unit.tolerance,
        variables=_described(variables, naming),
        outputs=_by_index(outputs, dependencies, index),
        initial_unknowns=_by_index(unknowns, initial, index),
        naming=naming,
        arrays=arrays,
        apart=tuple(sorted(apart)),
        co_simulation=exchange is None or exchange.beside_steps,
        integrated=integrated,
        clocks=clocks,
    )
    return replace(content, identity="{" + str(uuid.uuid5(_NAMESPACE, content_key(content, behaviour))) + "}")


def _listed(
    dependencies: Mapping[str, tuple[str, ...] | None], known: Sequence[str]
) -> dict[str, tuple[str, ...] | None]:
    """Return dependencies with full ones listed, unless that would be very long."""
    short = len(dependencies) * len(known) <= MOST_LISTED
    return {name: tuple(known) if each is None and short else each for name, each in dependencies.items()}


def _integrated(exchange: ModelExchangeData, index: Mapping[str, int]) -> Integrated:
    """Return the continuous states for an importer's solver, by variable index."""
    return Integrated(
        {index[state]: index[derivative] for state, derivative in exchange.derivatives.items()},
        _by_index(exchange.derivatives.values(), exchange.dependencies, index),
        _by_index(exchange.indicators, exchange.dependencies, index),
        exchange.derivatives_known,
    )


def _described(variables: Sequence[Variable], naming: Naming) -> tuple[Described, ...]:
    """Return variables with nominal values; names and units must be valid."""
    scale = Scale.of(variables)
    for variable in variables:
        if not STRUCTURED_NAME.match(variable.name):
            raise InputError(f"'{variable.name}' cannot be the name of a variable of a unit")
        dimension(variable.unit)
    return as_written(variables, [scale.nominal(variable) for variable in variables], naming)


def as_written(
    variables: Sequence[Variable], nominals: Sequence[float | None], naming: Naming
) -> tuple[Described, ...]:
    """Return variables with their names and descriptions as a description has them."""
    names = [variable.name for variable in variables]
    texts = [variable.description for variable in variables]
    if naming == "flat":
        texts = [flat_description(name, text) for name, text in zip(names, texts, strict=True)]
        names = flat_names(names)
    return tuple(map(Described, variables, names, texts, nominals))


def _named(variables: Iterable[Variable], *causalities: Causality) -> list[str]:
    return [variable.name for variable in variables if variable.causality in causalities]


def _by_index(
    names: Iterable[str], dependencies: Mapping[str, tuple[str, ...] | None], index: Mapping[str, int]
) -> dict[int, tuple[int, ...] | None]:
    known = {name: dependencies[name] for name in names}
    return {
        index[name]: None if each is None else tuple(sorted(index[other] for other in each))
        for name, each in known.items()
    }
