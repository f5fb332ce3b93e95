"""The base of joints: data, elementary motions and closure equations side by side.

Every joint is a sequence of slides and hinges, from the parent outwards; its coordinates are theirs. In the spanning
tree a joint gives coordinates; where it is cut, and in absolute coordinates, its equations constrain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from mbsfmu.model.closure import ClosureEquation
from mbsfmu.model.reference_types import PointReference, Vector
from mbsfmu.modelling import DataError, Kinds, Part

JOINTS: Kinds[Joint] = Kinds("joint", "mbsfmu.parts")
"""All kinds of joints by their types."""

MOST_TURNED = 1e8
"""Largest start angle of a hinge in rad: numbers of that size resolve 1e-8 rad, much larger ones no angle at all."""


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
        What its variables' names end with, such as `_1`, where the joint has several of its kind.
    start, start_rate
        Start values of its coordinate in m or rad and of the rate.
    pitch
        How far a hinge moves along its axis as it turns, in m/rad; a joint with such a hinge has no other element.
    """

    slides: bool
    axis: Vector
    name: str
    start: float
    start_rate: float
    pitch: float = 0.0


class Joint(Part, abstract=True):
    """What all joints have.

    A class that derives from it is data, its `elements` are its motions, and its `equations` what these obey.

    Attributes
    ----------
    name
        Name of the joint.
    parent, child
        The points that the joint joins, each as `body.point`; `ground.point` for the fixed frame.
    orientation
        Rotation vector in rad that turns the parent's frame into the child's at coordinate zero.
    cut
        True makes the joint close a loop; where it is False, the spanning tree decides.

    Raises
    ------
    DataError
        When a class has neither elements nor equations, at its definition; or when elements and equations of a joint
        are not six together.
    """

    family = JOINTS
    turns_freely: ClassVar[bool] = False
    """Whether three hinges make any rotation; the last three elements are these."""

    parent: PointReference
    child: PointReference
    orientation: Vector = (0.0, 0.0, 0.0)
    cut: bool = False

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without any motion or constraint."""
        super().check_class()
        if not cls.gives("elements", "equations"):
            raise DataError(f"class {cls.__name__}: a joint has elements, equations, or both")

    @model_validator(mode="after")
    def _has_six_degrees_of_freedom(self) -> Self:
        motions, taken = len(self.elements), len(self.equations())
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
        """The slides and hinges that the joint is made of."""
        return ()

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """What its coordinates are called behind the joint's name, as `angle_1`, in the order of the elements."""
        turned = "cardan_angle" if self.turns_freely else "angle"
        return tuple(f"{'displacement' if each.slides else turned}{each.name}" for each in self.elements)

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return its closure equations by their kinds."""
        return {}

    @property
    def constrains(self) -> bool:
        """Whether it takes away any degree of freedom."""
        return len(self.elements) < 6


AnyJoint = Annotated[SerializeAsAny[Joint], BeforeValidator(JOINTS.made)]
"""The type of a field: any joint, or a dictionary with the `type` of one."""
