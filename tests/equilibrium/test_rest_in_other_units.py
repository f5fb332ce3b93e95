"""Searches for rest do not depend on the units of blocks, and what they blame is at fault."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import numpy as np
import pytest
from rest_machines import BAR, BORE, GRAVITY, chain, controlled, cylinder, pid, spool, table

from hydraulics import (
    Circuit,
    Cylinder,
    FlowSource,
    Hose,
    Oil,
    PressureSensor,
    PressureSource,
    ReliefValve,
    Tank,
    Throttle,
    closed_centre,
    three_way,
)
from mbsfmu import (
    Actuator,
    CoupledModel,
    Gain,
    JointStop,
    Mechanism,
    PidController,
    Prismatic,
    RigidBody,
    SimulationError,
    StepSignal,
)
from mbsfmu.equilibrium import damped_newton, search
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations, magnitudes
from mbsfmu.tracing.workspace import Floats

ROD_AREA = pi / 4.0 * 0.1**2


def pressing_circuit() -> Circuit:
    """Return a pump with a relief valve, a spool, and a cylinder that leaks, its pressure measured."""
    return Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=870.0),
        components=(
            FlowSource(name="pump", node="P", constant_flow=20.0 / 60e3),
            Tank(name="tank", node="T"),
            ReliefValve(
                name="relief", inlet="P", outlet="T", rated_flow=40.0 / 60e3, setting=160.0 * BAR, override=15.0 * BAR
            ),
            spool("valve", closed_centre(0.03), "A", b="B", time_constant=0.01),
            *(Hose(name=f"line_{node}", node=node, volume=1e-3, bulk_modulus=8e8) for node in "PAB"),
            Cylinder(
                name="jack",
                piston="A",
                rod="B",
                piston_diameter=0.16,
                rod_diameter=0.1,
                stroke=0.5,
                retracted_length=1.0,
                bulk_modulus=2e10,
                leakage=2e-13,
                viscous_friction=2e4,
            ),
            PressureSensor(name="gauge", node="A"),
        ),
        initial_pressures={"A": 20.0 * BAR, "B": 10.0 * BAR, "P": 150.0 * BAR},
    )


def press(unit: float, begin: float) -> CoupledModel:
    """A ram of 800 kg on a workpiece of 20 MN/m at 0.3 m, its pressure controlled in a unit of so many Pa."""
    mechanism = Mechanism(
        ground={"top": (0.0, 2.0, 0.0), "slide": (0.0, 1.0, 0.0)},
        bodies=(RigidBody(name="ram", mass=800.0, inertia=(20.0, 20.0, 20.0)),),
        joints=(
            Prismatic(
                name="guide", parent="ground.slide", child="ram.origin", axis=(0.0, -1.0, 0.0), displacement=begin
            ),
        ),
        forces=(
            Actuator(name="jack", start="ground.top", end="ram.origin"),
            JointStop(name="work", joint="guide", upper=0.3, stiffness=2e7, damping=0.5),
        ),
    )
    gain = 2e-7 * unit
    controller = PidController(proportional=gain, integral=gain, minimum=-1.0, maximum=1.0)
    return CoupledModel(
        name="press",
        systems={
            "machine": mechanism,
            "circuit": pressing_circuit(),
            "scale": Gain(gain=1.0 / unit, input_unit="Pa"),
            "pid": controller,
        },
        connections=[
            *cylinder(),
            ("circuit.gauge.pressure", "scale.input"),
            ("scale.output", "pid.measured"),
            ("pid.command", "circuit.valve.command"),
        ],
        signals={"pid.setpoint": StepSignal(times=(1e6,), values=(0.0,), initial=120.0 * BAR / unit)},
    )


def test_press_in_any_unit_of_pressure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaks makes both pressures the same: k (s − s₀) = p A_rod + m g, in as many steps."""
    steps: list[int] = []
    load = EquilibriumEquations.load

    def counted(equations: EquilibriumEquations, unknowns: Floats) -> None:
        steps[-1] += 1
        load(equations, unknowns)

    monkeypatch.setattr(EquilibriumEquations, "load", counted)
    for unit in (1.0, BAR, 1e6):
        steps.append(0)
        found = press(unit, 0.25).equilibrium()
        assert found["circuit.A.pressure"] == pytest.approx(120.0 * BAR, rel=1e-9)
        pressed = (120.0 * BAR * ROD_AREA + 800.0 * 9.81) / 2e7
        assert found["machine.ram.displacement"] == pytest.approx(0.3 + pressed, rel=1e-6)
        assert found.stable
    assert max(steps) <= 1.1 * min(steps)


def test_set_point_in_pascals_is_found_from_zero() -> None:
    """Of the force on the workpiece what the weight does not make, is made by the rod's area."""
    model = press(1.0, 0.28)
    model = model.model_copy(update={"signals": {}})
    found = model.equilibrium({"machine.ram.displacement": 0.302}, ["pid.setpoint"])
    assert found["pid.setpoint"] == pytest.approx((2e7 * 0.002 - 800.0 * 9.81) / ROD_AREA, rel=1e-6)


@pytest.mark.parametrize("horizon", [0.1, 1.0])
def test_integral_part_stands_still_where_leaks_do_not(horizon: float) -> None:
    """Within a horizon pressures need not have become the same; the set point is the pressure there all the same."""
    model = press(BAR, 0.28).model_copy(update={"signals": {}})
    found = model.equilibrium({"machine.ram.displacement": 0.302}, ["pid.setpoint"], horizon=horizon)
    assert found["pid.setpoint"] == pytest.approx(found["circuit.A.pressure"] / BAR, rel=1e-9)
    assert "pid.integral_part" not in found.moving


@pytest.mark.parametrize(("rate", "stable"), [(-0.19, True), (-0.21, None)])
def test_what_creeps_by_more_than_it_is_is_not_called_stable(rate: float, stable: bool | None) -> None:
    """In 5 s an integral part of less than 1 comes to ± 1, from limit to limit of a command."""
    found = press(BAR, 0.28).equilibrium({"machine.ram.displacement": 0.302}, horizon=5.0)
    creeping = replace(found, moving={"pid.integral_part": rate}, kept=("pid.integral_part",))
    assert creeping.stable is stable
    assert f"pid.integral_part {'' if stable else 'creeps '}by {5.0 * rate:.3g} in that time" in creeping.stability


def test_small_things_that_are_asked_for_have_moved() -> None:
    """A rated flow of some l/min is far below one m³/s; rest is where flow and pressure are on the valve's line."""
    flow, rated, setting, override = 20.0 / 60e3, 40.0 / 60e3, 160.0 * BAR, 15.0 * BAR
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=870.0),
        components=(
            FlowSource(name="pump", node="P", constant_flow=flow),
            Tank(name="tank", node="T"),
            ReliefValve(name="relief", inlet="P", outlet="T", rated_flow=rated, setting=setting, override=override),
            Hose(name="hose", node="P", volume=1e-3, bulk_modulus=8e8),
        ),
        initial_pressures={"P": 165.0 * BAR},
    )
    found = CoupledModel(name="relieved", systems={"circuit": circuit}).equilibrium(find=["circuit.relief.rated_flow"])
    change = found["circuit.relief.rated_flow"] - rated
    assert abs(change) > 0.05 * rated
    assert found.moved["circuit.relief.rated_flow"] == pytest.approx(change, rel=1e-12)
    assert "open, as the guess has it" not in repr(found)


def test_magnitudes_follow_units() -> None:
    """A filter behind a pressure, its integral, which moves a spool, and a set point, in other units of all three."""
    matrix = np.array([[2e5, 0.0, -1.0, 0.0, 0.0], [-100.0, 100.0, 0.0, 0.0, 0.0], [0.0, 0.0, 50.0, -50.0, 0.0]])
    matrix = np.vstack([matrix, [0.0, 2e-7, 0.0, 0.0, -2e-7], [0.0, 0.0, 0.0, 0.0, 0.0]])
    known, own = np.array([1e6, np.nan, 1.0, np.nan, np.nan]), np.array([0, 1, 2, 3, -1])
    expected = np.array([1e6, 1e6, 1.0, 1.0, 1e6])
    assert magnitudes(matrix, known, own, np.zeros(5)) == pytest.approx(expected)
    units = np.array([1.0, 1e5, 1.0, 1e-3, 1e-2])
    in_units = np.append(1.0 / units[:4], 1.0)[:, None] * matrix * units
    assert magnitudes(in_units, known, own, np.zeros(5)) == pytest.approx(expected / units)


def test_magnitudes_of_what_nothing_tells_of() -> None:
    """Loads tell of what balances them; a chain that is tied to nothing is of magnitude one."""
    matrix = np.array([[1.0, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    known, sizes = np.array([1.0, np.nan, np.nan]), np.array([500.0, 0.0, 0.0])
    found = magnitudes(matrix, known, np.array([-1, 1, 2]), sizes)
    assert found == pytest.approx([1.0, 5000.0, 1.0])


# -- what is said where none is found -------------------------------------------------------------------------


def test_filter_without_effect_is_never_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a search ends at its start, with the filter 50 rad/s off: İ = k_i r is what cannot stand still."""

    def at_start(equations: EquilibriumEquations, guess: Floats) -> damped_newton.StaticEquilibrium:
        rest = damped_newton.newton(equations, guess, 0)
        return replace(rest, conflict=np.zeros_like(rest.conflict))

    monkeypatch.setattr(search, "contradiction", at_start)
    controller = pid(100.0, setpoint_weight=0.0, derivative=0.0)
    model = controlled(chain([0.0], [1.0], [10.0], (0.0, 0.0, 0.0)), [controller], start={"c0.setpoint": 0.5})
    with pytest.raises(SimulationError, match=r"at the nearest point c0\.integral_part would change by 25 N") as told:
        model.equilibrium("position")
    assert "filtered" not in str(told.value)


@pytest.mark.parametrize("shut", [True, False])
def test_failed_searches_do_not_claim_that_there_is_no_rest(shut: bool) -> None:
    """What leaks from a load could be fed by a valve elsewhere, but not where there is none."""
    parts = (
        PressureSource(name="pump", node="P", pressure=60.0 * BAR),
        spool("valve", closed_centre(0.1), "a", b="b"),
    )
    model = table(parts, {"a": 5.0 * BAR, "b": 2.0 * BAR}, {}) if shut else table((), {"a": 5.0 * BAR}, {})
    with pytest.raises(SimulationError, match=r"circuit\.a\.pressure would change by -") as told:
        model.equilibrium("position")
    hint = "This does not show that there is none, nor that what is missing there is the cause: the start of the model"
    assert (hint in str(told.value)) is shut


def test_source_that_is_too_weak_for_the_load_is_at_fault() -> None:
    """1 t on a plunger of 0.1 m takes 12.5 bar and the air's; the pump gives 10 bar, which no command changes."""
    pump = PressureSource(name="pump", node="P", pressure=10.0 * BAR)
    valve = spool("valve", three_way(0.1), "a")
    with pytest.raises(SimulationError) as told:
        table((pump, valve), {"a": 5.0 * BAR}, {}).equilibrium("position", ["circuit.valve.command"])
    carrying = 1000.0 * GRAVITY / (pi / 4.0 * BORE**2) + 101325.0
    needed = f"circuit.a.pressure has to be {carrying:.4g} Pa to carry the loads"
    assert str(told.value).endswith(f"{needed}, and sources of its circuit bring about 1e+06 Pa")


def test_relief_valve_that_is_set_too_low_for_the_load_is_named() -> None:
    """The same load behind a pump whose relief valve is open at 9 bar and 1 bar more at most."""
    pump = FlowSource(name="pump", node="P", constant_flow=1e-4)
    relief = ReliefValve(name="relief", inlet="P", outlet="T", rated_flow=1e-3, setting=9.0 * BAR, override=1.0 * BAR)
    circuit = (
        pump,
        relief,
        spool("valve", three_way(0.1), "a"),
        Hose(name="hose", node="P", volume=1e-3, bulk_modulus=8e8),
    )
    with pytest.raises(SimulationError) as told:
        table(circuit, {"a": 5.0 * BAR, "P": 9.0 * BAR}, {}).equilibrium("position", ["circuit.valve.command"])
    carrying = 1000.0 * GRAVITY / (pi / 4.0 * BORE**2) + 101325.0
    assert f"circuit.a.pressure has to be {carrying:.4g} Pa to carry the loads" in str(told.value)
    assert "circuit.relief lets go what they give at its setting of 9e+05 Pa and its override" in str(told.value)


@pytest.mark.parametrize("setting", [8.0, 20.0])
@pytest.mark.parametrize("source", [60.0, 13.0])
def test_relief_valve_behind_a_throttle_is_named_where_it_lets_the_load_sink(setting: float, source: float) -> None:
    """The same load, for which the source is strong enough or not, behind a throttle that feeds less than the valve."""
    circuit = (
        PressureSource(name="pump", node="P", pressure=source * BAR),
        Throttle(name="gate", inlet="P", outlet="a", orifice_diameter=5e-4, discharge_coefficient=0.7),
        ReliefValve(name="relief", inlet="a", outlet="T", rated_flow=1e-3, setting=setting * BAR, override=BAR),
    )
    with pytest.raises(SimulationError) as told:
        table(circuit, {"a": 5.0 * BAR}, {}).equilibrium("position")
    carrying = 1000.0 * GRAVITY / (pi / 4.0 * BORE**2) + 101325.0
    sentence = str(told.value)
    assert (f"circuit.a.pressure has to be {carrying:.4g} Pa to carry the loads" in sentence) is (
        setting == 8.0 or source == 13.0
    )
    assert ("circuit.relief lets oil go there at its setting of 8e+05 Pa and its override" in sentence) is (
        setting == 8.0
    )
    assert ("sources of its circuit bring about 1.3e+06 Pa" in sentence) is (source == 13.0)
