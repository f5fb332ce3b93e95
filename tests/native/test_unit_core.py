"""The unit's core by itself, with no FMI about it, and the FMI by itself, with no FMU but its header."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oscillator_in_closed_form import displacement, oscillator

from mbsfmu.compiling.compiler import VERSIONS, Fmi
from mbsfmu.native.c_sources import fmu_sources
from mbsfmu.native.native_package import described_sources
from mbsfmu.simulation.simulation import Simulation

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
DONE, REFUSED = 0, 3

# What is refused in each mode, by a word of the sentence that says why.
EVENTS = {"enter_events": "from step mode only", "exit_events": "not entered", "pass_events": "in event mode only"}
WRONG = {
    "created": {"exit": "not entered", "step": "initialized", "terminate": "running", **EVENTS},
    "initializing": {
        "set_up": "before",
        "enter": "from the start",
        "step": "initialized",
        "terminate": "running",
        **EVENTS,
    },
    "stepping": {
        "set_up": "before",
        "enter": "from the start",
        "exit": "not entered",
        "exit_events": "not entered",
        "pass_events": "in event mode only",
    },
    "events": {
        "set_up": "before",
        "enter": "from the start",
        "exit": "not entered",
        "step": "not in event mode",
        "enter_events": "from step mode only",
    },
    "terminated": {
        "set_up": "before",
        "enter": "from the start",
        "exit": "not entered",
        "step": "terminated",
        "terminate": "running",
        "set": "terminated",
        "set_slopes": "terminated",
        "lead": "terminated",
        **EVENTS,
    },
}
CALLS = {"set_up", "enter", "exit", "step", "terminate", "set", "set_slopes", "get", "reset", "save", "lead", *EVENTS}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return fmu_sources(free_oscillator(), "{guid}")


def free_oscillator() -> Simulation:
    return oscillator(driven=False).simulation(solver="rk4", step=1e-3, compiled=False)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, sources: dict[str, str]) -> Path:
    """Compile the host with what the core has; there is no file of the FMI that it could include."""
    folder = tmp_path_factory.mktemp("core")
    for name, text in sources.items():
        if not name.startswith("fmi"):
            (folder / name).write_text(text)
    compiled(folder, "steps.c", "unit.c", str(HERE / "core.c"), f"-I{folder}", "-lm", "-o", "core")
    return folder / "core"


def compiled(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["gcc", *FLAGS, *arguments], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-4000:]


def warned(host: Path, *arguments: str) -> str:
    return subprocess.run([str(host), *arguments], capture_output=True, text=True, check=True).stdout


def test_calls_in_a_wrong_mode_are_refused_with_a_sentence(host: Path) -> None:
    seen: dict[str, set[str]] = {}
    for line in warned(host, "modes").splitlines():
        mode, call, status, *said = line.split(" ", 4)
        seen.setdefault(mode, set()).add(call)
        if call in WRONG[mode]:
            assert int(status) == REFUSED, line
            assert said[0] == str(REFUSED), line
            assert WRONG[mode][call] in said[1], line
        else:
            assert int(status) == DONE, line
    assert seen == dict.fromkeys(WRONG, CALLS)


def test_the_core_runs_without_a_standard(host: Path) -> None:
    """A damped oscillator meets its closed form."""
    variables = [each.name for each in oscillator(driven=False).simulation(compiled=False).variables]
    table = warned(host, "run", str(variables.index("slider.displacement")), "0.02", "100")
    times, values = np.loadtxt(io.StringIO(table)).T
    np.testing.assert_allclose(times, 0.02 * np.arange(1, 101), rtol=1e-14)
    np.testing.assert_allclose(values, displacement(times, driven=False), atol=1e-9)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_no_file_but_its_own_knows_the_fmi(fmi: Fmi) -> None:
    """The core takes the prefix of a program that links several FMUs, by the words of all versions."""
    prefixes = {f"FMI{version}_{word}FUNCTION_PREFIX" for version in VERSIONS for word in ("", "OVERRIDE_")}
    sources = described_sources(free_oscillator(), fmi)[1]
    for name, text in sources.items():
        words = set(re.findall(r"fmi\d\w*", text, re.IGNORECASE))
        if name.startswith(f"fmi{fmi}"):
            assert all(word.lower().startswith(f"fmi{fmi}") for word in words), name
        else:
            assert words <= (prefixes if name == "visibility.h" else set()), name


@pytest.mark.parametrize("fmi", VERSIONS)
def test_the_fmi_knows_the_unit_by_its_header_alone(fmi: Fmi, tmp_path: Path) -> None:
    sources = described_sources(free_oscillator(), fmi)[1]
    for name in (
        "unit.h",
        "interfaces.h",
        "visibility.h",
        "prefix.h",
        "component.h",
        *(each for each in sources if each.startswith("fmi")),
    ):
        (tmp_path / name).write_text(sources[name])
    compiled(tmp_path, "-c", f"fmi{fmi}.c")
