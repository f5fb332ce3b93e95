"""Rest that shut valves leave open: where the machine itself would settle from its start, by hand and by runs."""

from __future__ import annotations

from math import cos, pi, radians, sin, sqrt
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hydraulics import (
    Accumulator,
    CheckValve,
    Circuit,
    Cylinder,
    FlowSource,
    Hose,
    Oil,
    PressureSource,
    ReliefValve,
    SingleActingCylinder,
    Tank,
    Throttle,
)
from mbsfmu import Actuator, Beam, CoupledModel, InputError, JointDrive, Mechanism, Prismatic, Revolute, RigidBody
from mbsfmu.cli.equilibrium import command
from mbsfmu.equilibrium.model_equilibrium import Equilibrium

GRAVITY, ATMOSPHERE = 9.81, 101325.0
LIQUID, WALL, HOSE_WALL, LINE = 1.5e9, 2e10, 1e9, 1e-3
OIL = Oil(bulk_modulus=LIQUID, density=870.0, air_content=0.0)
BORE, ROD = 0.1, 0.06
AREA, RING = pi / 4.0 * BORE**2, pi / 4.0 * (BORE**2 - ROD**2)
MASS, PRESSURES = 1500.0, {"a": 4e6, "b": 1e6}


def jack(**fields: Any) -> Cylinder:
    """A cylinder of 1 m of stroke between the nodes a and b."""
    sizes = {"piston_diameter": BORE, "rod_diameter": ROD, "stroke": 1.0, "retracted_length": 1.0}
    return Cylinder(name="jack", piston="a", rod="b", bulk_modulus=WALL, **sizes, **fields)


def hoses(*nodes: str) -> tuple[Hose, ...]:
    return tuple(Hose(name=f"hose_{node}", node=node, volume=LINE, bulk_modulus=HOSE_WALL) for node in nodes)


LOAD = RigidBody(name="load", mass=MASS, inertia=(10.0, 10.0, 10.0))
GUIDE = Prismatic(name="guide", parent="ground.foot", child="load.origin", axis=(0.0, 1.0, 0.0), displacement=1.4)
PUSH = Actuator(name="jack", start="ground.foot", end="load.origin")
LINES = [
    ("circuit.jack.force", "machine.jack.force"),
    ("machine.jack.length", "circuit.jack.length"),
    ("machine.jack.velocity", "circuit.jack.velocity"),
]


def lift(*components: Any, oil: Oil = OIL, pressures: Any = PRESSURES, beside: Any = (), **fields: Any) -> CoupledModel:
    """A mass that a cylinder carries upright, whose oil cannot leave; a body, joint and force beside it."""
    bodies, joints, forces = zip(*beside, strict=True) if beside else ((), (), ())
    machine = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0), "pin": (3.0, 0.0, 0.0)},
        bodies=(LOAD, *bodies),
        joints=(GUIDE, *joints),
        forces=(PUSH, *filter(None, forces)),
        **fields,
    )
    circuit = Circuit(oil=oil, components=components, initial_pressures=pressures)
    return CoupledModel(name="lift", systems={"machine": machine, "circuit": circuit}, connections=LINES)


def sinking() -> float:
    """Return how far the load goes down on oil that is shut in: V Δp / K of both sides, with hoses and walls."""
    compliance = {
        side: LINE * (1.0 / LIQUID + 1.0 / HOSE_WALL) + area * length * (1.0 / LIQUID + 1.0 / WALL)
        for side, area, length in (("a", AREA, 0.4), ("b", RING, 0.6))
    }
    stiffness = AREA**2 / compliance["a"] + RING**2 / compliance["b"]
    return (MASS * GRAVITY - (PRESSURES["a"] * AREA - PRESSURES["b"] * RING)) / stiffness


def test_trapped_oil_carries_a_load_as_a_spring_does() -> None:
    """The load sinks by fractions of a millimetre, and pressures change; what is open says by how much it has moved."""
    found = lift(jack(), *hoses("a", "b")).equilibrium()
    down = 1.4 - found["machine.load.displacement"]
    assert abs(sinking()) > 1e-4
    assert down == pytest.approx(sinking(), rel=5e-3)
    carried = found["circuit.a.pressure"] * AREA - found["circuit.b.pressure"] * RING
    assert carried == pytest.approx(MASS * GRAVITY, rel=1e-9)
    assert set(found.kept) == {"machine.load.displacement", "circuit.a.pressure", "circuit.b.pressure"}
    assert found.moved["machine.load.displacement"] == pytest.approx(-down, rel=1e-12)
    assert found.moved["circuit.a.pressure"] == pytest.approx(found["circuit.a.pressure"] - 4e6, rel=1e-12)
    assert "as the guess has it" not in repr(found)
    assert f"open, moved from the guess: machine.load.displacement by {-down:.3g} m" in repr(found)


@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_run_from_the_start_settles_there(formulation: str) -> None:
    """With air in its oil; its friction takes what it swings with."""
    rubbing = jack(viscous_friction=6e4)
    model = lift(rubbing, *hoses("a", "b"), oil=OIL.model_copy(update={"air_content": 0.005}))
    found = model.equilibrium()
    run = model.simulation(formulation=formulation, solver="rodas5p", compiled=False).run(3.0, output_step=0.5)
    for name, own in (("machine.load.displacement", "load.displacement"), ("circuit.b.pressure", "b.pressure")):
        moved = run[own][-1] - run[own][0]
        assert abs(run[own][-1] - run[own][-2]) < 1e-4 * abs(moved)
        assert found[name] - run[own][0] == pytest.approx(moved, rel=1e-2)


@pytest.mark.parametrize("charged", [1e6, 2e6])
def test_oil_of_an_accumulator_stays_in_the_circuit(charged: float) -> None:
    """Over a throttle, through which it flows at the start: what the gas gives way moves the plunger, by 0.4 m."""
    plunger = SingleActingCylinder(
        name="jack", piston="a", piston_diameter=BORE, stroke=1.0, retracted_length=1.0, bulk_modulus=WALL
    )
    gas = Accumulator(name="gas", node="b", volume=5e-3, precharge_pressure=8e5, inlet_diameter=5e-3)
    line = Throttle(name="line", inlet="a", outlet="b", orifice_diameter=5e-3, discharge_coefficient=0.7)
    model = lift(plunger, gas, line, *hoses("a", "b"), pressures={"a": 1e6, "b": charged})
    found = model.equilibrium()
    pressure = ATMOSPHERE + MASS * GRAVITY / AREA
    assert found["circuit.a.pressure"] == pytest.approx(pressure, rel=1e-9)

    def oil_in_gas(at: float) -> float:
        return 5e-3 * (1.0 - (8e5 / at) ** (1.0 / 1.3))

    line_up = LINE * (1.0 / LIQUID + 1.0 / HOSE_WALL)
    barrel = AREA * 0.4 * (1.0 / LIQUID + 1.0 / WALL)
    taken = oil_in_gas(pressure) - oil_in_gas(charged)
    taken += line_up * (2.0 * pressure - 1e6 - charged) + barrel * (pressure - 1e6)
    assert found["machine.load.displacement"] - 1.4 == pytest.approx(-taken / AREA, rel=5e-3)
    assert found.stable


def test_unstable_rest_beside_trapped_oil() -> None:
    """A beam that nearly stands is found standing; the load beside it sinks as its oil lets it all the same."""
    beam = Beam(name="beam", length=2.0, mass=10.0)
    hinge = Revolute(name="hinge", parent="ground.pin", child="beam.start", angle=radians(85.0))
    found = lift(jack(), *hoses("a", "b"), beside=[(beam, hinge, None)]).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(pi / 2.0, abs=1e-9)
    assert not found.stable
    assert 1.4 - found["machine.load.displacement"] == pytest.approx(sinking(), rel=5e-3)


@pytest.mark.parametrize("horizon", [0.2, 1.0, 5.0])
def test_horizon_leaves_positions_where_they_are(horizon: float) -> None:
    """Its piston leaks: pressures carry the load where it is, and creep as leakage by hand."""
    leakage = 3e-13
    found = lift(jack(leakage=leakage), *hoses("a", "b")).equilibrium(horizon=horizon)
    assert found["machine.load.displacement"] == pytest.approx(1.4, abs=5e-4)
    a, b = found["circuit.a.pressure"], found["circuit.b.pressure"]
    assert a * AREA - b * RING == pytest.approx(MASS * GRAVITY, rel=1e-9)
    compliance = LINE * (1.0 / LIQUID + 1.0 / HOSE_WALL) + AREA * 0.4 * (1.0 / LIQUID + 1.0 / WALL)
    rate = -leakage * (a - b) / compliance
    assert found.moving["circuit.a.pressure"] == pytest.approx(rate, rel=0.01)
    assert found.stable
    assert f"stable within the horizon of {horizon:g} s, but for what creeps: circuit." in found.stability


def test_what_is_held_does_not_move_what_is_shut_in() -> None:
    """An arm on a cylinder whose oil is shut in stays, by a millimetre, while another one is held by what it takes."""
    boom = Beam(name="boom", length=3.0, mass=900.0, points={"eye": (1.0, 0.0, 0.0)})
    arm = Beam(name="arm", length=1.0, mass=30.0)
    machine = Mechanism(
        ground={"pin": (0.0, 1.0, 0.0), "foot": (0.5, 0.0, 0.0), "side": (5.0, 0.0, 0.0)},
        bodies=(boom, arm),
        joints=(
            Revolute(name="pin", parent="ground.pin", child="boom.start", angle=0.5),
            Revolute(name="side", parent="ground.side", child="arm.start", angle=0.2),
        ),
        forces=(
            Actuator(name="jack", start="ground.foot", end="boom.eye"),
            JointDrive(name="drive", joint="side"),
        ),
    )
    circuit = Circuit(oil=OIL, components=(jack(), *hoses("a", "b")), initial_pressures=PRESSURES)
    model = CoupledModel(name="arms", systems={"machine": machine, "circuit": circuit}, connections=LINES)
    found = model.equilibrium({"machine.arm.angle": 0.7}, ["machine.drive.torque"])
    assert found["machine.drive.torque"] == pytest.approx(30.0 * GRAVITY * 0.5 * cos(0.7), rel=1e-9)
    angle = found["machine.boom.angle"]
    assert angle == pytest.approx(0.5, abs=1e-3)
    along = np.array([cos(angle) - 0.5, 1.0 + sin(angle)])
    turning = (cos(angle) * along[1] - sin(angle) * along[0]) / sqrt(float(along @ along))
    assert found["circuit.jack.force"] == pytest.approx(900.0 * GRAVITY * 1.5 * cos(angle) / turning, rel=1e-9)


def fed(pressure: float) -> Equilibrium[CoupledModel]:
    """The lift at rest where it is, held by a source's pressure that is asked for from a guess."""
    source = PressureSource(name="supply", node="S", pressure=5e6)
    gate = Throttle(name="gate", inlet="S", outlet="a", orifice_diameter=2e-3, discharge_coefficient=0.7)
    held = ("machine.load.displacement", "circuit.b.pressure")
    return lift(jack(), *hoses("a", "b"), source, gate).equilibrium(held, {"circuit.supply.pressure": pressure})


def test_guess_where_slopes_or_rates_are_beyond_all_numbers() -> None:
    """No step goes along such a slope, and other ways lead to what holds the load; such rates are refused."""
    found = fed(1e12)
    with pytest.raises(InputError, match="lift: loads or rates are beyond all numbers where the search begins"):
        fed(1e13)
    assert found["circuit.supply.pressure"] == pytest.approx((MASS * GRAVITY + 1e6 * RING) / AREA, rel=1e-9)


def shut_in(pressure: float, *sources: Any) -> CoupledModel:
    """A node b behind a check valve from S."""
    check = CheckValve(name="check", inlet="S", outlet="b", rated_flow=1e-3, cracking_pressure=1e5, full_pressure=2e5)
    nodes = "b" if isinstance(sources[0], PressureSource) else "bS"
    given = {"b": pressure} if nodes == "b" else {"b": pressure, "S": 2e6}
    circuit = Circuit(oil=OIL, components=(*sources, check, *hoses(*nodes)), initial_pressures=given)
    return CoupledModel(name="trap", systems={"circuit": circuit})


SUPPLY = PressureSource(name="supply", node="S", pressure=1e6)
FLOW = FlowSource(name="flow", node="S", constant_flow=1e-4)
RELIEF = ReliefValve(name="relief", inlet="S", outlet="T", rated_flow=1e-3, setting=2e6, override=5e5)
BLEED = Throttle(name="bleed", inlet="S", outlet="T", orifice_diameter=2e-3, discharge_coefficient=0.7)
TANK = Tank(name="tank", node="T")


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        (shut_in(3e6, SUPPLY), 1e6),
        (shut_in(1.02e6, SUPPLY), None),  # of the size of what drops over valves
        (shut_in(4e6, FLOW, RELIEF, TANK), 2.5e6),  # where the relief valve passes its rated flow
        (shut_in(2.4e6, FLOW, RELIEF, TANK), None),
        (shut_in(4e6, FLOW, BLEED, TANK), None),  # what the flow could bring about is not known
    ],
)
def test_pressures_above_all_sources_are_told(
    model: CoupledModel, bound: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it is known what sources bring about: their pressures, or what relief valves leave of flows."""
    found = model.equilibrium()
    assert found.above_sources == ({} if bound is None else {"circuit.b.pressure": pytest.approx(bound)})
    told = f"circuit.b.pressure is {found['circuit.b.pressure']:.4g} Pa, and sources of its circuit bring about"
    assert (told in repr(found)) is (bound is not None)
    assert (told in caplog.text) is (bound is not None)


def test_load_on_a_circuit_without_sources_is_no_matter() -> None:
    """Nothing is said of a cylinder without a supply, nor where a tank is all there is."""
    for beside in (
        (),
        (
            TANK,
            Throttle(name="drain", inlet="T", outlet="T2", orifice_diameter=1e-3, discharge_coefficient=0.7),
            *hoses("T2"),
        ),
    ):
        model = lift(jack(), *hoses("a", "b"), *beside, pressures={**PRESSURES, **({"T2": 1e5} if beside else {})})
        assert model.equilibrium().above_sources == {}


def test_command_says_what_has_moved(tmp_path: Any) -> None:
    """In the words of Python's result, and in the file."""
    source = tmp_path / "lift.json"
    lift(jack(), *hoses("a", "b")).to_file(source)
    done = CliRunner().invoke(command, [str(source)])
    assert done.exit_code == 0, done.output
    assert "open, moved from the guess: machine.load.displacement by" in done.output
