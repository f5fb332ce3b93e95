"""Base class of forces: data, points, joints, variables, and equations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Annotated, ClassVar, NamedTuple, Self, get_args

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import ReferenceKind, Vector
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds, Part, Quantity, closest_match, parameter_fields

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
