"""One variable, one full name: `system.variable` means it everywhere, and so does its end where that is unique."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu import (
    CoupledModel,
    InputError,
    JointDrive,
    Mechanism,
    PidController,
    Prismatic,
    RigidBody,
    Simulation,
)


def positioned(*others: str) -> CoupledModel:
    """A carriage whose position a PID controller brings to a setpoint, and controllers that nothing follows."""
    carriage = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="carriage", mass=20.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="carriage.origin"),),
        forces=(JointDrive(name="motor", joint="rail"),),
    )
    controller = PidController(proportional=4e3, measured_unit="m", command_unit="N")
    measured = [("machine.carriage.displacement", f"{name}.measured") for name in ("controller", *others)]
    return CoupledModel(
        name="positioned",
        systems={"machine": carriage, **dict.fromkeys(("controller", *others), controller)},
        connections=[*measured, ("controller.command", "machine.motor.force")],
        start={f"{name}.setpoint": 0.1 for name in ("controller", *others)},
    )


def simulation(*others: str) -> Simulation:
    return positioned(*others).simulation(compiled=False)


@pytest.mark.parametrize("name", ["controller.proportional", "proportional"])
@pytest.mark.parametrize("result_name", ["controller.command", "command"])
def test_both_names_mean_the_variable(name: str, result_name: str) -> None:
    made = simulation()
    made.set(name, 100.0)
    assert made.get("proportional") == made.get("controller.proportional") == 100.0
    result = made.run(0.01)
    assert result[result_name][0] == pytest.approx(100.0 * 0.1)
    assert (result_name in result, result.unit(result_name)) == (True, "N")
    assert result.chosen([result_name]) == result.chosen(["controller.com*"]) == ("controller.command",)


def test_every_variable_is_found_by_its_system() -> None:
    """In the monolithic simulation, and in that of one system alone."""
    for made in (simulation(), positioned().simulation_of("controller")):
        assert made.exposed.qualified
        for name, full in made.exposed.qualified.items():
            if name in {each.name for each in made.variables}:
                assert made.get(full) == made.get(name) or np.isnan(made.get(name))


def test_a_connected_input_is_read_by_its_name() -> None:
    """It has the value of its output; on its way to the setpoint the carriage has moved."""
    made = simulation("spare")
    result = made.run(0.01)
    for output, read in (("controller.command", "machine.motor.force"), ("carriage.displacement", "spare.measured")):
        assert made.get(read) == made.get(output) != 0.0
        np.testing.assert_array_equal(result[read], result[output])
    with pytest.raises(InputError, match=r"machine\.motor\.force is computed and cannot be set"):
        made.set("machine.motor.force", 1.0)


def test_a_short_name_is_enough_where_it_is_unique() -> None:
    """Another controller makes it mean two; names with their systems mean what they meant."""
    one, two = simulation(), simulation("spare")
    for made in (one, two):
        made.set("controller.proportional", 100.0)
        made.set("machine.carriage.mass", 30.0)
        assert made.get("mass") == made.get("carriage.mass") == 30.0
    assert two.get("spare.proportional") == 4e3
    for ask in (lambda: two.set("proportional", 1.0), lambda: two.run(0.002)["command"]):
        with pytest.raises(InputError, match=r"is ambiguous: it may be controller\.\w+ or spare\.\w+"):
            ask()
    np.testing.assert_array_equal(two.run(0.01)["controller.command"], one.run(0.01)["controller.command"])


def test_what_a_system_adds_renames_nothing() -> None:
    """Neither variables of blocks, which have no dot, nor those of parts, whose names have one."""
    model = positioned()
    names = [each.name for each in model.simulation(compiled=False).variables]
    assert {"carriage.displacement", "controller.command"} <= set(names)
    twin = model.systems["machine"]
    more = model.model_copy(update={"systems": {**positioned("spare").systems, "twin": twin}, "start": {}})
    known = [each.name for each in more.simulation(compiled=False).variables]
    assert [name for name in known if name in set(names)] == names
    assert {"twin.carriage.displacement", "spare.command"} <= set(known)


def test_connections_rename_nothing() -> None:
    """A drive of the second machine has its system's name, though a connection drives that of the first."""
    model = positioned()
    twins = {**model.systems, "twin": model.systems["machine"]}
    for connections in (model.connections, model.connections[:-1]):
        made = model.model_copy(update={"systems": twins, "connections": connections}).simulation(compiled=False)
        inputs = {each.name for each in made.variables if each.causality == "input"}
        assert "twin.motor.force" in inputs
        assert ("motor.force" in inputs) == (connections is not model.connections)


def test_what_there_is_not_is_refused() -> None:
    made = simulation()
    for name in ("controller.kp", "spare.proportional", "machine.proportional", "controller.", ""):
        with pytest.raises(InputError, match=f"there is no variable '{name}' in positioned; "):
            made.set(name, 1.0)
        with pytest.raises(mbsfmu.InputError, match=f"there is no signal '{name}'"):
            _ = made.run(0.002)[name]
