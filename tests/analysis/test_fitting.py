"""Fits to data whose parameters are known: closed forms, noise, delays, outliers, and what data do not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, motion, oscillator

import mbsfmu
from mbsfmu import InputError, SimulationError
from mbsfmu.analysis.fitted_machines import ModelMachine, Request
from mbsfmu.analysis.residuals import information
from mbsfmu.cli.commands import cli

TIMES = np.linspace(0.02, 1.5, 75)
NAMES = ("spring.stiffness", "spring.damping")
FREE = {"spring.stiffness": (10.0, 200.0), "spring.damping": (0.1, 5.0)}
NOISE = 2e-3


def measured(seed: int, times: Any = TIMES, delay: float = 0.0) -> dict[str, Any]:
    """Return the closed form of the oscillator with noise."""
    exact = motion(times - delay)[0]
    return {
        "time": times,
        "slider.displacement": exact + NOISE * np.random.default_rng(seed).standard_normal(len(times)),
    }


def started() -> mbsfmu.CoupledModel:
    """Return the oscillator with other parameters than those of the data."""
    start = {"mechanism.spring.stiffness": 80.0, "mechanism.spring.damping": 2.0}
    return oscillator().model_copy(update={"start": start})


def test_data_without_noise_give_the_parameters_back() -> None:
    """The closed form, which steps of 1 ms miss by their own error, and a fitted model that runs with the values."""
    data = {"time": TIMES, "slider.displacement": motion(TIMES)[0]}
    found = started().fit(data, FREE)
    np.testing.assert_allclose(found.values, [STIFFNESS, DAMPING], rtol=1e-4)
    run = found.model.simulation()
    assert run.get("spring.stiffness") == found["spring.stiffness"] == found["mechanism.spring.stiffness"]
    with pytest.raises(InputError, match=r"there is no fitted parameter 'slider\.mass'"):
        found["slider.mass"]


def test_intervals_are_those_of_the_textbook() -> None:
    """(JᵀJ)⁻¹ σ² with J by differences of the closed form of undamped motion, and t of Student."""
    found = started().fit(measured(1), FREE, noise={"*slider.displacement": NOISE})
    slopes = []
    for name in NAMES:
        ends = []
        for sign in (1.0, -1.0):
            given = dict(zip(NAMES, found.values.tolist(), strict=True))
            given[name] *= 1.0 + sign * 1e-4
            model = oscillator().model_copy(
                update={"start": {f"mechanism.{each}": value for each, value in given.items()}}
            )
            run = model.simulation(formulation="double-step", solver="dop853").run(1.5, output_step=2.5e-4)
            ends.append(np.interp(TIMES, run.time, run["slider.displacement"]))
        slopes.append((ends[0] - ends[1]) / (2e-4 * found[name]))
    jacobian = np.array(slopes).T / NOISE
    np.testing.assert_allclose(found.covariance, np.linalg.inv(jacobian.T @ jacobian), rtol=1e-2)
    np.testing.assert_allclose(found.upper - found.values, 1.9930 * found.deviations, rtol=1e-3)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Of 20 seeds 95 % are 19; fewer than 16 would be so in one of 400 cases."""
    model = started()
    covered, noises = [], []
    for seed in range(20):
        found = model.fit(measured(seed), FREE)
        noises.append(found.signals[0].noise)
        covered.append((found.lower < [STIFFNESS, DAMPING]) & (found.upper > [STIFFNESS, DAMPING]))
    assert np.all(np.sum(covered, axis=0) >= 16)
    assert np.mean(noises) == pytest.approx(NOISE, rel=0.05)


def test_a_sensor_that_lags() -> None:
    """The delay is found beside the parameters; without it they are off."""
    late = measured(3, np.linspace(0.05, 1.5, 150), delay=0.013)
    found = started().fit(late, FREE, delays={"slider.displacement": (0.0, 0.05)})
    assert found.names[-1] == "delay(slider.displacement)"
    assert found.values[-1] == pytest.approx(0.013, abs=5.0 * found.deviations[-1])
    assert found["delay(mechanism.slider.displacement)"] == found.values[-1]
    assert found.deviations[-1] < 1e-3
    without = started().fit(late, FREE)
    assert abs(without["spring.stiffness"] - STIFFNESS) > 3.0 * abs(found["spring.stiffness"] - STIFFNESS)


def test_a_value_beyond_its_bounds_is_told() -> None:
    """The stiffness of the data is 50 N/m; of those allowed the nearest fits best, and the sentence says what to do."""
    found = started().fit(measured(1), {"spring.stiffness": (60.0, 200.0)})
    assert found["spring.stiffness"] == pytest.approx(60.0, rel=1e-6)
    assert "spring.stiffness lies at its bound, 60: widen it, and see whether it moves on" in found.sentences


def test_what_is_measured_before_a_delay_is_over_tells_nothing_of_it() -> None:
    """The sensor shows the start until then, whatever the delay; the motion begins with 1 m/s."""
    found = []
    for times in (TIMES, np.concatenate([np.linspace(0.0, 0.01, 75), TIMES])):
        late = {"time": times, "slider.displacement": motion(np.maximum(times - 0.015, 0.0))[0]}
        delays = {"slider.displacement": (0.0, 0.05)}
        found.append(started().fit(late, FREE, delays=delays, noise={"*slider.displacement": NOISE}))
    assert found[1].values[-1] == pytest.approx(0.015, abs=1e-4)
    assert found[1].deviations[-1] == pytest.approx(found[0].deviations[-1], rel=1e-2)


def test_outliers() -> None:
    """A tenth of the values is wrong by a hundred deviations: a robust loss bears it, squares do not."""
    data = measured(4)
    data["slider.displacement"][::10] += 0.2
    robust = started().fit(data, FREE, loss="soft_l1")
    squares = started().fit(data, FREE)
    off = [abs(each["spring.stiffness"] - STIFFNESS) for each in (robust, squares)]
    assert off[0] < 0.5 < off[1]


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_outliers_that_shift_the_fit_are_told(loss: Any, sign: float) -> None:
    """A fifth of the values is off to one side: every loss but cauchy follows them, and says so."""
    data = measured(4)
    data["slider.displacement"][::5] += sign * 0.05
    found = started().fit(data, FREE, loss=loss)
    told = [each for each in found.sentences if "outliers" in each]
    assert len(told) == (loss != "cauchy")
    assert all(("all above" if sign > 0 else "all below") in each and "15 of 75" in each for each in told)


def test_outliers_on_both_sides_are_told_of_squares_alone() -> None:
    data = measured(4)
    data["slider.displacement"][::10] += 0.2
    data["slider.displacement"][5::10] -= 0.2
    told = {
        loss: [each for each in started().fit(data, FREE, loss=loss).sentences if "outliers" in each]
        for loss in ("linear", "soft_l1")
    }
    assert [len(each) for each in told.values()] == [1, 0]
    assert "nearly all" not in told["linear"][0]
    assert not [each for each in started().fit(measured(4), FREE).sentences if "outliers" in each]


def test_a_warning_of_each_run_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The input is driven by nothing in the first of several runs, as in all others."""
    with caplog.at_level("WARNING", logger="mbsfmu"):
        started().fit([measured(1), measured(2)], FREE)
    sentences = [each.getMessage() for each in caplog.records]
    assert len(sentences) == len(set(sentences))


def test_two_parameters_of_which_only_a_ratio_counts() -> None:
    """Free motion without damping tells k / m."""
    data = {"time": TIMES, "slider.displacement": motion(TIMES, driven=False)[0]}
    free = {"spring.stiffness": (10.0, 200.0), "slider.mass": (1.0, 4.0)}
    model = oscillator(driven=False).model_copy(update={"start": {"mechanism.spring.damping": 1e-9}})
    found = model.fit(data, free, noise={"*displacement": 0.01})
    assert any("only what" in each and "/" in each for each in found.sentences), found.sentences
    assert np.isinf(found.deviations).all()


@pytest.mark.parametrize(
    ("jacobian", "units", "values", "told"),
    [
        ([[1.0, 1.0]], ("m", "m"), (3.0, 1.0), "only what the sum of a and b is"),
        ([[1.0, -1.0]], ("m", "m"), (3.0, 1.0), "only what the difference of a and b is"),
        ([[2.0, 3.0]], ("m", "s"), (3.0, 2.0), "only what a·b is"),
        ([[2.0, -3.0]], ("m", "s"), (3.0, 2.0), "only what a / b is"),
        ([[4.0, 12.0]], ("m", "s"), (3.0, 2.0), "only what a·b^2 is"),
        ([[1.0, 0.0]], ("m", "s"), (3.0, 2.0), "say nothing of b"),
        ([[1.0, 0.7]], ("m", "s"), (3.0, 2.0), "only what combinations of a, b are"),
    ],
)
def test_what_is_not_told_in_words(jacobian: Any, units: Any, values: Any, told: str) -> None:
    """Rows that are gradients of the sum, the difference, the product, the ratio, and a b²."""
    rows = 1e3 * np.repeat(jacobian, 5, axis=0)
    found = information(rows, ("a", "b"), units, np.array(values), np.array([2.0, 1.5]))
    assert len(found.sentences) == 1
    assert told in found.sentences[0]


def test_a_file_with_an_input_and_display_units(tmp_path: Path) -> None:
    """A column of the valve's command drives the model; pressures in bar; the fitted model as a file."""
    model = mbsfmu.models.built_in("four-bar")
    driven = model.model_copy(update={"signals": {}})
    times = np.linspace(0.0, 0.4, 81)
    command = np.interp(times, [0.0, 0.1, 0.12, 0.3, 0.32], [0.0, 0.0, 8.0, 8.0, 0.0])
    signal = mbsfmu.LinearSignal(times=tuple(times.tolist()), values=tuple(command.tolist()))
    truth = model.model_copy(
        update={"signals": {"circuit.valve.command": signal}, "start": {"circuit.valve.flow_coefficient": 3e-8}}
    )
    run = truth.simulation(formulation="double-step", solver="trapezoidal").run(0.4, output_step=5e-3)
    log = tmp_path / "log.csv"
    pressure = run["cylinder.pressure_piston"] / 1e5
    rows = ["time [s],valve.command,cylinder.pressure_piston [bar]"]
    rows += [f"{time:.6f},{value:.12g},{bar:.12g}" for time, value, bar in zip(times, command, pressure, strict=True)]
    log.write_text("\n".join(rows), encoding="utf-8")
    fitted, numbers, given = tmp_path / "fitted.json", tmp_path / "fit.json", tmp_path / "given.json"
    driven.to_file(given)
    call = ["fit", str(given), "--measured", str(log), "--free", "valve.flow_coefficient=1e-8:1e-7", "--quiet"]
    done = CliRunner().invoke(cli, [*call, "-o", str(fitted), "--json", str(numbers)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (parameter,) = json.loads(numbers.read_text(encoding="utf-8"))["parameters"]
    assert parameter["value"] == pytest.approx(3e-8, rel=1e-6)
    read = mbsfmu.CoupledModel.from_file(fitted)
    assert read.start["circuit.valve.flow_coefficient"] == parameter["value"]


def test_several_experiments() -> None:
    """Two logs together tell more than one."""
    one = started().fit(measured(1), FREE, noise={"*displacement": NOISE})
    two = started().fit([measured(1), measured(2)], FREE, noise={"*displacement": NOISE})
    np.testing.assert_allclose(two.deviations, one.deviations / np.sqrt(2.0), rtol=0.05)


def test_what_is_refused() -> None:
    """In one sentence."""
    model, data = oscillator(), measured(1)
    endless, two = np.full_like(data["time"], np.inf), {key: value[:2] for key, value in data.items()}
    for match, call in (
        ("give a smaller and a greater", lambda: model.fit(data, {"spring.stiffness": (2.0, 1.0)})),
        ("no parameter is named", lambda: model.fit(data, {})),
        ("has no 'time'", lambda: model.fit({"slider.displacement": data["time"]}, FREE)),
        ("has no column of an output", lambda: model.fit({"time": data["time"]}, FREE)),
        ("it must be positive", lambda: model.fit(data, FREE, noise={"*displacement": 0.0})),
        ("it must be finite, or missing", lambda: model.fit({**data, "slider.displacement": endless}, FREE)),
        ("is unknown", lambda: model.fit(data, FREE, loss="sqare")),  # pyright: ignore[reportArgumentType]
        ("cannot determine", lambda: model.fit(two, FREE, noise={"*displacement": NOISE})),
        ("noise cannot be estimated", lambda: model.fit(two, FREE)),
    ):
        with pytest.raises(InputError, match=match):
            call()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (lambda times: times[::-1], "the time falls from 1.5 s in row 1 to 1.48 s; sort the rows"),
        (lambda times: np.where(times == times[3], np.nan, times), "the time of row 4 is nan; it must be finite"),
        (lambda times: times.reshape(-1, 1), r"'time' has the shape \(75, 1\)"),
    ],
)
def test_times_that_fall_or_are_missing_are_refused(changed: Any, told: str) -> None:
    """Values in the wrong order were fitted without a word, and missing times ended in an error of SciPy."""
    data = measured(1)
    with pytest.raises(InputError, match=told):
        started().fit({**data, "time": changed(data["time"])}, FREE)


def test_bounds_around_another_value_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """As those of a pressure in bar: the model's stiffness is 80 N/m, its damping 2 N s/m, which is a bound."""
    free = {"spring.stiffness": (100.0, 200.0), "spring.damping": (2.0, 5.0)}
    with caplog.at_level("WARNING", logger="mbsfmu"):
        started().fit(measured(1), free)
    (told,) = [each.getMessage() for each in caplog.records if "the search begins" in each.getMessage()]
    assert told.startswith("spring.stiffness is 80 N/m in the model, which is not between 100 and 200")


@pytest.mark.parametrize("bounds", [(80.0, 200.0), (10.0, 80.0)])
def test_a_first_value_on_a_bound_is_where_the_search_begins(
    bounds: tuple[float, float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a fit and of an optimization alike: 80 N/m are in the model, and no warning is due."""
    tried: list[float] = []
    run = ModelMachine.run

    def recorded(machine: ModelMachine, request: Request) -> Any:
        tried.append(request.values[0])
        return run(machine, request)

    monkeypatch.setattr(ModelMachine, "run", recorded)
    started().fit(measured(1), {"spring.stiffness": bounds})
    assert tried[0] == 80.0
    first = started().optimize("end(slider.displacement)", {"spring.stiffness": bounds}, stop=0.1).first
    exact = started().simulation(solver="trapezoidal").run(0.1)["slider.displacement"][-1]
    assert first == pytest.approx(exact, rel=1e-12)
    assert not [each for each in caplog.records if "the search begins" in each.getMessage()]


def undamped(times: Any, stiffness: float) -> Any:
    """Return the closed form of the oscillator without damping and force."""
    speed = np.sqrt(stiffness / MASS)
    return START * np.cos(speed * times) + SPEED / speed * np.sin(speed * times)


@pytest.mark.parametrize("loss", ["linear", "cauchy"])
def test_an_oscillation_that_runs_out_of_step_is_fitted_from_its_beginning(loss: Any) -> None:
    """26 periods in the log and 33 in the first run: from there the sum of squares has a valley for each period."""
    times = np.linspace(0.05, 33.0, 660)
    random = np.random.default_rng(0)
    data = undamped(times, STIFFNESS) + NOISE * random.standard_normal(len(times))
    if loss == "cauchy":
        data[random.choice(len(times), 20, replace=False)] += 3.0
    model = oscillator(driven=False).with_values({"spring.damping": 0.0, "spring.stiffness": 80.0})
    found = model.fit({"time": times, "slider.displacement": data}, {"spring.stiffness": (10.0, 200.0)}, loss=loss)
    assert found.values[0] == pytest.approx(STIFFNESS, rel=1e-4)
    assert found.runs < 200


def test_signals_that_the_model_does_not_follow_are_told() -> None:
    """The sign turned: no stiffness makes the oscillator go the other way."""
    wrong = {"time": TIMES, "slider.displacement": -motion(TIMES)[0]}
    sentences = started().fit(wrong, FREE).sentences
    assert any("the model does not describe slider.displacement" in each for each in sentences)
    assert not any("does not describe" in each for each in started().fit(measured(1), FREE).sentences)


def test_a_delay_beyond_the_log_and_a_variable_twice_are_refused() -> None:
    with pytest.raises(InputError, match=r"the delay of .*slider\.displacement may be up to 5 s"):
        started().fit(measured(1), FREE, delays={"slider.displacement": (0.2, 5.0)})
    twice = {**measured(1), "mechanism.slider.displacement": motion(TIMES)[0]}
    with pytest.raises(InputError, match=r"the columns 'slider\.displacement' and 'mechanism\.slider\.displacement'"):
        started().fit(twice, FREE)


def test_delays_and_noise_of_what_is_not_so_measured_are_refused() -> None:
    """A sensor is not ahead; an output without a column has neither noise nor delay."""
    with pytest.raises(InputError, match=r"the delay of slider\.displacement may be -0\.01 s; a sensor lags"):
        started().fit(measured(1), FREE, delays={"slider.displacement": (-0.01, 0.05)})
    for given in ({"noise": {"slider.velocity": 1.0}}, {"delays": {"slider.velocity": (0.0, 0.1)}}):
        with pytest.raises(InputError, match=r"slider\.velocity has a noise or a delay, and is not measured; measured"):
            started().fit(measured(1), FREE, **given)


def test_the_interval_of_a_delay_stays_within_its_bounds() -> None:
    """A sensor without delay: half of the interval would be one that is ahead."""
    found = started().fit(measured(2), FREE, delays={"slider.displacement": (0.0, 0.05)})
    assert found.lower[-1] == 0.0
    assert 0.0 < found.upper[-1] < 5.0 * found.deviations[-1] + found.values[-1]
    short = started().fit(measured(2, delay=0.02), FREE, delays={"slider.displacement": (0.0, 0.02)})
    assert short.upper[-1] == 0.02


def test_bounds_beyond_what_a_parameter_can_be_are_refused() -> None:
    """Before a run: a search would go there sooner or later."""
    for free in ({"slider.mass": (-1.0, 4.0)}, {"spring.damping": (-2.0, 5.0)}):
        with pytest.raises(InputError, match=r"is refused: it must be at least .*; give bounds of the search within"):
            started().fit(measured(1), free)
        with pytest.raises(InputError, match=r"give bounds of the search within"):
            started().optimize("slider.displacement", free, stop=0.5)


def test_a_fit_goes_back_from_runs_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """All stiffnesses below 49 N/m, next to the true one of 50: the search comes from 150 and tries some of them."""
    run, tried = ModelMachine.run, []

    def refusing(machine: ModelMachine, request: Request) -> Any:
        tried.append(request.values[0])
        if request.values[0] < 0.98 * STIFFNESS:
            raise SimulationError("too soft")
        return run(machine, request)

    monkeypatch.setattr(ModelMachine, "run", refusing)
    data = {"time": TIMES, "slider.displacement": motion(TIMES)[0]}
    model = started().with_values({"spring.stiffness": 150.0})
    found = model.fit(data, {"spring.stiffness": (10.0, 400.0), "spring.damping": (0.0, 20.0)})
    np.testing.assert_allclose(found.values, [STIFFNESS, DAMPING], rtol=1e-3)
    assert min(tried) < 0.98 * STIFFNESS
    (told,) = [each for each in found.sentences if "runs failed" in each]
    assert "the run with spring.stiffness = " in told
    assert told.endswith("fails: too soft")


def test_residuals_that_are_no_noise_are_told(tmp_path: Path) -> None:
    """A drift of the sensor that no parameter describes; the same as noise is not told. The page of the command."""
    drifting = {"time": TIMES, "slider.displacement": motion(TIMES)[0] + 5e-3 * np.sin(9.0 * TIMES)}
    (sentence,) = started().fit(drifting, FREE).sentences
    assert "residuals of slider.displacement are correlated by 0.9" in sentence
    assert started().fit(measured(5), FREE).sentences == ()
    log, model, page = (tmp_path / name for name in ("log.csv", "model.json", "page.html"))
    np.savetxt(
        log, np.column_stack(list(drifting.values())), delimiter=",", header="time,slider.displacement", comments=""
    )
    started().to_file(model)
    free = [part for name, (low, high) in FREE.items() for part in ("--free", f"{name}={low}:{high}")]
    done = CliRunner().invoke(cli, ["fit", str(model), "--measured", str(log), *free, "--report", str(page), "--quiet"])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "residuals of slider.displacement are correlated" in text
