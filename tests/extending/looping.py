"""Blocks and a drive that close algebraic loops, for several tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from mbsfmu import Array, Block, ForceContext, Numbers, Parameter, Quantity
from mbsfmu.parts import JointDrive

GAIN, SLOPE, GIVEN = -3.0, 0.5, 2.0


class Tank(Block):
    """ẋ = u, y = x + slope · u."""

    type: Literal["looping-tank"] = "looping-tank"
    slope: Annotated[float, Parameter("1", "direct feed-through", tunable=True)] = SLOPE

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("u", "1", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        return {"x": now["u"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"y": now["x"] + now["slope"] * now["u"]}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"x": 0.0}


class Gain(Block):
    """told = given + gain · measured, or a step, the square, the saturation or a wave of it."""

    type: Literal["looping-gain"] = "looping-gain"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)] = GAIN
    how: Literal["plain", "step", "square", "saturated", "wave"] = "plain"
    begin: float = 0.0

    def inputs(self) -> tuple[Quantity, ...]:
        return Quantity("given", "1", GIVEN), Quantity("measured", "1", self.begin)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("told", "1"),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        told = now["gain"] * now["measured"]
        shaped = {
            "plain": told,
            "step": np.sign(told),
            "square": told * now["measured"],
            "saturated": np.clip(told, -1, 1),
            "wave": now["gain"] * np.sin(now["measured"]),
        }
        return {"told": now["given"] + shaped[self.how]}


class Motor(JointDrive):
    """A drive that tells its power."""

    type: Literal["looping-motor"] = "looping-motor"

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("power", "W", shared=True),)

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        return {"power": self.work_rate(now)}


class Brake(Block):
    """A force that yields to the power it brings in."""

    type: Literal["looping-brake"] = "looping-brake"
    free: Annotated[float, Parameter("N", "force without power")] = 5.0
    bends: bool = False

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("power", "W", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("force", "N"),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        power = 0.8 * now["power"]
        return {"force": now["free"] - (0.5 * np.tanh(power) if self.bends else power)}


class Feeling(Block):
    """A force or torque against an acceleration: at once, bent, or by a state that follows it."""

    type: Literal["looping-feeling"] = "looping-feeling"
    inertia: Annotated[float, Parameter("kg", "force by acceleration", tunable=True)] = 1.5
    lag: Annotated[float, Parameter("s", "time constant")] = 0.01
    how: Literal["plain", "bent", "lagging"] = "plain"
    turning: bool = False

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("followed", "m/s2"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("acceleration", "m/s2", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("torque", "N.m") if self.turning else Quantity("force", "N"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        return {"followed": (now["acceleration"] - now["followed"]) / now["lag"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        felt = now["followed" if self.how == "lagging" else "acceleration"]
        force = -now["inertia"] * felt
        told = 3.0 * np.tanh(force / 3.0) if self.how == "bent" else force
        return {"torque" if self.turning else "force": told}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"followed": 0.0}
