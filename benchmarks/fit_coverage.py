"""How often 95 % intervals of a fit by defaults cover the truth, by seeds of the noise.

The four-bar from noisy pressures and its angle, and four small machines: an oscillator of 50 Hz, a mass on an oil
column, a mass that meets an end stop, and a slow one. Logs are runs to a tolerance of 1e-11 with Gaussian noise; the
fit is not told how large that is.

Run as `python benchmarks/fit_coverage.py [SEEDS]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import mbsfmu
from hydraulics import Circuit, Cylinder, Hose, Oil
from mbsfmu import Actuator, CoupledModel, JointSpringDamper, JointStop, Mechanism, Prismatic, RigidBody


@dataclass(frozen=True)
class Case:
    """A machine with its true parameters, the bounds of the fit, and the noise of what is measured."""

    name: str
    model: CoupledModel
    truth: dict[str, float]
    free: dict[str, tuple[float, float]]
    noise: dict[str, float]
    times: np.ndarray


def on_a_rail(mass: float, start: float, *forces: object, gravity: float = 0.0) -> Mechanism:
    """Return a mass on a straight rail along z."""
    return Mechanism(
        gravity=(0.0, 0.0, -gravity),
        ground={"O": (0.0, 0.0, 0.0), "foot": (0.0, 0.0, -0.5)},
        bodies=[RigidBody(name="b", mass=mass, inertia=(1.0, 1.0, 1.0))],
        joints=[Prismatic(name="s", parent="ground.O", child="b.origin", axis=(0.0, 0.0, 1.0), displacement=start)],
        forces=list(forces),
    )


def cases() -> Iterator[Case]:
    """Yield the machines."""
    yield Case(
        "four-bar",
        mbsfmu.models.built_in("four-bar"),
        {"valve.flow_coefficient": 2.1380899352993952e-08, "boom.mass": 225.0, "cylinder.viscous_friction": 196000.0},
        {"valve.flow_coefficient": (1e-8, 6e-8), "boom.mass": (100.0, 400.0), "cylinder.viscous_friction": (5e4, 4e5)},
        {"boom.angle": 1e-4, "cylinder.pressure_piston": 2e4, "cylinder.pressure_rod": 2e4},
        np.linspace(0.0, 2.0, 101),
    )
    spring = JointSpringDamper(name="sp", joint="s", stiffness=2e5, damping=40.0)
    yield Case(
        "oscillator, 50 Hz",
        CoupledModel(name="fast", systems={"m": on_a_rail(2.0, 0.01, spring)}),
        {"sp.stiffness": 2e5, "sp.damping": 40.0},
        {"sp.stiffness": (1e5, 4e5), "sp.damping": (1.0, 200.0)},
        {"b.displacement": 1e-5},
        np.arange(0.0, 0.2, 5e-4),
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.4e9, density=860.0, air_content=0.0),
        components=[
            Cylinder(
                name="c", piston="A", rod="B", piston_diameter=0.05, rod_diameter=0.03, stroke=0.5,
                retracted_length=0.3, viscous_friction=2000.0, bulk_modulus=2e11,
            ),
            Hose(name="h", node="A", volume=2e-4, bulk_modulus=1e9),
            Hose(name="back", node="B", volume=2e-2, bulk_modulus=1e9),
        ],
        initial_pressures={"A": 8e5, "B": 1e5},
    )  # fmt: skip
    lift = Actuator(name="c", start="ground.foot", end="b.origin")
    yield Case(
        "oil column, 53 Hz",
        CoupledModel(
            name="oil",
            systems={"m": on_a_rail(120.0, 0.0, lift, gravity=9.81), "c": circuit},
            connections=[("c.c.force", "m.c.force"), ("m.c.length", "c.c.length"), ("m.c.velocity", "c.c.velocity")],
        ),
        {"b.mass": 120.0, "c.viscous_friction": 2000.0},
        {"b.mass": (60.0, 240.0), "c.viscous_friction": (200.0, 8000.0)},
        {"c.pressure_piston": 2e4},
        np.arange(0.0, 0.2, 5e-4),
    )
    stop = JointStop(name="st", joint="s", lower=0.0, stiffness=2e5, damping=100.0)
    yield Case(
        "through an end stop",
        CoupledModel(name="stop", systems={"m": on_a_rail(2.0, 0.2, stop, gravity=9.81)}),
        {"b.displacement_start": 0.2, "st.stiffness": 2e5},
        {"b.displacement_start": (0.15, 0.25), "st.stiffness": (5e4, 8e5)},
        {"b.displacement": 1e-4},
        np.arange(0.0, 0.35, 1e-3),
    )
    soft = JointSpringDamper(name="sp", joint="s", stiffness=20.0, damping=60.0)
    yield Case(
        "slow, 3 s",
        CoupledModel(name="slow", systems={"m": on_a_rail(20.0, 0.1, soft)}),
        {"sp.stiffness": 20.0, "sp.damping": 60.0},
        {"sp.stiffness": (5.0, 80.0), "sp.damping": (10.0, 300.0)},
        {"b.displacement": 1e-4},
        np.linspace(0.0, 10.0, 201),
    )


def covered(case: Case, seeds: int) -> tuple[np.ndarray, float, list[str]]:
    """Return fractions of seeds in which intervals cover the truth, seconds a fit, and distinct sentences."""
    model = case.model.with_values(case.truth)
    run = model.simulation(relative_tolerance=1e-11).run(
        float(case.times[-1]), output_step=float(np.diff(case.times)[0])
    )
    begin, found, sentences = time.perf_counter(), [], list[str]()
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        log = {"time": run.time}
        log |= {name: run[name] + size * random.standard_normal(len(run.time)) for name, size in case.noise.items()}
        result = model.fit(log, case.free)
        truth = np.array([next(v for n, v in case.truth.items() if name.endswith(n)) for name in result.names])
        found.append((result.lower < truth) & (truth < result.upper))
        sentences += result.sentences
    return np.mean(found, axis=0), (time.perf_counter() - begin) / seeds, sorted(set(sentences))


def main(seeds: int) -> None:
    """Print the fraction of seeds in which each interval covers the truth."""
    for case in list(cases())[int(sys.argv[2]) if len(sys.argv) > 2 else 0 :]:
        fractions, seconds, sentences = covered(case, seeds)
        names = ", ".join(f"{name} {fraction:.1%}" for name, fraction in zip(case.free, fractions, strict=True))
        print(f"{case.name}: {names} of {seeds} intervals cover the truth; {seconds:.2f} s per fit", flush=True)
        for sentence in sentences[:3]:
            print(f"    {sentence}")


if __name__ == "__main__":
    main(3 if "--quick" in sys.argv else int(sys.argv[1]) if len(sys.argv) > 1 else 200)
