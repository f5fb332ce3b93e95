"""Forces that hold machines at rest where they start, in units and runs whose code is kernel loops."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import numpy as np
import pytest
from importer import Importer

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.initialization.closing_loops import OwnStarts, close_loops
from mbsfmu.initialization.initialization import balance
from mbsfmu.native.c_sources import UNIT
from mbsfmu.parts import Actuator
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import Code, starts

GRAVITY, BOOM, LINK, LOAD = 9.81, 900.0, 12.0, 1500.0
FOOT, LUG, CENTRE, TIP = np.array([0.6, -1.6]), 3.0, 5.0, 11.0


def crane(links: int, bent: float) -> CoupledModel:
    """A level boom on a cylinder, with a chain of links and a load at its end, which hangs straight or bent."""
    boom = RigidBody(
        name="boom", mass=BOOM, inertia=(40.0, 9000.0, 9000.0), centre=(CENTRE, 0.0, 0.0),
        points={"lug": (LUG, 0.0, 0.0), "tip": (TIP, 0.0, 0.0)},
    )  # fmt: skip
    chain = [
        RigidBody(
            name=f"link_{each}",
            mass=LINK,
            inertia=(0.01, 0.1, 0.1),
            centre=(0.15, 0.0, 0.0),
            points={"end": (0.3, 0.0, 0.0)},
        )
        for each in range(links)
    ]
    load = RigidBody(name="load", mass=LOAD, inertia=(300.0, 300.0, 300.0), centre=(0.8, 0.0, 0.0))
    ends = ["boom.tip", *(f"{each.name}.end" for each in chain)]
    joints = [Revolute(name="luff", parent="ground.O", child="boom.origin")]
    joints += [
        Revolute(name=f"pin_{place}", parent=end, child=f"{body.name}.origin", angle=bent - 0.5 * np.pi * (not place))
        for place, (end, body) in enumerate(zip(ends, [*chain, load], strict=True))
    ]
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "foot": (*FOOT.tolist(), 0.0)},
        bodies=(boom, *chain, load), joints=tuple(joints),
        forces=(Actuator(name="lift", start="ground.foot", end="boom.lug"),),
    )  # fmt: skip
    return CoupledModel(name="crane", systems={"mechanism": mechanism})


def holding_force(links: int) -> float:
    """Moments about the boom's hinge, in N."""
    along_cylinder = (np.array([LUG, 0.0]) - FOOT) / np.linalg.norm(np.array([LUG, 0.0]) - FOOT)
    moment = GRAVITY * (BOOM * CENTRE + (links * LINK + LOAD) * TIP)
    return float(moment / (LUG * along_cylinder[1]))


def started(model: CoupledModel, code: Code, **options: object) -> Simulation:
    made = model.simulation(formulation="dca", solver="rk45", code=code, **options)  # pyright: ignore[reportArgumentType]
    made.initialize()
    return made


@pytest.mark.parametrize("links", [3, 70])
def test_hanging_loads_are_held_by_the_moments_that_they_have(links: int) -> None:
    made = started(crane(links, bent=0.0), Code.LOOPS, compiled=False)
    assert all(part.functions.in_loops == (links > 64) for part in made.initialization.balanced_parts)
    assert made.get("lift.static_force") == pytest.approx(holding_force(links), rel=1e-9)


def test_units_hold_them_so_and_their_size_does_not_grow(tmp_path: Path) -> None:
    sizes = []
    for links in (8, 16):
        path = mbsfmu.export(
            crane(links, bent=0.0), tmp_path / str(links), formulation="dca", solver="rk45", code="loops", sources=True
        )[0]
        unit = Importer(Path(path), tmp_path / f"{links}-unpacked")
        assert unit.get(unit.running(), "lift.static_force") == pytest.approx(holding_force(links), rel=1e-9)
        sizes.append(sum(each.stat().st_size for each in Path(unit.folder, "sources").glob("model*.c")))
    assert sizes[1] < 1.2 * sizes[0]
    flags = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
    subprocess.run(("gcc", *flags, *UNIT[2]), cwd=tmp_path / "8-unpacked" / "sources", check=True)


@pytest.mark.parametrize("links", [4, 66])
def test_what_cannot_be_held_is_told_with_the_motion_that_begins(links: int, caplog: pytest.LogCaptureFixture) -> None:
    """A bent chain swings: as a run has it on which the cylinder pushes with the nearest force."""
    model = crane(links, bent=0.4 / links)
    with caplog.at_level(logging.WARNING, logger="mbsfmu"):
        force = started(model, Code.LOOPS, compiled=False).get("lift.static_force")
    pushed = model.simulation(formulation="double-step" if links < 64 else "hdca", solver="rk45", compiled=False)
    pushed.set("lift.force", force)
    pushed.initialize()
    names = ["boom.angular_acceleration", *(f"link_{each}.angular_acceleration" for each in range(links))]
    by_name = {name: pushed.get(name) for name in [*names, "load.angular_acceleration"]}
    first = max(by_name, key=lambda name: abs(by_name[name]))
    warned = {each for each in caplog.messages if "alone cannot keep it in static equilibrium at the start" in each}
    motion = f"{first} would be {by_name[first]:.3g} rad/s2"
    assert warned == {f"mechanism: actuators alone cannot keep it in static equilibrium at the start; {motion}"}


def test_in_a_loop_the_force_and_its_derivative_are_those_of_straight_code(tmp_path: Path) -> None:
    """A four-bar on a cylinder, which holds its only motion; the pressures follow from the force.

    What holds the loop closed turns with the bodies that lengths move.
    """
    model, found = mbsfmu.models.built_in("four-bar"), {}
    names = ["cylinder.static_force", "cylinder.pressure_piston"]
    parameters = ["boom.mass", "rocker.mass", "boom.length", "boom.C.along", "link.length", "rocker.length"]
    for code in Code:
        path = mbsfmu.export(model, tmp_path / code, layout="monolithic", formulation="dca", solver="rk45", code=code)[
            0
        ]
        unit = Importer(Path(path), tmp_path / f"{code}-unpacked")
        slave = unit.instance()
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        references = [unit.reference[name] for name in names]
        found[code] = [unit.get(slave, name) for name in names]
        for parameter in parameters:
            begin, ends = unit.get(slave, parameter), []
            change = slave.getDirectionalDerivative(references, [unit.reference[parameter]], [1.0])
            for share in (0.9999, 1.0001):
                unit.set(slave, parameter, share * begin)
                ends.append(np.array([unit.get(slave, name) for name in names]))
            unit.set(slave, parameter, begin)
            np.testing.assert_allclose(change, (ends[1] - ends[0]) / (2e-4 * begin), rtol=1e-7, err_msg=parameter)
            found[code] += change
    np.testing.assert_allclose(found[Code.LOOPS], found[Code.STRAIGHT], rtol=1e-9)


def test_where_loops_leave_more_motions_than_are_held_both_forms_say_the_same() -> None:
    """A five-bar with one cylinder, whose loop is open but for a hair: by the mass matrix, and in loops without it."""
    mechanism = mbsfmu.models.built_in("five-bar").systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    first, last = mechanism.bodies[0].name, mechanism.bodies[-1].name
    lift = Actuator(name="lift", start=f"{first}.origin", end=f"{last}.origin")
    system = MechanismSystem(mechanism.model_copy(update={"forces": (lift,)}), "mechanism")
    found = []
    for code in Code:
        functions = SystemFunctions(system, code=code)
        functions.parameters[:] = starts(system.parameters)
        guess = functions.start()[0].copy()
        functions.coordinates[:] = close_loops(functions, guess, OwnStarts.of(guess)).values
        forces, unheld = balance(functions, np.zeros(len(system.inputs)))
        assert unheld is not None
        found.append([*forces, unheld.acceleration])
        assert np.max(np.abs(functions.momenta)) == 0.0
    assert abs(found[0][0]) > 1.0
    assert abs(found[0][1]) > 0.1
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
