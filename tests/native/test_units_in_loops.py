"""Units whose code is kernel loops are as all others: derivatives, saved states, and values as in unrolled code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from lxml import etree
from numpy.typing import NDArray

import mbsfmu
from mbsfmu import CoupledModel, Mechanism
from mbsfmu.parts import AppliedForce
from mbsfmu.systems.system import Code

READ = [
    "link_1.angle",
    "link_3.angular_velocity",
    "link_5.centre.x.position",
    "energy.potential",
    "link_4.angular_acceleration",
]
FORCE, MASS, ANGLE = "push.force.y", "link_3.mass", "link_2.angle_start"
STEPS = 40


def pushed_chain() -> CoupledModel:
    """A chain with a force on its end that is an input."""
    mechanism = mbsfmu.models.pendulum(5).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    pushed = mechanism.model_copy(
        update={"forces": (AppliedForce(name="push", point=f"{mechanism.bodies[-1].name}.end"),)}
    )
    return CoupledModel(name="pushed-chain", systems={"mechanism": pushed})


@pytest.fixture(scope="module", params=["dca", "hdca", "dca-alm"])
def units(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Code, Importer]:
    """The same model in both forms; in absolute coordinates beside unrolled code in those of joints."""
    folder = tmp_path_factory.mktemp(request.param)
    options = {"solver": "rk45", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}

    def unit(code: Code) -> Importer:
        options["formulation"] = "dca" if code is Code.STRAIGHT and request.param == "dca-alm" else request.param
        path = mbsfmu.export(pushed_chain(), folder / code, layout="monolithic", code=code, **options)[0]
        return Importer(Path(path), folder / f"{code}-unpacked")

    return {code: unit(code) for code in Code}


def values(unit: Importer, slave: object, names: Sequence[str] = READ) -> NDArray[np.float64]:
    return np.array([unit.get(slave, name) for name in names])  # pyright: ignore[reportArgumentType]


def test_they_move_alike(units: dict[Code, Importer]) -> None:
    reached = []
    for unit in units.values():
        slave = unit.running(**{FORCE: 4.0, MASS: 1.5})
        for step in range(STEPS):
            slave.doStep(0.01 * step, 0.01)
        reached.append(values(unit, slave))
    np.testing.assert_allclose(reached[0], reached[1], rtol=1e-8, atol=1e-8)


def test_they_move_as_a_run_of_straight_code(units: dict[Code, Importer], request: pytest.FixtureRequest) -> None:
    formulation = request.node.callspec.params["units"]
    run = pushed_chain().simulation(
        formulation=formulation, solver="rk45", relative_tolerance=1e-11, absolute_tolerance=1e-11, code=Code.STRAIGHT
    )
    run.set(FORCE, 4.0)
    run.set(MASS, 1.5)
    result = run.run(stop=0.1, output_step=0.01)
    unit = units[Code.LOOPS]
    slave = unit.running(**{FORCE: 4.0, MASS: 1.5})
    for step in range(10):
        slave.doStep(0.01 * step, 0.01)
    np.testing.assert_allclose(values(unit, slave), [result[name][-1] for name in READ], rtol=1e-9, atol=1e-9)


def test_derivatives_at_the_start_are_differences(units: dict[Code, Importer]) -> None:
    unit = units[Code.LOOPS]
    slave = unit.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    for name, begin in ((MASS, 1.3), (ANGLE, 0.4), (FORCE, 2.0)):
        known = [unit.reference[name]]
        unit.set(slave, name, begin)
        found = slave.getDirectionalDerivative([unit.reference[each] for each in READ], known, [1.0])
        ends = []
        for change in (-1e-5, 1e-5):
            unit.set(slave, name, begin + change)
            ends.append(values(unit, slave))
        expected = (ends[1] - ends[0]) / 2e-5
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        assert np.any(np.abs(expected) > 1e-3)


def test_derivatives_while_it_steps_are_differences(units: dict[Code, Importer]) -> None:
    unit = units[Code.LOOPS]
    slave = unit.running(**{FORCE: 1.0})
    for step in range(5):
        slave.doStep(0.01 * step, 0.01)
    acceleration = [unit.reference["link_4.angular_acceleration"]]
    found = slave.getDirectionalDerivative(acceleration, [unit.reference[FORCE]], [1.0])
    ends = []
    for force in (0.0, 2.0):
        unit.set(slave, FORCE, force)
        ends.append(unit.get(slave, "link_4.angular_acceleration"))
    assert found[0] == pytest.approx(0.5 * (ends[1] - ends[0]), rel=1e-9)
    rates = slave.getRealOutputDerivatives([unit.reference["link_2.angle"], unit.reference["energy.potential"]], [1, 1])
    unit.set(slave, FORCE, 1.0)
    before = values(unit, slave, ["link_2.angle", "energy.potential"])
    slave.doStep(0.05, 1e-6)
    np.testing.assert_allclose(
        rates, (values(unit, slave, ["link_2.angle", "energy.potential"]) - before) / 1e-6, rtol=1e-3
    )


def test_restored_state_repeats_to_the_last_bit(units: dict[Code, Importer]) -> None:
    unit = units[Code.LOOPS]
    slave, other = unit.running(**{FORCE: 1.0}), unit.running()
    slave.doStep(0.0, 0.1)
    kept = slave.serializeFMUstate(slave.getFMUstate())
    slave.doStep(0.1, 0.1)
    other.setFMUstate(other.deSerializeFMUstate(kept))
    other.doStep(0.1, 0.1)
    assert unit.everything(slave) == unit.everything(other)


def test_what_may_depend_on_everything_lists_nothing(units: dict[Code, Importer]) -> None:
    root = etree.parse(str(Path(units[Code.LOOPS].folder) / "modelDescription.xml"))
    unknowns = root.findall(".//InitialUnknowns/Unknown")
    assert unknowns
    assert all(each.get("dependencies") is None for each in unknowns)
    names = [each.get("name") for each in root.findall(".//ScalarVariable")]
    direct = {
        names[int(each.get("index", "0")) - 1]: each.get("dependencies") for each in root.findall(".//Outputs/Unknown")
    }
    assert direct["link_1.angle"] == ""  # nothing but states: no loop of masters


@pytest.fixture(scope="module", params=[("dca", "bdf2"), ("dca-alm", "trapezoidal")])
def implicit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Importer:
    """An FMU in loops whose steps are implicit; what it remembers of steps makes iteration matrices depend on them."""
    folder = tmp_path_factory.mktemp("implicit")
    options = dict(zip(("formulation", "solver"), request.param, strict=True)) | {"step": 1e-3}
    path = mbsfmu.export(pushed_chain(), folder, layout="monolithic", code=Code.LOOPS, **options)[0]
    return Importer(Path(path), folder / "unpacked")


def test_implicit_steps_are_those_of_runs_of_straight_code(implicit: Importer, request: pytest.FixtureRequest) -> None:
    formulation, solver = request.node.callspec.params["implicit"]
    slave = implicit.running(**{FORCE: 4.0})
    run = pushed_chain().simulation(formulation=formulation, solver=solver, step=1e-3, code=Code.STRAIGHT)
    run.set(FORCE, 4.0)
    result = run.run(stop=0.1)
    for step in range(20):
        slave.doStep(5e-3 * step, 5e-3)
    expected = [result[name][-1] for name in READ]
    np.testing.assert_allclose(values(implicit, slave), expected, rtol=1e-8, atol=1e-9)


def test_restored_jacobian_repeats_to_the_last_bit(implicit: Importer) -> None:
    slave, other = implicit.running(**{FORCE: 1.0}), implicit.running(**{MASS: 1.5})
    slave.doStep(0.0, 0.1)
    kept = slave.serializeFMUstate(slave.getFMUstate())
    implicit.set(slave, FORCE, 30.0)
    implicit.set(other, FORCE, 30.0)
    slave.doStep(0.1, 0.02)
    other.doStep(0.0, 0.3)
    other.setFMUstate(other.deSerializeFMUstate(kept))
    implicit.set(other, FORCE, 30.0)
    other.doStep(0.1, 0.02)
    assert implicit.everything(slave) == implicit.everything(other)
