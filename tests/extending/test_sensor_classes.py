"""Sensors of one's own: an accelerometer, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from mbsfmu import (
    Array,
    CoupledModel,
    DataError,
    InputError,
    Mechanism,
    Parameter,
    PointReference,
    Quantity,
    Revolute,
    RigidBody,
    Sensor,
    SensorContext,
)

LENGTH, SPEED = 0.8, 3.0


class Accelerometer(Sensor):
    """What a sensor that is fixed to a body feels: acceleration less that of falling, along its axes, and its gain."""

    type: Literal["test-accelerometer"] = "test-accelerometer"
    point: PointReference
    gain: Annotated[float, Parameter("V.s2/m", "signal by acceleration", tunable=True)] = 0.1

    def outputs(self) -> tuple[Quantity, ...]:
        return tuple(Quantity(f"signal.{axis}", "V", shared=True) for axis in "xyz")

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        felt = now.acceleration("point").linear - np.array([0.0, -9.81, 0.0])
        signal = now["gain"] * now.point("point").rotation.T @ felt
        return {f"signal.{axis}": signal[index] for index, axis in enumerate("xyz")}


def pendulum(*sensors: Any) -> CoupledModel:
    """A mass on a rod, thrown."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="bob", mass=2.0, inertia=(0.0, 0.01, 0.01), centre=(LENGTH, 0.0, 0.0)),),
        joints=(Revolute(name="O", parent="ground.O", child="bob.origin", angle=-1.0, angular_velocity=SPEED),),
        sensors=sensors,
    )
    return CoupledModel(name="pendulum", systems={"mechanism": mechanism})


def test_accelerometer_on_a_pendulum_feels_the_pull_of_the_rod() -> None:
    """Along the rod −l θ̇² + g sin θ, across it l θ̈ + g cos θ."""
    simulation = pendulum(Accelerometer(name="felt", point="bob.centre")).simulation(compiled=False)
    simulation.set("felt.gain", 0.5)
    result = simulation.run(0.5)
    angle, rate, bend = (result[f"bob.{name}"] for name in ("angle", "angular_velocity", "angular_acceleration"))
    np.testing.assert_allclose(result["felt.signal.x"], 0.5 * (9.81 * np.sin(angle) - LENGTH * rate**2), atol=1e-9)
    np.testing.assert_allclose(result["felt.signal.y"], 0.5 * (9.81 * np.cos(angle) + LENGTH * bend), atol=1e-9)


def test_json_means_the_sensor(tmp_path: Path) -> None:
    model = pendulum(Accelerometer(name="felt", point="bob.centre"))
    model.to_file(tmp_path / "model.json")
    assert CoupledModel.from_file(tmp_path / "model.json") == model


class Branching(Sensor):
    type: Literal["test-branching-sensor"] = "test-branching-sensor"
    point: PointReference

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("high", "1"),)

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        return {"high": np.asarray(1.0 if now.point("point").position[1] > 0.0 else 0.0)}


class Reading(Accelerometer):
    type: Literal["test-reading-sensor"] = "test-reading-sensor"

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        return {f"signal.{axis}": self.gain * now.point("point").position[0] for axis in "xyz"}


def test_sensors_whose_equations_cannot_be_traced_are_refused() -> None:
    with pytest.raises(InputError, match=r"test-branching-sensor 'high' is refused: .*branches on a value"):
        pendulum(Branching(name="high", point="bob.centre")).simulation()
    with pytest.raises(InputError, match=r"'felt' is refused: .*reads self.gain"):
        pendulum(Reading(name="felt", point="bob.centre")).simulation()


def test_classes_that_lack_something_are_refused() -> None:
    with pytest.raises(DataError, match="class Silent: a sensor has outputs, and a function evaluate_outputs"):

        class Silent(Sensor):
            type: Literal["test-silent"] = "test-silent"
            point: PointReference

    with pytest.raises(DataError, match="class Blind: a sensor needs a point or a joint that it looks at"):

        class Blind(Sensor):
            type: Literal["test-blind"] = "test-blind"

            def outputs(self) -> tuple[Quantity, ...]:
                return (Quantity("high", "1"),)

            def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
                return {"high": np.asarray(1.0)}

    with pytest.raises(DataError, match="class Slow: a sensor has no states; take a block"):

        class Slow(Accelerometer):
            type: Literal["test-slow"] = "test-slow"

            def states(self) -> tuple[Quantity, ...]:
                return (Quantity("late", "1"),)


class Misspelt(Accelerometer):
    type: Literal["test-misspelt"] = "test-misspelt"

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        return {f"signal.{axis}": now.acceleration("pint").linear[0] for axis in "xyz"}


def test_point_that_is_not_there_is_told() -> None:
    with pytest.raises(DataError, match=r"test-misspelt 'felt' has no point 'pint' here; did you mean 'point'\?"):
        pendulum(Misspelt(name="felt", point="bob.centre")).simulation()
