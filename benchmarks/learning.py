"""Steps a second of learning environments, beside single simulations; docs/guides/learning.md has the table.

python benchmarks/learning.py [--quick]

Actions are drawn at random for each machine and interval, and drawing them counts. A single simulation of the scalar
loop sets the same number of inputs, steps, and reads the same outputs. Times are processor times, on one thread; of
turns the median is told. A step of the environment is one interval of one machine.
"""

from __future__ import annotations

import argparse
import logging
import time

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel

STEP = {"excavator": 5e-3, "four-bar": 1e-3}
INTERVAL = {"excavator": 0.1, "four-bar": 0.02}
"""Internal step, and how long an action is held, in s."""
ACTIONS = {
    "excavator": [f"{each}_section.command" for each in ("slew", "boom", "stick", "bucket")],
    "four-bar": {"valve.command": (-10.0, 10.0)},
}
VARIED = {"excavator": "bucket.mass", "four-bar": "boom.mass"}


def model_of(name: str) -> CoupledModel:
    """Return a machine that is moved by levers."""
    model = mbsfmu.models.built_in(name)
    if name != "excavator":
        return model
    return CoupledModel(
        name="excavator-by-joystick",
        systems={each: model.systems[each] for each in ("machine", "circuit")},
        connections=[each for each in model.connections if "controller" not in "".join(each)],
    )


def environment_seconds(name: str, machines: int, steps: int, turns: int) -> float:
    """Return the processor time of a machine's step in s."""
    model = model_of(name)
    value = model.simulation(step=STEP[name], solver="trapezoidal", compiled=False).get(VARIED[name])
    ensemble = model.ensemble({VARIED[name]: value * np.linspace(0.9, 1.1, machines)}, step=STEP[name])
    env = ensemble.vector_env(
        ACTIONS[name],
        ["*.angle", "*.angular_velocity"],
        lambda transition: -np.abs(transition.after["boom.angle"]),
        interval=INTERVAL[name],
        time_limit=INTERVAL[name] * steps,
        workers=1,
    )
    env.action_space.seed(1)
    spent = []
    for _ in range(turns):
        env.reset()
        begin = time.process_time()
        for _ in range(steps):
            env.step(env.action_space.sample())
        spent.append((time.process_time() - begin) / (steps * machines))
    env.close()
    return float(np.median(spent))


def single_seconds(name: str, steps: int, turns: int) -> float:
    """Return the same of a single simulation."""
    simulation = model_of(name).simulation(step=STEP[name], solver="trapezoidal")
    actions, spent = list(ACTIONS[name]), []
    outputs = [each.name for each in simulation.variables if each.name.endswith((".angle", ".angular_velocity"))]
    while simulation.run(INTERVAL[name] * steps).interim_seconds > 0.0:
        time.sleep(1.0)  # what is large is optimized meanwhile
    for _ in range(turns):
        random = np.random.default_rng(1)
        simulation.reset()
        simulation.initialize()
        begin = time.process_time()
        for number in range(steps):
            for action, value in zip(actions, random.uniform(-1.0, 1.0, len(actions)), strict=True):
                simulation.set(action, float(value) * (10.0 if name == "four-bar" else 1.0))
            simulation.step(number * INTERVAL[name], INTERVAL[name])
            for output in outputs:
                simulation.get(output)
        spent.append((time.process_time() - begin) / steps)
    return float(np.median(spent))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the four-bar alone, few turns")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    names, sizes, steps, turns = (["four-bar"], [16], 20, 1) if arguments.quick else (list(STEP), [16, 64, 256], 50, 5)
    print("| machine | machines | environment steps a second | single simulation | ratio |")
    print("|---|---|---|---|---|")
    for name in names:
        single = single_seconds(name, steps, turns)
        for machines in sizes:
            each = environment_seconds(name, machines, steps, turns)
            print(f"| {name} | {machines} | {1.0 / each:,.0f} | {1.0 / single:,.0f} | {single / each:.1f} |")


if __name__ == "__main__":
    main()
