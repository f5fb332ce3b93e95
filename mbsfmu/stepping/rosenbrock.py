"""Steps of linearly implicit Runge–Kutta (Rosenbrock) methods, without matrix-vector products [Hairer1996, sect. IV.7].

(1/(h γ) − J) uᵢ = f(t + αᵢ h, y + Σⱼ aᵢⱼ uⱼ) + Σⱼ cᵢⱼ uⱼ / h + γᵢ h ∂f/∂t, with j < i and J = ∂f/∂y at the beginning of
the step. The last stage is evaluated at the solution of the embedded method, and adding its increment gives the
solution: that increment is the estimate of the error.

Written once, in the language of steps (`mbsfmu.stepping.language`).
"""

from __future__ import annotations

from typing import Protocol

from mbsfmu.stepping.adaptive import Attempt
from mbsfmu.stepping.language import Mask, PassingReals, Real, Reals, Table, add_columns

UNSOLVED = 0.1
"""Largest residual of the first stage times h γ, relative to the tolerances."""


class Machine(Protocol):
    """A machine, or a group of them."""

    SIZE: int  # elements of y
    STAGES: int
    INTERPOLANTS: int
    couplings: Table  # a_ij, row by row
    rate_couplings: Table  # c_ij
    stage_nodes: Table  # alpha_i
    stage_slopes: Table  # gamma_i
    interpolation: Table  # rows of d_1, d_2 …

    def find_rates(self, time: Real, values: Reals, rates: PassingReals) -> Mask:
        """Evaluate y'; returns whether it can be, else there is a reason."""
        ...

    def factorize_step(self, attempt: Attempt) -> Mask:
        """Factorize 1/(h gamma) - J; returns whether it is regular, else there is a reason."""
        ...

    def solve_stage(self, attempt: Attempt, stage: int) -> Mask:
        """Solve for the increment of a stage, in the place of its right side; returns whether it can be."""
        ...


def begin_stage(machine: Machine, attempt: Attempt, stage: int, first: int) -> None:
    """Find where a stage is evaluated, and its right side but for the rates there; its weights begin at `first`."""
    slope: Real = attempt.step * machine.stage_slopes[stage]
    for k in range(stage):
        attempt.weights[k] = machine.couplings[first + k]
        attempt.couples[k] = machine.rate_couplings[first + k] / attempt.step
    for i in range(machine.SIZE):
        attempt.end[i] = attempt.start[i]
        attempt.error[i] = slope * attempt.drift[i]
    add_columns(stage, machine.SIZE, attempt.increments, machine.SIZE, attempt.weights, attempt.end)
    add_columns(stage, machine.SIZE, attempt.increments, machine.SIZE, attempt.couples, attempt.error)
    for i in range(machine.SIZE):
        attempt.increments[stage * machine.SIZE + i] = attempt.error[i]


def find_end(machine: Machine, attempt: Attempt) -> Mask:
    """Find the increments of all stages, and y at the end; returns whether they can be, else there is a reason."""
    if not machine.factorize_step(attempt):
        return False
    first: int = 0
    place: int = 0
    for stage in range(machine.STAGES):
        begin_stage(machine, attempt, stage, first)
        if stage > 0:
            time: Real = attempt.time + machine.stage_nodes[stage] * attempt.step
            if not machine.find_rates(time, attempt.end, attempt.error):
                return False
            for i in range(machine.SIZE):
                attempt.increments[place + i] += attempt.error[i]
        else:
            for i in range(machine.SIZE):
                attempt.increments[place + i] += attempt.rates[i]
        if not machine.solve_stage(attempt, stage):
            return False
        first += stage
        place += machine.SIZE
    for i in range(machine.SIZE):
        attempt.error[i] = attempt.increments[place - machine.SIZE + i]
        attempt.end[i] += attempt.error[i]
    return True


def find_between(machine: Machine, attempt: Attempt, share: Real, values: PassingReals) -> None:
    """Find y at a share of a step: (1 − θ) y₀ + θ (y₁ + (1 − θ) (d₁ + θ (d₂ + θ …)) u)."""
    for i in range(machine.SIZE):
        bend: Real = 0.0
        for back in range(machine.INTERPOLANTS):
            row: int = machine.INTERPOLANTS - 1 - back
            total: Real = 0.0
            for k in range(machine.STAGES):
                total += machine.interpolation[k + machine.STAGES * row] * attempt.increments[k * machine.SIZE + i]
            bend = total + share * bend
        values[i] = (1.0 - share) * attempt.start[i] + share * (attempt.end[i] + (1.0 - share) * bend)
