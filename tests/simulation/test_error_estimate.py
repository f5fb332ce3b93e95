"""The estimated error of runs, against closed forms and tight runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from field_cases import cases
from importer import Importer
from oscillator_in_closed_form import displacement, oscillator
from spinning_ball import expected_quaternions, quaternions, spinning

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, Planar, RigidBody
from mbsfmu.base.errors import InputError
from mbsfmu.integration.error_measure import NOT_ESTIMATED, NOT_KNOWN, ErrorMeasure, ErrorRecord
from mbsfmu.models import built_in
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
STEP = 1e-3


def record_of(simulation: Simulation) -> ErrorRecord:
    """What follows the error of a simulation."""
    record = simulation.solver.error_record
    assert record is not None
    return record


def largest_share(record: ErrorRecord, result: Result, exact: Result) -> float:
    """The largest distance of two runs as a share of ranges."""
    measure = record.measure
    largest = np.array([np.abs(result[name] - exact[name]).max() for name in measure.names])
    bounds = [np.array([pick(exact[name]) for name in measure.names]) for pick in (np.min, np.max)]
    return float(measure.shares(largest, *bounds).max())


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("driven", "compiled"), [(False, True), (False, False), (True, True)])
def test_the_error_of_an_oscillator_is_that_of_its_closed_form(formulation: str, driven: bool, compiled: bool) -> None:
    """Also behind jumps of the force, where differences begin anew."""
    simulation = oscillator(driven=driven).simulation(
        solver="trapezoidal", step=0.01, formulation=formulation, compiled=compiled
    )
    result = simulation.run(1.5)
    off = result["slider.displacement"] - displacement(result.time, driven=driven)
    largest, state = np.max(np.abs(off)), simulation.run_loop.present
    assert np.abs(state.error[0]) == pytest.approx(np.abs(off[-1]), abs=0.1 * largest)  # differences lag by half a step
    assert state.error_record[0] == pytest.approx(largest, rel=0.1)


def test_one_point_after_the_start_gives_no_range() -> None:
    """Shares of a range of one value were more than all of it, however exact the run; two points tell its size."""
    simulation = oscillator(driven=False).simulation(solver="trapezoidal", step=0.01)
    alone = simulation.run(1.5, output_step=1.5).error
    assert (alone.share, alone.warning("x")) == (None, "")
    assert alone.note.startswith("not estimated: variables have no range")
    assert simulation.run(1.5, output_step=0.75).error.share is not None


@pytest.mark.parametrize(
    ("name", "step", "formulation", "stop"),
    [
        ("four-bar", 1e-3, "double-step", 1.3),
        ("four-bar", 4e-3, "dca", 1.3),
        ("quick-return-frictionless", 4e-3, "double-step", 2.0),
        ("double-pentagon", 4e-3, "double-step", 0.4),
        ("slewing-four-bar", 4e-3, "dca", 0.4),
        ("bennett", 1e-3, "double-step", 0.4),
        ("double-pentagon", 4e-3, "penalty", 0.4),
        ("four-bar", 2e-3, "penalty", 1.3),
        ("double-pentagon", 4e-3, "hdca", 0.4),
        ("four-bar", 2e-3, "hdca", 1.3),
        ("double-pentagon", 4e-3, "dca-alm", 0.4),
        ("slewing-four-bar", 4e-3, "dca-alm", 0.4),
    ],
)
def test_the_estimate_is_right_within_a_factor_of_three(name: str, step: float, formulation: str, stop: float) -> None:
    simulation = built_in(name).simulation(solver="trapezoidal", step=step, formulation=formulation)
    result = simulation.run(stop)
    tight = TIGHT | {"solver": "dop853", "formulation": formulation} if formulation == "dca-alm" else TIGHT
    exact = built_in(name).simulation(**tight).run(stop, output_step=step)
    share, variable, note = result.error
    assert share is not None
    assert variable in result.names
    assert not note
    true = largest_share(record_of(simulation), result, exact)
    assert true / 3.0 < share < 3.0 * true


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("name", "formulation", "stop"),
    [("slider-crank", "penalty", 3.0), ("slider-crank", "double-step", 3.0), ("double Cardan", "penalty", 2.0)],
)
def test_the_estimate_of_spatial_loops_is_right_within_a_factor_of_three(
    name: str, formulation: str, stop: float, compiled: bool
) -> None:
    """Defects of one step before, and multipliers predicted to stay, told 3 to 10 times the error there."""
    (model,) = (case.make() for case in cases() if case.name == name)
    simulation = model.simulation(solver="trapezoidal", step=STEP, formulation=formulation, compiled=compiled)
    result, exact = simulation.run(stop), model.simulation(**TIGHT).run(stop, output_step=STEP)
    assert result.error.share is not None
    true = largest_share(record_of(simulation), result, exact)
    assert true / 2.5 < result.error.share < 2.5 * true


def test_outputs_are_compared_at_one_of_sixteen_points_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run is: errors of friction and contacts are over after some points."""
    seen, compared = [], ErrorRecord._compared

    def counted(record: ErrorRecord, *arguments: Any) -> Any:
        seen.append(record)
        return compared(record, *arguments)

    monkeypatch.setattr(ErrorRecord, "_compared", counted)
    oscillator(driven=False).simulation(solver="trapezoidal", step=0.01, compiled=False).run(10.24)
    assert len(seen) >= 1024 // 16


def test_inputs_that_are_set_in_every_step_leave_an_estimate() -> None:
    """Accelerations jump with every step then: differences are those of slopes inside the steps."""
    runs = []
    rule: dict[str, Any] = {"solver": "trapezoidal"}
    for options in (rule, TIGHT):
        simulation = oscillator(driven=False).simulation(**options, step=0.02)
        simulation.initialize()
        found = []
        for index in range(100):
            simulation.set("motor.force", 3.0 * np.sin(0.1 * index))
            simulation.step(0.02 * index, 0.02)
            found.append(simulation.get("slider.displacement"))
        runs.append((simulation, np.array(found)))
    (simulation, found), (_, exact) = runs
    true = np.max(np.abs(found - exact))
    assert true / 2.0 < simulation.run_loop.present.error_record[0] < 2.0 * true


@pytest.mark.parametrize(
    ("name", "formulation", "stop"),
    [
        *(("four-bar", formulation, 1.1) for formulation in FORMULATIONS),
        ("bennett", "double-step", 0.1),
        ("double-pentagon", "hdca", 0.3),
        ("double-pentagon", "dca-alm", 0.3),
    ],
)
def test_python_and_c_estimate_the_same(name: str, formulation: str, stop: float) -> None:
    found = []
    for compiled in (True, False):
        simulation = built_in(name).simulation(
            solver="trapezoidal", step=STEP, formulation=formulation, compiled=compiled
        )
        result = simulation.run(stop)
        found.append((result.error, simulation.run_loop.present))
    (error, state), (expected, other) = found
    assert error.variable == expected.variable
    # Projections of dca-alm end where what they move is negligible, which multipliers of redundant loops show most.
    rough = formulation == "dca-alm"
    assert error.share == pytest.approx(expected.share, rel=1e-4 if rough else 1e-6)
    least = 1e-9 * np.abs(other.error).max()
    np.testing.assert_allclose(state.error, other.error, rtol=1e-3 if rough else 1e-5, atol=least)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_saved_state_has_the_error_in_it_and_a_reset_none(compiled: bool) -> None:
    simulation = built_in("four-bar").simulation(solver="trapezoidal", step=STEP, compiled=compiled)
    simulation.initialize()
    for index in range(5):
        simulation.step(0.01 * index, 0.01)
    saved, ends = simulation.save(), []
    for _ in range(2):
        simulation.restore(saved)
        for index in range(5, 10):
            simulation.step(0.01 * index, 0.01)
        ends.append((simulation.save(), simulation.get("solver.error"), simulation.error))
    assert ends[0] == ends[1]
    assert ends[0][1] == ends[0][2].share
    assert ends[0][1] > 0.0
    simulation.reset()
    simulation.initialize()
    assert simulation.get("solver.error") == 0.0
    assert simulation.error == NOT_ESTIMATED


def test_a_saved_state_whose_count_is_none_is_refused() -> None:
    simulation = oscillator().simulation(solver="trapezoidal", compiled=False)
    simulation.initialize()
    simulation.step(0.0, STEP)
    assert simulation.run_loop.state is not None
    simulation.run_loop.state.error_record[-2] = np.nan
    with pytest.raises(InputError, match="no simulation can be in"):
        simulation.restore(simulation.save())


@pytest.mark.parametrize("backend", ["native", "python"])
def test_units_tell_the_error_of_the_run(backend: Any, tmp_path: Path) -> None:
    """The number is that of a run in process, and a host that ends the run is told where it is large."""
    model, stop = oscillator(), 100
    simulation = model.simulation(solver="trapezoidal", step=0.02)
    simulation.initialize()
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend=backend, solver="trapezoidal", step=0.02)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    assert importer.get(slave, "solver.error") == 0.0
    for index in range(stop):
        simulation.step(0.02 * index, 0.02)
        slave.doStep(0.02 * index, 0.02)
        if index % 10 == 9:
            assert importer.get(slave, "solver.error") == pytest.approx(simulation.get("solver.error"), rel=1e-9)
    if backend == "native":
        saved = slave.getFMUstate()
        before = importer.get(slave, "solver.error")
        slave.doStep(0.02 * stop, 0.02)
        slave.setFMUstate(saved)
        assert importer.get(slave, "solver.error") == before
        importer.messages.clear()
        slave.terminate()
        assert any("is estimated at" in message for _, message in importer.messages) == (before > 0.01)
    slave.freeInstance()


def test_units_for_model_exchange_alone_know_no_error(tmp_path: Path) -> None:
    """Steps are the host's there."""
    (path,) = mbsfmu.export(oscillator(), tmp_path, layout="monolithic", kind="me", solver="trapezoidal")
    found = fmpy.simulate_fmu(str(path), stop_time=0.1, output=["solver.error"])
    assert (found["solver.error"] == NOT_KNOWN).all()


def test_an_error_above_one_percent_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        accurate = oscillator(driven=False).simulation(solver="trapezoidal", step=0.005).run(1.5)
        assert "is estimated at" not in caplog.text
        result = oscillator(driven=False).simulation(solver="trapezoidal", step=0.1).run(1.5)
    share, variable, _ = result.error
    assert accurate.error.share is not None
    assert share is not None
    assert accurate.error.share < 0.01 < share
    warned = f"the error of {variable} is estimated at {100 * share:.2g} % of its range"
    assert warned in caplog.text
    assert "take smaller steps, or a solver that chooses them" in caplog.text
    summary = result.summary()
    assert (summary["error_estimate"], summary["error_variable"]) == result.error[:2]


def test_errors_beyond_linearized_steps_are_no_number(caplog: pytest.LogCaptureFixture) -> None:
    """An oscillator half a turn late is off by its whole range; linearized steps tell any multiple of that."""
    result = oscillator(driven=False).simulation(solver="trapezoidal", step=0.2).run(20.0)
    assert result.error.share is None
    assert result.error.variable is not None
    assert f"the error of {result.error.variable} is more than 50 % of its range" in caplog.text
    assert result.summary()["error_estimate"] is None


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_constant_has_no_error_that_is_round_off(*, compiled: bool) -> None:
    """About the last Cardan axis steps are exact but for round-off, of which accelerations have most."""
    velocity = (0.0, 0.0, 10.0)
    simulation = spinning(*velocity).simulation(solver="trapezoidal", step=STEP, compiled=compiled)
    result = simulation.run(0.5)
    assert np.abs(quaternions(result) - expected_quaternions(result, *velocity)).max() < 1e-9
    assert np.abs(result["ball.cardan_acceleration.z"]).max() > 1e-9
    assert result.error.share is not None
    assert result.error.share < 0.01
    assert simulation.get("solver.error") == result.error.share


def test_small_but_real_errors_stay_shares_of_their_own_ranges() -> None:
    """A speed with a ripple of a ten thousandth loses a tenth of that; one without loses a share of itself."""
    measure = ErrorMeasure(oscillator().simulation(solver="trapezoidal").functions.system)
    errors, lowest, highest = np.zeros((3, len(measure.names)))
    speed = measure.names.index("slider.velocity")
    lowest[speed], highest[speed], errors[speed] = 1000.0, 1000.1, 0.01
    assert measure.worst(errors, lowest, highest) == (pytest.approx(0.1), "slider.velocity")
    highest[speed] = 1000.0 + 1e-9
    assert measure.worst(errors, lowest, highest) == (pytest.approx(1e-5), "slider.velocity")
    position = measure.names.index("slider.displacement")
    lowest[position], highest[position], errors[position] = 1000.0, 1000.0 + 1e-9, 0.01
    assert measure.worst(errors, lowest, highest) == (pytest.approx(10.0), "slider.displacement")


def test_forces_that_are_round_off_of_the_weight_have_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """A body that falls along a plane is held by nothing: the joint's force is what is left of its weight."""
    body = RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0))
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body,),
        joints=(Planar(name="plane", parent="ground.O", child="body.origin"),),
    )
    result = CoupledModel(name="falling", systems={"falling": mechanism}).simulation(step=STEP).run(0.5)
    assert np.abs(result["plane.force.y"]).max() < 1e-8
    assert result.error.share is not None
    assert result.error.share < 1e-3
    assert "the error of" not in caplog.text


@pytest.mark.parametrize("solver", ["bdf2", "generalized-alpha", "rk4", "rk45", "rodas5p"])
def test_where_nothing_is_estimated_there_is_no_number_and_a_note_says_so(solver: str) -> None:
    simulation = oscillator(driven=False).simulation(solver=solver, step=0.01, compiled=False)
    result = simulation.run(0.1)
    assert result.error == NOT_ESTIMATED
    summary = result.summary()
    assert summary["error_estimate"] is None
    assert summary["error_variable"] is None
    assert summary["error_note"] == "not estimated; --check-error, in Python check_error=True, runs once more"
    assert "solver.error" not in {variable.name for variable in simulation.variables}
