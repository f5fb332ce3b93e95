"""Steps of `penalty` as equations, whose derivatives are those of the steps."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbsfmu.formulations.penalty import AugmentedEquations
from mbsfmu.stepping.step_history import BEGUN
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import MOTION


class ProjectedStep:
    """A step from w = (z, ż, z̈, x, ẋ, integrals and their rates) to w at its end, in expressions.

    The unknowns are (z, x, λ) at the end, where (M z̈ − Q + Φ_zᵀ λ, ẋ − f, Φ) vanishes, and the projected ż and z̈ with
    their forces [Jaiswal2021, eqs. 20, 21 and 39]. The weight W of the projections is multiplied by what they correct,
    and is a derivative of M z̈ − Q + Φ_zᵀ λ in that direction, so that derivatives of W are those of this product.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts `projected`, (ż, z̈, and where motion is prescribed the correction of
        z̈ by which λ follows), `forces`, those of the projections, and `softness`, 4/(h² α).
    equations
        Of the formulation.

    Attributes
    ----------
    unknowns, equations
        Symbols, and expressions in the same number; multipliers and loop equations are in the same places.
    begin, end
        w where the step begins, symbols, and where it ends, expressions.
    """

    def __init__(self, functions: SystemFunctions, equations: AugmentedEquations) -> None:
        given, end = functions.expressions, equations.end
        n, k, m = len(functions.coordinates), len(functions.states), len(functions.rows)
        columns = 3 if functions.driven else 2
        motions = _parted(functions.add_part("projected", columns * n)[0], [n] * columns)
        forces = _parted(functions.add_part("forces", columns * m)[0], [m] * columns)
        softness = functions.add_part("softness", 1)[0]
        of_motion, jacobian = ca.vertcat(*(given.symbol_by_part[part] for part in MOTION)), given.closure_jacobian
        position = 1.0 / end.acceleration_by_position
        factors = (position, position * end.velocity_by_position, 1.0)

        def projection(corrected: ca.SX, motion: ca.SX, turning: ca.SX, force: ca.SX) -> list[ca.SX]:
            if not m:
                return [corrected]
            along = ca.vertcat(*(factor * corrected for factor in factors))
            held = ca.jtimes(given.balance, of_motion, along) + ca.mtimes(jacobian.T, force)
            return [held, ca.mtimes(jacobian, motion) + turning - softness * force]

        before = [given.symbol_by_part[part] for part in MOTION[1:]]
        turnings = [given.drifts, given.quadratic]
        projections = [
            each
            for motion, rule, turning, force in zip(motions, before, turnings, forces, strict=False)
            for each in projection(motion - rule, motion, turning, force)
        ]
        end_motion = dict(zip(MOTION, (end.coordinates, *motions[:2]), strict=True)) | {"states": end.values}
        multipliers = given.multipliers
        if functions.driven:
            projections += projection(motions[2], motions[2], ca.SX(m, 1), forces[2])
            multipliers = multipliers + forces[2]
        projections = given.at(projections, equations.at_end())
        if functions.driven:
            projections[-2] += given.at([given.balance], end_motion)[0]
        self.unknowns = ca.vertcat(*(functions.symbol(part) for part in ("unknowns", "multipliers")), *motions, *forces)
        self.equations = ca.vertcat(equations.open_step, *projections)
        (rates,) = given.at([given.integral_rates], end_motion | {"multipliers": multipliers})
        begun, begun_rates = (functions.symbol(BEGUN + part) for part in ("integrals", "integral_rates"))
        integrals = begun + 0.5 * functions.symbol("step") * (begun_rates + rates)
        self.end = ca.vertcat(end.coordinates, *motions[:2], end.values, end.rates, integrals, rates)
        values, slopes = (_parted(functions.symbol(part), [n, k]) for part in ("begin", "begin_rates"))
        accelerations = functions.symbol("begin_accelerations")
        self.begin = ca.vertcat(values[0], slopes[0], accelerations, values[1], slopes[1], begun, begun_rates)


def _parted(symbol: ca.SX, sizes: Sequence[int]) -> list[ca.SX]:
    """Return the parts of a vector; slices of one element without it have another shape in CasADi."""
    return list(ca.vertsplit(symbol, np.cumsum([0, *sizes]).tolist()))
