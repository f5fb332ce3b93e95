"""FMUs as C sources: several models in one program, compiled without a flag and run beside the runs in process."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from native_fmus import model_of

from mbsfmu.compiling.compiler import VERSIONS, Fmi
from mbsfmu.exporting.fmu_export import export
from mbsfmu.native.c_sources import SOURCES, Sources
from mbsfmu.system_model.coupled_model import CoupledModel

STEPS, LENGTH = 200, 1e-3
UNITS: tuple[tuple[str, str, Fmi], ...] = (
    ("four-bar", "double-step", 2),
    ("pendulum-2", "dca", 2),
    ("ball-pendulum", "hdca", 3),
)
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wvla", "-Werror")
COMPILERS = {"gcc": ["gcc"], "clang": [sys.executable, "-m", "ziglang", "cc"]}
"""The second one is clang by the package of zig."""
UNTOLD = {"gcc": [], "clang": ["-Wno-unused-function"]}
"""Clang tells inline functions that a condition leaves without use."""
HAS_ZIG = importlib.util.find_spec("ziglang") is not None

DECLARED: dict[Fmi, str] = {
    2: """
void *{0}_fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int);
int {0}_fmi2SetupExperiment(void *, int, double, double, int, double);
int {0}_fmi2EnterInitializationMode(void *);
int {0}_fmi2ExitInitializationMode(void *);
int {0}_fmi2DoStep(void *, double, double, int);
int {0}_fmi2GetReal(void *, const unsigned *, size_t, double *);
void {0}_fmi2FreeInstance(void *);
""",
    3: """
void *{0}_fmi3InstantiateCoSimulation(const char *, const char *, const char *, bool, bool, bool, bool,
    const unsigned *, size_t, void *, void *, void *);
int {0}_fmi3EnterInitializationMode(void *, bool, double, double, bool, double);
int {0}_fmi3ExitInitializationMode(void *);
int {0}_fmi3DoStep(void *, double, double, bool, bool *, bool *, bool *, double *);
int {0}_fmi3GetFloat64(void *, const unsigned *, size_t, double *, size_t);
void {0}_fmi3FreeInstance(void *);
""",
}
BEGIN: dict[Fmi, str] = {
    2: """
    void *const of_{0} = {0}_fmi2Instantiate("a", 1, "{1}", "", NULL, 0, 0);
    if (!of_{0} || {0}_fmi2SetupExperiment(of_{0}, 0, 0.0, 0.0, 0, 0.0)) return 1;
    if ({0}_fmi2EnterInitializationMode(of_{0}) || {0}_fmi2ExitInitializationMode(of_{0})) return 2;
""",
    3: """
    void *const of_{0} = {0}_fmi3InstantiateCoSimulation("a", "{1}", NULL, false, false, false, false, NULL, 0, NULL,
        NULL, NULL);
    if (!of_{0} || {0}_fmi3EnterInitializationMode(of_{0}, false, 0.0, 0.0, false, 0.0)) return 1;
    if ({0}_fmi3ExitInitializationMode(of_{0})) return 2;
""",
}
STEP_OF: dict[Fmi, str] = {
    2: """
        if ({0}_fmi2DoStep(of_{0}, k * {1}, {1}, 1)) return 3;
""",
    3: """
        if ({0}_fmi3DoStep(of_{0}, k * {1}, {1}, true, &some[0], &some[1], &some[2], &last)) return 3;
""",
}
END: dict[Fmi, str] = {
    2: """
    {{
        const unsigned read[] = {{{1}}};
        double values[{2}];
        if ({0}_fmi2GetReal(of_{0}, read, {2}, values)) return 4;
        for (int i = 0; i < {2}; i++) printf("%.17g ", values[i]);
        {0}_fmi2FreeInstance(of_{0});
    }}
""",
    3: """
    {{
        const unsigned read[] = {{{1}}};
        double values[{2}];
        if ({0}_fmi3GetFloat64(of_{0}, read, {2}, values, {2})) return 4;
        for (int i = 0; i < {2}; i++) printf("%.17g ", values[i]);
        {0}_fmi3FreeInstance(of_{0});
    }}
""",
}


class Sourced:
    """An FMU of sources, unpacked."""

    def __init__(self, name: str, formulation: str, fmi: Fmi, sources: Sources, folder: Path) -> None:
        self.model: CoupledModel = model_of(name)
        self.options: dict[str, Any] = {"formulation": formulation}
        self.fmi: Fmi = fmi
        path = export(
            self.model, folder / name, layout="monolithic", fmi=fmi, platforms=[], sources=sources, **self.options
        )[0]
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder / name / "unpacked")
        self.folder = folder / name / "unpacked" / "sources"
        described = fmpy.read_model_description(str(path))
        (configuration,) = described.buildConfigurations
        (files,) = configuration.sourceFileSets
        assert not files.preprocessorDefinitions
        self.listed: Sequence[str] = files.sourceFiles
        self.identifier: str = configuration.modelIdentifier
        self.guid = described.guid or ""
        self.outputs = {v.name: v.valueReference for v in described.modelVariables if v.causality == "output"}

    def written(self, texts: Mapping[Fmi, str], *more: object) -> str:
        return texts[self.fmi].format(self.identifier, *more)

    def in_process(self) -> list[float]:
        simulation = self.model.simulation(**self.options)
        simulation.initialize()
        for k in range(STEPS):
            simulation.step(k * LENGTH, LENGTH)
        return [simulation.get(name) for name in self.outputs]


def host(units: Sequence[Sourced]) -> str:
    """A program that steps all of them in turn and prints their outputs."""
    parts = [each.written(DECLARED) for each in units]
    parts += ["int main(void) {\n    bool some[3];\n    double last;\n    (void)some;\n    (void)last;\n"]
    parts += [each.written(BEGIN, each.guid) for each in units]
    parts += [f"    for (int k = 0; k < {STEPS}; k++) {{\n"]
    parts += [each.written(STEP_OF, LENGTH) for each in units]
    parts += ["    }\n"]
    for each in units:
        parts += [each.written(END, ", ".join(map(str, each.outputs.values())), len(each.outputs))]
    return "#include <stdbool.h>\n#include <stddef.h>\n#include <stdio.h>\n" + "".join(parts) + "    return 0;\n}\n"


def run(command: Sequence[object], folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def sourced(tmp_path_factory: pytest.TempPathFactory) -> dict[Sources, list[Sourced]]:
    """Three models, by how many files they are."""
    folder = tmp_path_factory.mktemp("sourced")
    return {kind: [Sourced(*unit, kind, folder / kind) for unit in UNITS] for kind in SOURCES}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", SOURCES)
def test_three_models_are_one_program(
    sourced: dict[Sources, list[Sourced]], tmp_path: Path, kind: Sources, compiler: str
) -> None:
    """Their listed files, compiled without any -D and linked statically, compute what runs in process do."""
    if compiler == "clang" and not HAS_ZIG:
        pytest.skip("ziglang is not installed")
    units = sourced[kind]
    call = COMPILERS[compiler]
    (tmp_path / "host.c").write_text(host(units))
    objects: list[Path] = []
    for unit in units:
        assert (len(unit.listed) == 1) == (kind == "single")
        own = [tmp_path / f"{unit.identifier}-{name}.o" for name in unit.listed]
        for name, made in zip(unit.listed, own, strict=True):
            run([*call, *WARNINGS, *UNTOLD[compiler], "-O0", "-c", name, "-o", made], unit.folder)
        seen = re.findall(r" [A-TV-Z] (\S+)", run(["nm", "--extern-only", "--defined-only", *own], tmp_path))
        assert seen
        assert all(name.startswith(f"{unit.identifier}_") for name in seen)
        objects += own
    run([*call, "host.c", *objects, "-o", "host", "-lm"], tmp_path)
    found = [float(text) for text in run(["./host"], tmp_path).split()]
    expected = [value for unit in units for value in unit.in_process()]
    assert np.max(np.abs(expected)) > 1.0
    # Compilers other than that of the run in process may fuse and reorder.
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed")
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed (Debian: qemu-user)")
def test_three_models_run_on_another_processor(sourced: dict[Sources, list[Sourced]], tmp_path: Path) -> None:
    """The program for 64-bit ARM, which an emulator runs, computes what runs in process on this machine do."""
    units = sourced["single"]
    (tmp_path / "host.c").write_text(host(units))
    files = [unit.folder / name for unit in units for name in unit.listed]
    call = [*COMPILERS["clang"], "-target", "aarch64-linux-musl", "-static", "-O1"]
    run([*call, "host.c", *files, "-o", "host", "-lm"], tmp_path)
    assert (tmp_path / "host").read_bytes()[18:20] == b"\xb7\x00"  # ELF's number of the processor
    found = [float(text) for text in run(["qemu-aarch64", "./host"], tmp_path).split()]
    expected = [value for unit in units for value in unit.in_process()]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_single_sources_have_no_other_file(sourced: dict[Sources, list[Sourced]]) -> None:
    for unit in sourced["single"]:
        assert list(unit.listed) == [f"{unit.identifier}.c"]
        others = {each.name for each in unit.folder.iterdir()} - {"buildDescription.xml"}
        assert others == set(unit.listed)
        assert not re.search(r'^\s*#\s*include\s*"', (unit.folder / unit.listed[0]).read_text(), re.MULTILINE)


@pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed")
@pytest.mark.parametrize(
    "dialect", [["-target", "x86_64-windows-gnu"], ["-fms-compatibility", "-fms-extensions", "-Wno-literal-range"]]
)
def test_single_sources_use_no_extension_that_msvc_lacks(
    sourced: dict[Sources, list[Sourced]], dialect: list[str]
) -> None:
    """With the headers of Windows, and in the dialect of its compiler; extensions of GNU are errors."""
    call = [*COMPILERS["clang"], "-Wgnu", "-Wzero-length-array", "-Wc11-extensions"]
    for unit in sourced["single"]:
        made = unit.folder / "windows.obj"
        run([*call, *WARNINGS, *UNTOLD["clang"], *dialect, "-c", unit.listed[0], "-o", made], unit.folder)
        made.unlink()


@pytest.mark.parametrize("fmi", VERSIONS)
def test_choices_of_sources_are_checked(fmi: Fmi, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no choice of sources 'one'; there are several, single"):
        export(model_of("pendulum-2"), tmp_path, fmi=fmi, sources="one")  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())
