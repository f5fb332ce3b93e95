"""Life of a simulation: states, inputs, refusals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from oscillator_in_closed_form import JUMPS, oscillator

import mbsfmu
from mbsfmu import CoupledModel, InputError, SimulationError, StepSignal
from mbsfmu.base.times import counted
from mbsfmu.integration.solver import Inputs
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

FORMULATIONS = ("double-step", "penalty", "dca", "hdca")


def moving(formulation: str) -> Simulation:
    simulation = mbsfmu.models.four_bar().simulation(formulation=formulation)
    simulation.initialize()
    simulation.set("valve.command", 8.0)
    for index in range(20):
        simulation.step(index * 1e-3, 1e-3)
    return simulation


def everything(simulation: Simulation) -> list[float]:
    return [simulation.get(variable.name) for variable in simulation.variables]


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_restored_state_continues_to_the_last_bit(formulation: str) -> None:
    simulation, other = moving(formulation), moving(formulation)
    saved = simulation.save()
    other.set("valve.command", -3.0)
    other.step(0.020, 1e-3)
    other.restore(saved)
    for each in (simulation, other):
        for index in range(20, 40):
            each.step(index * 1e-3, 1e-3)
    assert everything(simulation) == everything(other)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_stepping_is_running(formulation: str) -> None:
    model = mbsfmu.models.four_bar()
    result = model.simulation(formulation=formulation).run(1.1)
    simulation = model.simulation(formulation=formulation)
    for index in range(550):
        simulation.step(index * 2e-3, 2e-3)  # two internal steps each
    assert simulation.get("cylinder.length") == pytest.approx(result["cylinder.length"][-1], rel=1e-12)


def test_jump_off_the_grid_is_met_exactly() -> None:
    """A jump at a third of a step: with the step divided there, the error stays that of the rule."""
    data = mbsfmu.models.four_bar().to_dict()
    jump = StepSignal(times=(0.01 + 1e-3 / 3.0,), values=(5.0,))
    model = CoupledModel.from_dict({**data, "signals": {"circuit.valve.command": jump.to_dict()}})
    ends = {step: model.simulation(step=step).run(0.1)["cylinder.length"][-1] for step in (1e-3, 1e-4)}
    motion = abs(ends[1e-4] - model.simulation(step=1e-3).run(0.01)["cylinder.length"][-1])
    assert abs(ends[1e-3] - ends[1e-4]) < 1e-3 * motion


def test_times_are_counted() -> None:
    times = counted(0.0, 1.0, 1e-3)
    assert len(times) == 1001
    assert times[-1] == 1.0
    assert times[700] == 700 * 1e-3
    np.testing.assert_allclose(counted(0.0, 0.25, 0.1), [0.0, 0.1, 0.2, 0.25])


def test_reset_and_parameters() -> None:
    simulation = mbsfmu.models.four_bar().simulation()
    simulation.set("boom.mass", 300.0)
    assert simulation.get("cylinder.static_force") > 12000.0
    simulation.step(0.0, 1e-3)
    with pytest.raises(InputError, match=r"boom.mass is a parameter that counts at initialization"):
        simulation.set("boom.mass", 200.0)
    simulation.reset()
    assert simulation.get("cylinder.static_force") == pytest.approx(11029.380862, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("valve.command", float("nan"), "valve.command = nan is refused: it must be a finite number"),
        ("boom.mass", -1.0, r"boom.mass = -1 kg is refused: it must be at least"),
        ("pump.pressure", 1e300, r"pump.pressure = 1e\+300 Pa is refused: its magnitude must be at most 1e\+50"),
        ("valve.command", -1e51, r"valve.command = -1e\+51 V is refused: its magnitude must be at most 1e\+50"),
        ("oil.air_content", 0.0, "^oil.air_content = 0 is refused: it must be between 1e-06 and 1$"),
        ("cylinder.length", 1.0, "cylinder.length is computed and cannot be set"),
        ("boom.weight", 1.0, "there is no variable 'boom.weight' in four-bar"),
    ],
)
def test_refused_values(name: str, value: float, sentence: str) -> None:
    simulation = mbsfmu.models.four_bar().simulation()
    with pytest.raises(InputError, match=sentence):
        simulation.set(name, value)


def test_piston_below_rod_is_refused_at_initialization() -> None:
    simulation = mbsfmu.models.four_bar().simulation()
    simulation.set("cylinder.piston_diameter", 0.03)
    with pytest.raises(ValueError, match=r"must be greater than cylinder\.rod_diameter"):
        simulation.initialize()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"formulation": "newton"}, "there is no formulation 'newton'; there are double-step, dca, "),
        ({"solver": "euler"}, "there is no solver 'euler'"),
        ({"step": 0.0}, "the step is 0 s; it must be positive"),
        ({"jacobian": "none"}, "there is no jacobian 'none'"),
        (
            {"formulation": "penalty", "solver": "rk45"},
            "needs an explicit form, which 'penalty' does not have",
        ),
    ],
)
def test_refused_options(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.models.four_bar().simulation(**options)


@pytest.mark.parametrize("solver", ["trapezoidal", "rk4", "rk45"])
def test_step_that_fails_on_its_way_leaves_the_state(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what its first internal steps and a jump inside it have changed; going on is as if it had not been tried."""
    model = oscillator()
    begin, end = JUMPS[0] - 0.0025, JUMPS[0] + 0.0025
    simulation, other = (model.simulation(compiled=False, solver=solver, step=1e-3) for _ in range(2))
    for each in (simulation, other):
        each.step(0.0, begin)
    before = everything(simulation)

    advance = simulation.solver.advance

    def failing(state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        if times[-1] > JUMPS[0]:
            raise SimulationError("not here")
        yield from advance(state, times, inputs)

    monkeypatch.setattr(simulation.solver, "advance", failing)
    with pytest.raises(SimulationError, match="not here"):
        simulation.step(begin, end - begin)
    monkeypatch.undo()
    assert simulation.time == begin
    assert everything(simulation) == before
    simulation.step(begin, 1e-3)
    other.step(begin, 1e-3)
    assert everything(simulation) == everything(other)


def test_impossible_lengths_are_refused() -> None:
    simulation = mbsfmu.models.four_bar().simulation()
    simulation.set("rocker.length", 0.1)
    simulation.set("link.length", 0.1)
    with pytest.raises(InputError, match="cannot be assembled: from the given start"):
        simulation.initialize()


def test_redundant_equations_are_dropped_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="mbsfmu"):
        mbsfmu.models.quick_return().simulation()
    assert "6 of 10 loop equations are redundant" in caplog.text


def test_state_of_another_model_or_formulation_is_refused() -> None:
    """Their states are equally long; with another step or tolerance it is the same motion and is taken."""
    model = mbsfmu.models.pendulum(2)
    saved = model.simulation(formulation="dca", step=1e-3, compiled=False).save()
    data = model.to_dict()
    data["systems"]["mechanism"]["bodies"][1]["mass"] = 1.1
    changed = CoupledModel.from_dict(data)
    others = [
        model.simulation(formulation="hdca", step=1e-3, compiled=False),
        model.simulation(formulation="dca", step=1e-3, stabilisation=3.0, compiled=False),
        model.simulation(formulation="dca", solver="rk45", compiled=False),
        changed.simulation(formulation="dca", step=1e-3, compiled=False),
    ]
    for other in others:
        before = everything(other)
        with pytest.raises(InputError, match="the saved state is refused: it is of another model or formulation"):
            other.restore(saved)
        assert everything(other) == before
    finer = CoupledModel.from_dict({**model.to_dict(), "stop_time": 3.0}).simulation(formulation="dca", step=5e-4)
    finer.restore(saved)
    assert finer.step_size == 1e-3


def test_damaged_state_is_refused() -> None:
    simulation = moving("double-step")
    saved = simulation.save()
    for place in range(0, len(saved), 11):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(InputError, match="the saved state is refused"):
            simulation.restore(bytes(damaged))
    for wrong in (b"", saved[:-8], saved + bytes(8)):
        with pytest.raises(InputError, match="the saved state is refused"):
            simulation.restore(wrong)


def test_saved_state_has_the_tolerances() -> None:
    simulation = mbsfmu.models.pendulum(1).simulation(solver="rk45", relative_tolerance=1e-6, absolute_tolerance=1e-8)
    loose = simulation.save()
    simulation.set_tolerance(1e-9)
    assert (simulation.tolerance, simulation.solver.absolute_tolerance) == pytest.approx((1e-9, 1e-11))
    simulation.restore(loose)
    assert (simulation.tolerance, simulation.solver.absolute_tolerance) == (1e-6, 1e-8)
    simulation.set_tolerance(1e-9)
    simulation.reset()
    assert simulation.tolerance == 1e-6
    with pytest.raises(InputError, match="the tolerance is 0; it must be positive"):
        simulation.set_tolerance(0.0)


def test_parameter_may_be_given_the_value_it_has() -> None:
    simulation = mbsfmu.models.pendulum(1).simulation()
    simulation.step(0.0, 1e-3)
    before = everything(simulation)
    simulation.set("link_1.mass", 1.0)
    simulation.set("solver.step", 1e-3)
    assert everything(simulation) == before
    with pytest.raises(InputError, match="cannot be set after it"):
        simulation.set("link_1.mass", 1.5)


def test_step_that_fails_in_its_middle_is_taken_back() -> None:
    """A jump to 10 MN after 10 ms tears the loops more than a hundred steps later: what came before is undone too."""
    push = StepSignal(times=(0.01,), values=(1e7,), initial=11000.0)
    mechanism = mbsfmu.models.four_bar().systems["mechanism"]
    model = CoupledModel(name="pushed", systems={"mechanism": mechanism}, signals={"mechanism.cylinder.force": push})
    simulation, untouched = model.simulation(step=1e-3), model.simulation(step=1e-3)
    simulation.initialize()
    before = everything(simulation)
    with pytest.raises(SimulationError, match=r"the step at t = 0\.1"):
        simulation.step(0.0, 0.3)
    assert simulation.time == 0.0
    assert everything(simulation) == before
    for each in (simulation, untouched):
        each.step(0.0, 5e-3)
    assert everything(simulation) == everything(untouched)


def test_reset_lets_inputs_follow_their_signals_again() -> None:
    simulation = mbsfmu.models.four_bar().simulation()
    simulation.set("valve.command", 3.0)
    simulation.step(0.0, 1e-3)
    simulation.reset()
    assert simulation.get("valve.command") == 0.0
    simulation.step(0.0, 1.1)
    assert simulation.get("valve.command") == 10.0
