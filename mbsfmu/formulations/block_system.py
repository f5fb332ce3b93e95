"""A block, such as a controller, as a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from hydraulics.kinds import is_built_in
from mbsfmu.data import Quantity, in_order, parameters_of
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.motionless_system import MotionlessSystem
from mbsfmu.formulations.part_variables import part_variable, trial_points
from mbsfmu.formulations.system import Instant, starts
from mbsfmu.formulations.traced_parts import check_part
from mbsfmu.model.block import Block
from mbsfmu.model.numbers import Numbers
from mbsfmu.variables import Causality


class BlockSystem(MotionlessSystem):
    """A block: its states are of first order.

    Parameters
    ----------
    block
        The block.
    name
        Name of the system.

    Raises
    ------
    InputError
        When the block traces wrongly.
    """

    def __init__(self, block: Block, name: str = "block") -> None:
        self.name = name
        self._block = block = block.model_copy(update={"name": name})
        self._own = tuple(replace(each, name=each.name.removeprefix(f"{name}.")) for each in parameters_of(block, name))
        self.states = tuple(part_variable(replace(each, start=None), Causality.LOCAL) for each in block.states())
        self.inputs = tuple(part_variable(each, Causality.INPUT) for each in block.inputs())
        self.parameters = tuple(part_variable(each, Causality.PARAMETER) for each in self._own)
        self.outputs = tuple(part_variable(each, Causality.OUTPUT) for each in block.outputs())
        names = [each.name for each in self._own]
        self.orderings = tuple((names.index(smaller), names.index(greater)) for smaller, greater in block.orderings())
        if not is_built_in(type(block)):
            check_part(f"{block.type} '{name}'", type(block), self._answers, self._points)

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, instant: Instant) -> Array:
        """Return the rates of the states."""
        return self._rates(instant.states, instant.inputs, instant.parameters)

    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return the outputs, in the order of `outputs`."""
        return self._outputs(instant.states, instant.inputs, instant.parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the states at the start."""
        block = self._block
        now = self._now((self._own, parameters))
        return self._in_order("initial_states", block.states(), block.initial_states(now))

    def _rates(self, states: Array, inputs: Array, parameters: Array) -> Array:
        block = self._block
        now = self._now((block.states(), states), (block.inputs(), inputs), (self._own, parameters))
        return self._in_order("rates", block.states(), block.rates(now))

    def _outputs(self, states: Array, inputs: Array, parameters: Array) -> Array:
        block = self._block
        now = self._now((block.states(), states), (block.inputs(), inputs), (self._own, parameters))
        return self._in_order("evaluate_outputs", block.outputs(), block.evaluate_outputs(now))

    def _now(self, *groups: tuple[tuple[Quantity, ...], Array]) -> Numbers:
        """Return what the block sees: quantities with their values."""
        numbers = {
            quantity.name: partial(values.__getitem__, index)
            for quantities, values in groups
            for index, quantity in enumerate(quantities)
        }
        return Numbers(f"{self._block.type} '{self.name}'", numbers)

    def _in_order(self, function: str, quantities: tuple[Quantity, ...], given: Mapping[str, Array | float]) -> Array:
        values = in_order(self._block, function, quantities, given)
        return np.stack(values) if values else np.zeros(0)

    # -- checks ---------------------------------------------------------------------------------------------

    def _answers(self, states: Array, inputs: Array, parameters: Array) -> dict[str, list[Array | float]]:
        """Return the numbers that each function gives, by the function's name."""
        return {
            "rates": list(self._rates(states, inputs, parameters)),
            "evaluate_outputs": list(self._outputs(states, inputs, parameters)),
            "initial_states": list(self.initial_states(parameters)),
        }

    def _points(self) -> list[tuple[Array, ...]]:
        """Return states, inputs and parameters at which the block is tried."""
        parameters = starts(self.parameters)
        states = (self.initial_states(parameters), self.states)
        return trial_points(parameters, states, (starts(self.inputs), self.inputs))
