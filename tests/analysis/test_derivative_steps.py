"""Steps of derivatives, fits, optima and ensembles that are chosen by their error, against closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mbsfmu
from mbsfmu import CoupledModel, InputError, Mechanism
from mbsfmu.cli.commands import cli

MASS, STIFFNESS, DAMPING, START = 2.0, 2e5, 40.0, 0.01
STOP = 0.2
GRAVITY, HEIGHT = 9.81, 0.2


def slide(displacement: float, force: Any, gravity: float = 0.0) -> CoupledModel:
    """Return a mass that slides along an axis."""
    joint = mbsfmu.Prismatic(name="s", parent="ground.O", child="b.origin", axis=(0, 0, 1), displacement=displacement)
    mechanism = Mechanism(
        gravity=(0, 0, -gravity),
        ground={"O": (0, 0, 0)},
        bodies=(mbsfmu.RigidBody(name="b", mass=MASS, inertia=(1, 1, 1)),),
        joints=(joint,),
        forces=(force,),
    )
    return CoupledModel(name="o", systems={"m": mechanism}, stop_time=STOP)


def oscillator(stiffness: float = STIFFNESS, damping: float = DAMPING, start: float = START) -> CoupledModel:
    """Return an oscillator of 50 Hz, of which 1 ms is a twentieth of a period."""
    return slide(start, mbsfmu.JointSpringDamper(name="sp", joint="s", stiffness=stiffness, damping=damping))


def motion(times: Any, stiffness: Any = STIFFNESS) -> Any:
    """Return its motion in closed form."""
    decay = DAMPING / (2.0 * MASS)
    speed = np.sqrt(stiffness / MASS - decay**2 + 0j)
    return START * np.exp(-decay * times) * (np.cos(speed * times) + decay / speed * np.sin(speed * times))


def by_stiffness(times: Any) -> Any:
    """Return its derivative by the stiffness, by a complex step."""
    return motion(times, STIFFNESS + 1e-20j * STIFFNESS).imag / (1e-20 * STIFFNESS)


def falling(height: float = HEIGHT) -> CoupledModel:
    """Return a mass that falls onto an undamped stop."""
    stop = mbsfmu.JointStop(name="st", joint="s", lower=0.0, stiffness=STIFFNESS, damping=0.0)
    return slide(height, stop, GRAVITY)


def bounced(times: Any, height: float = HEIGHT) -> Any:
    """Return its motion in closed form: it leaves the stop as fast as it came."""
    touch = np.sqrt(2.0 * height / GRAVITY)
    fast, still = GRAVITY * touch, -MASS * GRAVITY / STIFFNESS
    speed = np.sqrt(STIFFNESS / MASS)
    lowest = (np.arctan2(-fast / speed, -still) + np.pi) / speed % (2.0 * np.pi / speed)
    leave = touch + 2.0 * lowest
    contact = still - still * np.cos(speed * (times - touch)) - fast / speed * np.sin(speed * (times - touch))
    after = fast * (times - leave) - 0.5 * GRAVITY * (times - leave) ** 2
    return np.where(times < touch, height - 0.5 * GRAVITY * times**2, np.where(times < leave, contact, after))


def test_default_sensitivities_are_as_exact_as_is_said() -> None:
    found = oscillator().sensitivities(["sp.stiffness"], ["b.displacement"], stop=STOP)
    exact = by_stiffness(found.time)
    error = np.abs(found.derivative("b.displacement", "sp.stiffness") - exact).max() / np.abs(exact).max()
    assert error < 1e-4
    assert error < found.errors.largest < 1e-4


@pytest.mark.parametrize(("given", "least"), [({"step": 1e-3}, 0.3), ({"step": 2.5e-4}, 0.02)])
def test_the_error_of_named_steps_is_said(given: Any, least: float, caplog: pytest.LogCaptureFixture) -> None:
    """The error of the derivative, that of the values, and in the log from 1 % on."""
    found = oscillator().sensitivities(["sp.stiffness"], ["b.displacement"], stop=STOP, **given)
    assert len(found.time) == 1 + round(STOP / given["step"])
    exact = by_stiffness(found.time)
    error = np.abs(found.derivative("b.displacement", "sp.stiffness") - exact).max() / np.abs(exact).max()
    assert error > least
    assert found.errors.largest == pytest.approx(error, rel=0.1)
    off = np.abs(found["b.displacement"] - motion(found.time).real).max()
    assert found.errors.values == pytest.approx([off], rel=0.1)
    (told,) = [each.getMessage() for each in caplog.records if "is uncertain by" in each.getMessage()]
    assert f"equal steps of {1e3 * given['step']:g} ms" in told
    assert found.errors.to_dict()["derivatives"]["b.displacement"]["sp.stiffness"] == found.errors.largest


def test_a_gradient_by_default_has_the_sign_of_the_closed_form() -> None:
    """With steps of 1 ms it has the other one."""
    found = oscillator().gradient("end(b.displacement)", ["sp.stiffness"], stop=STOP)
    assert found.parameters["sp.stiffness"] == pytest.approx(by_stiffness(STOP), rel=2e-4)
    assert found.value == pytest.approx(motion(STOP).real, rel=1e-4)
    wrong = oscillator().gradient("end(b.displacement)", ["sp.stiffness"], stop=STOP, step=1e-3)
    assert wrong.parameters["sp.stiffness"] * by_stiffness(STOP) < 0.0
    assert wrong.errors.largest > 0.5


def test_sums_over_what_is_read_count_the_output_step() -> None:
    """∫ x dt of steps by a tolerance, of which 20 values a period are read: the sum of these errs by h²/12."""
    times = np.linspace(0.0, 0.0525, 100001)
    exact = np.trapezoid(by_stiffness(times), times)
    found = oscillator().gradient("integral(b.displacement)", ["sp.stiffness"], stop=0.0525, solver="rodas5p")
    error = abs(found.parameters["sp.stiffness"] / exact - 1.0)
    assert error > 1e-4
    assert 0.5 * error < found.errors.largest < 2.0 * error
    chosen = oscillator().gradient("integral(b.displacement)", ["sp.stiffness"], stop=0.0525)
    assert chosen.parameters["sp.stiffness"] == pytest.approx(exact, rel=2e-4)


def test_derivatives_through_a_stop(caplog: pytest.LogCaptureFixture) -> None:
    """By default they are those of the closed form; of named steps part and time are told."""
    touch = np.sqrt(2.0 * HEIGHT / GRAVITY)
    for given, most in (({}, 1e-3), ({"step": 1e-4}, 1.0)):
        caplog.clear()
        found = falling().sensitivities(["b.displacement_start"], ["b.displacement"], stop=0.35, **given)
        after = found.time > 0.215
        near = 1e-6
        ends = [bounced(found.time[after], HEIGHT + side) for side in (near, -near)]
        exact = (ends[0] - ends[1]) / (2.0 * near)
        error = np.abs(found.derivative("b.displacement", "b.displacement_start")[after] - exact).max()
        error /= np.abs(exact).max()
        assert error < most
        told = [each.getMessage() for each in caplog.records if "is uncertain by" in each.getMessage()]
        assert len(told) == bool(given)
        if given:
            assert error > 0.1
            assert found.errors.largest > 0.5 * error
            assert f"for st.lower_gap passes zero inside steps, at t = {touch:.6g}" in told[0]


def test_derivatives_of_a_machine_at_rest() -> None:
    """Steps by a tolerance are far too long there, whatever that is."""
    model = oscillator(start=0.0).with_values({"sp.stiffness": 2e3, "sp.damping": 2.0})
    found = model.sensitivities(["b.displacement_start"], ["b.displacement"], stop=0.5)
    speed = np.sqrt(1e3 - 0.25)
    exact = np.exp(-0.5 * found.time) * (np.cos(speed * found.time) + 0.5 / speed * np.sin(speed * found.time))
    error = np.abs(found.derivative("b.displacement", "b.displacement_start") - exact).max()
    assert error < found.errors.largest < 1e-4


def log() -> dict[str, Any]:
    """Return the closed form with noise, at times between rows of 1 ms too."""
    times = np.arange(0.0, STOP, 5e-4)
    return {"time": times, "b.displacement": motion(times).real + 1e-5 * np.random.default_rng(1).normal(size=400)}


FREE = {"sp.stiffness": (1e5, 4e5), "sp.damping": (1.0, 200.0)}


@pytest.mark.parametrize("given", [{}, {"solver": "rodas5p"}])
def test_a_fit_by_default_has_the_truth_in_its_interval(given: Any) -> None:
    """Steps of 1 ms are off by 3,400 N/m."""
    found = oscillator(1.8e5, 30.0).fit(log(), FREE, **given)
    assert np.all((found.lower < [STIFFNESS, DAMPING]) & (found.upper > [STIFFNESS, DAMPING]))
    assert found.upper[0] - found.lower[0] < 20.0
    assert np.all(np.abs(found.step_errors.shifts) < 0.3 * found.deviations)
    assert found.step_errors.intervals is not None
    assert found.step_errors.intervals < 0.02
    assert found.sentences == ()


def test_what_named_steps_do_to_a_fit_is_said_in_the_units_of_its_values() -> None:
    found = oscillator(1.8e5, 30.0).fit(log(), FREE, step=2.5e-4)
    off = found.values - [STIFFNESS, DAMPING]
    assert abs(off[0]) > 20.0 * found.deviations[0]
    assert found.step_errors.shifts == pytest.approx(off, rel=0.15)
    (told,) = [each for each in found.sentences if each.startswith("the error of equal steps of 0.25 ms shifts")]
    assert "sp.stiffness by 20" in told
    assert found.to_dict()["parameters"][0]["shift_by_steps"] == found.step_errors.shifts[0]


@pytest.mark.parametrize("first", [0.19, 0.23])
def test_a_fit_through_a_stop(first: float) -> None:
    """From any first value the same height: derivatives of steps of 1 ms lead astray."""
    times = np.arange(0.0, 0.35, 2e-3)
    data = {"time": times, "b.displacement": bounced(times) + 1e-5 * np.random.default_rng(1).normal(size=len(times))}
    found = falling(first).fit(data, {"b.displacement_start": (0.1, 0.3)})
    assert found.lower[0] < HEIGHT < found.upper[0]
    assert found.upper[0] - found.lower[0] < 1e-5


def test_an_optimum_and_what_steps_do_to_it(caplog: pytest.LogCaptureFixture) -> None:
    """x(0.05) is least where its derivative by the stiffness vanishes."""
    values = np.linspace(1.7e5, 2.6e5, 90001)
    truth = values[np.argmin(motion(0.05, values).real)]
    free = {"sp.stiffness": (1.7e5, 2.6e5)}
    found = oscillator().optimize("end(b.displacement)", free, stop=0.05)
    assert found["sp.stiffness"] == pytest.approx(truth, abs=20.0)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    coarse = oscillator().optimize("end(b.displacement)", free, stop=0.05, step=1e-3)
    errors = coarse.step_errors
    assert errors is not None
    assert coarse["sp.stiffness"] - truth > 3e3
    assert errors.shifts == pytest.approx([coarse["sp.stiffness"] - truth], rel=0.05)
    exact = motion(0.05, coarse["sp.stiffness"]).real
    assert errors.value == pytest.approx(coarse.value - exact, rel=0.15)
    assert any("shifts the optimum: sp.stiffness by 3.3" in each.getMessage() for each in caplog.records)


def test_an_ensemble_by_default_is_as_exact_as_a_run() -> None:
    """And one in named steps says how far it is off."""
    values = [1.5e5, 2e5, 2.5e5]
    found = oscillator().ensemble({"sp.stiffness": values}).run(STOP, output_step=1e-3)
    coarse = oscillator().ensemble({"sp.stiffness": values}, step=1e-3).run(STOP, output_step=1e-3)
    for machine, stiffness in enumerate(values):
        exact = motion(found.time, stiffness).real
        assert found["b.displacement"][machine] == pytest.approx(exact, abs=1e-8)
        share = np.abs(coarse["b.displacement"][machine] - exact).max() / np.ptp(exact)
        assert (coarse.errors[machine].share or 1.0) > share
        assert any("is estimated at" in each for each in coarse.warnings[machine])


def test_steps_of_the_commands(tmp_path: Path) -> None:
    """Options are those of `simulate`; what cannot be differentiated is refused with what can."""
    model, data = tmp_path / "o.json", tmp_path / "log.csv"
    oscillator(1.8e5, 30.0).to_file(model)
    content = log()
    np.savetxt(data, np.column_stack(list(content.values())), delimiter=",", header=",".join(content), comments="")
    fit = ["fit", str(model), "--measured", str(data), "--free", "sp.stiffness=1e5:4e5", "--free", "sp.damping=1:200"]
    optimize = ["optimize", str(model), "--minimize", "b.displacement", "--free", "sp.stiffness=1e5:4e5"]
    for call in (fit, optimize):
        for option, value, match in (
            ("--solver", "rk4", "takes steps of the solvers trapezoidal, rodas4, rodas5p"),
            ("--step", "-1", "the step is -1 s; it must be positive"),
            ("--rtol", "0", "the relative tolerance is 0"),
        ):
            done = CliRunner().invoke(cli, [*call, option, value])
            assert match in str(done.exception), done.output
    done = CliRunner().invoke(cli, [*fit, "--rtol", "1e-10", "--quiet"], catch_exceptions=False)
    assert "steps of rodas5p with a tolerance of 1e-10" in done.output
    refused = CliRunner().invoke(cli, ["fit", "their.fmu", "--measured", str(data), "--free", "k=1:2", "--solver", "x"])
    assert "solver is refused: their.fmu is an FMU, which makes steps of its own; --step is taken" in str(
        refused.exception
    )


@pytest.mark.parametrize("formulation", ["penalty", "dca", "hdca", "dca-alm"])
def test_other_formulations_are_refused_by_one_sentence(formulation: str) -> None:
    """The motion that they compute is differentiated without their names."""
    model, names, chosen = oscillator(), ["sp.stiffness"], {"formulation": formulation}
    bounds = {"sp.stiffness": (1e5, 4e5)}
    for call in (
        lambda: model.sensitivities(names, **chosen),
        lambda: model.gradient("b.displacement", names, **chosen),
        lambda: model.fit(log(), bounds, **chosen),
        lambda: model.optimize("b.displacement", bounds, **chosen),
        lambda: model.ensemble({"sp.stiffness": [1e5, 2e5]}, **chosen),
        lambda: model.linearize(**chosen),
    ):
        with pytest.raises(InputError, match=f"of 'double-step', .* leave out the formulation '{formulation}'"):
            call()
