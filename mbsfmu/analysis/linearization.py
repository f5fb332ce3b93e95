"""Linearizes a model about a point of a run, in the independent coordinates of its mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from mbsfmu.analysis.differences import derivative, has_kink
from mbsfmu.analysis.linear_system import Floats, LinearSystem, Signal
from mbsfmu.base.errors import InputError
from mbsfmu.base.patterns import means, nearest
from mbsfmu.formulations.double_step import DoubleStepForm
from mbsfmu.modelling.variables import Causality, Variable, rated_names
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variables import readings

FORMULATION = "double-step"
"""Whose unknowns are independent coordinates; the motion that is linearized is that of all formulations."""


def linearize(
    simulation: Simulation, at: float = 0.0, inputs: Iterable[str] = (), outputs: Iterable[str] = ()
) -> LinearSystem:
    """Linearize a simulation about where it is at a time.

    States are independent coordinates, their velocities, and states of circuits and blocks; integrals of energy are
    none. A and B are exact derivatives of the equations, C and D are extrapolated differences.

    Parameters
    ----------
    simulation
        A simulation by `double-step`; it is run to the time.
    at
        Time in s.
    inputs, outputs
        Patterns such as `valve.*`; all inputs that nothing but signals drives, and all outputs, by default. What else
        the simulation computes can be an output too, as `boom.angular_acceleration`.

    Raises
    ------
    InputError
        When a pattern means nothing, the time is before the start, or an input prescribes a motion.
    SimulationError
        When the run to the time fails.
    """
    if not (np.isfinite(at) and at >= 0.0):
        raise InputError(f"a model is linearized at a time of 0 s or later; {at:g} s is none")
    system = simulation.functions.system
    driving = _chosen(inputs, system.inputs, "input")
    prescribing = rated_names(system.inputs)
    if named := [system.inputs[each].name for each in driving if system.inputs[each].name in prescribing and inputs]:
        raise InputError(f"'{named[0]}' prescribes a motion, and is no input of a linear system; leave it out")
    driving = [each for each in driving if system.inputs[each].name not in prescribing]
    computed = [each for each in simulation.continuous if each.causality is not Causality.INPUT]
    usual = [each for each in computed if each.causality is Causality.OUTPUT]
    read = [computed[each].name for each in _chosen(outputs, computed, "output")]
    read = read if outputs else [each.name for each in usual]
    simulation.initialize()
    if at > 0.0:
        simulation.step(0.0, at)
    return _Point(simulation, driving, read).system()


def _chosen(patterns: Iterable[str], variables: Sequence[Variable], kind: str) -> list[int]:
    """Return the places of the variables that patterns mean, in the order of the patterns; all without a pattern."""
    names = [each.name for each in variables]
    found: dict[int, None] = {}
    given = tuple(patterns)
    for pattern in given:
        places = [place for place, name in enumerate(names) if means(pattern, [name])]
        if not places:
            raise InputError(f"there is no {kind} '{pattern}'; {nearest(pattern, names, lambda name: [name])}")
        found |= dict.fromkeys(places)
    return list(found) if given else list(range(len(names)))


class _Point:
    """A simulation where it is linearized.

    Parameters
    ----------
    simulation
        Where it is.
    driving
        Places of the inputs of the linear system.
    read
        Names of the outputs of the linear system.
    """

    def __init__(self, simulation: Simulation, driving: Sequence[int], read: Sequence[str]) -> None:
        course = simulation.course
        self._simulation, self._driving, self._read = simulation, driving, read
        self._functions = simulation.functions
        form = simulation.formulation.explicit_form(course.present)
        assert isinstance(form, DoubleStepForm)
        self._form = form
        self._inputs = course.effective.copy()
        self._time = course.time
        names = [each.name for each in simulation.continuous]
        self._rows = [names.index(name) for name in read]

    def system(self) -> LinearSystem:
        """Return the linear system."""
        form, system = self._form, self._functions.system
        size = len(form.start) - len(system.integrals)
        values = form.start[:size]
        rates = form.rates(form.start, self._inputs)
        a = np.zeros((size, size))
        a[: form.chained, form.chained : 2 * form.chained] = np.eye(form.chained)
        a[form.chained :] = form.tangent()[: size - form.chained]
        slopes = np.eye(len(self._inputs))
        b = np.array([form.drift(slopes[each])[:size] for each in self._driving]).reshape(-1, size).T
        scale = np.maximum(np.abs(values), self._simulation.formulation.explicit_scale[:size])
        c = [self._by_state(place, magnitude) for place, magnitude in enumerate(scale)]
        d = [self._by_input(place) for place in self._driving]
        outputs = self._outputs(form.start, self._inputs)
        variables = {each.name: each for each in self._simulation.continuous}
        given = [system.inputs[each] for each in self._driving]
        return LinearSystem(
            name=self._simulation.name,
            time=self._time,
            a=a,
            b=b,
            c=np.array(c).reshape(size, len(self._read)).T,
            d=np.array(d).reshape(len(self._driving), len(self._read)).T,
            states=tuple(map(_signal, self._states(), values)),
            inputs=tuple(map(_signal, given, self._inputs[list(self._driving)])),
            outputs=tuple(map(_signal, (variables[name] for name in self._read), outputs)),
            rates=rates[:size].copy(),
            held=tuple(each.name for each in system.discrete),
            kinks=tuple(
                each.name
                for place, (each, magnitude) in enumerate(zip(self._states(), scale, strict=True))
                if has_kink(partial(self._rates, place), float(magnitude))
            ),
        )

    def _states(self) -> list[Variable]:
        """Return the variables of the states."""
        system, state = self._functions.system, self._simulation.course.present
        assert state.partition is not None
        chosen = list(state.partition.independent)
        moving = [each[place] for each in (system.coordinates, system.velocities) for place in chosen]
        return [*moving, *system.states]

    def _rates(self, place: int, distance: float) -> Floats:
        """Return ẋ at a distance along one of the states."""
        values = self._form.start.copy()
        values[place] += distance
        return self._form.rates(values, self._inputs)[: len(values) - len(self._functions.system.integrals)].copy()

    def _outputs(self, values: Floats, inputs: Floats) -> Floats:
        state = self._form.state_at(values, inputs)
        return readings(self._simulation.formulation, state, inputs)[self._rows]

    def _by_state(self, place: int, magnitude: float) -> Floats:
        def moved(distance: float) -> Floats:
            values = self._form.start.copy()
            values[place] += distance
            return self._outputs(values, self._inputs)

        return derivative(moved, float(magnitude))[0]

    def _by_input(self, place: int) -> Floats:
        nominal = self._functions.system.inputs[place].nominal or 1.0

        def moved(distance: float) -> Floats:
            inputs = self._inputs.copy()
            inputs[place] += distance
            return self._outputs(self._form.start, inputs)

        return derivative(moved, max(abs(float(self._inputs[place])), nominal))[0]


def _signal(variable: Variable, value: float) -> Signal:
    return Signal(variable.name, variable.unit, float(value))
