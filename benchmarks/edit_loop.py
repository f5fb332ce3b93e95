"""Processor time from an edit of a model to its result, and whether anything is compiled for it.

python benchmarks/edit_loop.py [--quick]

Each run is a process of its own, `mbsfmu simulate model.json --stop 0.1`; its time and that of the compilers that it
starts count. All runs of a model share a folder for what is kept, which is empty at first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mbsfmu

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from excavator import excavator

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
TURNS = 1 if QUICK else 3
MODELS: dict[str, Callable[[], mbsfmu.CoupledModel]] = {"four-bar": mbsfmu.models.four_bar}
if not QUICK:
    MODELS |= {"crane": lambda: mbsfmu.models.built_in("crane"), "excavator": excavator}


def heavier(data: dict[str, Any], share: float) -> dict[str, Any]:
    """Return the model with another mass of its first body that has one."""
    edited: dict[str, Any] = json.loads(json.dumps(data))
    bodies = (body for system in edited["systems"].values() for body in system.get("bodies", ()))
    body = next(body for body in bodies if body.get("mass"))
    body["mass"] *= share
    return edited


def throttled(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model with one more throttle, beside its first one; None without any."""
    edited: dict[str, Any] = json.loads(json.dumps(data))
    for system in edited["systems"].values():
        for component in system.get("components", ()):
            if component["type"] == "throttle":
                system["components"].append({**component, "name": "edit", "orifice_diameter": 1e-4})
                return edited
    return None


def spent(data: dict[str, Any], folder: Path) -> float:
    """Return the processor seconds of a run, with what is kept in a folder."""
    (folder / "model.json").write_text(json.dumps(data), encoding="utf-8")
    call = [sys.executable, "-m", "mbsfmu", "--quiet", "simulate", str(folder / "model.json"), "--stop", "0.1"]
    environment = {**os.environ, "MBSFMU_CACHE": str(folder / "cache")}
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
    for name, make in MODELS.items():
        data = make().to_dict()
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            runs = [("first", data), ("second", data), ("third", data)]
            runs += [(f"mass changed, run {turn}", heavier(data, 1.01)) for turn in (1, 2)]
            runs += [("mass changed once more", heavier(data, 1.02))] * TURNS
            if (edited := throttled(data)) is not None:
                runs += [(f"throttle added, run {turn}", edited) for turn in (1, 2, 3)]
            for what, each in runs:
                before = libraries(folder) if (folder / "cache").exists() else 0
                seconds = spent(each, folder)
                print(f"| {name} | {what} | {seconds:.1f} s | {libraries(folder) - before} |", flush=True)


if __name__ == "__main__":
    main()
