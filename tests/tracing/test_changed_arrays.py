"""Equations follow what their arrays hold, also where an array is changed in place between two calls."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System, SystemContext, starts


def start(system: System) -> SystemContext:
    """Return the instant at which a system starts, everything else zero."""
    instant = system.instant(lambda part, size: np.zeros(size))
    instant.parameters[:] = starts(system.parameters)
    instant.coordinates[:], instant.velocities[:] = system.initial_coordinates(instant.parameters)
    instant.states[:] = system.initial_states(instant.parameters)
    return instant


def output(system: System, instant: SystemContext, name: str) -> float:
    names = [variable.name for variable in system.outputs]
    return float(system.evaluate_outputs(instant)[names.index(name)])


def test_a_pendulum_swings_by_its_closed_form() -> None:
    system = MechanismSystem(mbsfmu.models.pendulum(1).systems["mechanism"])
    instant = start(system)
    for angle, rate in ((0.0, 1.0), (0.5, 2.0), (-1.2, 2.0)):
        instant.coordinates[:], instant.velocities[:] = angle, rate
        # A link of 1 kg, 1 m and 1 kg m² about its centre, hinged at its end.
        assert output(system, instant, "energy.kinetic") == pytest.approx(0.5 * (1.0 + 0.25) * rate**2, rel=1e-14)
        assert output(system, instant, "energy.potential") == pytest.approx(9.81 * 0.5 * np.sin(angle), abs=1e-14)
        instant.accelerations[:] = 0.0
        assert system.residual(instant)[0] == pytest.approx(9.81 * 0.5 * np.cos(angle), rel=1e-14)


def test_connected_inputs_follow_too() -> None:
    system = mbsfmu.models.four_bar("frictionless", air_content=0.0).system()  # its states are pressures
    instant = start(system)
    instant.velocities[:] = 0.1, -0.2, 0.3
    power, force = output(system, instant, "cylinder.power"), output(system, instant, "cylinder.force")
    velocity = output(system, instant, "cylinder.velocity")
    assert power == pytest.approx(force * velocity, rel=1e-14)
    instant.velocities[:] = -instant.velocities
    instant.states[:] *= 1.5
    assert output(system, instant, "cylinder.velocity") == pytest.approx(-velocity, rel=1e-14)
    assert output(system, instant, "cylinder.power") == pytest.approx(
        -velocity * output(system, instant, "cylinder.force"), rel=1e-14
    )
    pressures = {variable.name: value for variable, value in zip(system.states, instant.states, strict=True)}
    assert output(system, instant, "cylinder.pressure_piston") == pressures["V2.pressure"]
