"""What units of FMI 3.0 have that those of FMI 2.0 have not, and that the two compute the same."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from lxml import etree
from native_units import Exported

import mbsfmu
from mbsfmu.native.sources import UNIT

Native = Callable[..., Exported]
SCHEMA = Path(fmpy.__file__).parent / "schema" / "fmi3"
QUICK = ("four-bar", "ball-pendulum")
SLOW = ("quick-return", "five-bar", "double-pentagon", "loop-4", "loop-8", "double-loop-8", "bennett", "slewing")


def elements(result: np.ndarray, name: str) -> np.ndarray:
    """A variable of a run, by its name in FMI 2.0: components of vectors are elements of arrays in FMI 3.0."""
    if name in result.dtype.names:
        return result[name]
    vector, _, axis = name.rpartition(".")
    values = result[vector]
    return values[:, ("xyz" if values.shape[1] == 3 else "wxyz").index(axis)]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)])
def test_units_of_both_versions_compute_the_same(native: Native, name: str) -> None:
    one, other = (native(name, "double-step", fmi=fmi) for fmi in (2, 3))
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
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r" T (\S+)", shown)) == declared
    assert len(declared) > 70


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
