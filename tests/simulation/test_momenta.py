"""Momenta of closed loops over long runs: started anew where impulses outweigh them, loops closed by Φ̇ + a Φ = 0."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu.formulations.dca import GROWN, Hdca
from mbsfmu.simulation.simulation import Simulation

Floats = NDArray[np.float64]


def momenta_of(name: str, **options: Any) -> tuple[Simulation, Hdca]:
    simulation = mbsfmu.models.built_in(name).simulation(formulation="hdca", compiled=False, **options)
    simulation.initialize()
    formulation = simulation.formulation
    assert isinstance(formulation, Hdca)
    return simulation, formulation


def opened(rate: float) -> tuple[Hdca, Any]:
    """A loop that is open by centimetres, moving, with large impulses in its momenta."""
    simulation, formulation = momenta_of("loop-4", stabilisation=rate)
    state = simulation._started()
    some = np.random.default_rng(7)
    coordinates = state.coordinates + some.normal(size=state.coordinates.shape, scale=0.02)
    momenta = some.normal(size=state.momenta.shape, scale=20.0)
    return formulation, formulation.consistent(replace(state, coordinates=coordinates, momenta=momenta))


def flow(formulation: Hdca, state: Any, times: list[float]) -> Floats:
    form = formulation.explicit_form(state)
    found = solve_ivp(
        lambda _, y: form.rates(y, np.zeros(0)), (0.0, times[-1]), form.start, "DOP853", times, rtol=1e-12, atol=1e-12
    )
    return np.asarray(found.y.T)


@pytest.mark.parametrize("rate", [0.0, 4.0, 20.0])
def test_open_loops_close_by_the_rate(rate: float) -> None:
    """Φ(t) = Φ(0) exp(−a t) exactly, however far it is open and whatever moves."""
    formulation, state = opened(rate)
    times = [0.0, 0.1, 0.3]
    gaps = []
    for values in flow(formulation, state, times):
        formulation.functions.coordinates[:] = values[: len(state.coordinates)]
        gaps.append(formulation.functions.gap()[0].copy())
    assert np.max(np.abs(gaps[0])) > 0.01
    if rate:
        for time, gap in zip(times, gaps, strict=True):
            np.testing.assert_allclose(gap, gaps[0] * np.exp(-rate * time), atol=1e-10)
    else:
        np.testing.assert_allclose(gaps, [gaps[0]] * 3, atol=1e-10)


def test_accelerations_are_those_of_the_momenta() -> None:
    """z̈, of an assembly of accelerations, is the slope of ż, of the momenta, also while a loop closes."""
    formulation, state = opened(5.0)
    small = 1e-3
    velocities = []
    for direction in (-1.0, 1.0):
        form = formulation.explicit_form(state)
        end = solve_ivp(
            lambda _, y, form=form: form.rates(y, np.zeros(0)),
            (0.0, direction * small), form.start, "DOP853", rtol=1e-12, atol=1e-12,
        ).y[:, -1]  # fmt: skip
        velocities.append(form.state_at(end, np.zeros(0)).velocities)
    slope = (velocities[1] - velocities[0]) / (2.0 * small)
    scale = np.max(np.abs(state.accelerations))
    np.testing.assert_allclose(slope, state.accelerations, atol=1e-4 * scale)


def starts_anew(states: list[Any]) -> int:
    """How often momenta jump between states: by more than four steps' ṗ."""
    jumps = 0
    for before, after in pairwise(states):
        expected = before.momenta + 0.5e-2 * (before.momentum_rates + after.momentum_rates)
        jumps += bool(np.max(np.abs(after.momenta - expected)) > 0.02 * np.max(np.abs(before.momenta)))
    return jumps


def states_of(simulation: Simulation, count: int) -> list[Any]:
    state = simulation._started()
    times = np.linspace(0.0, count * 1e-2, count + 1)
    return list(simulation.solver.advance(state, times, simulation.run_loop.inputs.over(0.0)))


@pytest.mark.parametrize("solver", ["trapezoidal", "rk4"])
def test_impulses_never_outweigh_momenta(solver: str) -> None:
    """The open tree with p has no more than ten times the energy that there is; without restarts, hundreds of times."""
    most = {}
    for restart in (True, False):
        simulation, formulation = momenta_of("loop-4", solver=solver, step=1e-2, restart_momenta=restart)
        shares = []
        for state in states_of(simulation, 600)[100:]:
            formulation.load(state)
            (with_impulses, without), _ = formulation.restarted_momenta()
            shares.append(with_impulses / without)
        most[restart] = max(shares)
        assert min(shares) > 1.0 - 1e-9  # the impulses are orthogonal to the momenta of the motion
    assert most[True] <= GROWN
    assert most[False] > 100.0


@pytest.mark.parametrize("solver", ["rk45", "rk23", "dop853", "rodas5p", "radau", "adams"])
def test_adaptive_solvers_start_momenta_anew_unless_they_remember(solver: str) -> None:
    """A method that begins anew with each restart would begin at each step of a mechanism at rest: it does without."""
    most, evaluations = {}, {}
    for restart in (True, False):
        chosen = {} if restart else {"restart_momenta": False}  # by default those do that can
        simulation, _ = momenta_of("loop-4", solver=solver, step=1e-2, **chosen)
        most[restart] = max(np.max(np.abs(state.momenta)) for state in states_of(simulation, 300))
        evaluations[restart] = simulation.statistics.rhs_evaluations
    if solver in ("rk45", "rk23", "dop853", "rodas5p"):
        assert most[True] < 0.5 * most[False]
    else:
        assert most[True] == most[False]
        assert evaluations[True] == evaluations[False]


def test_momenta_anew_keep_energy_better() -> None:
    """Ten seconds of the published chain of eight in equal steps of 10 ms, and it takes fewer iteration matrices."""
    model = mbsfmu.models.built_in("loop-8")
    anew, never = (
        model.simulation(formulation="hdca", step=1e-2, restart_momenta=each, compiled=False).run(10.0)
        for each in (True, False)
    )
    assert anew.largest("energy.drift") < 0.3 * never.largest("energy.drift")
    assert anew.statistics.iteration_matrices < 0.9 * never.statistics.iteration_matrices
    assert anew["link_1.angle"][300] == pytest.approx(never["link_1.angle"][300], abs=1e-3)


@pytest.mark.parametrize(("tolerance", "energy"), [(1e-3, 5.0), (1e-6, 3e-4)])
def test_long_runs_with_step_control(tolerance: float, energy: float) -> None:
    """At 1e-3 the chain of eight was lost after 9.6 s."""
    simulation = mbsfmu.models.built_in("loop-8").simulation(
        formulation="hdca", solver="rk45", relative_tolerance=tolerance, absolute_tolerance=tolerance, compiled=False
    )
    result = simulation.run(10.0)
    assert result.largest("energy.drift") < energy
    assert result.largest("constraint.position") < 1e1 * tolerance


def test_restarts_are_restored_to_the_last_bit() -> None:
    """What starts momenta anew is in the state: a run goes on from it as if nothing had been, also in another one."""
    (first, _), (second, _) = (momenta_of("loop-4", step=1e-2) for _ in range(2))
    assert starts_anew(states_of(first, 150)[50:]) >= 1
    first.initialize()
    for index in range(50):
        first.step(index * 1e-2, 1e-2)
    second.restore(first.save())
    for index in range(50, 150):
        for simulation in (first, second):
            simulation.step(index * 1e-2, 1e-2)
    assert first.save() == second.save()
