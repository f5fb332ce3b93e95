"""The host in C that times units: compiled for this machine, and called."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import fmpy

import mbsfmu

HERE = Path(__file__).parent


def compile_host(folder: Path) -> Path:
    """Compile the host in C."""
    host = folder / "speed_host"
    include = Path(mbsfmu.__file__).parent / "native" / "runtime" / "fmi2"
    command = ["gcc", "-std=c99", "-O2", f"-I{include}", str(HERE / "speed_host.c"), "-o", str(host), "-ldl"]
    subprocess.run(command, check=True)
    return host


def host_command(host: Path, unit: Path, folder: Path, step: float, steps: int, runs: int) -> list[str]:
    """Unpack a unit into a folder, and return the command that times some runs of steps of a size in s."""
    with zipfile.ZipFile(unit) as archive:
        archive.extractall(folder)
    (library,) = (folder / "binaries" / fmpy.platform).iterdir()
    guid = str(fmpy.read_model_description(str(unit)).guid)
    return [str(host), str(library), guid, repr(step), str(steps), str(runs)]
