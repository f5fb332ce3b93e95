"""Systems of a model from its data: mechanisms, circuits and blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from hydraulics import Circuit, CircuitEnergies, CircuitEquations
from mbsfmu.model.block import Block, SampledBlock
from mbsfmu.model.force import Numbers
from mbsfmu.model.model_data import ModelData
from mbsfmu.modelling import DataError, Quantity, closest_match, in_order, parameters_of, structure_of
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.part import is_built_in
from mbsfmu.modelling.variables import Causality, Variable, with_unit
from mbsfmu.systems.checks import check_displacements, check_energy, check_part, with_hidden_numbers
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.connections import Wiring
from mbsfmu.systems.mechanism import absolute_system  # noqa: F401 - the same
from mbsfmu.systems.part_variables import MotionlessSystem, make_system, part_variable, trial_points
from mbsfmu.systems.system import (
    EventIndicators,
    SampledUpdates,
    Sampling,
    StartLimits,
    System,
    SystemContext,
    started,
    starting,
    starts,
)
from mbsfmu.tracing.kept_traces import Traces


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


_MAGNITUDES = {"J": 1e3, "Pa": 1e6, "N": 1e4, "m3/s": 1e-4, "W": 1e3, "V": 10.0}
"""Nominal values of circuit variables by unit, if a quantity has none."""


class CircuitSystem(MotionlessSystem, StartLimits, EventIndicators, SampledUpdates):
    """A circuit: pressures and spool positions are first-order states; no coordinates. Lines with a delay are sampled.

    Parameters
    ----------
    circuit
        The circuit.
    name
        Name of the system.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the circuit.
    """

    def __init__(
        self, circuit: Circuit, name: str = "circuit", start_values: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.name, self._given = name, start_values
        self._equations = CircuitEquations(circuit)
        self._energies = CircuitEnergies(self._equations)
        self.states = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.states)
        self.discrete = tuple(
            part_variable(each, Causality.LOCAL, _MAGNITUDES, held=True) for each in self._equations.discrete
        )
        self.samplings = tuple(
            Sampling(
                f"{name}.{each.name}",
                first,
                len(each.component.discrete_states()),
                each.component.sample_period,
                offset=0.0,
                advice=each.component.update_advice,
                delays=True,
            )
            for each, first in self._equations.sampled
        )
        inputs = (part_variable(each, Causality.INPUT, _MAGNITUDES) for each in self._equations.inputs)
        parameters = (part_variable(each, Causality.PARAMETER) for each in self._equations.parameters)
        self.inputs, self.parameters = starting(inputs, start_values), starting(parameters, start_values)
        self.orderings = self._equations.orderings
        self.limited = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.limited)
        self.event_indicators = tuple(
            part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.event_indicators
        )
        self.integrals = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in CircuitEnergies.integrals)
        self.outputs = tuple(
            part_variable(each, Causality.OUTPUT if each.shared else Causality.LOCAL, _MAGNITUDES)
            for each in (*self._equations.outputs, *CircuitEnergies.outputs)
        )

        for component in circuit.components:
            if not is_built_in(type(component)):
                owner = f"{component.type} '{component.name}'"
                answers = partial(self._equations.answers, with_hidden_numbers(component))
                check_part(owner, type(component), answers, self._points)
                check_displacements(component, self._equations, self._points)
                check_energy(component, self._equations, self._points)

    def _points(self) -> list[tuple[Array, ...]]:
        """Return states, inputs, parameters and discrete states: those at the start, and variations of them."""
        parameters = starts(self.parameters)
        states = (self._equations.initial_states(parameters), self.states)
        discrete = (self._equations.initial_discrete(parameters), self.discrete)
        points = trial_points(parameters, states, (starts(self.inputs), self.inputs), discrete)
        return [(states, inputs, parameters, discrete) for states, inputs, discrete, parameters in points]

    def rates(self, instant: SystemContext) -> Array:
        """Return the derivatives of pressures in Pa/s and of spool positions in V/s."""
        return self._equations.rates(*_given(instant))

    def updates(self, instant: SystemContext) -> Array:
        """Return the discrete states after an update."""
        return self._equations.updates(*_given(instant))

    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before the first update."""
        return self._equations.initial_discrete(parameters)

    def integral_rates(self, instant: SystemContext) -> Array:
        """Return the powers in W of the circuit's energies, shape (4,)."""
        return self._energies.powers(*_given(instant))

    def initial_integrals(self, instant: SystemContext) -> Array:
        """Return the initial energies in J: zero supplied, delivered, dissipated; stored energy; shape (4,)."""
        return self._energies.initial_integrals(*_given(instant))

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return forces, pressures, flow rates and energies, in the order of `outputs`."""
        given = _given(instant)
        energies = self._energies.evaluate_outputs(instant.integrals, *given)
        return np.concatenate([self._equations.evaluate_outputs(*given), energies])

    def evaluate_event_indicators(self, instant: SystemContext) -> Array:
        """Return the event indicators of the components."""
        return self._equations.evaluate_event_indicators(*_given(instant))

    def start_limits(self, instant: SystemContext) -> Array:
        """Return initial pressures and cylinder lengths with their limits."""
        return self._equations.start_limits(instant.inputs, instant.parameters)

    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return advice on a cylinder whose load no pressure balances."""
        return self._equations.start_advice(limited, parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the initial pressures in Pa and spool positions in V."""
        return started(self._equations.initial_states(parameters), self.states, self._given)


def _given(instant: SystemContext) -> tuple[Array, Array, Array, Array]:
    """Return states, inputs, parameters and discrete states."""
    return instant.states, instant.inputs, instant.parameters, instant.discrete


@make_system.register
def _(data: Circuit, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    return CircuitSystem(data, name, start_values)


def coupled_system(
    model: ModelData, *, absolute: bool, keeps_traces: bool = False, for_others: bool = False
) -> tuple[CoupledSystem, Traces]:
    """Return the equations of a whole model, and the cache of what is traced of them.

    Parameters
    ----------
    model, absolute
        The model, and whether mechanisms are in absolute coordinates, as in `make_system`.
    keeps_traces, for_others
        Whether traces are kept, and for other processes too; not where users' code is part of the equations.

    Raises
    ------
    DataError
        When nothing determines an algebraic loop of connections, or forces follow accelerations at once in a way
        that is not linear.
    """
    parts = systems_of(model, absolute=absolute)
    traces = Traces((traced_content(model, parts), absolute) if keeps_traces else None, for_others=for_others)
    return CoupledSystem(model.name, parts, model.connections, traces), traces


def systems_of(model: ModelData, *, absolute: bool) -> dict[str, System]:
    """Return the equations of each system of a model by name; `absolute` as in `make_system`."""
    return {
        name: make_system(data, name, absolute=absolute, start_values=model.start_of(name))
        for name, data in model.systems.items()
    }


def traced_content(model: ModelData, parts: Mapping[str, System]) -> object:
    """Return what the traced functions of a model follow from, which numbers of parameters are no part of.

    Parameters
    ----------
    model, parts
        The model, and its systems by name: the names of their parameters tell the zeros that are left out.
    """
    structures = {name: structure_of(data) for name, data in model.systems.items()}
    interfaces = {name: _interface(part) for name, part in parts.items()}
    held = {name: value for name, value in model.start.items() if _is_in_code(parts, name)}
    return model.name, structures, model.connections, interfaces, held


def _interface(part: System) -> object:
    """Return the names of a system's variables, and what else stands in code of it."""
    groups = (
        *(part.coordinates, part.velocities, part.accelerations, part.states, part.discrete, part.integrals),
        *(part.inputs, part.parameters, part.outputs, part.reactions, part.limited, part.loop_iterates),
    )
    variables = [[(each.name, each.unit, each.nominal, each.rated) for each in group] for group in groups]
    balances = [(variable.name, name) for variable, name in part.balances]
    return variables, balances, part.constraints, part.samplings, part.orderings, part.tensors, part.references


def _is_in_code(parts: Mapping[str, System], reference: str) -> bool:
    """Return whether a start value is a constant of the traced functions: that of a state."""
    name, _, variable = reference.partition(".")
    return any(each.name == variable for each in (*parts[name].states, *parts[name].discrete))


def check_variables(model: ModelData) -> None:
    """Check that connections and signals of a model refer to existing, compatible variables.

    Raises
    ------
    DataError
        When one does not.
    """
    if model.connections or model.signals or model.start:
        parts = systems_of(model, absolute=False)
        wiring = Wiring(parts, model.connections)
        for reference in model.signals:
            wiring.free_input(reference)
        for reference in model.start:
            _check_start(model, starting_variables(parts), reference)


def starting_variables(parts: Mapping[str, System]) -> dict[str, Variable]:
    """Return what may have a start value, by `system.variable`: parameters, inputs and states."""
    return {
        f"{name}.{each.name}": each
        for name, part in parts.items()
        for each in (*part.parameters, *part.inputs, *part.states)
    }


def _check_start(model: ModelData, known: Mapping[str, Variable], reference: str) -> None:
    """Refuse a start value of an unknown or connected variable, or outside its limits."""
    (name, _, variable), value = reference.partition("."), model.start[reference]
    if reference not in known:
        names = [each.removeprefix(f"{name}.") for each in known if each.startswith(f"{name}.")]
        raise DataError(
            f"start: there is no '{variable}' in '{name}' that starts anywhere; {closest_match(variable, names)}"
        )
    if any(target == reference for _, target in model.connections):
        raise DataError(f"start: '{reference}' is driven by a connection")
    low, high = known[reference].accepted
    if not (-math.inf if low is None else low) <= value <= (math.inf if high is None else high):
        allowed = " and ".join(
            f"{word} {each:g}" for word, each in (("at least", low), ("at most", high)) if each is not None
        )
        raise DataError(f"start: {reference} is {with_unit(value, known[reference])}; it must be {allowed}")
