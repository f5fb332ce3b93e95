"""FMUs for model exchange, joined by the master, are integrated as the mechanism in one piece is."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.joined_mechanisms import (
    AXIS,
    HANDLE,
    PIN,
    STOP,
    TIGHT,
    chain_whole,
    export_half,
    four_bar_halves,
    four_bar_thirds,
    handle,
    inside,
    largest_gap,
    model,
    off,
)
from model_exchange_fmus import DISCARDS
from model_exchange_fmus.runs import SOLVERS, VERSIONS, Jumper

from mbsfmu import (
    Beam,
    CosimulationError,
    CoupledJoint,
    InputError,
    JointHandle,
    LinearSignal,
    Mechanism,
    Planar,
    Revolute,
    SimulationError,
    cosimulate,
)
from mbsfmu.simulation.run_result import Result

GRAVITY = 9.81


def integrated(fmus: list[Path], joint: str | CoupledJoint = PIN, **options: Any) -> Any:
    """Run halves of a mechanism by model exchange."""
    given: dict[str, Any] = {"step": 1e-2, "stop": STOP, "unit_solver": "dop853", "unit_tolerance": 1e-10}
    return cosimulate(fmus, joints=[joint], **{**given, "model_exchange": "all", **options})


# -- as exact as one model -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [PIN, f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1"], ids=["spherical", "revolute"])
@SOLVERS
def test_a_four_bar_cut_at_a_pin_is_as_exact_as_its_integrator(
    pinned: list[Path], tight: Result, joint: str, solver: str
) -> None:
    result = integrated(pinned, joint, unit_solver=solver)
    assert off(result, tight) < 1e-9
    assert largest_gap(result) < 1e-10
    assert largest_gap(result, what="velocity") < 1e-8
    assert largest_gap(result, what="acceleration") < 1e-9  # from the start on
    loads = ["force.z"] + (["moment.x", "moment.y"] if joint != PIN else [])
    assert max(np.max(np.abs(result[f"reaction.load.{each}"])) for each in loads) < 1e-9


def test_a_coarse_integrator_leaves_no_gaps(pinned: list[Path], tight: Result) -> None:
    result = integrated(pinned, step=0.1, unit_solver="radau", unit_tolerance=1e-3)
    assert 1e-6 < off(result, tight) < 1e-2
    assert largest_gap(result) < 1e-10
    assert largest_gap(result, what="velocity") < 1e-9


@pytest.mark.parametrize("kind", ["spherical", "revolute", "prismatic", "fixed"])
def test_every_kind_of_joint_in_space_is_that_of_the_whole(chained: list[Path], kind: str) -> None:
    whole = chain_whole(kind).simulation(**TIGHT).run(STOP)
    axis = ":" + ",".join(map(str, AXIS)) if kind in ("revolute", "prismatic") else ""
    result = integrated(chained, f"{kind}:rod.{HANDLE}=blob.{HANDLE}{axis}")
    names = [*(f"seen.position.{axis}" for axis in "xyz"), *(f"facing.quaternion.{part}" for part in "wxyz")]
    names += [f"seen.velocity.{axis}" for axis in "xyz"]
    assert max(abs(result[f"blob.{name}"][-1] - whole[name][-1]) for name in names) < 1e-8
    accelerations = [f"seen.acceleration.{axis}" for axis in "xyz"]
    for name in accelerations:
        np.testing.assert_allclose(result[f"blob.{name}"][[0, -1]], whole[name][[0, -1]], atol=1e-6)


def test_joints_hold_what_is_at_rest(tmp_path: Path) -> None:
    """A bar hangs on two pendulums, over two joints that close a loop: each bears half of it, nothing accelerates."""
    down, weight = -0.5 * np.pi, 2.0 * GRAVITY
    both = [handle("p.end", suffix="_a"), handle("q.end", suffix="_b")]
    pendulums = Mechanism(
        ground={"g": (0.0, 0.0, 0.0), "h": (1.0, 0.0, 0.0)},
        bodies=[Beam(name=name, length=1.0, mass=2.0) for name in "pq"],
        joints=[
            Revolute(name=f"{name}_hinge", parent=f"ground.{at}", child=f"{name}.start", angle=down)
            for name, at in (("p", "g"), ("q", "h"))
        ],
        forces=[each for one in both for each in one["forces"]],
        sensors=[each for one in both for each in one["sensors"]],
    )
    both = [handle("c.start", suffix="_a"), handle("c.end", suffix="_b")]
    bar = Mechanism(
        ground={"rail": (0.0, 0.0, 0.0)},
        bodies=[Beam(name="c", length=1.0, mass=2.0)],
        joints=[Planar(name="fly", parent="ground.rail", child="c.start", displacements=(0.0, -1.0))],
        forces=[each for one in both for each in one["forces"]],
        sensors=[each for one in both for each in one["sensors"]],
    )
    fmus = [export_half(model(name, each), tmp_path, kind="me") for name, each in (("two", pendulums), ("bar", bar))]
    joints = [
        f"revolute:two.{each}=bar.{each}:0,0,1"
        for each in ("load_a+turn_a+seen_a+facing_a", "load_b+turn_b+seen_b+facing_b")
    ]
    result = cosimulate(fmus, joints=joints, step=1e-2, stop=0.1, unit_solver="dop853", unit_tolerance=1e-10)
    for side in "ab":
        np.testing.assert_allclose(result[f"reaction.load_{side}.force.y"], 0.5 * weight, rtol=1e-9)
        assert np.max(np.abs(result[f"two.seen_{side}.acceleration.y"])) < 1e-9


def test_a_loop_cut_twice_has_a_free_body_between_two_joints(tmp_path: Path, tight: Result) -> None:
    fmus = [export_half(third, tmp_path, kind="me") for third in four_bar_thirds()]
    joints = ["spherical:crank.load+seen=coupler.load_a+seen_a", "spherical:coupler.load_b+seen_b=rocker.load+seen"]
    result = cosimulate(fmus, joints=joints, step=1e-2, stop=STOP, unit_solver="dop853", unit_tolerance=1e-10)
    for body in ("crank", "rocker"):
        for kind in ("angle", "angular_velocity"):
            assert abs(result[f"{body}.{body}.{kind}"][-1] - tight[f"{body}.{kind}"][-1]) < 1e-9
    gaps = [result[f"coupler.seen_b.position.{axis}"] - result[f"rocker.seen.position.{axis}"] for axis in "xyz"]
    assert np.max(np.abs(gaps)) < 1e-10


def test_fmi_3_and_differences_lead_to_the_same(pinned: list[Path], tight: Result, tmp_path: Path) -> None:
    """Halves of FMI 3.0, one of which says that it has no directional derivatives."""
    fmus = [export_half(half, tmp_path, kind="me", fmi=3) for half in four_bar_halves()]
    poor = tmp_path / "poor" / "right.fmu"
    poor.parent.mkdir()
    with zipfile.ZipFile(fmus[1]) as archive, zipfile.ZipFile(poor, "w") as copy:
        for name in archive.namelist():
            text = archive.read(name)
            copy.writestr(name, text.replace(b' providesDirectionalDerivatives="true"', b""))
    result = integrated([fmus[0], poor], model_exchange=None)
    assert off(result, tight) < 1e-9


# -- reactions and inputs, by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
def test_the_reaction_is_what_moves_the_second_body(sliding: list[Path], kind: str) -> None:
    """Two masses on one vertical guide, pushed by F: a = F / (m₁ + m₂) − g, and the joint carries m₂ (a + g)."""
    result = integrated(sliding, f"{kind}:lower.{HANDLE}=upper.{HANDLE}", parameters={"lower.push.force.y": 100.0})
    np.testing.assert_allclose(result["reaction.load.force.y"], 3.0 * 100.0 / 5.0, rtol=1e-10)
    np.testing.assert_allclose(result["upper.seen.acceleration.y"], 100.0 / 5.0 - GRAVITY, rtol=1e-10)
    fallen = 0.5 * (100.0 / 5.0 - GRAVITY) * result.time**2
    np.testing.assert_allclose(result["upper.seen.position.y"], fallen, atol=1e-12)


def test_other_inputs_run_straight_over_a_step(sliding: list[Path]) -> None:
    """A push that grows as 200 N/s: y = 200 t³ / 6 / (m₁ + m₂) − g t² / 2, and the reaction grows with it."""
    joint = f"spherical:lower.{HANDLE}=upper.{HANDLE}"
    signal = LinearSignal(times=(0.0, 1.0), values=(0.0, 200.0))
    push = {"lower.push.force.y": signal}
    result = integrated(sliding, joint, inputs=push, algorithm="gauss-seidel-linear", step=0.1)
    time = result.time
    np.testing.assert_allclose(
        result["upper.seen.position.y"], 200.0 * time**3 / 30.0 - 0.5 * GRAVITY * time**2, atol=1e-10
    )
    np.testing.assert_allclose(result["reaction.load.force.y"], 3.0 * 200.0 * time / 5.0, atol=1e-8)
    held = integrated(sliding, joint, inputs=push, step=0.1, extrapolation="zero")
    np.testing.assert_allclose(held["reaction.load.force.y"][1:], 3.0 * 200.0 * time[:-1] / 5.0, atol=1e-8)


# -- FMUs of others, with events -----------------------------------------------------------------------------------


def bar(*units: str) -> CoupledJoint:
    """Return a rigid bar between two masses on lines, which have no other directions."""
    names = {name: (variable, None, None) for name, variable in
             {"force": "force", "position": "x", "velocity": "v", "acceleration": "acceleration"}.items()}  # fmt: skip
    first, second = (JointHandle(unit, **names) for unit in units)
    return CoupledJoint("spherical", first, second, name="bar")


def pair(unit: Path, stop: float = 3.0, joint: CoupledJoint | None = None, **options: Any) -> Any:
    """Run two masses of 1 kg, `a` and `b`, with a rigid bar between them."""
    given = {"step": 0.01, "stop": stop, "unit_tolerance": 1e-10, "unit_solver": "dop853"}
    return cosimulate([f"a={unit}", f"b={unit}"], joints=[joint or bar("a", "b")], **{**given, **options})


@VERSIONS
def test_a_spring_on_one_mass_moves_both(jumper: Jumper, version: int) -> None:
    """x'' = −k x / 2 with the spring on the first mass; the bar pulls the second one with −k x / 2."""
    result = pair(jumper(version), parameters={"a.x": 1.0, "b.x": 1.0, "a.stiffness": 8.0})
    np.testing.assert_allclose(result["b.x"], np.cos(2.0 * result.time), atol=1e-8)
    np.testing.assert_allclose(result["reaction.bar.force.x"], -4.0 * np.cos(2.0 * result.time), atol=1e-7)


@VERSIONS
@SOLVERS
def test_both_masses_share_the_impact_of_one(jumper: Jumper, version: int, solver: str) -> None:
    """Where the first one leaves the ground with e v, momentum gives both (e − 1) v / 2: elastic with e = 3.

    State events: bounces at √(2 h / g) and twice that after each.
    """
    values = {"a.x": 1.0, "b.x": 1.0, "a.gravity": GRAVITY, "b.gravity": GRAVITY, "a.restitution": 3.0}
    result = pair(jumper(version), 2.0, parameters=values, unit_solver=solver)
    falls = np.sqrt(2.0 / GRAVITY)
    phase = np.mod(result.time + falls, 2.0 * falls) - falls
    np.testing.assert_allclose(result["b.x"], 1.0 - 0.5 * GRAVITY * phase**2, atol=1e-7)
    assert result["a.bounces"][-1] == 2.0
    assert largest_difference(result) < 1e-10
    assert result.statistics.unit_events == {"a": 4, "b": 4}  # through the ground and back, of both


def largest_difference(result: Any) -> float:
    """Return the largest length of the bar."""
    return float(np.max(np.abs(result["a.x"] - result["b.x"])))


@VERSIONS
def test_inputs_that_jump_are_told_at_once(jumper: Jumper, version: int) -> None:
    """A discrete push of 2 N on the first mass, from half a second on: a = 1 m/s², and the reaction jumps with it."""
    result = pair(jumper(version), 1.0, scenario={0.5: {"a.kick": 2.0}})
    late = np.maximum(result.time - 0.5, 0.0)
    np.testing.assert_allclose(result["b.x"], 0.5 * late**2, atol=1e-10)
    np.testing.assert_allclose(result["reaction.bar.force.x"], result.time > 0.501, atol=1e-10)


@VERSIONS
def test_events_that_one_fmu_names_are_met(jumper: Jumper, version: int) -> None:
    result = pair(jumper(version), 1.0, parameters={"b.period": 0.0625, "b.last": 0.7})
    np.testing.assert_array_equal(result["b.ticks"], np.floor(result.time / 0.0625 + 1e-9))
    assert "b ended the run at t = 0.7 s" in " ".join(result.statistics.notes)


@VERSIONS
def test_positions_that_jump_open_the_joint(jumper: Jumper, version: int) -> None:
    """A step event, for which the FMU asks: beyond its limit x is set back."""
    values = {"a.v": 1.0, "b.v": 1.0, "a.limit": 0.5}
    with pytest.raises(
        CosimulationError, match=r"the joint a\.x=b\.x is opened by 0\.5\d* m or rad at an event at t = 0\.5"
    ):
        pair(jumper(version), 1.0, parameters=values)


def test_evaluations_that_fail_end_the_run(jumper: Jumper) -> None:
    values = {"a.x": 1.0, "b.x": 1.0, "a.v": 1.0, "b.v": 1.0, "a.fault": DISCARDS}
    with pytest.raises(CosimulationError, match=r"a and b cannot be integrated beyond t = 1 s: .*x is beyond 2"):
        pair(jumper(2), 2.0, parameters=values)


# -- with everything else ------------------------------------------------------------------------------------------


def test_a_run_that_is_left_goes_on_to_the_last_bit(pinned: list[Path], tmp_path: Path) -> None:
    joint = f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1"
    whole = integrated(pinned, joint)
    integrated(pinned, joint, until=0.2, save=tmp_path / "run.zip")
    rest = integrated(pinned, joint, resume=tmp_path / "run.zip")
    same = np.isin(whole.time, rest.time)
    assert same.sum() > 20
    np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[same])


@VERSIONS
def test_fmus_beside_the_joint_are_coupled_as_usual(jumper: Jumper, version: int) -> None:
    """A third mass by itself follows a spring; its position, 1 at rest, pushes the pair."""
    unit = jumper(version)
    for algorithm in ("jacobi", "gauss-seidel"):
        result = cosimulate(
            [f"{name}={unit}" for name in "abc"],
            joints=[bar("a", "b")],
            connections=["c.x=a.kick"],
            parameters={"c.x": 2.0},
            algorithm=algorithm,
            step=0.01,
            stop=1.0,
        )
        np.testing.assert_allclose(result["b.x"], 0.5 * result.time**2, atol=1e-8)


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model_exchange": ["left"]}, "left is run by model exchange and right by co-simulation; joints need FMUs of"),
        ({"model_exchange": ["right"]}, "right is run by model exchange and left by co-simulation"),
        ({"isolate": ["right"]}, "right is isolated or placed, but FMUs that joints join by model exchange"),
        ({"rates": {"right": 2}}, "the rate of right is 2, but joints let one integrator choose"),
        ({"inputs": {"left.load.force.x": lambda _: 1.0}}, r"left\.load\.force\.x is driven twice"),
        ({"scenario": {0.1: {"left.load.force.x": 1.0}}}, r"left\.load\.force\.x"),
        ({"control": "error"}, "the control is 'error', but joints need steps of one length; choose fixed"),
    ],
)  # fmt: skip
def test_what_cannot_be_integrated_is_refused(pinned: list[Path], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        integrated(pinned, **options)


def test_fmus_without_accelerations_are_refused(jumper: Jumper) -> None:
    blind = JointHandle("b", force=("force", None, None), position=("x", None, None), velocity=("v", None, None))
    joint = CoupledJoint("spherical", bar("a", "b").first, blind)
    with pytest.raises(InputError, match=r"handle b\.x lacks acceleration, without which b cannot be joined by model"):
        pair(jumper(2), joint=joint)


def test_an_open_joint_is_refused(pinned: list[Path]) -> None:
    with pytest.raises(SimulationError, match=r"is open by 0\.0011\d* m or rad at the start"):
        integrated(pinned, parameters={"left.crank.angle_start": 1.001})


@pytest.mark.parametrize("options", [{}, {"model_exchange": "all", "unit_solver": "dop853"}])
def test_other_gravity_in_one_half_is_told(
    pinned: list[Path], options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for given, count in (({}, 0), ({"right.gravity.y": -9.0}, 1)):
        caplog.clear()
        cosimulate(
            pinned, joints=[PIN], parameters=inside("left", "right", step=1e-3) | given, step=2e-3, stop=4e-3, **options
        )
        told = [record.getMessage() for record in caplog.records if "gravity.y is" in record.getMessage()]
        assert len(told) == count
        assert all(f"gravity.y is {-GRAVITY} m/s2 in left and -9 m/s2 in right, which" in each for each in told)


def test_steps_of_fmus_for_both_have_no_part(pinned: list[Path]) -> None:
    """What an FMU for both has for its own steps is no parameter of model exchange that changes the run."""
    first, second = integrated(pinned), integrated(pinned, parameters=inside("left", "right", step=0.1))
    np.testing.assert_array_equal(first.values_by_column, second.values_by_column)
