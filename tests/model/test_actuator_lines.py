"""Force, length and velocity of a cylinder belong to one actuator; connections are checked where a model is made."""

from __future__ import annotations

from itertools import product
from math import cos, sin

import pytest

import mbsfmu
from hydraulics import Circuit
from mbsfmu import CoupledModel, JointDrive, LinearSignal, Mechanism, Prismatic, RigidBody, StepSignal
from mbsfmu.modelling import DataError
from mbsfmu.models import four_bar

LINES = ("force", "length", "velocity")


def lines(circuit: str, force: str, length: str, velocity: str) -> tuple[tuple[str, str], ...]:
    """The lines of a circuit's cylinder, each with the mechanism that it goes to or comes from."""
    return (
        (f"{circuit}.cylinder.force", f"{force}.cylinder.force"),
        (f"{length}.cylinder.length", f"{circuit}.cylinder.length"),
        (f"{velocity}.cylinder.velocity", f"{circuit}.cylinder.velocity"),
        (f"{length}.cylinder.static_force", f"{circuit}.cylinder.initial_load"),
    )


def twins(*connections: tuple[str, str], signals: dict[str, StepSignal] | None = None) -> CoupledModel:
    """Two four-bars and two circuits."""
    machine, circuit = (four_bar().systems[name] for name in ("mechanism", "circuit"))
    systems = {"a": machine, "b": machine, "left": circuit, "right": circuit}
    return CoupledModel(name="twins", systems=systems, connections=connections, signals=signals or {})


@pytest.mark.parametrize("swapped", list(product([False, True], repeat=3)))
def test_lines_are_straight_or_crossed_all_together(swapped: tuple[bool, bool, bool]) -> None:
    left, right = (["b" if swap == to_b else "a" for swap in swapped] for to_b in (True, False))
    connections = (*lines("left", *left), *lines("right", *right))
    if len(set(swapped)) == 1:
        assert twins(*connections).connections == connections
        return
    with pytest.raises(DataError, match=r"^cylinder 'left\.cylinder' ") as caught:
        twins(*connections)
    for thing, line in zip(left[1:], LINES[1:], strict=True):
        assert f"its {line} from '{thing}.cylinder.{line}'" in str(caught.value)


def test_crossed_lines_are_told_apart_from_divided_ones() -> None:
    with pytest.raises(DataError) as caught:
        twins(*lines("left", "a", "b", "b"), *lines("right", "b", "a", "a"))
    assert str(caught.value) == (
        "cylinder 'left.cylinder' drives 'a.cylinder.force', but has its length from 'b.cylinder.length' and its "
        "velocity from 'b.cylinder.velocity'; what it drives must be what moves it"
    )
    with pytest.raises(DataError) as caught:
        twins(*lines("left", "a", "a", "b"))
    assert str(caught.value) == (
        "cylinder 'left.cylinder' has its length from 'a.cylinder.length' and its velocity from "
        "'b.cylinder.velocity'; the motion must be of one thing"
    )


def test_velocity_by_signal_beside_a_connected_length_is_refused() -> None:
    kept = [each for each in lines("left", "a", "a", "a") if not each[1].endswith("velocity")]
    still = StepSignal(times=(0.0,), values=(0.0,))
    with pytest.raises(DataError, match=r"its length from 'a\.cylinder\.length', but its velocity from a signal"):
        twins(*kept, signals={"left.cylinder.velocity": still})


def test_a_force_may_drive_a_copy_of_the_machine_too() -> None:
    """What moves the cylinder must be among what it drives."""
    connections = (*lines("left", "a", "a", "a"), ("left.cylinder.force", "b.cylinder.force"))
    assert twins(*connections).connections == connections
    with pytest.raises(DataError, match=r"drives 'b\.cylinder\.force', but has its length from 'a\."):
        twins(*lines("left", "b", "a", "a"))


def press(moving: str = "ram") -> CoupledModel:
    """A ram on a slide, driven along its joint by a cylinder, and a second one that nothing drives."""
    bodies = tuple(RigidBody(name=name, mass=5.0, inertia=(1.0, 1.0, 1.0)) for name in ("ram", "rest"))
    joints = tuple(
        Prismatic(name=f"slide_{each.name}", parent="ground.O", child=f"{each.name}.origin", displacement=1.3)
        for each in bodies
    )
    drive = JointDrive(name="press", joint="slide_ram")
    machine = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints, forces=(drive,))
    connections = (
        ("circuit.cylinder.force", "mechanism.press.force"),
        (f"mechanism.{moving}.displacement", "circuit.cylinder.length"),
        (f"mechanism.{moving}.velocity", "circuit.cylinder.velocity"),
    )
    systems = {"mechanism": machine, "circuit": four_bar().systems["circuit"]}
    return CoupledModel(name="press", systems=systems, connections=connections)


def test_a_drive_along_a_joint_moves_the_body_that_the_joint_carries() -> None:
    assert press().system().inputs
    with pytest.raises(DataError, match=r"drives 'mechanism\.press\.force', but has its length from 'mechanism\.rest"):
        press("rest")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("circuit.cylinder.forces", "mechanism.cylinder.force"), "connection: there is no output"),
        (("circuit.cylinder.force", "mechanism.cylinder.length"), "connection: 'mechanism.cylinder.length' cannot be"),
        (("oil.cylinder.force", "mechanism.cylinder.force"), "connection: 'oil.cylinder.force' names no system"),
        (("circuit.cylinder.pressure_rod", "mechanism.cylinder.force"), "is in Pa, but"),
        (("mechanism.cylinder.length", "circuit.cylinder.length"), "'circuit.cylinder.length' is driven twice"),
    ],
)
def test_wrong_connection_is_refused_where_the_model_is_made(changed: tuple[str, str], sentence: str) -> None:
    model = four_bar()
    kept = [each for each in model.connections if each[0] != "circuit.cylinder.force"]
    with pytest.raises(DataError) as caught:
        model.model_copy(update={"connections": (*kept, changed)})
    assert sentence in str(caught.value)


@pytest.mark.parametrize("target", ["circuit.valve.comand", "circuit.cylinder.length", "mechanism.boom.angle"])
def test_signal_for_no_free_input_is_refused_where_the_model_is_made(target: str) -> None:
    signals = {target: StepSignal(times=(0.0,), values=(1.0,))}
    with pytest.raises(DataError, match=f"'{target}' is no input that a signal can drive; "):
        mbsfmu.models.four_bar().model_copy(update={"signals": signals})


def without_load(load: float = 0.0) -> CoupledModel:
    """A four-bar whose cylinder balances its pressures, but is not told with what."""
    model = four_bar()
    circuit = model.systems["circuit"]
    assert isinstance(circuit, Circuit)
    parts = [
        each.model_copy(update={"initial_load": load} if each.name == "cylinder" else {}) for each in circuit.components
    ]
    changed = Circuit(oil=circuit.oil, components=tuple(parts), initial_pressures=circuit.initial_pressures)
    lines = [each for each in model.connections if not each[1].endswith("initial_load")]
    return CoupledModel(name="without", systems={**model.systems, "circuit": changed}, connections=tuple(lines))


def test_balanced_pressure_without_a_load_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        without_load()
    assert str(caught.value) == (
        "nothing gives 'circuit.cylinder.initial_load', with which the pressures of cylinder 'circuit.cylinder' are "
        "balanced at the start: connect 'mechanism.cylinder.static_force' to it, or give it a value"
    )
    assert without_load(2e4).simulation(compiled=False).get("cylinder.initial_load") == 2e4


def test_load_of_another_cylinder_is_refused() -> None:
    straight = lines("left", "a", "a", "a")
    with pytest.raises(DataError, match=r"its motion from 'a\.cylinder'; both must be of one thing"):
        twins(*straight[:-1], ("b.cylinder.static_force", "left.cylinder.initial_load"))


# -- motions that are signals -------------------------------------------------------------------------------


def driven(length: LinearSignal | StepSignal, velocity: LinearSignal | StepSignal) -> CoupledModel:
    signals = {"c.cylinder.length": length, "c.cylinder.velocity": velocity}
    circuit = four_bar().systems["circuit"]
    return CoupledModel(name="driven", systems={"c": circuit}, signals=signals, stop_time=3.0)


RAMP = LinearSignal(times=(0.5, 1.0), values=(1.2, 1.3))


@pytest.mark.parametrize(
    ("length", "velocity", "moved", "driven_by"),
    [
        (RAMP, StepSignal(times=(0.0,), values=(0.0,)), "0.1", "0"),
        (RAMP, StepSignal(times=(0.5, 1.0), values=(-0.2, 0.0)), "0.1", "-0.1"),
        (StepSignal(times=(0.0,), values=(1.2,)), StepSignal(times=(0.5, 1.0), values=(0.2, 0.0)), "0", "0.1"),
        (
            StepSignal(times=(0.0, 1.0), values=(1.2, 1.3)),
            LinearSignal(times=(0.0, 2.0), values=(0.0, 0.0)),
            "0.1",
            "0",
        ),
    ],
)
def test_velocity_is_the_rate_of_the_length(
    length: LinearSignal | StepSignal, velocity: LinearSignal | StepSignal, moved: str, driven_by: str
) -> None:
    with pytest.raises(DataError) as caught:
        driven(length, velocity)
    time = 2 if isinstance(velocity, LinearSignal) else 1
    assert str(caught.value) == (
        f"cylinder 'c.cylinder' has moved by {moved} at t = {time} s by the signal of its length, by {driven_by} by "
        "that of its velocity; the one must be the rate of the other"
    )


@pytest.mark.parametrize(
    ("length", "velocity"),
    [
        (RAMP, StepSignal(times=(0.5, 1.0), values=(0.2, 0.0))),
        (RAMP, StepSignal(times=(0.5,), values=(0.2,))),  # on and on, behind the end of the run that is meant
        (StepSignal(times=(0.0,), values=(1.2,)), StepSignal(times=(0.0,), values=(0.0,))),
        (
            LinearSignal(
                times=tuple(0.02 * i for i in range(101)), values=tuple(1.3 + 0.1 * sin(0.1 * i) for i in range(101))
            ),
            StepSignal(times=tuple(0.02 * i for i in range(101)), values=tuple(0.5 * cos(0.1 * i) for i in range(101))),
        ),
    ],
)
def test_signals_of_a_motion_may_be_sampled(
    length: LinearSignal | StepSignal, velocity: LinearSignal | StepSignal
) -> None:
    assert driven(length, velocity).signals["c.cylinder.length"] == length
