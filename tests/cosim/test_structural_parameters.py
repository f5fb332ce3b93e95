"""Structural parameters of FMI 3.0, which are set in configuration mode and decide on the sizes of arrays.

The FMU has x' = A x + B u, y = x with n states and m inputs; what is expected follows from exponentials. It refuses
calls that a mode does not allow, and arrays of other sizes than it has, and counts how often it was configured.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from cosim.linear_units import change_description
from cosim.ssp_documents import TAIL, binding, bindings, component, connector, connectors, system, value, wire
from cosim.test_ssp2 import HEAD_2
from fmpy.fmi3 import FMU3Slave
from scipy.linalg import expm

import mbsfmu
from mbsfmu import Cosimulation, InputError, SimulationError, cosimulate, sweep
from mbsfmu.cli.cosim import command as cosim_command
from mbsfmu.cli.show import command as show_command
from mbsfmu.cosim import write_ssp
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.instantiation import make_instance

Foreign = Callable[[str], Path]


@pytest.fixture
def file(foreign: Foreign) -> Path:
    return foreign("state_space")


def run(source: Any, values: dict[str, Any], **options: Any) -> Any:
    return cosimulate(source, parameters={f"state_space.{name}": each for name, each in values.items()}, **options)


# -- values and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("n", [1, 3, "4", 3.0])
def test_outputs_follow_the_number_of_states(file: Path, n: Any, isolate: bool) -> None:
    """Of each size the FMU begins with x = 1 and A = -diag(1, 2, ...)."""
    result = run(file, {"n": n}, isolate=["state_space"] if isolate else None)
    count = int(n)
    expected = [np.exp(-index * result.time) for index in range(1, count + 1)]
    assert [name for name in result.names if ".y[" in name] == [f"state_space.y[{i}]" for i in range(1, count + 1)]
    for index, each in enumerate(expected, 1):
        np.testing.assert_allclose(result[f"state_space.y[{index}]"], each, rtol=1e-11)
    np.testing.assert_allclose(result["state_space.sum"], np.sum(expected, axis=0), rtol=1e-11)
    assert result["state_space.configured"][-1] == 1.0


def test_the_start_value_needs_no_configuration_mode(file: Path, foreign: Foreign) -> None:
    for values in ({}, {"n": 2}, {"order": "2", "m": 1.0}, {"gain": "1.0"}):
        result = run(file, values)
        assert "state_space.y[3]" not in result
        assert result["state_space.configured"][-1] == 0.0
    vector = [4.0, 5.0, 6.0]  # of an FMU that has none
    cosimulate(foreign("receiver"), parameters={"receiver.size": 3, "receiver.vector": vector}, step=0.5, stop=0.5)


def test_arrays_are_given_and_named_in_their_new_sizes(file: Path) -> None:
    """x' = A x + B u of three states and two inputs, all given row by row, one element and one input by an alias."""
    a = np.array([[-1.0, 0.5, 0.0], [0.0, -2.0, 1.0], [-0.5, 0.0, -0.25]])
    b = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, -1.0]])
    x0, u = np.array([1.0, -2.0, 0.5]), np.array([0.5, -1.5])
    values = {"m": 2, "order": 3, "A": a, "B": b.ravel().tolist(), "x0": "1 -2 7", "u[1]": 0.5, "inputs[2]": -1.5}
    with pytest.raises(InputError, match=r"x0\[3\] is given twice"):
        run(file, {**values, "x0[3]": 0.5})
    result = run(file, {**values, "x0": "1 -2 0.5"})
    rest = -np.linalg.solve(a, b @ u)
    expected = np.array([rest + expm(a * time) @ (x0 - rest) for time in result.time])
    for index in range(3):
        np.testing.assert_allclose(result[f"state_space.y[{index + 1}]"], expected[:, index], rtol=1e-10)


@pytest.mark.parametrize("isolate", [None, ["state_space"]])
def test_the_master_integrates_as_many_states(file: Path, isolate: Any) -> None:
    """The FMU refuses vectors of states of another length than it was configured for."""
    options = {"model_exchange": ["state_space"], "isolate": isolate, "unit_tolerance": 1e-10}
    for n in (1, 2, 4):
        result = run(file, {"n": n, "x0": [2.0] * n}, **options)
        for index in range(1, n + 1):
            expected = 2.0 * np.exp(-index * result.time)
            np.testing.assert_allclose(result[f"state_space.y[{index}]"], expected, atol=1e-8)


def test_not_only_sizes_are_structural(file: Path) -> None:
    result = run(file, {"gain": 2.5, "n": 1})
    np.testing.assert_allclose(result["state_space.sum"], 2.5 * np.exp(-result.time), rtol=1e-11)


def test_two_instances_of_one_file_have_their_own_sizes(file: Path) -> None:
    """A state of A = 0 is held: b, with inputs 1, 2 and 3, goes to x_i = 6/i."""
    units = [f"{name}={file}" for name in "abc"]
    held = {"a.n": 3, "a.A": np.zeros(9), "a.x0": [1.0, 2.0, 3.0]}
    result = cosimulate(units, parameters={**held, "b.m": 3, "b.n": 1}, connections=["a.y=b.u"])
    np.testing.assert_allclose(result["b.y[1]"], 6.0 - 5.0 * np.exp(-result.time), rtol=1e-11)
    assert "b.y[2]" not in result
    assert [name for name in result.names if "c.y" in name] == ["c.y[1]", "c.y[2]"]
    with pytest.raises(InputError, match=r"a\.y has 3 elements, but b\.u has 1 elements"):
        cosimulate(units, parameters=held, connections=["a.y=b.u"])
    with pytest.raises(InputError, match=r"a has no variable 'y\[4\]'"):
        cosimulate(units, parameters=held, connections=["a.y[4]=b.u[1]"])


def test_saved_states_keep_the_size(file: Path) -> None:
    with closing(Archive(file)) as archive, closing(make_instance("s", archive, values={"n": 3})) as instance:
        instance.setup(0.0, 1.0)
        instance.set_start("n", 3)
        instance.enter_initialization()
        instance.exit_initialization()
        outputs = instance.port(["y[1]", "y[2]", "y[3]"])
        instance.step(0.0, 0.25)
        instance.save("quarter", 0.25)
        instance.step(0.25, 0.25)
        np.testing.assert_allclose(outputs.read(), np.exp([-0.5, -1.0, -1.5]), rtol=1e-11)
        instance.restore("quarter")
        np.testing.assert_allclose(outputs.read(), np.exp([-0.25, -0.5, -0.75]), rtol=1e-11)
        assert archive.configured == {}


def test_on_the_command_line(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    arguments = [str(file), "--quiet", "--set", "state_space.n=3", "-o", str(output)]
    done = CliRunner().invoke(cosim_command, arguments)
    assert done.exit_code == 0, done.output
    header, *rows = output.read_text().splitlines()
    assert "state_space.y[3]" in header
    assert "state_space.y[4]" not in header
    last = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    column = next(name for name in last if "state_space.y[3]" in name)
    np.testing.assert_allclose(float(last[column]), np.exp(-3.0 * float(rows[-1].split(",")[0])), rtol=1e-11)


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"n": 0}, "state_space.n = 0 is refused: it is a size of A and must be at least 1"),
        ({"order": "-3"}, "state_space.order = -3 is refused: it is a size of A and must be at least 1"),
        ({"n": 2.5}, "state_space.n is 2.5; it must be an integer"),
        ({"n": "many"}, "state_space.n is 'many'; it must be an integer"),
        ({"n": [3]}, r"state_space.n is \[3\]; it must be an integer"),
        ({"n": 9}, "state_space.n = 9 is refused: it must be at most 8"),
        ({"m": 2_000_000}, "state_space is refused with m = 2000000: B has 4000000 elements; at most 1000000"),
        ({"gain": "loud"}, "state_space.gain"),
        ({"n": 3, "order": 4}, "n .*is given twice, by two of its names"),
        ({"n": 3, "x0": [1.0, 1.0]}, "state_space.x0 has 3 elements, but is given 2 values"),
        ({"x0[3]": 1.0}, r"state_space has no variable 'x0\[3\]'"),
        ({"n": 1, "x0[2]": 1.0}, r"state_space has no variable 'x0\[2\]'"),
    ],
)
def test_what_is_refused_before_the_run(file: Path, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(file, values)


@pytest.mark.parametrize("isolate", [None, ["state_space"]])
def test_an_fmu_may_refuse_in_configuration_mode(file: Path, foreign: Foreign, isolate: Any) -> None:
    room = "fmi3ExitConfigurationMode gives error: there is room for four states and four inputs; m = 5"
    with pytest.raises(SimulationError, match=rf"state_space at t = 0 s: {room} was to be set in configuration mode"):
        run(file, {"m": 5}, isolate=isolate)
    why = "fmi3EnterConfigurationMode gives error: .* is not supported; size = 5 was to be set"
    with pytest.raises(SimulationError, match=f"receiver at t = 0 s: {why}"):
        cosimulate(foreign("receiver"), parameters={"receiver.size": 5}, step=0.5, stop=0.5)


def test_an_instance_that_refuses_is_freed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    free = FMU3Slave.freeInstance
    monkeypatch.setattr(FMU3Slave, "freeInstance", lambda slave: (freed.append(1), free(slave)))
    with closing(Archive(file)) as archive, pytest.raises(SimulationError, match="there is room for four"):
        make_instance("s", archive, values={"m": 5})
    assert freed == [1]


def test_they_are_set_before_the_run_alone(file: Path) -> None:
    """A tunable one may be set in reconfiguration mode by the standard, which is not supported."""
    alone = "it is a structural parameter, which is set before the run alone"
    with Cosimulation(file, parameters={"state_space.n": 3}) as running:
        for name in ("n", "m"):
            with pytest.raises(InputError, match=f"{name} cannot be set at t = 0 s: {alone}"):
                running[f"state_space.{name}"] = 2
    with pytest.raises(InputError, match=rf"state_space.m cannot be set at t = 0.5 s: {alone}"):
        cosimulate(file, scenario={0.5: {"state_space.m": 2}})
    with pytest.raises(InputError, match=f"state_space.m cannot be set to 2: {alone}; it is 1"):
        cosimulate(file, scenario={0.0: {"state_space.m": 2}})


def test_bounds_of_unsigned_integers_are_those_declared(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "state_space.fmu"
    path.write_bytes(file.read_bytes())
    change_description(path, 'max="8"', 'min="2" max="3"')
    for n in (1, 4):
        with pytest.raises(InputError, match=f"state_space.n = {n} is refused: it must be between 2 and 3"):
            run(path, {"n": n})
    assert "state_space.y[3]" in run(path, {"n": 3})


# -- studies, other forms ---------------------------------------------------------------------------------------------


def test_a_sweep_needs_results_of_the_same_names(file: Path) -> None:
    with pytest.raises(InputError, match="n cannot be varied: it is a structural parameter, and the output y would"):
        sweep([str(file)], {"n": [2, 3]}, stop=0.5)
    result = sweep([str(file)], {"m": [1, 3, 9]}, stop=0.5)
    assert [row["final.state_space.configured"] for row in result.rows[:2]] == [0.0, 1.0]
    assert result.rows[2]["status"] == "failed"
    assert "m = 9 was to be set in configuration mode" in result.rows[2]["message"]


def test_one_fmu_of_coupled_fmus_keeps_start_values(file: Path, foreign: Foreign, tmp_path: Path) -> None:
    alone = "state_space.n is set to 3: it is a structural parameter, which keeps its start value"
    target = tmp_path / "one.fmu"
    with pytest.raises(InputError, match=alone):
        mbsfmu.export_coupled([str(file)], target, parameters={"state_space.n": 3}, step=0.1)
    assert not target.exists()
    parameters = {"receiver.size": 3, "receiver.vector[2]": 7.0}
    one = mbsfmu.export_coupled([str(foreign("receiver"))], target, parameters=parameters, step=0.1, stop=0.2)
    assert cosimulate(one, step=0.1, stop=0.2).time[-1] == pytest.approx(0.2)


def test_show_has_sizes_by_values(file: Path, tmp_path: Path) -> None:
    shown = {each["name"]: (each["type"], each["default"]) for each in mbsfmu.overview(file)["variables"]}
    assert shown["A"] == ("Float64[n][n]", "-1 0 0 -2")
    given = mbsfmu.overview(file, {"order": 3})["variables"]
    shown = {each["name"]: (each["type"], each["default"]) for each in given}
    assert (shown["A"], shown["n"], shown["B"]) == (("Float64[3][3]", ""), ("UInt64", "3"), ("Float64[3][m]", "1"))
    done = CliRunner().invoke(show_command, [str(file), "--variables", "--set", "n=3"])
    assert done.exit_code == 0, done.output
    assert "Float64[3][3]" in done.output
    for values, sentence in (({"n": 0}, "must be at least 1"), ({"A": 1}, "has no structural parameter 'A'")):
        with pytest.raises(InputError, match=sentence):
            mbsfmu.overview(file, values)
    package = write_ssp(tmp_path / "two.ssp", "two", {"a": file, "b": file}, [], 1.0)
    components = mbsfmu.overview(package, {"b.n": 4})["components"]
    shown = {name: {each["name"]: each["type"] for each in one["variables"]} for name, one in components.items()}
    assert (shown["a"]["y"], shown["b"]["y"]) == ("Float64[n]", "Float64[4]")


# -- packages ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(file: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Write a package of SSP 2.0 with connectors of single elements, and a structural parameter of the system."""

    def written(values: str) -> Path:
        path = tmp_path / "package.ssp"
        each = [connector(name, "output", "Float64") for name in ("y[1]", "y[3]")]
        inside = component(
            "s", "state_space", *each, connector("n", "structuralParameter", "UInt64"),
            bindings=bindings(binding(values)) if values else "",
        )  # fmt: skip
        outside = connectors(
            connector("order", "structuralParameter", "UInt64"), connector("last", "output", "Float64")
        )
        body = system(inside, wire("order", "s.n"), wire("s.y[3]", "last"), outside=outside)
        with zipfile.ZipFile(path, "w") as archive:
            text = HEAD_2 + body.replace('ParameterSet version="1.0"', 'ParameterSet version="2.0"') + TAIL
            archive.writestr("SystemStructure.ssd", text)
            archive.write(file, "resources/state_space.fmu")
        return path

    return written


def test_values_of_a_package(package: Callable[[str], Path]) -> None:
    path = package(value("n", "UInt64", "3"))
    result = cosimulate(path, step=0.5)
    np.testing.assert_allclose(result["last"], np.exp(-3.0 * result.time), rtol=1e-11)
    for name in ("s.n", "s.order", "order"):  # what is given counts more than the package, by each of its names
        assert "s.y[4]" in cosimulate(path, parameters={name: 4}, step=0.5)
    with pytest.raises(InputError, match=r"connector last: s has no variable 'y\[3\]'"):
        cosimulate(path, parameters={"s.n": 2}, step=0.5)
    studied = sweep([str(path)], {"s.x0[3]": [1.0, 2.0]}, stop=0.5)
    assert studied.rows[1]["final.last"] == pytest.approx(2.0 * np.exp(-1.5), rel=1e-11)
    with pytest.raises(InputError, match="order cannot be varied: it is a structural parameter, and the output y"):
        sweep([str(path)], {"order": [3, 4]}, stop=0.5)
    with pytest.raises(InputError, match=r"connector last: s has no variable 'y\[3\]'"):
        cosimulate(package(""), step=0.5)


def test_a_package_is_written_with_arrays_of_the_size(file: Path, tmp_path: Path) -> None:
    values = {"s": {"n": 3, "x0": [1.0, 2.0, 4.0]}}
    path = write_ssp(tmp_path / "whole.ssp", "whole", {"s": file}, [], 1.0, values)
    assert '<ssc:Dimension size="3"/>' in zipfile.ZipFile(path).read("SystemStructure.ssd").decode()
    result = cosimulate(path, step=0.5)
    np.testing.assert_allclose(result["s.y[3]"], 4.0 * np.exp(-3.0 * result.time), rtol=1e-11)
