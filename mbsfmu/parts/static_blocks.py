"""Blocks without states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.base.physical_units import Unit
from mbsfmu.model.block import Block
from mbsfmu.model.numbers import Numbers
from mbsfmu.modelling import Array, Parameter, Quantity, interpolated, tabulated, word
from mbsfmu.parts.limits import check_room
from mbsfmu.parts.one_input import OneInput, SameUnit

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
