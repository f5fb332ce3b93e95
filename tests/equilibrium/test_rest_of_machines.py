"""Rest of machines as users write them, from starts that are far from it; each is held against statics by hand."""

from __future__ import annotations

from math import cos, hypot, pi, radians, sin

import numpy as np
import pytest

from hydraulics import (
    Circuit,
    CounterbalanceValve,
    Cylinder,
    Hose,
    Oil,
    PressureSource,
    ProportionalValve,
    Tank,
    balanced,
    closed_centre,
)
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    Gear,
    InputError,
    JointDrive,
    JointSpringDamper,
    JointStop,
    Mechanism,
    PidController,
    Prismatic,
    RackAndPinion,
    Revolute,
    RigidBody,
    SimulationError,
)

GRAVITY, BAR, LITRES_PER_MINUTE = 9.81, 1e5, 1.0 / 60e3
OIL = Oil(bulk_modulus=1.4e9, density=870.0)
JACK = [
    ("circuit.jack.force", "machine.jack.force"),
    ("machine.jack.length", "circuit.jack.length"),
    ("machine.jack.velocity", "circuit.jack.velocity"),
    ("machine.jack.static_force", "circuit.jack.initial_load"),
]


def hoses(*nodes: str) -> list[Hose]:
    return [Hose(name=f"hose_{node}", node=node, volume=1e-3, bulk_modulus=8e8) for node in nodes]


# -- a scissor lift on a slope ------------------------------------------------------------------------------

ARM, TILT, FOOT, EYE = 2.4, radians(6.0), (1.6, -0.1, 0.0), 0.7
BORE, ROD = 0.08, 0.05


def scissors(angle: float) -> Mechanism:
    """Two crossing arms that carry a table of 500 kg, on a slope."""
    along = (1.0, 0.0, 0.0)
    return Mechanism(
        gravity=(GRAVITY * sin(TILT), -GRAVITY * cos(TILT), 0.0),
        ground={"O": (0.0, 0.0, 0.0), "foot": FOOT},
        bodies=(
            Beam(name="arm", length=ARM, mass=60.0, points={"eye": (EYE * ARM, 0.0, 0.0)}),
            Beam(name="cross", length=ARM, mass=60.0),
            RigidBody(name="slide", mass=8.0, inertia=(0.1, 0.1, 0.1)),
            RigidBody(name="table", mass=500.0, inertia=(50.0, 200.0, 200.0), centre=(0.9, 0.3, 0.0)),
            RigidBody(name="top", mass=6.0, inertia=(0.1, 0.1, 0.1)),
        ),
        joints=(
            Revolute(name="pin", parent="ground.O", child="arm.start", angle=angle),
            Revolute(name="middle", parent="arm.centre", child="cross.centre", angle=pi - 2.0 * angle),
            Prismatic(name="rail", parent="ground.O", child="slide.origin", axis=along, displacement=ARM * cos(angle)),
            Revolute(name="foot_pin", parent="slide.origin", child="cross.start", cut=True),
            Revolute(name="table_pin", parent="cross.end", child="table.origin", angle=angle - pi),
            Prismatic(
                name="top_rail", parent="table.origin", child="top.origin", axis=along, displacement=ARM * cos(angle)
            ),
            Revolute(name="top_pin", parent="top.origin", child="arm.end", cut=True),
        ),
        forces=(
            Actuator(name="jack", start="ground.foot", end="arm.eye"),
            JointSpringDamper(name="rub", joint="pin", damping=150.0),
        ),
    )


def held_jack() -> Circuit:
    """A pump, a spool and a cylinder behind a counterbalance valve."""
    valve = ProportionalValve(
        name="valve",
        supply="P",
        tank="T",
        a="V",
        b="B",
        edges=closed_centre(-0.02),
        rated_flow=30.0 * LITRES_PER_MINUTE,
        rated_drop=10.0 * BAR,
        time_constant=0.02,
    )
    holding = CounterbalanceValve(
        name="hold",
        load="A",
        valve="V",
        pilot="B",
        rated_flow=40.0 * LITRES_PER_MINUTE,
        rated_drop=20.0 * BAR,
        check_flow=40.0 * LITRES_PER_MINUTE,
        setting=200.0 * BAR,
        override=30.0 * BAR,
        pilot_ratio=4.0,
        time_constant=0.02,
    )
    jack = Cylinder(
        name="jack",
        piston="A",
        rod="B",
        piston_diameter=BORE,
        rod_diameter=ROD,
        stroke=1.1,
        retracted_length=0.6,
        bulk_modulus=31.5e9,
        viscous_friction=3000.0,
    )
    pump = PressureSource(name="pump", node="P", pressure=210.0 * BAR)
    return Circuit(
        oil=OIL,
        components=(pump, Tank(name="tank", node="T"), valve, holding, jack, *hoses("V", "A", "B")),
        initial_pressures={"A": balanced("jack"), "V": 60.0 * BAR, "B": 30.0 * BAR},
    )


def scissor_lift(angle: float) -> CoupledModel:
    """Two crossing arms, a table of 500 kg, a cylinder behind a counterbalance valve, a controller of the angle."""
    pid = PidController(
        proportional=6.0, integral=0.5, minimum=-1.0, maximum=1.0, measured_unit="rad", command_unit="1"
    )
    return CoupledModel(
        name="lift",
        systems={"machine": scissors(angle), "circuit": held_jack(), "pid": pid},
        connections=[*JACK, ("machine.arm.angle", "pid.measured"), ("pid.command", "circuit.valve.command")],
    )


def thrust_of_scissor_lift(angle: float) -> float:
    """Return the force of its cylinder by virtual work: dV / dl with the heights and ways of all centres."""
    down, across = GRAVITY * cos(TILT), -GRAVITY * sin(TILT)
    potential = down * ARM * cos(angle) * (60.0 + 500.0 + 6.0) - across * ARM * sin(angle) * (60.0 + 8.0 + 6.0)
    x, y = EYE * ARM * cos(angle) - FOOT[0], EYE * ARM * sin(angle) - FOOT[1]
    return potential / (EYE * ARM * (y * cos(angle) - x * sin(angle)) / hypot(x, y))


@pytest.mark.parametrize("start", [25.0, 5.0, 40.0, 60.0])
def test_set_point_of_a_scissor_lift(start: float) -> None:
    """It is where the angle is held, for the controller integrates; what carries the load is what statics say."""
    found = scissor_lift(radians(start)).equilibrium({"machine.arm.angle": 0.6}, ["pid.setpoint"])
    assert found["pid.setpoint"] == pytest.approx(0.6, rel=1e-9)
    assert found["circuit.jack.force"] == pytest.approx(thrust_of_scissor_lift(0.6), rel=1e-9)
    result = found.model.simulation(solver="rodas5p").run(1.0)
    assert np.ptp(result["arm.angle"]) < 1e-9
    assert np.ptp(result["A.pressure"]) < 1e-3 * BAR


def test_rest_on_an_end_stop() -> None:
    """Without a set point the lift goes down until its cylinder stands on its stop, pressed in as its loads say."""
    found = scissor_lift(radians(25.0)).equilibrium()
    area = pi / 4.0 * BORE**2
    oil = found["circuit.A.pressure"] * area - found["circuit.B.pressure"] * (area - pi / 4.0 * ROD**2)
    pressed = 0.6 - found["machine.jack.length"]
    assert 0.0 < pressed < 1e-3
    load = thrust_of_scissor_lift(found["machine.arm.angle"])
    assert oil + 1e8 * pressed == pytest.approx(load, rel=1e-9)
    result = found.model.simulation(solver="rodas5p").run(0.2)
    assert np.ptp(result["jack.length"]) < 1e-9


@pytest.mark.parametrize(
    ("angle", "sentence"),
    [
        (1e9, r"'machine\.arm\.angle' is to be held at 1e\+09 rad; it must be within ±1e\+06 rad"),
        (
            100.0,
            r"nearest point foot_pin \(x\) is open by .*machine\.arm\.angle is \S+ rad where 100 rad was to be held",
        ),
        (2.0, r"nearest point machine\.jack\.length is 2\.81\d+ m, which must be between 0\.5\d+ and 1\.7\d* m"),
    ],
)
def test_what_cannot_be_held_itself_is_at_fault(angle: float, sentence: str) -> None:
    """Not a load that is missing where the search gives up: arms of 2.4 m, a cylinder of 1.7 m at most."""
    with pytest.raises((InputError, SimulationError), match=sentence) as told:
        scissor_lift(radians(25.0)).equilibrium({"machine.arm.angle": angle}, ["pid.setpoint"])
    assert "guesses" not in str(told.value)  # no guess of a set point helps there


# -- others -------------------------------------------------------------------------------------------------


def winch(height: float, limit: float, **start: float) -> CoupledModel:
    """A motor on a gear of 20, a drum of 0.3 m, 1.5 t on its rope, a controller of the height."""
    size = (4.0, 4.0, 4.0)
    machine = Mechanism(
        ground={"o": (0.0, 0.0, 0.0), "well": (1.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="rotor", mass=5.0, inertia=(0.05, 0.05, 0.05)),
            RigidBody(name="drum", mass=80.0, inertia=size),
            RigidBody(name="load", mass=1500.0, inertia=size),
        ),
        joints=(
            Revolute(name="shaft", parent="ground.o", child="rotor.origin", angle=20.0 * height / 0.3),
            Revolute(name="axle", parent="ground.o", child="drum.origin", angle=height / 0.3),
            Prismatic(
                name="guide", parent="ground.well", child="load.origin", axis=(0.0, 1.0, 0.0), displacement=height
            ),
        ),
        constraints=(
            Gear(name="gear", driving="shaft", driven="axle", ratio=20.0),
            RackAndPinion(name="rope", pinion="axle", rack="guide", radius=0.3),
        ),
        forces=(
            JointDrive(name="motor", joint="shaft"),
            JointSpringDamper(name="bearing", joint="axle", damping=30.0),
        ),
    )
    pid = PidController(
        proportional=600.0,
        integral=300.0,
        derivative=30.0,
        minimum=-limit,
        maximum=limit,
        measured_unit="m",
        command_unit="N.m",
    )
    connections = [("machine.load.displacement", "pid.measured"), ("pid.command", "machine.motor.torque")]
    return CoupledModel(name="winch", systems={"machine": machine, "pid": pid}, connections=connections, start=start)


@pytest.mark.parametrize("height", [0.0, -5.0])
def test_shafts_that_have_many_turns_to_make(height: float) -> None:
    """Up to 467 rad of the motor, on which no lever depends: m g r / i holds; with less a load is missing."""
    torque = 1500.0 * GRAVITY * 0.3 / 20.0
    held = winch(height, 400.0).equilibrium({"machine.load.displacement": 2.0}, ["pid.setpoint"])
    assert held["pid.setpoint"] == pytest.approx(2.0, rel=1e-9)
    given = winch(height, 400.0, **{"pid.setpoint": 2.0}).equilibrium()
    assert given["machine.load.displacement"] == pytest.approx(2.0, rel=1e-9)
    assert (held["pid.command"], given["pid.command"]) == pytest.approx((torque, torque), rel=1e-8)
    assert given.stable


def test_drive_that_is_too_weak_is_at_fault() -> None:
    """What is missing is the rest of the torque, though the controller would be at its limit from any guess."""
    missing = 1500.0 * GRAVITY * 0.3 / 20.0 - 150.0
    with pytest.raises(SimulationError, match=rf"{missing:.2f} N\.m are missing at machine\.rotor\.angle"):
        winch(0.0, 150.0).equilibrium({"machine.load.displacement": 2.0}, ["pid.setpoint"])


def toggle(angle: float, **start: float) -> CoupledModel:
    """Two links of 0.3 m that press a pad on a stop at 0.59 m."""
    machine = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            Beam(name="one", length=0.3, mass=2.0),
            Beam(name="two", length=0.3, mass=2.0),
            RigidBody(name="pad", mass=1.0, inertia=(0.1, 0.1, 0.1)),
        ),
        joints=(
            Revolute(name="pin", parent="ground.O", child="one.start", angle=angle),
            Revolute(name="knee", parent="one.end", child="two.start", angle=-2.0 * angle),
            Prismatic(name="rail", parent="ground.O", child="pad.origin", displacement=0.6 * cos(angle)),
            Revolute(name="foot", parent="pad.origin", child="two.end", cut=True),
        ),
        forces=(
            JointStop(name="work", joint="rail", upper=0.59, stiffness=2e6, damping=0.5),
            JointDrive(name="hand", joint="pin"),
            JointSpringDamper(name="rub", joint="pin", damping=2.0),
        ),
    )
    return CoupledModel(name="toggle", systems={"machine": machine}, start=start)


def hand(angle: float) -> float:
    """Return the torque that holds the toggle, by virtual work of weights and stop."""
    push = 2e6 * max(0.6 * cos(angle) - 0.59, 0.0)
    return 2.0 * 2.0 * GRAVITY * 0.15 * cos(angle) - push * 0.6 * sin(angle)


@pytest.mark.parametrize("start", [0.7, 0.14])
def test_toggle_clamp_on_a_stop(start: float) -> None:
    """A stop that the guess does not touch; with the torque given, the links come to rest on it."""
    held = toggle(start).equilibrium({"machine.one.angle": 0.12}, ["machine.hand.torque"])
    assert held["machine.hand.torque"] == pytest.approx(hand(0.12), rel=1e-9)
    given = toggle(start, **{"machine.hand.torque": -100.0}).equilibrium()
    assert hand(given["machine.one.angle"]) == pytest.approx(-100.0, rel=1e-7)


# -- stability that the linear part leaves open -------------------------------------------------------------


def upright(share: float, damping: float = 3.0) -> CoupledModel:
    """A beam on its end, on a spring of a share of the stiffness m g l / 2 that just holds it."""
    stiffness = share * 10.0 * GRAVITY
    mechanism = Mechanism(
        gravity=(-GRAVITY, 0.0, 0.0),
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="beam", length=2.0, mass=10.0),),
        joints=(Revolute(name="hinge", parent="ground.pin", child="beam.start"),),
        forces=(JointSpringDamper(name="spring", joint="hinge", stiffness=stiffness, damping=damping),),
    )
    return CoupledModel(name="upright", systems={"machine": mechanism})


@pytest.mark.parametrize(("share", "stable"), [(1.1, True), (0.9, False), (1.0, None)])
def test_stability_is_not_claimed_where_the_linear_part_does_not_tell(share: float, stable: bool | None) -> None:
    """V = k φ² / 2 + m g l cos φ: with k = m g l it is of fourth order, and nothing linear brings the beam back."""
    found = upright(share).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(0.0, abs=1e-9)
    assert found.stable is stable
    assert ("neither grows nor fades" in found.stability) is (stable is None)


# -- names and guesses --------------------------------------------------------------------------------------


def test_guess_of_what_is_asked_for() -> None:
    """Where one torque alone holds, any guess leads to it; a wrong name gets the nearest."""
    machine = Mechanism(
        gravity=(-GRAVITY, 0.0, 0.0),
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="beam", length=2.0, mass=10.0),),
        joints=(Revolute(name="hinge", parent="ground.pin", child="beam.start", angle=0.3),),
        forces=(JointDrive(name="drive", joint="hinge"),),
    )
    model = CoupledModel(name="lever", systems={"machine": machine})
    for guess in (-500.0, 0.0, 1e4):
        found = model.equilibrium("position", {"machine.drive.torque": guess})
        assert found["machine.drive.torque"] == pytest.approx(-10.0 * GRAVITY * sin(0.3), rel=1e-9)
    with pytest.raises(
        InputError, match=r"no 'machine\.drive\.torqe' to be found .*did you mean 'machine\.drive\.torque'"
    ):
        model.equilibrium("position", ["machine.drive.torqe"])
