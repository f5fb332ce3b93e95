"""Linearly implicit steps in absolute coordinates: solved with exact derivatives, redundant joints or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_fmus import model_of
from overconstrained import bennett_reference

import mbsfmu
from mbsfmu import CoupledModel, InputError, LinearSignal, Simulation
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.formulations.formulation import DifferentiableForm
from mbsfmu.models import slewing_four_bar
from mbsfmu.tracing.workspace import Floats

SHARE = 3e-3
"""h γ in s."""


def simulated(model: CoupledModel, **options: Any) -> Simulation:
    return model.simulation(formulation="dca-alm", solver="rodas5p", **options)


@pytest.mark.parametrize(
    ("name", "projections"),
    [("four-bar", True), ("bennett", False), ("ball-pendulum", True), ("slewing-four-bar", True), ("four-bar", False)],
)
def test_stages_solve_with_the_derivative_of_the_rates(name: str, *, projections: bool) -> None:
    """By central differences, in motion; also along the inputs. Stages lie beside the constraints, in any direction."""
    model = slewing_four_bar(0.3, 1.0) if name == "slewing-four-bar" else model_of(name)
    simulation = simulated(model, compiled=False, projections=projections)
    simulation.run(0.2, output_step=0.2)
    form, inputs = simulation.formulation.explicit_form(simulation._started()), simulation.run_loop.effective.copy()
    assert isinstance(form, DifferentiableForm)
    values, slopes = form.start, np.ones(len(inputs))
    scales = np.maximum(np.abs(values), simulation.formulation.explicit_scale)

    def difference(value: Floats, given: Floats) -> Floats:
        return (form.rates(values + value, inputs + given) - form.rates(values - value, inputs - given)) / 2e-6

    direction = scales * np.cos(np.arange(float(len(values))))
    along = difference(1e-6 * direction, np.zeros_like(inputs))
    driven = difference(np.zeros_like(values), 1e-6 * slopes)
    form.rates(values, inputs)
    drift, stages = form.drift(slopes), form.stages()
    assert stages.factorize(SHARE)
    right = direction / SHARE - along
    found = stages.solve(right)
    np.testing.assert_allclose(
        found / scales, direction / scales, rtol=0.0, atol=1e-5 * max(1.0, np.max(np.abs(SHARE * along)))
    )
    np.testing.assert_allclose(drift, driven, atol=1e-6 * np.abs(driven).max(initial=0.0) + 1e-9)
    missing = stages.missing(right, found)
    assert missing is not None
    assert np.max(np.abs(missing)) < 1e-7 * np.max(np.abs(right))
    wrong = found.copy()
    wrong[0] += 1e-3
    missing = stages.missing(right, wrong)
    assert missing is not None
    assert missing[0] == pytest.approx(1e-3 / SHARE, rel=1e-3)


def test_error_follows_the_tolerance_where_joints_are_redundant() -> None:
    """Bennett's linkage, which three equations too many hold, against its equation of motion; steps by their order.

    The equations that are chosen at the start are dependent at about 0.9 s.
    """
    steps = []
    for tolerance, bound in ((1e-6, 3e-5), (1e-8, 3e-7)):
        options = {"relative_tolerance": tolerance, "absolute_tolerance": tolerance, "solver": "rodas5p"}
        result = mbsfmu.models.bennett().simulation(formulation="dca-alm", **options).run(1.25, output_step=0.25)
        motion = [result[f"link_1.{each}"][2:] for each in ("angle", "angular_velocity", "angular_acceleration")]
        assert np.max(np.abs(np.array(motion) - bennett_reference())) < bound
        assert np.max(result["constraint.position"]) < 1e-13
        assert result.statistics.repartitions > 0
        steps.append(result.statistics.steps)
    assert steps[1] / steps[0] == pytest.approx(10.0**0.4, rel=0.15)


def test_forces_of_redundant_joints_are_those_of_joint_coordinates() -> None:
    """A four-bar whose house turns: which tilts are redundant depends on where it is."""
    model, options = slewing_four_bar(0.3, 4.0), {"solver": "rodas5p"}
    found = simulated(model, relative_tolerance=1e-9, absolute_tolerance=1e-9).run(0.8, output_step=0.4)
    options |= {"relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}
    expected = model.simulation(formulation="double-step", **options).run(0.8, output_step=0.4)
    for name in ("crank.angle", "crank.angular_velocity", "C.force.x", "C.force.z", "slewing.moment.x"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0.0, atol=3e-8 * np.max(np.abs(expected[name])))


def test_cost_grows_as_the_number_of_bodies() -> None:
    costs = []
    for size in (3, 5, 7):
        formulation = simulated(mbsfmu.models.pendulum(size), compiled=False).formulation
        assert isinstance(formulation, DcaAlm)
        costs.append([each.operations for each in (*formulation.stages.stages, formulation.stages.left)])
    growth = np.diff(costs, axis=0)
    assert np.max(growth[1] / growth[0]) < 1.25


@pytest.mark.parametrize("compiled", [False, True])
def test_without_bodies_steps_are_those_of_joint_coordinates(*, compiled: bool) -> None:
    """A circuit alone, as in a unit of its own, whose valve follows straight lines: rates depend on time."""
    four_bar = mbsfmu.models.four_bar()
    signals = dict.fromkeys(four_bar.signals, LinearSignal(times=(0.0, 0.1, 0.31, 0.5), values=(0.0, 0.0, 8.0, -2.0)))
    model = CoupledModel(name="circuit", systems={"circuit": four_bar.systems["circuit"]}, signals=signals)
    found, expected = (
        model.simulation(formulation=each, solver="rodas5p", compiled=compiled).run(0.5) for each in ("dca-alm", "dca")
    )
    assert found.statistics.steps == expected.statistics.steps
    for name in expected.names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, err_msg=name)


def test_straight_code_is_refused() -> None:
    with pytest.raises(InputError, match="'dca-alm' gives in kernel loops only, and unrolled code was chosen"):
        simulated(mbsfmu.models.pendulum(2), code="straight")
