"""Native FMUs seen from C: what they link, hosts, warnings, sanitizers, valgrind, importers that compile."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, export_linear, halves
from fmpy.build import build_platform_binary
from fuzzing import SANITIZERS, Checked
from native_fmus import Exported, model_of

import mbsfmu
from mbsfmu.compiling.compiler import Clocks, Fmi, Interface, host_platform
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.exporting.coupled_export import coupled_code
from mbsfmu.native.c_sources import ENSEMBLE, UNIT, ensemble_sources, fmu_sources, identity_source, unit_files
from mbsfmu.native.native_package import described_sources

Native = Callable[..., Exported]
HERE = Path(__file__).parent
VARIABLES, STEPS, STEP = 12, 60, 0.02


def unpack(unit: Exported, folder: Path) -> tuple[Path, str]:
    with zipfile.ZipFile(unit.path) as archive:
        archive.extractall(folder)
    return folder, str(fmpy.read_model_description(str(unit.path)).guid)


def compiled_host(folder: Path, *options: str) -> Path:
    host = folder / "host"
    source = [str(HERE / "host.c"), f"-I{folder / 'sources'}"]
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-g", *options, *source, "-o", str(host), "-ldl")
    return host


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def hosted(folder: Path, guid: str, *before: str, library: Path | None = None, host: Path | None = None) -> np.ndarray:
    """Run the host; return times and the first variables."""
    library = library or next((folder / "binaries" / "linux64").iterdir())
    arguments = [str(library), guid, repr(STEP), str(STEPS), str(VARIABLES)]
    text = run(*before, str(host or compiled_host(folder)), *arguments)
    return np.loadtxt(io.StringIO(text), delimiter=",")


def test_binary_needs_the_c_library_only(native: Native, tmp_path: Path) -> None:
    folder, _ = unpack(native("four-bar", "double-step"), tmp_path)
    (library,) = (folder / "binaries" / "linux64").iterdir()
    needed = re.findall(r"^\s*(\S+)", run("ldd", str(library)), re.MULTILINE)
    allowed = ("linux-vdso.so", "libc.so", "libm.so", "/lib64/ld-linux")
    assert [name for name in needed if not name.startswith(allowed)] == []
    exported = re.findall(r" T (\S+)", run("nm", "-D", "--defined-only", str(library)))
    assert all(name.startswith("fmi2") for name in exported)
    assert len(exported) == 44  # every function of FMI 2.0, model exchange included


@pytest.mark.parametrize("formulation", ["double-step", "penalty"])
def test_host_in_c_sees_what_python_sees(native: Native, tmp_path: Path, formulation: str) -> None:
    unit = native("four-bar", formulation)
    folder, guid = unpack(unit, tmp_path)
    table = hosted(folder, guid)
    expected = unit.simulation.run(STEP * STEPS, output_step=STEP)
    names = [variable.name for variable in unit.simulation.variables[:VARIABLES]]
    for column, name in enumerate(names, start=1):
        if name in expected:
            scale = np.max(np.abs(expected[name]))
            np.testing.assert_allclose(table[:, column], expected[name][1:], atol=1e-9 * scale)


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        *(("four-bar", formulation) for formulation in ("double-step", "penalty")),
        ("loop-4", "hdca"),
        ("ball-pendulum", "double-step"),
        ("ball-pendulum", "dca-alm"),
    ],
)
def test_sources_compile_without_warnings(native: Native, tmp_path: Path, name: str, formulation: str) -> None:
    folder, _ = unpack(native(name, formulation), tmp_path)
    # What a standard forbids is seen while sources are read; what optimizing shows is the same for both.
    # That a number has no value is seen at -O1 too, in half the time; indices out of bounds at -O2 alone.
    level = "-O2" if (name, formulation) == ("four-bar", "double-step") else "-O1"
    for how in (("-std=c99", level, "-fPIC", "-c"), ("-std=c17", "-fsyntax-only")):
        run("gcc", "-Wall", "-Wextra", "-pedantic", "-Werror", *how, *UNIT[2], cwd=folder / "sources")


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        ("four-bar", "double-step"),
        ("four-bar", "penalty"),
        ("pendulum-4", "dca"),
        ("ball-pendulum", "double-step"),
        ("ball-pendulum", "dca-alm"),
    ],
)
def test_sanitizers_find_nothing(
    sanitized: Callable[[str, str], Checked], tmp_path: Path, name: str, formulation: str
) -> None:
    unit = sanitized(name, formulation)
    (tmp_path / "sources").symlink_to(unit.library.parent)
    host = compiled_host(tmp_path, *SANITIZERS)
    assert hosted(tmp_path, unit.guid, library=unit.library, host=host).shape == (STEPS, VARIABLES + 1)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_valgrind_finds_no_error_and_no_leak(native: Native, tmp_path: Path) -> None:
    folder, guid = unpack(native("four-bar", "double-step"), tmp_path)
    valgrind = ("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all")
    hosted(folder, guid, *valgrind)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_importer_compiles_the_sources(native: Native, tmp_path: Path) -> None:
    """FMPy builds the binary from the sources alone, with CMake."""
    unit = native("four-bar", "double-step")
    folder, _ = unpack(unit, tmp_path / "unit")
    shutil.rmtree(folder / "binaries")
    (tmp_path / "build").mkdir()
    build_platform_binary(folder, tmp_path / "build")
    grid = {"stop_time": 0.2, "step_size": 1e-3, "output": ["boom.angle", "cylinder.force"]}
    ours, theirs = fmpy.simulate_fmu(str(unit.path), **grid), fmpy.simulate_fmu(str(folder), **grid)
    for name in grid["output"]:
        np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [
        ("pendulum-2", "double-step", "rk4"),
        ("loop-4", "dca", "rk45"),
        ("four-bar", "double-step", "rodas5p"),
        ("ball-pendulum", "hdca", "rodas5p"),
    ],
)
def test_explicit_sources_compile_without_warnings(tmp_path: Path, name: str, formulation: str, solver: str) -> None:
    simulation = model_of(name).simulation(formulation=formulation, solver=solver, compiled=False)
    for file, text in fmu_sources(simulation, "{guid}").items():
        (tmp_path / file).write_text(text)
    flags = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-c")
    run("gcc", *flags, *UNIT[2], cwd=tmp_path)


@pytest.mark.parametrize("clocks", ["periodic", "triggered"])
def test_sources_with_clocks_compile_without_warnings(tmp_path: Path, clocks: Clocks) -> None:
    simulation = model_of("sampled").simulation(solver="rk4", compiled=False)
    _, texts = described_sources(simulation, 3, ("cs", "me"), clocks=clocks)
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    run("gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", *unit_files(3, texts), cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "formulation", "kind"),
    [
        ("four-bar", "double-step", ("cs", "me")),
        ("ball-pendulum", "hdca", ("cs", "me")),
        ("ball-pendulum", "hdca", ("me",)),
    ],
)
def test_sources_for_model_exchange_compile_without_warnings(
    tmp_path: Path, name: str, formulation: str, kind: tuple[Interface, ...]
) -> None:
    simulation = model_of(name).simulation(formulation=formulation, compiled=False)
    _, texts = described_sources(simulation, 3, kind)
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    run("gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", *unit_files(3, texts), cwd=tmp_path)


READ = ("gcc", "-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror")
"""What a compiler says of C while it reads it, in a tenth of the time that translating takes."""


@pytest.mark.parametrize(
    ("name", "formulation", "solver", "fmi", "kind"),
    [
        ("four-bar", "double-step", "trapezoidal", 3, ("cs", "me")),
        ("ball-pendulum", "penalty", "trapezoidal", 2, ("cs",)),
        ("loop-4", "hdca", "rodas5p", 3, ("cs",)),
        ("ball-pendulum", "dca-alm", "rk45", 2, ("cs",)),
    ],
)
def test_c_of_fmus_is_read_without_warnings(
    tmp_path: Path, name: str, formulation: str, solver: str, fmi: Fmi, kind: tuple[Interface, ...]
) -> None:
    simulation = model_of(name).simulation(formulation=formulation, solver=solver, compiled=False)
    _, texts = described_sources(simulation, fmi, kind)
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    run(*READ, "-std=c99", *unit_files(fmi, texts), cwd=tmp_path)


def test_c_of_ensembles_is_read_without_warnings(tmp_path: Path) -> None:
    """Vectors are an extension of C, and how they are handed over depends on the processor."""
    simulation = model_of("four-bar").simulation(solver="rodas5p", compiled=False)
    texts = ensemble_sources(simulation, 4, vector_mathematics=False, errors=True) | identity_source("ensemble")
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    run(*READ, "-std=gnu99", "-Wno-psabi", *ENSEMBLE, cwd=tmp_path)


def test_c_of_coupled_fmus_is_read_without_warnings(tmp_path: Path) -> None:
    units = [export_linear(each, tmp_path, "rk4", 1e-3) for each in halves()]
    place = host_platform(2)
    with coupled_code(units, "pair", [place], options=CouplingOptions(), connections=CONNECTIONS) as code:
        for file, text in {**code.sources, "platform.h": ""}.items():
            (tmp_path / file).write_text(text)
        places = [f'-D{name}=""' for name in ("PLATFORM_OF_FMI2", "PLATFORM_OF_FMI3", "SUFFIX")]
        run(*READ, "-std=c99", *places, *code.mains, cwd=tmp_path)


def test_no_global_is_mutable(tmp_path: Path) -> None:
    for file, text in fmu_sources(mbsfmu.models.four_bar().simulation(compiled=False), "{guid}").items():
        (tmp_path / file).write_text(text)
    run("gcc", "-std=c99", "-O0", "-fPIC", "-Wvla", "-Werror", "-c", *UNIT[2], cwd=tmp_path)
    for source in UNIT[2]:
        sections = run("size", "-A", str((tmp_path / source).with_suffix(".o")))
        sizes = dict(re.findall(r"^(\.(?:data|bss|tdata|tbss))\s+(\d+)", sections, re.MULTILINE))
        assert set(sizes) >= {".data", ".bss"}
        assert set(sizes.values()) == {"0"}


def compiled_sources(path: Path, folder: Path, *flags: str) -> list[Path]:
    """Compile the files that a description lists, and return the objects."""
    fmpy.extract(path, unzipdir=folder)
    (configuration,) = fmpy.read_model_description(folder).buildConfigurations
    (files,) = configuration.sourceFileSets
    assert not files.preprocessorDefinitions
    run("gcc", "-std=c99", "-O0", "-fPIC", *flags, "-c", *files.sourceFiles, cwd=folder / "sources")
    return [(folder / "sources" / name).with_suffix(".o") for name in files.sourceFiles]


@pytest.mark.parametrize("fmi", [2, 3])
def test_importers_choose_names_without_prefix(native: Native, tmp_path: Path, fmi: Fmi) -> None:
    """By the macro of the standard, for a shared library of their own."""
    unit = native("ball-pendulum", "double-step", fmi=fmi)
    objects = compiled_sources(unit.path, tmp_path, f"-DFMI{fmi}_OVERRIDE_FUNCTION_PREFIX")
    defined = re.findall(r" T (\S+)", run("nm", "--defined-only", "--extern-only", *map(str, objects)))
    assert f"fmi{fmi}GetVersion" in defined
    assert not any(name.startswith("ball_pendulum") for name in defined)
