"""Optimal control of the hydraulic four-bar mechanism: its FMU in CasADi, solved by IPOPT.

The boom goes from rest to a given angle and rests there again, with the least square of the valve's command. CasADi
loads the FMU for model exchange of FMI 3.0; its derivatives are the exact ones of the FMU. Direct collocation: Radau
points of order 5, the command constant in each interval.

Needs casadi, which mbsfmu brings along, and a C compiler. Run: python examples/optimal_control.py
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import fmpy
import numpy as np
from fmpy.fmi3 import FMU3Model
from numpy.typing import NDArray

import mbsfmu

Floats = NDArray[np.float64]
DURATION = 1.0  # s
RAISED = 0.03  # rad, from the angle at the start
INTERVALS, DEGREE = 20, 3
LIMIT = 10.0  # V, of the command


@dataclass(frozen=True)
class Optimum:
    """What was found.

    Attributes
    ----------
    times
        Ends of the intervals in s, the start in front, shape (INTERVALS + 1,).
    commands
        Commands of the valve in V, shape (INTERVALS,).
    states
        Continuous states at the times, shape (states, INTERVALS + 1).
    names
        Names of the states.
    angles
        Angles of the boom at the times in rad.
    cost
        Integral of the square of the command in V² s.
    """

    times: Floats
    commands: Floats
    states: Floats
    names: list[str]
    angles: Floats
    cost: float


def export(folder: Path) -> Path:
    """Export the mechanism with its circuit for model exchange."""
    (unit,) = mbsfmu.export(mbsfmu.models.built_in("four-bar"), folder, layout="monolithic", kind="me", fmi=3)
    return unit


def start_states(unit: Path, names: list[str]) -> Floats:
    """Return the continuous states at the start, as the FMU finds them in initialization mode, shape (states,)."""
    description = fmpy.read_model_description(str(unit))
    with tempfile.TemporaryDirectory() as folder:
        instance = FMU3Model(
            guid=description.guid,
            unzipDirectory=str(fmpy.extract(str(unit), unzipdir=folder)),
            modelIdentifier=description.modelExchange.modelIdentifier,
            instanceName="start",
        )
        instance.instantiate()
        instance.enterInitializationMode()
        instance.exitInitializationMode()
        references = {each.name: each.valueReference for each in description.modelVariables}
        values = instance.getFloat64([references[name] for name in names])
        instance.terminate()
        instance.freeInstance()
    return np.array(values)


def load(unit: Path) -> ca.DaeBuilder:
    """Load the FMU into CasADi."""
    return ca.DaeBuilder("four_bar", str(unit))


def optimum(unit: Path, *, quiet: bool = True) -> Optimum:
    """Find the commands that move the boom.

    Parameters
    ----------
    unit
        The FMU.
    quiet
        Whether IPOPT prints nothing.

    Raises
    ------
    RuntimeError
        When IPOPT does not converge.
    """
    dae = load(unit)
    names = dae.x()
    flow = dae.create("flow", ["x", "u"], ["ode"])
    angle = dae.create("angle", ["x", "u"], ["y"])
    boom = dae.y().index("boom.angle")
    begin = start_states(unit, names)
    nominal = np.array([dae.nominal(name) for name in names])
    velocity = names.index("independent.velocity[1]")
    length, size = DURATION / INTERVALS, len(names)
    to_slopes, _, _ = ca.collocation_coeff(ca.collocation_points(DEGREE, "radau"))
    unknowns: list[ca.MX] = []
    equations: list[ca.MX] = []
    cost, state = ca.MX(0.0), ca.MX(begin / nominal)
    for interval in range(INTERVALS):
        command = ca.MX.sym(f"command_{interval}")
        inner = ca.MX.sym(f"states_{interval}", size, DEGREE)
        unknowns += [command, ca.vec(inner)]
        slopes = ca.mtimes(ca.horzcat(state, inner), to_slopes)
        equations += [slopes[:, k] - length * flow(inner[:, k] * nominal, command) / nominal for k in range(DEGREE)]
        cost += length * command**2
        state = inner[:, -1]
    moved = angle(state * nominal, command)[boom] - angle(begin, 0.0)[boom]
    equations += [moved - RAISED, state[velocity]]
    solver = ca.nlpsol(
        "solver",
        "ipopt",
        {"x": ca.vertcat(*unknowns), "f": cost, "g": ca.vertcat(*equations)},
        {
            "print_time": False,
            "ipopt.hessian_approximation": "limited-memory",
            "ipopt.print_level": 0 if quiet else 5,
            "ipopt.sb": "yes",
        },
    )
    inside = DEGREE * size
    found = solver(
        x0=np.tile(np.concatenate([[0.0], np.tile(begin / nominal, DEGREE)]), INTERVALS),
        lbx=np.tile(np.concatenate([[-LIMIT], np.full(inside, -np.inf)]), INTERVALS),
        ubx=np.tile(np.concatenate([[LIMIT], np.full(inside, np.inf)]), INTERVALS),
        lbg=0.0,
        ubg=0.0,
    )
    if not solver.stats()["success"]:
        raise RuntimeError(f"IPOPT ends with {solver.stats()['return_status']}")
    values = np.array(found["x"]).reshape(INTERVALS, 1 + inside)
    states = np.column_stack([begin, *(row[-size:] * nominal for row in values)])
    angles = np.array([float(angle(column, 0.0)[boom]) for column in states.T])
    return Optimum(np.linspace(0.0, DURATION, INTERVALS + 1), values[:, 0], states, names, angles, float(found["f"]))


def main() -> None:
    """Print the optimum."""
    with tempfile.TemporaryDirectory() as folder:
        result = optimum(export(Path(folder)), quiet=False)
    for time, command, angle in zip(result.times[1:], result.commands, result.angles[1:], strict=True):
        print(f"{time:6.3f} s  {command:8.4f} V  {np.degrees(angle):8.3f}°")
    print(f"integral of the squared command: {result.cost:.5g} V² s")


if __name__ == "__main__":
    main()
