"""Bodies so light that elimination loses digits: results are right, or are warned of, or are refused."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest

import mbsfmu
from mbsfmu import CoupledModel, Gear, InputError, Mechanism, Revolute, RigidBody
from mbsfmu.compiling.compiler import has_compiler


def arm(share: float, *, rotors: bool) -> CoupledModel:
    """Return an arm on a light body, both hinged; each hinge may drive a rotor by a gear."""

    def body(name: str, mass: float) -> RigidBody:
        inertia, centre = (0.01 * mass,) * 3, (0.15, 0.01, 0.02)
        return RigidBody(name=name, mass=mass, inertia=inertia, centre=centre, points={"end": (0.3, 0.0, 0.0)})

    bodies, around = [body("light", share), body("arm", 1.0)], {"a": (0.0, 0.0, 1.0), "b": (0.0, 1.0, 0.0)}
    joints = [
        Revolute(name="a", parent="ground.O", child="light.origin", axis=around["a"], angle=0.3),
        Revolute(name="b", parent="light.end", child="arm.origin", axis=around["b"], angle=0.4),
    ]
    gears = []
    for joint in joints[:2] if rotors else ():
        bodies.append(RigidBody(name=f"rotor_{joint.name}", mass=0.1, inertia=(0.02, 0.02, 0.02)))
        rotor = {"child": f"rotor_{joint.name}.origin", "axis": around[joint.name]}
        joints.append(Revolute(name=f"of_{joint.name}", parent=joint.parent, **rotor))
        gears.append(Gear(name=f"gear_{joint.name}", driving=f"of_{joint.name}", driven=joint.name, ratio=1.0))
    data = {"bodies": bodies, "joints": joints, "constraints": gears}
    return CoupledModel(name="arm", systems={"mechanism": Mechanism(ground={"O": (0.0, 0.0, 0.0)}, **data)})


def accelerations(model: CoupledModel, formulation: str) -> list[float]:
    simulation = model.simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    return [simulation.get(f"{body}.angular_acceleration") for body in ("light", "arm")]


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("formulation", ["dca", "hdca", "dca-alm"])
def test_accelerations_are_right_or_their_error_is_reported(
    formulation: str, *, rotors: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The reference is double-step, which solves for independent coordinates, and takes the light body's part away."""
    for share in (1e-6, 1e-9, 1e-12, 1e-14, 1e-16, 1e-18):
        model = arm(share, rotors=rotors)
        reference = np.array(accelerations(model, "double-step"))
        caplog.clear()
        found, refusal = reference, ""
        try:
            with caplog.at_level(logging.WARNING):
                found = np.array(accelerations(model, formulation))
        except InputError as error:
            refusal = str(error)
        assert not refusal or re.search(r"inertia of body 'light', of 1e-1[68] kg, .* formulation double-step", refusal)
        error = np.max(np.abs(found - reference)) / np.max(np.abs(reference))
        told = re.search(r"a relative error of (\S+) only, as body 'light', .* double-step or penalty", caplog.text)
        if told:
            assert error / 2.0 < float(told[1]) < 10.0 * error
        else:
            assert error < 1e-6


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_the_export_of_an_fmu_reports_the_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for share, count in ((1e-6, 0), (1e-13, 1)):
        caplog.clear()
        mbsfmu.export(arm(share, rotors=True), tmp_path / f"{share}", layout="monolithic", formulation="dca")
        assert caplog.text.count("as body 'light', of ") == count
