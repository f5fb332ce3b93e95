"""Base classes of forces and sensors, their data, equations and evaluation contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Annotated, ClassVar, NamedTuple, Self, get_args

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from mbsfmu.model.reference_types import ReferenceKind, Vector
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds, Part, Quantity, closest_match, parameter_fields


class Numbers:
    """Parameters, states and inputs of a part by their short names: `now["gain"]`.

    Parameters
    ----------
    owner
        Type and name of the part, for messages.
    numbers
        Return the numbers, by short name.
    """

    def __init__(self, owner: str, numbers: Mapping[str, Callable[[], Array]]) -> None:
        self._owner = owner
        self._numbers = numbers

    def __contains__(self, name: str) -> bool:
        """Return whether a variable exists; a parameter that is None does not."""
        return name in self._numbers

    def __getitem__(self, name: str) -> Array:
        if name not in self._numbers:
            raise DataError(f"{self._owner} has no number '{name}' here; {closest_match(name, self._numbers)}")
        return self._numbers[name]()


class BodyPoint(NamedTuple):
    """Position and motion of a body's point in the inertial frame.

    Attributes
    ----------
    position
        In m, shape (3,).
    velocity
        In m/s, shape (3,).
    rotation
        Rotation matrix of the body, from its frame to the inertial frame, shape (3, 3).
    angular_velocity
        Of the body in rad/s, shape (3,).
    """

    position: Array
    velocity: Array
    rotation: Array
    angular_velocity: Array


class PointAcceleration(NamedTuple):
    """Acceleration of a body's point in the inertial frame.

    Attributes
    ----------
    linear
        Acceleration of the point, the rate of its velocity, in m/s², shape (3,).
    angular
        Angular acceleration of the body in rad/s², shape (3,).
    """

    linear: Array
    angular: Array


class JointMotion(NamedTuple):
    """Coordinate and rate of a joint with one coordinate.

    Attributes
    ----------
    coordinate, rate
        In rad and rad/s where it turns, in m and m/s where it only slides; scalars.
    """

    coordinate: Array
    rate: Array


class ForceContext(Numbers):
    """Variables of a force by their short names, and its points and joints by field names.

    `now["stiffness"]` is a parameter, a state or an input of the force, `now.point("start")` the point of its field
    `start`.

    Parameters
    ----------
    owner
        Type and name of the force, for messages.
    numbers
        Return the force's own numbers, by short name.
    points, joints
        Return where the points are, and the motions of the joints, by the field that names them; empty while nothing
        has a place yet.
    """

    def __init__(
        self,
        owner: str,
        numbers: Mapping[str, Callable[[], Array]],
        points: Mapping[str, Callable[[], BodyPoint]],
        joints: Mapping[str, Callable[[], JointMotion]],
    ) -> None:
        super().__init__(owner, numbers)
        self._points = points
        self._joints = joints

    def point(self, field: str) -> BodyPoint:
        """Return position and motion of the point of a field."""
        if field not in self._points:
            raise DataError(f"{self._owner} has no point '{field}' here; {closest_match(field, self._points)}")
        return self._points[field]()

    def joint(self, field: str) -> JointMotion:
        """Return coordinate and rate of the joint of a field."""
        if field not in self._joints:
            raise DataError(f"{self._owner} has no joint '{field}' here; {closest_match(field, self._joints)}")
        return self._joints[field]()


class SensorContext(ForceContext):
    """Evaluation context of a sensor, with accelerations.

    Parameters
    ----------
    owner, numbers, points, joints
        As there.
    accelerations
        Return the accelerations of the points, by the field that names them.
    """

    def __init__(
        self,
        owner: str,
        numbers: Mapping[str, Callable[[], Array]],
        points: Mapping[str, Callable[[], BodyPoint]],
        joints: Mapping[str, Callable[[], JointMotion]],
        accelerations: Mapping[str, Callable[[], PointAcceleration]],
    ) -> None:
        super().__init__(owner, numbers, points, joints)
        self._accelerations = accelerations

    def acceleration(self, field: str) -> PointAcceleration:
        """Return the accelerations of the point of a field, and of its body."""
        if field not in self._accelerations:
            raise DataError(f"{self._owner} has no point '{field}' here; {closest_match(field, self._accelerations)}")
        return self._accelerations[field]()


FORCES: Kinds[Force] = Kinds("force", "mbsfmu.parts")
"""All force classes by type."""


SYMBOLS = ("line", "spring", "cylinder", "none")
"""Symbols for drawing between the two points of a force."""


class PointLoad(NamedTuple):
    """Load on a body at a point.

    Attributes
    ----------
    point
        Name of the field that names the point.
    force
        In N in the inertial frame, shape (3,); None where there is none.
    moment
        In N m in the inertial frame, shape (3,); None where there is none.
    """

    point: str
    force: Array | None = None
    moment: Array | None = None


class JointLoad(NamedTuple):
    """Load along a joint coordinate on the outer body, and its reaction on the inner body.

    Attributes
    ----------
    joint
        Name of the field that names the joint.
    load
        In N m where the joint turns, in N where it only slides.
    """

    joint: str
    load: Array


class Force(DynamicPart, abstract=True):
    """Base class of forces on a mechanism.

    A derived class is data. Its fields are a `PointReference`, a `JointReference`, or a parameter of the equations, as
    `Annotated[Positive, Parameter("N/m", "stiffness")]`; a field of three numbers is a vector of the equations. Its
    equations are pure NumPy functions of the `ForceContext`, without branches on values and without in-place changes.

    Units, names and descriptions may refer to those of a joint, by the field that names it: `{joint.load}` is N.m or N,
    `{joint.effort}` torque or force, `{joint.coordinate}` rad or m, `{joint.position}` angle or displacement,
    `{joint.rate}` angular_velocity or velocity.

    Attributes
    ----------
    balancing
        Its inputs that can hold the mechanism still: for each there is a calculated parameter, `static_force` for an
        input `force`, with the value that keeps the mechanism at rest where it starts. Loads are linear in them.
    symbol
        What is drawn between its two points, where it has two: `line`, `spring`, `cylinder` or `none`.

    Raises
    ------
    DataError
        When a class lacks what its fields or quantities need, at its definition.
    """

    family = FORCES
    balancing: ClassVar[tuple[str, ...]] = ()
    symbol: ClassVar[str] = "line"

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without loads, or with non-numeric parameters."""
        super().check_class()
        if not cls.gives("loads"):
            raise DataError(f"class {cls.__name__}: a force has a function loads, which gives what acts on what")
        if not names_place(cls):
            raise DataError(
                f"class {cls.__name__}: a force needs a point or a joint that it acts on, as `start: PointReference`"
            )
        if cls.symbol not in SYMBOLS:
            raise DataError(f"class {cls.__name__}: its symbol is '{cls.symbol}'; it must be {', '.join(SYMBOLS)}")
        check_parameters(cls)

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return pairs of functions that a class must define together: a declaration, and the values."""
        return (*super().pairs(), ("event_indicators", "evaluate_event_indicators"))

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return its event indicators, whose zeros are kinks or jumps of its loads, such as the gap of a contact."""
        return ()

    @model_validator(mode="after")
    def _balances_by_inputs(self) -> Self:
        names = [each.name for each in self.inputs()]
        for name in self.balancing:
            if name not in names:
                raise ValueError(f"it balances by '{name}', which is no input; {closest_match(name, names)}")
        return self

    # -- equations ------------------------------------------------------------------------------------------

    def loads(self, now: ForceContext) -> Iterable[PointLoad | JointLoad]:  # noqa: ARG002
        """Return the loads on bodies and joints."""
        return ()

    def work_rate(self, now: ForceContext) -> Array | float:  # noqa: ARG002
        """Return the external power of its inputs in W."""
        return 0.0

    def dissipation(self, now: ForceContext) -> Array | float:  # noqa: ARG002
        """Return the dissipated power in W."""
        return 0.0

    def energy(self, now: ForceContext) -> Array | float:  # noqa: ARG002
        """Return the stored energy in J."""
        return 0.0

    def rates(self, now: ForceContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the derivatives of its states."""
        return {}

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return its outputs."""
        return {}

    def evaluate_event_indicators(self, now: ForceContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return its event indicators; they do not depend on accelerations."""
        return {}

    def initial_states(self, now: ForceContext) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the initial states from parameters; positions are unknown."""
        return {state.name: state.start or 0.0 for state in self.states()}


AnyForce = Annotated[SerializeAsAny[Force], BeforeValidator(FORCES.made)]
"""Field type: any force, or a dictionary with the `type` of one."""


def names_place(kind: type[Part]) -> bool:
    """Return whether a class of parts has a field that names a point or a joint."""
    return any(set(field.metadata) & set(ReferenceKind) for field in kind.model_fields.values())


def check_parameters(kind: type[Part]) -> None:
    """Refuse a class with parameters that are neither scalars nor three numbers.

    Raises
    ------
    DataError
        When one is not; the sentence names it.
    """
    for name in parameter_fields(kind):
        annotation = kind.model_fields[name].annotation
        plain = tuple(get_args(each)[0] if get_args(each) else each for each in get_args(annotation))
        if annotation is not float and plain not in (get_args(Vector), (float, NoneType)):
            raise DataError(
                f"class {kind.__name__}: the parameter '{name}' must be a number, as Positive or float, or three, "
                "as Vector"
            )


SENSORS: Kinds[Sensor] = Kinds("sensor", "mbsfmu.parts")
"""All sensor classes by type."""


class Sensor(DynamicPart, abstract=True):
    """Base class of sensors.

    A derived class is data, as a `Force` is: fields that name points and joints, and parameters. Its outputs are pure
    NumPy functions of the `SensorContext`, which has accelerations too.

    Outputs that depend on accelerations may act on the mechanism through another system: without delay if forces are
    linear in them, otherwise through a state or a sampled block.

    Raises
    ------
    DataError
        When a class tells nothing, or has states or inputs, at its definition.
    """

    family = SENSORS

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without outputs, or with states or inputs."""
        super().check_class()
        if not cls.gives("outputs"):
            raise DataError(f"class {cls.__name__}: a sensor has outputs, and a function evaluate_outputs")
        for quantities in ("states", "inputs"):
            if cls.gives(quantities):
                raise DataError(f"class {cls.__name__}: a sensor has no {quantities}; take a block")
        if not names_place(cls):
            raise DataError(
                f"class {cls.__name__}: a sensor needs a point or a joint that it looks at, as `point: PointReference`"
            )
        check_parameters(cls)

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return pairs of functions that a class must define together: a declaration, and the values."""
        return (("outputs", "evaluate_outputs"),)

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return its outputs."""
        return {}


AnySensor = Annotated[SerializeAsAny[Sensor], BeforeValidator(SENSORS.made)]
"""Field type: any sensor, or a dictionary with the `type` of one."""
