"""Built-in forces go everywhere: checked as users' ones are, through JSON, in all formulations, in native units."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from machine_of_parts import FORCES, FORMULATIONS, SENSORS, as_of_a_user, model

import mbsfmu
from mbsfmu import CoupledModel, Force, Sensor
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.model.force import FORCES as FORCES_KNOWN
from mbsfmu.model.force import SENSORS as SENSORS_KNOWN
from mbsfmu.modelling.part import is_built_in
from mbsfmu.simulation.run_result import Result


@pytest.fixture(scope="module")
def machine() -> CoupledModel:
    return model(*FORCES, *SENSORS)


@pytest.fixture(scope="module")
def in_process(machine: CoupledModel) -> Result:
    return machine.simulation(compiled=False, solver="trapezoidal").run()


@pytest.mark.parametrize("part", [*FORCES, *SENSORS], ids=lambda part: part.name)
def test_parts_trace_and_forces_have_the_power_that_their_energies_say(part: Force | Sensor) -> None:
    """As the check of users' forces says, which refuses others: at the start and at points about it."""
    model(as_of_a_user(part)).system()


def test_no_built_in_force_or_sensor_is_missing_here() -> None:
    known = {kind for _, kind in (*FORCES_KNOWN.known(), *SENSORS_KNOWN.known()) if is_built_in(kind)}
    assert known <= {type(part) for part in (*FORCES, *SENSORS)}


def test_data_are_the_same_through_json(machine: CoupledModel, tmp_path: Path) -> None:
    machine.to_file(tmp_path / "parts.json")
    assert CoupledModel.from_file(tmp_path / "parts.json") == machine


def test_energy_is_accounted_for(in_process: Result) -> None:
    turned_over = np.ptp(in_process["energy.kinetic"])
    assert turned_over > 1.0
    assert np.max(np.abs(in_process["energy.drift"])) < 1e-4 * turned_over


@pytest.mark.parametrize("formulation", FORMULATIONS[1:])
def test_formulations_agree(machine: CoupledModel, in_process: Result, formulation: str) -> None:
    result = machine.simulation(formulation=formulation, solver="trapezoidal").run()
    for name in in_process.names:
        if name in result.names and "cardan" not in name:
            near = 1e-3 * max(1.0, np.max(np.abs(in_process[name])))  # steps are of the second order
            np.testing.assert_allclose(result[name], in_process[name], atol=near, err_msg=name)


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_native_units_are_the_run_in_process(machine: CoupledModel, in_process: Result, tmp_path: Path) -> None:
    path = mbsfmu.export(machine, tmp_path, solver="trapezoidal")[0]
    told = {each.name for each in fmpy.read_model_description(path).modelVariables}
    names = [name for name in in_process.names if name in told]
    result = fmpy.simulate_fmu(str(path), stop_time=0.3, step_size=1e-3, output_interval=1e-3, output=names)
    for name in names:
        np.testing.assert_allclose(result[name], in_process[name], rtol=1e-8, atol=2e-8, err_msg=name)
