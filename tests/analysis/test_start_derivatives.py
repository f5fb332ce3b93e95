"""Derivatives of the start, held against starts that are found with other values."""

from __future__ import annotations

import numpy as np
import pytest
from excavator import excavator
from random_machines import random_machine

import mbsfmu
from mbsfmu import CoupledModel, InputError
from mbsfmu.analysis.start_derivatives import start_derivatives


def _starts(model: CoupledModel, name: str, change: float) -> np.ndarray:
    simulation = model.simulation(formulation="double-step", step=1e-3, compiled=False)
    simulation.set(name, simulation.get(name) + change)
    simulation.initialize()
    system = simulation.functions.system
    return np.array([simulation.get(each.name) for each in (*system.coordinates, *system.velocities)])


def _derivative(model: CoupledModel, name: str) -> np.ndarray:
    simulation = model.simulation(formulation="double-step", step=1e-3, compiled=False)
    names = [each.name for each in simulation.functions.system.parameters]
    chosen = names.index(simulation.variable(name).name)
    return start_derivatives(simulation, [chosen]).motion[: 2 * len(simulation.functions.coordinates), 0]


@pytest.mark.parametrize(
    ("seed", "name"),
    [(11, "body_1.angle_start_2"), (24, "body_1.cardan_angle_start.z"), (28, "body_1.displacement_start")],
)
def test_steps_shrink_where_the_start_is_smooth_next_to_a_value_only(seed: int, name: str) -> None:
    model, change = random_machine(seed), 1e-5
    expected = (_starts(model, name, change) - _starts(model, name, -change)) / (2.0 * change)
    np.testing.assert_allclose(_derivative(model, name), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("model", "name"), [("loop-8", "link_1.length"), ("loop-4", "link_2.length")])
def test_a_start_that_turns_off_on_one_side_has_no_derivative(model: str, name: str) -> None:
    """Symmetric loops are closed by other links on either side: the slopes of the two sides are different ones."""
    found, change = mbsfmu.models.built_in(model), 1e-6
    middle = _starts(found, name, 0.0)
    sides = [(_starts(found, name, sign * change) - middle) / (sign * change) for sign in (-1.0, 1.0)]
    assert np.max(np.abs(sides[1] - sides[0])) > 0.1
    with pytest.raises(InputError, match=f"has no derivative by {name}"):
        _derivative(found, name)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("four-bar", "boom.mass"),
        ("four-bar", "ground.E.y"),
        ("four-bar", "hose_3.volume"),
        ("four-bar", "rocker.angular_velocity_start"),
        ("five-bar", "link_1.angle_start"),
        ("quick-return", "cylinder.retracted_length"),
        ("slewing-four-bar", "coupler.length"),
    ],
)
def test_the_start_follows_from_its_equations(model: str, name: str) -> None:
    """Coordinates, velocities, pressures that balance weights, and energies, against whole starts next to it."""
    simulation = mbsfmu.models.built_in(model).simulation(formulation="double-step", step=1e-3, compiled=False)
    system = simulation.functions.system
    names = [each.name for each in system.parameters]
    full = simulation.variable(name).name
    found = start_derivatives(simulation, [names.index(full)])
    variables = [*system.coordinates, *system.velocities, *system.states, *system.integrals]

    def begun(value: float) -> np.ndarray:
        simulation.set(full, value)
        simulation.initialize()
        return np.array([simulation.get(each.name) for each in variables])

    value = simulation.get(full)
    step = 1e-4 * (abs(value) or 1.0)
    near, far = (begun(value + width * step) - begun(value - width * step) for width in (1.0, 2.0))
    expected = (8.0 * near - far) / (12.0 * step)
    scales = np.abs(expected) + 1e-9 * np.abs(begun(value)) / step
    np.testing.assert_array_less(np.abs(found.motion[:, 0] - expected), 1e-6 * scales + 1e-9)
    assert np.any(expected != 0.0) or model == "slewing-four-bar"


def test_redundant_loops_that_a_parameter_would_open_are_refused() -> None:
    """One of several loops that close together is longer next to the value: none can be closed there."""
    with pytest.raises(InputError, match="one next to it is refused: machine cannot be assembled"):
        _derivative(random_machine(22), "body_1.at_0.z")


def test_a_start_value_at_its_limit_has_no_derivative() -> None:
    """The swash plate of the excavator's pump begins where its margin lets it."""
    with pytest.raises(InputError, match=r"has no derivative by pump\.margin .* or a start value reaches a limit"):
        _derivative(excavator(), "pump.margin")


def test_an_input_at_the_start_moves_pressures_that_balance_it() -> None:
    """A force on the rocker of the four-bar, whose start pressures hold it: by whole runs with other forces."""
    model = mbsfmu.models.four_bar()
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, mbsfmu.Mechanism)
    push = mbsfmu.AppliedForce(name="push", point="rocker.centre")
    pushed = mechanism.model_copy(update={"forces": (*mechanism.forces, push)})
    systems = {**model.systems, "mechanism": pushed}

    def run_with(force: float) -> mbsfmu.CoupledModel:
        signal = mbsfmu.StepSignal(times=(0.0,), values=(force,), initial=force)
        return model.model_copy(update={"systems": systems, "signals": {"mechanism.push.force.y": signal}})

    found = run_with(100.0).gradient("mean(cylinder.pressure_piston)", inputs=["push.force.y"], step=1e-3, stop=0.1)
    ends = [
        run_with(100.0 + change).gradient(
            "mean(cylinder.pressure_piston)", inputs=["push.force.y"], step=1e-3, stop=0.1
        )
        for change in (-1.0, 1.0)
    ]
    slope = 0.5 * (ends[1].value - ends[0].value)
    assert abs(slope) > 1.0
    assert sum(next(iter(found.inputs.values()))) == pytest.approx(slope, rel=1e-5)
