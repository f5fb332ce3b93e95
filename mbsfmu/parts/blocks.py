"""Blocks: without states, with continuous states, and PID controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.base.physical_units import Unit, combined
from mbsfmu.model.block import Block, SampledBlock
from mbsfmu.model.force import Numbers
from mbsfmu.model.reference_types import NonNegative, OptionalPositive, Positive
from mbsfmu.modelling import Array, Parameter, Quantity, interpolated, tabulated, word


class Limited(Protocol):
    """A block with an optional lower and upper limit."""

    @property
    def minimum(self) -> float | None:
        """The lower limit."""
        ...

    @property
    def maximum(self) -> float | None:
        """The upper limit."""
        ...


def check_room(block: Block, smaller: str = "minimum", greater: str = "maximum") -> None:
    """Refuse two optional numbers of a block of which the second does not exceed the first.

    Raises
    ------
    ValueError
        If the second does not exceed the first.
    """
    least, most = getattr(block, smaller), getattr(block, greater)
    if least is not None and most is not None and not least < most:
        raise ValueError(f"{smaller} is {least:g} and {greater} {most:g}; {greater} must be more than {smaller}")


def ordered_limits(block: Limited) -> tuple[tuple[str, str], ...]:
    """Return the limits as a pair of parameters of which the second must be greater, if both are given."""
    return () if block.minimum is None or block.maximum is None else (("minimum", "maximum"),)


def limited(block: Limited, now: Numbers, value: Array) -> Array:
    """Return a value saturated at the given limits of a block."""
    if block.minimum is not None:
        value = np.maximum(value, now["minimum"])
    return value if block.maximum is None else np.minimum(value, now["maximum"])


class OneInput(Block, abstract=True):
    """Block with the input `input` and the output `output`.

    Attributes
    ----------
    input_unit, output_unit
        Units of input and output.
    """

    input_unit: Unit = "1"
    output_unit: Unit = "1"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the input."""
        return (Quantity("input", self.input_unit, 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the output."""
        return (Quantity("output", self.output_unit),)

    @property
    def gain_unit(self) -> str:
        """The output's unit over the input's."""
        return combined((self.output_unit, 1), (self.input_unit, -1))


class SameUnit(Block, abstract=True):
    """Block with `input` and `output` in the same unit.

    Attributes
    ----------
    unit
        Unit of input and output.
    """

    unit: Unit = "1"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the input."""
        return (Quantity("input", self.unit, 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the output."""
        return (Quantity("output", self.unit),)


Ascending = Annotated[tuple[float, ...], Field(min_length=2)]


class Gain(OneInput):
    """Gain and offset: y = k u + y₀.

    Attributes
    ----------
    gain
        k, in the output's unit over the input's.
    offset
        y₀, in the output's unit.
    """

    type: Literal["gain"] = "gain"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)]
    offset: Annotated[float, Parameter("1", "output at zero input", tunable=True)] = 0.0

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gain and offset."""
        return {"gain": self.gain_unit, "offset": self.output_unit}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": now["gain"] * now["input"] + now["offset"]}


class Sum(Block):
    """Sum or difference of the inputs `input_1`, `input_2` and so on.

    Attributes
    ----------
    unit
        Unit of all inputs and the output.
    signs
        One sign for each input, such as `+-` for a difference.
    """

    type: Literal["sum"] = "sum"
    unit: Unit = "1"
    signs: Annotated[str, word(r"[+-]{1,99}", "signs are + and -, one for each input, as +-")] = "++"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the inputs."""
        return tuple(Quantity(f"input_{index + 1}", self.unit, 0.0) for index in range(len(self.signs)))

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the sum."""
        return (Quantity("output", self.unit),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the sum."""
        total = np.zeros(())
        for sign, each in zip(self.signs, self.inputs(), strict=True):
            total = total + now[each.name] if sign == "+" else total - now[each.name]
        return {"output": total}


class Limiter(SameUnit):
    """Saturation of the input at limits.

    Attributes
    ----------
    minimum, maximum
        Limits.
    """

    type: Literal["limiter"] = "limiter"
    minimum: Annotated[float, Parameter("1", "least output", tunable=True)]
    maximum: Annotated[float, Parameter("1", "greatest output", tunable=True)]

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        check_room(self)
        return self

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of the limits."""
        return {"minimum": self.unit, "maximum": self.unit}

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return the limits."""
        return (("minimum", "maximum"),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": np.clip(now["input"], now["minimum"], now["maximum"])}


class DeadZone(SameUnit):
    """Dead zone: zero output within the zone, the excess beyond it.

    Attributes
    ----------
    start, end
        Of the zone.
    """

    type: Literal["dead-zone"] = "dead-zone"
    start: Annotated[float, Parameter("1", "start of the zone", tunable=True)]
    end: Annotated[float, Parameter("1", "end of the zone", tunable=True)]

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        check_room(self, "start", "end")
        return self

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of the zone."""
        return {"start": self.unit, "end": self.unit}

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return the ends of the zone."""
        return (("start", "end"),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": now["input"] - np.clip(now["input"], now["start"], now["end"])}


class Table(OneInput):
    """One-dimensional lookup table: linear interpolation, constant extrapolation.

    Attributes
    ----------
    points
        Pairs of input and output, with ascending inputs.
    """

    type: Literal["table"] = "table"
    points: Annotated[tuple[tuple[float, float], ...], Field(min_length=2), Parameter("1", "output", tunable=True)]

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        _check_ascending("points", [place for place, _ in self.points])
        return self

    def parameter_units(self) -> Mapping[str, str]:
        """Return the unit of the outputs."""
        return {f"points_{number}": self.output_unit for number in range(1, 1 + len(self.points))}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": tabulated(now["input"], now, "points", self.points)}


class Table2D(Block):
    """Two-dimensional lookup table: bilinear interpolation, constant extrapolation.

    Attributes
    ----------
    row_unit, column_unit, output_unit
        Units of the inputs `row` and `column`, and of the output.
    rows, columns
        Ascending inputs.
    values
        Output for each row and column; one tuple per row.
    """

    type: Literal["table-2d"] = "table-2d"
    row_unit: Unit = "1"
    column_unit: Unit = "1"
    output_unit: Unit = "1"
    rows: Ascending
    columns: Ascending
    values: tuple[tuple[float, ...], ...]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        _check_ascending("rows", self.rows)
        _check_ascending("columns", self.columns)
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(
                f"values must have {len(self.rows)} rows of {len(self.columns)} numbers, as rows and columns say"
            )
        return self

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the inputs."""
        return Quantity("row", self.row_unit, 0.0), Quantity("column", self.column_unit, 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the output."""
        return (Quantity("output", self.output_unit),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        along = [interpolated(now["column"], list(zip(self.columns, row, strict=True))) for row in self.values]
        return {"output": interpolated(now["row"], list(zip(self.rows, along, strict=True)))}


def _check_ascending(name: str, places: Sequence[float]) -> None:
    if any(later <= earlier for earlier, later in pairwise(places)):
        raise ValueError(f"{name} is for {', '.join(f'{place:g}' for place in places)}; it must ascend")


class FirstOrder(OneInput):
    """First-order lag: T ẏ + y = k u.

    Attributes
    ----------
    gain
        k, in the output's unit over the input's.
    time_constant
        T in s.
    initial_output
        y at the start.
    """

    type: Literal["first-order"] = "first-order"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)] = 1.0
    time_constant: Annotated[Positive, Parameter("s", "time constant", tunable=True)]
    initial_output: Annotated[float, Parameter("1", "output at the start")] = 0.0

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gain and initial output."""
        return {"gain": self.gain_unit, "initial_output": self.output_unit}

    def states(self) -> tuple[Quantity, ...]:
        """Return the output as a state."""
        return (Quantity("value", self.output_unit, description="output, as a state"),)

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the initial output."""
        return {"value": now["initial_output"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return ẏ."""
        return {"value": (now["gain"] * now["input"] - now["value"]) / now["time_constant"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": now["value"]}


class SecondOrder(OneInput):
    """Second-order lag: ÿ + 2 ζ ω ẏ + ω² y = k ω² u.

    Attributes
    ----------
    gain
        k, in the output's unit over the input's.
    natural_frequency
        ω in rad/s.
    damping_ratio
        ζ.
    initial_output
        y at the start, with zero derivative.
    """

    type: Literal["second-order"] = "second-order"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)] = 1.0
    natural_frequency: Annotated[Positive, Parameter("rad/s", "natural angular frequency", tunable=True)]
    damping_ratio: Annotated[NonNegative, Parameter("1", "damping ratio", tunable=True)]
    initial_output: Annotated[float, Parameter("1", "output at the start")] = 0.0

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gain and initial output."""
        return {"gain": self.gain_unit, "initial_output": self.output_unit}

    def states(self) -> tuple[Quantity, ...]:
        """Return the output and its derivative as states."""
        return (
            Quantity("value", self.output_unit, description="output, as a state"),
            Quantity("rate", combined((self.output_unit, 1), ("s", -1)), description="rate of the output"),
        )

    def initial_states(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return the initial output with zero derivative."""
        return {"value": now["initial_output"], "rate": 0.0}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return ẏ and ÿ."""
        frequency = now["natural_frequency"]
        pull = frequency**2 * (now["gain"] * now["input"] - now["value"])
        return {"value": now["rate"], "rate": pull - 2.0 * now["damping_ratio"] * frequency * now["rate"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": now["value"]}


class Integrator(OneInput):
    """Integrator with optional limits: ẏ = k u.

    Anti-windup by back-calculation: the excess over a limit is fed back with the time constant `tracking_time`, so that
    the output leaves the limit soon after the input changes sign [Åström & Hägglund: Advanced PID Control, 2006, sec.
    3.5].

    Attributes
    ----------
    gain
        k, in the output's unit over the input's and s.
    minimum, maximum
        Limits of the output; None where there is none.
    tracking_time
        In s.
    initial_output
        y at the start.
    """

    type: Literal["integrator"] = "integrator"
    input_unit: Unit = "1"
    output_unit: Unit = "s"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)] = 1.0
    minimum: Annotated[float | None, Parameter("1", "least output", tunable=True)] = None
    maximum: Annotated[float | None, Parameter("1", "greatest output", tunable=True)] = None
    tracking_time: Annotated[Positive, Parameter("s", "tracking time of the anti-windup", tunable=True)] = 0.01
    initial_output: Annotated[float, Parameter("1", "output at the start")] = 0.0

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        check_room(self)
        return self

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of gain, limits and initial output."""
        gain = combined((self.output_unit, 1), (self.input_unit, -1), ("s", -1))
        return {"gain": gain, **dict.fromkeys(("minimum", "maximum", "initial_output"), self.output_unit)}

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return the limits, if both are given."""
        return ordered_limits(self)

    def states(self) -> tuple[Quantity, ...]:
        """Return the integral as a state."""
        return (Quantity("value", self.output_unit, description="integral; it slightly exceeds an active limit"),)

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the initial output."""
        return {"value": now["initial_output"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return the derivative of the integral."""
        value = now["value"]
        return {"value": now["gain"] * now["input"] + (limited(self, now, value) - value) / now["tracking_time"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the integral, saturated at its limits."""
        return {"output": limited(self, now, now["value"])}


class TransferFunction(OneInput):
    """Transfer function, numerator and denominator polynomials in s; it starts from static equilibrium at zero.

    Its states are those of the observable canonical form [Kailath: Linear Systems, 1980, sec. 2.1].

    Attributes
    ----------
    numerator, denominator
        Coefficients in descending powers of s; they are not FMU parameters. The degree of the numerator must not exceed
        that of the denominator.
    """

    type: Literal["transfer-function"] = "transfer-function"
    numerator: Annotated[tuple[float, ...], Field(min_length=1)]
    denominator: Annotated[tuple[float, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _is_proper(self) -> Self:
        if self.denominator[0] == 0.0:
            raise ValueError("denominator begins with 0; its first coefficient must not be zero")
        if len(self.numerator) > len(self.denominator):
            raise ValueError(
                f"numerator has {len(self.numerator)} coefficients and denominator {len(self.denominator)}; it must "
                "not have more"
            )
        return self

    def states(self) -> tuple[Quantity, ...]:
        """Return the states of the canonical form."""
        return tuple(
            Quantity(f"x{index + 1}", combined((self.output_unit, 1), ("s", -index)))
            for index in range(len(self.denominator) - 1)
        )

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return the derivatives of the states."""
        (_, *upper), (_, *lower) = self._coefficients()
        output = self._output(now)
        later = [now[each.name] for each in self.states()[1:]]
        return {
            state.name: b * now["input"] - a * output + following
            for state, b, a, following in zip(self.states(), upper, lower, [*later, 0.0], strict=True)
        }

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": self._output(now)}

    def _output(self, now: Numbers) -> Array:
        return now["x1"] + self._coefficients()[0][0] * now["input"]

    def _coefficients(self) -> tuple[list[float], list[float]]:
        """Return numerator and denominator of equal length, divided by the leading denominator coefficient."""
        missing = len(self.denominator) - len(self.numerator)
        numerator = [0.0] * missing + [each / self.denominator[0] for each in self.numerator]
        return numerator, [each / self.denominator[0] for each in self.denominator]


class RateLimiter(SameUnit):
    """Rate limiter: the output follows the input with limited rates.

    Within the limits it follows with a short first-order lag, so that its derivative is defined.

    Attributes
    ----------
    rising, falling
        Largest rates up and down, both positive, in the unit over s.
    response_time
        Time constant of the lag in s.
    initial_output
        At the start.
    """

    type: Literal["rate-limiter"] = "rate-limiter"
    rising: Annotated[Positive, Parameter("1", "largest rising rate", tunable=True)]
    falling: Annotated[Positive, Parameter("1", "largest falling rate", tunable=True)]
    response_time: Annotated[Positive, Parameter("s", "time constant within the limits", tunable=True)] = 0.01
    initial_output: Annotated[float, Parameter("1", "output at the start")] = 0.0

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of rates and initial output."""
        rate = combined((self.unit, 1), ("s", -1))
        return {"rising": rate, "falling": rate, "initial_output": self.unit}

    def states(self) -> tuple[Quantity, ...]:
        """Return the output."""
        return (Quantity("value", self.unit, description="output, as a state"),)

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output at the start."""
        return {"value": now["initial_output"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return the derivative of the output."""
        wanted = (now["input"] - now["value"]) / now["response_time"]
        return {"value": np.clip(wanted, -now["falling"], now["rising"])}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return the output."""
        return {"output": now["value"]}


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
