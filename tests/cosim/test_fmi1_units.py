"""A unit of FMI 1.0 on the master, alone and with one of FMI 2.0, against closed forms."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mbsfmu import CosimulationError, InputError, LinearSignal, SimulationError, StepSignal, cosimulate

Foreign = Callable[[str], Path]


def changed(unit: Path, folder: Path, **replaced: str) -> Path:
    """Return an FMU with other words in its description."""
    result = folder / "changed.fmu"
    with zipfile.ZipFile(unit) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "modelDescription.xml":
                text = content.decode()
                for before, after in replaced.items():
                    assert before in text
                    text = text.replace(before, after)
                content = text.encode()
            new.writestr(name, content)
    return result


def test_it_decays_exponentially_from_a_start_that_was_set(foreign: Foreign) -> None:
    """Its default experiment says when it ends; negative aliases are left out, and all other kinds are there."""
    result = cosimulate(foreign("lag"), step=0.1, parameters={"lag.rate": 0.8, "lag.x_start": 3.0})
    np.testing.assert_allclose(result["x"], 3.0 * np.exp(-0.8 * result.time), rtol=1e-12)
    assert result.time[-1] == 2.0
    np.testing.assert_array_equal(result["steps"], np.arange(21))
    assert not [name for name in result.names if "minus" in name]
    assert result.unit("x") == "m"


def test_inputs_run_straight_where_it_interpolates(foreign: Foreign) -> None:
    """x' = u - x with u = 3 t from x = 0 is 3 (t - 1 + exp(-t)), exact by slopes at any step; a held input lags."""
    ramp = LinearSignal(times=(0.0, 2.0), values=(0.0, 6.0))
    given = {"inputs": {"lag.u": ramp}, "parameters": {"lag.x_start": 0.0}}
    result = cosimulate(foreign("lag"), step=0.25, extrapolation="linear", **given)
    exact = 3.0 * (result.time - 1.0 + np.exp(-result.time))
    np.testing.assert_allclose(result["x"], exact, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_it_runs_with_a_unit_of_fmi_2(foreign: Foreign, algorithm: str) -> None:
    """Two lags in a row: held inputs have the error of the first order, and its half with half the step."""
    errors = []
    for step in (0.01, 0.005):
        result = cosimulate(
            [foreign("dahlquist"), foreign("lag")],
            connections=["dahlquist.x=lag.u"],
            algorithm=algorithm,
            step=step,
            stop=2.0,
            parameters={"dahlquist.x_start": 2.0, "dahlquist.rate": 0.5, "lag.x_start": 0.0},
        )
        exact = 2.0 * 1.0 / (1.0 - 0.5) * (np.exp(-0.5 * result.time) - np.exp(-result.time))
        errors.append(np.max(np.abs(result["lag.x"] - exact)))
    assert 1e-4 < errors[0] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)


def test_connected_inputs_take_start_values(foreign: Foreign) -> None:
    """FMI 1.0 has no initialization mode: what is set counts there, and connections from then on."""
    units = [foreign("dahlquist"), foreign("lag")]
    given = {"connections": ["dahlquist.x=lag.u"], "step": 0.1, "stop": 0.2}
    one, two = (cosimulate(units, parameters=each, **given) for each in ({"lag.u": 5.0}, {}))
    np.testing.assert_array_equal(one["lag.x"], two["lag.x"])


def test_booleans_are_set(foreign: Foreign) -> None:
    """Two of them, a byte each: twice the rate from 0.5 s on, and a state that stays from 1 s on."""
    signals = {
        f"lag.{name}": StepSignal(times=(0.0, time), values=(0.0, 1.0))
        for name, time in (("hurries", 0.5), ("holds", 1.0))
    }
    result = cosimulate(foreign("lag"), step=0.1, inputs=signals)
    passed = np.minimum(result.time, 1.0)
    np.testing.assert_allclose(result["x"], np.exp(-passed - np.maximum(passed - 0.5, 0.0)), rtol=1e-12)


def test_a_discarded_step_ends_the_run_with_its_reason(foreign: Foreign) -> None:
    """What the unit says of how far it came is taken: it stops at a hundredth of a second."""
    beyond = StepSignal(times=(0.0, 1.004), values=(0.0, 101.0))
    with pytest.raises(CosimulationError, match=r"lag at t = 1\.01 s: fmiDoStep gives discard: u is .* 100: 101"):
        cosimulate(foreign("lag"), step=0.1, inputs={"lag.u": beyond})


@pytest.mark.parametrize("options", [{"algorithm": "newton"}, {"algorithm": "fixed-point"}])
def test_what_needs_saved_states_is_refused(foreign: Foreign, options: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"lag.*stat"):
        cosimulate(
            [foreign("dahlquist"), foreign("lag")], connections=["dahlquist.x=lag.u"], step=0.1, stop=1.0, **options
        )


def test_another_description_and_model_exchange_are_refused(foreign: Foreign, tmp_path: Path) -> None:
    other = changed(foreign("lag"), tmp_path, **{"{0d3c1a52-first-version}": "{another}"})
    with pytest.raises(SimulationError, match="cannot be instantiated: the description is that of another FMU"):
        cosimulate(other, step=0.1)
    text = foreign("lag")
    with zipfile.ZipFile(text) as archive:
        content = archive.read("modelDescription.xml").decode()
    implementation = content[content.index("  <Implementation>") : content.index("</fmiModelDescription>")]
    exchanged = changed(text, tmp_path, **{implementation: ""})
    with pytest.raises(InputError, match=r"none of FMI 1\.0 for co-simulation \(it is FMI 1\.0 for model exchange\)"):
        cosimulate(exchanged, step=0.1)
