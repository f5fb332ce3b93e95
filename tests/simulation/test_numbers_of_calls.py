"""Times and values in calls from Python take texts with units, or are refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oscillator_in_closed_form import motion, oscillator

from mbsfmu import CoupledModel, InputError, sweep

CALLS: dict[str, Callable[[CoupledModel, Any], Any]] = {
    "run": lambda model, value: model.simulation(compiled=False).run(value),
    "output step": lambda model, value: model.simulation(compiled=False).run(1.0, output_step=value),
    "step": lambda model, value: model.simulation(compiled=False).step(0.0, value),
    "initialize": lambda model, value: model.simulation(compiled=False).initialize(value),
    "tolerance": lambda model, value: model.simulation(compiled=False).set_tolerance(value),
    "option": lambda model, value: model.simulation(step=value, compiled=False),
    "set": lambda model, value: model.simulation(compiled=False).set("slider.mass", value),
    "ensemble": lambda model, value: model.ensemble({"slider.mass": [1.0, value]}),
    "ensemble of one value": lambda model, value: model.ensemble({"slider.mass": value, "spring.damping": [1.0, 2.0]}),
    "starts": lambda model, value: model.ensemble(starts={"slider.displacement": [0.1, value]}),
    "ensemble's run": lambda model, value: model.ensemble({"slider.mass": [1.0, 2.0]}).run(value),
    "linearize": lambda model, value: model.linearize(at=value),
    "optimize": lambda model, value: model.optimize("max(slider.velocity)", {"spring.damping": value}),
    "sensitivities": lambda model, value: model.sensitivities(["slider.mass"], stop=value),
    "sweep": lambda model, value: sweep(model, {"slider.mass": [1.0, value]}, stop=0.1),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", [True, [1.0, [2.0]], "x", "3 kg/s", "140 bar:220 bar", 1j], ids=repr)
def test_what_is_no_number_is_refused_in_one_sentence(call: str, value: Any) -> None:
    with pytest.raises(InputError) as error:
        CALLS[call](oscillator(driven=False), value)
    assert "\n" not in str(error.value)


def test_texts_have_units() -> None:
    """Displacements after half a second, by the matrix exponential; with twice the mass nothing is as it was."""
    model = oscillator(driven=False)
    expected = motion(np.array([0.5]), driven=False)[0][0]
    result = model.simulation(compiled=False).run("500 ms", output_step="0.1 s")
    assert result["slider.displacement"][-1] == pytest.approx(expected, rel=1e-6)
    assert len(result.time) == 6
    mass = float(model.simulation(compiled=False).get("slider.mass"))
    ensemble = model.ensemble({"slider.mass": [f"{1e3 * mass} g", mass]}, solver="rodas5p").run("500 ms")
    assert ensemble["slider.displacement"][0, -1] == pytest.approx(expected, rel=1e-6)
    assert ensemble["slider.displacement"][0, -1] == ensemble["slider.displacement"][1, -1]
    assert model.linearize(at="100 ms").time == 0.1


def test_reversed_bounds_have_their_unit() -> None:
    said = "spring.damping is to lie between 2 N.s/m and 1 N.s/m; give a smaller and a greater finite number"
    with pytest.raises(InputError, match=said):
        oscillator().optimize("max(slider.velocity)", {"spring.damping": (2.0, 1.0)}, stop=0.1)


@pytest.mark.parametrize("tolerance", [1.0, 2.0, 1e300])
def test_a_relative_tolerance_of_the_whole_is_refused(tolerance: float) -> None:
    with pytest.raises(InputError, match="must be at least 1e-13, round-off, and less than 1"):
        oscillator().simulation(relative_tolerance=tolerance)
