"""Loops whose independent equations change on the way: a planar one on a house that turns, and Bennett's linkage.

References: Lagrange's equation of the one degree of freedom, with positions in closed form, integrated by SciPy.
"""

from __future__ import annotations

from functools import cache, partial
from math import pi
from typing import Any

import numpy as np
import pytest
from cranks import parallel_cranks
from overconstrained import (
    SPEED,
    TIMES,
    Floats,
    bennett_reactions,
    bennett_reference,
    slewing_reactions,
    slewing_reference,
    slope,
)
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from slewing import four_bar_directions
from turning import turned_model

from mbsfmu import CoupledModel
from mbsfmu.base.errors import SimulationError
from mbsfmu.models import bennett, slewing_four_bar
from mbsfmu.models.chains import bennett_angle
from mbsfmu.simulation.run_result import Result
from mbsfmu.stepping.iteration import NewtonTolerances

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
EXPLICIT = ("double-step", "dca", "hdca", "dca-alm")
TIGHT: dict[str, Any] = {
    "solver": "dop853",
    "relative_tolerance": 1e-11,
    "absolute_tolerance": 1e-11,
    "step": 0.05,
}


# -- runs -----------------------------------------------------------------------------------------------------


CASES = {
    "bennett": (bennett, "link_1.angle", bennett_reference),
    "slewing-four-bar": (partial(slewing_four_bar, 0.0, SPEED), "crank.angle", slewing_reference),
}


def run(name: str, *, compiled: bool = False, **options: Any) -> Result:
    """Run to the last of `TIMES`, which are rows of the result."""
    return CASES[name][0]().simulation(compiled=compiled, **options).run(TIMES[name][-1], output_step=0.05)


def error(name: str, result: Result) -> float:
    """Largest error of the angle at `TIMES`."""
    _, variable, reference = CASES[name]
    found = np.interp(TIMES[name], result.time, result[variable])
    return float(np.max(np.abs(found - reference()[0])))


@pytest.mark.parametrize("formulation", EXPLICIT)
@pytest.mark.parametrize("name", CASES)
def test_tight_solvers_meet_the_closed_forms(name: str, formulation: str) -> None:
    assert error(name, run(name, formulation=formulation, **TIGHT)) < 2e-8


def reactions_error(name: str, result: Result) -> float:
    """Largest error of a force or moment at `TIMES`, by the largest of its kind; in the frame of the house."""
    reference = CASES[name][2]
    names = {"bennett": [f"hinge_{number}" for number in range(1, 5)], "slewing-four-bar": ["slewing", *"ABDC"]}[name]
    pairs = []
    for time, motion in zip(TIMES[name], reference().T, strict=True):
        row = int(np.argmin(np.abs(result.time - time)))
        found = np.array([[[result[f"{n}.{k}.{a}"][row] for a in "xyz"] for k in ("force", "moment")] for n in names])
        if name == "bennett":
            pairs.append((found, bennett_reactions(motion).reshape(found.shape)))
        else:
            back = Rotation.from_rotvec([0.0, 0.0, -result["house.angle"][row]])
            found = back.apply(found.reshape(-1, 3)).reshape(found.shape)
            pairs.append((found, slewing_reactions(motion).reshape(found.shape)))
    errors = np.max([np.abs(found - expected) for found, expected in pairs], axis=(0, 1, 3))
    return float(np.max(errors / np.max([np.abs(expected) for _, expected in pairs], axis=(0, 1, 3))))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", CASES)
def test_motion_and_reactions_of_second_order_past_the_change(name: str, formulation: str) -> None:
    """What redundant joints hold against each other too; Newton's and Euler's equations along the closed form."""
    options: dict[str, Any] = {"formulation": formulation, "tolerances": NewtonTolerances(coordinates=1e-10)}
    runs = [run(name, step=step, **options) for step in (2.5e-3, 1.25e-3)]
    for measured, bound in ((error, 1e-3), (reactions_error, {"bennett": 2e-5, "slewing-four-bar": 2e-3}[name])):
        coarse, fine = (measured(name, each) for each in runs)
        assert fine < bound
        assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("code", ["straight", "loops"])
def test_reactions_of_compiled_runs(code: str) -> None:
    """What redundant joints hold against each other, found in C."""
    options: dict[str, Any] = {"solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    result = run("bennett", compiled=True, formulation="dca", code=code, **options)
    assert reactions_error("bennett", result) < 1e-6


@pytest.mark.parametrize(("stabilisation", "restart"), [(0.0, False), (0.0, True), (100.0, True)])
@pytest.mark.parametrize("name", CASES)
def test_momenta_meet_the_closed_forms_whenever_they_start_anew(name: str, stabilisation: float, restart: bool) -> None:
    options = {"stabilisation": stabilisation, "restart_momenta": restart}
    assert error(name, run(name, formulation="hdca", **options, **TIGHT)) < 2e-8


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("slew", [0.0, 0.25 * pi, 0.5 * pi, 2.0])
def test_closing_force_at_rest_is_in_the_plane(formulation: str, slew: float) -> None:
    """At rest, at any slew: the force is that of a planar four-bar with multipliers, and there are no moments."""
    simulation = slewing_four_bar(slew, 0.0).simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    force, moment = (np.array([simulation.get(f"C.{kind}.{axis}") for axis in "xyz"]) for kind in ("force", "moment"))
    horizontal, vertical = planar_closing_force(simulation.get("crank.angle"))
    expected = [horizontal * np.cos(slew), horizontal * np.sin(slew), vertical]
    np.testing.assert_allclose(force, expected, atol=1e-6)
    np.testing.assert_allclose(moment, 0.0, atol=2e-5)


def planar_closing_force(crank: float) -> tuple[float, float]:
    """Force on the rocker's end at rest, horizontal and vertical, in the three angles and two multipliers."""
    one, two, three = four_bar_directions(crank)
    mass = np.diag([1.0 + 10.0 * 0.25 + 20.0, 5.0 + 20.0, 3.0 + 15.0 * 0.75**2])
    mass[0, 1] = mass[1, 0] = 20.0 * np.cos(one - two)
    load = -9.81 * np.array([(5.0 + 20.0) * np.cos(one), 20.0 * np.cos(two), 15.0 * 0.75 * np.cos(three)])
    jacobian = np.array(
        [
            [-np.sin(one), -2.0 * np.sin(two), 1.5 * np.sin(three)],
            [np.cos(one), 2.0 * np.cos(two), -1.5 * np.cos(three)],
        ]
    )
    saddle = np.block([[mass, jacobian.T], [jacobian, np.zeros((2, 2))]])
    return tuple(np.linalg.solve(saddle, np.concatenate([load, np.zeros(2)]))[3:])


def test_reactions_that_redundancy_leaves_open_are_shared_alike() -> None:
    """Bennett's linkage has three redundant equations: all formulations share the forces in the same way."""
    found = []
    for formulation in FORMULATIONS:
        simulation = bennett().simulation(formulation=formulation, compiled=False)
        simulation.initialize()
        names = [variable.name for variable in simulation.functions.system.reactions]
        found.append(dict(zip(names, [simulation.get(name) for name in names], strict=True)))
    for other in found[1:]:
        assert other == pytest.approx(found[0], abs=1e-5)


@cache
def reactions_along(name: str) -> Floats:
    """All reactions every 0.1 s, in joint coordinates at a tight tolerance; shape (reactions, times)."""
    return reactions_of(CASES[name][0](), formulation="double-step", **{**TIGHT, "step": 0.1})


def reactions_of(model: CoupledModel, **options: Any) -> Floats:
    simulation = model.simulation(compiled=False, **options)
    result = simulation.run(0.5, output_step=0.1)
    return np.stack([result[variable.name] for variable in simulation.functions.system.reactions])


@pytest.mark.parametrize(
    ("solver", "projections"),
    [("rk23", True), ("rk45", True), ("dop853", True), ("rk45", False), ("radau", False), ("trapezoidal", False)],
)
@pytest.mark.parametrize("name", CASES)
def test_reactions_in_absolute_coordinates_along_a_motion(name: str, solver: str, projections: bool) -> None:
    """Where steps end, and between them, beside the constraints: redundant ones must not hold against each other."""
    step = {"step": 2e-3} if solver == "trapezoidal" else {"step": 0.1}
    found = reactions_of(CASES[name][0](), formulation="dca-alm", solver=solver, projections=projections, **step)
    expected = reactions_along(name)
    np.testing.assert_allclose(found, expected, atol=3e-3 * np.max(np.abs(expected)))


def test_reactions_do_not_depend_on_where_a_mechanism_stands() -> None:
    """Accelerations that are differences of positions have nothing to do with it, however far the origin is."""
    here = bennett()
    data = here.to_dict()
    ground = data["systems"]["mechanism"]["ground"]
    for name, place in ground.items():
        ground[name] = [value + far for value, far in zip(place, (1e4, -1e4, 1e4), strict=True)]
    options: dict[str, Any] = {"formulation": "penalty", "compiled": False}
    results = [model.simulation(**options).run(0.2) for model in (here, CoupledModel.from_dict(data))]
    for quantity in ("force", "moment"):
        near, far = (
            np.array([result[f"hinge_{n}.{quantity}.{axis}"] for n in range(1, 5) for axis in "xyz"])
            for result in results
        )
        np.testing.assert_allclose(far, near, rtol=0.0, atol=1e-6 * np.max(np.abs(near)))


def test_least_norm_is_least() -> None:
    """What the joints could hold against each other is orthogonal to what they are said to hold."""
    simulation = bennett().simulation(formulation="double-step", compiled=False)
    simulation.initialize()
    functions = simulation.functions
    reactions = np.array([simulation.get(variable.name) for variable in functions.system.reactions])
    jacobian = functions.all_closure_jacobian()[0]
    idle = np.linalg.svd(jacobian)[0][:, 2:]
    play = np.empty((len(reactions), len(jacobian)))
    for row in range(len(jacobian)):
        functions.shared_multipliers[:] = np.arange(len(jacobian)) == row
        play[:, row] = functions.shared_reactions()[0]
    assert idle.shape[1] == 3
    np.testing.assert_allclose(jacobian.T @ idle, 0.0, atol=1e-9)
    assert np.linalg.norm(play @ idle) > 1.0
    np.testing.assert_allclose((play @ idle).T @ reactions, 0.0, atol=1e-7)


def test_multipliers_of_penalty_stay_the_shortest() -> None:
    """What redundant equations hold against each other would grow with every turn of the house."""
    simulation = slewing_four_bar(speed=SPEED).simulation(formulation="penalty", step=5e-3, compiled=False)
    simulation.run(0.4)
    jacobian = simulation.functions.closure()[1]
    idle = np.linalg.svd(jacobian)[0][:, simulation.functions.rank :]
    multipliers = simulation.functions.multipliers
    np.testing.assert_allclose(idle.T @ multipliers, 0.0, atol=1e-6 * np.linalg.norm(multipliers))


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_exchanged_equations_are_restored_to_the_last_bit(formulation: str) -> None:
    """A state holds the equations that count: a run goes on from it as if nothing had been, in a simulation anew."""
    first, second = (
        slewing_four_bar(0.735, 3.0).simulation(formulation=formulation, step=5e-3, compiled=False) for _ in range(2)
    )
    first.initialize()
    for index in range(40):
        first.step(index * 5e-3, 5e-3)
    assert first.statistics.repartitions >= 1
    second.initialize()
    second.restore(first.save())
    for index in range(40, 60):
        for simulation in (first, second):
            simulation.step(index * 5e-3, 5e-3)
    assert first.save() == second.save()


def test_loops_that_open_end_the_run() -> None:
    """Divide and conquer lets positions drift: with large steps further than anybody should go on from."""
    simulation = slewing_four_bar().simulation(formulation="dca", step=0.02, stabilisation=0.0, compiled=False)
    with pytest.raises(SimulationError, match=r"at t = \S+ s the loop has come open by .* at joint C .*stabilisation"):
        simulation.run(12.0)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_equations_of_several_loops_that_depend_on_each_other(formulation: str) -> None:
    """Upright and askew it swings as a pendulum with the inertia of all cranks and the coupler's mass at their ends."""
    inertia, weight = 3.0 * (0.2 + 2.0 * 0.25) + 5.0, 9.81 * (3.0 * 2.0 * 0.5 + 5.0)
    swing = solve_ivp(
        lambda _, y: [y[1], -weight / inertia * np.sin(y[0])], (0.0, 1.0), [0.9, 0.0], rtol=1e-9, atol=1e-9
    )
    upright = parallel_cranks(0.9)
    askew = turned_model(upright, Rotation.from_rotvec([0.3, 0.5, -0.7]))
    forces = []
    for model in (upright, askew):
        result = model.simulation(formulation=formulation, step=5e-3, compiled=False).run(1.0)
        assert result["crank_2.angle"][-1] + 0.5 * pi == pytest.approx(swing.y[0, -1], abs=2e-4)
        assert result.largest("constraint.position") < 1e-9
        forces.append(np.stack([result[f"C2.force.{axis}"] for axis in "xyz"], axis=-1))
    turned = Rotation.from_rotvec([0.3, 0.5, -0.7]).apply(forces[0])
    np.testing.assert_allclose(forces[1], turned, atol=1e-3 * np.max(np.abs(turned)))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_three_turns_of_the_house(formulation: str) -> None:
    options: dict[str, Any] = {"stabilisation": 10.0} if formulation == "dca" else {}  # accelerations alone drift
    result = slewing_four_bar().simulation(formulation=formulation, step=1e-3, **options).run(12.0)
    assert result["house.angle"][-1] == pytest.approx(6.0 * pi, abs=1e-3)
    promised = {"double-step": 1e-12, "penalty": 1e-8, "dca": 1e-4, "hdca": 1e-3, "dca-alm": 1e-12}
    assert result.largest("constraint.position") < promised[formulation]
    assert result.largest("energy.drift") < 5e-4 * np.ptp(result["energy.potential"])


@pytest.mark.parametrize("tolerance", [None, 1e-11])
def test_tolerance_of_newton_costs_no_energy(tolerance: float | None) -> None:
    """Bodies whose inertias differ by seven orders: one iteration matrix a step suffices."""
    options: dict[str, Any] = {"newton_tolerance": tolerance, "step": 2e-3, "compiled": False}
    runs = [slewing_four_bar().simulation(formulation=each, **options).run(1.0) for each in ("dca-alm", "double-step")]
    drifts = [result.largest("energy.drift") for result in runs]
    assert drifts[0] < 2.0 * drifts[1]
    assert runs[0].statistics.iteration_matrices < 1.1 * runs[0].statistics.steps


@pytest.mark.parametrize("hinge", ["link_1", "link_2", "link_3"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_start_velocity_of_any_joint_counts(hinge: str, formulation: str) -> None:
    """Bennett's linkage has one degree of freedom: the speed that is given decides on the others."""
    simulation = bennett().simulation(formulation=formulation, compiled=False)
    simulation.set(f"{hinge}.angular_velocity_start", 3.0)
    simulation.initialize()
    ratio = float(slope(lambda angle: np.array(bennett_angle(angle)), 1.0))
    first = {"link_1": 3.0, "link_2": 3.0 / ratio, "link_3": -3.0}[hinge]
    found = [simulation.get(f"link_{number}.angular_velocity") for number in (1, 2, 3)]
    assert found == pytest.approx([first, ratio * first, -first], rel=1e-6)


def test_start_velocities_that_contradict_are_told(caplog: pytest.LogCaptureFixture) -> None:
    simulation = bennett().simulation(compiled=False)
    simulation.set("link_1.angular_velocity_start", 3.0)
    simulation.set("link_3.angular_velocity_start", 3.0)
    simulation.initialize()
    assert "the start velocities contradict the loops" in caplog.text
    caplog.clear()
    simulation.reset()
    for link, rest in (("link_1", 4e-17), ("link_3", -3e-16)):  # as where a machine was brought to rest
        simulation.set(f"{link}.angular_velocity_start", rest)
    simulation.initialize()
    assert "contradict" not in caplog.text


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_redundant_equations_are_told(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of the five of the last hinge three follow from the others, in absolute coordinates as many of all joints."""
    with caplog.at_level("INFO", logger="mbsfmu"):
        bennett().simulation(formulation=formulation, compiled=False)
    assert "3 of 5 loop equations are redundant" in caplog.text


def test_start_angles_that_do_not_close_a_loop_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Once, with the joint, from and to; not what digits leave, and not what closes."""
    model = bennett()
    for given, count in ((bennett_angle(1.0) + 1e-4, 0), (bennett_angle(1.0) + 0.1, 1)):
        caplog.clear()
        simulation = model.simulation(compiled=False)
        simulation.set("link_1.angle_start", 1.0 + 1e-12)  # stays where the model has it, as it is set too
        simulation.set("link_2.angle_start", given)
        simulation.initialize()
        told = [each.getMessage() for each in caplog.records if "do not close" in each.getMessage()]
        assert len(told) == count
        if count:
            name = told[0].split()[1]
            found, parameter = simulation.get(name), simulation.get(f"{name}_start")
            assert f"{name} starts at {found:.6g} instead of {parameter:.6g} rad: the start values do not" in told[0]


@pytest.mark.parametrize(
    "left_out", [("link_1",), ("link_2",), ("link_3",), ("link_1", "link_3"), ("link_2", "link_3")]
)
def test_start_angles_that_are_left_out_follow_from_those_that_are_given(left_out: tuple[str, ...]) -> None:
    """What the model has stays, and so does what was set; the others are Bennett's."""
    closed = {"link_1": 1.0, "link_2": float(bennett_angle(1.0)), "link_3": -1.0}
    data = bennett().to_dict()
    for joint in data["systems"]["mechanism"]["joints"]:
        joint.pop("angle", None)
    simulation = CoupledModel.from_dict(data).simulation(compiled=False)
    for name in closed.keys() - set(left_out):
        simulation.set(f"{name}.angle_start", closed[name])
    simulation.initialize()
    for name, angle in closed.items():
        assert simulation.get(f"{name}.angle") == pytest.approx(angle, abs=1e-9)


@pytest.mark.parametrize(
    ("formulation", "size"), [*(("penalty", size) for size in (1e-4, 0.01, 0.1, 30.0, 100.0)), ("dca-alm", 3e4)]
)
def test_linkages_of_any_size_move_alike(formulation: str, size: float) -> None:
    """Of the same density, gravity in proportion: penalty forces suit light bodies and heavy ones."""
    data = bennett().to_dict()
    mechanism = data["systems"]["mechanism"]
    mechanism["gravity"] = [size * each for each in mechanism["gravity"]]
    for name, place in mechanism["ground"].items():
        mechanism["ground"][name] = [size * each for each in place]
    for body in mechanism["bodies"]:
        body["length"] *= size
        body["mass"] *= size**3
        for kind in ("inertia", "products_of_inertia"):
            body[kind] = [size**5 * each for each in body[kind]]
    model = CoupledModel.from_dict(data)
    result = model.simulation(formulation=formulation, compiled=False).run(TIMES["bennett"][0])
    assert result["link_1.angle"][-1] == pytest.approx(bennett_reference()[0, 0], abs=5e-6)
    assert result["link_1.angular_velocity"][-1] == pytest.approx(bennett_reference()[1, 0], rel=1e-4)
    assert result["link_1.angular_acceleration"][-1] == pytest.approx(bennett_reference()[2, 0], rel=1e-3)
