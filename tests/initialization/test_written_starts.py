"""Start values that a model has count, zeros too; defaults follow."""

from __future__ import annotations

import json
import logging
from math import cos, sin
from pathlib import Path
from typing import Any

import pytest
from importer import Importer

import mbsfmu
from mbsfmu import (
    Beam,
    CoupledModel,
    Cylindrical,
    Differential,
    Gear,
    LinearCoupling,
    Mechanism,
    Mimic,
    Planar,
    Prismatic,
    RackAndPinion,
    Revolute,
    RigidBody,
    Spherical,
    Universal,
)
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.model.joint import Constraint

COUPLINGS: dict[str, Constraint] = {
    "gear": Gear(name="g", driving="a", driven="b", ratio=2.0),
    "mimic": Mimic(name="g", joint="a", leader="b", multiplier=2.0),
    "linear": LinearCoupling(name="g", joints=("a", "b"), factors_of_joints=(1.0, -2.0)),
    "rack": RackAndPinion(name="g", rack="a", pinion="b", radius=2.0),
    "differential": Differential(name="g", carrier="b", one="a", other="c"),
}
"""All hold q_a = 2 q_b, where q_c = 0."""


def coupled(a: dict[str, float], b: dict[str, float], coupling: str = "gear") -> CoupledModel:
    first: Any = Revolute
    if coupling == "rack":
        first, words = Prismatic, {"angle": "displacement", "angular_velocity": "velocity"}
        a = {words[name]: value for name, value in a.items()}
    joints = [first(name="a", parent="ground.O", child="A.origin", **a)]
    joints.append(Revolute(name="b", parent="ground.O", child="B.origin", **b))
    joints.append(Revolute(name="c", parent="ground.O", child="C.origin", angle=0.0, angular_velocity=0.0))
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=[RigidBody(name=name, mass=1.0, inertia=(0.1, 0.1, 0.1)) for name in "ABC"],
        joints=joints,
        constraints=(COUPLINGS[coupling],),
    )
    return CoupledModel(name="coupled", systems={"m": mechanism})


def warnings_of(model: CoupledModel, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        model.simulation(compiled=False).initialize()
    return [record.getMessage() for record in caplog.records]


CASES: list[tuple[dict[str, float], dict[str, float], bool]] = [
    ({"angle": 0.0}, {"angle": 0.3}, True),
    ({"angle": 0.6}, {"angle": 0.0}, True),
    ({"angle": 1.0}, {"angle": 0.2}, True),
    ({"angular_velocity": 0.0}, {"angular_velocity": 3.0}, True),
    ({"angular_velocity": 6.0}, {"angular_velocity": 0.0}, True),
    ({}, {"angle": 0.3}, False),
    ({"angle": 0.6}, {}, False),
    ({"angle": 0.6}, {"angle": 0.3}, False),
    ({"angle": 0.0}, {"angle": 0.0, "angular_velocity": 0.0}, False),
    ({"angular_velocity": 6.0}, {"angle": 0.0}, False),
]
"""Start values of both joints, and whether they contradict the coupling."""


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_what_contradicts_a_coupling_is_warned_of(coupling: str, caplog: pytest.LogCaptureFixture) -> None:
    """From Python and from a file; a model that was written and read again says the same."""
    for a, b, contradicts in CASES:
        model = coupled(a, b, coupling)
        sentences = warnings_of(model, caplog)
        assert len(sentences) == contradicts, (a, b, sentences)
        assert all(" starts at " in each and ("do not close" in each or "contradict" in each) for each in sentences)
        text = json.dumps(model.to_dict())
        assert warnings_of(CoupledModel.from_dict(json.loads(text)), caplog) == sentences
        system = model.systems["m"]
        copied = system.model_copy(update={"gravity": (0.0, 0.0, -1.0)})
        assert warnings_of(CoupledModel(name="coupled", systems={"m": copied}), caplog) == sentences


def test_values_of_models_count_as_written(caplog: pytest.LogCaptureFixture) -> None:
    model = coupled({}, {"angle": 0.3})
    assert len(warnings_of(model.with_values({"A.angle_start": 0.0}), caplog)) == 1
    assert not warnings_of(model.with_values({"A.angle_start": 0.6}), caplog)


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_zeros_that_are_set_stay_in_fmus(tmp_path: Path) -> None:
    """What was set stays, as zero too, and the other joint follows; two that contradict each other are warned of."""
    (path,) = mbsfmu.export(coupled({"angle": 0.6}, {"angle": 0.3}), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    for values, places, count in (
        ({"A.angle_start": 0.0}, (0.0, 0.0), 0),
        ({"B.angle_start": 0.0}, (0.0, 0.0), 0),
        ({"B.angle_start": 1.0}, (2.0, 1.0), 0),
        ({"A.angle_start": 0.0, "B.angle_start": 1.0}, None, 1),
    ):
        importer.messages.clear()
        slave = importer.running(**values)
        found = [importer.get(slave, name) for name in ("A.angle", "B.angle")]
        assert places is None or found == pytest.approx(places, abs=1e-12)
        assert len(importer.messages) == count


def test_a_written_zero_of_a_joint_that_closes_a_loop(caplog: pytest.LogCaptureFixture) -> None:
    joints = (
        Revolute(name="a", parent="ground.O", child="A.origin", angle=0.4),
        Revolute(name="w", parent="ground.O", child="A.origin", angle=0.0, cut=True),
    )
    bodies = [RigidBody(name="A", mass=1.0, inertia=(0.1, 0.1, 0.1))]
    for closing, count in ((joints[1], 1), (Revolute(name="w", parent="ground.O", child="A.origin", cut=True), 0)):
        mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=(joints[0], closing))
        assert len(warnings_of(CoupledModel(name="one", systems={"m": mechanism}), caplog)) == count


def test_each_element_of_a_joint_has_its_own_start_values() -> None:
    ends = {"name": "j", "parent": "ground.O", "child": "A.origin"}
    none, both, placed, moved = (False, False), (True, True), (True, False), (False, True)
    assert Revolute(**ends).written_starts == (none,)
    assert Revolute(**ends).model_copy(update={"axis": (1.0, 0.0, 0.0)}).written_starts == (none,)
    assert Revolute(**ends, angle=0.0).written_starts == (placed,)
    assert Cylindrical(**ends, velocity=0.0, angle=1.0).written_starts == (moved, placed)
    assert Universal(**ends, angles=(0.0, 1.0)).written_starts == (placed, placed)
    assert Planar(**ends, displacements=(0.0, 0.0), velocities=(0.0, 0.0)).written_starts == (both, both, none)
    assert Spherical(**ends, angular_velocity=(0.0, 0.0, 0.0)).written_starts == (moved, moved, moved)


def test_all_that_moves_is_counted_and_the_loop_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A four-bar whose coupler ends further from the rocker in x than in y."""
    crank, coupler, rocker = (
        Beam(name=n, length=length, mass=1.0) for n, length in (("a", 0.3), ("b", 0.8), ("c", 0.6))
    )
    joints = (
        Revolute(name="A", parent="ground.O", child="a.start", angle=1.0),
        Revolute(name="B", parent="a.end", child="b.start", angle=-0.3),
        Revolute(name="D", parent="ground.E", child="c.start", angle=2.2),
        Revolute(name="C", parent="b.end", child="c.end", cut=True),
    )
    ground = {"O": (0.0, 0.0, 0.0), "E": (0.7, 0.0, 0.0)}
    bodies = (crank, coupler, rocker)
    model = CoupledModel(name="bars", systems={"m": Mechanism(ground=ground, bodies=bodies, joints=joints)})
    x = 0.3 * cos(1.0) + 0.8 * cos(0.7) - 0.7 - 0.6 * cos(2.2)
    y = 0.3 * sin(1.0) + 0.8 * sin(0.7) - 0.6 * sin(2.2)
    assert abs(x) > abs(y)
    with caplog.at_level(logging.WARNING):
        simulation = model.simulation(compiled=False)
        simulation.initialize()
    moved = [abs(simulation.get(f"{n}.angle") - angle) > 1e-3 for n, angle in (("a", 1.0), ("b", -0.3), ("c", 2.2))]
    (sentence,) = (each.getMessage() for each in caplog.records)
    said = f"least of all at joint C (x); {sum(moved) - 1} more start values are changed too"
    assert sentence.startswith(f"bars: c.angle starts at {simulation.get('c.angle'):.6g} instead of 2.2 rad: the start")
    assert sentence.endswith(said)
    if has_compiler():
        (path,) = mbsfmu.export(model, tmp_path, layout="monolithic")
        importer = Importer(path, tmp_path / "unpacked")
        importer.running().freeInstance()
        assert any(message == sentence for _, message in importer.messages)
