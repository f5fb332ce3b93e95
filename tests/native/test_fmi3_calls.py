"""What FMUs of FMI 3.0 have that those of FMI 2.0 have not, and that the two compute the same."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import byref, c_bool, c_double, c_size_t, c_uint
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from importer import Importer, Slave3
from lxml import etree
from native_fmus import Exported

import mbsfmu
from mbsfmu.compiling.compiler import OPTIMIZATION
from mbsfmu.native.c_sources import UNIT

Native = Callable[..., Exported]
SCHEMA = Path(fmpy.__file__).parent / "schema" / "fmi3"
IMPLICIT = ("four-bar", "ball-pendulum")
EXPLICIT = ("quick-return", "double-loop-8", "bennett", "slewing")


def elements(result: np.ndarray, name: str) -> np.ndarray:
    """A variable of a run, by its name in FMI 2.0: components of vectors are elements of arrays in FMI 3.0."""
    if name in result.dtype.names:
        return result[name]
    vector, _, axis = name.rpartition(".")
    values = result[vector]
    return values[:, ("xyz" if values.shape[1] == 3 else "wxyz").index(axis)]


@pytest.mark.parametrize("name", [*IMPLICIT, *EXPLICIT])
def test_units_of_both_versions_compute_the_same(native: Native, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What steps are made of does not matter here: most models have those that are compiled soonest."""
    solver = "trapezoidal" if name in IMPLICIT else "rk4"
    if name not in IMPLICIT:
        monkeypatch.setenv(OPTIMIZATION, "0")
    one, other = (native(name, "double-step", solver, fmi=fmi) for fmi in (2, 3))
    assert mbsfmu.validate(other.path) == []
    grid = {"stop_time": 0.3, "step_size": 1e-2, "output_interval": 1e-2}
    described = fmpy.read_model_description(str(one.path)).modelVariables
    names = [each.name for each in described if each.variability == "continuous"]
    described = fmpy.read_model_description(str(other.path)).modelVariables
    arrays = [each.name for each in described if each.variability == "continuous" and each.causality != "independent"]
    expected = fmpy.simulate_fmu(str(one.path), **grid, output=names)
    result = fmpy.simulate_fmu(str(other.path), **grid, output=arrays)
    for each in names:
        scale = max(np.max(np.abs(expected[each])), 1e-12)
        np.testing.assert_allclose(elements(result, each), expected[each], atol=1e-12 * scale, err_msg=each)


@pytest.mark.parametrize("name", ["four-bar", "ball-pendulum"])
def test_files_follow_the_schemas(native: Native, name: str) -> None:
    with zipfile.ZipFile(native(name, "double-step", fmi=3).path) as archive:
        for file, schema in (
            ("modelDescription.xml", "fmi3ModelDescription.xsd"),
            ("sources/buildDescription.xml", "fmi3BuildDescription.xsd"),
        ):
            etree.XMLSchema(file=str(SCHEMA / schema)).assertValid(etree.fromstring(archive.read(file)))


def test_every_function_of_the_standard_is_there(native: Native, tmp_path: Path) -> None:
    """Those that FMPy's copy of the standard's header declares, and nothing else."""
    header = (Path(fmpy.__file__).parent / "c-code" / "fmi3Functions.h").read_text()
    declared = set(re.findall(r"^FMI3_Export fmi3\w+TYPE\s+(fmi3\w+);", header, re.MULTILINE))
    with zipfile.ZipFile(native("four-bar", "double-step", fmi=3).path) as archive:
        library = archive.extract("binaries/x86_64-linux/four_bar.so", tmp_path)
    exposed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r" T (\S+)", exposed)) == declared
    assert len(declared) == 75


def test_sources_compile_without_warnings_beside_the_headers_of_the_standard(native: Native, tmp_path: Path) -> None:
    """Our declarations of the functions are those of the standard's headers."""
    with zipfile.ZipFile(native("ball-pendulum", "double-step", fmi=3).path) as archive:
        archive.extractall(tmp_path)
    sources = tmp_path / "sources"
    headers = Path(fmpy.__file__).parent / "c-code"
    own = (sources / "fmi3.h").read_text()
    flags = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-c")
    subprocess.run(["gcc", *flags, *UNIT[3]], cwd=sources, check=True)
    # The standard's headers in place of ours: what both declare must fit.
    (sources / "fmi3.h").write_text('#include "fmi3Functions.h"\n')
    prefix = "-DFMI3_FUNCTION_PREFIX="
    subprocess.run(["gcc", *flags[:-1], f"-I{headers}", prefix, "-fsyntax-only", "fmi3.c"], cwd=sources, check=True)
    assert "fmi3Functions" not in own


# -- calls --------------------------------------------------------------------------------------------------------


@pytest.fixture
def importer(native: Native, tmp_path: Path) -> Iterator[Importer]:
    made = Importer(native("ball-pendulum", "double-step", fmi=3).path, tmp_path / "unpacked")
    yield made
    for slave in made.slaves:
        slave.freeInstance()


def jacobian(slave: Slave3, unknowns: list[int], knowns: list[int], rows: int, columns: int) -> np.ndarray:
    """Directional derivatives, one column after the other."""
    found = [slave.getDirectionalDerivative(unknowns, knowns, list(seed), rows) for seed in np.eye(columns)]
    return np.array(found).T


def test_adjoint_derivatives_are_the_transposed_ones(importer: Importer) -> None:
    """Of the start, scalars and arrays, by parameters, scalars and arrays."""
    slave = importer.instance()
    assert isinstance(slave, Slave3)
    slave.enterInitializationMode()
    described = importer.description
    sizes = {each.valueReference: int(np.prod(each.shape)) for each in described.modelVariables}
    unknowns = [each.variable.valueReference for each in described.initialUnknowns]
    knowns = [v.valueReference for v in described.modelVariables if v.causality == "parameter"]
    rows, columns = (sum(sizes[each] for each in references) for references in (unknowns, knowns))
    assert rows > len(unknowns)
    assert columns > len(knowns)
    exact = jacobian(slave, unknowns, knowns, rows, columns)
    seed = np.random.default_rng(3).normal(size=rows)
    found = slave.getAdjointDerivative(unknowns, knowns, list(seed), columns)
    np.testing.assert_allclose(found, seed @ exact, atol=1e-14 * np.max(np.abs(seed) @ np.abs(exact)))
    assert np.count_nonzero(found) > 5


def test_sizes_of_calls_are_checked(importer: Importer) -> None:
    slave = importer.running()
    assert isinstance(slave, Slave3)
    array = next(v for v in importer.description.modelVariables if v.shape == (4,))
    reference, one = array.valueReference, importer.reference["solver.step"]
    assert np.linalg.norm(slave.getFloat64([reference], 4)) == pytest.approx(1.0, rel=1e-12)
    time = importer.reference["time"]
    assert slave.getFloat64([time, one, reference, time], 7)[::6] == [0.0, 0.0]
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: slave.getFloat64([reference], 1), "have 4 values together, the call has 1"),
        (lambda: slave.getFloat64([reference, one], 6), "have 5 values together, the call has 6"),
        (lambda: slave.getFloat64([reference + 1]), f"no Float64 variable with value reference {reference + 1}"),
        (lambda: slave.getFloat64([time + 1]), f"no Float64 variable with value reference {time + 1}"),
        (lambda: slave.setFloat64([one], [1e-3, 1e-3]), "have 1 values together, the call has 2"),
        (lambda: slave.setFloat64([time], [1.0]), "is that of time"),
        (lambda: slave.setFloat64([reference], [1.0, 0.0, 0.0, 0.0]), "is computed and cannot be set"),
        (lambda: slave.getOutputDerivatives([reference], [1]), "have 4 values together, the call has 1"),
        (lambda: slave.getDirectionalDerivative([reference], [], [], 3), "have 4 values together, the call has 3"),
        (lambda: slave.getAdjointDerivative([reference], [], [1.0], 0), "have 4 values together, the call has 1"),
        (lambda: slave.getDirectionalDerivative([reference], [time], [1.0], 4), "is that of time"),
        (lambda: slave.fmi3GetFloat64(slave.component, None, 1, None, 1), "no place for values"),
        (lambda: slave.getInt32([one]), "no variables of type Int32"),
        (lambda: slave.setBoolean([one], [True]), "no variables of type Boolean"),
        (lambda: slave.getClock([one]), "has no clocks"),
    ]
    for call, sentence in refused:
        with pytest.raises(FMICallException):
            call()
        assert sentence in importer.messages[-1][1]
    assert list(slave.getInt32([])) == []


def test_many_values_go_in_one_call(importer: Importer) -> None:
    """More than there is room for without memory of their own."""
    slave = importer.running()
    references = [importer.reference["solver.step"]] * 500
    slave.setReal(references, [2e-3] * 500)
    assert slave.getReal(references) == [2e-3] * 500


def test_what_units_of_co_simulation_lack_says_so(importer: Importer) -> None:
    slave = importer.running()
    assert isinstance(slave, Slave3)
    number, reference = byref(c_size_t()), c_uint(0)
    flag, value = byref(c_bool()), (c_double * 1)()
    calls: dict[str, tuple[Any, ...]] = {
        "fmi3EnterConfigurationMode": (),
        "fmi3ExitConfigurationMode": (),
        "fmi3EvaluateDiscreteStates": (),
        "fmi3GetNumberOfVariableDependencies": (reference, number),
        "fmi3EnterContinuousTimeMode": (),
        "fmi3CompletedIntegratorStep": (True, flag, flag),
        "fmi3SetTime": (c_double(0.0),),
        "fmi3SetContinuousStates": (value, 1),
        "fmi3GetContinuousStates": (value, 1),
        "fmi3GetContinuousStateDerivatives": (value, 1),
        "fmi3GetNominalsOfContinuousStates": (value, 1),
        "fmi3GetEventIndicators": (value, 1),
        "fmi3GetNumberOfContinuousStates": (number,),
        "fmi3GetNumberOfEventIndicators": (number,),
        "fmi3ActivateModelPartition": (reference, c_double(0.0)),
        "fmi3GetIntervalDecimal": (byref(reference), 1, value, None),
        "fmi3SetShiftFraction": (byref(reference), 1, None, None),
    }
    for count, (name, arguments) in enumerate(calls.items(), start=1):
        with pytest.raises(FMICallException):
            getattr(slave, name)(slave.component, *arguments)
        assert len(importer.messages) == count
        assert importer.messages[-1][1].startswith("this FMU has no "), name
    logger = slave.logMessage
    environment = (b"name", b"token", None, False, True, None, logger)
    assert slave.fmi3InstantiateModelExchange(*environment) is None
    assert importer.messages[-1][1].endswith("not for model exchange")


@pytest.mark.parametrize("name", ["", " \t"])
def test_instance_needs_a_name(importer: Importer, name: str) -> None:
    slave = importer.instance()
    slave.instanceName = name
    component = slave.component
    with pytest.raises(Exception, match="instantiate"):
        slave.instantiate(logMessage=lambda _, status, __, text: importer.messages.append((status, text.decode())))
    assert importer.messages[-1][1] == "the instance needs a name"
    slave.component = component


def test_errors_are_logged_whatever_is_chosen(importer: Importer) -> None:
    """Steps that are discarded are told where their category is on, errors always, with # as itself."""
    slave = importer.running()

    def messages_of(call: Callable[[], object]) -> list[str]:
        del importer.messages[:]
        with suppress(FMICallException):
            call()
        return [message for _, message in importer.messages]

    slave.setDebugLogging(False, [])
    assert messages_of(lambda: slave.setDebugLogging(True, ["#1#"])) == ["there is no log category '##1##'"]
    slave.terminate()
    assert importer.messages == [(3, "there is no log category '##1##'")]
    slave.reset()
    slave.setDebugLogging(True, ["logAll"])
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    assert "internal steps" in messages_of(slave.terminate)[0]
