"""A mechanism is assembled again where something that its loops follow from has changed, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu.initialization import initialization
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats


@pytest.fixture
def assembled(monkeypatch: pytest.MonkeyPatch) -> list[Floats]:
    """Where mechanisms were assembled from."""
    guesses: list[Floats] = []
    close = initialization.close_loops

    def noted(functions: Any, guess: Floats, *others: Any) -> Any:
        guesses.append(guess)
        return close(functions, guess, *others)

    monkeypatch.setattr(initialization, "close_loops", noted)
    return guesses


def four_bar() -> Simulation:
    return mbsfmu.models.four_bar().simulation(compiled=False)


def angles(simulation: Simulation) -> list[float]:
    simulation.initialize()
    names = [each.name for each in simulation.variables if each.name.endswith((".angle", "angular_velocity"))]
    assert len(names) >= 4
    return [simulation.get(name) for name in names]


def test_pressures_and_masses_do_not_assemble_again(assembled: list[Floats]) -> None:
    simulation = four_bar()
    before = angles(simulation)
    assembled.clear()
    for name, factor in (("pump.pressure", 1.1), ("boom.mass", 2.0), ("cylinder.viscous_friction", 0.5)):
        simulation.set(name, factor * simulation.get(name))
        assert angles(simulation) == before
    assert not assembled


@pytest.mark.parametrize(("name", "change"), [("boom.length", 0.01), ("boom.angular_velocity_start", 0.3)])
def test_what_loops_follow_from_does(assembled: list[Floats], name: str, change: float) -> None:
    """As a simulation that was never assembled otherwise; back again it is the first to the last bit."""
    simulation = four_bar()
    before, value = angles(simulation), simulation.get(name)
    assembled.clear()
    simulation.set(name, value + change)
    found = angles(simulation)
    assert assembled
    fresh = four_bar()
    fresh.set(name, value + change)
    np.testing.assert_array_equal(found, angles(fresh))
    assert np.max(np.abs(np.subtract(found, before))) > 1e-4
    simulation.set(name, value)
    assert angles(simulation) == before
