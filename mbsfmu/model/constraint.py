"""Base class of constraints between joint coordinates: data, factors, and the value over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds

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
