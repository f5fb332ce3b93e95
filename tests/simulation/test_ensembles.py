"""Many machines of one model at once: closed forms by machine, single runs, and machines that fail among others."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from driven_crank import CRANK, ROD, SPEED, START, driven_crank
from ensemble_cases import LANES, assert_bennett, assert_machine, cranks_that_choose, tumbling
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from sampled_control import controlled, discrete
from scipy.linalg import expm
from scipy.special import ellipk

from mbsfmu import (
    Beam,
    CoupledModel,
    EnsembleResult,
    InputError,
    Mechanism,
    PolynomialSignal,
    Result,
    Revolute,
    SineSignal,
    StepSignal,
)
from mbsfmu.compiling.compiler import SWITCH, has_compiler
from mbsfmu.models import built_in
from mbsfmu.tracing.workspace import Floats

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
STEP: dict[str, Any] = {"step": 1e-3}
SINGLE: dict[str, Any] = {**STEP, "formulation": "double-step", "solver": "trapezoidal"}
GRAVITY, LENGTH = 9.81, 1.3


def pendulum() -> CoupledModel:
    """A beam that hangs on a hinge; its angle is zero where it is horizontal."""
    mechanism = Mechanism(
        gravity=(0.0, -GRAVITY, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="beam", length=LENGTH, mass=2.0),),
        joints=(Revolute(name="hinge", parent="ground.O", child="beam.start"),),
    )
    return CoupledModel(name="pendulum", systems={"mechanism": mechanism})


def single(model: CoupledModel, values: Mapping[str, float], stop: float, output_step: float) -> Result:
    """Run one machine."""
    simulation = model.simulation(**SINGLE)
    for name, value in values.items():
        simulation.set(name, value)
    return simulation.run(stop, output_step=output_step)


def assert_alike(result: EnsembleResult, machine: int, run: Result, share: float = 1e-7) -> None:
    """Compare a machine with a single run."""
    assert_machine(result, machine, run, share)


def test_pendulums_swing_with_the_periods_of_their_amplitudes_and_lengths() -> None:
    """T = 4 K(sin θ/2) sqrt(2 l/3 g) of a beam that is let go at θ from hanging."""
    amplitudes, lengths = np.array([0.1, 0.7, 1.4, 2.0, 2.8]), np.array([1.3, 1.3, 0.5, 2.0, 1.0])
    ensemble = pendulum().ensemble({"beam.length": lengths}, starts={"beam.angle": amplitudes - 0.5 * np.pi}, **STEP)
    result = ensemble.run(7.0, outputs=["beam.angle", "energy.drift", "energy.potential"])
    np.testing.assert_array_equal(result.parameters["mechanism.beam.length"], lengths)
    assert result.parameter_units["mechanism.beam.length"] == "m"
    swing = result["beam.angle"] + 0.5 * np.pi
    for machine, (amplitude, length) in enumerate(zip(amplitudes, lengths, strict=True)):
        period = 4.0 * ellipk(np.sin(0.5 * amplitude) ** 2) * np.sqrt(2.0 * length / (3.0 * GRAVITY))
        crossed = np.flatnonzero(np.diff(np.sign(swing[machine])))
        rates = np.diff(swing[machine])[crossed]
        times = result.time[crossed] - swing[machine][crossed] * 1e-3 / rates
        assert len(times) >= 2
        np.testing.assert_allclose(times, period * (0.25 + 0.5 * np.arange(len(times))), rtol=1e-5)
    turned_over = np.ptp(result["energy.potential"], axis=1)
    assert np.all(np.max(np.abs(result["energy.drift"]), axis=1) < 1e-5 * turned_over)
    assert np.all(result.steps == 7000)
    assert not np.any(result.scalar_steps)


def test_steps_of_each_lane_are_those_of_the_rule() -> None:
    """δ²θ = h² (θ̈₋ + 2 θ̈ + θ̈₊) / 4 with θ̈ = -3 g cos θ / 2 l: iterations that end early leave 1e-8 rad and more."""
    lengths, step = np.array([1.3, 0.8, 2.0]), 0.05
    ensemble = pendulum().ensemble({"beam.length": lengths}, starts={"beam.angle": [-2.4, -0.9, 1.2]}, step=step)
    angle = ensemble.run(2.0, outputs=["beam.angle"])["beam.angle"].T
    change = -0.25 * step**2 * 1.5 * GRAVITY / lengths * np.cos(angle)
    sums = change[:-2] + 2.0 * change[1:-1] + change[2:]
    np.testing.assert_allclose(np.diff(angle, 2, axis=0), sums, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(angle[1] - angle[0], change[0] + change[1], rtol=0.0, atol=1e-10)


def forced(times: Floats, jumps: Sequence[float], forces: Sequence[float], start: float) -> Floats:
    """Displacement of the oscillator from rest at a start, by the matrix exponential from jump to jump."""
    matrix = np.array([[0.0, 1.0, 0.0], [-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS], [0.0, 0.0, 0.0]])
    found, state, begin = np.empty(len(times)), np.array([start, 0.0, 0.0]), 0.0
    for end, force in zip((*jumps, np.inf), (*forces, 0.0), strict=True):
        inside = (times >= begin) & (times < end)
        found[inside] = [(expm(matrix * (time - begin)) @ state)[0] for time in times[inside]]
        if end < np.inf:
            state = expm(matrix * (end - begin)) @ state
            state[2], begin = force, end
    return found


def test_events_differ_by_machine() -> None:
    jumps = [(0.1004, 0.3337), (0.25, 0.6), (0.0501, 0.0504), (0.4,)]
    forces = [(30.0, -10.0), (5.0, 0.0), (200.0, -20.0), (1.0,)]
    starts = np.array([0.3, 0.0, -0.1, 0.2])
    signals = [StepSignal(times=t, values=f, initial=0.0) for t, f in zip(jumps, forces, strict=True)]
    ensemble = oscillator().ensemble(
        inputs={"motor.force": signals}, starts={"slider.displacement": starts, "slider.velocity": 0.0}, **STEP
    )
    result = ensemble.run(1.0, output_step=0.01)
    for machine in range(4):
        expected = forced(result.time, jumps[machine], forces[machine], starts[machine])
        scale = 1e-4 * np.max(np.abs(expected))
        np.testing.assert_allclose(result["slider.displacement"][machine], expected, atol=scale, rtol=0.0)
    assert result.steps.tolist() == [1002, 1000, 1002, 1000], "steps end at events, off the grid as well"


def test_inputs_with_numbers_follow_no_signal() -> None:
    """The force has a signal in the model, whose jumps do not come where numbers are given instead."""
    forces = np.array([0.0, 12.0, -20.0])
    result = (
        oscillator()
        .ensemble(inputs={"motor.force": forces}, starts={"slider.displacement": 0.1, "slider.velocity": 0.0}, **STEP)
        .run(0.8, output_step=0.01)
    )
    for machine, force in enumerate(forces):
        expected = forced(result.time, (0.0,), (force,), 0.1)
        np.testing.assert_allclose(result["slider.displacement"][machine], expected, atol=1e-4 * max(abs(expected)))
    assert np.all(result.steps == 800), "nothing jumps on the way"


def test_sampled_controllers_have_gains_of_their_own() -> None:
    """A machine of the closed form's gains among others, whose runs are single ones."""
    model, gains = controlled(), np.array([5.0, 40.0, 90.0])
    result = model.ensemble({"controller.proportional": gains}, **STEP).run(1.0, output_step=0.01)
    expected, _ = discrete(result.time)
    np.testing.assert_allclose(result["slider.displacement"][1], expected, atol=2e-5)
    assert np.max(np.abs(result["slider.displacement"][0] - expected)) > 1e-2
    for machine in (0, 2):
        assert_alike(result, machine, single(model, {"controller.proportional": gains[machine]}, 1.0, 0.01))


@cache
def four_bars(lanes: int) -> EnsembleResult:
    """Hydraulic four-bars with masses and valve signals of their own."""
    signals = [SineSignal(amplitude=10.0 / number, frequency=number) for number in range(1, 6)]
    ensemble = built_in("four-bar").ensemble(
        {"boom.mass": MASSES}, inputs={"valve.command": signals}, lanes=lanes, **STEP
    )
    return ensemble.run(0.5, output_step=0.01, outputs=["*angle*", "cylinder.*", "V?.pressure", "O.force.?"])


MASSES = np.linspace(120.0, 300.0, 5)


@pytest.mark.parametrize("lanes", LANES)
def test_hydraulic_machines_are_those_of_single_runs(lanes: int) -> None:
    result, model = four_bars(lanes), built_in("four-bar")
    assert (result.lanes, result.machines, result.failures) == (lanes, 5, {})
    for machine in (0, 4):
        signal = SineSignal(amplitude=10.0 / (machine + 1), frequency=machine + 1)
        driven = model.model_copy(update={"signals": {"circuit.valve.command": signal}})
        assert_alike(result, machine, single(driven, {"boom.mass": MASSES[machine]}, 0.5, 0.01))


def test_threads_change_nothing() -> None:
    ensemble = pendulum().ensemble(starts={"beam.angle": np.linspace(-1.0, 1.0, 21)}, **STEP)
    one, several = (ensemble.run(0.2, workers=workers) for workers in (1, 3))
    np.testing.assert_array_equal(one.values_by_column, several.values_by_column)
    np.testing.assert_array_equal(one["beam.angle"][:, 0], np.linspace(-1.0, 1.0, 21))


def test_choices_of_coordinates_differ_and_change() -> None:
    """Some slider-cranks have other independent coordinates, or take others."""
    model, result, values = cranks_that_choose(**STEP)
    turns = []
    for machine, own in enumerate(values):
        simulation = model.simulation(**SINGLE)
        for name, value in own.items():
            simulation.set(name, value)
        simulation.initialize()
        begun = simulation.independent
        run = simulation.run(1.0, output_step=0.01)
        assert_alike(result, machine, run, 1e-6)
        turns.append((begun, simulation.statistics.repartitions))
    assert len({begun for begun, _ in turns}) == 2
    assert {changes > 0 for _, changes in turns} == {True, False}
    kinetic = result["energy.kinetic"]
    np.testing.assert_allclose(kinetic, np.repeat(kinetic[:, :1], 101, axis=1), rtol=2e-3)


def test_redundant_loops() -> None:
    assert_bennett(STEP, SINGLE, angle=2e-5, force=1e-6)


def test_bodies_that_tumble_keep_energy_and_momentum() -> None:
    """Reference orientations move along machine by machine, as the bodies turn in ways of their own.

    What Newton's iteration leaves, 1e-9 after half a second, grows a hundredfold with the tumbling.
    """
    inertia = np.array([1.0, 1.9, 1.4])
    model, result = tumbling(inertia, 1e-4, **STEP)
    for machine in range(3):
        assert_alike(result, machine, single(model, {"body.inertia_xx": inertia[machine]}, 3.0, 0.01), 5e-6)


def test_a_machine_that_fails_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Slider-cranks whose cranks turn at speeds of their own; one is longer than the rod, and locks."""
    speeds, cranks = (SPEED, SPEED, 2.0), np.array([CRANK, 1.2 * ROD, CRANK])
    signals = [PolynomialSignal(times=(0.0,), coefficients=((START, speed),)) for speed in speeds]
    result = (
        driven_crank()
        .ensemble({"crank.length": cranks}, inputs={"motor.position": signals}, **STEP)
        .run(0.5, output_step=1e-3, outputs=["slider.displacement", "crank.angular_velocity"])
    )
    locked = (np.arcsin(ROD / cranks[1]) - START) / SPEED
    assert result.completed.tolist() == [True, False, True]
    assert locked - 1.5e-3 < result.reached[1] <= locked
    assert result.failures[1].startswith(f"machine 1 (crank.length = {cranks[1]:g} m): the step at t = 0.08")
    assert result.failures[1] in caplog.text
    assert np.all(np.isnan(result["slider.displacement"][1, 82:]))
    assert len(result.trajectory(1).time) == 81
    for machine in (0, 2):
        np.testing.assert_allclose(result["crank.angular_velocity"][machine], speeds[machine], rtol=1e-6)
        angle = START + speeds[machine] * result.time
        expected = CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)
        np.testing.assert_allclose(result["slider.displacement"][machine], expected, atol=1e-9)


def test_a_signal_that_a_motion_cannot_follow_is_refused_with_its_machine() -> None:
    bent = PolynomialSignal(times=(0.0, 0.25), coefficients=((START, SPEED), (START + SPEED * 0.25, 0.0)))
    signals = [PolynomialSignal(times=(0.0,), coefficients=((START, SPEED),)), bent]
    with pytest.raises(InputError, match=r"machine 1: the signal of 'motor.velocity' is refused: it jumps from 6 to 0"):
        driven_crank().ensemble(inputs={"motor.position": signals}, **STEP)


def test_a_start_that_is_refused_is_told_with_its_numbers() -> None:
    result = built_in("four-bar").ensemble({"cylinder.rod_diameter": [0.04, 0.09]}, **STEP).run(0.01)
    assert list(result.failures) == [1]
    told = "machine 1 (cylinder.rod_diameter = 0.09 m): cylinder.piston_diameter is 0.08 m; it must be greater than"
    assert result.failures[1].startswith(told)
    assert np.all(np.isnan(result["boom.angle"][1]))
    assert np.all(np.isfinite(result["boom.angle"][0]))


def test_what_cannot_be_trusted_is_told_of_its_machine_as_of_a_single_run(caplog: pytest.LogCaptureFixture) -> None:
    """A boom that starts at once compresses the oil in a step of a millisecond."""
    speeds, outputs = [0.0, 30.0, 0.1], ["boom.angle"]
    model = built_in("four-bar")
    result = model.ensemble({"boom.angular_velocity_start": speeds}, **STEP).run(0.05, outputs=outputs)
    assert result.names == ("boom.angle",)
    caplog.clear()
    run = single(model, {"boom.angular_velocity_start": 30.0}, 0.05, 1e-3)
    words = ("cavitates", "above twice", "the error of", "the error is")
    told = [each for each in caplog.messages if "not resolved" in each]
    told += [each.removeprefix("four-bar: ") for each in caplog.messages if any(word in each for word in words)]
    assert run.statistics.retries == 1
    assert result.scalar_steps.tolist() == [0, 2, 0], "a step is halved as in the single run"
    np.testing.assert_allclose(result["boom.angle"][1], run["boom.angle"], atol=1e-8)
    assert len(told) > 1
    named = {f"machine 1 (boom.angular_velocity_start = 30 rad/s): {each}" for each in told}
    assert set(result.warnings[1]) == named
    assert not [each for each in result.warnings.get(0, []) if "the error" not in each]


def test_what_nothing_drives_is_told(caplog: pytest.LogCaptureFixture) -> None:
    model = oscillator(driven=False)
    model.ensemble(starts={"slider.displacement": [0.1, 0.2]}, **STEP).run(0.01)
    assert "nothing drives motor.force" in caplog.text
    caplog.clear()
    model.ensemble(inputs={"motor.force": [0.1, 0.2]}, **STEP).run(0.01)
    assert "nothing drives" not in caplog.text


def test_datasets_have_machines_and_what_was_varied() -> None:
    dataset = four_bars(LANES[0]).to_xarray()
    assert dict(dataset.sizes) == {"machine": 5, "time": 51}
    np.testing.assert_array_equal(dataset["boom.mass"], MASSES)
    assert dataset["boom.mass"].attrs["units"] == "kg"
    assert dataset["cylinder.force"].attrs["units"] == "N"
    chosen = dataset.swap_dims(machine="boom.mass").sel({"boom.mass": MASSES[3]})["cylinder.length"]
    np.testing.assert_array_equal(chosen, four_bars(LANES[0])["cylinder.length"][3])


def test_progress_ends_at_one_and_an_interruption_ends_the_runs() -> None:
    ensemble = pendulum().ensemble(starts={"beam.angle": np.linspace(-1.0, 1.0, 9)}, **STEP)
    shares: list[float] = []
    ensemble.run(0.1, progress=shares.append)
    assert shares[-1] == 1.0

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble.run(1000.0, output_step=1.0, progress=interrupt)


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"parameters": {"beam.mas": [1.0, 2.0]}},
        "there is no variable 'beam.mas' in pendulum; did you mean 'beam.mass'?",
    ),
    (
        {"parameters": {"beam.mass": [1.0, 2.0], "beam.length": [1.0]}},
        "beam.length is given for 1 machines and beam.mass for 2; all arrays must have one length",
    ),
    ({"parameters": {"beam.mass": [1.0, -2.0]}}, "machine 1: beam.mass = -2 kg is refused: it must be at least 1e-09"),
    ({"parameters": {"beam.mass": 1.0}}, "nothing is given for each machine; give an array"),
    ({"parameters": {"beam.mass": [[1.0]]}}, "beam.mass must be a number, or an array"),
    ({"parameters": {"solver.step": [1e-3, 1e-4]}}, "there is no parameter 'solver.step'"),
    (
        {"starts": {"energy.kinetic": [1.0]}},
        "energy.kinetic has no start value that could be given; those that have one are",
    ),
    ({"inputs": {"beam.mass": [1.0]}}, "there is no input 'beam.mass'"),
    (
        {"parameters": {"beam.mass": [1.0]}, "solver": "rk45"},
        "an ensemble takes steps of the solvers trapezoidal, rodas4",
    ),
    (
        {"parameters": {"beam.mass": [1.0]}, "formulation": "dca"},
        "an ensemble takes the independent coordinates of 'double-step'",
    ),
    ({"parameters": {"beam.mass": [1.0]}, "iterations": 3}, "iterations has no effect in an ensemble"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_wrong_input_is_refused_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        pendulum().ensemble(**{**STEP, **given})
    assert sentence in str(caught.value)


def test_lanes_that_no_processor_has_and_code_that_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pendulum()
    with pytest.raises(InputError, match="lanes = 3 is not what this processor has: it may be 2"):
        model.ensemble({"beam.mass": [1.0]}, lanes=3, **STEP).run(0.1)
    monkeypatch.setenv(SWITCH, "0")
    with pytest.raises(InputError, match=f"{SWITCH} = 0 forbids"):
        model.ensemble({"beam.mass": [1.0]}, **STEP).run(0.1)


def test_code_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    model = pendulum()
    model.ensemble({"beam.mass": [1.0]}, **STEP).run(0.1)
    with caplog.at_level(logging.INFO, "mbsfmu"):
        model.ensemble({"beam.mass": [2.0, 3.0]}, **STEP).run(0.1)
    assert "compiling" not in caplog.text
