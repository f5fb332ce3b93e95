"""FMUs of FMI 3.0 for model exchange: as those of FMI 2.0, and with what only this version has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy import fmi3
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu
from native_fmus import Exported

from mbsfmu.tracing.workspace import Floats

Exchanged = Callable[..., Exported]
UNITS = [("four-bar", "double-step"), ("ball-pendulum", "hdca"), ("sampled", "double-step")]
MOVED = 1e-3


class Instance:
    """An instance of FMI 3.0 in continuous-time mode.

    Parameters
    ----------
    path
        The unit.
    folder
        Where it is unpacked.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.description = fmpy.read_model_description(str(path))
        self.variables = {each.name: each for each in self.description.modelVariables}
        self.messages: list[str] = []
        self.unit = fmi3.FMU3Model(
            guid=self.description.guid,
            unzipDirectory=str(fmpy.extract(str(path), unzipdir=str(folder))),
            modelIdentifier=self.description.modelExchange.modelIdentifier,
            instanceName="host",
        )
        self.unit.instantiate(logMessage=lambda *warned: self.messages.append(warned[-1].decode()))
        self.unit.enterInitializationMode(startTime=0.0)
        self.unit.exitInitializationMode()
        self.update = self.unit.updateDiscreteStates()
        self.unit.enterContinuousTimeMode()

    def vector(self, get: Callable[[Any, int], object]) -> Floats:
        """Return as many numbers as there are continuous states."""
        values = np.zeros(self.unit.getNumberOfContinuousStates())
        get(pointer(values), values.size)
        return values

    @property
    def point(self) -> Floats:
        """The continuous states."""
        return self.vector(self.unit.getContinuousStates)

    @property
    def rates(self) -> Floats:
        """Their derivatives."""
        return self.vector(self.unit.getContinuousStateDerivatives)

    def go(self, time: float, point: Floats) -> None:
        """Bring the unit to a point."""
        self.unit.setTime(time)
        self.unit.setContinuousStates(pointer(point), point.size)


def pointer(values: Floats) -> Any:
    return values.ctypes.data_as(fmi3.POINTER(fmi3.fmi3Float64))


@pytest.fixture
def instance(exchanged: Exchanged, tmp_path: Path) -> Callable[[str, str], Instance]:
    return lambda name, formulation: Instance(exchanged(name, formulation, 3).path, tmp_path)


@pytest.mark.parametrize(("name", "formulation"), UNITS)
def test_both_versions_are_integrated_to_the_same(exchanged: Exchanged, name: str, formulation: str) -> None:
    """Their equations are the same: CVode makes the same steps, with the same events."""
    grid = {"fmi_type": "ModelExchange", "solver": "CVode", "stop_time": 0.6, "output_interval": 0.02}
    results = []
    for fmi in (2, 3):
        path = str(exchanged(name, formulation, fmi).path)
        assert validate_fmu(path) == []
        results.append(fmpy.simulate_fmu(path, **grid))
    second, third = results
    np.testing.assert_array_equal(third["time"], second["time"])
    for each in third.dtype.names[1:]:
        rows = third[each].reshape(len(third), -1)
        axes = [each] if each in second.dtype.names else [f"{each}.{axis}" for axis in "wxyz"[-rows.shape[1] :]]
        for axis, values in zip(axes, rows.T, strict=True):
            np.testing.assert_allclose(values, second[axis], rtol=1e-9, atol=1e-12, err_msg=axis)


def test_derivatives_of_arrays_are_arrays(exchanged: Exchanged) -> None:
    """Solvers have states and derivatives in the same order, arrays element by element."""
    description = fmpy.read_model_description(str(exchanged("ball-pendulum", "hdca", 3).path))
    listed = [each.variable for each in description.derivatives]
    assert [(each.name, tuple(each.shape or ())) for each in listed[:2]] == [
        ("der(body.cardan_angle)", (3,)),
        ("der(momentum.body.cardan_angle)", (3,)),
    ]
    for each in listed:
        assert each.name == f"der({each.derivative.name})"
        assert each.shape == each.derivative.shape


@pytest.mark.parametrize(("name", "formulation"), UNITS)
def test_numbers_of_states_and_values_by_reference(
    instance: Callable[[str, str], Instance], name: str, formulation: str
) -> None:
    host = instance(name, formulation)
    listed = [each.variable for each in host.description.derivatives]
    sizes = [each.shape[0] if each.shape else 1 for each in listed]
    assert host.unit.getNumberOfContinuousStates() == sum(sizes)
    assert host.unit.getNumberOfEventIndicators() == 0
    host.go(MOVED, host.point + 1e-3)
    rates = host.unit.getFloat64([each.valueReference for each in listed], sum(sizes))
    states = host.unit.getFloat64([each.derivative.valueReference for each in listed], sum(sizes))
    np.testing.assert_allclose(rates, host.rates, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(states, host.point)


def test_adjoint_derivatives_are_the_directional_ones_turned_over(instance: Callable[[str, str], Instance]) -> None:
    host = instance("ball-pendulum", "hdca")
    host.go(MOVED, host.point + 1e-2)
    unknowns = [each.variable for each in host.description.derivatives]
    knowns = [each.derivative for each in unknowns]
    count = len(host.point)
    references = [[each.valueReference for each in some] for some in (unknowns, knowns)]
    seeds = np.eye(count)
    forward = np.array([host.unit.getDirectionalDerivative(*references, list(seed), count) for seed in seeds]).T
    backward = np.array([host.unit.getAdjointDerivative(*references, list(seed), count) for seed in seeds])
    np.testing.assert_allclose(backward, forward, rtol=1e-12, atol=1e-12)
    assert np.count_nonzero(forward) > count


def test_instants_are_events_of_which_another_update_knows_nothing(instance: Callable[[str, str], Instance]) -> None:
    host = instance("sampled", "double-step")
    instant = host.update[5]
    host.go(instant, host.point)
    event, end = host.unit.completedIntegratorStep()
    assert (event, end) == (True, False)
    host.unit.enterEventMode()
    again, end, nominals, values, has_next, later = host.unit.updateDiscreteStates()
    assert (again, end, nominals, values, has_next) == (True, False, False, True, True)
    assert later > instant
    assert host.unit.updateDiscreteStates()[0] is False
    host.unit.enterContinuousTimeMode()


@pytest.mark.parametrize(("name", "formulation"), UNITS[:2])
def test_states_can_be_set_as_variables_in_event_mode(
    exchanged: Exchanged, tmp_path: Path, name: str, formulation: str
) -> None:
    """As CasADi does; the point is that of continuous-time mode, and events go on from there."""
    path = exchanged(name, formulation, 3).path
    one, other = (Instance(path, tmp_path / each) for each in ("one", "other"))
    states = [each.variable.derivative.valueReference for each in one.description.derivatives]
    point = one.point + 1e-3 * np.arange(1, one.point.size + 1)
    one.go(0.0, point)
    other.unit.enterEventMode()
    for _ in range(2):  # what was set before does not count
        other.unit.setFloat64(states, list(point + 1e-2))
        assert np.abs(other.rates - one.rates).max() > 0.0
        other.unit.setFloat64(states, list(point))
        np.testing.assert_array_equal(other.point, one.point)
        np.testing.assert_array_equal(other.rates, one.rates)
    other.unit.updateDiscreteStates()
    other.unit.enterContinuousTimeMode()
    np.testing.assert_allclose(other.point, point, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.rates, one.rates, rtol=1e-9, atol=1e-9)


def test_all_unknowns_of_the_start_have_dependencies(exchanged: Exchanged) -> None:
    """Importers read a missing list as none, or refuse it."""
    for formulation in ("double-step", "dca"):
        description = fmpy.read_model_description(str(exchanged("four-bar", formulation, 3).path))
        unknowns = [*description.initialUnknowns, *description.derivatives, *description.outputs]
        assert [each.variable.name for each in unknowns if each.dependencies is None] == []
        given = {each.name for each in description.modelVariables if each.causality in ("parameter", "input")}
        rates = {each.variable.name for each in description.derivatives}
        for each in description.initialUnknowns:
            names = {other.name for other in each.dependencies}
            assert names <= given
            assert each.variable.name not in rates or names


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda unit: unit.enterContinuousTimeMode(), "continuous-time mode is entered from event mode only"),
        (lambda unit: unit.setTime(-1.0), "t = -1 s is before the last event"),
        (lambda unit: unit.updateDiscreteStates(), "events happen in event mode only"),
        (fmi3.FMU3Slave.enterStepMode, "this instance is for model exchange: it makes no steps"),
        (lambda unit: fmi3.FMU3Slave.doStep(unit, 0.0, 1e-3), "this instance is for model exchange: steps are made"),
    ],
)
def test_wrong_calls_are_refused(
    instance: Callable[[str, str], Instance], call: Callable[[Any], object], said: str
) -> None:
    host = instance("sampled", "double-step")
    with pytest.raises(FMICallException):
        call(host.unit)
    assert said in host.messages[-1]
