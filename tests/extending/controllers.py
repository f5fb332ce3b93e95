"""Controllers of a position: a continuous one whose derivative is filtered, and a sampled one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from mbsfmu import Array, Block, Numbers, Parameter, Positive, Quantity, SampledBlock


class Pid(Block):
    """A PID controller; its derivative goes through a filter of first order.

    Attributes
    ----------
    proportional, integral, derivative
        Gains in N/m, N/(m s) and N s/m.
    filter_time
        Time constant of the filter in s.
    """

    type: Literal["pid"] = "pid"
    proportional: Annotated[float, Parameter("N/m", "proportional gain", tunable=True)]
    integral: Annotated[float, Parameter("N/(m.s)", "integral gain", tunable=True)] = 0.0
    derivative: Annotated[float, Parameter("N.s/m", "derivative gain", tunable=True)] = 0.0
    filter_time: Annotated[Positive, Parameter("s", "time constant of the derivative's filter")] = 0.01

    def states(self) -> tuple[Quantity, ...]:
        return (
            Quantity("sum", "m.s", nominal=0.1, description="integral of the error"),
            Quantity("filtered", "m", nominal=0.1, description="error behind the filter"),
        )

    def inputs(self) -> tuple[Quantity, ...]:
        return Quantity("setpoint", "m", 0.0), Quantity("measured", "m", 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        return Quantity("command", "N", nominal=10.0), Quantity("error", "m")

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        error = now["setpoint"] - now["measured"]
        return {"sum": error, "filtered": (error - now["filtered"]) / now["filter_time"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        error = now["setpoint"] - now["measured"]
        slope = (error - now["filtered"]) / now["filter_time"]
        command = now["proportional"] * error + now["integral"] * now["sum"] + now["derivative"] * slope
        return {"command": command, "error": error}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"sum": 0.0, "filtered": 0.0}


class SampledPid(SampledBlock):
    """A PID controller in a computer: at each instant it reads the position, and holds its command until the next one.

    Attributes
    ----------
    proportional, integral, derivative
        Gains in N/m, N/(m s) and N s/m; the derivative is the difference to the instant before.
    """

    type: Literal["sampled-pid"] = "sampled-pid"
    proportional: Annotated[float, Parameter("N/m", "proportional gain", tunable=True)]
    integral: Annotated[float, Parameter("N/(m.s)", "integral gain", tunable=True)] = 0.0
    derivative: Annotated[float, Parameter("N.s/m", "derivative gain", tunable=True)] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        return (
            Quantity("sum", "m.s", description="integral of the error"),
            Quantity("last", "m", description="error at the last instant"),
            Quantity("held", "N", description="command that is held"),
        )

    def inputs(self) -> tuple[Quantity, ...]:
        return Quantity("setpoint", "m", 0.0), Quantity("measured", "m", 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("command", "N", nominal=10.0),)

    def update(self, now: Numbers) -> Mapping[str, Array]:
        error = now["setpoint"] - now["measured"]
        total = now["sum"] + self.sample_time * error
        slope = (error - now["last"]) / self.sample_time
        held = now["proportional"] * error + now["integral"] * total + now["derivative"] * slope
        return {"sum": total, "last": error, "held": held}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"command": now["held"]}


class Counter(SampledBlock):
    """Counts its updates, and keeps what its input was at the last one."""

    type: Literal["counter"] = "counter"

    def states(self) -> tuple[Quantity, ...]:
        return Quantity("made", "1"), Quantity("seen", "1", -1.0)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("signal", "1", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return Quantity("count", "1"), Quantity("value", "1")

    def update(self, now: Numbers) -> Mapping[str, Array]:
        return {"made": now["made"] + 1.0, "seen": now["signal"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"count": now["made"], "value": now["seen"]}


class Growing(Counter):
    """Its second update is not finite any more."""

    type: Literal["growing"] = "growing"

    def update(self, now: Numbers) -> Mapping[str, Array]:
        return {"made": (now["made"] + 1.0) * 1e200, "seen": now["signal"]}
