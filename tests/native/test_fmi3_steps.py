"""Events, early return, and what the importer is told during steps, in FMUs of FMI 3.0; against closed forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from driven_crank import driven_crank
from extending.controllers import Counter, Growing
from fmpy.fmi1 import FMICallException
from importer import Importer, Slave3
from oscillator_in_closed_form import DAMPING, FORCES, JUMPS, MASS, SPEED, START, STIFFNESS, displacement, oscillator
from sampled_control import OFFSET, SAMPLE, controlled, discrete
from scipy.linalg import expm

import mbsfmu
from mbsfmu import CoupledModel

STEP = 1e-3
ACCURACY = 2e-10
"""Of rk4 with steps of 1 ms."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Importer:
    """The oscillator that steps of a force drive."""
    folder = tmp_path_factory.mktemp("oscillator")
    (path,) = mbsfmu.export(oscillator(), folder, layout="monolithic", solver="rk4", step=STEP, fmi=3)
    return Importer(path, folder / "unpacked")


@pytest.fixture
def importer(unpacked: Importer) -> Iterator[Importer]:
    del unpacked.messages[:]
    yield unpacked
    while unpacked.slaves:
        unpacked.slaves.pop().freeInstance()


def running(importer: Importer, **wishes: Any) -> Slave3:
    """An instance that is ready to step."""
    slave = importer.instance(**wishes)
    assert isinstance(slave, Slave3)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    if wishes.get("eventModeUsed"):
        assert slave.updateDiscreteStates() == (False, False, False, False, True, JUMPS[0])
        slave.enterStepMode()
    return slave


def at(importer: Importer, slave: Slave3) -> tuple[float, float, float]:
    """Time, force and displacement."""
    time, force, moved = (importer.get(slave, name) for name in ("time", "motor.force", "slider.displacement"))
    assert moved == pytest.approx(displacement(np.array([time]))[0], abs=ACCURACY)
    return time, force, moved


def test_derivatives_by_inputs_are_exact(importer: Importer) -> None:
    """The acceleration follows the force by the mass, the displacement only in time."""
    slave = running(importer)
    slave.doStep(0.0, 0.1)
    unknowns = [importer.reference[f"slider.{name}"] for name in ("acceleration", "displacement")]
    force = [importer.reference["motor.force"]]
    assert slave.getDirectionalDerivative(unknowns, force, [3.0]) == pytest.approx([3.0 / MASS, 0.0], rel=1e-14)
    assert slave.getAdjointDerivative(unknowns, force, [3.0, 5.0], 1) == pytest.approx([3.0 / MASS], rel=1e-14)
    assert slave.getAdjointDerivative([], force, [], 1) == [0.0]
    many = slave.getAdjointDerivative(unknowns[:1] * 100, force, [0.25] * 64 + [0.5] * 36, 1)
    assert many == pytest.approx([34.0 / MASS], rel=1e-14)
    velocity = importer.get(slave, "slider.velocity")
    assert slave.getOutputDerivatives(unknowns[1:], [1]) == [velocity]


# -- events -------------------------------------------------------------------------------------------------------


def test_step_returns_early_at_an_event(importer: Importer) -> None:
    """Without event mode the force has jumped where the step ends."""
    slave = running(importer, earlyReturnAllowed=True)
    reached, forces, time = [], [], 0.0
    while time < 1.3:
        event, end, early, last = slave.doStep(time, 0.25)
        assert (event, end) == (False, False)
        assert early == (last < time + 0.25)
        time, force, _ = at(importer, slave)
        assert time == last
        if early:
            reached.append(time)
            forces.append(force)
    assert reached == list(JUMPS)
    assert forces == list(FORCES)


@pytest.mark.parametrize("early", [False, True])
def test_events_wait_for_the_importer(importer: Importer, early: bool) -> None:
    """Steps end at jumps because they return early, or because the importer goes there."""
    slave = running(importer, eventModeUsed=True, earlyReturnAllowed=early)
    time, before = 0.0, 0.0
    for index, (jump, force) in enumerate(zip(JUMPS, FORCES, strict=True)):
        event, _, returned, last = slave.doStep(time, 0.5 if early else jump - time)
        assert (event, returned, last) == (True, early, jump)
        assert at(importer, slave)[:2] == (jump, before)
        slave.enterEventMode()
        with pytest.raises(FMICallException):
            slave.doStep(jump, 0.1)
        assert "not in event mode" in importer.messages[-1][1]
        assert importer.get(slave, "motor.force") == before
        again, *_, has_next, following = slave.updateDiscreteStates()
        assert importer.get(slave, "motor.force") == force
        assert (again, has_next) == (True, index < 2)
        assert not has_next or following == JUMPS[index + 1]
        assert slave.updateDiscreteStates()[0] is False
        slave.enterStepMode()
        time, before = jump, force
    slave.doStep(time, 0.2)
    at(importer, slave)


def test_events_inside_of_steps_happen_where_steps_may_not_return(importer: Importer) -> None:
    slave = running(importer, eventModeUsed=True)
    for index in range(13):
        assert slave.doStep(index * 0.1, 0.1)[0] is False
        at(importer, slave)


def test_event_that_is_not_handled_happens_in_the_next_step(importer: Importer) -> None:
    slave = running(importer, eventModeUsed=True)
    assert slave.doStep(0.0, JUMPS[0])[0] is True
    assert importer.get(slave, "next_event") == JUMPS[0]
    slave.doStep(JUMPS[0], 0.1)
    assert at(importer, slave)[1] == FORCES[0]


def test_state_that_is_saved_at_an_event_comes_back_there(importer: Importer) -> None:
    slave = running(importer, eventModeUsed=True)
    slave.doStep(0.0, JUMPS[0])
    slave.enterEventMode()
    saved = slave.getFMUState()
    rows = []
    for _ in range(2):
        assert slave.updateDiscreteStates()[0] is True
        slave.enterStepMode()
        slave.doStep(JUMPS[0], 0.3)
        rows.append(importer.everything(slave))
        slave.setFMUState(saved)
        assert importer.get(slave, "motor.force") == 0.0
    assert rows[0] == rows[1]
    slave.freeFMUState(saved)


@pytest.mark.parametrize("wishes", [{}, {"use_event_mode": True, "early_return_allowed": True}])
def test_fmpy_handles_events(unpacked: Importer, wishes: dict[str, bool]) -> None:
    result = fmpy.simulate_fmu(unpacked.folder, stop_time=1.3, output_interval=0.05, **wishes)
    np.testing.assert_allclose(result["slider.displacement"], displacement(result["time"]), atol=ACCURACY)
    assert set(JUMPS) <= set(result["time"]) or not wishes


def test_controller_and_plant_of_their_own_are_the_recursion(tmp_path: Path) -> None:
    """At each sample the controller reads the plant as it is just before; the plant goes on with the new command."""
    paths = mbsfmu.export(controlled(), tmp_path, layout="separate", solver="rk4", fmi=3)
    plant, controller = (Importer(path, tmp_path / path.stem) for path in paths[:2])
    wires = ((plant, "slider.displacement", controller, "measured"), (controller, "command", plant, "motor.force"))
    units = {unit: unit.instance(eventModeUsed=True, earlyReturnAllowed=True) for unit in (plant, controller)}
    for slave in units.values():
        slave.enterInitializationMode()
        slave.exitInitializationMode()

    def handle_events() -> float:
        while True:
            for source, output, target, name in wires:
                target.set(units[target], name, source.get(units[source], output))
            warned = [slave.updateDiscreteStates() for slave in units.values()]
            if not any(each[0] for each in warned):
                return min(each[5] for each in warned if each[4])

    rows, time = [], 0.0
    while time < 0.3:
        following = handle_events()
        rows.append((time, plant.get(units[plant], "slider.displacement"), plant.get(units[plant], "motor.force")))
        for slave in units.values():
            slave.enterStepMode()
            event, *_, last = slave.doStep(time, following - time)
            assert last == following
            assert event == (slave is units[controller])
            slave.enterEventMode()
        time = following
    times, moved, commands = np.array(rows).T
    np.testing.assert_allclose(times[1:], OFFSET + SAMPLE * np.arange(len(times) - 1), rtol=1e-14)
    expected = discrete(times)
    np.testing.assert_allclose(moved, expected[0], atol=1e-9)
    np.testing.assert_allclose(commands, expected[1], atol=1e-7)
    for slave in units.values():
        slave.freeInstance()


def test_update_that_fails_changes_nothing(tmp_path: Path) -> None:
    systems: dict[str, Counter] = {"growing": Growing(sample_time=0.1, offset=0.05)}
    (path,) = mbsfmu.export(CoupledModel(name="m", systems=systems), tmp_path, fmi=3)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.instance(eventModeUsed=True)
    slave.enterInitializationMode()
    importer.set(slave, "signal", 1.0)
    slave.exitInitializationMode()
    slave.enterStepMode()
    slave.doStep(0.0, 0.15)
    assert importer.get(slave, "count") == 1e200
    slave.enterEventMode()
    before = importer.everything(slave)
    for _ in range(2):  # and it is still to be made
        with pytest.raises(FMICallException):
            slave.updateDiscreteStates()
        assert "the update at t = 0.15" in importer.messages.pop()[1]
        assert importer.everything(slave) == before


# -- intermediate updates -----------------------------------------------------------------------------------------


@dataclass
class Company:
    """What an importer does during steps: sets a force over time, notes what it gets, and ends steps early.

    Attributes
    ----------
    importer
        The unit.
    force
        In N over time in s.
    until
        Where steps are ended, s.
    warned
        Time, force and displacement after each internal step.
    calls
        What is tried besides, before and after internal steps.
    """

    importer: Importer
    force: Callable[[float], float] | None = None
    until: float | None = None
    warned: list[tuple[float, float]] = field(default_factory=list)
    calls: Callable[[Slave3, bool], None] | None = None
    slave: Slave3 | None = None

    def begin(self, *names: str) -> Slave3:
        references = [self.importer.reference[name] for name in names or ("motor.force", "slider.displacement")]
        wishes = {"earlyReturnAllowed": self.until is not None, "requiredIntermediateVariables": references}
        self.slave = running(self.importer, intermediateUpdate=self.update, **wishes)
        self.importer.set(self.slave, "motor.force", self.force(0.0) if self.force else 0.0)
        return self.slave

    def update(
        self, _: Any, time: float, may_set: bool, may_get: bool, done: bool, may_return: bool, early: Any, end: Any
    ) -> None:
        assert self.slave is not None
        assert (may_set, may_get) == (not done, done)
        assert may_return == (done and self.until is not None)
        if self.calls:
            self.calls(self.slave, done)
        if may_set and self.force:
            self.importer.set(self.slave, "motor.force", self.force(time))
        if may_get:
            self.warned.append((time, self.importer.get(self.slave, "slider.displacement")))
            if self.until is not None and time >= self.until - 0.01:
                early[0], end[0] = True, self.until


def ramped(times: np.ndarray, slope: float) -> np.ndarray:
    """The displacement that a ramp of the force gives, by the matrix exponential."""
    matrix = np.zeros((4, 4))
    matrix[0, 1] = matrix[2, 3] = 1.0
    matrix[1, :3] = [-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS]
    return np.array([(expm(matrix * time) @ [START, SPEED, 0.0, slope])[0] for time in times])


def test_inputs_are_led_through_a_step(importer: Importer) -> None:
    """One communication step with a ramp, which FMI 2.0 has derivatives of inputs for."""
    company = Company(importer, lambda time: 300.0 * time)
    slave = company.begin()
    assert slave.doStep(0.0, 0.1)[2:] == (False, 0.1)
    times, moved = np.array(company.warned).T
    np.testing.assert_allclose(times, STEP * np.arange(1, 101), rtol=1e-12)
    np.testing.assert_allclose(moved, ramped(times, 300.0), atol=ACCURACY)
    assert importer.get(slave, "motor.force") == pytest.approx(30.0, rel=1e-12)
    assert np.max(np.abs(moved - displacement(times, driven=False))) > 0.01
    company.force = None
    slave.doStep(0.1, 0.1)  # where nothing is set the last value stays
    assert importer.get(slave, "motor.force") == pytest.approx(30.0, rel=1e-12)


def test_what_has_a_rate_goes_where_it_is_led(tmp_path: Path) -> None:
    """A prescribed position runs on by its velocity where nobody gives it; one that is given to stay stays."""
    (path,) = mbsfmu.export(driven_crank(None), tmp_path, layout="monolithic", fmi=3)
    importer = Importer(path, tmp_path / "unpacked")
    position = importer.reference["motor.position"]
    for led, grown in ((False, 9e-5), (True, 0.0)):
        slaves: list[Slave3] = []

        def update(_: Any, __: float, may_set: bool, *___: Any, led: bool = led, slaves: list[Slave3] = slaves) -> None:
            if may_set and led:
                slaves[0].setFloat64([position], [0.5])

        slaves.append(running(importer, requiredIntermediateVariables=[position], intermediateUpdate=update))
        importer.set(slaves[0], "motor.position", 0.5)
        importer.set(slaves[0], "motor.velocity", 0.01)
        slaves[0].doStep(0.0, 0.009)
        assert importer.get(slaves[0], "motor.position") == pytest.approx(0.5 + grown, abs=1e-12)


def test_importer_ends_a_step_early(importer: Importer) -> None:
    company = Company(importer, until=0.0357)
    slave = company.begin()
    assert slave.doStep(0.0, 0.1)[1:] == (False, True, 0.0357)
    assert company.warned[-1][0] == importer.get(slave, "time") == 0.0357
    expected = displacement(np.array([0.0357]), driven=False)[0]
    assert importer.get(slave, "slider.displacement") == pytest.approx(expected, abs=ACCURACY)
    company.until = 0.0  # at once
    assert slave.doStep(0.0357, 0.1)[3] == pytest.approx(0.0367, rel=1e-12)


def test_events_end_steps_in_company(importer: Importer) -> None:
    company = Company(importer, until=9.0)
    references = [importer.reference["slider.displacement"]]
    wishes = {"earlyReturnAllowed": True, "eventModeUsed": True, "requiredIntermediateVariables": references}
    company.slave = slave = running(importer, intermediateUpdate=company.update, **wishes)
    assert slave.doStep(0.0, 0.3) == (True, False, True, pytest.approx(JUMPS[0], rel=1e-12))
    assert company.warned[-1][0] == importer.get(slave, "time")
    slave.enterEventMode()
    assert slave.updateDiscreteStates()[0] is True
    slave.enterStepMode()
    slave.doStep(JUMPS[0], 0.1)
    at(importer, slave)


def test_what_is_not_for_intermediate_updates_is_refused(importer: Importer) -> None:
    def calls(slave: Slave3, done: bool) -> None:
        force, moved = (importer.reference[name] for name in ("motor.force", "slider.displacement"))
        refused: list[tuple[Callable[[], Any], str]] = [
            (lambda: slave.doStep(0.0, 0.1), "cannot be called from an intermediate update"),
            (slave.terminate, "cannot be called from an intermediate update"),
            (slave.reset, "cannot be called from an intermediate update"),
            (slave.getFMUState, "cannot be called from an intermediate update"),
            (lambda: slave.getDirectionalDerivative([moved], [force], [1.0]), "cannot be called from an intermediate"),
            (lambda: importer.set(slave, "solver.step", 1e-3), "nothing can" if done else "none of the required"),
            (lambda: importer.get(slave, "energy.drift"), "none of the required" if done else "nothing can"),
        ]
        refused += [(lambda: importer.set(slave, "slider.displacement", 1.0), "nothing can" if done else "is no input")]
        refused += [(lambda: importer.set(slave, "motor.force", np.nan), "nothing can" if done else "a finite number")]
        for call, sentence in refused:
            with pytest.raises(FMICallException):
                call()
            assert sentence in importer.messages[-1][1]
        slave.fmi3FreeInstance(slave.component)  # has no status: it is told, and nothing is freed
        assert "cannot be freed" in importer.messages[-1][1]

    slave = Company(importer, calls=calls).begin()
    slave.doStep(0.0, 5e-3)
    expected = displacement(np.array([5e-3]), driven=False)[0]
    assert importer.get(slave, "slider.displacement") == pytest.approx(expected, abs=ACCURACY)


def test_only_inputs_and_outputs_can_be_reached_during_steps(importer: Importer) -> None:
    for name in ("solver.step", "energy.drift", "time", "next_event"):
        with pytest.raises(Exception, match="instantiate"):
            importer.instance(requiredIntermediateVariables=[importer.reference[name]])
        assert "no continuous input or output" in importer.messages[-1][1]
