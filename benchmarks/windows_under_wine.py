"""The win64 library under Wine against the linux64 library, in the same C host; what a step costs under the master.

Needs the extra 'cross' and Wine (Debian: apt install wine64). Run: python benchmarks/windows_under_wine.py [--quick]
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import fmpy
import numpy as np

import mbsfmu
from mbsfmu.compiling.compiler import PLATFORMS

HOST = Path(__file__).parents[1] / "tests" / "native" / "host.c"
QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STEPS, VARIABLES = 0.01, 10 if QUICK else 1000, 12
CASES = (("four-bar",), ("penalty",)) if QUICK else (("four-bar", "quick-return"), ("double-step", "penalty"))


def table(folder: Path, guid: str, platform: str) -> np.ndarray:
    """Compile the host for a platform, run it with the platform's library, return what it prints."""
    windows = platform == "win64"
    host = folder / ("host.exe" if windows else "host")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[platform].target, "-O1"]
    include = f"-I{folder / 'sources'}"
    subprocess.run([*zig, str(HOST), include, "-o", str(host), *([] if windows else ["-ldl"])], check=True)
    (library,) = (folder / "binaries" / platform).glob(f"*{PLATFORMS[platform].suffix}")
    wine = shutil.which("wine64") or shutil.which("wine") or "wine64"
    before = [wine] if windows else []
    arguments = [str(library), guid, repr(STEP), str(STEPS), str(VARIABLES)]
    done = subprocess.run([*before, str(host), *arguments], check=True, capture_output=True, text=True)
    return np.loadtxt(io.StringIO(done.stdout), delimiter=",")


def coupled_steps() -> dict[str, float]:
    """Return the medians of times of a step in s, of the four-bar's two FMUs by each algorithm on both platforms."""
    with tempfile.TemporaryDirectory() as temporary:
        packages = {}
        for platform in ("linux64", "win64"):
            options = {"layout": "separate", "formulation": "double-step", "platforms": (platform,)}
            packages[platform] = mbsfmu.export(mbsfmu.models.four_bar(), Path(temporary, platform), **options)[-1]
        times: dict[str, list[float]] = {}
        for _ in range(2 if QUICK else 9):
            for algorithm in ("jacobi", "newton"):
                for platform, package in packages.items():
                    run = mbsfmu.cosimulate(package, algorithm=algorithm, step=1e-3, stop=0.1 if QUICK else 3.0)
                    times.setdefault(f"{algorithm} {platform}", []).append(run.wall_seconds / (len(run.time) - 1))
    return {case: float(np.median(each)) for case, each in times.items()}


def main() -> None:
    """Print the largest difference relative to each column's range, and the times of coupled steps."""
    print("| model | formulation | largest relative difference |\n| --- | --- | --- |")
    for name in CASES[0]:
        for formulation in CASES[1]:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                (unit,) = mbsfmu.export(
                    mbsfmu.models.built_in(name),
                    folder,
                    layout="monolithic",
                    formulation=formulation,
                    platforms=("linux64", "win64"),
                    sources=True,
                )
                with zipfile.ZipFile(unit) as archive:
                    archive.extractall(folder)
                guid = str(fmpy.read_model_description(str(unit)).guid)
                linux, windows = (table(folder, guid, platform) for platform in ("linux64", "win64"))
            difference = np.max(np.abs(linux - windows) / np.maximum(np.ptp(linux, axis=0), 1e-12))
            print(f"| {name} | {formulation} | {difference:.2g} |")
    print("\n| a coupled step of the four-bar's FMUs | Linux [µs] | under Wine [µs] |\n| --- | --- | --- |")
    seconds = coupled_steps()
    for algorithm in ("jacobi", "newton"):
        linux, windows = (1e6 * seconds[f"{algorithm} {platform}"] for platform in ("linux64", "win64"))
        print(f"| {algorithm} | {linux:.1f} | {windows:.1f} |")


if __name__ == "__main__":
    main()
