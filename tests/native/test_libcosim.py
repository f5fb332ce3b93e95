"""The separate units in libcosim, a master written by others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from crane import crane
from libcosimpy.CosimAlgorithm import CosimAlgorithm, EccoParams
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

import mbsfmu
from mbsfmu import CoupledModel, StepSignal
from mbsfmu.cosim import Connection, write_ssp
from mbsfmu.cosim.ssp.ssp_package import read_structure

STOP = 1.3
NANOSECOND = 1e-9


def fixed_step(references: dict[str, dict[str, int]]) -> CosimExecution:
    del references
    return CosimExecution.from_step_size(step_size=1e-4 / NANOSECOND)


def ecco(references: dict[str, dict[str, int]]) -> CosimExecution:
    """Error control by the energy at the power bond of force and velocity [libcosim's defaults, smaller steps]."""
    parameters = EccoParams(
        step_size=1e-4, min_step_size=1e-5, max_step_size=1e-3, abs_tolerance=1e-4, rel_tolerance=1e-4
    )
    algorithm = CosimAlgorithm.create_ecco_algorithm(parameters)
    mechanism, circuit = references["mechanism"], references["circuit"]
    algorithm.add_power_bond(
        0, mechanism["cylinder.velocity"], mechanism["cylinder.force"],
        1, circuit["cylinder.force"], circuit["cylinder.velocity"],
    )  # fmt: skip
    return CosimExecution.from_algorithm(algorithm)


@pytest.mark.parametrize("make", [fixed_step, ecco], ids=["fixed-step", "ecco"])
def test_libcosim_runs_the_pair(tmp_path: Path, make: Callable[[dict[str, dict[str, int]]], CosimExecution]) -> None:
    model = mbsfmu.models.four_bar()
    paths = {path.stem: path for path in mbsfmu.export(model, tmp_path, layout="separate", step=1e-4)}
    references = {}
    for name in ("mechanism", "circuit"):
        variables = fmpy.read_model_description(str(paths[name])).modelVariables
        references[name] = {variable.name: variable.valueReference for variable in variables}
    execution = make(references)
    slaves = {}
    for name in ("mechanism", "circuit"):
        slaves[name] = execution.add_local_slave(CosimLocalSlave(fmu_path=str(paths[name]), instance_name=name))
    for source, target in model.connections:
        (from_unit, output), (to_unit, entry) = (each.split(".", 1) for each in (source, target))
        if output == "cylinder.static_force":
            continue  # a calculated parameter; the circuit's start value is the same
        execution.connect_real_variables(
            slaves[from_unit], references[from_unit][output], slaves[to_unit], references[to_unit][entry]
        )
    observer = CosimObserver.create_last_value()
    assert execution.add_observer(observer=observer)
    assert execution.simulate_until(target_time=STOP / NANOSECOND)
    expected = model.simulation(step=1e-4).run(STOP)
    found = observer.last_real_values(slaves["mechanism"], [references["mechanism"]["cylinder.length"]])[0]
    travel = np.ptp(expected["cylinder.length"])
    assert travel > 0.01
    assert found == pytest.approx(expected["cylinder.length"][-1], abs=0.01 * travel)


def test_two_cranes_of_opposite_valves_are_two_cranes(tmp_path: Path) -> None:
    """In one package, whose units differ in their signals alone: importers that cache by GUID must not mix them up."""
    files, connections, expected = {}, [], {}
    for side, volts in (("left", 6.0), ("right", -6.0)):
        signal = StepSignal(times=(0.05,), values=(volts,)).to_dict()
        model = CoupledModel.from_dict({**crane().to_dict(), "signals": {"circuit.valve.command": signal}})
        expected[side] = model.simulation().run(0.6)["boom.angle"]
        for path in mbsfmu.export(model, tmp_path / side, layout="separate")[:-1]:
            files[f"{side}_{path.stem}"] = Path(shutil.copy(path, tmp_path / f"{side}_{path.name}"))
        connections += [
            Connection(*((f"{side}_{system}", name) for system, name in (each.split(".", 1) for each in pair)))
            for pair in model.connections
            if pair[1] != "circuit.lift.initial_load"  # libcosim takes no connections to parameters
        ]
    guids = {name: fmpy.read_model_description(str(path)).guid for name, path in files.items()}
    assert guids["left_circuit"] != guids["right_circuit"]
    assert guids["left_mechanism"] == guids["right_mechanism"]
    package = write_ssp(tmp_path / "two.ssp", "two", files, connections, 0.6)
    read_structure(package, tmp_path / "unpacked")
    execution = CosimExecution.from_ssp_file(str(tmp_path / "unpacked"), step_size=1e-3 / NANOSECOND)
    observer = CosimObserver.create_last_value()
    assert execution.add_observer(observer)
    execution.step(600)
    for side, angles in expected.items():
        unit = execution.slave_index_from_instance_name(f"{side}_mechanism")
        (angle,) = (each for each in execution.slave_variables(unit) if each.name == b"boom.angle")
        (found,) = observer.last_real_values(unit, [angle.reference])
        travel = angles[-1] - angles[0]
        assert abs(travel) > 0.01
        assert found == pytest.approx(angles[-1], abs=0.02 * abs(travel))
    assert np.sign(expected["left"][-1] - expected["left"][0]) == -np.sign(expected["right"][-1] - expected["right"][0])
    same = {side: tmp_path / side / "circuit.fmu" for side in ("left", "right")}
    with pytest.raises(mbsfmu.InputError, match="have one file name; rename one"):
        write_ssp(tmp_path / "same.ssp", "same", same, [], 1.0)
