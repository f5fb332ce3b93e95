"""The papers' figures of motion: the tip and the energies of the chain of 16 links, and point K of the first loop.

Run: python benchmarks/divide_and_conquer/motion.py [--quick]

10 s, Dormand-Prince, both tolerances 1e-6. The chain's motion is chaotic: it is held against runs at 1e-12. The loop is
symmetric and so is its motion: it is held against the half of it, two links and a guided point, in equations of its own
that SciPy integrates at 1e-12.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from figures import DOCS, STYLES
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu.simulation.run_result import Result

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS, new_figure, svg

Floats = NDArray[np.float64]

TIGHT: dict[str, Any] = {"solver": "dop853", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
GRAVITY = 9.81
STEP = 0.025
STOP = 1.0 if "--quick" in sys.argv else 10.0  # a taste of it in seconds, which the tests take
SETTINGS: dict[str, dict[str, Any]] = {
    "dca": {"formulation": "dca", "stabilisation": 0.0},
    "hdca, as published": {"formulation": "hdca", "stabilisation": 0.0, "restart_momenta": False},
    "hdca": {"formulation": "hdca"},
}


def run(case: str, **options: Any) -> Result:
    """Run a case with output of 25 ms."""
    return mbsfmu.models.built_in(case).simulation(step=STEP, compiled=False, **options).run(STOP)


def end_of(result: Result, link: int) -> Floats:
    """Return x, y in m and their rates in m/s of the end of a link of 1 m, counted from one; shape (4, times)."""
    names = [f"link_{index}" for index in range(1, link + 1)]
    angles = np.cumsum([result[f"{name}.angle"] for name in names], axis=0)
    rates = np.cumsum([result[f"{name}.angular_velocity"] for name in names], axis=0)
    x, y = np.cos(angles), np.sin(angles)
    return np.array([x.sum(axis=0), y.sum(axis=0), -(rates * y).sum(axis=0), (rates * x).sum(axis=0)])


def guided_half(times: Floats) -> Floats:
    """Return height and vertical velocity of K, the end of the second of two links, guided on the vertical axis.

    M θ̈ − Q + λ ∇Φ = 0 with Φ = cos θ₁ + cos θ₂ − 1/2, θ being the angles of the links in space.
    """

    def rates(_: float, state: Floats) -> Floats:
        (one, two), speeds = state[:2], state[2:]
        coupling = 0.5 * np.cos(one - two)
        mass = np.array([[1.0 + 0.25 + 1.0, coupling], [coupling, 1.0 + 0.25]])
        turning = 0.5 * np.sin(one - two)
        load = np.array([-turning * speeds[1] ** 2, turning * speeds[0] ** 2])
        load -= GRAVITY * np.array([1.5 * np.cos(one), 0.5 * np.cos(two)])
        slope = -np.sin([one, two])
        saddle = np.block([[mass, slope[:, np.newaxis]], [slope[np.newaxis], np.zeros((1, 1))]])
        bias = np.cos([one, two]) @ speeds**2
        return np.concatenate([speeds, np.linalg.solve(saddle, [*load, bias])[:2]])

    start = [*np.radians([-108.0, -36.0]), 0.0, 0.0]  # of a regular pentagon
    found = solve_ivp(rates, (0.0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12).y
    height = np.sin(found[:2]).sum(axis=0)
    return np.array([height, (np.cos(found[:2]) * found[2:]).sum(axis=0)])


def draw(file: str, time: Floats, panels: Mapping[str, Mapping[str, Floats]], colours: Mapping[str, str]) -> None:
    """Draw panels over time into the documentation, errors as the largest so far on a logarithmic axis.

    Parameters
    ----------
    file
        Name of the file.
    time
        In s.
    panels
        Curves by the panel's label and their own.
    colours
        Of the curves.
    """
    figure, axes = new_figure(len(panels), 1.9 * len(panels))
    for axis, (name, curves) in zip(axes, panels.items(), strict=True):
        error = "error" in name
        for label, values in curves.items():
            style, drawn = STYLES["dca" if label == "dca" else "hdca"], values
            if error:
                drawn = np.maximum.accumulate(np.abs(values))[1:]
                axis.set_yscale("log")
            axis.plot(time[-len(drawn) :], drawn, style, color=colours[label], linewidth=1.1)
        axis.set_ylabel(name)
    for label, colour in colours.items():
        axes[0].plot([], [], STYLES["dca" if label == "dca" else "hdca"], color=colour, label=label)
    axes[0].margins(y=0.3)
    axes[-1].set_xlabel("time [s]")
    (DOCS / file).write_text(svg(figure, axes), encoding="utf-8")


def chain() -> None:
    """Print how long tips agree with the tight run; draw tip and energies."""
    tight = end_of(run("pendulum-16", formulation="hdca", **TIGHT), 16)
    results = {name: run("pendulum-16", solver="rk45", formulation=name) for name in ("dca", "hdca")}
    other = end_of(run("pendulum-16", formulation="dca", **TIGHT), 16)
    print("| chain of 16, tip off by more than 10 mm | from |\n| --- | --- |")
    tips = {name: end_of(result, 16) for name, result in results.items()}
    time = results["hdca"].time
    for name, tip in (*tips.items(), ("dca and hdca at 1e-12", other)):
        off = np.flatnonzero(np.abs(tip[:2] - tight[:2]).max(axis=0) > 0.01)
        print(f"| {name} | {f'{time[off[0]]:.1f} s' if len(off) else 'never'} |", flush=True)
    panels: dict[str, dict[str, Floats]] = {}
    for row, label in enumerate(("x [m]", "y [m]", "x velocity [m/s]", "y velocity [m/s]")):
        panels[label] = {name: tip[row] for name, tip in tips.items()}
    energies = ("kinetic", "potential")
    panels["energy [J]"] = {kind: results["hdca"][f"energy.{kind}"] for kind in energies}
    panels["energy [J]"]["total"] = sum(panels["energy [J]"].values(), np.zeros_like(time))
    panels["energy error [J]"] = {name: result["energy.drift"] for name, result in results.items()}
    names = ("hdca", "dca", *energies, "total")
    draw("hdca-chain-motion.svg", time, panels, dict(zip(names, COLOURS, strict=False)))


def point_k() -> None:
    """Print largest errors of K's height and vertical velocity; draw them."""
    heights, errors, evaluations = {}, {}, {}
    time = np.zeros(0)
    for name, options in SETTINGS.items():
        result = run("loop-4", solver="rk45", **options)
        time, heights[name] = result.time, end_of(result, 2)[[1, 3]]
        evaluations[name] = result.statistics.rhs_evaluations
    expected = guided_half(time)
    print("| K of `loop-4` | right-hand sides | height [m] | vertical velocity [m/s] |\n|" + " --- |" * 4)
    for name, found in heights.items():
        errors[name] = np.abs(found - expected)
        most = " | ".join(f"{each:.1e}" for each in errors[name].max(axis=1))
        print(f"| {name} | {evaluations[name]} | {most} |", flush=True)
    panels: dict[str, dict[str, Floats]] = {}
    for row, (label, unit) in enumerate((("height of K", "m"), ("velocity of K", "m/s"))):
        panels[f"{label} [{unit}]"] = {"two links and a guide": expected[row], "hdca": heights["hdca"][row]}
        panels[f"error [{unit}]"] = {name: values[row] for name, values in errors.items()}
    names = ("hdca", "dca", "hdca, as published", "two links and a guide")
    draw("hdca-point-k.svg", time, panels, dict(zip(names, COLOURS, strict=False)))


def main() -> None:
    """Print and draw."""
    point_k()
    chain()


if __name__ == "__main__":
    main()
