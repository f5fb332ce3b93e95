"""Machines that go on step by step: single runs of the scalar loop, closed forms, starts anew, machines that fail."""

from __future__ import annotations

import _thread
import threading
import time as clock
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from driven_crank import CRANK, ROD, SPEED, START, driven_crank
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from sampled_control import controlled
from scipy.linalg import expm

from mbsfmu import (
    EnsembleSimulation,
    InputError,
    LinearSignal,
    PolynomialSignal,
    SineSignal,
    StepSignal,
)
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.models import built_in
from mbsfmu.tracing.workspace import Floats

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
STEP: dict[str, Any] = {"step": 1e-3}
SINGLE: dict[str, Any] = {**STEP, "formulation": "double-step", "solver": "trapezoidal"}
INTERVAL, OUTPUTS = 0.02, ("boom.angle", "cylinder.force", "V?.pressure")
MASSES = np.linspace(120.0, 300.0, 5)


def commands() -> Floats:
    """Valve commands of five machines in ten intervals."""
    return 10.0 * np.random.default_rng(3).uniform(-1.0, 1.0, (10, len(MASSES)))


def driven(machines: EnsembleSimulation, values: Floats, name: str) -> Floats:
    """Hold an input in turn at values, shape (intervals, n); return the outputs behind each."""
    rows = []
    for number, held in enumerate(values, start=1):
        machines.advance(number * INTERVAL, {name: held})
        rows.append(machines.values_by_column)
    return np.array(rows)


def test_held_inputs_are_step_signals_to_the_last_bit() -> None:
    """A run has one more row at the start, and reads outputs behind the jump: what no jump changes is compared."""
    values, model = commands(), built_in("four-bar")
    times = tuple((INTERVAL * np.arange(len(values))).tolist())
    signals = [StepSignal(times=times, values=tuple(held.tolist())) for held in values.T]
    signalled = model.ensemble({"boom.mass": MASSES}, inputs={"valve.command": signals}, **STEP)
    run = signalled.run(len(values) * INTERVAL, output_step=INTERVAL, outputs=OUTPUTS)
    with model.ensemble({"boom.mass": MASSES}, **STEP).start(OUTPUTS) as machines:
        found = driven(machines, values, "valve.command")
        assert machines.names == run.names
        np.testing.assert_array_equal(np.swapaxes(found, 0, 1), run.values_by_column[:, 1:])
        np.testing.assert_array_equal(machines.steps, run.steps)
        np.testing.assert_array_equal(machines.time, np.full(5, len(values) * INTERVAL))
        np.testing.assert_array_equal(machines["boom.angle"], run["boom.angle"][:, -1])


def test_machines_are_single_simulations() -> None:
    """The scalar loop, an input of which is set between its steps."""
    values, model = commands(), built_in("four-bar")
    found = driven(model.ensemble({"boom.mass": MASSES}, **STEP).start(OUTPUTS), values, "valve.command")
    for machine in (0, 4):
        simulation = model.simulation(**SINGLE)
        simulation.set("boom.mass", MASSES[machine])
        simulation.initialize()
        expected = []
        for number, held in enumerate(values[:, machine]):
            simulation.set("valve.command", held)
            simulation.step(number * INTERVAL, INTERVAL)
            expected.append([simulation.get(name) for name in ("boom.angle", "cylinder.force")])
        for column, of_single in enumerate(np.array(expected).T):
            np.testing.assert_allclose(found[:, machine, column], of_single, rtol=0.0, atol=1e-7 * np.ptp(of_single))


def motion(force: float, start: Sequence[float], time: float) -> Floats:
    """Displacement and velocity of the oscillator after a time under a constant force, by the matrix exponential."""
    matrix = np.array([[0.0, 1.0, 0.0], [-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS], [0.0, 0.0, 0.0]])
    return (expm(matrix * time) @ [*start, force])[:2]


def test_each_machine_has_a_time_of_its_own_and_starts_again_where_it_is_told() -> None:
    ensemble = oscillator(driven=False).ensemble(
        starts={"slider.displacement": [0.1, 0.2, -0.3], "slider.velocity": 0.0}, **STEP
    )
    machines = ensemble.start(["slider.displacement", "slider.velocity"], workers=1)
    np.testing.assert_array_equal(machines["slider.displacement"], [0.1, 0.2, -0.3])
    machines.advance([0.5, 0.3, 0.4], {"motor.force": [10.0, 0.0, -20.0]})
    first = [motion(10.0, (0.1, 0.0), 0.5), motion(0.0, (0.2, 0.0), 0.3), motion(-20.0, (-0.3, 0.0), 0.4)]
    np.testing.assert_allclose(machines.values_by_column, first, atol=2e-5)
    np.testing.assert_array_equal(machines.time, [0.5, 0.3, 0.4])
    before = machines.values_by_column
    machines.reset([1], starts={"slider.displacement": 0.4})
    np.testing.assert_array_equal(machines.values_by_column, [before[0], [0.4, 0.0], before[2]])
    np.testing.assert_array_equal(machines.time, [0.5, 0.0, 0.4])
    np.testing.assert_array_equal(machines.parameters["slider.displacement_start"], [0.1, 0.4, -0.3])
    assert machines.steps.tolist() == [500, 0, 400]
    machines.advance(
        [0.5, 0.6, 0.9]
    )  # the first stays, the others go on: the second without the force of the first start
    second = [first[0], motion(0.0, (0.4, 0.0), 0.6), motion(-20.0, first[2], 0.5)]
    np.testing.assert_allclose(machines.values_by_column, second, atol=4e-5)
    machines.advance(1.0, {"motor.force": 5.0})
    third = [motion(5.0, state, time) for state, time in zip(second, (0.5, 0.4, 0.1), strict=True)]
    np.testing.assert_allclose(machines.values_by_column, third, atol=6e-5)
    machines.reset(np.array([True, False, True]), {"slider.mass": [2.0 * MASS, MASS]})
    machines.advance([0.2, 1.0, 0.2])
    slower = machines["slider.displacement"][0]
    assert machines["slider.displacement"][2] == pytest.approx(motion(0.0, (-0.3, 0.0), 0.2)[0], abs=2e-5)
    assert abs(slower - motion(0.0, (0.1, 0.0), 0.2)[0]) > 1e-3


def test_an_input_follows_its_signal_until_it_is_set_and_again_from_a_start() -> None:
    signal = LinearSignal(times=(0.0, 1.0), values=(0.0, 100.0))
    model = oscillator(driven=False).model_copy(update={"signals": {"mechanism.motor.force": signal}})
    machines = model.ensemble(starts={"slider.displacement": [0.0, 0.0], "slider.velocity": 0.0}, **STEP).start(
        ["slider.displacement", "motor.force"]
    )
    machines.advance(0.25)
    np.testing.assert_array_equal(machines["motor.force"], [25.0, 25.0])
    machines.advance(0.5, {"motor.force": [1.0, 2.0]})
    np.testing.assert_array_equal(machines["motor.force"], [1.0, 2.0])
    machines.advance(0.75)
    np.testing.assert_array_equal(machines["motor.force"], [1.0, 2.0])
    machines.reset([1])
    machines.advance([0.8, 0.0], {"motor.force": [3.0, 9.0]})  # the second stays, and what is set is not for it
    machines.advance([0.8, 0.5])
    np.testing.assert_array_equal(machines["motor.force"], [3.0, 50.0])


def test_sampled_controllers_see_what_was_set_at_their_next_instant() -> None:
    """Single simulations of the scalar loop, whose set-point is changed between instants and at one."""
    model, gains = controlled(), [5.0, 40.0, 90.0]
    machines = model.ensemble({"controller.proportional": gains}, **STEP).start(["slider.displacement"])
    setpoints = {0.05: 0.1, 0.1: -0.2, 0.1237: 0.3, 0.3: 0.0}
    found = []
    for until, value in setpoints.items():
        machines.advance(until, {"controller.setpoint": value})
        found.append(machines["slider.displacement"])
    for machine, gain in enumerate(gains):
        simulation = model.simulation(**SINGLE)
        simulation.set("controller.proportional", gain)
        begin = 0.0
        simulation.initialize()
        for row, (until, value) in enumerate(setpoints.items()):
            simulation.set("controller.setpoint", value)
            simulation.step(begin, until - begin)
            assert found[row][machine] == pytest.approx(simulation.get("slider.displacement"), abs=1e-9)
            begin = until


def cranks(lengths: Sequence[float]) -> EnsembleSimulation:
    """Slider-cranks whose cranks are turned at a speed; one that is longer than the rod locks."""
    signal = PolynomialSignal(times=(0.0,), coefficients=((START, SPEED),))
    ensemble = driven_crank().ensemble({"crank.length": lengths}, inputs={"motor.position": signal}, **STEP)
    return ensemble.start(["slider.displacement"], workers=1)


def slide(length: float, time: float) -> float:
    """Displacement of the slider in closed form."""
    angle = START + SPEED * time
    return float(length * np.cos(angle) + np.sqrt(ROD**2 - (length * np.sin(angle)) ** 2))


def test_machines_that_fail_leave_the_others_alone_and_can_start_again() -> None:
    machines = cranks([CRANK, 1.2 * ROD, CRANK, 1.2 * ROD])
    for time in (0.05, 0.1, 0.15):
        machines.advance(time)
        others = machines["slider.displacement"][[0, 2]]
        np.testing.assert_allclose(others, slide(CRANK, time), atol=1e-9)
        assert machines.running.tolist() == [True, time < 0.08, True, time < 0.08]
    assert list(machines.failures) == [1, 3]
    assert machines.failures[1].startswith(f"machine 1 (crank.length = {1.2 * ROD:g} m): the step at t = 0.08")
    assert np.isnan(machines["slider.displacement"][1])
    assert np.isnan(machines.time[1])
    machines.reset([1], {"crank.length": CRANK})
    assert list(machines.failures) == [3]
    machines.advance([0.2, 0.05, 0.2, 0.05])
    expected = [slide(CRANK, time) for time in (0.2, 0.05, 0.2)]
    np.testing.assert_allclose(machines["slider.displacement"][:3], expected, atol=1e-9)
    assert np.isnan(machines["slider.displacement"][3])
    assert machines.running.tolist() == [True, True, True, False]


def test_a_machine_that_failed_halts_at_its_events_again() -> None:
    """The crank turns faster and faster from an instant on, to which a machine that failed later comes once more."""
    bend, faster = 0.05, 100.0
    pieces = ((START, SPEED, 0.0), (START + SPEED * bend, SPEED, 0.5 * faster))
    signal = PolynomialSignal(times=(0.0, bend), coefficients=pieces)
    lengths = [CRANK, 1.2 * ROD]
    ensemble = driven_crank().ensemble({"crank.length": lengths}, inputs={"motor.position": signal}, **STEP)
    machines = ensemble.start(["crank.angle"])
    machines.advance(0.2)
    assert machines.running.tolist() == [True, False]
    machines.reset([1], {"crank.length": CRANK})
    machines.advance([0.2, 0.1])
    expected = [START + SPEED * time + 0.5 * faster * (time - bend) ** 2 for time in (0.2, 0.1)]
    np.testing.assert_allclose(machines["crank.angle"], expected, atol=1e-9)


def test_warnings_are_those_since_the_last_start() -> None:
    """A start value that does not close the loop is told at each start, and of one that does nothing is."""
    given = driven_crank(None).ensemble({"slider.displacement_start": [1.2, 1.2]}, **STEP)
    machines = given.start(["crank.angle"])
    assert all(len(machines.warnings[machine]) == 1 for machine in (0, 1))
    told = machines.warnings[0][0]
    assert told.startswith("machine 0 (slider.displacement_start = 1.2 m): driven-crank: ")
    assert "the start values do not close the loops" in told
    machines.reset([0])
    assert machines.warnings[0] == (told,)


def test_a_start_that_is_refused_fails_alone() -> None:
    machines = built_in("four-bar").ensemble({"cylinder.rod_diameter": [0.04, 0.05]}, **STEP).start(["boom.angle"])
    assert machines.failures == {}
    machines.reset([1], {"cylinder.rod_diameter": 0.09})
    told = "machine 1 (cylinder.rod_diameter = 0.09 m): cylinder.piston_diameter is 0.08 m; it must be greater than"
    assert machines.failures[1].startswith(told)
    machines.advance(0.01)
    assert np.isnan(machines["boom.angle"]).tolist() == [False, True]


def test_prescribed_motions_run_on_by_their_rates_and_may_not_jump() -> None:
    """The angle runs on from what was set by the velocity, and this by the acceleration."""
    given = {"motor.position": START, "motor.velocity": [SPEED, SPEED, SPEED], "motor.acceleration": 0.0}
    machines = driven_crank(None).ensemble(inputs=given, **STEP).start(["slider.displacement", "crank.angle"])
    machines.advance(0.1)
    np.testing.assert_allclose(machines["slider.displacement"], slide(CRANK, 0.1), atol=1e-9)
    machines.advance(0.2, {"motor.acceleration": [0.0, 20.0, -10.0]})
    expected = START + SPEED * 0.2 + 0.5 * np.array([0.0, 20.0, -10.0]) * 0.1**2
    np.testing.assert_allclose(machines["crank.angle"], expected, atol=1e-9)
    speeds = SPEED + 0.1 * np.array([0.0, 20.0, -10.0])
    machines.advance(0.3, {"motor.acceleration": 0.0, "motor.velocity": speeds + np.array([0.0, 0.0, 3.0])})
    np.testing.assert_allclose(machines["crank.angle"][:2], (expected + 0.1 * speeds)[:2], atol=1e-9)
    assert list(machines.failures) == [2]
    assert "at t = 0.2 s the velocity of motor" in machines.failures[2]
    assert "jumps by 3 rad/s; it must go on from where it was" in machines.failures[2]


def test_threads_change_nothing_and_what_was_told_has_its_machine() -> None:
    model, speeds = built_in("four-bar"), np.linspace(0.0, 30.0, 21)
    rows, told = [], []
    for workers in (1, 3):
        machines = model.ensemble({"boom.angular_velocity_start": speeds}, **STEP).start(workers=workers)
        machines.advance(0.02, {"valve.command": 3.0})
        machines.reset([0, 20])
        machines.advance(0.05)
        rows.append(machines.values_by_column)
        told.append(machines.warnings)
    np.testing.assert_array_equal(rows[0], rows[1])
    assert told[0] == told[1]


def test_errors_are_those_of_runs() -> None:
    starts = {"slider.displacement": [0.1, 0.3], "slider.velocity": 0.0}
    ensemble = oscillator(driven=False).ensemble(starts=starts, errors=True, **STEP)
    run = ensemble.run(0.5, output_step=0.1, outputs=["slider.displacement"])
    machines = ensemble.start(["slider.displacement"])
    for number in range(1, 6):
        machines.advance(run.time[number])
    assert machines.errors == run.errors
    with pytest.raises(InputError, match="the ensemble estimates no errors; make it with errors=True"):
        _ = oscillator().ensemble(starts=starts, **STEP).start().errors


def slow() -> EnsembleSimulation:
    """Machines for wrong calls."""
    return oscillator().ensemble(starts={"slider.displacement": [0.1, 0.2], "slider.velocity": 0.0}, **STEP).start()


WRONG: list[tuple[str, tuple[Any, ...], str]] = [
    ("advance", (-0.1,), r"until = -0.1 s of machine 0 lies before its time, 0 s; it must not"),
    ("advance", ([0.1, np.nan],), r"until = nan s of machine 1 lies before its time"),
    ("advance", (np.inf,), r"until of machine 0 is not finite; it must be a time in s"),
    ("advance", ([0.1],), r"until is given for 1 machines, and there are 2"),
    ("advance", (0.1, {"motor.forc": 1.0}), r"there is no input 'motor.forc'; did you mean 'motor.force'\?"),
    ("advance", (0.1, {"motor.force": [1.0, np.nan]}), r"machine 1: motor.force = nan is refused: it must be a finite"),
    ("advance", (0.1, {"motor.force": [1.0, 2.0, 3.0]}), r"motor.force is given for 3 machines, and there are 2"),
    ("reset", ([2],), r"there is no machine 2; they are numbered from 0 to 1"),
    ("reset", ([-1],), r"there is no machine -1"),
    ("reset", ([True],), r"machines has 1 truths, and there are 2 machines"),
    ("reset", ([1], {"slider.mass": -1.0}), r"machine 1: slider.mass = -1 kg is refused"),
    ("reset", ([1], {"slider.mass": [1.0, 2.0]}), r"slider.mass is given for 2 machines, and there are 1"),
    ("reset", (None, {"slider.mas": 1.0}), r"there is no variable 'slider.mas'|there is no parameter 'slider.mas'"),
    ("reset", (None, {}, {"motor.force": 1.0}), r"motor.force has no start value that could be given"),
]


@pytest.mark.parametrize(("method", "given", "sentence"), WRONG)
def test_wrong_calls_are_refused_and_change_nothing(method: str, given: tuple[Any, ...], sentence: str) -> None:
    machines = slow()
    machines.advance(0.0)
    before = machines.values_by_column
    with pytest.raises(InputError, match=sentence):
        getattr(machines, method)(*given)
    np.testing.assert_array_equal(machines.values_by_column, before)
    machines.advance(0.1)
    assert machines.running.all()


def test_closed_machines_and_no_workers_are_refused() -> None:
    machines = slow()
    machines.close()
    machines.close()
    with pytest.raises(InputError, match="do not go on: they were closed; start them anew"):
        machines.advance(0.1)
    with pytest.raises(InputError, match="workers = 0 must be at least 1"):
        oscillator().ensemble(starts={"slider.displacement": [0.1]}, **STEP).start(workers=0)


def test_an_interruption_ends_the_machines() -> None:
    machines = slow()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    begin = clock.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        machines.advance(1e6)
    assert clock.monotonic() - begin < 30.0
    with pytest.raises(InputError, match="do not go on: somebody ended them on the way"):
        machines.advance(1e6)


def test_signals_of_the_ensemble_begin_again_with_their_machine() -> None:
    """Each machine has its own sine, which counts from the machine's own start."""
    signals = [SineSignal(amplitude=10.0, frequency=number) for number in (1, 2)]
    model = oscillator(driven=False)
    machines = model.ensemble(
        inputs={"motor.force": signals}, starts={"slider.displacement": 0.0, "slider.velocity": 0.0}, **STEP
    ).start(["motor.force"])
    machines.advance(0.3)
    machines.reset([1])
    machines.advance([0.6, 0.05])
    expected = [10.0 * np.sin(2.0 * np.pi * 0.6), 10.0 * np.sin(4.0 * np.pi * 0.05)]
    np.testing.assert_allclose(machines["motor.force"], expected, atol=1e-12)
