"""Checks of user-defined components: volumes against displacements, energies against their rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from hydraulics import CircuitEquations, Component, HydraulicActuator
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.symbols import expression, symbols

_AGREEMENT = 1e-8
"""Round-off tolerance of volume rates."""


def check_displacements(
    component: Component, equations: CircuitEquations, points: Callable[[], Sequence[Sequence[Array]]]
) -> None:
    """Refuse a component whose volume rates differ from its displacements: it would create or lose oil.

    States change by their rates, the length of an actuator by its velocity. Rates of other inputs are unknown. Constant
    volumes, as of a closed chamber, are not checked.

    Parameters
    ----------
    component, equations
        The component, and the equations of its circuit.
    points
        Tells where they are tried: states, inputs, parameters and discrete states of the circuit.

    Raises
    ------
    InputError
        When the component fails.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(points()[0])]
    (states, _), (inputs, _), *_ = made
    arrays = [array for _, array in made]
    rates, moving = expression(equations.rates(*arrays)), _input_rates(component, equations, inputs)
    for port, (volume, displaced) in equations.moving_volumes(component, *arrays).items():
        space = expression(volume)
        if moving is None and ca.depends_on(space, inputs):
            continue
        growing = ca.jtimes(space, states, rates)
        if moving is not None:
            growing += ca.jtimes(space, inputs, moving)
        function = ca.Function("growth", [vector for vector, _ in made], [growing, expression(displaced)])
        for point in points():
            growth, pushed = (float(np.asarray(each).item()) for each in function(*point))
            if growth and abs(growth + pushed) > _AGREEMENT * max(abs(growth), abs(pushed)):
                raise InputError(
                    f"{component.type} '{component.name}' is refused: its volume at port '{port}' changes by "
                    f"{growth:.6g} m3/s where displacements gives {pushed:.6g} m3/s there; it must be minus that, or "
                    "oil comes from nothing"
                )


def check_energy(
    component: Component, equations: CircuitEquations, points: Callable[[], Sequence[Sequence[Array]]]
) -> None:
    """Refuse a component whose energy rate differs from its `energy_rate`.

    Otherwise the energy balance of the circuit would wrongly indicate an integration error. Parameters as for
    `check_displacements`.

    Raises
    ------
    InputError
        When the component fails.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(points()[0])]
    (states, _), (inputs, _), *_ = made
    arrays = [array for _, array in made]
    answers, moving = equations.answers(component, *arrays), _input_rates(component, equations, inputs)
    energy, told = (expression(answers[name][0]) for name in ("energy", "energy_rate"))
    if moving is None and ca.depends_on(energy, inputs):
        return
    rate = ca.jtimes(energy, states, expression(equations.rates(*arrays)))
    if moving is not None:
        rate += ca.jtimes(energy, inputs, moving)
    function = ca.Function("energy", [vector for vector, _ in made], [rate, told])
    for point in points():
        storing, said = (float(np.asarray(each).item()) for each in function(*point))
        if abs(storing - said) > _AGREEMENT * max(abs(storing), abs(said)):
            raise InputError(
                f"{component.type} '{component.name}' is refused: its energy changes by {storing:.6g} W where "
                f"energy_rate gives {said:.6g} W"
            )


def _input_rates(component: Component, equations: CircuitEquations, inputs: ca.SX) -> ca.SX | None:
    """Return the rates of a circuit's inputs from the component's motion; None without motion."""
    if not isinstance(component, HydraulicActuator) or len(component.motion) != 2:
        return None
    names = [each.name for each in equations.inputs]
    length, velocity = (names.index(f"{component.name}.{each}") for each in component.motion)
    rates = ca.SX.zeros(len(names))
    rates[length] = inputs[velocity]
    return rates
