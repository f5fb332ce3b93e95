"""Continuity of prescribed motion: discontinuities would be impacts, which are not modelled."""

from __future__ import annotations

from mbsfmu.base.errors import SimulationError
from mbsfmu.systems.functions import SystemFunctions

JUMP = 1e-3
"""Distance in rad, or share of a lever arm, by which a prescribed motion may miss where its joint is: what a held
acceleration leaves over a communication step is less …"""
JUMP_OF_RATE = 1e-2
"""… and the same of its rate, in rad/s or lever arms per s, or as a share of the rate."""


def check_motion(functions: SystemFunctions, time: float) -> None:
    """Check that prescribed motion is consistent with the state.

    Parameters
    ----------
    functions
        Functions of the system; they hold the state, and the inputs from a time on.
    time
        In s.

    Raises
    ------
    SimulationError
        When it is not; the sentence says by how much.
    """
    if not functions.driven:
        return
    gaps, rates, drifts = functions.missed()
    scales = functions.scales[list(functions.driven)]
    names = [functions.system.constraints[functions.rows[row]] for row in functions.driven]
    units = [functions.system.constraint_units[functions.rows[row]] for row in functions.driven]
    for name, unit, gap, rate, drift, scale in zip(names, units, gaps, rates, drifts, scales, strict=True):
        if not abs(gap) <= JUMP * scale:
            raise SimulationError(_message(name, time, "position", -gap, unit))
        if not abs(rate) <= JUMP_OF_RATE * (scale + abs(drift)):
            raise SimulationError(_message(name, time, "velocity", -rate, f"{unit}/s"))


def _message(name: str, time: float, what: str, jump: float, unit: str) -> str:
    return (
        f"at t = {time:.9g} s the {what} of {name} jumps by {jump:.3g} {unit}; it must go on from where it "
        "was, with the velocity and acceleration that belong to it"
    )
