"""Machines in lanes with steps of their own: closed forms by machine, and the steps of single runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from driven_crank import CRANK, ROD, SPEED, START, driven_crank
from ensemble_cases import LANES, assert_bennett, assert_machine, cranks_that_choose, tumbling
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from oscillator_in_closed_form import SPEED as FIRST_SPEED
from oscillator_in_closed_form import START as FIRST
from sampled_control import controlled, discrete
from scipy.linalg import expm

from mbsfmu import (
    Array,
    Block,
    CoupledModel,
    EnsembleResult,
    FirstOrder,
    InputError,
    Mechanism,
    Numbers,
    Parameter,
    PolynomialSignal,
    Prismatic,
    Quantity,
    Result,
    RigidBody,
    SineSignal,
    StepSignal,
)
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.models import built_in
from mbsfmu.parts import JointSpringDamper

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
ACCURATE: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
HYDRAULIC: dict[str, Any] = {"relative_tolerance": 1e-8, "absolute_tolerance": 1e-8}


def single(model: CoupledModel, values: Mapping[str, float], stop: float, output_step: float, **options: Any) -> Result:
    """Run one machine."""
    simulation = model.simulation(formulation="double-step", **{**ACCURATE, **options})
    for name, value in values.items():
        simulation.set(name, value)
    return simulation.run(stop, output_step=output_step)


def assert_alike(result: EnsembleResult, machine: int, run: Result, share: float = 1e-9) -> None:
    """Compare a machine with a single run, which makes the same steps; energies that drift are not compared."""
    assert result.steps[machine] == run.statistics.steps
    assert_machine(result, machine, run, share)


def test_jumps_and_rows_differ_by_machine() -> None:
    """Driven oscillators by the matrix exponential from jump to jump; rows inside steps, at ends and at jumps."""
    jumps = [(0.1004, 0.3337), (0.25, 0.6), (0.0501, 0.0504), (0.4,), (0.0,)]
    forces = [(30.0, -10.0), (5.0, 0.0), (200.0, -20.0), (1.0,), (7.0,)]
    starts = np.array([0.3, 0.0, -0.1, 0.2, 0.0])
    signals = [StepSignal(times=t, values=f, initial=0.0) for t, f in zip(jumps, forces, strict=True)]
    ensemble = oscillator().ensemble(
        inputs={"motor.force": signals}, starts={"slider.displacement": starts, "slider.velocity": 0.0}, **ACCURATE
    )
    result = ensemble.run(1.0, output_step=0.01, outputs=["slider.displacement", "slider.velocity", "energy.drift"])
    matrix = np.array([[0.0, 1.0, 0.0], [-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS], [0.0, 0.0, 0.0]])
    for machine, start in enumerate(starts):
        expected, state, begin = np.empty((len(result.time), 3)), np.array([start, 0.0, 0.0]), 0.0
        for end, force in zip((*jumps[machine], np.inf), (*forces[machine], 0.0), strict=True):
            inside = (result.time >= begin) & (result.time < end)
            for row in np.flatnonzero(inside):
                expected[row] = expm(matrix * (result.time[row] - begin)) @ state
            if end < np.inf:
                state = expm(matrix * (end - begin)) @ state
                state[2], begin = force, end
        for column, name in enumerate(("slider.displacement", "slider.velocity")):
            scale = 3e-8 * np.max(np.abs(expected[:, column]))
            np.testing.assert_allclose(result[name][machine], expected[:, column], atol=scale, rtol=0.0, err_msg=name)
    assert np.max(np.abs(result["energy.drift"])) < 1e-6, "J: the work of motor and damper is integrated"
    assert np.all(result.steps < 250), "rows do not end steps"
    assert not np.any(result.scalar_steps)


def test_two_degrees_of_freedom_and_states_that_lag() -> None:
    """Two masses on springs and two lags that run out, each at its own pace, by the matrix exponential."""
    stiffness, starts, lags, outputs = (50.0, 8.0), (0.3, -0.1), (0.3, 0.7), (2.0, -5.0)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(RigidBody(name=f"slider{k}", mass=2.0, inertia=(1.0, 1.0, 1.0)) for k in range(2)),
        joints=tuple(
            Prismatic(name=f"rail{k}", parent="ground.O", child=f"slider{k}.origin", displacement=starts[k])
            for k in range(2)
        ),
        forces=tuple(JointSpringDamper(name=f"spring{k}", joint=f"rail{k}", stiffness=stiffness[k]) for k in range(2)),
    )
    blocks = {f"lag{k}": FirstOrder(time_constant=lags[k], initial_output=outputs[k]) for k in range(2)}
    masses = np.array([2.0, 0.5, 7.0])
    model = CoupledModel(name="two", systems={"mechanism": mechanism, **blocks})
    result = model.ensemble({"slider1.mass": masses}, **ACCURATE).run(1.0, output_step=0.1)
    assert not np.any(result.scalar_steps)
    assert result.failures == {}
    for k, (start, output) in enumerate(zip(starts, outputs, strict=True)):
        speed = np.sqrt(stiffness[k] / (masses if k else np.full(3, 2.0)))
        swung = start * np.cos(np.outer(speed, result.time))
        np.testing.assert_allclose(result[f"slider{k}.displacement"], swung, rtol=0.0, atol=1e-7)
        ended = np.broadcast_to(output * np.exp(-result.time / lags[k]), swung.shape)
        np.testing.assert_allclose(result[f"lag{k}.output"], ended, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize(
    ("solver", "lanes"), [*(("rodas5p", lanes) for lanes in LANES), *(("rodas4", lanes) for lanes in LANES[-1:])]
)
def test_hydraulic_machines_make_the_steps_of_single_runs(solver: str, lanes: int) -> None:
    model, masses = built_in("four-bar"), np.linspace(120.0, 300.0, 5)
    signals = [StepSignal(times=(0.05 * n, 0.127 * n), values=(5.0, -3.0), initial=0.0) for n in range(1, 6)]
    own = {"solver": solver, **HYDRAULIC}
    ensemble = model.ensemble({"boom.mass": masses}, inputs={"valve.command": signals}, lanes=lanes, **own)
    result = ensemble.run(0.5, output_step=0.01, outputs=["*angle*", "cylinder.*", "V?.pressure", "O.force.?"])
    assert (result.lanes, result.machines, result.failures) == (lanes, 5, {})
    assert len(set(result.steps)) > 2
    for machine in (0, 4):
        driven = model.model_copy(update={"signals": {"circuit.valve.command": signals[machine]}})
        run = single(driven, {"boom.mass": masses[machine]}, 0.5, 0.01, **own)
        assert run.statistics.retries > 0
        assert_alike(result, machine, run)


def test_sampled_controllers_have_gains_of_their_own() -> None:
    model, gains = controlled(), np.array([5.0, 40.0, 90.0])
    result = model.ensemble({"controller.proportional": gains}, **ACCURATE).run(1.0, output_step=0.004)
    expected, _ = discrete(result.time)
    np.testing.assert_allclose(result["slider.displacement"][1], expected, atol=1e-8)
    for machine in (0, 2):
        assert_alike(result, machine, single(model, {"controller.proportional": gains[machine]}, 1.0, 0.004))


def test_accelerations_feed_states_while_forces_change() -> None:
    """m q̈ + c q̇ + k q = F sin ωt and τ ẋ = g q̈ − x, by the matrix exponential."""
    gain, lag, amplitude, frequencies = 4.0, 0.3, 20.0, (0.5, 2.0, 0.0)
    model = CoupledModel(
        name="fed",
        systems={
            "m": oscillator().systems["mechanism"],
            "filter": FirstOrder(gain=gain, time_constant=lag, input_unit="m/s2", output_unit="N"),
        },
        connections=[("m.slider.acceleration", "filter.input")],
    )
    signals = [SineSignal(amplitude=amplitude, frequency=frequency) for frequency in frequencies]
    result = model.ensemble(inputs={"motor.force": signals}, **ACCURATE).run(1.0, output_step=0.1)
    for machine, frequency in enumerate(frequencies):
        motion = np.zeros((5, 5))  # of q, q̇, x, sin ωt and cos ωt
        motion[0, 1], motion[1, :2], motion[1, 3] = 1.0, (-STIFFNESS / MASS, -DAMPING / MASS), amplitude / MASS
        motion[2] = gain / lag * motion[1]
        motion[2, 2] -= 1.0 / lag
        motion[3, 4], motion[4, 3] = 2.0 * np.pi * frequency, -2.0 * np.pi * frequency
        expected = [(expm(motion * time) @ [0.3, 1.0, 0.0, 0.0, 1.0])[[0, 2]] for time in result.time]
        found = np.stack([result["slider.displacement"][machine], result["filter.output"][machine]], axis=1)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-7)
        driven = model.model_copy(update={"signals": {"m.motor.force": signals[machine]}})
        assert_alike(result, machine, single(driven, {}, 1.0, 0.1))


def test_choices_of_coordinates_differ_and_change() -> None:
    """Kinetic energy stays."""
    model, result, values = cranks_that_choose(**ACCURATE)
    changes = []
    for machine, own in enumerate(values):
        run = single(model, own, 1.0, 0.01)
        assert_alike(result, machine, run, 1e-8)
        changes.append(run.statistics.repartitions)
    assert max(changes) > 0
    kinetic = result["energy.kinetic"]
    np.testing.assert_allclose(kinetic, np.repeat(kinetic[:, :1], 101, axis=1), rtol=1e-6)


def test_redundant_loops() -> None:
    assert_bennett(ACCURATE, {"formulation": "double-step", **ACCURATE}, angle=1e-7, force=1e-5)


def test_bodies_that_tumble_keep_energy() -> None:
    """Reference orientations move along machine by machine."""
    inertia = np.array([1.0, 1.9, 1.4])
    model, result = tumbling(inertia, 1e-7, **ACCURATE)
    for machine in range(3):
        run = single(model, {"body.inertia_xx": inertia[machine]}, 3.0, 0.01)
        assert result.steps[machine] == run.statistics.steps
        for name in (each for each in result if "quaternion" in each or "velocity" in each):
            scale = max(float(np.ptp(run[name])), 1e-2)
            np.testing.assert_allclose(result[name][machine], run[name], rtol=0.0, atol=1e-7 * scale, err_msg=name)


def test_a_machine_that_fails_leaves_the_others_alone() -> None:
    """Driven slider-cranks; one has a crank that is longer than the rod, and locks, told as in a single run."""
    speeds, cranks = (SPEED, SPEED, 2.0), np.array([CRANK, 1.2 * ROD, CRANK])
    signals = [PolynomialSignal(times=(0.0,), coefficients=((START, speed, 0.3),)) for speed in speeds]
    model = driven_crank()
    result = model.ensemble({"crank.length": cranks}, inputs={"motor.position": signals}, **ACCURATE).run(
        0.5, output_step=1e-3, outputs=["slider.displacement", "slider.velocity", "crank.angular_velocity"]
    )
    assert result.completed.tolist() == [True, False, True]
    driven = model.model_copy(update={"signals": {"mechanism.motor.position": signals[1]}})
    with pytest.raises(Exception, match="rodas5p") as alone:
        single(driven, {"crank.length": cranks[1]}, 0.5, 1e-3)
    # A machine that goes on alone counts its tries anew: it may end by shortness where the other ends by their number.
    where = re.compile(r"rodas5p .*at t = (\d+\.\d{7})\d* s.*(: the loop at joint .*)")
    assert where.search(str(alone.value)).groups() == where.search(result.failures[1]).groups()
    locked = result.reached[1]
    turned = START + SPEED * locked + 0.3 * locked**2
    assert 0.0 <= np.arcsin(ROD / cranks[1]) - turned < 1.2e-3 * SPEED
    assert np.all(np.isnan(result["slider.displacement"][1, round(locked * 1e3) + 1 :]))
    assert np.all(np.isfinite(result["slider.displacement"][1, : round(locked * 1e3) + 1]))
    for machine in (0, 2):
        angle, rate = START + speeds[machine] * result.time + 0.3 * result.time**2, speeds[machine] + 0.6 * result.time
        root = np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)
        slide = -CRANK * np.sin(angle) * rate * (1.0 + CRANK * np.cos(angle) / root)
        np.testing.assert_allclose(result["crank.angular_velocity"][machine], rate, rtol=1e-8)
        np.testing.assert_allclose(result["slider.displacement"][machine], CRANK * np.cos(angle) + root, atol=1e-8)
        np.testing.assert_allclose(result["slider.velocity"][machine], slide, atol=1e-7)


def assert_independent(
    model: CoupledModel, parameter: str, values: Sequence[float], stop: float, **options: Any
) -> EnsembleResult:
    """Return machines that run together.

    They equal ensembles of one machine each to the last bit; those that fail say the same.
    """
    together = model.ensemble({parameter: values}, **options).run(stop, output_step=0.05, outputs=["*"])
    for machine, value in enumerate(values):
        alone = model.ensemble({parameter: [value]}, **options).run(stop, output_step=0.05, outputs=["*"])
        np.testing.assert_array_equal(together.values_by_column[machine], alone.values_by_column[0])
        assert together.steps[machine] == alone.steps[0]
        told = [each.partition("): ")[2] for each in (together.failures.get(machine, ""), alone.failures.get(0, ""))]
        assert told[0] == told[1]
    return together


def test_loops_that_do_not_close_change_nothing_in_other_machines() -> None:
    """Steps that a rough tolerance makes too large: Newton's iteration finds no assembly, or another one."""
    model, rough = built_in("loop-4"), {**ACCURATE, "relative_tolerance": 1e-2, "absolute_tolerance": 1e-2}
    masses = [0.5, 1.857, 2.0422]
    result = assert_independent(model, "link_2.mass", masses, 4.0, **rough)
    for machine, mass in enumerate(masses):
        assert_alike(result, machine, single(model, {"link_2.mass": mass}, 4.0, 0.05, **rough), 1e-6)


class Relay(Block):
    """ẋ = push − sign x until a time, then push + 1: having come to zero, x chatters about it until then."""

    type: Literal["relay-in-lanes"] = "relay-in-lanes"
    until: Annotated[float, Parameter("s", "end of the relay")] = 0.1

    def states(self) -> tuple[Quantity, ...]:
        return Quantity("x", "m"), Quantity("clock", "s")

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("push", "m/s", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("position", "m"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        relay = 0.5 * (1.0 + np.sign(now["until"] - now["clock"]))
        return {"x": now["push"] + 1.0 - relay * (1.0 + np.sign(now["x"])), "clock": 1.0 + 0.0 * now["x"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"position": now["x"]}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"x": 0.1, "clock": 0.0}


def test_steps_that_crawl_are_those_of_their_machine_alone() -> None:
    """Some 10⁻¹² s each: one machine soon goes on, one never does within reason, one has none; x in closed form."""
    relayed = np.array([0.1 + 3e-9, 0.1 + 1e-5, 0.05])
    model, push = CoupledModel(name="relay", systems={"relay": Relay()}), StepSignal(times=(0.4,), values=(2.0,))
    tight = {"solver": "rodas5p", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
    driven = model.model_copy(update={"signals": {"relay.push": push}})
    result = driven.ensemble({"until": relayed}, **tight).run(1.0, output_step=0.05)
    assert result.completed.tolist() == [True, False, True]
    for machine, least in ((0, 0.0), (2, 0.05)):
        until, time = relayed[machine], result.time
        expected = np.where(time < until, 0.1 - time, least + (time - until)) + 2.0 * np.maximum(time - 0.4, 0.0)
        np.testing.assert_allclose(result["position"][machine], expected, atol=1e-10)
    assert 100 < result.scalar_steps[0] < 1000, "from where steps crawl to the next jump"
    assert result.scalar_steps[2] == 0
    with pytest.raises(Exception, match="1000 steps have come no farther than") as alone:
        single(driven, {"until": relayed[1]}, 1.0, 0.05, **tight)
    assert "1000 steps have come no farther than" in result.failures[1]
    time_of = re.compile(r"at t = (\S+) s")
    found, expected_time = (float(time_of.findall(each)[0]) for each in (result.failures[1], str(alone.value)))
    assert 0.1 < found < 0.1 + 1e-7
    assert abs(found - expected_time) < 5e-8


class Gap(Block):
    """ẋ = √((t − c)² − w²) / |t − c|, which is hardly less than 1, and no number within w of c."""

    type: Literal["gap-in-lanes"] = "gap-in-lanes"
    centre: Annotated[float, Parameter("s", "middle of the gap")] = 0.5

    def states(self) -> tuple[Quantity, ...]:
        return Quantity("x", "m"), Quantity("clock", "s")

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("position", "m"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        off = (now["clock"] - now["centre"]) ** 2
        return {"x": np.sqrt((off - 1e-12) / off), "clock": 1.0 + 0.0 * now["x"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"position": now["x"]}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"x": 0.0, "clock": 0.0}


def test_rows_inside_steps_are_none_where_rates_are_no_numbers() -> None:
    """Steps go past the gap, a row in it does not: its machine fails, as in a single run; x = t to w in the others."""
    model, centres = CoupledModel(name="gap", systems={"gap": Gap()}), np.array([0.5, 0.513, 7.0])
    result = model.ensemble({"centre": centres}, **ACCURATE).run(1.0, output_step=0.1)
    assert result.completed.tolist() == [False, True, True]
    for machine in (1, 2):
        np.testing.assert_allclose(result["position"][machine], result.time, atol=1e-5)
    with pytest.raises(Exception, match="fails however small it is") as alone:
        single(model, {"centre": centres[0]}, 1.0, 0.1)
    assert result.failures[0].endswith(str(alone.value))


def test_many_steps_without_a_halt_crawl_nowhere() -> None:
    """Free oscillators without damping in closed form, in more steps than are looked at together."""
    frequencies, free = np.array([25.0, 30.0]), oscillator(driven=False)
    values = {"slider.mass": STIFFNESS / frequencies**2, "spring.damping": 0.0}
    result = free.ensemble(values, **ACCURATE).run(8.0, output_step=4.0, outputs=["slider.displacement"])
    for machine, frequency in enumerate(frequencies):
        angle = frequency * result.time
        expected = FIRST * np.cos(angle) + FIRST_SPEED / frequency * np.sin(angle)
        np.testing.assert_allclose(result["slider.displacement"][machine], expected, atol=1e-6)
    assert np.all(result.steps > 1000)
    assert not np.any(result.scalar_steps)


def test_statistics_are_those_of_single_runs() -> None:
    """Steps, rejected ones and evaluations of the right-hand side, with jumps of the force."""
    model, masses = oscillator(), np.array([0.1 * MASS, MASS])
    for run, mass in zip(model.ensemble({"slider.mass": masses}, **ACCURATE).single_runs(1.0), masses, strict=True):
        assert run is not None
        found, expected = run.result.statistics, single(model, {"slider.mass": mass}, 1.0, 0.01).statistics
        assert (found.steps, found.retries, found.rhs_evaluations) == (
            expected.steps,
            expected.retries,
            expected.rhs_evaluations,
        )
        assert expected.retries > 0


def test_starts_that_are_refused_change_nothing_in_other_machines() -> None:
    """Among others, and alone in a group of lanes."""
    signals = {"circuit.valve.command": StepSignal(times=(0.0, 0.3), values=(5.0, -3.0))}
    driven = built_in("four-bar").model_copy(update={"signals": signals})
    rods = [0.05, 0.045, 0.09, 0.04, 0.09, 0.05, 0.09, 0.03, 0.09]
    assert_independent(driven, "cylinder.rod_diameter", rods, 1.0, solver="rodas5p", **HYDRAULIC)


def test_machines_that_are_set_on_the_way_make_the_steps_of_runs() -> None:
    forces = np.array([[10.0, -5.0], [3.0, 0.0], [-20.0, 8.0]])
    starts = {"slider.displacement": 0.1, "slider.velocity": 0.0}
    signals = [StepSignal(times=(0.0, 0.2), values=tuple(each), initial=0.0) for each in forces]
    run = oscillator().ensemble(inputs={"motor.force": signals}, starts=starts, **ACCURATE).run(0.5, output_step=0.1)
    machines = oscillator().ensemble(inputs={"motor.force": forces[:, 0]}, starts=starts, **ACCURATE).start()
    machines.advance(0.2, {"motor.force": forces[:, 0]})
    np.testing.assert_array_equal(machines["slider.displacement"], run["slider.displacement"][:, 2])
    machines.advance([0.5, 0.2, 0.5], {"motor.force": forces[:, 1]})
    expected = run["slider.displacement"][[0, 1, 2], [5, 2, 5]]
    np.testing.assert_allclose(machines["slider.displacement"], expected, rtol=1e-13)
    assert machines.steps[[0, 2]].tolist() == run.steps[[0, 2]].tolist()


def test_threads_change_nothing() -> None:
    ensemble = built_in("pendulum-8").ensemble({"link_2.mass": np.linspace(1.0, 2.0, 21)}, **ACCURATE)
    one, several = (ensemble.run(0.3, output_step=0.01, workers=workers) for workers in (1, 3))
    np.testing.assert_array_equal(one.values_by_column, several.values_by_column)


def test_what_adaptive_ensembles_do_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="errors has no effect with the solver 'rodas5p'"):
        oscillator().ensemble({"slider.mass": [1.0, 2.0]}, errors=True, **ACCURATE)
    with pytest.raises(InputError, match=r"of the solvers trapezoidal, rodas4, rodas5p, rosenbrock, and not of 'rk45'"):
        oscillator().ensemble({"slider.mass": [1.0, 2.0]}, solver="rk45")
