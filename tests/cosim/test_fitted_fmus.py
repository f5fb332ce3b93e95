"""Fits of FMUs that are not ours, by differences, against closed forms: outliers, a delay, an input, bounds."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mbsfmu import InputError, fit_fmu
from mbsfmu.analysis import fmu_fitting
from mbsfmu.analysis.fitted_machines import Request
from mbsfmu.analysis.residuals import Experiment
from mbsfmu.cli.commands import cli
from mbsfmu.cosim.runs.master import cosimulate
from mbsfmu.io.trajectory import Trajectory

Foreign = Callable[[str], Path]
_RATE, _START, _NOISE = 0.8, 3.0, 0.02
_STIFFNESS, _DAMPING, _FORCE, _DELAY = 47.0, 0.8, 0.5, 0.03


def _decay(times: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """x = x₀ exp(−r t), measured with noise."""
    noise = _NOISE * np.random.default_rng(seed).standard_normal(len(times))
    return {"time": times, "x": _START * np.exp(-_RATE * times) + noise}


def _changed(source: Path, target: Path, part: bytes, other: bytes) -> Path:
    """Write an FMU with another part of its description."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(part, other) if name == "modelDescription.xml" else content)
    return target


def test_a_decay_in_closed_form(foreign: Foreign) -> None:
    """(JᵀJ)⁻¹ σ² with J of the closed form gives the intervals; the second experiment has a sensor that lags."""
    times = np.linspace(0.0, 3.0, 121)
    found = fit_fmu(foreign("dahlquist"), _decay(times), {"rate": (0.1, 3.0), "dahlquist.x_start": (1.0, 9.0)},
                    noise={"x": _NOISE})  # fmt: skip
    exact = np.exp(-_RATE * times)
    slopes = np.column_stack([-times * _START * exact, exact]) / _NOISE
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes))), rtol=0.02)
    assert np.all((found.lower < [_RATE, _START]) & (found.upper > [_RATE, _START]))
    assert found.derivatives.startswith("derivatives by differences: dahlquist is an FMU")
    assert found.derivatives in found.sentences
    assert "changed by 1 %, the cube root of its tolerance of 1e-06" in found.derivatives
    assert found.model is None


def test_slopes_are_those_of_the_closed_form_even_at_a_bound(foreign: Foreign) -> None:
    """Where the search begins at a bound, differences go to one side and stay within."""
    times = np.linspace(0.0, 3.0, 61)
    exact = {"time": times, "x": _START * np.exp(-_RATE * times)}
    for bounds in ((_RATE, 3.0), (0.1, _RATE)):
        found = fit_fmu(foreign("dahlquist"), exact, {"rate": bounds}, parameters={"x_start": _START, "rate": _RATE},
                        noise={"x": _NOISE})  # fmt: skip
        assert found["rate"] == pytest.approx(_RATE, rel=1e-6)
        slope = times * exact["x"] / _NOISE
        assert found.deviations[0] == pytest.approx(1.0 / np.sqrt(slope @ slope), rel=1e-3)


@pytest.mark.parametrize("bounds", [(0.7995, 0.8005), (_RATE, 0.81), (0.79, _RATE), (0.796, 0.81), (0.79, 0.804)])
def test_differences_stay_within_the_bounds(
    foreign: Foreign, bounds: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go by 0.008 to either side where there is room, and otherwise by less, or to one side."""
    given: list[float] = []

    def recorded(*args: Any, **options: Any) -> Any:
        given.append(options["parameters"]["dahlquist.rate"])
        return cosimulate(*args, **options)

    monkeypatch.setattr(fmu_fitting, "cosimulate", recorded)
    times = np.linspace(0.0, 3.0, 61)
    exact = {"time": times, "x": _START * np.exp(-_RATE * times)}
    found = fit_fmu(foreign("dahlquist"), exact, {"rate": bounds}, parameters={"x_start": _START, "rate": _RATE},
                    noise={"x": _NOISE})  # fmt: skip
    assert given[0] == _RATE  # as given, and not the start value of the description
    assert bounds[0] <= min(given) < max(given) <= bounds[1]
    assert found["rate"] == pytest.approx(_RATE, rel=1e-5)


def test_two_outputs_have_each_their_own_derivatives(foreign: Foreign) -> None:
    """Place and velocity of a damped mass, in the order of the log; (JᵀJ)⁻¹ σ² with J of the closed form."""
    times = np.linspace(0.0, 1.0, 101)

    def motion(stiffness: float, damping: float) -> np.ndarray:
        speed = np.sqrt(stiffness - 0.25 * damping**2)
        falling, sine = np.exp(-0.5 * damping * times), np.sin(speed * times)
        place = 100.0 * falling * (np.cos(speed * times) + 0.5 * damping / speed * sine)
        return np.concatenate([-100.0 * falling * stiffness / speed * sine / 50.0, place / 5.0])

    exact = motion(_STIFFNESS, _DAMPING)
    log = {"time": times, "v": 50.0 * exact[:101], "x": 5.0 * exact[101:]}
    found = fit_fmu(foreign("damped"), log, {"stiffness": (20.0, 80.0), "damping": (0.1, 2.0)},
                    noise={"v": 50.0, "x": 5.0}, parameters={"x": 100.0})  # fmt: skip
    assert found.values == pytest.approx([_STIFFNESS, _DAMPING], rel=1e-2)
    by_stiffness = (motion(_STIFFNESS + 1e-3, _DAMPING) - motion(_STIFFNESS - 1e-3, _DAMPING)) / 2e-3
    by_damping = (motion(_STIFFNESS, _DAMPING + 1e-4) - motion(_STIFFNESS, _DAMPING - 1e-4)) / 2e-4
    slopes = np.column_stack([by_stiffness, by_damping])
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes))), rtol=0.05)


def test_the_tolerance_of_an_fmu_says_how_far_differences_go(foreign: Foreign, tmp_path: Path) -> None:
    """Of 1e-3 the cube root is 10 %."""
    changed = _changed(
        foreign("dahlquist"), tmp_path / "rough.fmu", b'stepSize="0.1"', b'stepSize="0.1" tolerance="1e-3"'
    )
    found = fit_fmu(changed, _decay(np.linspace(0.0, 1.0, 11)), {"rate": (0.1, 3.0)}, parameters={"x_start": _START})
    assert "changed by 10 %, the cube root of its tolerance of 0.001" in found.derivatives


@pytest.mark.parametrize(
    ("times", "suggested", "step"),
    [
        ([0.0, 0.04, 0.08], 0.1, 0.02),
        ([0.0, 0.04, 0.04, 0.08], 0.1, 0.02),
        ([0.0, 0.4], 0.1, 0.1),
        ([0.0, 0.4], None, 0.2),
        ([0.4], None, 0.4),
    ],
)
def test_steps_are_half_of_the_time_between_samples_at_most(
    times: list[float], suggested: float | None, step: float
) -> None:
    """Twice the same time, as of two logs in one file, is none between samples."""
    experiment = Experiment("log", {}, (0,), (np.array(times),), (np.zeros(len(times)),))
    described = fmu_fitting._Description("fmu", (), (), (), suggested, None)
    assert fmu_fitting._step(experiment, described) == pytest.approx(step)


def test_the_last_of_several_rows_at_an_event_counts(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has a row before an event, and one after it, at the same time."""
    times = [0.0, 0.1, 0.1, 0.2]
    rows = Trajectory(np.array(times), np.array([[1.0], [2.0], [3.0], [4.0]]), ["dahlquist.x"], ["1"])
    monkeypatch.setattr(fmu_fitting, "cosimulate", lambda *_, **__: rows)
    path = foreign("dahlquist")
    machine = fmu_fitting.FmuMachine(path, fmu_fitting._described(path), {}, {}, {}, 0.1)
    run = machine.run(Request((), np.zeros(0), 0.2, [0], np.array(times)))
    assert run.times.tolist() == [0.0, 0.1, 0.2]
    assert (run.begin.ravel().tolist(), run.end.ravel().tolist()) == ([1.0, 3.0], [3.0, 4.0])


def test_a_parameter_that_is_zero_has_differences(foreign: Foreign) -> None:
    """They go by a share of the range between its bounds: of x₀ exp(−r t) with x₀ = 0 the slope is exp(−r t)."""
    times = np.linspace(0.0, 3.0, 61)
    noise = _NOISE * np.random.default_rng(5).standard_normal(len(times))
    found = fit_fmu(foreign("dahlquist"), {"time": times, "x": noise}, {"x_start": (-1.0, 1.0)},
                    parameters={"x_start": 0.0, "rate": _RATE}, noise={"x": _NOISE})  # fmt: skip
    slope = np.exp(-_RATE * times)
    assert found["x_start"] == pytest.approx(slope @ noise / (slope @ slope), rel=1e-3)


def test_a_log_with_outliers_and_a_delay(foreign: Foreign, tmp_path: Path) -> None:
    """A mass of 1 kg on a spring, held by a force: x = r + e^(−d t / 2) (a cos ω t + b sin ω t), in mm, late."""
    times = np.linspace(0.0, 4.0, 401)
    late = np.maximum(times - _DELAY, 0.0)
    rest, speed = 1e3 * _FORCE / _STIFFNESS, np.sqrt(_STIFFNESS - 0.25 * _DAMPING**2)
    swing = np.cos(speed * late) + 0.5 * _DAMPING / speed * np.sin(speed * late)
    random = np.random.default_rng(3)
    x = rest + (100.0 - rest) * np.exp(-0.5 * _DAMPING * late) * swing + random.standard_normal(len(times))
    x[random.choice(len(x), 20, replace=False)] += 60.0
    log = tmp_path / "log.csv"
    columns = np.column_stack([np.full(len(times), _FORCE), x])
    Trajectory(times, columns, ["force", "damped.x"], ["N", "mm"]).to_file(log)
    given = ["fit", str(foreign("damped")), "--measured", str(log), "--free", "stiffness=20:80"]
    given += ["--free", "damping=0.1:2", "--delay", "x=0:0.2", "--loss", "cauchy"]
    files = ["--json", str(tmp_path / "fit.json"), "--report", str(tmp_path / "page.html")]
    run = CliRunner().invoke(cli, [*given, *files], catch_exceptions=False)
    assert run.exit_code == 0
    assert "derivatives by differences: damped is an FMU" in " ".join(run.output.split())
    read = json.loads((tmp_path / "fit.json").read_text())
    assert read["derivatives"].startswith("derivatives by differences")
    assert "derivatives by differences" in (tmp_path / "page.html").read_text()
    for each, exact in zip(read["parameters"], (_STIFFNESS, _DAMPING, _DELAY), strict=True):
        low, high = each["interval_95"]
        assert low < exact < high, each
        assert high - low < 0.2 * exact, each


def test_what_an_fmu_calculates_is_not_fitted(foreign: Foreign, tmp_path: Path) -> None:
    """Some tools write a start value for it all the same; it cannot be set. The name of the file may have a dot."""
    started = b'initial="calculated"><Real start="3"/>'
    changed = _changed(foreign("dahlquist"), tmp_path / "dahlquist.v2.fmu", b'initial="calculated"><Real/>', started)
    data = _decay(np.linspace(0.0, 1.0, 11))
    with pytest.raises(InputError, match=r"there is no parameter 'x'"):
        fit_fmu(changed, data, {"x": (1.0, 9.0)})
    found = fit_fmu(changed, data, {"rate": (0.1, 3.0)}, parameters={"x_start": _START})
    assert found["rate"] == pytest.approx(_RATE, abs=5.0 * found.deviations[0])


def test_what_is_refused(foreign: Foreign) -> None:
    data = _decay(np.linspace(0.0, 1.0, 11))
    unit = foreign("dahlquist")
    with pytest.raises(InputError, match=r"a fit is of a model or of one FMU, a file \*.fmu"):
        fit_fmu("package.ssp", data, {"rate": (0.1, 3.0)})
    with pytest.raises(InputError, match=r"no parameter 'rat'"):
        fit_fmu(unit, data, {"rat": (0.1, 3.0)})
    with pytest.raises(InputError, match=r"'dahlquist.rate' is named twice"):
        fit_fmu(unit, data, {"rate": (0.1, 3.0), "dahlquist.rate": (0.1, 3.0)})
    with pytest.raises(InputError, match=r"rate is to lie between 3 and 1"):
        fit_fmu(unit, data, {"rate": (3.0, 1.0)})
    with pytest.raises(InputError, match=r"the step is -1 s; it must be positive"):
        fit_fmu(unit, data, {"rate": (0.1, 3.0)}, step=-1.0)
    with pytest.raises(InputError, match=r"the loss 'hubr' is unknown"):
        fit_fmu(unit, data, {"rate": (0.1, 3.0)}, loss="hubr")  # type: ignore[arg-type]
    log = ["--measured", "log.csv", "--free", "rate=0.1:3"]
    run = CliRunner().invoke(cli, ["fit", str(unit), *log, "-o", "fitted.json"])
    assert run.exit_code != 0
    assert "it writes a model" in str(run.exception) + run.output
