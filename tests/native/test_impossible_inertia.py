"""Inertia tensors that parameters make impossible: refused in process and in a unit, with the same words."""

from __future__ import annotations

import re

import pytest
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu
from mbsfmu import Beam, CoupledModel, InputError, Mechanism, Revolute, RigidBody
from mbsfmu.exporting.fmu_export import BACKENDS
from mbsfmu.parts import Spherical

ALLOWED = "no principal moment may be negative, and each must be at most the sum of the two others"
REFUSED = [
    (
        {"arm.inertia_xy": 1.2},
        f"the moments of inertia of body 'arm' are (1, 1.5, 2), the products of inertia (1.2, 0.1, 0) kg.m2; {ALLOWED}",
    ),
    (
        {"arm.inertia_xx": 4.0},
        f"the moments of inertia of body 'arm' are (4, 1.5, 2), the products of inertia (0.2, 0.1, 0) kg.m2; {ALLOWED}",
    ),
    (
        {"bar.axial_inertia": 2.0},
        f"the moments of inertia of body 'bar' are (2, 0.25, 0.25), the products of inertia (0, 0, 0) kg.m2; {ALLOWED}",
    ),
    (
        {"bar.length": 0.01},
        "the moments of inertia of body 'bar' are (0.1, 2.5e-05, 2.5e-05), the products of inertia (0, 0, 0) kg.m2; "
        + ALLOWED,
    ),
    (
        {"arm.inertia_xx": 1.0, "arm.inertia_yy": 1.0, "arm.inertia_xy": 1.0, "arm.inertia_xz": 1e-30},
        "the moments of inertia of body 'arm' are (1, 1, 2), the products of inertia (1, 1e-30, 0) kg.m2; "
        "in the model it has a moment about each axis, and must keep one",
    ),
]
TAKEN = [
    {"arm.inertia_xx": 1.0, "arm.inertia_yy": 1.0, "arm.inertia_xy": 0.5, "arm.inertia_xz": 1e-30},
    {"arm.inertia_xx": 0.5, "arm.inertia_xy": 1e-9, "arm.inertia_xz": 1e-30},  # flat: 0.5 + 1.5 = 2
    {"bar.axial_inertia": 0.5},  # m L²/6
]


def model() -> CoupledModel:
    """An arm with products of inertia, a bar on a ball and a rod without axial inertia."""
    arm = RigidBody(
        name="arm", mass=2.0, inertia=(1.0, 1.5, 2.0), products_of_inertia=(0.2, 0.1, 0.0), points={"tip": (1, 0, 0)}
    )
    bodies = (
        arm,
        Beam(name="bar", mass=3.0, length=1.0, axial_inertia=0.1),
        RigidBody(name="rod", mass=1.0, inertia=(0.0, 1.0, 1.0)),
    )
    joints = (
        Revolute(name="A", parent="ground.O", child="arm.origin"),
        Spherical(name="B", parent="arm.tip", child="bar.start"),
        Revolute(name="C", parent="bar.end", child="rod.origin"),
    )
    mechanism = Mechanism(ground={"O": (0, 0, 0)}, bodies=bodies, joints=joints)
    return CoupledModel(name="arm-and-bar", systems={"mechanism": mechanism})


@pytest.mark.parametrize(("parameters", "sentence"), REFUSED)
@pytest.mark.parametrize("formulation", ["dca", "dca-alm", "double-step"])
def test_run_is_refused(formulation: str, parameters: dict[str, float], sentence: str) -> None:
    simulation = model().simulation(formulation=formulation, compiled=False)
    for name, value in parameters.items():
        simulation.set(name, value)
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        simulation.run(0.01)


@pytest.mark.parametrize("parameters", TAKEN)
def test_run_on_the_bound_is_not(parameters: dict[str, float]) -> None:
    simulation = model().simulation(formulation="dca", compiled=False)
    for name, value in parameters.items():
        simulation.set(name, value)
    simulation.run(0.01)


def test_bodies_of_one_name_are_told_apart() -> None:
    machine = model().systems["mechanism"]
    twice = CoupledModel(name="two", systems={"left": machine, "right": machine})
    simulation = twice.simulation(compiled=False)
    simulation.set("right.arm.inertia_xy", 1.2)
    with pytest.raises(InputError, match=r"of body 'right\.arm' are"):
        simulation.initialize()


@pytest.fixture(scope="module", params=BACKENDS)
def importer(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Importer:
    folder = tmp_path_factory.mktemp(f"inertia-{request.param}")
    (path,) = mbsfmu.export(model(), folder, layout="monolithic", backend=request.param)
    return Importer(path, folder / "unpacked")


@pytest.mark.parametrize(("parameters", "sentence"), REFUSED)
def test_unit_is_refused_with_the_same_words(importer: Importer, parameters: dict[str, float], sentence: str) -> None:
    del importer.messages[:]
    with pytest.raises(FMICallException):
        importer.running(**parameters)
    assert any(message.endswith(sentence) for _, message in importer.messages)


@pytest.mark.parametrize("parameters", TAKEN)
def test_unit_on_the_bound_is_not(importer: Importer, parameters: dict[str, float]) -> None:
    importer.running(**parameters).doStep(0.0, 0.01)
