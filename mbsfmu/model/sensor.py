"""Base class of sensors, which measure a mechanism without acting on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from mbsfmu.model.force import check_parameters, names_place
from mbsfmu.model.force_context import SensorContext
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds

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
