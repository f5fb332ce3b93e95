"""Sensitivities and gradients of runs of penalty, dca and hdca, against differences of fourth order of these runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differentiated_cases import CASES
from driven_crank import driven_crank

import mbsfmu
from mbsfmu import CoupledModel, InputError
from mbsfmu.analysis.recorded_run import RecordedRun

TIGHT = {"step": 1e-3, "newton_tolerance": 1e-13}
FORMULATIONS = ("penalty", "dca", "hdca")
_WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0


def differences(model: CoupledModel, formulation: str, name: str, share: float, outputs: list[str], stop: float) -> Any:
    """Return the derivatives of outputs at the end of a run by a parameter, from four runs next to it."""
    simulation = model.simulation(formulation=formulation, solver="trapezoidal", **TIGHT)  # pyright: ignore[reportArgumentType]
    value = simulation.get(name)
    ends = []
    for place in (-2.0, -1.0, 1.0, 2.0):
        simulation.reset()
        simulation.set(name, value * (1.0 + place * share))
        run = simulation.run(stop, output_step=stop)
        ends.append([run[each][-1] for each in outputs])
    return _WEIGHTS @ np.array(ends) / (share * value)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_the_runs(case: str, formulation: str) -> None:
    """Forward, and by the adjoint; momenta of hdca are restarted in every step at rest, and often after the valve."""
    made, parameters, outputs, stop = CASES[case]
    model = made()
    found = model.sensitivities(list(parameters), outputs, stop=stop, formulation=formulation, **TIGHT)
    for column, (name, share) in enumerate(parameters.items()):
        expected = differences(model, formulation, name, share, outputs, stop)
        np.testing.assert_allclose(found.derivatives[-1, :, column], expected, rtol=1e-6, err_msg=name)
    for row, of in enumerate(outputs[:2]):
        gradient = model.gradient(of, list(parameters), stop=stop, formulation=formulation, **TIGHT)
        np.testing.assert_allclose(list(gradient.parameters.values()), found.derivatives[-1, row], rtol=1e-7)


@pytest.mark.parametrize("model", [driven_crank(), mbsfmu.models.built_in("loop-4")], ids=["driven", "free"])
def test_steps_of_penalty_are_those_of_its_equations(model: CoupledModel) -> None:
    """The equations that are differentiated hold at the ends of recorded steps, projections and work included."""
    simulation = model.simulation(formulation="penalty", solver="trapezoidal", step=1e-2)
    off, sizes = RecordedRun(simulation, 0.1, [0]).equations.missed()
    np.testing.assert_allclose(off / sizes[:, None], 0.0, atol=1e-11)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_gradients_by_samples_of_an_input_are_those_of_double_step(formulation: str) -> None:
    """All formulations differentiate the same motion: through the jump of the command, of an integral and a maximum."""
    model = mbsfmu.models.built_in("four-bar")
    for of in ("integral(cylinder.pressure_piston)", "max(boom.angular_velocity)"):
        found, expected = (
            model.gradient(of, ["boom.mass"], ["valve.command"], stop=1.04, formulation=each, step=1e-3)
            for each in (formulation, "double-step")
        )
        assert found.value == pytest.approx(expected.value, rel=1e-5)
        np.testing.assert_allclose(found.parameters["boom.mass"], expected.parameters["boom.mass"], rtol=1e-3)
        of_input, same = found.inputs["valve.command"], expected.inputs["valve.command"]
        np.testing.assert_allclose(of_input, same, atol=1e-3 * np.abs(same).max())


def test_fits_take_these_formulations() -> None:
    """The log of a run of double-step is fitted by runs of hdca."""
    model = mbsfmu.models.built_in("pendulum-3")
    run = model.simulation(formulation="double-step", solver="trapezoidal", step=1e-3).run(0.4, output_step=0.01)
    log = {"time": run.time, "link_3.angle": run["link_3.angle"]}
    changed = model.with_values({"link_3.mass": 1.2 * model.simulation().get("link_3.mass")})
    found = changed.fit(log, {"link_3.mass": (0.1, 10.0)}, formulation="hdca", step=1e-3)
    assert found["link_3.mass"] == pytest.approx(model.simulation().get("link_3.mass"), rel=1e-3)


def test_what_is_not_differentiated_is_refused_by_name() -> None:
    model = mbsfmu.models.built_in("pendulum-3")
    with pytest.raises(InputError, match=r"sensitivities differentiates steps of .*, and not of 'dca-alm'"):
        model.sensitivities(["gravity.y"], formulation="dca-alm", stop=0.1)
    with pytest.raises(InputError, match=r"gradient differentiates unrolled code; leave out code = 'loops'"):
        model.gradient("link_3.angle", ["gravity.y"], formulation="dca", code="loops", stop=0.1)
