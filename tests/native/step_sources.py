"""Steps from their one source in C, alone: with equations of a C file beside the tests."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from runtime_sources import INCLUDES

from mbsfmu.native import shared
from mbsfmu.native.c_sources import lane_width_source, step_files
from mbsfmu.tracing.workspace import Floats

HERE = Path(__file__).parent
Solve = Callable[[Floats], tuple[Floats, str]]
"""What a machine finds, or each of a group, and why it fails, from its numbers."""


def compiled_steps(
    folder: Path,
    name: str,
    count: int,
    lanes: int = 0,
    *,
    files: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> Solve:
    """Return the function `solve` of a C file, which finds so many numbers; of one machine where there are no lanes."""
    constants = [line for line in shared.definitions() if "(EACH)" not in line]
    folder.mkdir(exist_ok=True)
    texts = {**step_files(), **(files or {}), "constants.h": "\n".join([*constants, ""])}
    texts |= {"runtime.h": "#define ARGUMENTS(EACH) EACH(x, 1)\n#define STATE_ARRAYS(EACH)\n"}
    for file, text in {**texts, **lane_width_source(max(lanes, 1), vector_mathematics=False)}.items():
        (folder / file).write_text(text)
    language = "-std=gnu99" if lanes else "-std=c99"
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unused-function", "-Wno-psabi"]
    command = ["gcc", language, "-O1", "-ffp-contract=off", "-fPIC", "-shared", f"-I{folder}", *INCLUDES]
    command += [*strict, *options, *([f"-DLANES={lanes}"] if lanes else [])]
    subprocess.run([*command, str(HERE / name), "-o", str(folder / "steps.so"), "-lm"], check=True)
    library, double = ctypes.CDLL(str(folder / "steps.so")), ctypes.POINTER(ctypes.c_double)

    def solved(data: Floats) -> tuple[Floats, str]:
        found, reason = np.zeros((max(lanes, 1), count)), ctypes.create_string_buffer(512)
        numbers = np.ascontiguousarray(data)
        library.solve(numbers.ctypes.data_as(double), found.ctypes.data_as(double), reason)
        return (found if lanes else found[0]), reason.value.decode()

    return solved
