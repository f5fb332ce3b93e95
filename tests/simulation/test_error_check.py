"""The error that a second run tells, against closed forms and tight runs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driven_crank import driven_crank, in_closed_form
from oscillator_in_closed_form import DAMPING, JUMPS, MASS, STIFFNESS, motion, oscillator
from sampled_control import controlled, discrete
from spinning_ball import expected_quaternions, quaternions, spinning
from started import run_python

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, RigidBody, Spherical
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.integration.error_measure import NOT_ESTIMATED, SAME_STEPS
from mbsfmu.io.checkpoints import RunError, RunInterrupted
from mbsfmu.models import built_in
from mbsfmu.simulation.run_loop import Interpreter, Recording, RunLoop
from mbsfmu.simulation.run_result import Result

SOLVERS: list[tuple[str, str, dict[str, Any]]] = [
    ("rodas5p", "double-step", {"relative_tolerance": 1e-5}),
    ("rodas4", "dca", {"relative_tolerance": 1e-7}),
    ("rk45", "hdca", {"relative_tolerance": 1e-5}),
    ("dop853", "dca", {"relative_tolerance": 1e-6}),
    ("adams", "double-step", {"relative_tolerance": 1e-5}),
    ("rk4", "dca", {"step": 0.02}),
    ("bdf2", "dca-alm", {"step": 0.02}),
    ("generalized-alpha", "double-step", {"step": 0.01}),
    *(("trapezoidal", each, {"step": 0.02}) for each in ("double-step", "dca", "hdca", "dca-alm", "penalty")),
]


def dissipated(times: Any, *, driven: bool) -> Any:
    """The loss ∫ c v² dt by Gauss' formula with eight points between times and jumps of the force."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    ends = np.unique(np.concatenate([times, [each for each in JUMPS if driven and each < times[-1]]]))
    half = 0.5 * np.diff(ends)
    points = (ends[:-1, None] + half[:, None] * (1.0 + nodes)).ravel()
    powers = DAMPING * motion(points, driven=driven)[1].reshape(-1, 8) ** 2
    losses = np.concatenate([[0.0], np.cumsum(half * (powers @ weights))])
    return losses[np.searchsorted(ends, times)]


def off_by(result: Result, *, driven: bool) -> float:
    """The largest error of an oscillator as a share of its range."""
    x, v = motion(result.time, driven=driven)
    expected = {
        "slider.displacement": x,
        "slider.velocity": v,
        "energy.kinetic": 0.5 * MASS * v**2,
        "energy.potential": 0.5 * STIFFNESS * x**2,
        "energy.dissipated": dissipated(result.time, driven=driven),
    }
    return max(float(np.abs(result[name] - exact).max() / np.ptp(exact)) for name, exact in expected.items())


@pytest.mark.parametrize(("solver", "formulation", "options"), SOLVERS)
@pytest.mark.parametrize("driven", [False, True])
def test_the_error_of_an_oscillator_is_that_of_its_closed_form(
    solver: str, formulation: str, options: dict[str, Any], driven: bool
) -> None:
    simulation = oscillator(driven=driven).simulation(
        solver=solver, formulation=formulation, check_error=True, compiled=False, **{"step": 0.02, **options}
    )
    result = simulation.run(1.5)
    assert result.error.share is not None
    assert off_by(result, driven=driven) == pytest.approx(result.error.share, rel=0.3)


@pytest.mark.parametrize("formulation", ["double-step", "penalty"])
def test_round_off_that_grows_with_shorter_steps_is_told_once(formulation: str) -> None:
    """Half the step has four times the round-off of accelerations and reactions: a run of double length tells it."""
    model, stop, step = built_in("five-bar"), 0.05, 5e-5
    options: dict[str, Any] = {"solver": "trapezoidal", "formulation": formulation, "step": step}
    result = model.simulation(**options, check_error=True).run(stop)
    exact = model.simulation(relative_tolerance=1e-11).run(stop, output_step=step)
    share, variable, _ = result.error
    assert share is not None
    assert variable is not None
    widest = max(np.ptp(exact[name]) for name in exact.names if exact.unit(name) == exact.unit(variable))
    true = np.abs(result[variable] - exact[variable]).max() / max(np.ptp(exact[variable]), 1e-3 * widest)
    assert true / 3.0 < share < 3.0 * true


def test_code_in_loops_and_compiled_runs_tell_the_same() -> None:
    chain = mbsfmu.models.pendulum(8)
    found = [
        chain.simulation(check_error=True, relative_tolerance=1e-6, **options).run(0.4).error
        for options in ({"formulation": "dca", "code": "loops"}, {"formulation": "dca", "compiled": False})
    ]
    assert found[0].share == pytest.approx(found[1].share, rel=1e-3)
    assert found[0].variable == found[1].variable


@pytest.mark.parametrize("options", [{"relative_tolerance": 1e-5}, {"solver": "trapezoidal", "step": 2e-3}])
def test_prescribed_motion(options: dict[str, Any]) -> None:
    result = driven_crank().simulation(check_error=True, compiled=False, **options).run(1.0)
    expected = in_closed_form(result.time)
    expected["energy.work"] = expected["energy.kinetic"] - expected["energy.kinetic"][0]  # its only source
    true = max(np.abs(result[name] - exact).max() / np.ptp(exact) for name, exact in expected.items())
    assert result.error.share is not None
    assert true / 3.0 < result.error.share < max(3.0 * true, 1e-8)


def test_steps_that_updates_cut_off_are_halved_and_not_the_solvers_own() -> None:
    """A controller every 13.7 ms: halves of steps of 27.4 ms would be the same steps."""
    model = controlled()
    simulation = model.simulation(solver="trapezoidal", step=0.0274, check_error=True, compiled=False)
    result = simulation.run(1.5)
    expected, _ = discrete(result.time)
    true = np.abs(result["slider.displacement"] - expected).max() / np.ptp(expected)
    assert result.error.share is not None
    assert true / 3.0 < result.error.share
    assert result.error.share < 10.0 * true  # of accelerations, which have more


def test_the_simulation_stays_at_the_end_of_its_run() -> None:
    plain = oscillator().simulation(formulation="dca-alm", step=0.01, compiled=False)
    checked = oscillator().simulation(formulation="dca-alm", step=0.01, compiled=False, check_error=True)
    first, second = plain.run(0.7), checked.run(0.7)
    for name in first.names:
        np.testing.assert_array_equal(first[name], second[name])
    assert plain.save() == checked.save()
    assert plain.statistics == checked.statistics == second.statistics
    for simulation in (plain, checked):
        simulation.step(0.7, 0.1)
    assert plain.save() == checked.save()


def test_warnings_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        oscillator(driven=False).simulation(solver="rk4", step=0.3, compiled=False, check_error=True).run(1.5)
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == len(set(warned))
    assert sum(message.startswith("rk4 with steps of 0.3 s is inaccurate") for message in warned) == 1
    assert sum("rk4 with steps" in message for message in warned) == 1


def test_an_input_that_was_set_holds_in_the_second_run() -> None:
    """From the position at rest under the force nothing moves much; without it errors would be large."""
    simulation = oscillator(driven=False).simulation(relative_tolerance=1e-6, check_error=True, compiled=False)
    simulation.set("motor.force", 12.0)
    result = simulation.run(0.5)
    assert result.error.share is not None
    assert 0.0 < result.error.share < 1e-4
    simulation.step(0.5, 0.1)
    assert simulation.get("motor.force") == 12.0


def test_a_second_run_that_fails_leaves_the_first_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, run = [], Interpreter.run

    def once(runner: Interpreter, run_loop: RunLoop, recording: Recording) -> None:
        made.append(run_loop.solver.step)
        if len(made) > 1:
            raise SimulationError("it cannot be made")
        run(runner, run_loop, recording)

    monkeypatch.setattr(Interpreter, "run", once)
    simulation = oscillator().simulation(solver="bdf2", step=0.01, check_error=True, compiled=False)
    result = simulation.run(0.5)
    assert made == [0.01, pytest.approx(0.005, rel=0.03)]  # a jump has cut one of 51 steps off
    assert result.time[-1] == simulation.time == 0.5
    assert result.error[:2] == (None, None)
    assert result.error.note == (
        "the error is not known: the second run, with steps of 0.0049 s, ends before: it cannot be made"
    )
    assert result.error.note in caplog.text
    assert simulation.step_size == 0.01


def test_a_run_that_ends_early_is_checked_until_there() -> None:
    def interrupt(share: float) -> None:
        if share > 0.6:
            raise KeyboardInterrupt

    plain = mbsfmu.models.pendulum(1)
    with pytest.raises(RunInterrupted) as caught:
        plain.simulation(compiled=False, check_error=True).run(3.0, progress=interrupt)
    result = caught.value.result
    assert result.time[-1] == 3.0  # the second run was interrupted
    assert isinstance(result, Result)
    assert result.error == NOT_ESTIMATED
    mechanism = plain.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    driven = mechanism.model_copy(update={"forces": (mbsfmu.JointDrive(name="motor", joint="joint_1"),)})
    torque = mbsfmu.StepSignal(times=(0.05,), values=(1e308,))
    model = CoupledModel(name="failing", systems={"m": driven}, signals={"m.motor.torque": torque})
    with pytest.raises(RunError) as failed:
        model.simulation(solver="trapezoidal", step=1e-3, compiled=False, check_error=True).run(0.1)
    assert isinstance(failed.value.result, Result)
    assert failed.value.result.error.share is not None
    assert 0.0 < failed.value.result.error.share < 1e-3


def test_round_off_leaves_no_room() -> None:
    simulation = oscillator().simulation(relative_tolerance=5e-13, check_error=True, compiled=False)
    share, _, note = simulation.run(0.1).error
    assert share is None
    assert note.startswith("the error is not known: a second run has to be more exact than a relative tolerance of 5e")


def test_equal_steps_of_both_runs_are_no_error_of_zero(caplog: pytest.LogCaptureFixture) -> None:
    """Updates ask for steps that are far shorter than those of any tolerance."""
    model = controlled(sample=1e-3, offset=0.0)
    simulation = model.simulation(relative_tolerance=1e-3, absolute_tolerance=1e-3, check_error=True, compiled=False)
    assert simulation.run(0.05).error == (None, None, SAME_STEPS)
    assert "error" not in caplog.text


def test_angles_from_references_that_move_do_not_count() -> None:
    """They move at other times in each run; angular velocities tell the error, here of a top that turns freely."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="bob", mass=2.0, centre=(0.0, 0.0, 0.3), inertia=(1.1, 1.2, 0.3)),),
        joints=(Spherical(name="ball", parent="ground.O", child="bob.origin", angular_velocity=(3.0, 8.0, 1.0)),),
    )
    model = CoupledModel(name="spinning", systems={"mechanism": mechanism})
    result = model.simulation(solver="trapezoidal", formulation="dca", step=1e-3, check_error=True).run(1.0)
    exact = model.simulation(relative_tolerance=1e-11).run(1.0, output_step=1e-3)
    true = max(
        np.abs(result[name] - exact[name]).max() / np.ptp(exact[name])
        for name in result.names
        if "cardan" not in name and not name.endswith("drift") and np.ptp(exact[name]) > 0.1
    )
    assert result.error.share is not None
    assert true / 3.0 < result.error.share < 3.0 * true


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "trapezoidal", "step": 1e-3}, {"solver": "trapezoidal", "step": 1e-3, "newton_tolerance": 1e-10}],
)
def test_the_error_of_a_ball_that_spins_is_that_of_its_orientation(options: dict[str, Any]) -> None:
    """Its energy and angular velocity are constant: what is lost of them is no share of what they vary by.

    The moment at the joint is zero: what Newton's iteration leaves of it, more than of the orientation where it ends by
    default, counts against a millionth of the energy by a radian.
    """
    velocity = (3.0, 8.0, 1.0)
    result = spinning(*velocity).simulation(check_error=True, **options).run(0.5)
    exact = expected_quaternions(result, *velocity)
    turned = float((np.abs(quaternions(result) - exact).max(axis=0) / np.ptp(exact, axis=0)).max())
    energy = 0.5 * float(np.square(velocity).sum())
    moment = max(float(np.abs(result[f"joint.moment.{axis}"]).max()) for axis in "xyz") / (1e-6 * energy)
    share = max(turned, moment)
    assert result.error.share is not None
    assert 0.9 * share < result.error.share < max(3.0 * share, 1e-6)


def test_nothing_that_moves_has_no_error() -> None:
    still = oscillator(driven=False)
    slider = still.systems["mechanism"]
    assert isinstance(slider, Mechanism)
    rail = slider.joints[0].model_copy(update={"displacement": 0.0, "velocity": 0.0})
    model = still.model_copy(update={"systems": {"mechanism": slider.model_copy(update={"joints": (rail,)})}})
    result = model.simulation(check_error=True, compiled=False, relative_tolerance=1e-5).run(0.5)
    assert result.error.share == 0.0


def test_fmus_refuse_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check error has no effect in FMUs"):
        mbsfmu.export(oscillator(), tmp_path, check_error=True)


def test_the_command_tells_it_in_table_json_and_report(tmp_path: Path) -> None:
    oscillator(driven=False).to_file(tmp_path / "oscillator.json")
    warned: list[dict[str, Any]] = []
    words = ("simulate", "oscillator.json", "--stop", "0.5", "--json", "run.json", "--report", "page.html")
    for flags in ((), ("--check-error",)):
        done = run_python("-m", "mbsfmu", *words, "--rtol", "1e-6", *flags, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        warned.append(json.loads((tmp_path / "run.json").read_text()))
        page = (tmp_path / "page.html").read_text()
        row = next(line for line in done.stdout.splitlines() if "error_estimate" in line)
        if flags:
            assert f"{warned[-1]['error_estimate']:.6g}" in row
            assert "The error is estimated at" in page
        else:
            assert "not estimated, and may be more than 1 % with tolerances of rodas5p above 1e-08" in row
            assert "The error is not estimated" in page
    assert warned[0]["error_estimate"] is None
    assert warned[0]["error_note"].startswith("the error is not estimated, and may be more than 1 %")
    assert 0.0 < warned[1]["error_estimate"] < 1e-4
    assert warned[1]["error_variable"].startswith(("slider.", "energy."))


def test_energies_count() -> None:
    """Of a phase that is off by φ, displacements are off by φ/2 of their range and energies, their squares, by φ."""
    model = oscillator(driven=False)
    model = model.model_copy(update={"start": {"mechanism.spring.damping": 0.0}})
    stop, step = 2.0, 0.01
    result = model.simulation(solver="trapezoidal", step=step, check_error=True).run(stop)
    frequency = np.sqrt(STIFFNESS / MASS)
    late = stop * (frequency - 2.0 / step * np.arctan(0.5 * frequency * step))
    assert str(result.error.variable).startswith("energy.")
    assert result.error.share == pytest.approx(late, rel=0.1)


def test_what_no_second_run_can_check_is_not_told_to_be_more_exact(caplog: pytest.LogCaptureFixture) -> None:
    options = {"solver": "rodas5p", "relative_tolerance": 1e-13, "check_error": True, "compiled": False}
    with caplog.at_level("WARNING", logger="mbsfmu"):
        mbsfmu.models.pendulum(1).simulation(**options).run(0.01)
    (told,) = [each for each in caplog.messages if "the error is not known" in each]
    assert told.endswith("none is below 1e-13, round-off: take a larger tolerance")


@pytest.mark.parametrize("solver", ["rodas5p", "rodas4", "rk45", "rk23", "dop853", "adams", "radau"])
@pytest.mark.parametrize("option", ["relative_tolerance", "absolute_tolerance"])
def test_loose_tolerances_are_told_where_nothing_estimates_the_error(
    solver: str, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A second run takes the sentence's place, and ten times the default is not loose."""
    usual = 1e-9 if solver.startswith("rodas") else 1e-6
    model = oscillator()
    said = f"with tolerances of {solver} above {10.0 * usual:g}, which are those of a single step: take a smaller"
    for factor, told in ((10.0, 0), (100.0, 1)):
        caplog.clear()
        model.simulation(solver=solver, compiled=False, **{option: factor * usual}).run(0.2)
        assert sum(said in each for each in caplog.messages) == told
    caplog.clear()
    model.simulation(solver=solver, compiled=False, check_error=True, **{option: 100.0 * usual}).run(0.2)
    assert not any(said in each for each in caplog.messages)


def test_loose_tolerances_are_told_of_ensembles_and_of_fmus(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, said = oscillator(), "above 1e-08, which are those of a single step: take a smaller tolerance"
    result = model.ensemble({"slider.mass": [1.0, 2.0]}, solver="rodas5p", relative_tolerance=1e-5).run(0.2)
    assert [said in each for each in result.warnings[0]] == [True]
    (path,) = mbsfmu.export(model, tmp_path, solver="rodas5p", layout="monolithic")
    for tolerance, told in ((1e-5, 1), (1e-9, 0)):
        caplog.clear()
        mbsfmu.cosimulate(path, stop=0.2, step=0.1, unit_tolerance=tolerance)
        assert sum(said in each for each in caplog.messages) == told
