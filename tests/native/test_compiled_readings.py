"""What a compiled run reads at every output: the motion's own laws, and what the interpreter reads."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from counts import assert_alike

import mbsfmu
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.io.checkpoints import RunError, RunInterrupted
from mbsfmu.io.signals import AnySignal, LinearSignal, StepSignal
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.system_model.coupled_model import CoupledModel

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")

STEP, JUMP = 1e-3, 0.0505
PUSHES: dict[str, AnySignal] = {
    "jump inside a step": StepSignal(times=(JUMP, 0.0907), values=(9000.0, 12000.0), initial=11000.0),
    "bends": LinearSignal(times=(0.01, JUMP, 0.08), values=(11000.0, 9000.0, 12000.0)),
    "many points": LinearSignal(
        times=tuple((np.arange(400) * 0.25e-3).tolist()),
        values=tuple((11000.0 + 2000.0 * np.sin(np.arange(400))).tolist()),
    ),
}


def four_bar(push: AnySignal, **changes: Any) -> CoupledModel:
    mechanism = mbsfmu.models.four_bar().systems["mechanism"]
    return CoupledModel(
        name="pushed", systems={"mechanism": mechanism}, signals={"mechanism.cylinder.force": push}, **changes
    )


@pytest.mark.parametrize(
    ("push", "formulation", "solver"),
    [
        ("jump inside a step", "double-step", "trapezoidal"),
        ("many points", "double-step", "trapezoidal"),
        ("jump inside a step", "penalty", "bdf2"),
        ("bends", "dca", "rk4"),
        ("bends", "dca-alm", "trapezoidal"),
    ],
)
def test_rows_are_those_of_the_interpreter(push: str, formulation: str, solver: str) -> None:
    """Outputs cut steps short, one is at a jump; the last row is what Python reads at the same state."""
    runs, reread = [], []
    for compiled in (True, False):
        simulation = four_bar(PUSHES[push]).simulation(formulation=formulation, solver=solver, compiled=compiled)
        assert isinstance(simulation.runner, CompiledRunner) == compiled
        runs.append((simulation.run(0.1, output_step=JUMP / 20), simulation.statistics))
        simulation.run_loop.forget_readings()
        reread.append(simulation.run_loop.readings())
    (fast, counted), (slow, expected) = runs
    assert_alike(counted, expected)
    assert fast.names == slow.names
    np.testing.assert_array_equal(fast.time, slow.time)
    force = fast["cylinder.force"]
    np.testing.assert_allclose(force, [PUSHES[push].after(each + 1e-13) for each in fast.time], rtol=1e-9)
    ours, theirs = (np.array([run[name] for name in run.names]).T for run in (fast, slow))
    # Accelerations by a rule are differences of positions by the square of the step, which round-off is divided by too.
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    # Forces that must vanish are differences of others.
    np.testing.assert_allclose(ours[-1], reread[0], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "hdca"])
def test_pendulum_in_closed_form(formulation: str) -> None:
    """From rest at the horizontal: the rate follows from energy, the hinge carries m (a - g) of the centre."""
    simulation = mbsfmu.models.pendulum(1).simulation(formulation=formulation, step=2e-4)
    assert isinstance(simulation.runner, CompiledRunner)
    result = simulation.run(0.5, output_step=0.05)
    mass, arm, gravity = 1.0, 0.5, np.array([0.0, -9.81])
    inertia = 1.0 + mass * arm**2
    angle, rate, acceleration = (
        result[f"link_1.{each}"][:, np.newaxis] for each in ("angle", "angular_velocity", "angular_acceleration")
    )
    along = np.hstack([np.cos(angle), np.sin(angle)])
    across = np.hstack([-np.sin(angle), np.cos(angle)])
    np.testing.assert_allclose(0.5 * inertia * rate**2, mass * arm * (along @ gravity)[:, np.newaxis], atol=1e-6)
    np.testing.assert_allclose(inertia * acceleration, mass * arm * (across @ gravity)[:, np.newaxis], atol=1e-5)
    carried = mass * (arm * (acceleration * across - rate**2 * along) - gravity)
    forces = np.stack([result["joint_1.force.x"], result["joint_1.force.y"]], axis=1)
    sign = np.sign(np.sum(forces * carried))
    np.testing.assert_allclose(sign * forces, carried, atol=1e-4)
    np.testing.assert_allclose(result["energy.drift"], 0.0, atol=1e-6)


def test_reactions_of_penalty_are_those_of_another_formulation() -> None:
    """At a quarter of the step they differ by a tenth of it: by the rule's order, nothing else tells them apart."""
    away = []
    for step in (4e-3, 1e-3):
        one, other = (
            mbsfmu.models.built_in("loop-4").simulation(formulation=formulation, step=step)
            for formulation in ("penalty", "double-step")
        )
        runs = [each.run(0.5, output_step=0.1) for each in (one, other)]
        names = [name for name in runs[0].names if ".force." in name]
        values = [np.array([run[name] for name in names]) for run in runs]
        away.append(np.max(np.abs(values[0] - values[1])) / np.max(np.abs(values[1])))
    assert away[0] < 5e-3
    assert away[1] < 0.1 * away[0]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_that_fails_keeps_what_it_has(compiled: bool) -> None:
    """A jump to 10 MN tears the loops some steps later; rows, time and sentence are the interpreter's."""
    model = four_bar(StepSignal(times=(0.01,), values=(1e7,), initial=11000.0))
    simulation = model.simulation(solver="trapezoidal", compiled=compiled)
    reason = r"the loops cannot be closed: \d\S* m or rad stays open$"
    with pytest.raises(RunError, match=rf"^the step at t = 0\.\d+ s fails even with 3\.91e-06 s: {reason}") as ended:
        simulation.run(1.0)
    result = ended.value.result
    assert result.time[-1] == simulation.time
    assert 0.01 < result.time[-1] < 0.2
    assert np.isfinite(np.array([result[name] for name in result.names])).all()
    assert simulation.statistics.failures > 8


def test_an_interruption_keeps_what_there_is() -> None:
    """Even inside one output interval of very many steps; the simulation can be run anew."""
    simulation = mbsfmu.models.built_in("four-bar").simulation(step=1e-6)
    shares: list[float] = []

    def interrupted(share: float) -> None:
        shares.append(share)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(RunInterrupted) as ended:
        simulation.run(500.0, output_step=250.0, progress=interrupted)
    assert shares == [0.0]
    assert ended.value.result.time.tolist() == [0.0]
    assert 0 < simulation.statistics.steps < 1e8
    assert simulation.run(1e-3).time[-1] == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [("pendulum-2", "double-step", "rk45"), ("loop-4", "dca", "rk45"), ("four-bar", "double-step", "rodas5p")],
)
def test_steps_pass_over_outputs(name: str, formulation: str, solver: str) -> None:
    """Steps are chosen as in Python (SciPy makes those of rk45), outputs come from the interpolant."""
    runs = []
    for compiled in (True, False):
        simulation = mbsfmu.models.built_in(name).simulation(formulation=formulation, solver=solver, compiled=compiled)
        assert isinstance(simulation.runner, CompiledRunner) == compiled
        runs.append((simulation.run(1.0), simulation.statistics.steps))
    (fast, steps), (slow, expected) = runs
    assert steps == expected
    assert 4 * steps < len(fast.time)
    for each in slow.names:
        if (
            not each.startswith(("constraint.", "energy.drift", "hydraulic_energy.drift"))
            and ".moment." not in each
            and ".force." not in each
        ):
            np.testing.assert_allclose(fast[each], slow[each], rtol=1e-8, atol=1e-8, err_msg=each)
