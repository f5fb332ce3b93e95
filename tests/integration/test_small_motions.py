"""Motions far below a nanometre: the tolerances of rodas5p follow what moves, to round-off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from ensemble_cases import LANES

from mbsfmu import (
    Array,
    Block,
    CoupledModel,
    JointSpringDamper,
    Mechanism,
    Numbers,
    Parameter,
    Prismatic,
    Quantity,
    RigidBody,
)
from mbsfmu.tracing.workspace import Floats

MASS, STIFFNESS, DAMPING, STOP = 2.0, 2e5, 40.0, 0.2


def mass_on_a_spring(amplitude: float, offset: float = 0.0) -> CoupledModel:
    """A mass that is released beside its rest, which is at an offset; both in m."""
    spring = {"stiffness": STIFFNESS, "damping": DAMPING, "free_coordinate": offset}
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="slider", mass=MASS, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="slider.origin", displacement=offset + amplitude),),
        forces=(JointSpringDamper(name="spring", joint="rail", **spring),),
    )
    return CoupledModel(name="spring", systems={"mechanism": mechanism}, stop_time=STOP)


def decaying(times: Floats) -> Floats:
    """The displacement from rest relative to the amplitude, in closed form."""
    decay = 0.5 * DAMPING / MASS
    frequency = np.sqrt(STIFFNESS / MASS - decay**2)
    return np.exp(-decay * times) * (np.cos(frequency * times) + decay / frequency * np.sin(frequency * times))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize(("amplitude", "error"), [(1e-2, 1e-8), (1e-8, 1e-4), (1e-10, 1e-4), (1e-12, 5e-3)])
def test_small_motions_are_exact(amplitude: float, error: float, offset: float, compiled: bool) -> None:
    """A fixed absolute tolerance of 1e-9 m made 1e-9 m 2 % wrong, and 1e-10 m all of it."""
    result = mass_on_a_spring(amplitude, offset).simulation(compiled=compiled).run()
    moved = (result["slider.displacement"] - offset) / amplitude
    np.testing.assert_allclose(moved, decaying(result.time), rtol=0.0, atol=error)
    assert result.statistics.steps < 1000


@pytest.mark.parametrize("lanes", LANES)
def test_small_motions_are_exact_in_ensembles(lanes: int) -> None:
    amplitudes = np.array([1e-2, 1e-8, 1e-10])
    starts = {"slider.displacement": amplitudes}
    ensemble = mass_on_a_spring(1e-2).ensemble(starts=starts, solver="rodas5p", lanes=lanes)
    result = ensemble.run(STOP, output_step=1e-3, outputs=["slider.displacement"])
    moved = result["slider.displacement"] / amplitudes[:, np.newaxis]
    np.testing.assert_allclose(moved, np.broadcast_to(decaying(result.time), moved.shape), rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_what_rests_takes_long_steps(formulation: str) -> None:
    """Changes that are round-off ask for no tolerance below it."""
    result = mass_on_a_spring(0.0, 1.0).simulation(formulation=formulation, compiled=False).run(10.0)
    assert result.statistics.steps < 20


@pytest.mark.parametrize("options", [{}, {"solver": "trapezoidal", "step": 1e-3}])
def test_estimates_are_right_for_small_motions(options: dict[str, Any]) -> None:
    """Of the tenth of a nanometre; the largest error is that of velocities or accelerations."""
    result = mass_on_a_spring(1e-10).simulation(compiled=False, check_error=True, **options).run()
    error = np.abs(result["slider.displacement"] / 1e-10 - decaying(result.time)).max()
    assert result.error.share is not None
    assert error / 3.0 < result.error.share < 10.0 * error


class Sudden(Block):
    """At rest until a time, which no event says, and then as fast as one."""

    type: Literal["sudden"] = "sudden"
    until: Annotated[float, Parameter("s", "end of the rest")] = 0.1

    def states(self) -> tuple[Quantity, ...]:
        return Quantity("x", "m"), Quantity("clock", "s")

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("position", "m"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        return {"x": 0.5 * (1.0 + np.sign(now["clock"] - now["until"])), "clock": 1.0 + 0.0 * now["x"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"position": now["x"]}

    def initial_states(self, now: Numbers) -> Mapping[str, float]:
        return {"x": 0.0, "clock": 0.0}


@pytest.mark.parametrize("way", ["interpreted", "compiled", "in lanes"])
@pytest.mark.parametrize("stop", [1.0, 3600.0])
def test_rest_may_end_suddenly_however_long_the_run(stop: float, way: str) -> None:
    """Errors behind a jump decrease in proportion to steps, as changes do: no step is short enough for their ratio."""
    model = CoupledModel(name="sudden", systems={"sudden": Sudden()})
    options: dict[str, Any] = {"solver": "rodas5p", "step": stop / 10.0}
    if way == "in lanes":
        until = np.array([0.1, 0.35])
        result = model.ensemble({"until": until}, **options).run(stop, output_step=stop / 10.0)
        assert result.completed.all(), result.failures
        assert not result.scalar_steps.any(), "lanes need no machine of their own"
        np.testing.assert_allclose(result["position"][:, -1], stop - until, rtol=1e-8)
    else:
        result = model.simulation(compiled=way == "compiled", **options).run(stop, output_step=stop / 10.0)
        assert result["position"][-1] == pytest.approx(stop - 0.1, rel=1e-8)
