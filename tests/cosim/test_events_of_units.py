"""Events of units for model exchange: met when they happen in closed form, however long steps are."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from model_exchange_fmus.runs import SOLVERS, VERSIONS, Jumper, alone

from mbsfmu import CosimulationError
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.model_exchange import FmuIntegrator, ModelExchangeInstance


def bouncing(times: np.ndarray, gravity: float, restitution: float) -> tuple[np.ndarray, int]:
    """Return heights at times of a ball that falls from 1 m, and how often it bounces, until it rests at 0.1 m/s."""
    begin, speed, count = np.sqrt(2.0 / gravity), np.sqrt(2.0 * gravity) * restitution, 1
    heights = 1.0 - 0.5 * gravity * times**2
    while speed >= 0.1:
        since = times - begin
        heights = np.where(since > 0.0, speed * since - 0.5 * gravity * since**2, heights)
        begin, speed, count = begin + 2.0 * speed / gravity, speed * restitution, count + 1
    return np.where(times > begin, 0.0, heights), count


@VERSIONS
@SOLVERS
@pytest.mark.parametrize("step", [0.01, 0.2, 3.0])
def test_a_ball_bounces_when_it_does_in_closed_form(jumper: Jumper, version: int, solver: str, step: float) -> None:
    """At the end of the longest step the ball has been at rest for some time."""
    result = alone(jumper(version), 3.0, step, {"unit_solver": solver}, x=1.0, gravity=9.81, restitution=0.7)
    heights, count = bouncing(result.time, 9.81, 0.7)
    np.testing.assert_allclose(result["jumper.x"], heights, atol=2e-9)
    assert result.final()["jumper.bounces"] == count == 11
    assert result.unit_events == {"jumper": 2 * count - 1}  # at zero the indicator is not positive: it turns so again


@VERSIONS
def test_events_are_one_after_the_other_where_time_stands_still(
    jumper: Jumper, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bounce is two events at one time, after which none may follow there; bounces in one step are at several."""
    monkeypatch.setattr("mbsfmu.cosim.fmus.model_exchange.MOST_ITERATIONS", 1)
    result = alone(jumper(version), 3.0, 0.1, x=1.0, gravity=9.81, restitution=0.7)
    assert result.final()["jumper.bounces"] == 11


@VERSIONS
@SOLVERS
def test_events_that_a_unit_names_are_met_and_it_may_end_the_run(jumper: Jumper, version: int, solver: str) -> None:
    result = alone(jumper(version), 3.0, 0.1, {"unit_solver": solver}, x=1.0, stiffness=4.0, period=0.31, last=2.0)
    np.testing.assert_allclose(result["jumper.x"], np.cos(2.0 * result.time), atol=3e-6)
    np.testing.assert_array_equal(result["jumper.ticks"], np.floor(result.time / 0.31 + 1e-12))
    assert result.time[-1] == 2.0
    assert "jumper ended the run at t = 2 s" in result.notes
    assert result.unit_events == {"jumper": 7}


@VERSIONS
def test_a_unit_ends_the_run_inside_a_step_and_at_its_start(jumper: Jumper, version: int) -> None:
    result = alone(jumper(version), 3.0, 0.3, x=1.0, stiffness=4.0, last=1.4)
    assert result.time[-1] == pytest.approx(1.4, abs=1e-15)
    assert result["jumper.x"][-1] == pytest.approx(np.cos(2.8), abs=3e-6)
    assert alone(jumper(version), x=1.0, last=-1.0).time[-1] == 0.0


@VERSIONS
def test_a_unit_is_asked_after_every_step_of_the_integrator(jumper: Jumper, version: int) -> None:
    """x' = 1 is set back by 1 beyond 1: at the end of the step of the integrator in which that is seen."""
    result = alone(jumper(version), 2.5, 0.1, v=1.0, limit=1.0)
    np.testing.assert_allclose(result["jumper.x"] + result["jumper.wraps"], result.time, atol=1e-12)
    assert result["jumper.wraps"][-1] == 2 == result.unit_events["jumper"]
    assert result["jumper.x"].max() < 1.2


@VERSIONS
def test_events_that_are_not_told_apart_end_the_run(jumper: Jumper, version: int) -> None:
    """Ten to the sixteenth of them in a step: at its begin each has a time of its own."""
    with pytest.raises(CosimulationError, match=r"jumper has one event after the other at t = 1\.001e-14 s"):
        alone(jumper(version), 0.2, 0.1, period=1e-17)


@VERSIONS
@pytest.mark.parametrize("isolate", [None, "all"])
def test_controlled_steps_end_where_a_unit_has_an_event(jumper: Jumper, version: int, isolate: str | None) -> None:
    """All units are there when the ball bounces: nothing is extrapolated over its velocity."""
    if isolate is not None and version == 2:
        return
    options: dict[str, Any] = {"control": "error", "tolerance": 1e-3, "smallest_step": 1e-6, "isolate": isolate}
    result = alone(jumper(version), 2.0, 0.1, options, x=1.0, gravity=9.81, restitution=0.7)
    begin, speed = np.sqrt(2.0 / 9.81), np.sqrt(2.0 * 9.81) * 0.7
    while begin < 2.0:
        assert np.min(np.abs(result.time - begin)) < 2e-6
        begin, speed = begin + 2.0 * speed / 9.81, speed * 0.7
    np.testing.assert_allclose(result["jumper.x"], bouncing(result.time, 9.81, 0.7)[0], atol=1e-5)
    assert result.rejected_steps >= 3


@VERSIONS
def test_a_ball_that_is_put_back_to_the_ground_bounces_again(jumper: Jumper, version: int) -> None:
    """It is thrown from there at 1 m/s, which is below 0.1 m/s after seven bounces, in one step of 3 s."""
    with closing(Archive(jumper(version))) as archive, closing(make_instance("jumper", archive)) as unit:
        unit.setup(0.0, 3.0)
        for name, value in {"v": 1.0, "gravity": 9.81, "restitution": 0.7}.items():
            unit.set_start(name, value)
        unit.enter_initialization()
        unit.exit_initialization()
        assert isinstance(unit, ModelExchangeInstance)
        unit.integrator.length = 3.0  # as after a long flight
        outputs = unit.port(["x", "v", "bounces"])
        unit.save("begin", 0.0)
        for _ in range(2):
            unit.restore("begin")
            unit.step(0.0, 3.0)
            np.testing.assert_array_equal(outputs.read(), [0.0, 0.0, 7.0])


class Thrown:
    """A ball that is thrown at 1 m/s and told of by its height over ground, or by its depth."""

    tolerances = np.ones(2)

    def __init__(self, sign: float) -> None:
        self._sign = sign

    def rates(self, time: float, states: np.ndarray) -> np.ndarray:
        return np.array([states[1], -9.81])

    def indicators(self, time: float, states: np.ndarray) -> np.ndarray:
        return self._sign * states[:1]

    def jacobian(self) -> None:
        return None


@SOLVERS
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("height", [0.0, -1e-10, 1e-10, -1e-4, 1e-4])
def test_indicators_may_begin_on_either_side_of_zero_after_an_event(solver: str, sign: float, height: float) -> None:
    """A flight of 0.2 s in a step of 100 s; at height zero, height is not positive, and turns so again."""
    ball = FmuIntegrator("ball", Thrown(sign), solver, 1e-6)
    expected = [time for time in sorted(np.roots([-0.5 * 9.81, 1.0, height])) if time >= 0.0]
    if height == 0.0 and sign < 0.0:
        expected = expected[1:]
    time, states, found = 0.0, np.array([height, 1.0]), []
    while time < 100.0:
        ball.begin(time, states, 100.0, follows_event=True)
        ball.length = 100.0
        crosses = False
        while time < 100.0 and not crosses:
            time, states, crosses = ball.advance()
        found += [time] if crosses else []
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
