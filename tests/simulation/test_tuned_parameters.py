"""Dampers and valves that are changed during a run: the motion in closed form, the laws, and the energy balance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, oscillator
from scipy.linalg import expm

import mbsfmu
from hydraulics import Accumulator, Capillary, Circuit, Oil, PressureSource, ReliefValve, Tank, Volume
from mbsfmu import (
    CoupledModel,
    FirstOrder,
    JointFriction,
    Mechanism,
    PidController,
    PlaneContact,
    SpringDamper,
    StepSignal,
)
from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.modelling.variables import Variability

CHANGED, END, MORE = 0.4, 0.9, 6.0
"""Times in s, and the damping in N s/m from then on."""


def damped() -> tuple[float, float]:
    """Place and energy lost when the damping changes: by the matrix exponential, and by what is left."""
    matrices = [np.array([[0.0, 1.0], [-STIFFNESS / MASS, -damping / MASS]]) for damping in (DAMPING, MORE)]
    place, speed = expm(matrices[1] * (END - CHANGED)) @ expm(matrices[0] * CHANGED) @ np.array([START, SPEED])
    left = 0.5 * (MASS * speed**2 + STIFFNESS * place**2)
    return float(place), 0.5 * (MASS * SPEED**2 + STIFFNESS * START**2) - left


def test_damper_that_is_changed_meets_the_closed_form() -> None:
    place, lost = damped()
    simulation = oscillator(driven=False).simulation(solver="rk4", compiled=False)
    simulation.initialize()
    simulation.step(0.0, CHANGED)
    simulation.set("spring.damping", MORE)
    simulation.step(CHANGED, END - CHANGED)
    assert simulation.get("slider.displacement") == pytest.approx(place, abs=1e-9)
    assert simulation.get("energy.dissipated") == pytest.approx(lost, abs=1e-9)
    assert simulation.get("energy.drift") == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InputError, match=r"spring\.stiffness is a parameter that counts at initialization"):
        simulation.set("spring.stiffness", 60.0)


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_native_unit_does_the_same(tmp_path: Path) -> None:
    place, lost = damped()
    model = oscillator(driven=False)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", solver="rk4", outputs=["energy.*", "slider.d*"])
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    slave.doStep(0.0, CHANGED)
    importer.set(slave, "spring.damping", MORE)
    slave.doStep(CHANGED, END - CHANGED)
    assert importer.get(slave, "slider.displacement") == pytest.approx(place, abs=1e-9)
    assert importer.get(slave, "energy.dissipated") == pytest.approx(lost, abs=1e-9)
    assert importer.get(slave, "energy.drift") == pytest.approx(0.0, abs=1e-9)


def test_valves_and_restrictors_that_are_changed_keep_their_laws_and_the_balance() -> None:
    """Flow through an open valve goes with its rated flow, that through a capillary with the diameter to the fourth."""
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        initial_pressures={"A": 5.5e6},
        components=(
            PressureSource(name="pump", node="P", pressure=2e7),
            Capillary(name="pipe", inlet="P", outlet="A", diameter=4e-3, length=2.0, viscosity=0.04),
            Volume(name="room", node="A", volume=1e-3),
            Accumulator(name="bladder", node="A", volume=1e-3, precharge_pressure=5e6, inlet_diameter=5e-3),
            ReliefValve(name="relief", inlet="A", outlet="T", setting=5e6, override=1e6, rated_flow=5e-4),
            Tank(name="tank", node="T", pressure=1e5),
        ),
    )
    simulation = CoupledModel(name="tuned", systems={"circuit": circuit}).simulation(solver="rodas5p", compiled=False)
    simulation.initialize()
    simulation.step(0.0, 0.05)
    for name, factor, flow, grows in (
        ("relief.rated_flow", 1.5, "relief.flow", 1.5),
        ("pipe.diameter", 1.1, "pipe.flow", 1.1**4),
        ("bladder.inlet_diameter", 1.2, "bladder.flow", None),
    ):
        before = simulation.get(flow)
        assert abs(before) > 1e-9
        simulation.set(name, factor * simulation.get(name))
        if grows is not None:
            assert simulation.get(flow) == pytest.approx(grows * before, rel=1e-9)
        simulation.step(simulation.time, 0.02)
    turned_over = simulation.get("hydraulic_energy.supplied")
    assert turned_over > 100.0
    assert abs(simulation.get("hydraulic_energy.drift")) < 1e-5 * turned_over


def test_gains_of_a_controller_that_are_changed_meet_the_matrix_exponential() -> None:
    """ẏ = (g u − y) / 2 and İ = k_i (r − y) with u = k_p (r − y) + I; neither the state nor the integral part jumps."""
    systems = {
        "pid": PidController(proportional=3.0, integral=4.0),
        "plant": FirstOrder(gain=2.0, time_constant=2.0, initial_output=0.2),
    }
    lines = [("pid.command", "plant.input"), ("plant.output", "pid.measured")]
    setpoint = {"pid.setpoint": StepSignal(times=(0.0,), values=(1.0,))}
    model = CoupledModel(name="loop", systems=systems, connections=lines, signals=setpoint)
    simulation = model.simulation(solver="rk4", step=1e-3, compiled=False)
    simulation.initialize()
    state = np.array([0.2, 0.0, 1.0])
    for begin, end, proportional, integral, gain in ((0.0, CHANGED, 3.0, 4.0, 2.0), (CHANGED, END, 1.5, 9.0, 5.0)):
        for name, value in (("proportional", proportional), ("integral", integral), ("gain", gain)):
            simulation.set(name, value)
        simulation.step(begin, end - begin)
        rates = [
            [-0.5 * (1.0 + gain * proportional), 0.5 * gain, 0.5 * gain * proportional],
            [-integral, 0.0, integral],
            [0.0, 0.0, 0.0],
        ]
        state = expm(np.array(rates) * (end - begin)) @ state
        assert simulation.get("output") == pytest.approx(state[0], abs=1e-9)
        assert simulation.get("integral_part") == pytest.approx(state[1], abs=1e-9)


def test_what_stores_energy_stays_fixed() -> None:
    mechanism = oscillator(driven=False).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    more = (
        SpringDamper(name="line", start="ground.O", end="slider.origin", stiffness=5.0, free_length=0.1),
        JointFriction(name="rub", joint="rail", coulomb_load=1.0),
        PlaneContact(name="floor", sphere="slider.origin", plane="ground.O", normal=(0.0, 1.0, 0.0), stiffness=1e5),
    )
    loaded = mechanism.model_copy(update={"forces": (*mechanism.forces, *more)})
    variables = CoupledModel(name="kinds", systems={"mechanism": loaded}).simulation(compiled=False).variables
    tunable = {each.name for each in variables if each.variability is Variability.TUNABLE}
    friction = {"coulomb_load", "stribeck_rate", "smoothing_velocity", "damping"}
    assert tunable == {
        *("spring.damping", "line.damping", "floor.friction", "floor.creep_speed", "solver.step"),
        *(f"rub.{name}" for name in friction),
    }
    fixed = {each.name for each in variables if each.settable} - tunable
    assert {"spring.stiffness", "line.stiffness", "line.free_length", "floor.stiffness", "slider.mass"} <= fixed
