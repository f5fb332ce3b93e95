"""Bodies of a scene are where a run has them: closed forms, and what the run itself has recorded of places."""

from __future__ import annotations

import base64
from math import hypot, sqrt
from typing import Any

import numpy as np
import pytest
from mechanisms import floating
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from spatial import random_tree

import mbsfmu
from mbsfmu import (
    Comparison,
    CoupledModel,
    Free,
    InputError,
    Mechanism,
    Prismatic,
    RigidBody,
    Run,
    SpringDamper,
    Trajectory,
)
from mbsfmu.comparison.run import RunCurves
from mbsfmu.models import four_bar, pendulum
from mbsfmu.view.plots.plot import Curve

Floats = NDArray[np.float64]
FINE = 1e-6  # of poses, whose numbers are of four bytes


def poses(payload: dict[str, Any], run: int = 0) -> Floats:
    """Frames, bodies, seven numbers."""
    numbers = np.frombuffer(base64.b64decode(payload["runs"][run]["poses"]), dtype="<f4").astype(float)
    return numbers.reshape(-1, len(payload["bodies"]), 7)


def path(payload: dict[str, Any], reference: str, run: int = 0) -> Floats:
    """Where a point is at the frames, shape (k, 3)."""
    body, _, point = reference.rpartition(".")
    index = [each["name"] for each in payload["bodies"]].index(body)
    local = np.array(payload["bodies"][index]["points"][point])
    position, quaternion = np.split(poses(payload, run)[:, index], [3], axis=1)
    return position + Rotation.from_quat(quaternion).apply(local)


def times(payload: dict[str, Any]) -> Floats:
    return np.linspace(payload["time"]["start"], payload["time"]["stop"], payload["time"]["count"])


def pivot(angle: Floats) -> Floats:
    """Where link and rocker of the four-bar meet: √2 m from C on the boom, 2 m from E, on the right of the line C-E."""
    c = 3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    e = np.array([0.0, -1.0])
    gap = e - c
    far = np.linalg.norm(gap, axis=1)
    along = (2.0 - 4.0 + far**2) / (2.0 * far)
    across = np.stack([-gap[:, 1], gap[:, 0]], axis=1) / far[:, None]
    return c + along[:, None] * gap / far[:, None] + np.sqrt(2.0 - along**2)[:, None] * across


def test_pivot_of_the_four_bar_is_where_circles_meet() -> None:
    result = four_bar().simulation(step=2e-3).run(1.2)
    payload = result.animate().payload
    angle = np.interp(times(payload), result.time, result["boom.angle"])
    for point in ("link.end", "rocker.start"):
        found = path(payload, point)
        # Coordinates between two rows are on straight lines: 1e-5 m off at these velocities.
        np.testing.assert_allclose(found[:, :2], pivot(angle), atol=2e-5)
        np.testing.assert_allclose(found[:, 2], 0.0, atol=FINE)
    assert np.ptp(found[:, 1]) > 0.02, "it has moved"


@pytest.mark.parametrize("formulation", ["double-step", "dca-alm"])
def test_centres_of_mass_are_where_the_run_has_them(formulation: str) -> None:
    """Joints of all kinds, about half of them with the child nearer to the ground, some that turn freely."""
    model = CoupledModel(name="tree", systems={"mechanism": random_tree(4, bodies=4)})
    result = model.simulation(formulation=formulation, step=1e-3, compiled=False).run(0.06)
    payload = result.animate().payload
    for body in payload["bodies"]:
        recorded = [result[f"{body['name']}.centre.{axis}.position"] for axis in "xyz"]
        expected = np.stack([np.interp(times(payload), result.time, each) for each in recorded], axis=1)
        np.testing.assert_allclose(path(payload, f"{body['name']}.centre"), expected, atol=2e-5)


def test_a_body_that_tumbles_freely_turns_as_its_quaternion_says() -> None:
    """Over several turns, where references move and Cardan angles jump: the body's axes, not its centre alone."""
    model = floating()
    result = model.simulation(step=1e-3).run(6.0)
    payload = result.animate(frame_rate=25.0).payload
    rows = np.stack([result[f"body.quaternion.{part}"] for part in "xyzw"], axis=1)
    turned = Rotation.from_quat(poses(payload)[:, 0, 3:])
    nearest = np.searchsorted(result.time, times(payload) - 1e-9)
    off = (turned.inv() * Rotation.from_quat(rows[nearest])).magnitude()
    assert off.max() < 1e-5
    assert np.ptp(turned.as_matrix()[:, 1, 1]) > 1.9, "it has turned over"


def test_parameters_of_the_run_count() -> None:
    simulation = pendulum(1).simulation()
    simulation.set("link_1.length", 2.5)
    result = simulation.run(0.1)
    end = path(result.animate().payload, "link_1.end")
    assert np.linalg.norm(end[0]) == pytest.approx(2.5, rel=FINE)


def test_a_length_that_was_recorded_otherwise_is_told() -> None:
    """A coupled run, or one from a file, does not say which parameters it had."""
    model = four_bar()
    result = model.simulation().run(0.1)
    kept = Trajectory(result.time, result.values_by_column, result.names, [result.unit(name) for name in result])
    assert mbsfmu.animate(kept, model).payload["notes"] == []
    (note,) = mbsfmu.animate(kept, model, values={"mechanism.rocker.length": 2.2}).payload["notes"]
    # The force acts at half of the rocker.
    assert note.startswith("run: the length of cylinder differs by up to 0.")
    assert note.endswith("the run had other parameters")


def test_coordinates_that_were_not_recorded_are_named() -> None:
    model = four_bar()
    result = model.simulation().run(0.01)
    names = [name for name in result if name != "link.angle"]
    kept = Trajectory(result.time, np.stack([result[name] for name in names], axis=1), names, ["1"] * len(names))
    with pytest.raises(InputError, match=r"no signal 'mechanism.link.angle', without which nobody knows"):
        mbsfmu.animate(kept, model)


def test_what_has_no_mechanism_has_no_motion() -> None:
    circuit = four_bar().systems["circuit"]
    alone = CoupledModel(name="circuit", systems={"circuit": circuit})
    with pytest.raises(InputError, match="circuit has no mechanism"):
        mbsfmu.animate(Trajectory(np.arange(3.0), np.zeros((3, 0)), [], []), alone)


def test_runs_beside_each_other_share_the_times_of_the_first() -> None:
    """A run that ended early is shown until there, and a sentence says when that was."""
    model = pendulum(1)
    whole, half = model.simulation().run(1.0), model.simulation().run(0.5)
    payload = whole.animate(beside={"half": half}, label="whole").payload
    assert [run["label"] for run in payload["runs"]] == ["whole", "half"]
    assert payload["runs"][1]["reached"] == (payload["time"]["count"] + 1) // 2
    assert payload["notes"] == ["half: the run ended at 0.5 s"]
    reached = payload["runs"][1]["reached"]
    np.testing.assert_allclose(path(payload, "link_1.end", 1), path(payload, "link_1.end")[:reached], atol=FINE)


def test_a_pendulum_is_a_rod_of_its_length() -> None:
    payload = pendulum(1).simulation().run(0.1).animate().payload
    rods = [shape for shape in payload["bodies"][0]["shapes"] if shape["kind"] == "rod"]
    assert [hypot(*(np.array(rod["end"]) - rod["start"])) for rod in rods] == pytest.approx([1.0])


def drawn_body(mass: float, tensor: np.ndarray) -> dict[str, Any]:
    """What a body looks like that nothing but its mass and inertia tensor describe."""
    body = RigidBody(
        name="body",
        mass=mass,
        inertia=tuple(np.diag(tensor)),
        products_of_inertia=(tensor[0, 1], tensor[0, 2], tensor[1, 2]),
    )
    free = Free(name="free", parent="ground.O", child="body.origin")
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(free,))
    model = CoupledModel(name="body", systems={"mechanism": mechanism})
    (shape,) = model.simulation(compiled=False).run(0.1).animate().payload["bodies"][0]["shapes"]
    return shape


def test_inertia_becomes_the_cuboid_that_has_it() -> None:
    """Of a body that only floats: its edges give the moments again, about axes that are askew in the body."""
    edges, mass = np.array([0.6, 1.0, 1.8]), 300.0
    moments = mass * (np.sum(edges**2) - edges**2) / 12.0
    axes = Rotation.from_rotvec([0.3, -0.5, 0.9]).as_matrix()
    tensor = axes @ np.diag(moments) @ axes.T
    shape = drawn_body(mass, tensor)
    assert shape["kind"] == "box"
    assert sorted(shape["size"]) == pytest.approx(sorted(edges))
    turned = Rotation.from_quat(shape["quaternion"]).as_matrix()
    size = np.array(shape["size"])
    again = turned @ np.diag(mass * (np.sum(size**2) - size**2) / 12.0) @ turned.T
    np.testing.assert_allclose(again, tensor, rtol=1e-5, atol=1e-4)
    assert sqrt(np.linalg.det(turned) ** 2) == pytest.approx(1.0)


def test_inertia_that_nobody_weighed_makes_no_large_cuboid() -> None:
    """2 kg with moments of 1 kg m² would be a cube of 1.7 m and 0.4 kg/m³; it is drawn as one of 50 kg/m³."""
    shape = drawn_body(2.0, np.eye(3))
    assert shape["size"] == pytest.approx([(2.0 / 50.0) ** (1.0 / 3.0)] * 3)


def test_springs_are_as_thick_as_the_machine_is_large() -> None:
    """1.2 % of the longest edge of the box that holds all points at all times: a mass swings from 0.5 m to 1.5 m."""
    mass = RigidBody(name="mass", mass=2.0, inertia=(1.0, 1.0, 1.0))
    slide = Prismatic(name="slide", parent="ground.O", child="mass.origin", axis=(1.0, 0.0, 0.0), displacement=0.5)
    spring = SpringDamper(name="spring", start="ground.O", end="mass.origin", stiffness=80.0, free_length=1.0)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "W": (-2.5, 0.25, 0.0)},
        bodies=(mass,),
        joints=(slide,),
        forces=(spring,),
    )
    payload = (
        CoupledModel(name="mass", systems={"mechanism": mechanism})
        .simulation(compiled=False)
        .run(1.2)
        .animate()
        .payload
    )
    assert payload["lowest"] == [-2.5, 0.0, 0.0]
    assert payload["highest"] == pytest.approx([1.5, 0.25, 0.0], rel=1e-3)
    (line,) = payload["lines"]
    assert line["radius"] == pytest.approx(0.012 * 4.0, rel=1e-3)


@pytest.mark.parametrize("values", [{}, {"piston_diameter": 0.1, "rod_diameter": 0.05, "retracted_length": 1.4}])
def test_a_cylinder_has_its_own_sizes(values: dict[str, float]) -> None:
    """Its barrel is 15 % thicker than its piston, and takes the piston from one end of the stroke to the other."""
    simulation = four_bar().simulation(compiled=False)
    for name, value in values.items():
        simulation.set(f"cylinder.{name}", value)
    (line,) = simulation.run(0.002).animate().payload["lines"]
    own = {"piston_diameter": 0.08, "rod_diameter": 0.035, "retracted_length": 0.9, **values}
    sizes, stroke = line["cylinder"], 0.9
    assert sizes["bore"] == pytest.approx(1.15 * own["piston_diameter"] / 2.0)
    assert sizes["rod"] == pytest.approx(own["rod_diameter"] / 2.0)
    assert sizes["retracted"] == own["retracted_length"]
    assert 0.0 <= sizes["dead"] <= sizes["dead"] + stroke <= sizes["barrel"] <= own["retracted_length"]
    assert line["kind"] == "cylinder"
    assert line["nodes"] == ["circuit.V2", "circuit.V3"]


def test_one_system_alone_is_seen_too() -> None:
    alone = four_bar().simulation_of("mechanism").run(0.05)
    payload = alone.animate().payload
    assert payload["name"] == "four-bar.mechanism"
    np.testing.assert_allclose(path(payload, "link.end")[0, :2], pivot(np.zeros(1))[0], atol=1e-4)


def test_a_comparison_shows_its_coupled_runs_beside_the_monolithic_one() -> None:
    """Of each algorithm that of the largest step which did not diverge; a run that broke off as far as it came."""
    result = pendulum(1).simulation(compiled=False).run(1.0)
    angle = result["link_1.angle"]

    def coupled(algorithm: str, step: float, factor: float, rows: int | None = None) -> Run:
        curve = Curve.of("", result.time[:rows], factor * angle[:rows]).thinned(4000)
        return Run(algorithm, step, "ok", {}, None, 1, 0.1, curves=RunCurves({"link_1.angle": curve}))

    runs = [coupled("jacobi", 2e-3, 1.02), coupled("jacobi", 1e-3, 1.01), coupled("gauss-seidel", 2e-3, 1.005, 501)]
    runs.append(Run("jacobi", 4e-3, "diverged", {}, None, 0, 0.1))
    comparison = Comparison("pendulum", "", "double-step", {}, {"link_1.angle": "rad"}, runs, {}, result)
    with pytest.raises(InputError, match="the comparison of pendulum does not know what it compared"):
        comparison.animate()
    comparison.machine = result.machine
    payload = comparison.animate().payload
    shown = {run["label"]: run["reached"] for run in payload["runs"]}
    count = payload["time"]["count"]
    assert shown == {"monolithic": count, "jacobi 0.002 s": count, "gauss-seidel 0.002 s": (count + 1) // 2}
    turned = np.unwrap([np.arctan2(y, x) for x, y, _ in path(payload, "link_1.end", 1)])
    np.testing.assert_allclose(turned, 1.02 * np.interp(times(payload), result.time, angle), atol=1e-4)
    assert [run["label"] for run in comparison.animate(["jacobi 0.001 s"]).payload["runs"]][1:] == ["jacobi 0.001 s"]
    for label in ("jacobi 1 s", "jacobi 0.004 s"):
        with pytest.raises(InputError, match=f"there is no motion of a coupled run '{label}'; "):
            comparison.animate([label])


def test_a_spin_faster_than_the_rows_goes_the_short_way() -> None:
    """A quaternion that is recorded with the other sign means the same."""
    model = floating()
    result = model.simulation(step=1e-2, compiled=False).run(0.5)
    names = list(result)
    columns = np.stack([result[name] for name in names], axis=1)
    flipped = columns.copy()
    turning = [names.index(f"body.quaternion.{part}") for part in "wxyz"]
    flipped[np.ix_(range(1, len(columns), 2), turning)] *= -1.0
    one, other = (
        mbsfmu.animate(Trajectory(result.time, rows, names, ["1"] * len(names)), model).payload
        for rows in (columns, flipped)
    )
    np.testing.assert_allclose(path(one, "body.centre"), path(other, "body.centre"), atol=FINE)
