"""Runs in absolute coordinates with projections: through singular configurations, with redundant constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folding import folding, folding_angle
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import ball_pendulum, floating, slider_crank
from scipy.spatial.transform import Rotation
from spatial_loops import LOOPS, loop_of

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.formulations.dca_alm import ProjectedForm
from mbsfmu.integration.solvers import makes_equal_steps
from mbsfmu.parts import JointDrive, JointSpringDamper
from mbsfmu.simulation.run_result import Result
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


def run(model: CoupledModel, stop: float, formulation: str = "dca-alm", **options: Any) -> Result:
    return model.simulation(formulation=formulation, compiled=False, **options).run(stop)


def tight(tolerance: float = 1e-10, solver: str = "dop853", **options: Any) -> dict[str, Any]:
    tolerances = {} if makes_equal_steps(solver) else {"relative_tolerance": tolerance, "absolute_tolerance": tolerance}
    return {"solver": solver, **tolerances, "step": 0.02, **options}


def difference(one: Result, other: Result, names: list[str]) -> float:
    return max(float(np.max(np.abs(one[name] - other[name]))) for name in names)


# -- the paper's mechanisms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five-bar", "double-pentagon"])
def test_constraints_with_and_without_projections(name: str) -> None:
    """The paper's settings: to round-off with projections, bounded without; at most 4 iterations a level."""
    model = mbsfmu.models.built_in(name)
    options = {"solver": "rk45", "step": 0.05}
    projected, stabilised = (run(model, 3.0, projections=each, **options) for each in (True, False))
    assert projected.largest("constraint.position") < 1e-14
    assert projected.largest("constraint.velocity") < 1e-14
    assert 1e-9 < stabilised.largest("constraint.position") < 1e-5
    for result in (projected, stabilised):
        assert result.largest("energy.drift") < 2e-4 * np.max(result["energy.kinetic"])
        assert max(count.most for count in result.statistics.iterations.values()) <= 4
    assert projected.statistics.iterations["position"].solutions > projected.statistics.steps


@pytest.mark.parametrize("penalty", [1e5, 1e7])
def test_few_iterations_for_other_penalty_factors(penalty: float) -> None:
    result = run(mbsfmu.models.built_in("five-bar"), 5.0, solver="rk45", step=0.05, penalty=penalty)
    assert all(0 < count.most <= 4 for count in result.statistics.iterations.values())
    assert result.largest("constraint.position") < 1e-14


@pytest.mark.parametrize("name", ["five-bar", "double-pentagon"])
def test_motion_is_that_in_joint_coordinates(name: str) -> None:
    model = mbsfmu.models.built_in(name)
    names = [f"link_{number}.angle" for number in range(1, 5)]
    one, other = (run(model, 3.0, each, **tight()) for each in ("dca-alm", "double-step"))
    assert np.ptp(one["link_2.angle"]) > 1e-2
    assert difference(one, other, names) < 1e-7


# -- singular configurations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "step", "tolerance"), [("rk4", 2e-3, 1e-6), ("rk45", 0.01, 1e-5), ("trapezoidal", 2e-3, 3e-3)]
)
def test_goes_on_through_singular_configurations(solver: str, step: float, tolerance: float) -> None:
    """The equation of the slider loses its rank in every turn; the motion that continues is the smooth one."""
    result = run(folding(), 3.0, **(tight(1e-9, solver) | {"step": step}))
    expected = folding_angle(result.time)
    turns = np.floor((expected + 0.5 * np.pi) / np.pi)
    assert len(np.unique(turns)) >= 2, "it folds up"
    np.testing.assert_allclose(result["crank.angle"], expected, atol=tolerance)
    assert result.largest("constraint.position") < 1e-13


# -- redundant constraints -----------------------------------------------------------------------------------------


def redundant_ring(seed: int) -> CoupledModel:
    """A closed planar chain in a random plane; some joints are doubled, at another point of the same axis."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 6))
    plane = Rotation.random(rng=random)
    around = np.linspace(0.0, 2.0 * np.pi, count + 2)[:-1]
    corners = np.array([random.uniform(0.6, 1.4) * np.array([np.cos(a), np.sin(a), 0.0]) for a in around])
    normal = tuple(plane.apply([0.0, 0.0, 1.0]))
    corners = plane.apply(corners)
    doubled = {int(each) for each in random.integers(0, count + 1, size=2)}
    away = 0.3 * np.array(normal)
    points: list[dict[str, tuple[float, ...]]] = [{} for _ in range(count + 1)]  # body 0 is the ground
    joints = []
    for number in range(count + 1):
        inner, outer = number, (number + 1) % (count + 1)
        for copy in range(2 if number in doubled else 1):
            place = corners[number] + copy * away
            points[inner][f"out_{copy}"] = points[outer][f"in_{copy}"] = tuple(place)
            ends = [f"{'ground' if each == 0 else f'body_{each}'}" for each in (inner, outer)]
            joints.append(
                Revolute(
                    name=f"joint_{number}_{copy}",
                    parent=f"{ends[0]}.out_{copy}",
                    child=f"{ends[1]}.in_{copy}",
                    axis=normal,
                    cut=number == count or copy > 0,
                )
            )
    bodies = tuple(
        RigidBody(
            name=f"body_{number}",
            mass=random.uniform(0.5, 2.0),
            inertia=(0.11, 0.13, 0.17),
            centre=tuple(0.5 * (corners[number - 1] + corners[number]) + 0.1 * random.normal(size=3)),
            points=points[number],
        )
        for number in range(1, count + 1)
    )
    mechanism = Mechanism(ground=points[0], bodies=bodies, joints=tuple(joints))
    return CoupledModel(name="ring", systems={"mechanism": mechanism})


@settings(max_examples=4)
@given(st.integers(0, 10_000))
def test_redundant_rings(seed: int) -> None:
    """No failure, constraints at round-off, and the motion in joint coordinates without the redundant equations."""
    model = redundant_ring(seed)
    one = run(model, 0.3, **tight(1e-9, "rk45"))
    assert one.largest("constraint.position") < 1e-12
    assert one.largest("constraint.velocity") < 1e-11
    other = run(model, 0.3, "double-step", **tight(1e-9, "rk45"))
    names = [name for name in other.names if name.endswith(".angle")]
    assert difference(one, other, names) < 1e-5


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["four-bar", "slewing"])
def test_accelerations_keep_to_the_constraints(name: str, compiled: bool) -> None:
    """To round-off: what they leave of Φ̈ moves a circuit at rest, and grows where steps are too long for it."""
    model = mbsfmu.models.slewing_four_bar(speed=4.0) if name == "slewing" else mbsfmu.models.built_in(name)
    simulation = model.simulation(formulation="dca-alm", solver="rk4", compiled=compiled)
    simulation.run(0.02)
    state, functions = simulation.run_loop.present, simulation.functions
    simulation.formulation.load(state)
    functions.accelerations[:] = state.accelerations
    left = functions.traced("left", [functions.expressions.closure_acceleration])()[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-12)
    if name == "four-bar":  # its valve is closed until 1 s
        np.testing.assert_allclose(state.velocities, 0.0, atol=1e-12)


def test_contradictions_are_not_followed() -> None:
    """Without projections, redundant constraints contradict each other: accelerations stop where they stagnate."""
    result = run(mbsfmu.models.slewing_four_bar(), 0.5, solver="rk4", step=2e-3, projections=False)
    assert result.statistics.iterations["acceleration"].most <= 6
    assert result.statistics.iterations["acceleration"].mean < 4.5


@pytest.mark.parametrize("solver", ["rk45", "dop853"])
def test_steps_begin_where_projections_have_moved_to(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates of a method that remembers them are those of the moved state: every accepted one is looked at."""
    rates, accept = ProjectedForm.rates, ProjectedForm.accept
    seen: list[bytes] = []
    accepted: list[bytes] = []

    def looking(self: ProjectedForm, values: Floats, inputs: Floats) -> Floats:
        seen.append(values.tobytes())
        return rates(self, values, inputs)

    def accepting(self: ProjectedForm, state: State) -> State:
        after = accept(self, state)
        accepted.append(self.start.tobytes())
        return after

    monkeypatch.setattr(ProjectedForm, "rates", looking)
    monkeypatch.setattr(ProjectedForm, "accept", accepting)
    run(mbsfmu.models.built_in("five-bar"), 1.0, solver=solver, step=1.0)
    assert len(accepted) > 3
    assert set(accepted[:-1]) <= set(seen)


# -- joints of all kinds, forces in joints, energy -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["R-S-U-P", "R-R-U-E"])
def test_loops_of_joints_of_all_kinds(name: str) -> None:
    assert name in LOOPS
    model = loop_of(name, 2)
    one, other = (run(model, 0.5, each, **tight()) for each in ("dca-alm", "double-step"))
    names = [each for each in other.names if each.endswith(".position")]
    assert difference(one, other, names) < 1e-7
    assert one.largest("energy.drift") < 1e-7


@pytest.mark.parametrize("model", [floating(), ball_pendulum()], ids=lambda model: model.name)
def test_bodies_that_turn_freely(model: CoupledModel) -> None:
    """References move along; orientation and energy are those in joint coordinates."""
    one, other = (run(model, 3.0, each, **tight()) for each in ("dca-alm", "double-step"))
    names = [name for name in other.names if ".quaternion." in name or ".angular_velocity." in name]
    assert len(names) == 7
    assert difference(one, other, names) < 1e-6
    assert one.largest("energy.drift") < 1e-6


def wound() -> CoupledModel:
    """A wheel that a driven spring turns over and over."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=1.0, inertia=(0.1, 0.1, 0.2)),),
        joints=(Revolute(name="hub", parent="wheel.origin", child="ground.O", angle=-7.0, angular_velocity=30.0),),
        forces=(
            JointSpringDamper(name="spring", joint="hub", stiffness=0.5, damping=0.01, free_coordinate=1.0),
            JointDrive(name="motor", joint="hub"),
        ),
    )
    return CoupledModel(name="wound", systems={"mechanism": mechanism})


@pytest.mark.parametrize("solver", ["trapezoidal", "rk45"])
def test_full_turns_are_counted(solver: str) -> None:
    """A linear oscillator over many turns, with a constant torque: its closed form."""
    options = tight(1e-9, solver) | {"step": 1e-3}
    simulation = wound().simulation(formulation="dca-alm", compiled=False, **options)
    simulation.set("motor.torque", 0.7)
    result = simulation.run(4.0)
    damped, rate = 0.01 / 0.4, np.sqrt(0.5 / 0.2 - (0.01 / 0.4) ** 2)
    rest = 1.0 + 0.7 / 0.5
    first = -7.0 - rest
    second = (30.0 + damped * first) / rate
    t = result.time
    expected = rest + np.exp(-damped * t) * (first * np.cos(rate * t) + second * np.sin(rate * t))
    assert np.ptp(expected) > 8 * np.pi
    np.testing.assert_allclose(result["wheel.angle"], expected, atol=1e-4 if solver == "trapezoidal" else 1e-6)
    assert result.largest("energy.drift") < 1e-4 * np.max(result["energy.kinetic"])


def test_order_of_the_trapezoidal_rule() -> None:
    """Projections leave the order at two."""
    model = slider_crank()
    exact = run(model, 0.5, "double-step", **tight(1e-12, step=0.05))
    errors = []
    for step in (4e-3, 2e-3):
        result = model.simulation(formulation="dca-alm", compiled=False, step=step).run(0.5, output_step=0.05)
        errors.append(difference(result, exact, ["crank.angle", "crank.angular_velocity"]))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.2)


def test_four_bar_with_its_circuit() -> None:
    """The difference to the semirecursive formulation falls with the square of the step."""
    model = mbsfmu.models.four_bar()
    differences = []
    for step in (4e-3, 2e-3):
        one, other = (run(model, 1.3, each, step=step) for each in ("dca-alm", "double-step"))
        assert np.ptp(one["cylinder.length"]) > 1e-2
        differences.append(difference(one, other, ["boom.angle", "cylinder.length"]))
    assert differences[0] < 1e-3
    assert differences[0] / differences[1] > 3.0


def test_coupled_four_bar(tmp_path: Path) -> None:
    """From units of their own, mechanism and circuit give what they give in the semirecursive formulation."""
    runs = []
    for formulation in ("dca-alm", "double-step"):
        options = {"layout": "separate", "backend": "python", "formulation": formulation}
        *_, package = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path / formulation, **options)
        runs.append(mbsfmu.cosimulate(package, algorithm="gauss-seidel", step=2e-3, stop=1.2))
    for name in ("mechanism.boom.angle", "mechanism.cylinder.length", "circuit.cylinder.force"):
        moved = np.ptp(runs[1][name])
        assert moved > 1e-3
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-3 * moved)


def test_restored_state_repeats_to_the_last_bit() -> None:
    simulation = ball_pendulum().simulation(formulation="dca-alm", compiled=False, step=5e-3)
    simulation.initialize()
    simulation.step(0.0, 0.3)
    saved = simulation.save()
    simulation.step(0.3, 0.3)
    expected = {variable.name: simulation.get(variable.name) for variable in simulation.variables}
    simulation.restore(saved)
    simulation.step(0.3, 0.3)
    assert {name: simulation.get(name) for name in expected} == expected


def test_what_does_not_fit_is_refused() -> None:
    model = mbsfmu.models.built_in("five-bar")
    for options, words in (
        ({"formulation": "dca-alm", "solver": "radau"}, "remembers earlier steps"),
        ({"formulation": "dca-alm", "stabilisation": 1.0}, "needs none"),
        ({"formulation": "dca-alm", "penalty": 0.0}, "must be positive"),
        ({"formulation": "double-step", "penalty": 1e6}, "has none"),
    ):
        with pytest.raises(mbsfmu.InputError, match=words):
            model.simulation(**options)
