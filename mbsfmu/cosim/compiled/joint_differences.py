"""Derivatives of what joints are open by at the end of a coupled step by the multipliers, by differences.

They are central: what is left of curvature would pass for an effect of redundant components.

Written once, in the language of steps (`mbsfmu.stepping.language`).
"""

from __future__ import annotations

from mbsfmu.cosim.compiled.joint_step import find_equations, joined, load, read_motions
from mbsfmu.cosim.compiled.library import MADE, ClosingTable, ExchangeTable, JointTable
from mbsfmu.cosim.compiled.member_step import advance
from mbsfmu.cosim.compiled.members import restore_member
from mbsfmu.stepping.language import Real, Reals


def try_again(exchange: ExchangeTable, joint: JointTable, multipliers: Reals) -> int:
    """Let the two members of a joint make the step with other multipliers."""
    first: int = joint.handles[0].member
    second: int = joint.handles[1].member
    load(exchange, multipliers)
    outcome: int = restore_member(exchange, joined(exchange, first))
    if outcome == MADE and second != first:
        outcome = restore_member(exchange, joined(exchange, second))
    if outcome == MADE:
        outcome = advance(exchange, joined(exchange, first))
    if outcome == MADE and second != first:
        outcome = advance(exchange, joined(exchange, second))
    if outcome == MADE:
        outcome = read_motions(exchange)
    return outcome


def find_differences(exchange: ExchangeTable) -> int:
    """Find the derivatives of the residual by the multipliers, where no member needs a look."""
    closing: ClosingTable = exchange.closing[0]
    count: int = 2 * closing.count
    moved: Reals = closing.last  # which is written again before it is needed, as is the change
    found: Reals = closing.change
    for j in range(closing.joint_count):
        joint: JointTable = closing.joints[j]
        for place in range(2 * joint.count):
            column: int = joint.first + place
            if place >= joint.count:
                column += closing.count - joint.count  # of the multipliers at the end of the step
            perturbation: Real = closing.perturbations[column]
            for k in range(count):
                moved[k] = closing.multipliers[k]
            moved[column] += perturbation
            outcome: int = try_again(exchange, joint, moved)
            if outcome != MADE:
                return outcome
            find_equations(exchange, closing.rows, found)
            for k in range(count):
                closing.jacobian[count * k + column] = found[k]
            moved[column] = closing.multipliers[column]
            moved[column] += -1.0 * perturbation
            outcome = try_again(exchange, joint, moved)
            if outcome != MADE:
                return outcome
            find_equations(exchange, closing.rows, found)
            for k in range(count):
                difference: Real = closing.jacobian[count * k + column] - found[k]
                closing.jacobian[count * k + column] = difference / (2.0 * perturbation)
        returned: int = try_again(exchange, joint, closing.multipliers)
        if returned != MADE:
            return returned
    return MADE
