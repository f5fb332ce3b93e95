"""Twenty parameters of the excavator from a log of its work cycle of 20 s: processor time and errors.

The log is made by rodas5p with a tolerance of 1e-9. It has the four angles, all cylinder pressures and the torques of
pump and slew motor, with noise of sensors. Masses, friction, leakage, flows of valves and sizes of cylinders start 20 %
off. The fit makes equal steps of 2 ms. Processor time is that of the fit with all that it compiles.

Run as `python benchmarks/fit_excavator.py [--quick]`.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import mbsfmu

PARAMETERS = (
    *("boom.mass", "stick.mass", "bucket.mass", "boom.centre.x", "stick.centre.x", "house.inertia_yy"),
    *("oil.bulk_modulus", "pump.leakage", "bleed.orifice_diameter"),
    *(f"{name}_section.rated_flow" for name in ("boom", "stick", "bucket")),
    *(f"{name}_cylinder.viscous_friction" for name in ("boom", "stick", "bucket")),
    *(f"{name}_cylinder.piston_diameter" for name in ("boom", "stick", "bucket")),
    "slew_motor.displacement",
    "supply.volume",
)
NOISE = {"rad": 2e-4, "Pa": 5e4, "N.m": 1.0}
"""Standard deviations: of encoders, of sensors of 0.1 % of 500 bar, of a torque sensor."""
OFF = 0.2
STEP = 2e-3
"""In s: half as long would take twice the time, and change less than the noise."""


def processor_time() -> float:
    """Return the processor time of this process and of compilers that it ran, in s."""
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(stop: float, names: tuple[str, ...]) -> None:
    """Print how long it takes, and how far off what was found is."""
    model = mbsfmu.models.built_in("excavator")
    simulation = model.simulation(solver="rodas5p")
    truth = {each.name: each.start for each in simulation.variables if each.name in names}
    missing = [each for each in names if each not in truth]
    assert not missing, missing
    outputs = [
        each
        for each in simulation.variables
        if each.name.rpartition(".")[2] in ("angle", "pressure_piston", "pressure_rod", "torque")
        and each.causality.value == "output"
        and each.name.partition(".")[0] not in ("rocker", "link")
    ]
    run = simulation.run(stop, output_step=0.02)
    random = np.random.default_rng(0)
    log = {"time": run.time}
    log |= {each.name: run[each.name] + NOISE[each.unit] * random.standard_normal(len(run.time)) for each in outputs}
    started = model.with_values({name: truth[name] * (1.0 + OFF * (-1) ** place) for place, name in enumerate(names)})
    # The inertia about the vertical is at most the sum of the two others, 1.318 of the true one.
    most = {"house.inertia_yy": 1.3}
    free = {name: (0.5 * truth[name], most.get(name, 1.5) * truth[name]) for name in names}
    begin, clock = processor_time(), time.perf_counter()
    found = started.fit(log, free, step=STEP)
    passed = processor_time() - begin
    print(
        f"{len(names)} parameters, {len(outputs)} signals of {len(run.time)} samples, {found.runs} runs: "
        f"{passed:.1f} s of processor time, {time.perf_counter() - clock:.1f} s by the clock"
    )
    print("| parameter | off at first | off at the end | half of the 95 % interval |\n|---|---|---|---|")
    for name, value, least, most in zip(found.names, found.values, found.lower, found.upper, strict=True):
        half = 50.0 * (most - least) / abs(truth[name])
        off = 100.0 * abs(value / truth[name] - 1.0)
        print(f"| `{name}` | {100.0 * OFF:g} % | {off:.2g} % | {half:.2g} % |")
    for sentence in found.sentences:
        print("-", sentence)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    main(1.0 if quick else 20.0, PARAMETERS[:2] if quick else PARAMETERS)
