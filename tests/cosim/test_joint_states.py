"""What joints do with states, loads and derivatives between two evaluations, one thing at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.joined_mechanisms import PIN, inside
from cosim.test_integrated_joints import bar
from model_exchange_fmus.runs import Jumper

from mbsfmu import Cosimulation
from mbsfmu.cosim.compiled.library import ClosingTable, ExchangeTable
from mbsfmu.cosim.coupling.iterated_coupling import LearnedInverse
from mbsfmu.cosim.fmus.model_exchange import FmuIntegrator
from mbsfmu.cosim.joints.joined_models import JoinedModels, _least
from mbsfmu.cosim.joints.joint_closing import JointClosing


@contextmanager
def masses(jumper: Jumper, **options: Any) -> Iterator[JoinedModels]:
    """Give two masses of 1 kg with a rigid bar between them, at rest at the start of a run."""
    unit = jumper(2)
    with Cosimulation([f"a={unit}", f"b={unit}"], joints=[bar("a", "b")], step=0.1, stop=1.0, **options) as run:
        yield run._algorithm._models


@pytest.mark.parametrize("kept", [False, True])
def test_velocities_are_shared_at_once_after_an_event(jumper: Jumper, kept: bool) -> None:
    """(v + 0) / 2 for both, by an impulse that follows from derivatives of after the event."""
    with masses(jumper) as models:
        if kept:  # what was true before the event is not after it
            models._find_mobility()
            models._mobility *= np.arange(1.0, 13.0)[:, np.newaxis]
            models._effect *= np.arange(1.0, 1.0 + len(models._effect))[:, np.newaxis]
        models._step = 0.1
        states = models.states_now()
        (place,) = [k for k, name in enumerate(models._models[0].states) if name == "v"]
        states[place] = 3.0
        models._put(0.0, states)
        with models.event():
            pass
        velocities = [model.port(["v"]).read().item() for model in models._models]
        np.testing.assert_allclose(velocities, [1.5, 1.5], rtol=1e-12)


def test_an_event_forgets_derivatives(jumper: Jumper) -> None:
    with masses(jumper) as models:
        models._knows_mobility = models._knows_slopes = True
        models._slopes[:] = np.nan
        with models.event():
            pass
        assert not models._knows_slopes


def test_differences_leave_the_loads(jumper: Jumper) -> None:
    """Two masses of 1 kg: the accelerations are the loads, before and after."""
    with masses(jumper) as models:
        wrenches = np.zeros(12)
        wrenches[[0, 6]] = 2.0, -5.0
        for member, load in zip(models._members, (2.0, -5.0), strict=True):
            member.load(wrenches)
            effect, mobility = member._differences(wrenches)
            assert member.read().item() == pytest.approx(load)
            np.testing.assert_allclose(mobility, [[1.0]])
            assert sorted(effect.ravel()) == pytest.approx([*np.zeros(len(effect) - 1), 1.0])


def test_slopes_are_those_where_the_masses_are(jumper: Jumper) -> None:
    """The bar is opened by x₂ − x₁: the nearest states without a gap share it."""
    with masses(jumper) as models:
        states = models.states_now()
        (place,) = [k for k, name in enumerate(models._models[0].states) if name == "x"]
        states[place] = 1e-3
        models._put(0.0, states)
        closed = models._projected(0.0, states)
        positions = [model.port(["x"]).read().item() for model in models._models]
        np.testing.assert_allclose(positions, [5e-4, 5e-4], rtol=1e-9)
        assert closed[place] == pytest.approx(5e-4)


class _Decay:
    """ẋ = −x."""

    tolerances = np.ones(1)

    def rates(self, time: float, states: np.ndarray) -> np.ndarray:
        return -states

    def indicators(self, time: float, states: np.ndarray) -> np.ndarray:
        return np.zeros(0)

    def jacobian(self) -> None:
        return


@pytest.mark.parametrize("solver", ["dop853", "radau"])
def test_an_integrator_goes_on_from_corrected_states(solver: str) -> None:
    integrator = FmuIntegrator("decay", _Decay(), solver, 1e-9)
    integrator.begin(0.0, np.ones(1), 1.0, follows_event=False)
    at, time = integrator.advance(), 0.0
    assert at.time < 1.0
    integrator.correct(np.array([5.0]))
    time = at.time
    while at.time < 1.0:
        at = integrator.advance()
    assert at.states[0] == pytest.approx(5.0 * np.exp(time - 1.0), rel=1e-7)


@pytest.mark.parametrize(("share", "solution"), [(1e-5, 1e5), (1e-7, 0.0)])
def test_components_with_hardly_an_effect_are_left_out(share: float, solution: float) -> None:
    """By model exchange, below 1e-6 of the largest effect; a light and a heavy body may differ by 1e5."""
    np.testing.assert_allclose(_least(np.diag([1.0, share]), np.ones(2)), [1.0, solution], rtol=1e-9)


@pytest.mark.parametrize(("share", "kept"), [(1e-4, True), (1e-6, False)])
def test_differences_with_hardly_an_effect_are_left_out(
    jumper: Jumper, monkeypatch: pytest.MonkeyPatch, share: float, kept: bool
) -> None:
    """By co-simulation, below 1e-5: differences are exact to about 1e-6."""
    monkeypatch.setattr(JointClosing, "_jacobian", lambda self, table: np.diag([1.0, share]))
    closing = JointClosing.__new__(JointClosing)
    closing.count, closing.table, closing.directions = 1, ClosingTable(), np.eye(2)
    closing.inverse = LearnedInverse(2, closing.table.inverse)
    closing._renew(ExchangeTable(step=1.0))
    np.testing.assert_allclose(closing.inverse.columns, np.diag([1.0, 1.0 / share if kept else 0.0]), rtol=1e-9)
    assert closing._rank == 1 + kept


@pytest.mark.parametrize(("algorithm", "late"), [("jacobi", 0), ("gauss-seidel", 1)])
@pytest.mark.parametrize("order", ["cab", "abc"])
def test_values_are_handed_on_in_turn(jumper: Jumper, algorithm: str, late: int, order: str) -> None:
    """A third mass moves as x = t, and pushes the pair; the velocity of the pair pushes a fourth one.

    With held inputs the later ones have the values of the end of the step, or of its begin.
    """
    unit, step = jumper(2), 0.05
    given = {} if algorithm == "jacobi" else {"order": [*order, "d"]}
    with Cosimulation(
        [f"{name}={unit}" for name in (*order, "d")], joints=[bar("a", "b")],
        connections=["c.x=a.kick", "b.v=d.kick"], parameters={"c.v": 1.0}, algorithm=algorithm, step=step, stop=1.0,
        model_exchange="all", unit_solver="dop853", unit_tolerance=1e-10, **given,
    ) as run:  # fmt: skip
        result = run.run()
    before_pair = late if order == "cab" else 0
    pushed = np.concatenate(
        [[0.0], np.cumsum(0.5 * step * result.time[before_pair : len(result.time) - 1 + before_pair])]
    )
    np.testing.assert_allclose(result["b.v"], pushed, atol=1e-9)
    fourth = np.concatenate([[0.0], np.cumsum(step * result["b.v"][late : len(pushed) - 1 + late])])
    np.testing.assert_allclose(result["d.v"], fourth, atol=1e-9)


def test_differences_of_steps_leave_the_fmus_where_they_were(pinned: list[Path]) -> None:
    """To the last bit, for what other joints are open by is read from there."""
    parameters = inside("left", "right", step=1e-3)
    with Cosimulation(pinned, joints=[PIN], step=2e-3, stop=0.1, parameters=parameters) as run:
        run.step()
        closing, table = run._algorithm, run._run_loop._steps.tables.exchange
        table.made = 0  # in that step again
        before = closing.exchange.read().copy()
        jacobian = closing._differences(table, np.full(closing.residual.shape, 1.0))
        np.testing.assert_array_equal(closing.exchange.read(), before)
        assert np.max(np.abs(jacobian)) > 1e-9
