"""Linearization of a model at a point of a run, in independent coordinates, and discontinuities of its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from mbsfmu.analysis.linear_system import Floats, LinearSystem, OperatingValue
from mbsfmu.analysis.modal_analysis import ModalAnalysis
from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.modelling.variables import Causality, Variable, rated_names
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.state import State
from mbsfmu.systems.concatenated_system import CoupledSystem

_STEPS = (1e-6, 8e-6, 64e-6)
"""Relative steps, at which the curvature of a smooth function changes slopes similarly."""
_GROWTH = 8.0
"""Ratio of consecutive steps: second differences grow by it at a kink, by its square for a smooth function …"""
_ABOUT = 2.5
"""… and not at round-off. Tolerance factor of these ratios."""
_STILL = (0.7e-9, 1e-9, 1.3e-9)
"""Steps with second differences at round-off …"""
_ABOVE = 30.0
"""… which those of kinks exceed by this factor."""
_KINK = 1e-2
"""Relative difference of slopes at a kink."""
_COUNTS = 1e-6
"""Change relative to the value's total change below which a kink is ignored."""
_ROUND_OFF = 1e-13
"""Relative round-off of differences."""


def has_kink(function: Callable[[float], Floats], magnitude: float, range_: Floats) -> bool:
    """Return whether the derivative of a function is discontinuous at zero.

    Second differences grow with the step at a kink, and with its square where the function is smooth.

    Parameters
    ----------
    function
        Gives an array for a distance from the point.
    magnitude
        Distance within which the function changes noticeably.
    range_
        How much its values change with all that they depend on: what they do here counts as a share of that.
    """
    here, first = function(0.0), _STEPS[0] * magnitude
    after, before = function(first), function(-first)
    slopes = np.abs(after - here) + np.abs(here - before)
    off = _ROUND_OFF * np.maximum(np.maximum(np.abs(after), np.abs(before)), np.abs(here))
    counted, second = _COUNTS * _STEPS[0] * range_, np.abs(after - 2.0 * here + before)
    bends, smaller = second > _KINK * slopes + off + counted, second
    # Most functions are smooth, and are known to be so by now.
    for share in _STEPS[1:]:
        if not bends.any():
            return False
        larger = _second_difference(function, here, share * magnitude)
        bends &= (larger > _GROWTH / _ABOUT * smaller) & (larger < _GROWTH * _ABOUT * smaller)
        smaller = larger
    if not bends.any():
        return False
    round_off = np.max([_second_difference(function, here, share * magnitude) for share in _STILL], axis=0)
    return bool(np.any(bends & (second > _KINK * slopes + np.maximum(off, _ABOVE * round_off) + counted)))


def _second_difference(function: Callable[[float], Floats], here: Floats, step: float) -> Floats:
    return np.abs(function(step) - 2.0 * here + function(-step))


FORMULATION = "double-step"
"""Whose unknowns are independent coordinates; the motion that is linearized is that of all formulations."""


def linearize(
    simulation: Simulation, at: float = 0.0, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> LinearSystem:
    """Return the linear system of a simulation at a time.

    States are independent coordinates, their velocities, and states of circuits and blocks; integrals of energy are
    none. All matrices are exact derivatives of the equations.

    Parameters
    ----------
    simulation
        A simulation by `double-step`; it is run to the time.
    at
        Time in s.
    inputs, outputs
        Patterns such as `valve.*`; all inputs that nothing but signals drives, and all outputs, by default. Other
        coordinates, velocities, accelerations and states can be outputs too; reactions and integrals of energy cannot.

    Raises
    ------
    InputError
        When a pattern means nothing, the time is before the start, an input prescribes a motion, or a line has a delay.
    SimulationError
        When the run to the time fails.
    """
    return _linearized(simulation, at, inputs, outputs, ())


def modal_analysis(
    simulation: Simulation, at: float = 0.0, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> ModalAnalysis:
    """Return the linear system of a simulation with mode shapes; parameters as for `linearize`."""
    given = simulation.functions.system
    drawn = [each.name for each in given.coordinates]
    drawn += [each.name for each in given.outputs if each.unit == "Pa"]
    whole = _linearized(simulation, at, inputs, outputs, drawn)
    driving = [each.name for each in whole.inputs]
    count = len(whole.outputs) - len(drawn)
    return ModalAnalysis(
        whole.chosen(driving, [each.name for each in whole.outputs[:count]]),
        whole.chosen(driving, drawn),
        simulation.machine_as_run(),
    )


def _linearized(
    simulation: Simulation, at: float, inputs: Sequence[str], outputs: Sequence[str], more: Sequence[str]
) -> LinearSystem:
    """Return the linear system with outputs that match patterns, followed by further ones by name."""
    if not (np.isfinite(at) and at >= 0.0):
        raise InputError(f"a model is linearized at a time of 0 s or later; {at:g} s is none")
    system = simulation.functions.system
    if delayed := [each.owner for each in system.samplings if each.delays]:
        raise InputError(
            f"{simulation.name}: {delayed[0]} has a delay, which no linear system with finitely many states has; "
            "take a line with inertia (type line) between hoses, several of them for its higher tones"
        )
    driving = chosen_places(inputs, system.inputs, "input", simulation)
    prescribing = rated_names(system.inputs)
    exactly = {inputs} if isinstance(inputs, str) else set(inputs)
    if named := sorted(exactly & prescribing):
        raise InputError(f"'{named[0]}' prescribes a motion, and is no input of a linear system; leave it out")
    driving = [each for each in driving if system.inputs[each].name not in prescribing]
    computed = [*system.outputs, *system.coordinates, *system.velocities, *system.accelerations, *system.states]
    rows = chosen_places(outputs, computed, "output", simulation) if outputs else _usual(simulation, computed)
    if more:
        rows += chosen_places(more, computed, "output", simulation)
    simulation.initialize()
    if at > 0.0:
        simulation.step(0.0, at)
    with simulation.functions.at_few_points():
        return _Point(simulation, driving, computed, rows).system()


def _usual(simulation: Simulation, computed: Sequence[Variable]) -> list[int]:
    """Return the indices of a simulation's outputs among the computed variables."""
    names = [each.name for each in simulation.variables if each.causality is Causality.OUTPUT]
    places = {each.name: place for place, each in enumerate(computed)}
    return [places[name] for name in names if name in places]


def chosen_places(
    patterns: Sequence[str], variables: Sequence[Variable], kind: str, simulation: Simulation
) -> list[int]:
    """Return the indices of the variables that match patterns, in order; all without a pattern.

    Patterns match a variable's name, and `system.variable`.
    """
    names = [each.name for each in variables]
    qualified = simulation.exposed.qualified
    called = {name: tuple(dict.fromkeys((name, qualified.get(name, name)))) for name in names}
    found: dict[int, None] = {}
    given = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for pattern in given:
        places = [place for place, name in enumerate(names) if means(pattern, called[name])]
        if not places:
            system = simulation.functions.system
            driven = system.connected if isinstance(system, CoupledSystem) else ()
            if kind == "input" and any(means(pattern, (each, each.partition(".")[2])) for each in driven):
                raise InputError(f"'{pattern}' is driven by a connection; leave that out of the model for an input")
            recorded = (each.name for each in simulation.continuous if each.causality is not Causality.INPUT)
            if kind == "output" and any(means(pattern, (each, qualified.get(each, each))) for each in recorded):
                raise InputError(f"'{pattern}' is recorded by runs, but not differentiated; take differences of runs")
            raise InputError(f"there is no {kind} '{pattern}'; {nearest(pattern, names, called.__getitem__)}")
        found |= dict.fromkeys(places)
    return list(found) if given else list(range(len(names)))


class _Point:
    """The linearization point of a simulation.

    Parameters
    ----------
    simulation
        Where it is.
    driving
        Places of the inputs of the linear system.
    computed
        Outputs, coordinates, velocities, accelerations and states.
    rows
        Places of the outputs of the linear system among these.
    """

    def __init__(
        self, simulation: Simulation, driving: Sequence[int], computed: Sequence[Variable], rows: Sequence[int]
    ) -> None:
        run_loop, formulation = simulation.run_loop, simulation.formulation
        self._simulation, self._driving = simulation, driving
        self._computed, self._rows = computed, list(rows)
        self._functions = simulation.functions
        assert isinstance(formulation, DoubleStep)
        self._change = formulation.equations.change
        self._form = formulation.explicit_form(run_loop.present)
        self._inputs = run_loop.effective.copy()
        self._time = run_loop.time
        assert run_loop.present.partition is not None
        self._independent = list(run_loop.present.partition.independent)

    def system(self) -> LinearSystem:
        """Return the linear system."""
        form, system = self._form, self._functions.system
        size = len(form.start) - len(system.integrals)
        values = form.start[:size]
        rates = form.rates(form.start, self._inputs)
        a = np.zeros((size, size))
        a[: form.chained, form.chained : 2 * form.chained] = np.eye(form.chained)
        a[form.chained :] = form.jacobian()[: size - form.chained]
        slopes = np.eye(len(self._inputs))
        b = np.array([form.drift(slopes[each])[:size] for each in self._driving]).reshape(len(self._driving), size).T
        free = form.chained
        none = np.zeros((size, len(self._driving)))
        c = self._along(np.eye(size), a[free : 2 * free], np.zeros((len(self._inputs), size)))
        d = self._along(none, b[free : 2 * free], slopes[:, list(self._driving)])
        scale = np.maximum(np.abs(values), self._simulation.formulation.explicit_scale[:size])
        given = [system.inputs[each] for each in self._driving]
        states, input_scale = self._states(), self._input_scale()
        everything = np.abs(np.block([[a, b], [c, d]])) * np.concatenate([scale, input_scale])
        read = [self._computed[each] for each in self._rows]
        ranges = np.max(everything, axis=1, initial=0.0)
        return LinearSystem(
            name=self._simulation.name,
            time=self._time,
            a=a,
            b=b,
            c=c,
            d=d,
            states=tuple(map(_signal, states, values)),
            inputs=tuple(map(_signal, given, self._inputs[list(self._driving)])),
            outputs=tuple(map(_signal, read, self._outputs(form.start, self._inputs))),
            rates=rates[:size].copy(),
            held=tuple(each.name for each in system.discrete),
            kinks=(
                *self._kinks(states, scale, self._moved_state, ranges),
                *self._kinks(given, input_scale, self._moved_input, ranges),
            ),
        )

    def _states(self) -> list[Variable]:
        """Return the variables of the states."""
        system = self._functions.system
        moving = [each[place] for each in (system.coordinates, system.velocities) for place in self._independent]
        return [*moving, *system.states]

    def _kinks(
        self,
        variables: Sequence[Variable],
        magnitudes: Floats,
        moved: Callable[[int, float], tuple[Floats, Floats]],
        ranges: Floats,
    ) -> Iterator[str]:
        """Yield the names of states or inputs along which rates or outputs have a kink.

        Parameters
        ----------
        variables, magnitudes
            The states or inputs, and how large they are.
        moved
            Gives y and the inputs at a distance along one of them.
        ranges
            How much rates and outputs change with all states and inputs, by the magnitudes of these.
        """
        for place, (each, magnitude) in enumerate(zip(variables, magnitudes, strict=True)):
            if has_kink(partial(self._everything, moved, place), float(magnitude), ranges):
                yield each.name

    def _everything(self, moved: Callable[[int, float], tuple[Floats, Floats]], place: int, distance: float) -> Floats:
        """Return ẋ and the outputs at a distance along a state or an input."""
        state = self._form.state_at(*(given := moved(place, distance)))
        independent = self._independent
        rates = state.velocities[independent], state.accelerations[independent], state.rates
        return np.concatenate([*rates, self._outputs_of(state, given[1])])

    def _moved_state(self, place: int, distance: float) -> tuple[Floats, Floats]:
        values = self._form.start.copy()
        values[place] += distance
        return values, self._inputs

    def _moved_input(self, place: int, distance: float) -> tuple[Floats, Floats]:
        inputs = self._inputs.copy()
        inputs[self._driving[place]] += distance
        return self._form.start, inputs

    def _input_scale(self) -> Floats:
        """Return the magnitudes of the inputs, at least their nominal values."""
        nominal = [self._functions.system.inputs[each].nominal or 1.0 for each in self._driving]
        return np.maximum(np.abs(self._inputs[list(self._driving)]), nominal)

    def _along(self, states: Floats, accelerations: Floats, inputs: Floats) -> Floats:
        """Return the changes of the outputs along directions, one column each, shape (outputs, directions).

        Parameters
        ----------
        states
            Changes of the states, shape (states, directions).
        accelerations
            Changes of the accelerations of the independent coordinates that follow, shape (free, directions).
        inputs
            Changes of all inputs, shape (inputs, directions).
        """
        form, functions, free = self._form, self._functions, self._form.chained
        form.rates(form.start, self._inputs)
        columns = []
        for state, acceleration, given in zip(states.T, accelerations.T, inputs.T, strict=True):
            parts = {"coordinates": state[:free], "velocities": state[free : 2 * free], "accelerations": acceleration}
            parts |= {"states": state[2 * free :], "integrals": np.zeros(len(functions.integrals)), "inputs": given}
            for name, values in parts.items():
                functions.write(f"d_{name}", values)
            columns.append(np.concatenate([*(np.ravel(each) for each in self._change()), state[2 * free :]]))
        return np.array(columns).reshape(len(columns), len(self._computed)).T[self._rows]

    def _outputs(self, values: Floats, inputs: Floats) -> Floats:
        return self._outputs_of(self._form.state_at(values, inputs), inputs)

    def _outputs_of(self, state: State, inputs: Floats) -> Floats:
        self._simulation.formulation.load(state)
        self._functions.inputs[:] = inputs
        parts = [self._functions.outputs()[0], state.coordinates, state.velocities, state.accelerations, state.states]
        return np.concatenate([np.ravel(each) for each in parts])[self._rows]


def _signal(variable: Variable, value: float) -> OperatingValue:
    return OperatingValue(variable.name, variable.unit, float(value))
