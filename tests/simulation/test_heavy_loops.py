"""Where a given penalty factor is small beside the masses, smaller steps do not help: the sentence names what helps."""

from __future__ import annotations

import pytest
from cranks import parallel_cranks

from mbsfmu import CoupledModel, SimulationError


def heavy(factor: float) -> CoupledModel:
    """Parallel cranks whose masses are so many times as large; their motion is the same."""
    model = parallel_cranks(1.0, speed=2.0)
    mechanism = model.systems["mechanism"]
    bodies = tuple(
        body.model_copy(update={"mass": factor * body.mass, "inertia": tuple(factor * each for each in body.inertia)})
        for body in mechanism.bodies
    )
    return model.model_copy(update={"systems": {"mechanism": mechanism.model_copy(update={"bodies": bodies})}})


def time_it_opens(step: float) -> float:
    """When a loop comes open, in s; the sentence is held to what it says."""
    remedy = r"at t = (\S+) s the loop has come open by .*; take another formulation, or another penalty factor$"
    with pytest.raises(SimulationError, match=remedy) as raised:
        heavy(1e8).simulation(formulation="penalty", penalty=1e10, step=step, compiled=False).run(0.2)
    return float(str(raised.value).split()[3])


def test_smaller_steps_are_no_remedy() -> None:
    assert time_it_opens(2.5e-4) <= time_it_opens(1e-3)


@pytest.mark.parametrize("formulation", ["dca", "penalty"])
def test_another_formulation_or_factor_is_one(formulation: str) -> None:
    """The factor that is taken where none is given follows the masses."""
    motion = heavy(1e8).simulation(formulation=formulation, step=1e-3, compiled=False).run(0.05)
    expected = heavy(1.0).simulation(formulation="double-step", step=1e-3, compiled=False).run(0.05)
    assert motion["crank_0.angle"][-1] == pytest.approx(expected["crank_0.angle"][-1], abs=1e-6)
