"""Blocks with continuous states: lags, integrators, transfer functions, rate limiters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.base.physical_units import Unit, combined
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import NonNegative, Positive
from mbsfmu.modelling import Array, Parameter, Quantity
from mbsfmu.parts.limits import check_room, limited, ordered_limits
from mbsfmu.parts.one_input import OneInput, SameUnit


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
