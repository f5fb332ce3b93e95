"""System graph: instances, connections, connectors, joints and parameter values, with arrays element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import parted
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.io.signals import LinearSignal, PolynomialSignal, SineSignal, StepSignal, in_unit
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap, UnitOfMeasurement, conversion, number_in
from mbsfmu.modelling.variables import Causality

JointKind = Literal["spherical", "revolute", "prismatic", "fixed"]
JOINT_KINDS: tuple[JointKind, ...] = get_args(JointKind)
Component = str | None
Triple = tuple[Component, Component, Component]

_FORM = "it must read kind:a.handle=b.handle, with the axis behind another colon, as revolute:a.pin=b.pin:0,0,1"
_AXIAL = ("revolute", "prismatic")
TOLERANCE = 5e-10
"""Default of what a joint may be open by at a communication point, in m and rad: three components make less than 1e-9.
A fifth of it takes a tenth more evaluations, and leaves five digits of the errors as they are."""


@dataclass(frozen=True)
class JointHandle:
    """A handle of a mechanism: a point of a body that takes a wrench and tells pose and velocity.

    Attributes
    ----------
    unit
        The instance.
    prefixes
        What the names of its variables begin with: `pin` means `pin.force.x`, `pin.moment.x`, `pin.position.x`,
        `pin.velocity.x`, `pin.quaternion.w`, `pin.angular_velocity.x`, `pin.acceleration.x`,
        `pin.angular_acceleration.x` and the other components, or arrays `pin.force` and so on. Several prefixes are
        searched in turn.
    force, moment, position, velocity, quaternion, angular_velocity, acceleration, angular_acceleration
        Names of the components x, y, z (w, x, y, z of the quaternion) in the inertial frame, for an FMU that calls
        them otherwise. None for a component that a planar mechanism lacks: it takes no such load, and stays at zero.
    """

    unit: str
    prefixes: tuple[str, ...] = ()
    force: Triple | None = None
    moment: Triple | None = None
    position: Triple | None = None
    velocity: Triple | None = None
    quaternion: tuple[Component, Component, Component, Component] | None = None
    angular_velocity: Triple | None = None
    acceleration: Triple | None = None
    angular_acceleration: Triple | None = None

    @classmethod
    def parse(cls, text: str) -> JointHandle:
        """Read `unit.handle`, or `unit.load+seen` for a handle with two prefixes.

        Raises
        ------
        InputError
            When it does not read so.
        """
        unit, dot, rest = text.strip().partition(".")
        prefixes = tuple(rest.split("+"))
        if not unit or not dot or not all(prefixes):
            raise InputError(f"the handle '{text}' is refused: it must read unit.handle, or unit.load+seen")
        return cls(unit, prefixes)

    @property
    def name(self) -> str:
        """Its name without that of the instance."""
        position = self.position or ("",)
        return "+".join(self.prefixes) or str(position[0])

    def __str__(self) -> str:
        return f"{self.unit}.{self.name}"


@dataclass(frozen=True)
class CoupledJoint:
    """A joint between mechanisms of two FMUs, which the master closes by a wrench on both handles.

    Attributes
    ----------
    kind
        `spherical` holds the points together, `revolute` the axes too; `prismatic` lets the second handle slide along
        the axis without turning, `fixed` holds it.
    first, second
        The handles; also `unit.handle` as text.
    axis
        Of a revolute or prismatic joint: its direction in the frame of the first body, of any length.
    name
        Its name in results and messages; that of the first handle by default.
    tolerance
        What the joint may be open by at communication points, in m and rad; velocities may differ by it over the step.

    Raises
    ------
    InputError
        When the kind is unknown, the axis is missing or has no direction, or is given to a kind without one.
    """

    kind: JointKind
    first: JointHandle
    second: JointHandle
    axis: tuple[float, float, float] | None = None
    name: str = ""
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        for end in ("first", "second"):
            handle = getattr(self, end)
            if isinstance(handle, str):
                object.__setattr__(self, end, JointHandle.parse(handle))
        object.__setattr__(self, "name", self.name or self.first.name.partition("+")[0])
        if self.kind not in JOINT_KINDS:
            raise InputError(f"the joint {self} is of kind '{self.kind}'; it must be {', '.join(JOINT_KINDS)}")
        if self.kind not in _AXIAL and self.axis is not None:
            raise InputError(f"the joint {self} is {self.kind}, which has no axis; {' and '.join(_AXIAL)} have one")
        if self.kind in _AXIAL:
            if self.axis is None:
                raise InputError(f"the joint {self} is {self.kind} and needs an axis, as (0, 0, 1)")
            if len(self.axis) != 3 or not 0.0 < math.hypot(*self.axis) < math.inf:
                raise InputError(f"the joint {self} has the axis {self.axis}; it must be three numbers, not all zero")
        if not 0.0 < self.tolerance < math.inf:
            raise InputError(f"the joint {self} has the tolerance {self.tolerance:g}; it must be greater than 0")
        if self.first == self.second:
            raise InputError(f"the joint {self} joins a handle with itself; it must join two")

    @classmethod
    def parse(cls, text: str) -> CoupledJoint:
        """Read `spherical:a.pin=b.pin`, or `revolute:a.pin=b.pin:0,0,1` with an axis.

        Raises
        ------
        InputError
            When it does not read so, or is no joint.
        """
        kind, colon, rest = text.partition(":")
        ends, _, axis = rest.partition(":")
        first, equals, second = ends.partition("=")
        if not colon or not equals:
            raise InputError(f"the joint '{text}' is refused: {_FORM}")
        try:
            direction = tuple(float(each) for each in axis.split(",")) if axis else None
        except ValueError:
            raise InputError(f"the joint '{text}' is refused: the axis '{axis}' is no three numbers") from None
        return cls(kind.strip(), JointHandle.parse(first), JointHandle.parse(second), direction)  # pyright: ignore[reportArgumentType]

    def __str__(self) -> str:
        return f"{self.first}={self.second}"


_CONVERTED_KINDS = {
    ("Integer", "Real"),
    ("Boolean", "Real"),
    ("Boolean", "Integer"),
    ("Enumeration", "Integer"),
    ("Integer", "Enumeration"),
}
"""Compatible kinds of source and target that differ, without rounding."""


@dataclass(frozen=True)
class Connection:
    """A connection from a source to a target variable.

    Attributes
    ----------
    source, target
        Each as (instance, variable).
    factor, offset
        What becomes of a Real value after its conversion to the unit of the target: factor · value + offset.
    convert_units
        Whether the value is converted to the unit of the target at all.

    Raises
    ------
    InputError
        When an end is a text: `Connection.parse` reads these.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    factor: float = 1.0
    offset: float = 0.0
    convert_units: bool = True

    def __post_init__(self) -> None:
        for what, end in (("source", self.source), ("target", self.target)):
            if isinstance(end, str):  # whose first two letters would be taken for element and variable
                raise InputError(f"{what} = {end!r} of a connection must be (element, variable)")

    @property
    def transformation(self) -> LinearMap:
        """Factor and offset as a map."""
        return LinearMap(self.factor, self.offset)

    @classmethod
    def parse(cls, text: str) -> Connection:
        """Read `a.y=b.u`: output y of a drives input u of b; the instance stands before the first dot.

        Raises
        ------
        InputError
            When it does not read so.
        """
        source, equals, target = parted(text, "=")
        return cls._between(source, target if equals else "", text)

    @classmethod
    def _between(cls, source: str, target: str, text: str) -> Connection:
        """Return the connection of two ends, which messages call by a text."""
        ends = [end.strip().partition(".") for end in (source, target)]
        if not all(instance and variable for instance, _, variable in ends):
            raise InputError(f"the connection '{text}' is refused: it must read a.y=b.u")
        return cls((ends[0][0], ends[0][2]), (ends[1][0], ends[1][2]))

    @classmethod
    def of(cls, given: str | tuple[str, str] | Connection) -> Connection:
        """Return what a user connects: a connection, a text as `parse` reads it, or a pair of `instance.variable`.

        Raises
        ------
        InputError
            When it is none of these.
        """
        if isinstance(given, Connection):
            return given
        if isinstance(given, tuple) and len(given) == 2 and all(isinstance(end, str) for end in given):
            return cls._between(*given, "=".join(given))
        if not isinstance(given, str):
            raise InputError(f"the connection {given!r} is refused: it must read a.y=b.u, or be a pair of a.y and b.u")
        return cls.parse(given)

    def __str__(self) -> str:
        return f"{'.'.join(self.source)}={'.'.join(self.target)}"


@dataclass(frozen=True)
class Exposed:
    """A connector of the whole system, and its variable.

    Attributes
    ----------
    name
        Name of the connector.
    end
        The variable as (instance, variable).
    map
        What becomes of a value on its way, from the connector to an input, from an output to the connector.
    unit
        Unit of the connector, without a name where nothing says one.
    """

    name: str
    end: tuple[str, str]
    map: LinearMap
    unit: UnitOfMeasurement


@dataclass(frozen=True)
class SystemGraph:
    """FMUs and their connections.

    Attributes
    ----------
    units
        FMU file of each instance, by the instance's name.
    connections
        The connections.
    parameters
        Values by (instance, variable), set before initialization.
    start, stop
        Default experiment in s; None where nothing is said.
    inputs, outputs
        Connectors of the whole system: inputs and parameters, which may drive several variables, and outputs.
    exchanged
        Instances that are run by model exchange, or are not; the others as their FMUs are.
    called
        What messages call FMU files that were unpacked for the run, by their files.
    joints
        Joints between mechanisms of the FMUs.
    placed
        Workers that instances run on where the run has a scheduler.
    """

    units: Mapping[str, Path]
    connections: tuple[Connection, ...] = ()
    parameters: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    start: float = 0.0
    stop: float | None = None
    inputs: tuple[Exposed, ...] = ()
    outputs: tuple[Exposed, ...] = ()
    exchanged: Mapping[str, bool] = field(default_factory=dict)
    called: Mapping[Path, str] = field(default_factory=dict)
    joints: tuple[CoupledJoint, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)


def check_connections(graph: SystemGraph, instances: Mapping[str, Instance]) -> None:
    """Check the connections against the descriptions of the FMUs.

    Raises
    ------
    InputError
        When an instance or variable is not there, cannot be connected so, or is driven twice.
    """
    driven: set[tuple[str, str]] = set()
    for connection in graph.connections:
        for end in (connection.source, connection.target):
            _check_end(end, connection, instances)
        (from_name, output), (to_name, entry) = connection.source, connection.target
        source, target = instances[from_name].variables[output], instances[to_name].variables[entry]
        if source.causality in (Causality.INPUT, Causality.PARAMETER):
            raise InputError(f"connection {connection}: {output} of {from_name} is no output")
        if target.causality not in (Causality.INPUT, Causality.PARAMETER):
            raise InputError(f"connection {connection}: {entry} of {to_name} is neither input nor parameter")
        _check_kinds(connection, instances)
        value_map(connection, instances)
        if connection.target in driven:
            raise InputError(
                f"connection {connection}: {instances[to_name].called(entry)} of {to_name} is driven twice"
            )
        driven.add(connection.target)
    for exposed in (*graph.inputs, *graph.outputs):
        instance = instances[exposed.end[0]]
        variable = instance.known_name(exposed.end[1])
        if variable not in instance.variables and variable not in instance.arrays:
            near = closest_match(variable, instance.variables)
            raise InputError(f"connector {exposed.name}: {instance.name} has no variable '{exposed.end[1]}'; {near}")
    for exposed in graph.inputs:
        instance = instances[exposed.end[0]]
        variable = instance.known_name(exposed.end[1])
        for name in map(instance.behind, instance.arrays.get(variable, (variable,))):
            if (instance.name, name) in driven:
                raise InputError(
                    f"the connector {exposed.name} of the system drives {instance.called(name)} of {instance.name}, "
                    "which something else drives too"
                )
            driven.add((instance.name, name))


def undriven_inputs(
    graph: SystemGraph,
    instances: Mapping[str, Instance],
    given: Collection[tuple[str, str]],
    *,
    followed_too: bool = False,
) -> list[str]:
    """Return the inputs without a connection or given value, as `instance.variable`.

    Those that follow a signal inside their FMU are none of them, where the FMU says so, unless these are wanted too.
    """
    driven = {*given, *(connection.target for connection in graph.connections)}
    result = []
    for name, instance in instances.items():
        inputs = [
            each.name
            for each in instance.variables.values()
            if each.causality is Causality.INPUT and each.name not in instance.aliases
        ]
        left = [each for each in inputs if (name, each) not in driven]
        inside = _followed_inside(instance.carried, inputs) if left and not followed_too else set()
        result += [f"{name}.{each}" for each in left if each not in inside]
    return result


def _followed_inside(carried: str | None, inputs: Collection[str]) -> set[str]:
    if carried is None:
        return set()
    from mbsfmu.model.machine import followed_inside  # noqa: PLC0415 - loads the data of models

    return followed_inside(carried, inputs)


def _check_end(end: tuple[str, str], connection: Connection, instances: Mapping[str, Instance]) -> None:
    name, variable = end
    if name not in instances:
        raise InputError(f"connection {connection}: there is no FMU '{name}'; {closest_match(name, instances)}")
    if variable not in instances[name].variables:
        near = closest_match(variable, instances[name].variables)
        raise InputError(f"connection {connection}: {name} has no variable '{variable}'; {near}")


def _check_kinds(connection: Connection, instances: Mapping[str, Instance]) -> None:
    (from_name, output), (to_name, entry) = connection.source, connection.target
    kinds = instances[from_name].kinds[output], instances[to_name].kinds[entry]
    if not_passed := {"Binary", "Clock"}.intersection(kinds):
        raise InputError(f"connection {connection} is of type {not_passed.pop()}; such values are not passed on")
    if kinds[0] != kinds[1] and kinds not in _CONVERTED_KINDS:
        raise InputError(f"connection {connection}: {output} is of type {kinds[0]}, but {entry} of type {kinds[1]}")
    if connection.transformation != IDENTITY and kinds != ("Real", "Real"):
        raise InputError(f"connection {connection} has a linear transformation, but is not from Real to Real")


def value_map(connection: Connection, instances: Mapping[str, Instance]) -> LinearMap:
    """Return the conversion of a value on a connection: unit, then transformation.

    Raises
    ------
    InputError
        When the units cannot be converted.
    """
    if not connection.convert_units:
        return connection.transformation
    (from_name, output), (to_name, entry) = connection.source, connection.target
    source, target = instances[from_name].units[output], instances[to_name].units[entry]
    try:
        return conversion(source, target).then(connection.transformation)
    except InputError as error:
        raise InputError(
            f"connection {connection}: {output} is in {source.name}, but {entry} is in {target.name}: {error}"
        ) from None


def is_text(connection: Connection, instances: Mapping[str, Instance]) -> bool:
    """Return whether a connection is of String variables."""
    name, variable = connection.source
    return instances[name].kinds[variable] == "String"


def connect_elements(graph: SystemGraph, instances: Mapping[str, Instance]) -> SystemGraph:
    """Return a graph of scalars: declarations of an array apply to each element.

    Flat names become those of the variables that they mean, and so do aliases where they are written to.

    Raises
    ------
    InputError
        When arrays of different sizes are connected, an array with a scalar, or an array is given another number of
        values than it has.
    """
    parameters: dict[tuple[str, str], Any] = {}
    graph = _with_known_names(graph, instances)
    for (name, variable), value in graph.parameters.items():
        elements = _elements((name, variable), instances)
        given = {variable: value} if elements is None else by_element(f"{name}.{variable}", elements, value)
        for each, one in given.items():
            take(parameters, (name, each), one, instances)
    return replace(
        graph,
        connections=tuple(each for connection in graph.connections for each in _connections(connection, instances)),
        parameters=parameters,
        outputs=tuple(each for exposed in graph.outputs for each in _shown(exposed, instances)),
    )


def _with_known_names(graph: SystemGraph, instances: Mapping[str, Instance]) -> SystemGraph:
    """Return a graph with variable names in place of flat names."""

    def known(end: tuple[str, str]) -> tuple[str, str]:
        name, variable = end
        return (name, instances[name].known_name(variable)) if name in instances else end

    return replace(
        graph,
        connections=tuple(
            replace(each, source=known(each.source), target=known(each.target)) for each in graph.connections
        ),
        parameters={known(end): value for end, value in graph.parameters.items()},
        outputs=tuple(replace(each, end=known(each.end)) for each in graph.outputs),
    )


def by_element(reference: str, elements: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the values of an array by its elements: an array, row by row, or numbers with blanks or commas between.

    Raises
    ------
    InputError
        When there are not as many values as elements; `reference` is what the message calls the array.
    """
    text = isinstance(value, str)
    given = value.replace(",", " ").split() if text else np.asarray(value, dtype=object).ravel().tolist()
    if len(given) != len(elements):
        raise InputError(f"{reference} has {len(elements)} elements, but is given {len(given)} values")
    return dict(zip(elements, given, strict=True))


def take(
    values: dict[tuple[str, str], Any], end: tuple[str, str], value: Any, instances: Mapping[str, Instance]
) -> None:
    """Take a value for the variable behind a name that may be an alias, unless it has one by another name.

    Raises
    ------
    InputError
        When it has.
    """
    name, variable = end
    behind = (name, instances[name].behind(variable)) if name in instances else end
    if behind in values:
        raise InputError(f"{name}.{instances[name].called(behind[1])} is given twice, by two of its names")
    values[behind] = value


def _elements(end: tuple[str, str], instances: Mapping[str, Instance]) -> tuple[str, ...] | None:
    name, variable = end
    return instances[name].arrays.get(variable) if name in instances else None


def _connections(connection: Connection, instances: Mapping[str, Instance]) -> Iterator[Connection]:
    sides = [_elements(end, instances) for end in (connection.source, connection.target)]
    if sides == [None, None]:
        yield _behind(connection, instances)
        return
    counts = ["one value" if side is None else f"{len(side)} elements" for side in sides]
    if None in sides or counts[0] != counts[1]:
        ends = [".".join(each) for each in (connection.source, connection.target)]
        raise InputError(f"connection {connection}: {ends[0]} has {counts[0]}, but {ends[1]} has {counts[1]}")
    names = connection.source[0], connection.target[0]
    for source, target in zip(*(side for side in sides if side is not None), strict=True):
        yield _behind(replace(connection, source=(names[0], source), target=(names[1], target)), instances)


def _behind(connection: Connection, instances: Mapping[str, Instance]) -> Connection:
    """Return a connection to the variable behind its target, which may be an alias."""
    name, variable = connection.target
    return replace(connection, target=(name, instances[name].behind(variable))) if name in instances else connection


def _shown(exposed: Exposed, instances: Mapping[str, Instance]) -> Iterator[Exposed]:
    """Yield the connectors of an array's elements, which have indices."""
    elements = _elements(exposed.end, instances)
    if elements is None:
        yield exposed
        return
    for each in elements:
        yield replace(exposed, name=exposed.name + each.removeprefix(exposed.end[1]), end=(exposed.end[0], each))


def behind_connectors(values: Mapping[str, Any], graph: SystemGraph) -> dict[str, Any]:
    """Return values or signals by `unit.variable`, where some were given by the name of a connector of the system.

    What is given for a variable itself counts more than what comes through a connector.
    """
    result: dict[str, Any] = {}
    names = {exposed.name for exposed in graph.inputs}
    for exposed in graph.inputs:
        if exposed.name in values:
            result[".".join(exposed.end)] = _mapped(values[exposed.name], exposed)
    return {**result, **{name: value for name, value in values.items() if name not in names}}


def _mapped(value: Any, exposed: Exposed) -> Any:
    """Return a value or signal of a connector for the variable behind, from the unit that it has or the connector's."""
    way = exposed.map
    if isinstance(value, str) and way != IDENTITY:
        try:
            return way(number_in(value, exposed.unit))
        except InputError as error:
            raise InputError(f"{exposed.name}: {error}") from None
    value = in_unit(value, exposed.unit, exposed.name)
    if way == IDENTITY:
        return value
    if isinstance(value, (StepSignal, LinearSignal, SineSignal, PolynomialSignal)):
        return value.mapped(way.factor, way.offset)
    if callable(value):
        return _mapped_function(value, way)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [way(float(each)) for each in np.asarray(value, dtype=float).ravel().tolist()]
    return way(float(value))


def _mapped_function(function: Callable[..., Any], way: LinearMap) -> Callable[[float], float]:
    return lambda time: way(float(function(time)))
