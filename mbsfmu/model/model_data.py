"""Data of a model: named systems, connections and signals, with mechanisms and circuits as systems.

Checks of actuator connections: effort and motion must belong to the same part of a mechanism.

A model with wrong connections would run with wrong results: friction and displaced flow depend on the velocity,
chambers and end stops on the length, and the work of the oil is force times velocity. An effort may additionally drive
further parts, such as those of a copy of the machine, which then work without oil.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import degrees, pi, radians
from typing import TYPE_CHECKING, Annotated, Any, Self, Union

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, Tag, model_validator
from pydantic.json_schema import models_json_schema

from hydraulics import Circuit
from hydraulics.circuit import circuit_conditions, plausibility_warnings
from hydraulics.component import HydraulicActuator
from mbsfmu.io.part_files import load_parts
from mbsfmu.io.signals import AnySignal
from mbsfmu.model.block import BLOCKS, Block
from mbsfmu.model.body import Body, Point, RigidBody
from mbsfmu.model.joint import AnyJoint
from mbsfmu.model.mechanism import Mechanism, read_json, write_json
from mbsfmu.model.reference_types import GROUND, Name, ReferenceKind, references
from mbsfmu.model.system_kinds import (
    FLUID,
    FORCE,
    JOINT,
    SYSTEM_KINDS,
    ModelConnections,
    Stroke,
    SystemData,
    SystemKind,
    kind_name,
    register_system_kind,
    system_kind,
)
from mbsfmu.modelling import (
    DIALECT,
    REFERENCE,
    Condition,
    Data,
    DataError,
    DataSchema,
    FrozenMap,
    Measured,
    closest_match,
    word,
)
from mbsfmu.modelling.part import unusual_numbers

Connections = Sequence[tuple[str, str]]
Systems = Mapping[str, Any]
_AGREEMENT = 0.1
"""Relative tolerance between position and velocity signals, for coarsely sampled ones."""


def check_actuators(system: str, circuit: Circuit, given: ModelConnections) -> None:
    """Check that the actuators of a circuit have all connections, and to which part.

    Parameters
    ----------
    system, circuit
        The circuit, and its name in the model.
    given
        Connections and signals of the model.

    Raises
    ------
    DataError
        When a line is missing or goes elsewhere, or a velocity is not the rate of its length; the sentence names them.
    """
    systems, connections, signals = given.systems, given.connections, given.signals
    _check_unmoved(system, circuit, systems, connections)
    for actuator in circuit.actuators:
        name = f"{system}.{actuator.name}"
        thing = f"{actuator.type} '{name}'"
        effort, motion = f"{name}.{actuator.effort}", [f"{name}.{each}" for each in actuator.motion]
        _check_missing(thing, effort, motion, given)
        _check_crossed(thing, effort, motion, systems, connections)
        _check_load(name, actuator, actuator.name in circuit.balanced_actuators, systems, connections)
        if len(motion) == 2 and all(each in signals for each in motion):
            _check_rate(thing, motion, [signals[each] for each in motion], given.stop_time)


def _check_unmoved(system: str, circuit: Circuit, systems: Systems, connections: Connections) -> None:
    """Refuse a machine in which data prescribe an actuator's motion, and a differently moving mechanism its load."""
    for each in circuit.components:
        if not isinstance(each, HydraulicActuator) or each.moved:
            continue
        effort = f"{system}.{each.name}.{each.effort}"
        for source, target in connections:
            if source == effort and isinstance(systems[target.partition(".")[0]], Mechanism):
                raise DataError(
                    f"{each.type} '{system}.{each.name}' drives '{target}', but its data say how it moves; leave that "
                    f"out and connect its {' and its '.join(each.motion)}"
                )


def _check_missing(thing: str, effort: str, motion: Sequence[str], given: ModelConnections) -> None:
    """Refuse an actuator without its complete motion, or whose effort drives another part."""
    driven = given.driven
    missing = [each for each in motion if each not in driven]
    pushes = any(source == effort for source, _ in given.connections)
    if missing and (len(missing) < len(motion) or pushes):
        listed = " and ".join(f"'{each}'" for each in missing)
        words = [_last(each) for each in (effort, *motion)]
        raise DataError(
            f"nothing drives {listed}, though {thing} is part of a machine: "
            f"connect its {', its '.join(words[:-1])} and its {words[-1]}"
        )


def _check_crossed(thing: str, effort: str, motion: Sequence[str], systems: Systems, connections: Connections) -> None:
    """Refuse an actuator with motion of two parts, or of one that it does not drive."""
    sources = {target: source for source, target in connections}
    moved = {each: sources[each] for each in motion if each in sources}
    if not moved:
        return
    listed = " and ".join(f"its {_last(each)} from '{source}'" for each, source in moved.items())
    if len(moved) < len(motion):
        others = " and ".join(f"its {_last(each)}" for each in motion if each not in moved)
        raise DataError(f"{thing} has {listed}, but {others} from a signal; the motion must be of one thing")
    movers = {_owner(source) for source in moved.values()}
    if len(movers) > 1:
        raise DataError(f"{thing} has {listed}; the motion must be of one thing")
    pushed = [target for source, target in connections if source == effort]
    if pushed and not movers & {mover for target in pushed for mover in _moved_with(target, systems)}:
        drives = " and ".join(f"'{target}'" for target in pushed)
        raise DataError(f"{thing} drives {drives}, but has {listed}; what it drives must be what moves it")


def _check_load(
    name: str, actuator: HydraulicActuator, balanced: bool, systems: Systems, connections: Connections
) -> None:
    """Refuse an initial load of another part than the motion, or a missing one for balanced pressures."""
    sources = {target: source for source, target in connections}
    moving = next((sources[target] for each in actuator.motion if (target := f"{name}.{each}") in sources), None)
    if moving is None or actuator.load is None:
        return
    thing, mover, load = f"{actuator.type} '{name}'", _owner(moving), f"{name}.{actuator.load}"
    given = sources.get(load)
    if given is not None and mover not in _moved_with(given, systems):
        raise DataError(
            f"{thing} has its {actuator.load} from '{given}', but its motion from '{mover}'; both must be of one thing"
        )
    if given is None and balanced and getattr(actuator, actuator.load) == 0.0 and _is_held(mover, systems):
        raise DataError(
            f"nothing gives '{load}', with which the pressures of {thing} are balanced at the start: connect "
            f"'{mover}.static_{actuator.effort}' to it, or give it a value"
        )


def _is_held(mover: str, systems: Systems) -> bool:
    """Return whether a moving part is a force that computes its load of static equilibrium."""
    system, _, name = mover.partition(".")
    data = systems[system]
    return isinstance(data, Mechanism) and any(each.name == name and each.balancing for each in data.forces)


def _check_rate(thing: str, motion: Sequence[str], signals: Sequence[AnySignal], stop_time: float) -> None:
    """Refuse a velocity signal that is not the rate of the length signal."""
    place, rate = signals
    events = {each for signal in signals for each in signal.events if 0.0 < each <= stop_time}
    times = sorted({0.0, *(events or {stop_time})})  # behind the last one they may go on for ever, unused
    by_rate = list(
        accumulate(
            (0.5 * (rate.after(one) + rate.before(other)) * (other - one) for one, other in pairwise(times)),
            initial=0.0,
        )
    )
    by_place = [0.0, *(place.before(each) - place.after(0.0) for each in times[1:])]
    far = max(max(each) - min(each) for each in (by_place, by_rate))
    off, time, moved, driven = max(
        (abs(moved - driven), time, moved, driven)
        for time, moved, driven in zip(times[1:], by_place[1:], by_rate[1:], strict=True)
    )
    if off > _AGREEMENT * far:
        raise DataError(
            f"{thing} has moved by {moved:g} at t = {time:g} s by the signal of its {_last(motion[0])}, by {driven:g} "
            f"by that of its {_last(motion[1])}; the one must be the rate of the other"
        )


def _moved_with(reference: str, systems: Systems) -> set[str]:
    """Return the names that move with a variable's owner: itself, and for a joint effort the joint's body."""
    system, _, name = _owner(reference).partition(".")
    data, found = systems[system], {_owner(reference)}
    if isinstance(data, Mechanism):
        for force in data.forces:
            joints = references(force, ReferenceKind.JOINT)
            if force.name == name and joints and not references(force, ReferenceKind.POINT):
                body = data.topology.body_of_joint(joints[0].partition(".")[0])
                found |= set() if body is None else {f"{system}.{data.topology.bodies[body].name}"}
    return found


def _owner(reference: str) -> str:
    return reference.rpartition(".")[0]


def _last(reference: str) -> str:
    return reference.rpartition(".")[2]


def circuits_of(systems: Mapping[str, Any]) -> dict[str, Circuit]:
    """Return the circuits among systems by name."""
    return {name: data for name, data in systems.items() if isinstance(data, Circuit)}


def _circuit_topology(circuit: Circuit) -> dict[str, Any]:
    """Return each node with its ports and the source of its pressure."""
    held = circuit.source_nodes
    nodes: dict[str, dict[str, Any]] = {}
    for component in circuit.components:
        for port, node in component.ports().items():
            at = "held" if node in held else "state"
            nodes.setdefault(node, {"pressure": at, "ports": []})["ports"].append(f"{component.name}.{port}")
    return {"nodes": nodes}


def _icon(circuit: Circuit) -> Iterator[Stroke]:
    """Draw nodes around a circle, and components as dots between the nodes at their ports; actuators stand out."""
    nodes = list(dict.fromkeys(node for component in circuit.components for node in component.nodes()))
    turns = 2.0 * np.pi * np.arange(len(nodes)) / len(nodes)
    places = {node: np.array([np.sin(turn), np.cos(turn)]) for node, turn in zip(nodes, turns, strict=True)}
    for component in circuit.components:
        own = [places[node] for node in component.nodes()]
        middle = np.mean(own, axis=0) if len(own) > 1 else 1.25 * own[0]
        width, colour = (14.0, FORCE) if component in circuit.actuators else (9.0, FLUID)
        for place in own:
            yield Stroke(tuple(middle.tolist()), tuple(place.tolist()), 3.0, FLUID)
        yield Stroke(tuple(middle.tolist()), tuple(middle.tolist()), width, colour)
    for place in places.values():
        yield Stroke(tuple(place.tolist()), tuple(place.tolist()), 7.0, JOINT)


register_system_kind(
    SystemKind(
        "circuit",
        Circuit,
        "components",
        diagnostics=plausibility_warnings,
        topology=_circuit_topology,
        icon=_icon,
        check_connections=check_actuators,
        conditions=circuit_conditions,
    )
)

Floats = NDArray[np.float64]

TURN = 2.0 * pi
"""A turn in rad: joints start within one, and cylinders turn joints by less than half of one."""
WIDER = 3.0
"""Factor by which a radius of gyration may exceed the largest distance in a mechanism: no mass of a body is farther
from its centre than the body is long.
"""
WIDER_WITH_DRIVE = 30.0
"""The same of bodies on an axis in the ground, whose inertia may be that of a motor behind a gear."""
_GRAVE_STOPS = 2.0 * TURN  # steering wheels have stops at less


def implausible_numbers(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each number of a mechanism that is hardly meant.

    Parameters
    ----------
    mechanism
        The mechanism.
    numbers
        Values by the names of its parameters that are not as in the data.
    """
    for force in mechanism.forces:
        yield from unusual_numbers(force, numbers)
    yield from _angles(mechanism, numbers)
    yield from _inertias(mechanism, numbers)


def angle_in_degrees(what: str, angle: float) -> str:
    """Return the sentence on an angle in rad that is probably in degrees."""
    return (
        f"{what} is {angle:g} rad ({degrees(angle):g} deg), {abs(angle) / TURN:.3g} turns, which is implausible; "
        f"numbers without a unit are in rad, and {angle:g} degrees are {radians(angle):.6g} rad"
    )


def _angles(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each joint that starts more than a turn away, and on each stop that is farther."""
    topology = mechanism.topology
    owners = {tree.joint.name: body.name for body, tree in zip(topology.bodies, topology.tree, strict=True)}
    for joint in mechanism.joints:
        for name, element in zip(joint.coordinate_names, joint.elements, strict=True):
            owner = owners.get(joint.name)
            start = element.start if owner is None else numbers.get(f"{owner}.{_start_name(name)}", element.start)
            if not element.slides and abs(start) > TURN:
                yield angle_in_degrees(f"{joint.type} '{joint.name}': the {name.replace('_', ' ')} at the start", start)
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            joint, index = mechanism.joint_element(reference)
            for limit in ("lower", "upper") if not joint.elements[index].slides else ():
                value = numbers.get(f"{force.name}.{limit}", getattr(force, limit, None))
                if value is not None and abs(value) > (TURN if _is_round(value) else _GRAVE_STOPS):
                    yield angle_in_degrees(f"{force.type} '{force.name}': {limit}", value)


def _start_name(coordinate: str) -> str:
    """Return the last part of the parameter that a coordinate starts with: `angle_start_1` of `angle_1`."""
    for what in ("cardan_angle", "angle"):
        if coordinate.startswith(what):
            return f"{what}_start{coordinate.removeprefix(what)}"
    return f"{coordinate}_start"


def _is_round(angle: float) -> bool:
    """Return whether an angle is as angles in degrees are written, in halves: multiples of pi in rad are not."""
    return float(2.0 * angle).is_integer()


def _inertias(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each body whose mass would be farther from its centre than the whole mechanism is long."""
    ground = np.array(list(mechanism.ground.values()) or [np.zeros(3)])
    size = max([*map(_size, mechanism.bodies), float(np.linalg.norm(np.ptp(ground, axis=0)))])
    topology = mechanism.topology
    for body, tree in zip(topology.bodies, topology.tree, strict=True):
        factor = WIDER_WITH_DRIVE if tree.parent < 0 and len(tree.joint.elements) == 1 else WIDER
        if not isinstance(body, RigidBody) or size == 0.0:
            continue
        tensor = body.inertia_tensor
        names = [[f"{body.name}.inertia_{min(a, b)}{max(a, b)}" for b in "xyz"] for a in "xyz"]
        moments = [[numbers.get(names[i][j], tensor[i, j]) for j in range(3)] for i in range(3)]
        mass, greatest = numbers.get(f"{body.name}.mass", body.mass), float(np.linalg.eigvalsh(moments)[-1])
        if mass > 0.0 and (radius := (max(greatest, 0.0) / mass) ** 0.5) > factor * size:
            yield (
                f"body '{body.name}' has {mass:g} kg and a moment of inertia of {greatest:g} kg m2, a radius of "
                f"gyration of {radius:.3g} m, where no distance in the mechanism is longer than {size:.3g} m, which is "
                "implausible; numbers are in SI units"
            )


def _size(body: Body) -> float:
    """Return the largest distance of a body's points from its origin or centre of mass in m."""
    length = getattr(body, "length", None) or 0.0

    def place(point: Point) -> Floats:
        x, y, z = point.position
        return np.array([x + point.along * length, y, z])

    middle = place(body.centre_of_mass)
    places = [place(point) for point in body.all_points.values()]
    return max((float(max(np.linalg.norm(each), np.linalg.norm(each - middle))) for each in places), default=0.0)


def joint_angle(mechanism: Mechanism, coordinate: str) -> tuple[float, bool] | None:
    """Return where an angle of a joint starts in rad, and whether a cylinder or stop keeps the joint within a turn.

    None of what is no angle of a joint of the spanning tree. The coordinate is `body.angle`.
    """
    topology = mechanism.topology
    limited = _limited_joints(mechanism)
    for body, tree in zip(topology.bodies, topology.tree, strict=True):
        for name, element in zip(tree.joint.coordinate_names, tree.joint.elements, strict=True):
            if coordinate == f"{body.name}.{name}" and not element.slides:
                return element.start, tree.joint.name in limited
    return None


def _limited_joints(mechanism: Mechanism) -> set[str]:
    """Return the joints that stops limit, or that a cylinder spans, which turns them by half a turn at most."""
    found: set[str] = set()
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            if getattr(force, "lower", None) is not None and getattr(force, "upper", None) is not None:
                found.add(mechanism.joint_element(reference)[0].name)
        points = references(force, ReferenceKind.POINT)
        if force.balancing and len(points) == 2:
            first, second = (_joints_inwards(mechanism, point.partition(".")[0]) for point in points)
            found |= first ^ second
    return found


def _joints_inwards(mechanism: Mechanism, body: str) -> set[str]:
    """Return the joints between a body and the ground in the spanning tree."""
    topology, found = mechanism.topology, set()
    index = -1 if body == GROUND else topology.index(body)
    while index >= 0:
        found.add(topology.tree[index].joint.name)
        index = topology.tree[index].parent
    return found


def _topology(mechanism: Mechanism) -> dict[str, Any]:
    """Return each body with the joint to its parent, outwards, and the joints that close loops."""
    topology, tree = mechanism.topology, []
    for body, tree_joint in zip(topology.bodies, topology.tree, strict=True):
        inner = GROUND if tree_joint.parent < 0 else topology.bodies[tree_joint.parent].name
        coordinates = [f"{body.name}.{name}" for name in tree_joint.joint.coordinate_names]
        tree.append({"body": body.name, "hangs_on": inner, **_joint(tree_joint.joint), "coordinates": coordinates})
    return {"tree": tree, "cuts": [_joint(joint) for joint in topology.cuts]}


def _joint(joint: AnyJoint) -> dict[str, str]:
    return {"joint": joint.name, "type": joint.type, "parent": joint.parent, "child": joint.child}


def _conditions(mechanism: Mechanism) -> Iterator[Condition]:
    for force in mechanism.forces:
        yield from (condition.of(force.name) for condition in force.conditions())


register_system_kind(
    SystemKind(
        "mechanism",
        Mechanism,
        "bodies",
        diagnostics=implausible_numbers,
        topology=_topology,
        conditions=_conditions,
    )
)


def _made(data: Any) -> Any:
    """Return the system of a dictionary, with its class selected by type."""
    if not isinstance(data, dict):
        return data
    kind = system_kind(data)
    if kind is not None:
        return data if kind.family is None else kind.family.made(data)
    return BLOCKS.made(data) if "type" in data else data


def _fields_of_kinds() -> str:
    """Return the fields by which kinds are recognised, in words."""
    fields: dict[str, list[str]] = {}
    for kind in SYSTEM_KINDS:
        fields.setdefault(kind.field, []).append(kind.name)
    *others, last = [f"'{field}' (a {' or '.join(names)})" for field, names in fields.items()]
    return f"{', '.join(others)} or {last}"


def _tagged(kind: SystemKind) -> Any:
    """Return the class of a kind's data, serialized with all fields of subclasses."""
    return Annotated[kind.data if kind.family is None else SerializeAsAny[kind.data], Tag(kind.name)]


if TYPE_CHECKING:
    AnySystem = Mechanism | Circuit | Block | SystemData
else:
    AnySystem = Annotated[
        Union[tuple(_tagged(kind) for kind in SYSTEM_KINDS)],  # noqa: UP007
        Discriminator(
            kind_name,
            custom_error_type="system",
            custom_error_message=f"it must have {_fields_of_kinds()}",
        ),
        BeforeValidator(_made),
    ]


_NO_TEXT = r"\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
Text = Annotated[str, word(f"[^{_NO_TEXT}]*", "a text has no control characters and no halves of characters")]
"""Field type of descriptions of FMUs: characters of XML."""


OutputPattern = Annotated[
    str,
    word(
        r"[A-Za-z0-9_.,*?!\[\]-]+",
        "a pattern of names has letters, digits, _ and ., and *, ? and [] as in shells",
    ),
]
"""Patterns of variables that are outputs."""


class ModelData(Data):
    """Systems and the connections between their variables.

    Variable names of connections are not checked here, because they depend on the equations (see `CoupledModel`).

    Attributes
    ----------
    name
        Name of the model; letters, digits, `_` and `-`.
    description
        One line on it.
    systems
        Mechanisms, circuits, blocks and systems of users' own kinds by name.
    connections
        Pairs of `system.variable`: source and target. A source is an output, or a calculated parameter such as
        `mechanism.cylinder.static_force`, which drives a parameter.
    signals
        Signals over time by the input that follows them, as `system.variable`.
    start
        Values at the start by `system.variable`, in the place of those that the parts say: of parameters, of inputs
        that nothing drives, and of states, which take no notice then of parameters that say where they start.
    outputs
        Patterns of the variables that are outputs of its units, in their order, as `boom.angle`, `cylinder.*` or
        `mechanism.*`; none for those that the parts take for such. What is connected is an output in any case.
    stop_time, step
        End and step of a run in s, where nothing else is said.
    version, author, copyright, license
        Of the model, for those who get a unit that is exported from it.

    Raises
    ------
    DataError
        When the parts do not fit together; the message is one sentence.
    """

    name: Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_-]*", "a name has letters, digits, _ and -, a letter or _ first")]
    description: Text = ""
    systems: FrozenMap[Name, AnySystem]
    connections: tuple[tuple[str, str], ...] = ()
    signals: FrozenMap[str, AnySignal] = {}
    start: FrozenMap[str, float] = {}
    outputs: tuple[OutputPattern, ...] = ()
    stop_time: Annotated[float, Field(gt=0), Measured("s")] = 10.0
    step: Annotated[float, Field(gt=0), Measured("s")] = 1e-3
    version: Text = "1.0"
    author: Text = ""
    copyright: Text = ""
    license: Text = ""

    @model_validator(mode="after")
    def _has_systems(self) -> Self:
        if not self.systems:
            raise ValueError("a model needs at least one system")
        for reference in self.signals:
            if (name := reference.partition(".")[0]) not in self.systems:
                raise DataError(f"signal '{reference}' drives no system '{name}'; {closest_match(name, self.systems)}")
        for reference in self.start:
            if (name := reference.partition(".")[0]) not in self.systems:
                raise DataError(f"start: '{reference}' is of no system '{name}'; {closest_match(name, self.systems)}")
            if reference in self.signals:
                raise DataError(f"start: '{reference}' follows a signal, which says where it starts")
        for pattern in self.outputs:
            if self.outputs.count(pattern) > 1:
                raise DataError(f"the output '{pattern}' is given twice")
        return self

    def start_of(self, name: str) -> dict[str, float]:
        """Return the start values of one system, by variable name."""
        owned = ((reference.partition("."), value) for reference, value in self.start.items())
        return {variable: value for (system, _, variable), value in owned if system == name}

    # -- files ----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, parts: Iterable[str | os.PathLike[str]] = ()) -> Self:
        """Read a model from a JSON file.

        Parameters
        ----------
        path
            The file. No code is run from it.
        parts
            Python files that define parts of the model, as components of a user's own; they are run.

        Raises
        ------
        DataError
            When the file is no JSON, or what it says is no model.
        InputError
            When a file of parts cannot be run.
        OSError
            When the file cannot be read.
        """
        with load_parts(parts).given():
            return cls.from_dict(read_json(path))

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file."""
        write_json(path, self.to_dict())


# -- JSON Schema of model files for editors and other programs; loading checks more ------------------------------------

_FILES: dict[str, type[Data]] = {"Model": ModelData, "Mechanism": Mechanism, "Circuit": Circuit}
"""Top-level classes of a file."""
_DEFINITIONS = "#/$defs/"


def model_schema() -> dict[str, Any]:
    """Return the JSON Schema of model files, as `mbsfmu schema` writes it.

    It contains all kinds of parts of the present context; within `with load_parts([...]).given():` user-defined ones
    too. Each kind is a definition, such as `component.throttle`; a parameter has its `unit`. Relations between parts,
    such as a joint that names an existing body, are checked by loading only.
    """
    found, schema = models_json_schema([(kind, "validation") for kind in _FILES.values()], schema_generator=DataSchema)
    definitions: dict[str, Any] = schema["$defs"]
    names: dict[str, str] = {_place(found[kind, "validation"]): name for name, kind in _FILES.items()}
    for place in names:
        definitions[place]["properties"][REFERENCE] = {"type": "string"}
    for family in [name for name, each in definitions.items() if "oneOf" in each]:
        for place in map(_place, definitions[family]["oneOf"]):
            names[place] = f"{family.lower()}.{definitions[place]['properties']['type']['const']}"
    renamed = {names.get(name, name): each for name, each in sorted(definitions.items())}
    return {
        "$schema": DIALECT,
        "title": "mbsfmu model",
        "anyOf": [{"$ref": f"{_DEFINITIONS}{name}"} for name in _FILES],
        "$defs": {name: _referring(renamed[name], names) for name in sorted(renamed)},
    }


def _place(reference: dict[str, Any]) -> str:
    """Return the name of the definition of a reference."""
    return reference["$ref"].removeprefix(_DEFINITIONS)


def _referring(schema: Any, names: dict[str, str]) -> Any:
    """Return a schema with renamed definitions in its references."""
    if isinstance(schema, list):
        return [_referring(each, names) for each in schema]
    if isinstance(schema, str) and schema.startswith(_DEFINITIONS):
        place = schema.removeprefix(_DEFINITIONS)
        return f"{_DEFINITIONS}{names.get(place, place)}"
    return {key: _referring(each, names) for key, each in schema.items()} if isinstance(schema, dict) else schema
