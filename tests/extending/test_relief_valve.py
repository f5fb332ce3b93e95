"""A component of a user's file goes wherever built-in ones go, and does what its physics says."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import fmpy
import numpy as np
import pytest
from importer import Importer
from relief_valve import PilotReliefValve
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from started import run_python

import mbsfmu
from hydraulics import Circuit, DataError, Hose, Oil, PressureSource, Tank, Throttle
from mbsfmu import CoupledModel, InputError, LinearSignal, load_parts
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.cli.commands import cli
from mbsfmu.cli.found_models import find_model
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.studies import sweep

FILE = Path(__file__).with_name("relief_valve.py")
PUMP, TANK, VOLUME, WALLS, OIL, DENSITY = 20e6, 1e5, 1e-3, 3e8, 1.5e9, 850.0
DIAMETER, DISCHARGE = 2e-3, 0.7
CRACKING, FULL, COEFFICIENT, DELAY, LAMINAR = 8e6, 11e6, 1e-6, 0.02, 2e5
THROTTLE = DISCHARGE * np.pi / 4.0 * DIAMETER**2 * np.sqrt(2.0 / DENSITY)
"""Flow of the throttle by the root of its pressure drop."""
PILOT = LinearSignal(times=(0.0, 0.2, 0.3), values=(0.0, 0.0, 2e6))

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def rig(pump: float = PUMP) -> CoupledModel:
    """A pump that feeds a volume through a throttle, and the relief valve that opens it to the tank."""
    relief = PilotReliefValve(
        name="relief",
        inlet="A",
        outlet="T",
        cracking_pressure=CRACKING,
        full_pressure=FULL,
        flow_coefficient=COEFFICIENT,
        time_constant=DELAY,
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=OIL, density=DENSITY, air_content=0.0),
        components=(
            PressureSource(name="pump", node="P", pressure=pump),
            Tank(name="tank", node="T", pressure=TANK),
            Throttle(
                name="throttle", inlet="P", outlet="A", orifice_diameter=DIAMETER, discharge_coefficient=DISCHARGE
            ),
            Hose(name="hose", node="A", volume=VOLUME, bulk_modulus=WALLS),
            relief,
        ),
        initial_pressures={"A": 5e6},
    )
    return CoupledModel(name="rig", systems={"circuit": circuit}, signals={"circuit.relief.pilot": PILOT}, step=5e-4)


def machine_data() -> dict[str, Any]:
    """The four-bar with the relief valve at its cylinder, as JSON."""
    data = mbsfmu.models.four_bar().to_dict()
    data["systems"]["circuit"]["components"].append(
        {"type": "pilot-relief-valve", "name": "relief", "inlet": "V2", "outlet": "T", "flow_coefficient": 2e-8}
        | {"cracking_pressure": 5e6, "full_pressure": 7e6}
    )
    return data


@pytest.fixture(scope="module")
def machine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine") / "machine.json"
    path.write_text(json.dumps(machine_data()))
    return path


@pytest.fixture(scope="module")
def machine(machine_file: Path) -> CoupledModel:
    return CoupledModel.from_file(machine_file, parts=[FILE])


# -- physics ------------------------------------------------------------------------------------------------


def orifice(coefficient: float, drop: float) -> float:
    return coefficient * drop / np.sqrt(max(abs(drop), LAMINAR))


def by_scipy(times: np.ndarray) -> np.ndarray:
    """Pressure and lift over time, from the balance of the volume and the lag of the poppet, written anew."""

    def rates(time: float, state: np.ndarray) -> list[float]:
        pressure, lift = state
        pilot = 2e6 * min(max((time - 0.2) / 0.1, 0.0), 1.0)
        wanted = min(max((pressure - TANK - CRACKING - pilot) / (FULL - CRACKING), 0.0), 1.0)
        relief = orifice(COEFFICIENT * lift * (2.0 - lift), pressure - TANK)
        inflow = orifice(THROTTLE, PUMP - pressure) * np.exp((PUMP - pressure) / OIL) - relief
        grown = 1.0 + (pressure - 101325.0) / WALLS
        return [inflow / (VOLUME * (grown / OIL + 1.0 / WALLS)), (wanted - lift) / DELAY]

    solution = solve_ivp(
        rates, (0.0, times[-1]), [5e6, 0.0], "Radau", times, rtol=1e-10, atol=[1e-4, 1e-12], max_step=1e-3
    )
    return solution.y


def test_motion_is_that_of_equations_written_anew() -> None:
    result = rig().simulation(compiled=False, solver="radau", relative_tolerance=1e-9, absolute_tolerance=1e-9).run(0.5)
    pressure, lift = by_scipy(result.time)
    np.testing.assert_allclose(result["A.pressure"], pressure, rtol=2e-6)
    np.testing.assert_allclose(result["relief.opening"], lift, atol=2e-6)
    assert np.ptp(lift) > 0.1
    assert pressure.max() > CRACKING + TANK


@pytest.mark.parametrize("lift", [0.15, 0.6])
def test_steady_state_is_that_in_closed_form(lift: float) -> None:
    """At a lift the drop follows from the spring, the flow from the drop, the pump's pressure from the flow's mass."""
    drop = CRACKING + lift * (FULL - CRACKING)
    flow = COEFFICIENT * lift * (2.0 - lift) * np.sqrt(drop)
    feed = brentq(lambda each: THROTTLE * np.sqrt(each) * np.exp(each / OIL) - flow, LAMINAR, 1e9, rtol=1e-14)
    pump = TANK + drop + feed
    model = rig(pump).model_copy(update={"signals": {}})
    result = model.simulation(step=5e-3).run(5.0)
    assert result["relief.opening"][-1] == pytest.approx(lift, rel=1e-7)
    assert result["relief.flow"][-1] == pytest.approx(flow, rel=1e-7)
    assert result["A.pressure"][-1] == pytest.approx(TANK + drop, rel=1e-7)


def test_it_begins_with_the_lift_of_the_pressure_at_the_start() -> None:
    model = rig()
    circuit = model.systems["circuit"].model_copy(update={"initial_pressures": {"A": TANK + 9.5e6}})
    simulation = model.model_copy(update={"systems": {"circuit": circuit}}).simulation(compiled=False)
    simulation.initialize()
    assert simulation.get("relief.opening") == pytest.approx((9.5e6 - CRACKING) / (FULL - CRACKING), rel=1e-12)


# -- in process ---------------------------------------------------------------------------------------------


def test_compiled_runs_are_those_of_the_interpreter() -> None:
    one, other = (rig().simulation(compiled=compiled, solver="trapezoidal").run(0.5) for compiled in (True, False))
    for name in one.names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-12)


@needs_compiler
def test_directional_derivatives_match_differences(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(rig().model_copy(update={"signals": {}}), tmp_path)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    for index in range(300):
        slave.doStep(index * 5e-4, 5e-4)
    assert importer.get(slave, "relief.opening") > 0.05
    pilot, outputs = [importer.reference["relief.pilot"]], ("relief.flow", "relief.balance")
    flow, balance = (slave.getDirectionalDerivative([importer.reference[name]], pilot, [1.0])[0] for name in outputs)
    assert flow == 0.0  # the lift lags
    assert balance == pytest.approx(-1.0 / (FULL - CRACKING), rel=1e-12)
    before = importer.get(slave, "relief.balance")
    importer.set(slave, "relief.pilot", 1e3)
    assert importer.get(slave, "relief.balance") - before == pytest.approx(1e3 * balance, rel=1e-9)


def test_exact_derivatives_are_those_of_differences() -> None:
    functions = rig().simulation(compiled=False).functions
    expressions = functions.expressions
    traced = functions.traced(
        "by_all",
        [expressions.rates, *(expressions.derivative(expressions.rates, part) for part in ("states", "inputs"))],
        matrices=[1, 2],
    )
    functions.parameters[:] = [parameter.start for parameter in functions.system.parameters]
    functions.states[:] = [9.3e6, 0.3]
    functions.inputs[:] = [2e5]
    for column, (array, index, step) in enumerate(
        ((functions.states, 0, 10.0), (functions.states, 1, 1e-6), (functions.inputs, 0, 10.0))
    ):
        value = array[index]
        sides = []
        for moved in (value + step, value - step):
            array[index] = moved
            sides.append(traced()[0].copy())
        array[index] = value
        exact = np.hstack([each.copy() for each in traced()[1:]])[:, column]
        np.testing.assert_allclose((sides[0] - sides[1]) / (2.0 * step), exact, rtol=1e-6)
        assert np.any(exact)


# -- JSON ---------------------------------------------------------------------------------------------------


def test_json_means_the_part_where_its_file_is_given(machine: CoupledModel, machine_file: Path, tmp_path: Path) -> None:
    assert machine == CoupledModel.from_file(machine_file, parts=[FILE])
    strange = {**machine_data()["systems"]["circuit"]["components"][-1], "type": "other-valve"}
    data = machine_data()
    data["systems"]["circuit"]["components"][-1] = strange
    path = tmp_path / "strange.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"components\[8\].type is 'other-valve'; .*--parts FILE"):
        CoupledModel.from_file(path)
    other = tmp_path / "other_valve.py"
    other.write_text(
        FILE.read_text().replace("pilot-relief-valve", "other-valve").replace("PilotReliefValve", "OtherValve")
    )
    found = CoupledModel.from_file(path, parts=[other])
    assert type(found.systems["circuit"].components[-1]).__name__ == "OtherValve"
    assert found == CoupledModel.from_file(path, parts=[other])
    with pytest.raises(DataError, match=r"type is 'other-valve'"):
        CoupledModel.from_file(path)


def test_command_line_takes_files_of_parts(machine_file: Path) -> None:
    def show(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "mbsfmu", "show", str(machine_file), "--variables", *arguments)

    refused = show()
    assert refused.returncode == 2
    assert "components[8].type is 'pilot-relief-valve'; " in refused.stderr
    shown = show("--parts", str(FILE))
    assert shown.returncode == 0, shown.stderr
    assert "relief.cracking_pressure" in shown.stdout
    for name, command in cli.commands.items():
        taken = {parameter.name for parameter in command.params}
        assert ("model" in taken) <= ("parts" in taken), name


def test_files_that_define_no_parts_are_refused(tmp_path: Path) -> None:
    cases = {
        "missing": (None, "cannot be read: No such file"),
        "empty": ("", "defines no part"),
        "failing": ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        "taken": (
            FILE.read_text().replace("pilot-relief-valve", "hose"),
            "'hose' is taken by Hose of hydraulics.storage",
        ),
        "incomplete": (FILE.read_text().replace("def flows", "def flow"), "its port 'inlet' lets oil through"),
    }
    for name, (text, reason) in cases.items():
        path = tmp_path / f"{name}.py"
        if text is not None:
            path.write_text(text)
        with pytest.raises(InputError) as caught:
            load_parts([path])
        assert str(path) in str(caught.value)
        assert reason in str(caught.value)
    with pytest.raises(InputError, match=r"files of parts are given in a list, as \['relief_valve.py'\]"):
        load_parts("relief_valve.py")
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    for path in (one, other):
        path.write_text(FILE.read_text().replace("pilot-relief-valve", "twice") + f"# {path.name}")
    with pytest.raises(
        InputError, match=r"the component type 'twice' is defined twice, in .*one\.py and in .*other\.py"
    ):
        load_parts([one, other])


# -- units --------------------------------------------------------------------------------------------------


def versions(folder: Path) -> dict[str, tuple[CoupledModel, Path]]:
    """The rig with two versions of the same file, and the Python units of both."""
    data = rig().to_dict()
    result = {}
    for name, law in (("poppet", "lift * (2.0 - lift)"), ("slot", "lift")):
        file = folder / name / "relief_valve.py"
        file.parent.mkdir()
        text = FILE.read_text()
        assert "area = lift * (2.0 - lift)" in text
        file.write_text(text.replace("area = lift * (2.0 - lift)", f"area = {law}"))
        with load_parts([file]).given():
            model = CoupledModel.from_dict(data)
        (path,) = mbsfmu.export(model, folder / name, backend="python", solver="trapezoidal")
        result[name] = model, path
        file.unlink()
    return result


@needs_compiler
def test_native_unit_is_the_run_in_process(tmp_path: Path) -> None:
    """That of a file, whatever was imported under the same word."""
    model, _ = versions(tmp_path)["slot"]
    (path,) = mbsfmu.export(model, tmp_path, solver="trapezoidal")
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".py")]
    expected = model.simulation(compiled=False, solver="trapezoidal").run(0.5)
    result = fmpy.simulate_fmu(str(path), stop_time=0.5, step_size=5e-4, output_interval=5e-4)
    np.testing.assert_allclose(result["relief.flow"], expected["relief.flow"], rtol=1e-9, atol=1e-15)
    assert np.ptp(expected["relief.flow"]) > 1e-4


def test_python_units_take_their_files_along_and_do_not_meddle(tmp_path: Path) -> None:
    flows = []
    made = versions(tmp_path)
    for model, path in made.values():
        with zipfile.ZipFile(path) as archive:
            assert "resources/parts/relief_valve.py" in archive.namelist()
        expected = model.simulation(compiled=False, solver="trapezoidal").run(0.3)
        result = fmpy.simulate_fmu(str(path), stop_time=0.3, step_size=5e-4, output_interval=5e-4)
        np.testing.assert_allclose(result["relief.flow"], expected["relief.flow"], rtol=1e-9, atol=1e-15)
        flows.append(result["relief.flow"])
    assert np.max(np.abs(flows[0] - flows[1])) > 1e-5
    guids = {fmpy.read_model_description(str(path)).guid for _, path in made.values()}
    assert len(guids) == 2


@needs_compiler
def test_compiled_code_is_that_of_the_version_of_a_file(tmp_path: Path) -> None:
    """What is kept of one version is not taken for another."""
    for model, _ in versions(tmp_path).values():
        compiled, interpreted = (
            model.simulation(compiled=each, solver="trapezoidal").run(0.2)["relief.flow"] for each in (True, False)
        )
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-18)


def test_identity_of_a_simulation_covers_the_code_of_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "relief_valve.py"
    identities = []
    for end in ("", "# another comment\n"):
        file.write_text(FILE.read_text() + end)
        with load_parts([file]).given():
            model = CoupledModel.from_dict(rig().to_dict())
        identities.append(model.simulation(compiled=False).identity)
    assert identities[0] != identities[1]


FACTORY = """

def make():
    from mbsfmu import CoupledModel

    with open({data!r}) as file:
        return CoupledModel.from_dict(__import__("json").load(file))
"""


def test_file_of_a_model_may_define_its_parts(tmp_path: Path) -> None:
    """It goes with Python units as a file of parts does."""
    text = FILE.read_text().replace("pilot-relief-valve", "factory-valve")
    (tmp_path / "rig.json").write_text(json.dumps(rig().to_dict()).replace("pilot-relief-valve", "factory-valve"))
    (tmp_path / "rig.py").write_text(text + FACTORY.format(data=str(tmp_path / "rig.json")))
    model = find_model(f"{tmp_path / 'rig.py'}:make")
    assert type(model.systems["circuit"].components[-1]).__name__ == "PilotReliefValve"
    (path,) = mbsfmu.export(model, tmp_path / "out", backend="python", solver="trapezoidal")
    result = fmpy.simulate_fmu(str(path), stop_time=0.2, step_size=5e-4, output_interval=5e-4)
    expected = rig().simulation(compiled=False, solver="trapezoidal").run(0.2)
    np.testing.assert_allclose(result["relief.flow"], expected["relief.flow"], rtol=1e-9, atol=1e-15)


def test_parts_of_no_file_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a notebook: they run, and go into native FMUs."""
    module = ModuleType("__notebook__")
    monkeypatch.setitem(sys.modules, "__notebook__", module)
    exec(FILE.read_text().replace("pilot-relief-valve", "noted-valve"), module.__dict__)
    data = json.loads(json.dumps(rig().to_dict()).replace("pilot-relief-valve", "noted-valve"))
    model = CoupledModel.from_dict(data)
    assert model.simulation(compiled=False).run(0.01)["A.pressure"][-1] > 5e6
    with pytest.raises(InputError, match="PilotReliefValve is defined in no file; put the class into one"):
        mbsfmu.export(model, tmp_path, backend="python")
    with pytest.raises(InputError, match="PilotReliefValve is defined in no file"):
        sweep(model, {"relief.time_constant": [0.01, 0.02]}, stop=0.01)
    table = sweep(model, {"relief.time_constant": [0.01, 0.02]}, stop=0.01, executor=InlineExecutor())
    assert table["status"].tolist() == ["ok", "ok"]


def test_file_that_uses_its_parts_when_it_is_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would export itself without end."""
    text = FILE.read_text().replace("pilot-relief-valve", "eager-valve")
    (tmp_path / "rig.json").write_text(json.dumps(rig().to_dict()).replace("pilot-relief-valve", "eager-valve"))
    use = f"\nimport mbsfmu\nmbsfmu.export(make(), {str(tmp_path / 'out')!r}, backend='python')\n"
    (tmp_path / "eager.py").write_text(text + FACTORY.format(data=str(tmp_path / "rig.json")) + use)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as caught:
        importlib.import_module("eager")
    assert str(caught.value).endswith(
        'runs a model where it is to define parts; put that below `if __name__ == "__main__":`'
    )
    assert str(caught.value).count("cannot be loaded") == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import beside", "line 1, imports from its own folder"),
        ("from beside import x", "line 1, imports from its own folder"),
    ],
)
def test_python_units_refuse_files_that_need_others(
    tmp_path: Path, line: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").write_text("x = 1\n")
    file = tmp_path / "needy.py"
    file.write_text(line + "\n" + FILE.read_text().replace("from __future__ import annotations", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    with load_parts([file]).given():
        model = CoupledModel.from_dict(rig().to_dict())
    with pytest.raises(InputError, match=reason):
        mbsfmu.export(model, tmp_path / "out", backend="python")


@needs_compiler
def test_coupled_units_come_near_the_whole(machine: CoupledModel, tmp_path: Path) -> None:
    paths = mbsfmu.export(machine, tmp_path, layout="separate", step=1e-3)
    package = next(path for path in paths if path.suffix == ".ssp")
    whole = machine.simulation(step=1e-3).run(1.1)
    apart = mbsfmu.cosimulate(package, algorithm="fixed-point", step=1e-3, stop=1.1)
    lift = np.interp(whole.time, apart.time, apart["circuit.relief.flow"])
    assert np.max(whole["relief.flow"]) > 1e-5
    assert np.max(np.abs(lift - whole["relief.flow"])) < 0.02 * np.max(whole["relief.flow"])


# -- other processes ----------------------------------------------------------------------------------------


def test_studies_take_parts_to_other_processes(tmp_path: Path) -> None:
    """Processes that are spawned have imported nothing of this one."""
    file = tmp_path / "relief_valve.py"
    file.write_text(FILE.read_text() + "# a version of its own\n")
    with load_parts([file]).given():
        model = CoupledModel.from_dict(rig().to_dict())
    cracking = [7e6, 9e6]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        vary, settings = {"circuit.relief.cracking_pressure": cracking}, {"solver": ["trapezoidal"]}
        table = sweep(model, vary, settings=settings, stop=0.1, executor=executor)
    assert table["status"].tolist() == ["ok", "ok"]
    for value, flow in zip(cracking, table["final.relief.flow"].tolist(), strict=True):
        simulation = model.simulation(compiled=False, solver="trapezoidal")
        simulation.set("relief.cracking_pressure", value)
        assert flow == pytest.approx(simulation.run(0.1)["relief.flow"][-1], rel=1e-9)


def test_rows_of_another_version_are_not_taken_for_those_of_this_one(tmp_path: Path) -> None:
    flows = []
    for model, _ in versions(tmp_path).values():
        output, vary = tmp_path / "rows.parquet", {"relief.time_constant": [0.01]}
        table = sweep(model, vary, stop=0.1, output=output, force=True, executor=InlineExecutor())
        flows += table["final.relief.flow"].tolist()
        assert flows[-1] == pytest.approx(model.simulation(compiled=False).run(0.1)["relief.flow"][-1], rel=0.2)
    assert abs(flows[1] / flows[0] - 1.0) > 0.01
