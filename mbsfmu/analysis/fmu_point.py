"""Linear system of one loaded FMU at its present state, in its own units of measurement."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from mbsfmu.analysis.kinks import has_kink
from mbsfmu.analysis.linear_system import Floats
from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.fmu_instance import FmuError, Instance, Port
from mbsfmu.cosim.fmus.model_exchange import ModelExchangeInstance
from mbsfmu.modelling.variables import Causality, Variability

_DIFFERENCE = float(np.cbrt(np.finfo(float).eps))
"""Share of a magnitude by which central differences go to either side: their error is least about there."""
_CHOSEN = re.compile(r"independent\.(position|velocity)\[\d+\]")
"""States of our FMUs of machines with loops, which are the coordinates that are independent at the time."""
_OF_COORDINATES = ("m", "rad", "m/s", "rad/s")
"""Units of joint coordinates and their velocities."""
_ROUND_OFF = 1e-9
"""Share by which a derivative of a coordinate by itself may differ from 1, and by other states from 0."""


def continuous_variables(instance: Instance, causality: Causality) -> list[str]:
    """Return the names of an FMU's continuous Real variables of one causality, without aliases of inputs."""
    return [
        name
        for name, each in instance.variables.items()
        if (each.causality, each.variability, instance.kinds[name]) == (causality, Variability.CONTINUOUS, "Real")
        and not (causality is Causality.INPUT and name in instance.aliases)
    ]


class FmuPoint:
    """Linearization point of an FMU: δẋ = A δx + B δu, δy = C δx + D δu.

    Parameters
    ----------
    instance
        The FMU, at its start or between two steps.
    outputs
        Names of the variables y.

    Attributes
    ----------
    states, inputs, outputs
        Names of x, u and y.
    state_values, input_values, output_values
        Values there.
    rates
        ẋ there.
    a, b, c, d
        The matrices.
    note
        What has to be said of the derivatives, in sentences; empty where they are the FMU's own, and nothing is held.

    Raises
    ------
    InputError
        When the FMU is for co-simulation and gives no derivatives of its states.
    SimulationError
        When the FMU cannot be evaluated there.
    """

    def __init__(self, instance: Instance, outputs: Sequence[str]) -> None:
        self.instance = instance
        self.states, self.outputs = list(instance.states), list(outputs)
        self.inputs = continuous_variables(instance, Causality.INPUT)
        self._inputs, self._outputs = instance.port(self.inputs), instance.port(self.outputs)
        self.input_values = _read(self._inputs)
        self.output_values = _read(self._outputs)
        self.note = ""
        if isinstance(instance, ModelExchangeInstance):
            self.state_values = instance.current_states
            self.rates = self._rates(self.state_values)
        else:
            self._check_states()
            self.state_values = _read(instance.port(self.states))
            self.rates = _read(instance.port(instance.derivatives))
        self.a, self.b, self.c, self.d = self._matrices()
        if isinstance(instance, ModelExchangeInstance) and np.isfinite(event := instance.read_next_event()):
            held = (
                f"what changes at events of {instance.name}, the next of which is at t = {event:.6g} s, is held, as "
                "samples of controllers and waves in lines with a delay"
            )
            self.note = "; ".join(filter(None, (self.note, held)))

    def _check_states(self) -> None:
        """Check that a co-simulation FMU declares its states and their derivatives."""
        instance = self.instance
        if self.states and len(instance.derivatives) == len(self.states) and instance.gives_directional_derivatives:
            return
        lacks = "lists no states" if not self.states else "gives no directional derivatives"
        raise InputError(
            f"{instance.name} is an FMU for co-simulation that {lacks}: it cannot be linearized; take one for "
            "model exchange, of a model of ours by mbsfmu export MODEL --layout separate --kind cs,me"
        )

    def _matrices(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return A, B, C and D by directional derivatives of the FMU, or differences."""
        size, instance = len(self.states), self.instance
        if instance.gives_directional_derivatives:
            try:
                found = instance.directional_derivative(
                    [*instance.derivatives, *self.outputs], [*self.states, *self.inputs]
                )
                return found[:size, :size], found[:size, size:], found[size:, :size], found[size:, size:]
            except FmuError as error:
                if error.fatal or not isinstance(instance, ModelExchangeInstance):
                    raise
                self.note = f"the derivatives of {instance.name} are found by differences: {error}"
        elif self.states or self.inputs:
            self.note = f"the derivatives of {instance.name} are found by differences: the FMU provides none"
        columns = [
            *(self._difference(self._moved_state, k, scale) for k, scale in enumerate(self._state_scale())),
            *(self._difference(self._moved_input, k, scale) for k, scale in enumerate(self._input_scale())),
        ]
        found = np.array(columns).reshape(len(columns), size + len(self.outputs)).T
        return found[:size, :size], found[:size, size:], found[size:, :size], found[size:, size:]

    # -- values next to the point -----------------------------------------------------------------------------

    def _difference(self, moved: Callable[[int, float], Floats], place: int, scale: float) -> Floats:
        step = _DIFFERENCE * scale
        return (moved(place, step) - moved(place, -step)) / (2.0 * step)

    def _rates(self, states: Floats) -> Floats:
        instance = self.instance
        assert isinstance(instance, ModelExchangeInstance)
        return instance.rates(instance.current_time, states)[: len(self.states)]

    def _everything(self, states: Floats) -> Floats:
        return np.concatenate([self._rates(states), self._outputs.read()])

    def _moved_state(self, place: int, distance: float) -> Floats:
        states = self.state_values.copy()
        states[place] += distance
        found = self._everything(states)
        self._rates(self.state_values)
        return found

    def _moved_input(self, place: int, distance: float) -> Floats:
        self._write_inputs(self.input_values + distance * (np.arange(len(self.inputs)) == place))
        found = self._everything(self.state_values)
        self._write_inputs(self.input_values)
        return found

    def _write_inputs(self, values: Floats) -> None:
        self._inputs.values[:] = values
        self._inputs.write()

    def _state_scale(self) -> Floats:
        instance = self.instance
        nominal = instance.tolerances if isinstance(instance, ModelExchangeInstance) else np.ones(len(self.states))
        return np.maximum(np.abs(self.state_values), nominal[: len(self.states)])

    def _input_scale(self) -> Floats:
        nominal = [self.instance.variables[name].nominal or 1.0 for name in self.inputs]
        return np.maximum(np.abs(self.input_values), np.abs(nominal))

    def coordinates(self) -> dict[str, str]:
        """Return the joint coordinate that each state of our FMUs is at this point, where a variable tells it.

        It is the variable that has the state's value, and the derivative 1 by it and 0 by all other states.
        """
        instance, places = self.instance, [k for k, name in enumerate(self.states) if _CHOSEN.fullmatch(name)]
        if not places or instance.carried is None or not instance.gives_directional_derivatives:
            return {}
        others = {*self.states, *instance.derivatives}
        read = [
            name
            for causality in (Causality.OUTPUT, Causality.LOCAL)
            for name in continuous_variables(instance, causality)
            if name not in others and instance.units[name].name in _OF_COORDINATES
        ]
        alike = np.isin(_read(instance.port(read)), self.state_values[places])
        named = [name for name, equal in zip(read, alike, strict=True) if equal]
        if not named:
            return {}
        slopes = instance.directional_derivative(named, self.states)
        found: dict[str, str] = {}
        for place in places:
            unit = np.arange(len(self.states)) == place
            of_it = np.flatnonzero(np.all(np.abs(slopes - unit) < _ROUND_OFF, axis=1))
            if len(of_it):
                found[self.states[place]] = named[of_it[0]]
        return found

    def kinks(self) -> list[str]:
        """Return the states and inputs along which rates or outputs have a kink; none for co-simulation FMUs."""
        if not isinstance(self.instance, ModelExchangeInstance):
            return []
        states, inputs = self._state_scale(), self._input_scale()
        ranges = np.max(
            np.abs(np.block([[self.a, self.b], [self.c, self.d]])) * np.concatenate([states, inputs]), axis=1, initial=0
        )
        found = []
        for names, scales, moved in (
            (self.states, states, self._moved_state),
            (self.inputs, inputs, self._moved_input),
        ):
            for place, (name, scale) in enumerate(zip(names, scales.tolist(), strict=True)):
                if has_kink(partial(moved, place), scale, ranges):
                    found.append(name)
        return found


def _read(port: Port) -> Floats:
    return port.read().copy() if port.names else np.zeros(0)
