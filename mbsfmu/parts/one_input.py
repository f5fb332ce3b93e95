"""Base classes of blocks with one input and one output."""

from __future__ import annotations

from mbsfmu.base.physical_units import Unit, combined
from mbsfmu.model.block import Block
from mbsfmu.modelling import Quantity


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
