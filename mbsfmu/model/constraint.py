"""The base of constraints between joint coordinates: data, the linear relation, and what it follows over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds

CONSTRAINTS: Kinds[Constraint] = Kinds("constraint", "mbsfmu.parts")
"""All kinds of constraints by their types."""


class Constraint(DynamicPart, abstract=True):
    """A relation Σ a q = s between the coordinates q of joints of the spanning tree, as gears make it.

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
        """Refuse a class that relates nothing."""
        super().check_class()
        if not cls.gives("factors"):
            raise DataError(f"class {cls.__name__}: a constraint has a function factors, which gives a factor by joint")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return none: a constraint has neither states nor outputs of its own."""
        return ()

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the joints that it relates."""
        return references(self, ReferenceKind.JOINT)

    # -- equations ------------------------------------------------------------------------------------------

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the factors a by the names of the joints; they do not depend on inputs or states."""
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
"""The type of a field: any constraint, or a dictionary with the `type` of one."""
