"""Processor time from an edit of a model to its result, and whether anything is compiled for it.

python benchmarks/edit_loop.py [--quick]

Each run is a process of its own, `mbsfmu simulate model.json --stop 0.1`; its time and that of the compilers that it
starts count. All runs of a model share a folder for what is kept, which is empty at first. Python keeps its bytecode,
as that of an installed package is kept: where it must not (`PYTHONDONTWRITEBYTECODE`), each process compiles some 450
modules.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mbsfmu

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from excavator import excavator
from robot_arm import robot_arm

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
TURNS = 1 if QUICK else 2
MODELS: dict[str, Callable[[], mbsfmu.CoupledModel]] = {"four-bar": mbsfmu.models.four_bar}
if not QUICK:
    MODELS |= {"crane": lambda: mbsfmu.models.built_in("crane"), "URDF arm": robot_arm, "excavator": excavator}
NUMBERS = {
    "mass": ("mass",),
    "length": ("length", "stroke"),
    "gain": ("proportional", "orifice_diameter"),
    "start": ("angle",),
}
"""Fields of an edit; the first part that has one of them gets another number."""


def parts_of(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the systems of a model, and the bodies, joints and components in them."""
    for system in data["systems"].values():
        yield system
        for kind in ("bodies", "joints", "components"):
            yield from system.get(kind, ())


def changed(data: dict[str, Any], number: str, share: float) -> dict[str, Any] | None:
    """Return the model with another number; None without any."""
    edited: dict[str, Any] = json.loads(json.dumps(data))
    for field in NUMBERS[number]:
        for part in parts_of(edited):
            if part.get(field) is not None and not part.get("cut"):
                part[field] = share * part[field] + (share - 1.0)
                return edited
    return None


def throttled(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model with one more throttle, beside its first one; None without any."""
    edited: dict[str, Any] = json.loads(json.dumps(data))
    for system in edited["systems"].values():
        for component in system.get("components", ()):
            if component["type"] == "throttle":
                system["components"].append({**component, "name": "edit", "orifice_diameter": 1e-4})
                return edited
    return None


def spent(data: dict[str, Any], folder: Path, bytecode: str) -> float:
    """Return the processor seconds of a run, with what is kept in a folder, and Python's bytecode in another."""
    (folder / "model.json").write_text(json.dumps(data), encoding="utf-8")
    call = [sys.executable, "-m", "mbsfmu", "--quiet", "simulate", str(folder / "model.json"), "--stop", "0.1"]
    environment = {**os.environ, "MBSFMU_CACHE": str(folder / "cache"), "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = os.times()
    subprocess.run(call, env=environment, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def libraries(folder: Path) -> int:
    """Return how many compiled libraries are kept."""
    return sum(file.suffix in (".so", ".dll", ".dylib") for file in (folder / "cache").rglob("*"))


def main() -> None:
    """Print a row for each model and edit."""
    print("| model | run | processor time | libraries compiled |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as bytecode:
        with tempfile.TemporaryDirectory() as made:
            spent(mbsfmu.models.four_bar().to_dict(), Path(made), bytecode)  # which keeps the bytecode
        for name, make in MODELS.items():
            with tempfile.TemporaryDirectory() as made:
                measure(name, make().to_dict(), Path(made), bytecode)


def measure(name: str, data: dict[str, Any], folder: Path, bytecode: str) -> None:
    """Print the rows of a model."""
    runs = [("first", data), ("second", data), ("third", data)]
    for number in NUMBERS:
        values = [changed(data, number, 1.0 + 1e-3 * turn) for turn in range(1, TURNS + 1)]
        runs += [(f"{number} changed, value {turn}", each) for turn, each in enumerate(values, start=1) if each]
    runs.append(("nothing changed", data))
    if (edited := throttled(data)) is not None:
        runs += [(f"throttle added, run {turn}", edited) for turn in (1, 2, 3)]
    for what, each in runs:
        before = libraries(folder) if (folder / "cache").exists() else 0
        seconds = spent(each, folder, bytecode)
        print(f"| {name} | {what} | {seconds:.1f} s | {libraries(folder) - before} |", flush=True)


if __name__ == "__main__":
    main()
