"""What rules of integration do: order, damping and cost, as docs/studies/rules.md tells them.

python benchmarks/rules.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel, LinearSignal
from mbsfmu.rules import PositionValues, Rule, Step, find_rule

RULES = ("trapezoidal", "generalized-alpha", "generalized-alpha:spectral_radius=0.0", "bdf2")
STOP = 0.3
VARIABLE = "rocker.angle"


def machine() -> CoupledModel:
    """Return the four-bar with its circuit and a command that has no jump inside."""
    ramp = LinearSignal(times=(0.0, STOP), values=(2.0, 3.0))
    return CoupledModel.from_dict(
        {**mbsfmu.models.four_bar().to_dict(), "signals": {"circuit.valve.command": ramp.to_dict()}}
    )


def factor(rule: Rule, frequency: float) -> float:
    """Return what a step of 1 s multiplies the amplitude of z̈ = −ω² z by, steps being equal."""
    step = Step(np.ones(1), np.ones(1))

    def after(column: np.ndarray) -> np.ndarray:
        position, velocity, acceleration, *history = column[:, np.newaxis]
        begin = PositionValues(position, velocity, acceleration, history)
        at_zero, at_one = (rule.motion(np.array([end]), begin, step)[1] for end in (0.0, 1.0))
        end = at_zero / (-(frequency**2) - (at_one - at_zero))
        done = PositionValues(end, rule.motion(end, begin, step)[0], -(frequency**2) * end)
        return np.concatenate([*done[:3], *rule.motion_history(done, begin, step)])

    size = 3 + sum(rule.remembered_motion)
    matrix = np.stack([after(column) for column in np.eye(size)], axis=1)
    return float(np.max(np.abs(np.linalg.eigvals(matrix))))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two steps instead of four")
    steps = (4e-3, 2e-3) if parser.parse_args().quick else (4e-3, 2e-3, 1e-3, 5e-4)
    model = machine()
    tight = {"solver": "radau", "step": STOP, "relative_tolerance": 1e-10, "absolute_tolerance": 1e-12}
    exact = model.simulation(**tight).run(STOP)[VARIABLE][-1]
    print("| solver | order | error at 2 ms in rad | Newton iterations | factor at ωh = 0.1 | 1 | ∞ |")
    print("|---|---|---|---|---|---|---|")
    for name in RULES:
        rule = find_rule(name)
        assert rule is not None
        runs = [model.simulation(solver=name, step=step).run(STOP) for step in steps]
        errors = [abs(run[VARIABLE][-1] - exact) for run in runs]
        order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
        factors = " | ".join(f"{factor(rule, frequency):.5f}" for frequency in (0.1, 1.0, 1e7))
        print(f"| `{name}` | {order:.2f} | {errors[1]:.1e} | {runs[1].statistics.newton_mean:.2f} | {factors} |")


if __name__ == "__main__":
    main()
