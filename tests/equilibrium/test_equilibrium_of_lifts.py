"""Loads on cylinders at rest: what circuits hold, closed forms, and runs that stay where they begin."""

from __future__ import annotations

import json
from functools import cache
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
from rest_machines import GRAVITY, alone, lever

from hydraulics import (
    Accumulator,
    CheckValve,
    Circuit,
    Cylinder,
    Hose,
    Oil,
    PressureSource,
    SingleActingCylinder,
    Throttle,
    balanced,
)
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    DataError,
    Equilibrium,
    InputError,
    JointDrive,
    LinearSignal,
    Mechanism,
    PidController,
    Prismatic,
    Revolute,
    RigidBody,
    SampledPidController,
    SimulationError,
)
from mbsfmu.equilibrium import model_equilibrium
from mbsfmu.systems.concatenated_system import CoupledSystem

ATMOSPHERE = 101325.0
TORN = Oil(bulk_modulus=1.5e9, density=870.0, air_content=0.0)
OIL = Oil(bulk_modulus=1.5e9, density=870.0)


def lift(circuit: Circuit, mass: float = 1000.0, **fields: object) -> CoupledModel:
    """A mass that a cylinder of a circuit lifts."""
    mechanism = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="load", mass=mass, inertia=(10.0, 10.0, 10.0)),),
        joints=(
            Prismatic(name="guide", parent="ground.foot", child="load.origin", axis=(0.0, 1.0, 0.0), displacement=1.4),
        ),
        forces=(Actuator(name="jack", start="ground.foot", end="load.origin"),),
    )
    return CoupledModel(
        name="lift",
        systems={"machine": mechanism, "circuit": circuit},
        connections=[
            ("circuit.jack.force", "machine.jack.force"),
            ("machine.jack.length", "circuit.jack.length"),
            ("machine.jack.velocity", "circuit.jack.velocity"),
        ],
        **fields,
    )


JACK = Cylinder(
    name="jack",
    piston="a",
    rod="b",
    piston_diameter=0.1,
    rod_diameter=0.06,
    stroke=1.0,
    retracted_length=1.0,
    bulk_modulus=2e10,
)
PLUNGER = SingleActingCylinder(
    name="jack", piston="a", piston_diameter=0.1, stroke=1.0, retracted_length=1.0, bulk_modulus=2e10
)
HOSES = tuple(Hose(name=f"hose_{node}", node=node, volume=1e-3, bulk_modulus=1e9) for node in "ab")
AREA = pi / 4.0 * 0.1**2
RING = pi / 4.0 * (0.1**2 - 0.06**2)


def test_what_cannot_be_held_is_named() -> None:
    """Load, coordinate and amount; an actuator without effect; a cylinder that would have to pull; a driven input."""
    with pytest.raises(
        SimulationError, match=r"90\.36 N\.m are missing at machine\.beam\.angle, whose acceleration would be -6\.78"
    ):
        alone(lever()).equilibrium("position")
    free = Mechanism(
        ground={"rail": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="box", mass=2.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="fall", parent="ground.rail", child="box.origin", axis=(0.0, 1.0, 0.0)),),
    )
    with pytest.raises(SimulationError, match=r"19\.62 N are missing at machine\.box\.displacement.* -9\.81 m/s2"):
        alone(free).equilibrium()
    wrong = alone(lever(0.4, Actuator(name="prop", start="ground.pin", end="beam.end")))
    with pytest.raises(
        SimulationError, match=r"are missing at machine\.beam\.angle.*machine\.prop\.force has no effect there"
    ):
        wrong.equilibrium("position", ["machine.prop.force"])
    with pytest.raises(
        InputError, match=r"there is no 'machine\.beam\.angel' to be held; did you mean 'machine\.beam\.angle'"
    ):
        wrong.equilibrium(["machine.beam.angel"])
    driven = lift(Circuit(oil=OIL, components=(JACK, *HOSES), initial_pressures={"a": 2e6, "b": 1e6}))
    with pytest.raises(InputError, match=r"there is no 'machine\.jack\.force' to be found that nothing drives"):
        driven.equilibrium("position", ["machine.jack.force"])
    with pytest.raises(InputError, match="the horizon is -1 s; it must be positive"):
        driven.equilibrium(horizon=-1.0)


def test_pressures_that_hold_a_cylinder() -> None:
    """F = p₁ A₁ − p₂ A₂: a locked cylinder is open along a line of pressures, of which the nearest point is taken."""
    model = lift(Circuit(oil=TORN, components=(JACK, *HOSES), initial_pressures={"a": 2e6, "b": 1e6}))
    found = model.equilibrium("position")
    a, b = found["circuit.a.pressure"], found["circuit.b.pressure"]
    assert a * AREA - b * RING == pytest.approx(1000.0 * GRAVITY, rel=1e-9)
    assert found.kept == ("circuit.a.pressure", "circuit.b.pressure")
    off = 1000.0 * GRAVITY - (2e6 * AREA - 1e6 * RING)
    assert (a - 2e6, b - 1e6) == pytest.approx(
        tuple(off / (AREA**2 + RING**2) * each for each in (AREA, -RING)), rel=1e-2
    )
    # With one of them held, the other one follows.
    fixed = model.equilibrium({"machine.load.displacement": None, "circuit.b.pressure": 1.5e6})
    assert fixed["circuit.a.pressure"] == pytest.approx((1000.0 * GRAVITY + 1.5e6 * RING) / AREA, rel=1e-9)
    # The load hangs, and the piston's side is held: the other side would have to push harder than oil does.
    with pytest.raises(
        SimulationError, match=r"it would rest with circuit\.b\.pressure = -\S+ Pa, which must be above"
    ):
        model.equilibrium({"machine.load.displacement": None, "circuit.a.pressure": 1e6})


def test_supply_that_holds_a_load() -> None:
    """The pressure of a source, asked for: all of the circuit comes to it."""
    components = (
        PressureSource(name="supply", node="S", pressure=5e6),
        Throttle(name="gate", inlet="S", outlet="a", orifice_diameter=2e-3, discharge_coefficient=0.7),
        PLUNGER,
        HOSES[0],
    )
    model = lift(Circuit(oil=OIL, components=components, initial_pressures={"a": 1e6}))
    found = model.equilibrium("position", ["circuit.supply.pressure"])
    assert found["circuit.supply.pressure"] == pytest.approx(ATMOSPHERE + 1000.0 * GRAVITY / AREA, rel=1e-9)
    assert found["circuit.a.pressure"] == pytest.approx(found["circuit.supply.pressure"], rel=1e-12)
    assert found.kept == ()
    result = found.model.simulation(compiled=False).run(0.05)
    assert np.ptp(result["load.displacement"]) < 1e-12


def test_accumulator_carries_a_load() -> None:
    """The gas' law at the load's pressure; and the plunger sinks as far as the oil that stays the same lets it."""
    gas = Accumulator(name="gas", node="a", volume=5e-3, precharge_pressure=8e5, inlet_diameter=5e-3)
    model = lift(Circuit(oil=OIL, components=(PLUNGER, HOSES[0], gas), initial_pressures={"a": 1e6}))
    found = model.equilibrium()
    pressure = ATMOSPHERE + 1000.0 * GRAVITY / AREA
    assert found["circuit.a.pressure"] == pytest.approx(pressure, rel=1e-9)
    assert found["circuit.gas.oil_volume"] == pytest.approx(5e-3 * (1.0 - (8e5 / pressure) ** (1.0 / 1.3)), rel=1e-9)
    assert found.model.start["circuit.a.initial_pressure"] == pytest.approx(pressure, rel=1e-9)
    result = found.model.simulation(compiled=False).run(0.05)
    assert np.ptp(result["gas.oil_volume"]) < 1e-12


@pytest.mark.parametrize("other", [1e6, 2e6])
def test_two_plungers_balance_as_a_manometer_does(other: float) -> None:
    """F₁ / A₁ = F₂ / A₂ over a line: the force that holds the other side; how high they stand is open.

    Their oil stays in them: what it is pressed together by, as its air is, is what the plungers sink by.
    """
    small = PLUNGER.model_copy(update={"name": "other", "piston": "b", "piston_diameter": 0.05})
    joined = Throttle(name="line", inlet="a", outlet="b", orifice_diameter=5e-3, discharge_coefficient=0.7)
    circuit = Circuit(oil=OIL, components=(PLUNGER, small, joined, *HOSES), initial_pressures={"a": 1e6, "b": other})
    mechanism = Mechanism(
        ground={"one": (0.0, 0.0, 0.0), "two": (1.0, 0.0, 0.0)},
        bodies=tuple(
            RigidBody(name=name, mass=mass, inertia=(1.0, 1.0, 1.0)) for name, mass in (("big", 800.0), ("light", 50.0))
        ),
        joints=(
            Prismatic(name="left", parent="ground.one", child="big.origin", axis=(0.0, 1.0, 0.0), displacement=1.5),
            Prismatic(name="right", parent="ground.two", child="light.origin", axis=(0.0, 1.0, 0.0), displacement=1.5),
        ),
        forces=(
            Actuator(name="jack", start="ground.one", end="big.origin"),
            Actuator(name="other", start="ground.two", end="light.origin"),
            JointDrive(name="hand", joint="right"),
        ),
    )
    connections = []
    for name in ("jack", "other"):
        connections += [
            (f"circuit.{name}.force", f"machine.{name}.force"),
            (f"machine.{name}.length", f"circuit.{name}.length"),
            (f"machine.{name}.velocity", f"circuit.{name}.velocity"),
        ]
    model = CoupledModel(name="press", systems={"machine": mechanism, "circuit": circuit}, connections=connections)
    found = model.equilibrium(find=["machine.hand.force"])
    assert found["machine.hand.force"] == pytest.approx(50.0 * GRAVITY - 800.0 * GRAVITY / 4.0, rel=1e-9)
    assert set(found.kept) == {"machine.big.displacement", "machine.light.displacement"}
    pressure = ATMOSPHERE + 800.0 * GRAVITY / AREA
    pressed = 0.0
    for begin, area in ((1e6, AREA), (other, AREA / 4.0)):
        rise, air = pressure - begin, 0.005 * ATMOSPHERE * (1.0 / begin - 1.0 / pressure)
        pressed += 1e-3 * (rise / 1.5e9 + rise / 1e9 + air) + 0.5 * area * (rise / 1.5e9 + rise / 2e10 + air)
    sunk = [1.5 - found[f"machine.{each}.displacement"] for each in ("big", "light")]
    assert sunk[0] * AREA + sunk[1] * AREA / 4.0 == pytest.approx(pressed, rel=3e-2)  # of long steps


def test_closed_valves_keep_what_the_guess_has() -> None:
    """Behind check valves that are shut pressures stay as they were given; the message says which."""
    check = CheckValve(name="check", inlet="S", outlet="b", rated_flow=1e-3, cracking_pressure=1e5, full_pressure=2e5)
    components = (PressureSource(name="supply", node="S", pressure=1e6), check, HOSES[1])
    model = CoupledModel(
        name="trap", systems={"circuit": Circuit(oil=OIL, components=components, initial_pressures={"b": 3e6})}
    )
    found = model.equilibrium()
    assert found["circuit.b.pressure"] == pytest.approx(3e6, rel=1e-12)
    assert found.kept == ("circuit.b.compression",)


@pytest.mark.parametrize("sampled", [False, True])
def test_controllers_come_to_rest(sampled: bool) -> None:
    """An integral part carries the load, the error is nothing, and a run stays put."""
    kind = SampledPidController if sampled else PidController
    own = {"sample_time": 0.01} if sampled else {}
    model = CoupledModel(
        name="servo",
        systems={
            "machine": lever(0.4, JointDrive(name="drive", joint="hinge")),
            "pid": kind(
                measured_unit="rad", command_unit="N.m", proportional=400.0, integral=200.0, derivative=60.0, **own
            ),
        },
        connections=[("machine.beam.angle", "pid.measured"), ("pid.command", "machine.drive.torque")],
        signals={"pid.setpoint": LinearSignal(times=(100.0, 101.0), values=(0.6, 0.0))},
    )
    found = model.equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(0.6, abs=1e-9)
    assert found["pid.integral_part"] == pytest.approx(10.0 * GRAVITY * cos(0.6), rel=1e-9)
    assert found.stable is (None if sampled else True)
    assert ("is not known: pid is sampled" in found.stability) is sampled
    result = found.model.simulation(compiled=False, step=5e-3).run(0.5)
    assert np.ptp(result["beam.angle"]) < 1e-9
    with pytest.raises(InputError, match=r"'pid\.setpoint' follows a signal; take it out of the signals"):
        model.equilibrium("position", ["pid.setpoint"])


def scissors() -> CoupledModel:
    """A parallelogram of three cranks, with redundant loops, under oblique gravity, on a cylinder that is locked."""
    names = ("left", "middle", "right")
    mechanism = Mechanism(
        gravity=(1.0, -9.81, 2.0),
        ground={**{name: (1.0 * index, 0.0, 0.0) for index, name in enumerate(names)}, "foot": (-1.0, 0.0, 0.0)},
        bodies=(
            *(Beam(name=name, length=1.0, mass=20.0) for name in names),
            RigidBody(
                name="deck",
                mass=200.0,
                inertia=(5.0, 20.0, 20.0),
                centre=(1.3, 0.1, 0.0),
                points={name: (1.0 * index, 0.0, 0.0) for index, name in enumerate(names)},
            ),
        ),
        joints=(
            *(Revolute(name=name, parent=f"ground.{name}", child=f"{name}.start", angle=1.1) for name in names),
            Revolute(name="top_left", parent="left.end", child="deck.left", angle=-1.1),
            Revolute(name="top_middle", parent="middle.end", child="deck.middle", cut=True),
            Revolute(name="top_right", parent="right.end", child="deck.right", cut=True),
        ),
        forces=(Actuator(name="jack", start="ground.foot", end="left.end"),),
    )
    circuit = Circuit(
        oil=OIL,
        components=(JACK.model_copy(update={"viscous_friction": 2e3}), *HOSES),
        initial_pressures={"a": balanced("jack"), "b": 1e6},
    )
    return CoupledModel(
        name="scissors",
        systems={"machine": mechanism, "circuit": circuit},
        connections=[
            ("circuit.jack.force", "machine.jack.force"),
            ("machine.jack.length", "circuit.jack.length"),
            ("machine.jack.velocity", "circuit.jack.velocity"),
            ("machine.jack.static_force", "circuit.jack.initial_load"),
        ],
    )


@cache
def resting_scissors() -> Equilibrium[CoupledModel]:
    """The same where it rests, found once."""
    return scissors().equilibrium()


@pytest.mark.parametrize("formulation", ["dca", "hdca", "dca-alm", "double-step", "penalty"])
def test_ten_seconds_from_an_equilibrium_stay_put(formulation: str) -> None:
    """Redundant loops, gravity across them, a locked cylinder; by virtual work F ds/dφ = weights times heights."""
    rest = resting_scissors()
    angle = rest["machine.left.angle"]
    length = sqrt((1.0 + cos(angle)) ** 2 + sin(angle) ** 2)
    work = (200.0 + 60.0 / 2.0) * (9.81 * cos(angle) + 1.0 * sin(angle))
    assert rest["circuit.jack.force"] * (-sin(angle) / length) == pytest.approx(work, rel=1e-9)
    result = rest.model.simulation(formulation=formulation, step=0.02, compiled=False).run(10.0, output_step=0.5)
    assert np.ptp(result["left.angle"]) < 1e-8
    assert np.ptp(result["a.pressure"]) < 1e-5 * np.mean(result["a.pressure"])


def test_refused_search_derives_its_equations_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where pressures balance an actuator at the start; numbers for these are for what has been found."""
    derived: list[str] = []
    derive = model_equilibrium.coupled_system

    def counted(model: Any, *, absolute: bool) -> CoupledSystem:
        derived.append(model.name)
        return derive(model, absolute=absolute)

    monkeypatch.setattr(model_equilibrium, "coupled_system", counted)
    with pytest.raises(SimulationError, match=r"machine\.jack\.length is \S+ m where 3 m was to be held"):
        scissors().equilibrium({"machine.jack.length": 3.0})
    assert derived == ["scissors"]


def test_model_that_starts_at_rest_goes_everywhere() -> None:
    """Its start is data: JSON, units, other starts of it; wrong ones are refused."""
    rest = resting_scissors().model
    again = CoupledModel.from_dict(json.loads(json.dumps(rest.to_dict())))
    assert again == rest
    assert again.systems["circuit"].initial_pressures["a"] > 0.0  # a number now
    alone_ = again.simulation_of("circuit")
    assert alone_.get("a.pressure") == pytest.approx(again.simulation(compiled=False).get("a.pressure"), rel=1e-12)
    fields = {name: getattr(rest, name) for name in CoupledModel.model_fields}
    for start, sentence in (
        (
            {"circuit.a.initial_presure": 1.0},
            "start: there is no 'a.initial_presure' in 'circuit' that starts anywhere",
        ),
        ({"circus.a.initial_pressure": 1.0}, "start: 'circus.a.initial_pressure' is of no system 'circus'"),
        ({"circuit.a.initial_pressure": -1.0}, r"start: circuit.a.initial_pressure is -1 Pa; it must be at least 0"),
        ({"machine.jack.force": 1.0}, "start: 'machine.jack.force' is driven by a connection"),
    ):
        with pytest.raises(DataError, match=sentence):
            CoupledModel(**{**fields, "start": start})
