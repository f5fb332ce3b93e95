"""Base classes of joints, closure equations, and constraints between joint coordinates.

Base class of joints: data, elementary motions and closure equations.

Every joint is a sequence of slides and hinges, from the parent outwards, with their coordinates. A joint in the
spanning tree has coordinates; a cut joint, and every joint in absolute coordinates, is a constraint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer, model_validator

from mbsfmu.model.force import BodyPoint, Numbers
from mbsfmu.model.reference_types import PointReference, ReferenceKind, Vector, references
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds, Measured, Part


class ClosureEquation(ABC):
    """One closure equation, Φ = 0, between the joint's points on both bodies.

    dΦ/dt is wᵀ Z on the child plus the same on the parent. The wrenches w are forces in N and moments about the
    inertial origin in N m of a unit multiplier. All are pure NumPy functions without branches on values.
    """

    unit: ClassVar[str]
    """Unit of the violation, m or rad."""

    @abstractmethod
    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation, a scalar."""

    @abstractmethod
    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return w on the parent and on the child, each of shape (6,)."""

    @abstractmethod
    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return dw/dt on the parent and on the child, each of shape (6,)."""


JOINTS: Kinds[Joint] = Kinds("joint", "mbsfmu.parts")
"""All joint classes by type."""

MOST_TURNED = 1e8
"""Largest start angle of a hinge in rad: it is resolved to 1e-8 rad; much larger numbers cannot resolve an angle."""


@dataclass(frozen=True)
class JointElement:
    """A slide or a hinge.

    Attributes
    ----------
    slides
        True for a slide.
    axis
        Direction, in the frame that the elements before it have turned.
    name
        Suffix of its variable names, such as `_1`, if the joint has several of its kind.
    start, start_rate
        Start values of its coordinate in m or rad and of the rate.
    pitch
        Displacement of a hinge along its axis per angle, in m/rad; a joint with such a hinge has no other element.
    """

    slides: bool
    axis: Vector
    name: str
    start: float
    start_rate: float
    pitch: float = 0.0


class Joint(Part, abstract=True):
    """Base class of joints.

    A derived class is data; its `elements` are its motions, and its `equations` the constraints.

    Attributes
    ----------
    name
        Name of the joint.
    parent, child
        The connected points, each as `body.point`; `ground.point` for the fixed frame.
    orientation
        Rotation vector in rad from the parent's to the child's frame at zero coordinates.
    cut
        True for a loop-closing joint; False leaves the choice to the spanning tree.

    Raises
    ------
    DataError
        When a class has neither elements nor equations, at its definition; or when elements and equations of a joint
        are not six together.
    """

    family = JOINTS
    turns_freely: ClassVar[bool] = False
    """Whether the last three elements are hinges of any rotation (ball and free joints)."""
    only_closes: ClassVar[bool] = False
    """Whether it always closes a loop: it has equations, and no elements that are the motion that these leave."""

    parent: PointReference
    child: PointReference
    orientation: Annotated[Vector, Measured("rad")] = (0.0, 0.0, 0.0)
    cut: bool = False

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without motion or constraint."""
        super().check_class()
        if not cls.gives("elements", "equations"):
            raise DataError(f"class {cls.__name__}: a joint has elements, equations, or both")

    @model_validator(mode="after")
    def _has_six_degrees_of_freedom(self) -> Self:
        motions, taken = len(self.elements), len(self.equations())
        if self.only_closes and taken and not motions:
            return self
        if motions + taken != 6:
            raise ValueError(f"it has {motions} elements and {taken} equations; together they must be 6")
        pitched = [element for element in self.elements if element.pitch]
        if pitched and (motions > 1 or pitched[0].slides):
            raise ValueError("it has an element with a pitch; that must be a hinge, and the joint's only element")
        return self

    @model_validator(mode="after")
    def _starts_at_an_angle(self) -> Self:
        for element in self.elements:
            if not element.slides and abs(element.start) > MOST_TURNED:
                raise ValueError(
                    f"it starts at an angle of {element.start:g} rad; its magnitude must be at most {MOST_TURNED:g} "
                    "rad, beyond which numbers do not resolve an angle"
                )
        return self

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Slides and hinges of the joint."""
        return ()

    @property
    def written_starts(self) -> tuple[tuple[bool, bool], ...]:
        """Whether start and start rate of each element are written in the data, as zero or otherwise; else defaults.

        Written fields are replaced by NaN, which spreads to the elements' values that are made of them.
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        numbers = {name: _nothing(fields[name]) for name in self.model_fields_set}
        spread = fields | {name: value for name, value in numbers.items() if value is not None}
        elements = self.model_construct(**spread).elements
        return tuple((isnan(element.start), isnan(element.start_rate)) for element in elements)

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out defaults: read again they are defaults, and no written start values."""
        return {name: value for name, value in serialize(self).items() if name in self.model_fields_set | {"type"}}

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Last parts of its coordinates' names, such as `angle_1`, in the order of the elements."""
        turned = "cardan_angle" if self.turns_freely else "angle"
        return tuple(f"{'displacement' if each.slides else turned}{each.name}" for each in self.elements)

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return its closure equations by their kinds."""
        return {}

    @property
    def constrains(self) -> bool:
        """Whether it constrains any degree of freedom."""
        return self.only_closes or len(self.elements) < 6


def _nothing(value: object) -> Any:
    """Return NaN in the shape of a number or a vector; None for other values."""
    if isinstance(value, float):
        return nan
    return (nan,) * len(value) if isinstance(value, tuple) and all(isinstance(each, float) for each in value) else None


AnyJoint = Annotated[SerializeAsAny[Joint], BeforeValidator(JOINTS.made)]
"""Field type: any joint, or a dictionary with the `type` of one."""

CONSTRAINTS: Kinds[Constraint] = Kinds("constraint", "mbsfmu.parts")
"""All constraint classes by type."""


class Constraint(DynamicPart, abstract=True):
    """Relation Σ a q = s between coordinates q of tree joints, such as a gear.

    A class that derives from it is data, with fields that name joints, as `driven: JointReference`, and numbers of the
    equations, as `Annotated[float, Parameter("1", "ratio")]`. What it measures has the unit of the first joint's
    coordinate. Units, names and descriptions may say what those of a joint are, as for forces.

    Raises
    ------
    DataError
        When a class has no factors, at its definition.
    """

    family = CONSTRAINTS

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without factors."""
        super().check_class()
        if not cls.gives("factors"):
            raise DataError(f"class {cls.__name__}: a constraint has a function factors, which gives a factor by joint")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return none: a constraint has neither states nor outputs."""
        return ()

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the related joints."""
        return references(self, ReferenceKind.JOINT)

    # -- equations ------------------------------------------------------------------------------------------

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the factors a by joint name; independent of inputs and states."""
        return {}

    def value(self, now: Numbers) -> Array | float:  # noqa: ARG002
        """Return s."""
        return 0.0

    def rate(self, now: Numbers) -> Array | float:  # noqa: ARG002
        """Return ṡ."""
        return 0.0

    def acceleration(self, now: Numbers) -> Array | float:  # noqa: ARG002
        """Return s̈."""
        return 0.0


AnyConstraint = Annotated[SerializeAsAny[Constraint], BeforeValidator(CONSTRAINTS.made)]
"""Field type: any constraint, or a dictionary with the `type` of one."""
