"""Random machines whose rest is known by hand: of how many it is found from guesses that are far from it.

Run: python benchmarks/rests.py [COUNT OF EACH KIND | --quick]
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from math import pi, sqrt
from pathlib import Path

import numpy as np

from mbsfmu import CoupledModel, Equilibrium, JointStop, Mechanism, Prismatic, RigidBody, SimulationError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from rest_machines import (
    BAR,
    BORE,
    GRAVITY,
    OIL,
    chain,
    controlled,
    crane,
    pid,
    plungers,
    thrust_of_crane,
    torques,
    turned_spring,
)

Random = np.random.Generator
Case = tuple[CoupledModel, Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""A model, what is held, guesses of what is to be found, and what is known of its rest."""
QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
COUNT = 1 if QUICK else int(sys.argv[1]) if len(sys.argv) > 1 else 20
AIR = 101325.0


def arm(random: Random) -> Case:
    """Return beams on drives with limited controllers; set points by the moments of the weights further out."""
    count = int(random.integers(1, 4))
    lengths, masses = random.uniform(0.3, 2.0, count), 10.0 ** random.uniform(0.0, 3.0, count)
    pose, away = random.uniform(-pi, pi, count), random.choice([-1.0, 1.0], count) * random.uniform(0.3, 1.0, count)
    needed = torques(pose, lengths, masses)
    gains = np.max(np.abs(needed)) * 10.0 ** random.uniform(0.0, 1.5, count)
    limits = 1.05 * np.abs(needed) + 1e-3 * gains
    controllers = [
        pid(limit, proportional=gain, integral=0.0, derivative=0.0) for limit, gain in zip(limits, gains, strict=True)
    ]
    model = controlled(chain(pose + away, lengths, masses), controllers)
    known = {f"c{k}.setpoint": pose[k] + needed[k] / gains[k] for k in range(count)}
    return model, {f"machine.b{k}.angle": pose[k] for k in range(count)}, dict.fromkeys(known, 0.0), known


def boom(random: Random) -> Case:
    """Return a boom on a cylinder that leaks, behind a spool with overlap; a controller in any unit leaves no error."""
    begin, angle, unit = random.uniform(0.2, 1.0), random.uniform(0.2, 1.0), 10.0 ** random.uniform(-3.0, 3.0)
    mass, overlap = random.uniform(50.0, 400.0), random.uniform(0.02, 0.1)
    leakage = 10.0 ** random.uniform(-13.0, -11.5)
    model = crane(begin, mass=mass, overlap=overlap, leakage=leakage, unit=unit)
    known = {"pid.setpoint": angle * unit, "circuit.jack.force": thrust_of_crane(angle, mass)}
    return model, {"machine.boom.angle": angle}, {"pid.setpoint": 0.0}, known


def feeding(random: Random) -> Case:
    """Return plungers that leak, some behind counterbalance valves; commands behind overlaps feed the leaks."""
    each = range(int(random.integers(1, 4)))
    masses, overlaps = random.uniform(500.0, 2000.0, len(each)), random.uniform(0.02, 0.1, len(each))
    held = bool(random.integers(2))
    holes = random.uniform(0.3e-3, 1.5e-3, len(each))
    pressures = masses * GRAVITY / (pi / 4.0 * BORE**2) + AIR
    known = {f"circuit.a{k}.pressure": pressures[k] for k in each}
    if not held:
        for k in each:
            flow = 0.7 * pi / 4.0 * holes[k] ** 2 * sqrt(2.0 * (pressures[k] - BAR) / OIL.density)
            opening = flow / 1e-3 / sqrt((60.0 * BAR - pressures[k]) / (10.0 * BAR))
            known[f"circuit.valve{k}.command"] = overlaps[k] + (1.0 - overlaps[k]) * opening
    model = plungers(masses, holes, overlaps, 50.0 * BAR if held else None)
    guess = {f"circuit.valve{k}.command": float(random.uniform(-1.0, 1.0)) for k in each}
    return model, {f"machine.load{k}.displacement": 1.4 for k in each}, guess, known


def blocks(random: Random) -> Case:
    """Return a spring turned by what is within limits and beyond a dead zone: k φ = g (u − start of the zone)."""
    zone, stiffness, gain = random.uniform(0.05, 0.5), random.uniform(10.0, 100.0), random.uniform(50.0, 500.0)
    angle = random.uniform(0.05, 0.9) * gain * (1.0 - zone) / stiffness
    known = {"limit.input": zone + stiffness * angle / gain}
    guess = {"limit.input": float(random.uniform(-3.0, 3.0))}
    return turned_spring(zone, stiffness, gain), {"machine.wheel.angle": angle}, guess, known


def stop(random: Random) -> Case:
    """Return a mass that falls on a stop of known stiffness, with nothing held."""
    mass, stiffness = 10.0 ** random.uniform(0.0, 4.0), 10.0 ** random.uniform(5.0, 8.0)
    mechanism = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="load", mass=mass, inertia=(1.0, 1.0, 1.0)),),
        joints=(
            Prismatic(
                name="guide",
                parent="ground.foot",
                child="load.origin",
                axis=(0.0, 1.0, 0.0),
                displacement=random.uniform(0.3, 1.0),
            ),
        ),
        forces=(JointStop(name="floor", joint="guide", lower=0.0, stiffness=stiffness, damping=0.5),),
    )
    model = CoupledModel(name="stop", systems={"machine": mechanism}, connections=[])
    return model, {}, {}, {"machine.load.displacement": -mass * GRAVITY / stiffness}


def is_right(found: Equilibrium[CoupledModel], known: Mapping[str, float]) -> bool:
    """Tell whether what was found is what is known by hand."""
    return all(abs(found[name] - value) <= 2e-3 * abs(value) + 1e-7 for name, value in known.items())


def tried(make: Callable[[Random], Case], seed: int) -> str:
    """Return what comes of a machine: right, another one, or none."""
    model, held, asked, known = make(np.random.default_rng(seed))
    try:
        found = model.equilibrium(held, asked)
    except SimulationError:
        return "none"
    return "right" if is_right(found, known) else "another"


def main() -> None:
    """Print what comes of each kind."""
    logging.disable(logging.WARNING)
    print(f"{'kind':10} {'machines':>8} {'right':>6} {'another':>8} {'none':>5} {'s each':>7}")
    for make in (arm, boom, feeding, blocks, stop):
        begin = time.perf_counter()
        came = [tried(make, seed) for seed in range(COUNT)]
        counts = [came.count(each) for each in ("right", "another", "none")]
        spent = (time.perf_counter() - begin) / COUNT
        print(f"{make.__name__:10} {COUNT:8} {counts[0]:6} {counts[1]:8} {counts[2]:5} {spent:7.2f}", flush=True)


if __name__ == "__main__":
    main()
