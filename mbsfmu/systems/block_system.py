"""Blocks, such as controllers, as systems."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from mbsfmu.model.block import Block, SampledBlock
from mbsfmu.model.numbers import Numbers
from mbsfmu.modelling import Quantity, in_order, parameters_of
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.kinds import is_built_in
from mbsfmu.modelling.variables import Causality
from mbsfmu.systems.capabilities import SampledUpdates
from mbsfmu.systems.checks.own_numbers import with_hidden_numbers
from mbsfmu.systems.checks.traced_parts import check_part
from mbsfmu.systems.making import make_system
from mbsfmu.systems.motionless_system import MotionlessSystem
from mbsfmu.systems.part_variables import part_variable, trial_points
from mbsfmu.systems.system import Sampling, System, SystemContext, started, starting, starts


class BlockSystem(MotionlessSystem, SampledUpdates):
    """A block as a system, with continuous states, or discrete ones if sampled.

    Parameters
    ----------
    block
        The block.
    name
        Name of the system.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the block.

    Raises
    ------
    InputError
        When the block traces wrongly.
    """

    def __init__(
        self, block: Block, name: str = "block", start_values: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.name, self._given = name, start_values
        self._block = block = block.model_copy(update={"name": name})
        units = block.parameter_units()
        own = [replace(each, name=each.name.removeprefix(f"{name}.")) for each in parameters_of(block, name)]
        self._own = tuple(replace(each, unit=units.get(each.name, each.unit)) for each in own)
        self._sampled = isinstance(block, SampledBlock)
        states = (replace(each, start=None) for each in block.states())
        held = tuple(part_variable(each, Causality.LOCAL, held=self._sampled) for each in states)
        if isinstance(block, SampledBlock):
            self.discrete = held
            self.samplings = (Sampling(name, 0, len(held), block.sample_time, block.offset),)
        else:
            self.states = held
        self.inputs = starting((part_variable(each, Causality.INPUT) for each in block.inputs()), start_values)
        self.parameters = starting((part_variable(each, Causality.PARAMETER) for each in self._own), start_values)
        outputs = block.outputs()
        self.outputs = tuple(part_variable(each, Causality.OUTPUT, held=self._sampled) for each in outputs)
        names = [each.name for each in self._own]
        self.orderings = tuple((names.index(smaller), names.index(greater)) for smaller, greater in block.orderings())
        if not is_built_in(type(block)):
            tried = copy(self)
            tried._block = with_hidden_numbers(block)
            check_part(f"{block.type} '{name}'", type(block), tried._answers, self._points)

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, instant: SystemContext) -> Array:
        """Return the derivatives of the states; empty for discrete states."""
        return np.zeros(0) if self._sampled else self._next(instant.states, instant.inputs, instant.parameters)

    def updates(self, instant: SystemContext) -> Array:
        """Return the discrete states after an update."""
        return self._next(instant.discrete, instant.inputs, instant.parameters) if self._sampled else np.zeros(0)

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return the outputs, in the order of `outputs`."""
        return self._outputs(instant.discrete if self._sampled else instant.states, instant.inputs, instant.parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the initial states."""
        return np.zeros(0) if self._sampled else started(self._initial(parameters), self.states, self._given)

    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before the first update."""
        return self._initial(parameters) if self._sampled else np.zeros(0)

    def _initial(self, parameters: Array) -> Array:
        block = self._block
        return self._in_order(
            "initial_states", block.states(), block.initial_states(self._now((self._own, parameters)))
        )

    def _next(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the derivatives of the states, or their values after an update."""
        block = self._block
        function, evaluate = ("update", block.update) if self._sampled else ("rates", block.rates)
        now = self._now((block.states(), states), (block.inputs(), inputs), (self._own, parameters))
        return self._in_order(function, block.states(), evaluate(now))

    def _outputs(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the outputs; those of sampled blocks do not depend on inputs."""
        block = self._block
        groups = [(block.states(), states), (self._own, parameters)]
        if not self._sampled:
            groups.append((block.inputs(), inputs))
        return self._in_order("evaluate_outputs", block.outputs(), block.evaluate_outputs(self._now(*groups)))

    def _now(self, *groups: tuple[tuple[Quantity, ...], Array]) -> Numbers:
        """Return the evaluation context of the block."""
        numbers = {
            quantity.name: partial(values.__getitem__, index)
            for quantities, values in groups
            for index, quantity in enumerate(quantities)
        }
        return Numbers(f"{self._block.type} '{self.name}'", numbers)

    def _in_order(self, function: str, quantities: tuple[Quantity, ...], given: Mapping[str, Array | float]) -> Array:
        values = in_order(f"{self._block.type} '{self._block.name}'", function, quantities, given)
        return np.stack(values) if values else np.zeros(0)

    # -- checks ---------------------------------------------------------------------------------------------

    def _answers(self, states: Array, inputs: Array, parameters: Array) -> dict[str, list[Array | float]]:
        """Return the results of each function, by the function's name."""
        return {
            "update" if self._sampled else "rates": list(self._next(states, inputs, parameters)),
            "evaluate_outputs": list(self._outputs(states, inputs, parameters)),
            "initial_states": list(self._initial(parameters)),
        }

    def _points(self) -> list[tuple[Array, ...]]:
        """Return states, inputs and parameters for test evaluations."""
        parameters = starts(self.parameters)
        states = (self._initial(parameters), self.discrete if self._sampled else self.states)
        return trial_points(parameters, states, (starts(self.inputs), self.inputs))


@make_system.register
def _(data: Block, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    return BlockSystem(data, name, start_values)
