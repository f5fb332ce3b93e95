"""PID controllers: continuous and sampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import model_validator

from mbsfmu.base.physical_units import Unit, combined
from mbsfmu.model.block import Block, SampledBlock
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import NonNegative, OptionalPositive, Positive
from mbsfmu.modelling import Array, Parameter, Quantity
from mbsfmu.parts.limits import check_room, limited, ordered_limits


class _Pid(Block, abstract=True):
    """Base of both controllers: u = k_p (b r - y) + I + D within limits, İ = k_i (r - y).

    D is k_d times the derivative of c r - y with a first-order filter. Anti-windup by back-calculation: the saturation
    excess is fed back to the integral part with the tracking time T_t [Åström & Hägglund: Advanced PID Control, 2006,
    ch. 3], except if k_i is zero. The integral part is in the command's unit, so that k_i can change without a
    discontinuity.

    Attributes
    ----------
    measured_unit, command_unit
        Units of the inputs `setpoint` r and `measured` y, and of the output `command` u.
    with_feedforward
        Whether there is the input `feedforward` u_f, in the command's unit.
    proportional, integral, derivative
        k_p, k_i, k_d: command over measured; over s; times s.
    setpoint_weight, derivative_weight
        Setpoint weights b and c of the proportional and the derivative part.
    minimum, maximum
        Limits of the command; None without a limit.
    tracking_time
        T_t in s; None means the integral time k_p / k_i.
    initial_integral
        The integral part at the start, in the command's unit.
    """

    measured_unit: Unit = "1"
    command_unit: Unit = "1"
    with_feedforward: bool = False
    proportional: Annotated[float, Parameter("1", "proportional gain", tunable=True)]
    integral: Annotated[float, Parameter("1", "integral gain", tunable=True)] = 0.0
    derivative: Annotated[float, Parameter("1", "derivative gain", tunable=True)] = 0.0
    setpoint_weight: Annotated[float, Parameter("1", "setpoint weight of the proportional part", tunable=True)] = 1.0
    derivative_weight: Annotated[float, Parameter("1", "setpoint weight of the derivative part", tunable=True)] = 1.0
    minimum: Annotated[float | None, Parameter("1", "least command", tunable=True)] = None
    maximum: Annotated[float | None, Parameter("1", "greatest command", tunable=True)] = None
    tracking_time: Annotated[OptionalPositive, Parameter("s", "tracking time of the anti-windup", tunable=True)] = None
    initial_integral: Annotated[float, Parameter("1", "integral part at the start")] = 0.0

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        check_room(self)
        bounded = self.minimum is not None or self.maximum is not None
        if bounded and self.integral and not self.proportional and self.tracking_time is None:
            raise ValueError("tracking_time is missing; a controller with limits that only integrates needs one")
        return self

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gains, limits and start values."""
        gain = ((self.command_unit, 1), (self.measured_unit, -1))
        return {
            "proportional": combined(*gain),
            "integral": combined(*gain, ("s", -1)),
            "derivative": combined(*gain, ("s", 1)),
            **dict.fromkeys(("minimum", "maximum", "initial_integral"), self.command_unit),
        }

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return the limits, if both are given."""
        return ordered_limits(self)

    def inputs(self) -> tuple[Quantity, ...]:
        """Return setpoint, measured value, and the feedforward if selected."""
        setpoint = Quantity("setpoint", self.measured_unit, 0.0, description="setpoint of the measured value")
        measured = Quantity("measured", self.measured_unit, 0.0, description="measured value")
        added = Quantity("feedforward", self.command_unit, 0.0, description="feedforward, added to the command")
        return (setpoint, measured, added) if self.with_feedforward else (setpoint, measured)

    def _command(self, now: Numbers, proportional: Array, integral: Array, slope: Array) -> Array:
        """Return the unsaturated command from its three errors."""
        wanted = now["proportional"] * proportional + integral + now["derivative"] * slope
        return wanted + now["feedforward"] if self.with_feedforward else wanted

    def _tracking_rate(self, now: Numbers) -> Array:
        """Return 1 / T_t; zero without an integral part."""
        integral, proportional = np.abs(now["integral"]), np.abs(now["proportional"])
        if self.tracking_time is not None:
            return np.where(integral > 0.0, 1.0 / now["tracking_time"], 0.0)
        return np.where(proportional > 0.0, integral / np.where(proportional > 0.0, proportional, 1.0), 0.0)

    def _differences(self, now: Numbers) -> tuple[Array, Array, Array]:
        """Return the errors of the integral, the proportional and the derivative part."""
        setpoint, measured = now["setpoint"], now["measured"]
        return (
            setpoint - measured,
            now["setpoint_weight"] * setpoint - measured,
            now["derivative_weight"] * setpoint - measured,
        )


class PidController(_Pid):
    """Continuous PID controller with anti-windup and a first-order derivative filter.

    u = k_p (b r - y) + I + k_d (e_d - f) / T_f within limits, with e_d = c r - y, T_f ḟ = e_d - f, and
    İ = k_i (r - y) + (u - u without limits) / T_t.

    Attributes
    ----------
    filter_time
        T_f in s.
    initial_filtered
        f at the start, in the measured value's unit; unless it equals c r - y, the derivative part starts with a kick.
    """

    type: Literal["pid-controller"] = "pid-controller"
    filter_time: Annotated[Positive, Parameter("s", "time constant of the derivative's filter", tunable=True)] = 0.01
    initial_filtered: Annotated[float, Parameter("1", "filter state at the start")] = 0.0

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gains, limits and start values."""
        return {**super().parameter_units(), "initial_filtered": self.measured_unit}

    def states(self) -> tuple[Quantity, ...]:
        """Return the integral part and the filter state."""
        return (
            Quantity("integral_part", self.command_unit, description="integral part of the command"),
            Quantity("filtered", self.measured_unit, description="filtered derivative error"),
        )

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the command and the control error."""
        return (
            Quantity("command", self.command_unit, description="command"),
            Quantity("error", self.measured_unit, description="setpoint minus measured value"),
        )

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the initial states."""
        return {"integral_part": now["initial_integral"], "filtered": now["initial_filtered"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return the derivatives of the states."""
        wanted = self._wanted(now)
        beyond = limited(self, now, wanted) - wanted
        return {
            "integral_part": now["integral"] * self._differences(now)[0] + beyond * self._tracking_rate(now),
            "filtered": self._slope(now),
        }

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the saturated command, and the control error."""
        return {"command": limited(self, now, self._wanted(now)), "error": self._differences(now)[0]}

    def _slope(self, now: Numbers) -> Array:
        return (self._differences(now)[2] - now["filtered"]) / now["filter_time"]

    def _wanted(self, now: Numbers) -> Array:
        """Return the unsaturated command."""
        return self._command(now, self._differences(now)[1], now["integral_part"], self._slope(now))


class SampledPidController(SampledBlock, _Pid):
    """Sampled PID controller: it reads its inputs at each sample and holds its command until the next one.

    With the sample time h: I₊ = I + h k_i (r - y), and the derivative d₊ = (T_f d + e_d - e_d before) / (T_f + h).
    Anti-windup feeds back the saturation excess with the factor h / T_t, at most 1. The first sample has no derivative
    part.

    Attributes
    ----------
    filter_time
        T_f in s; may be zero.
    """

    type: Literal["sampled-pid-controller"] = "sampled-pid-controller"
    filter_time: Annotated[NonNegative, Parameter("s", "time constant of the derivative's filter", tunable=True)] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        """Return the discrete states."""
        rate = combined((self.measured_unit, 1), ("s", -1))
        return (
            Quantity("integral_part", self.command_unit, description="integral part of the command"),
            Quantity("last", self.measured_unit, description="derivative error of the last sample"),
            Quantity("slope", rate, description="filtered derivative of this error"),
            Quantity("begun", "1", description="1 after the first sample"),
            Quantity("held", self.command_unit, description="command until the next sample"),
        )

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the command."""
        return (Quantity("command", self.command_unit, description="command"),)

    def initial_states(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return the states before the first sample."""
        start = now["initial_integral"]
        return {"integral_part": start, "last": 0.0, "slope": 0.0, "begun": 0.0, "held": limited(self, now, start)}

    def update(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return the states after a sample."""
        time = self.sample_time
        error, proportional, differentiated = self._differences(now)
        change = now["begun"] * (differentiated - now["last"])
        slope = (now["filter_time"] * now["slope"] + change) / (now["filter_time"] + time)
        integral = now["integral_part"] + time * now["integral"] * error
        wanted = self._command(now, proportional, integral, slope)
        held = limited(self, now, wanted)
        drawn = (held - wanted) * np.minimum(time * self._tracking_rate(now), 1.0)
        return {"integral_part": integral + drawn, "last": differentiated, "slope": slope, "begun": 1.0, "held": held}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the held command."""
        return {"command": now["held"]}
