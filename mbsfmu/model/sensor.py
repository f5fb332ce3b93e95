"""The base of sensors: what is measured of a mechanism without acting on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from mbsfmu.model.force import check_parameters, names_place
from mbsfmu.model.force_context import SensorContext
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds

SENSORS: Kinds[Sensor] = Kinds("sensor", "mbsfmu.parts")
"""All kinds of sensors by their types."""


class Sensor(DynamicPart, abstract=True):
    """Something that tells of a mechanism and does not act on it.

    A class that derives from it is data, as a `Force` is: fields that name points and joints, and parameters. Its
    outputs are pure NumPy functions of what is `SensorContext`: beside what forces see, accelerations.

    What depends on accelerations may act on the mechanism in turn, by way of another system: at the same instant where
    forces are linear in it, else by way of a state or of a sampled block.

    Raises
    ------
    DataError
        When a class tells nothing, or has states or inputs, at its definition.
    """

    family = SENSORS

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class that tells nothing or has anything but outputs."""
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
        """Return functions that a class has together: what there is, and what gives its values."""
        return (("outputs", "evaluate_outputs"),)

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return its outputs."""
        return {}


AnySensor = Annotated[SerializeAsAny[Sensor], BeforeValidator(SENSORS.made)]
"""The type of a field: any sensor, or a dictionary with the `type` of one."""
