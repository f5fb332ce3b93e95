"""Sensitivities and gradients of runs of Rosenbrock methods: of the accepted steps, and as the solution has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from differentiated_cases import CASES
from oscillator_in_closed_form import DAMPING, FORCES, JUMPS, MASS, SPEED, START, STIFFNESS, motion, oscillator
from scipy.linalg import expm

from hydraulics import Circuit, Oil, PressureSource, Tank, Throttle, VariableOrifice, Volume
from mbsfmu import (
    CoupledModel,
    InputError,
    JointSpringDamper,
    LinearSignal,
    Mechanism,
    Prismatic,
    RigidBody,
    SimulationError,
)
from mbsfmu.analysis.step_equations import RosenbrockStepEquations
from mbsfmu.integration.explicit import CountedRates
from mbsfmu.integration.rosenbrock import Linearization, Rosenbrock, _Machine
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.rosenbrock import find_end

_WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0
MOTOR = "*motor.force"


def options(tolerance: float, solver: str = "rodas5p") -> Any:
    """Return options of a run."""
    return {"solver": solver, "relative_tolerance": tolerance, "absolute_tolerance": tolerance}


def step_ends(simulation: Simulation, stop: float) -> list[float]:
    """Return the ends of the steps that a run accepts."""
    simulation.solver.step_ends = ends = []
    simulation.run(stop)
    simulation.solver.step_ends = None
    return ends


def in_steps(simulation: Simulation, ends: list[float], outputs: list[str]) -> list[float]:
    """Return outputs at the end of a run whose steps have ends in s as given, whatever their error."""
    simulation.initialize()
    run_loop, solver, time, same = simulation.run_loop, simulation.solver, 0.0, 1e-9
    assert isinstance(solver, Rosenbrock)
    machine = _Machine(solver)
    for end in ends:
        run_loop.passed = time + same
        run_loop.refresh()
        inputs = run_loop.inputs.over(run_loop.passed)
        flow = CountedRates(simulation.formulation.explicit_form(run_loop.present), inputs)
        begin = Linearization(flow, time, inputs.slopes(time))
        attempt = machine.begin(begin, [])
        attempt.step = end - time
        assert find_end(machine, attempt)
        run_loop.arrive(flow.accept(end, np.array(attempt.end), end - time), end, inputs, same)
        time = end
    return [float(simulation.get(each)) for each in outputs]


@pytest.mark.parametrize("case", ["valve", "tree", "redundant loop", "prescribed motion"])
def test_derivatives_are_those_of_the_accepted_steps(case: str) -> None:
    """Differences of fourth order of runs with the same steps, made by the solver in Python; and the adjoint."""
    made, parameters, outputs, stop = CASES[case]
    model, chosen = made(), options(1e-5)
    found = model.sensitivities(list(parameters), outputs, stop=stop, **chosen)
    simulation = model.simulation(compiled=False, **chosen)
    ends = step_ends(simulation, stop)
    for column, (name, share) in enumerate(parameters.items()):
        simulation.reset()
        value, there = simulation.get(name), []
        for place in (-2.0, -1.0, 1.0, 2.0):
            simulation.reset()
            simulation.set(name, value * (1.0 + place * share))
            there.append(in_steps(simulation, ends, outputs))
        expected = _WEIGHTS @ np.array(there) / (share * value)
        np.testing.assert_allclose(found.derivatives[-1, :, column], expected, rtol=1e-8, err_msg=name)
    of = outputs[0]
    gradient = model.gradient(of, list(parameters), stop=stop, **chosen)
    np.testing.assert_allclose(list(gradient.parameters.values()), found.derivatives[-1, 0], rtol=1e-10)


def exact(times: Any, mass: complex, start: complex) -> Any:
    """Return displacements and velocities of the oscillator by the matrix exponential, as complex numbers."""
    matrix, state, begin, force, found = (
        np.array([[0.0, 1.0], [-STIFFNESS / mass, -DAMPING / mass]]),
        None,
        0.0,
        0.0,
        [],
    )
    state, jumps = np.array([start, SPEED], dtype=complex), list(zip(JUMPS, FORCES, strict=True))
    for time in times:
        while jumps and jumps[0][0] <= time + 1e-12:
            jump, value = jumps.pop(0)
            rest = np.array([force / STIFFNESS, 0.0])
            state, begin, force = rest + expm(matrix * (jump - begin)) @ (state - rest), jump, value
        rest = np.array([force / STIFFNESS, 0.0])
        found.append(rest + expm(matrix * (time - begin)) @ (state - rest))
    return np.array(found)


@pytest.mark.parametrize("solver", ["rodas5p", "rodas4"])
def test_an_oscillator_in_closed_form(solver: str) -> None:
    """At all output times, inside steps and at jumps of the force; by the mass and by the start, below tolerances."""
    names, outputs = ["slider.mass", "slider.displacement_start"], ["*slider.displacement", "*slider.velocity"]
    worst = []
    for tolerance in (1e-5, 1e-8):
        found = oscillator().sensitivities(names, outputs, stop=1.2, step=0.02, **options(tolerance, solver))
        np.testing.assert_allclose(found["slider.displacement"], motion(found.time)[0], atol=10 * tolerance)
        by_mass = exact(found.time, MASS + 1e-30j, START).imag / 1e-30
        by_start = exact(found.time, MASS, START + 1e-30j).imag / 1e-30
        off = found.derivatives - np.stack([by_mass, by_start], axis=2)
        worst.append(np.abs(off).max())
    assert worst[0] < 1e-4
    assert worst[1] < 2e-7
    assert np.all(np.isin(np.round(np.arange(61) * 0.02, 9), np.round(found.time, 9)))


def test_the_gradient_by_samples_of_an_input() -> None:
    """The motion is linear in the force, which bends at its samples: two runs give the derivative by one of them."""
    bends, values, unit = (0.0, 0.13, 0.41, 0.8), np.array([5.0, -20.0, 12.0, 3.0]), np.eye(4)[1]

    def driven(moved: float) -> CoupledModel:
        signal = LinearSignal(times=bends, values=tuple((values + moved * unit).tolist()))
        return oscillator(driven=False).model_copy(update={"signals": {"mechanism.motor.force": signal}})

    runs = [driven(moved).simulation(**options(1e-11)).run(0.6) for moved in (0.0, 1.0)]
    ends = [(run["slider.displacement"][-1], np.trapezoid(run["slider.acceleration"], run.time)) for run in runs]
    for of, before, after in zip(("slider.displacement", "integral(slider.acceleration)"), *ends, strict=True):
        found = driven(0.0).gradient(of, ["slider.mass"], [MOTOR], stop=0.6, **options(1e-8))
        (by_samples,) = found.inputs.values()
        assert np.interp(found.time, bends, unit) @ by_samples == pytest.approx(after - before, rel=1e-5)


def test_an_orifice_that_opens() -> None:
    """Its flow is not linear in opening and pressure: by a sample of the opening and by the area; of accepted steps."""
    gate = VariableOrifice(name="gate", inlet="P", outlet="A", area=1e-6, discharge_coefficient=0.65)
    pump, tank = PressureSource(name="pump", node="P", pressure=7e6), Tank(name="tank", node="T", pressure=1e5)
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(
            *(pump, gate, Volume(name="near", node="A", volume=1e-4), tank),
            Throttle(name="out", inlet="A", outlet="T", orifice_diameter=8e-4, discharge_coefficient=0.7),
        ),
        initial_pressures={"A": 1e6},
    )
    bends, values, unit, places = (0.0, 0.1), np.array([0.2, 0.9]), np.array([0.0, 1.0]), (-2.0, -1.0, 1.0, 2.0)
    of, area, chosen = "A.pressure", "gate.area", options(1e-4)

    def driven(moved: float) -> CoupledModel:
        signal = LinearSignal(times=bends, values=tuple((values + moved * unit).tolist()))
        return CoupledModel(
            name="fed", systems={"circuit": circuit}, signals={"circuit.gate.command": signal}, outputs=(of,)
        )

    ends = step_ends(driven(0.0).simulation(**chosen), 0.05)
    assert len(ends) > 3
    found = driven(0.0).gradient(of, [area], ["gate.command"], stop=0.05, **chosen)
    (by_samples,) = found.inputs.values()
    there = [in_steps(driven(1e-3 * each).simulation(compiled=False, **chosen), ends, [of])[0] for each in places]
    expected = _WEIGHTS @ np.array(there) / 1e-3
    assert np.interp(found.time, bends, unit) @ by_samples == pytest.approx(expected, rel=1e-8)
    simulation = driven(0.0).simulation(compiled=False, **chosen)
    value, there = simulation.get(area), []
    for each in places:
        simulation.reset()
        simulation.set(area, value * (1.0 + 1e-3 * each))
        there.append(in_steps(simulation, ends, [of])[0])
    assert found.parameters[area] == pytest.approx(_WEIGHTS @ np.array(there) / (1e-3 * value), rel=1e-8)


def test_scalars_of_a_run_and_their_derivatives_by_forward_sensitivities() -> None:
    """Integrals and largest values are of what is read inside steps, as results have it."""
    made, parameters, _, stop = CASES["valve"]
    model, names = made(), list(parameters)[:2]
    chosen = options(1e-6)
    forward = model.sensitivities(names, ["boom.angular_velocity", "cylinder.force"], stop=stop, **chosen)
    run = model.simulation(**chosen).run(stop)
    np.testing.assert_allclose(
        np.interp(run.time, forward.time, forward["cylinder.force"]), run["cylinder.force"], rtol=1e-7
    )
    widths = np.diff(forward.time)
    for row, (of, weight) in enumerate((("max(boom.angular_velocity)", None), ("integral(cylinder.force)", widths))):
        gradient = model.gradient(of, names, stop=stop, **chosen)
        values, slopes = forward.values[:, row], forward.derivatives[:, row]
        place = int(np.argmax(values))
        # Outputs do not jump here; the command bends, and nothing else.
        expected = slopes[place] if weight is None else 0.5 * weight @ (slopes[1:] + slopes[:-1])
        assert gradient.value == pytest.approx(values[place] if weight is None else np.trapezoid(values, forward.time))
        np.testing.assert_allclose(list(gradient.parameters.values()), expected, rtol=1e-8)


@pytest.mark.parametrize("compiled", [True, False])
def test_steps_tell_where_they_end(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At jumps and at the stop, and as many as are counted; a run with more than there is room for is made again."""
    monkeypatch.setattr("mbsfmu.native.compiled._ROOM", 3)
    simulation = oscillator().simulation(compiled=compiled, **options(1e-6))
    ends = step_ends(simulation, 1.2)
    assert len(ends) == simulation.statistics.steps > 3
    assert np.all(np.diff([0.0, *ends]) > 0.0)
    assert ends[-1] == 1.2
    assert np.abs(np.subtract.outer(ends, JUMPS)).min(axis=0).max() < 1e-12


def test_fits_and_optimizations_take_these_steps() -> None:
    model = oscillator(driven=False)
    run = model.simulation(**options(1e-9)).run(1.0, output_step=0.02)
    log = {"time": run.time, "slider.displacement": run["slider.displacement"]}
    changed = model.with_values({"slider.mass": 1.3 * MASS})
    found = changed.fit(log, {"slider.mass": (0.5, 10.0)}, step=0.02, **options(1e-7))
    assert found["slider.mass"] == pytest.approx(MASS, rel=1e-4)
    best = model.optimize("end(slider.displacement)", {"slider.mass": (1.8, 2.6)}, stop=0.4, step=0.02, **options(1e-7))
    assert best["slider.mass"] == pytest.approx(1.8, rel=1e-6)


@pytest.mark.parametrize(
    ("chosen", "match"),
    [
        ({"solver": "rk4"}, r"steps of the solvers trapezoidal, rodas4, .* not of 'rk4'"),
        ({"solver": "rodas5p", "formulation": "penalty"}, "leave out the formulation 'penalty'"),
    ],
)
def test_what_is_not_differentiated_is_refused(chosen: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        oscillator().sensitivities(["slider.mass"], stop=0.1, **chosen)


def test_derivatives_that_are_no_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where an equation has no second derivative: it spoils all that follows."""
    made = RosenbrockStepEquations.steps
    spoil = lambda *given: replace(made(*given), forward=np.full_like(made(*given).forward, np.nan))  # noqa: E731
    monkeypatch.setattr(RosenbrockStepEquations, "steps", spoil)
    with pytest.raises(SimulationError, match="the derivatives of the run are no numbers"):
        oscillator().sensitivities(["slider.mass"], stop=0.1, **options(1e-5))
    with pytest.raises(SimulationError, match="the derivatives of the run are no numbers"):
        oscillator().gradient("end(slider.displacement)", ["slider.mass"], stop=0.1, **options(1e-5))


def hanging(start: float) -> CoupledModel:
    """Return a mass of 10 kg on a spring of 4 kN/m and a damper, which starts above where it would be at rest."""
    mechanism = Mechanism(
        ground={"o": (0.0, 0.0, 0.0)},
        bodies=[RigidBody(name="b", mass=10.0, inertia=(1.0, 1.0, 1.0))],
        joints=[
            Prismatic(
                name="j", parent="ground.o", child="b.origin", axis=(0.0, 1.0, 0.0),
                displacement=start - 10.0 * 9.81 / 4000.0,
            )
        ],
        forces=[JointSpringDamper(name="s", joint="j", stiffness=4000.0, damping=8.0)],
    )  # fmt: skip
    return CoupledModel(name="hanging", systems={"mechanism": mechanism}, stop_time=1.0)


def hung(time: float, mass: float, start: float) -> float:
    """Return the displacement of such a mass in closed form."""
    rest, decay = -mass * 9.81 / 4000.0, 4.0 / mass
    speed = np.sqrt(4000.0 / mass - decay**2)
    moved = np.cos(speed * time) + decay / speed * np.sin(speed * time)
    return float(rest + (start - 10.0 * 9.81 / 4000.0 - rest) * np.exp(-decay * time) * moved)


@pytest.mark.parametrize("start", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(
    ("forward", "step"), [(True, 1e-3), (True, 1.0), (False, 1e-3)], ids=["inside", "end", "adjoint"]
)
def test_steps_too_long_for_derivatives_are_told(
    start: float, forward: bool, step: float, caplog: pytest.LogCaptureFixture
) -> None:
    """A run at rest has a step of a second, whatever the tolerance; what is not told is right, and the other way."""
    exact = (hung(1.0, 10.0 + 1e-4, start) - hung(1.0, 10.0 - 1e-4, start)) / 2e-4
    model, given = hanging(start), {"solver": "rodas5p", "relative_tolerance": 1e-6, "step": step}
    if forward:
        found = model.sensitivities(["b.mass"], ["b.displacement"], stop=1.0, **given)
        derivative = found.derivative("b.displacement", "b.mass")[-1]
    else:
        derivative = model.gradient("end(b.displacement)", ["b.mass"], stop=1.0, **given).parameters["b.mass"]
    told = "displacement" in caplog.text and "by b.mass is uncertain by" in caplog.text
    assert told == (start < 1e-4)
    assert told == (abs(derivative / exact - 1.0) > 1e-2)
    assert told or derivative == pytest.approx(exact, rel=1e-3)
