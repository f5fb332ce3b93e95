"""What actuators hold at the start where inputs load the mechanism: statics by hand, in process and in units."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from fmpy import fmi2
from importer import Importer

import mbsfmu
from mbsfmu import (
    Actuator,
    AppliedForce,
    AppliedMoment,
    Beam,
    CoupledModel,
    LinearSignal,
    Mechanism,
    Revolute,
    StepSignal,
)
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.io.signals import AnySignal
from mbsfmu.model import along
from mbsfmu.parts import JointDrive

GRAVITY, MASS, LOAD = 9.81, 100.0, -1000.0
HELD = GRAVITY * MASS - 2.0 * LOAD
"""Moments about the pivot: the ram stands at the arm's middle, the load at its end."""
BACKENDS = ["python", pytest.param("native", marks=pytest.mark.skipif(not has_compiler(), reason="needs a C compiler"))]


def arm(signal: AnySignal | None = None) -> CoupledModel:
    """A beam of 2 m on a pivot, level, with an upright ram below its centre and a load at its end."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "G": (1.0, -1.0, 0.0)},
        bodies=(Beam(name="arm", length=2.0, mass=MASS),),
        joints=(Revolute(name="O", parent="ground.O", child="arm.start"),),
        forces=(
            Actuator(name="ram", start="ground.G", end="arm.centre"),
            AppliedForce(name="load", point="arm.end"),
        ),
    )
    signals = {} if signal is None else {"machine.load.force.y": signal}
    return CoupledModel(name="arm", systems={"machine": mechanism}, signals=signals)


def lever(angle: float) -> float:
    """The ram's lever about the pivot at an angle of the arm, m."""
    way = np.array([np.cos(angle) - 1.0, np.sin(angle) + 1.0])
    return float(way @ [-np.sin(angle), np.cos(angle)] / np.linalg.norm(way))


def initializing(importer: Importer) -> fmi2.FMU2Slave:
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    return slave


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Importer]:
    """Return a function that exports the arm, once for each backend."""
    made: dict[str, Importer] = {}

    def exported(backend: str) -> Importer:
        if backend not in made:
            folder = tmp_path_factory.mktemp(backend)
            path = mbsfmu.export(arm(), folder, layout="monolithic", backend=backend)[0]
            assert {each.rule for each in mbsfmu.validate(path)} <= {"execution-tool"}
            made[backend] = Importer(path, folder / "unpacked")
        return made[backend]

    return exported


@pytest.mark.parametrize("formulation", ["double-step", "dca-alm"])
def test_signal_at_the_start_is_held(formulation: str) -> None:
    """What it is from the first jump on counts, not what it is later."""
    falling = StepSignal(times=(0.5,), values=(0.0,), initial=LOAD)
    simulation = arm(falling).simulation(formulation=formulation, compiled=False)
    assert simulation.get("ram.static_force") == pytest.approx(HELD, rel=1e-12)
    growing = LinearSignal(times=(0.0, 1.0), values=(0.0, LOAD))
    simulation = arm(growing).simulation(formulation=formulation, compiled=False)
    assert simulation.get("ram.static_force") == pytest.approx(GRAVITY * MASS, rel=1e-12)


def test_load_that_is_set_is_held_at_rest() -> None:
    """With the force that is told the arm does not move; the ram's own force does not count for it."""
    simulation = arm().simulation(compiled=False)
    simulation.set("ram.force", 500.0)
    simulation.set("load.force.y", LOAD)
    assert simulation.get("ram.static_force") == pytest.approx(HELD, rel=1e-12)
    simulation.set("ram.force", HELD)
    assert simulation.get("arm.angular_acceleration") == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unit_holds_what_is_set_in_initialization_mode(unit: Callable[[str], Importer], backend: str) -> None:
    importer = unit(backend)
    slave = initializing(importer)
    for load in (0.0, LOAD, 0.5 * LOAD):
        importer.set(slave, "load.force.y", load)
        importer.set(slave, "ram.force", 300.0)
        held = GRAVITY * MASS - 2.0 * load
        assert importer.get(slave, "ram.static_force") == pytest.approx(held, rel=1e-12)
    importer.set(slave, "ram.force", held)
    slave.exitInitializationMode()
    assert importer.get(slave, "arm.angular_acceleration") == pytest.approx(0.0, abs=1e-12)
    importer.set(slave, "load.force.y", 0.0)  # the start is past
    assert importer.get(slave, "ram.static_force") == pytest.approx(held, rel=1e-12)


def test_unit_declares_the_loads_that_count(unit: Callable[[str], Importer]) -> None:
    unknowns = unit("python").description.initialUnknowns
    (held,) = (each for each in unknowns if each.variable.name == "ram.static_force")
    declared = {known.name for known in held.dependencies}
    assert {name for name in declared if ".force" in name} == {"load.force.x", "load.force.y"}
    assert {"arm.mass", "arm.length"} <= declared


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler")
def test_derivatives_count_the_load(unit: Callable[[str], Importer]) -> None:
    """By virtual work; by the ram's own force nothing."""
    importer, angle, step = unit("native"), 0.4, 1e-5
    slave = initializing(importer)
    importer.set(slave, "load.force.y", LOAD)
    importer.set(slave, "arm.angle_start", angle)
    turned = [HELD * np.cos(angle + change) / lever(angle + change) for change in (-step, step)]
    expected = {
        "load.force.x": 2.0 * np.sin(angle) / lever(angle),
        "load.force.y": -2.0 * np.cos(angle) / lever(angle),
        "ram.force": 0.0,
        "arm.mass": GRAVITY * np.cos(angle) / lever(angle),
        "arm.angle_start": (turned[1] - turned[0]) / (2.0 * step),
    }
    references = [importer.reference["ram.static_force"]]
    for name, derivative in expected.items():
        (found,) = slave.getDirectionalDerivative(references, [importer.reference[name]], [1.0])
        assert found == pytest.approx(derivative, rel=1e-8, abs=1e-9), name


def test_loads_in_a_closed_loop_by_virtual_work() -> None:
    """A parallelogram with a force and a moment on its coupler, which only moves along, and a drive in its crank."""
    angle, crank, width, masses = 0.7, 1.5, 2.0, (20.0, 30.0, 10.0)
    mechanism = Mechanism(
        ground={"A": (0.0, 0.0, 0.0), "B": (width, 0.0, 0.0), "G": (1.8, -0.4, 0.0)},
        bodies=(
            Beam(name="crank", length=crank, mass=masses[0]),
            Beam(name="coupler", length=width, mass=masses[1], points={"hook": along(0.3)}),
            Beam(name="rocker", length=crank, mass=masses[2]),
        ),
        joints=(
            Revolute(name="A", parent="ground.A", child="crank.start", angle=angle),
            Revolute(name="P", parent="crank.end", child="coupler.start", angle=-angle),
            Revolute(name="Q", parent="coupler.end", child="rocker.end", angle=angle),
            Revolute(name="B", parent="ground.B", child="rocker.start", cut=True),
        ),
        forces=(
            Actuator(name="ram", start="ground.G", end="crank.end"),
            AppliedForce(name="load", point="coupler.hook"),
            AppliedMoment(name="twist", point="coupler.centre"),
            JointDrive(name="drive", joint="A"),
        ),
    )
    simulation = CoupledModel(name="parallelogram", systems={"machine": mechanism}).simulation(compiled=False)
    given = {"load.force.x": 700.0, "load.force.y": -900.0, "twist.moment.z": 400.0, "drive.torque": 250.0}
    for name, value in given.items():
        simulation.set(name, value)
    tip, turning = crank * np.array([np.cos(angle), np.sin(angle)]), crank * np.array([-np.sin(angle), np.cos(angle)])
    way = tip - [1.8, -0.4]
    arm_of_ram = way @ turning / np.linalg.norm(way)
    weight = GRAVITY * (0.5 * masses[0] + masses[1] + 0.5 * masses[2]) * turning[1]
    applied = np.array([700.0, -900.0]) @ turning + 250.0
    assert simulation.get("ram.static_force") == pytest.approx((weight - applied) / arm_of_ram, rel=1e-9)


LIFTED = 500.0
HELD_BY_CYLINDER = sqrt(2.0) * (GRAVITY * (3.0 * 225.0 + 2.0 * 35.0 + 50.0) + 6.0 * LIFTED)
"""Of the four-bar: a load at the boom's end has twice the lever of the boom's weight."""


def loaded_four_bar() -> CoupledModel:
    model = mbsfmu.models.four_bar()
    mechanism = model.systems["mechanism"]
    loaded = mechanism.model_copy(update={"forces": (*mechanism.forces, AppliedForce(name="load", point="boom.end"))})
    signal = StepSignal(times=(5.0,), values=(0.0,), initial=-LIFTED)
    return model.model_copy(
        update={
            "systems": {**model.systems, "mechanism": loaded},
            "signals": {**model.signals, "mechanism.load.force.y": signal},
        }
    )


def test_pressures_carry_the_load() -> None:
    """The boom stays where it starts; what pressures carry depends on the load, which is said."""
    simulation = loaded_four_bar().simulation(compiled=False)
    assert simulation.get("cylinder.static_force") == pytest.approx(HELD_BY_CYLINDER, rel=1e-9)
    assert simulation.get("cylinder.force") == pytest.approx(HELD_BY_CYLINDER, rel=1e-9)
    assert simulation.get("boom.angular_acceleration") == pytest.approx(0.0, abs=1e-6)
    assert "load.force.y" in simulation.initial_dependencies["cylinder.pressure_piston"]
    assert "load.force.y" in simulation.initial_dependencies["cylinder.force"]
    assert "load.force.y" not in simulation.initial_dependencies["cylinder.pressure_rod"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_units_that_are_coupled_carry_it_too(backend: str, tmp_path: Path) -> None:
    package = mbsfmu.export(loaded_four_bar(), tmp_path, layout="separate", backend=backend)[-1]
    result = mbsfmu.cosimulate(package, step=1e-3, stop=0.02)
    assert result["circuit.cylinder.force"][0] == pytest.approx(HELD_BY_CYLINDER, rel=1e-9)
    assert np.ptp(result["mechanism.boom.angle"]) < 1e-9
