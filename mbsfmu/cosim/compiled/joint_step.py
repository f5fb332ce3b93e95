"""Joints between members, closed at the end of a coupled step: their equations, and trials of the step.

A handle's motion is an array of position (3), velocity (3), unit quaternion w, x, y, z (4) and angular velocity (3) in
the inertial frame. With the velocities V = (v, ω) of both, the rates of the constraints are G₁ V₁ + G₂ V₂; multipliers
λ load the handles by the wrenches G₁ᵀ λ and G₂ᵀ λ (force, moment), which do no work together.

The wrench of a joint runs straight over a communication step, from one value to another. Both are free: they close the
joint's position and its velocity at the end of the step, which are two equations for each constraint. So the wrench is
the best straight line through the true reaction: the difference has neither mean nor first moment over the step, in
what the members integrate. Nothing of it depends on the wrench of the step before, so nothing rings, as multipliers of
the trapezoidal rule do where a joint is closed in position alone.

Written once, in the language of steps (`mbsfmu.stepping.language`).
"""

from __future__ import annotations

import math

from mbsfmu.cosim.compiled.interface_inverse import apply, inner_product, learn
from mbsfmu.cosim.compiled.library import (
    ANGULAR_VELOCITY,
    FIXED,
    MADE,
    NO_CONVERGENCE,
    NO_JACOBIAN,
    POSITION,
    PRISMATIC,
    QUATERNION,
    REVOLUTE,
    SPHERICAL,
    VELOCITY,
    WRENCH,
    ClosingTable,
    ExchangeTable,
    HandleTable,
    JointTable,
    MemberTable,
)
from mbsfmu.cosim.compiled.member_step import advance
from mbsfmu.cosim.compiled.members import advance_apart, read_port, restore_member, save_member
from mbsfmu.stepping.language import Real, Reals, absolute, tail, zeros


def is_joined(exchange: ExchangeTable, member: int) -> int:
    """Return whether joints join a member, by its turn."""
    if not exchange.closing:
        return 0
    first: int = exchange.closing[0].first_member
    return first <= member and member < first + exchange.closing[0].member_count  # noqa: PLR1716 - so it becomes C


def joined(exchange: ExchangeTable, number: int) -> MemberTable:
    """Return a member by its number among those that joints join."""
    return exchange.members[exchange.closing[0].first_member + number]


# -- equations of a joint ---------------------------------------------------------------------------------------------


def dot(one: Reals, first: int, other: Reals, second: int) -> Real:
    """Return the inner product of two vectors of three, which begin at places of their arrays."""
    return one[first] * other[second] + one[first + 1] * other[second + 1] + one[first + 2] * other[second + 2]


def cross(one: Reals, other: Reals, second: int, result: Reals) -> None:
    """Find the cross product of two vectors, of which the other one begins at a place."""
    result[0] = one[1] * other[second + 2] - one[2] * other[second + 1]
    result[1] = one[2] * other[second] - one[0] * other[second + 2]
    result[2] = one[0] * other[second + 1] - one[1] * other[second]


def rotation(motion: Reals, result: Reals) -> None:
    """Find the rotation matrix of a handle's body, row by row."""
    w: Real = motion[QUATERNION]
    x: Real = motion[QUATERNION + 1]
    y: Real = motion[QUATERNION + 2]
    z: Real = motion[QUATERNION + 3]
    result[0] = w * w + x * x - y * y - z * z
    result[1] = 2.0 * (x * y - w * z)
    result[2] = 2.0 * (x * z + w * y)
    result[3] = 2.0 * (x * y + w * z)
    result[4] = w * w - x * x + y * y - z * z
    result[5] = 2.0 * (y * z - w * x)
    result[6] = 2.0 * (x * z - w * y)
    result[7] = 2.0 * (y * z + w * x)
    result[8] = w * w - x * x - y * y + z * z


def find_pose(joint: JointTable) -> None:
    """Find what the equations of a joint need of the motions of both handles."""
    first: Reals = joint.handles[0].motion
    second: Reals = joint.handles[1].motion
    for i in range(3):
        joint.apart[i] = second[POSITION + i] - first[POSITION + i]
    if joint.kind == SPHERICAL:
        return
    rotation(first, joint.inner)
    rotation(second, joint.outer)
    axes: Reals = tail(joint.reference, 9)
    for k in range(2):
        for i in range(3):
            joint.normals[3 * k + i] = dot(joint.inner, 3 * i, axes, 3 * (k + 1))
    carried: Reals = zeros(3)
    for i in range(3):
        carried[i] = joint.reference[i] * axes[0]
        carried[i] += joint.reference[3 + i] * axes[1]
        carried[i] += joint.reference[6 + i] * axes[2]
    for i in range(3):
        joint.axis[i] = dot(joint.outer, 3 * i, carried, 0)


def find_angles(joint: JointTable, angles: Reals, first: int) -> None:
    """Find the angles by which the second body's orientation is off, about the axes of the first one."""
    back: Reals = zeros(9)
    off: Reals = zeros(9)
    for i in range(3):
        for j in range(3):
            back[3 * i + j] = dot(joint.outer, 3 * i, joint.reference, 3 * j)
    for i in range(3):
        for j in range(3):
            off[3 * i + j] = joint.inner[i] * back[j] + joint.inner[3 + i] * back[3 + j]
            off[3 * i + j] += joint.inner[6 + i] * back[6 + j]
    angles[first] = 0.5 * (off[7] - off[5])
    angles[first + 1] = 0.5 * (off[2] - off[6])
    angles[first + 2] = 0.5 * (off[3] - off[1])


def find_gap(joint: JointTable, residual: Reals) -> None:
    """Find what a joint is open by, in m and rad, at its place of a residual."""
    first: int = joint.first
    if joint.kind == PRISMATIC:
        for k in range(2):
            residual[first + k] = dot(joint.normals, 3 * k, joint.apart, 0)
        find_angles(joint, residual, first + 2)
        return
    for i in range(3):
        residual[first + i] = joint.apart[i]
    if joint.kind == REVOLUTE:
        for k in range(2):
            residual[first + 3 + k] = dot(joint.normals, 3 * k, joint.axis, 0)
    if joint.kind == FIXED:
        find_angles(joint, residual, first + 3)


def find_rows(joint: JointTable, begins: Reals, ends: Reals) -> None:
    """Find the rows of both handles at their places, each of shape (count, 6).

    What never changes is written with the rest: -1 and 1 in the directions in which a joint holds positions.
    """
    straight: int = 2 if joint.kind == PRISMATIC else 3
    direction: Reals = zeros(3)
    for k in range(straight):
        place: int = WRENCH * (joint.first + k)
        if joint.kind == PRISMATIC:
            cross(joint.apart, joint.normals, 3 * k, direction)
            for i in range(3):
                ends[place + i] = joint.normals[3 * k + i]
                begins[place + i] = -joint.normals[3 * k + i]
                begins[place + 3 + i] = -direction[i]
        else:
            begins[place + k] = -1.0
            ends[place + k] = 1.0
    for k in range(straight, joint.count):
        row: int = WRENCH * (joint.first + k) + 3
        if joint.kind == REVOLUTE:
            cross(joint.axis, joint.normals, 3 * (k - straight), direction)
        else:
            for i in range(3):
                direction[i] = joint.inner[3 * i + k - straight]
        for i in range(3):
            ends[row + i] = direction[i]
            begins[row + i] = -direction[i]


def along(rows: Reals, place: int, motion: Reals) -> Real:
    """Return a row of one handle times its velocities."""
    result: Real = rows[place] * motion[VELOCITY]
    for i in range(1, 3):
        result += rows[place + i] * motion[VELOCITY + i]
    for i in range(3):
        result += rows[place + 3 + i] * motion[ANGULAR_VELOCITY + i]
    return result


def find_wrench(rows: Reals, place: int, multipliers: Reals, first: int, count: int, wrench: Reals) -> None:
    """Find the wrench of multipliers on one handle, by its rows."""
    for i in range(WRENCH):
        wrench[i] = 0.0
    for k in range(count):
        for i in range(WRENCH):
            wrench[i] += rows[place + WRENCH * k + i] * multipliers[first + k]


# -- motions ----------------------------------------------------------------------------------------------------------


def read_motion(exchange: ExchangeTable, handle: HandleTable) -> int:
    """Read the motion of a handle."""
    outcome: int = read_port(exchange, handle.port)
    if outcome == MADE:
        for k in range(handle.port.count):
            handle.motion[handle.motion_places[k]] = handle.port.values[k]
    return outcome


def read_motions(exchange: ExchangeTable) -> int:
    """Read the motions of all handles."""
    closing: ClosingTable = exchange.closing[0]
    for j in range(closing.joint_count):
        for side in range(2):
            outcome: int = read_motion(exchange, closing.joints[j].handles[side])
            if outcome != MADE:
                return outcome
    return MADE


def find_all_rows(exchange: ExchangeTable, rows: Reals) -> None:
    """Find the rows of all joints, shape (2, count, 6)."""
    closing: ClosingTable = exchange.closing[0]
    ends: Reals = tail(rows, WRENCH * closing.count)
    for j in range(closing.joint_count):
        find_pose(closing.joints[j])
        find_rows(closing.joints[j], rows, ends)


def find_equations(exchange: ExchangeTable, rows: Reals, residual: Reals) -> None:
    """Find the rows of all joints, and what they are open by with its rates times the step."""
    closing: ClosingTable = exchange.closing[0]
    find_all_rows(exchange, rows)
    for j in range(closing.joint_count):
        joint: JointTable = closing.joints[j]
        find_gap(joint, residual)
        for k in range(joint.first, joint.first + joint.count):
            first: Real = along(rows, WRENCH * k, joint.handles[0].motion)
            second: Real = along(rows, WRENCH * (closing.count + k), joint.handles[1].motion)
            residual[closing.count + k] = exchange.step * (first + second)


# -- trials -----------------------------------------------------------------------------------------------------------


def load(exchange: ExchangeTable, multipliers: Reals) -> None:
    """Write the wrenches of multipliers into the polynomials."""
    closing: ClosingTable = exchange.closing[0]
    begin: Reals = zeros(6)
    end: Reals = zeros(6)
    for j in range(closing.joint_count):
        joint: JointTable = closing.joints[j]
        for side in range(2):
            handle: HandleTable = joint.handles[side]
            place: int = WRENCH * (side * closing.count + joint.first)
            find_wrench(closing.at_begin, place, multipliers, joint.first, joint.count, begin)
            find_wrench(closing.at_end, place, multipliers, closing.count + joint.first, joint.count, end)
            for k in range(handle.load_count):
                start: Real = begin[handle.load_places[k]]
                goal: Real = end[handle.load_places[k]]
                slope: Real = handle.widening * (goal - start)
                exchange.polynomials[handle.columns[k]] = 0.5 * (start + goal - slope)
                exchange.polynomials[exchange.columns + handle.columns[k]] = slope


def begin_trials(exchange: ExchangeTable) -> int:
    """Begin a step from where the members are.

    The rows at the end of the step are extrapolated from those at the starts of the last ones.
    """
    closing: ClosingTable = exchange.closing[0]
    length: int = 2 * closing.count * WRENCH
    exchange.saved_at = exchange.times[exchange.first + exchange.made]
    for k in range(closing.member_count):
        outcome: int = save_member(exchange, joined(exchange, k))
        if outcome != MADE:
            return outcome
    if not closing.knows_motions:
        read: int = read_motions(exchange)
        if read != MADE:
            return read
    find_all_rows(exchange, closing.at_begin)
    known: int = closing.rows_known if closing.rows_length == exchange.step else 0
    for k in range(length):
        now: Real = closing.at_begin[k]
        last: Real = closing.before[k]
        second: Real = closing.before[length + k]
        closing.at_end[k] = now
        if known == 1:
            closing.at_end[k] = 2.0 * now - last
        elif known > 1:
            closing.at_end[k] = 3.0 * (now - last) + second
        closing.before[length + k] = last
        closing.before[k] = now
    closing.rows_known = known + 1 if known < 2 else 2
    closing.rows_length = exchange.step
    closing.knows_motions = 0
    closing.is_open = 1
    closing.follows = 1
    return MADE


def evaluate(exchange: ExchangeTable) -> int:
    """Make the step with the multipliers, and find what joints are open by at its end; goes on where it was left."""
    closing: ClosingTable = exchange.closing[0]
    if not closing.is_under_way:
        closing.is_under_way = 1
        closing.next = 0
        exchange.sweeps += 1
        load(exchange, closing.multipliers)
        if not closing.is_open:
            closing.rollbacks += 1
            for k in range(closing.member_count):
                restored: int = restore_member(exchange, joined(exchange, k))
                if restored != MADE:
                    return restored
        closing.is_open = 0
    if exchange.apart:
        apart: int = advance_apart(exchange, closing.first_member, closing.first_member + closing.member_count)
        if apart != MADE:
            return apart
        closing.next = closing.member_count
    while closing.next < closing.member_count:
        outcome: int = advance(exchange, joined(exchange, closing.next))
        if outcome != MADE:
            return outcome
        closing.next += 1
    read: int = read_motions(exchange)
    if read != MADE:
        return read
    closing.is_under_way = 0
    if closing.follows:
        find_equations(exchange, closing.following, closing.residual)
    else:
        find_equations(exchange, closing.rows, closing.residual)
    return MADE


def follow(closing: ClosingTable) -> Real:
    """Take the directions of the wrench at the end of the step from the first trial; return by what they change."""
    most: Real = 0.0
    if not closing.follows:
        return most
    for k in range(2 * closing.count * WRENCH):
        change: Real = absolute(closing.following[k] - closing.at_end[k])
        # No number is kept: nothing is learned from it.
        if not change <= most and most == most:  # noqa: PLR0124
            most = change
        closing.at_end[k] = closing.following[k]
    closing.follows = 0
    return most


# -- multipliers ------------------------------------------------------------------------------------------------------


def predict(exchange: ExchangeTable) -> None:
    """Let the multipliers of the last steps go on.

    Without what had no effect where the Jacobian was found: directions of redundant components turn, and extrapolation
    makes them grow.
    """
    closing: ClosingTable = exchange.closing[0]
    count: int = 2 * closing.count
    whole: Reals = closing.change  # which nothing needs before the first correction
    if closing.length == exchange.step and closing.known > 1:
        for k in range(count):
            last: Real = closing.lines[k]
            before: Real = closing.lines[count + k]
            if closing.known == closing.remembered:
                whole[k] = 3.0 * (last - before) + closing.lines[2 * count + k]
            else:
                whole[k] = 2.0 * last - before
    else:
        for k in range(closing.count):
            end: Real = closing.lines[closing.count + k]
            slope: Real = 0.0 * end
            if closing.length != 0.0:
                slope = (end - closing.lines[k]) / closing.length
            whole[k] = end
            whole[closing.count + k] = end + exchange.step * slope
    for k in range(count):
        closing.multipliers[k] = 0.0 if closing.inverse.is_known else whole[k]
    if not closing.inverse.is_known:
        return
    for r in range(closing.rank):
        share: Real = inner_product(closing.directions, r * count, whole, count)
        for k in range(count):
            closing.multipliers[k] += closing.directions[r * count + k] * share


def largest_share(closing: ClosingTable) -> Real:
    """Return the largest residual as a share of its limit, no number if one is none."""
    size: Real = 0.0
    for k in range(2 * closing.count):
        share: Real = absolute(closing.residual[k]) / closing.limits[k]
        if not share <= size and size == size:  # noqa: PLR0124
            size = share
    return size


def correct(exchange: ExchangeTable) -> None:
    """Correct the multipliers, which lets the wrench turn in the first correction of a step."""
    closing: ClosingTable = exchange.closing[0]
    squared: Real = exchange.step * exchange.step
    apply(closing.inverse, closing.residual, closing.change)
    for k in range(2 * closing.count):
        closing.change[k] = -closing.change[k]
        closing.multipliers[k] += closing.change[k] / squared
        closing.last[k] = closing.residual[k]
    closing.learns = follow(closing) <= closing.most_turned


def take_multipliers(exchange: ExchangeTable) -> None:
    """Take the multipliers of an accepted step, and the mean wrenches on the second handles."""
    closing: ClosingTable = exchange.closing[0]
    count: int = 2 * closing.count
    kept: int = (closing.remembered - 1) * count
    for k in range(kept):
        closing.lines[kept + count - 1 - k] = closing.lines[kept - 1 - k]
    for k in range(count):
        closing.lines[k] = closing.multipliers[k]
    if closing.length != exchange.step:
        closing.known = 1
    elif closing.known < closing.remembered:
        closing.known += 1
    closing.length = exchange.step
    begin: Reals = zeros(6)
    end: Reals = zeros(6)
    for j in range(closing.joint_count):
        joint: JointTable = closing.joints[j]
        place: int = WRENCH * (closing.count + joint.first)
        find_wrench(closing.at_begin, place, closing.multipliers, joint.first, joint.count, begin)
        find_wrench(closing.at_end, place, closing.multipliers, closing.count + joint.first, joint.count, end)
        for i in range(WRENCH):
            exchange.reactions[WRENCH * j + i] = 0.5 * (begin[i] + end[i])


def close_joints(exchange: ExchangeTable) -> int:
    """Find the multipliers that close joints at the end of the step, and make the step; goes on where it was left."""
    closing: ClosingTable = exchange.closing[0]
    if not closing.is_begun:
        begun: int = begin_trials(exchange)
        if begun != MADE:
            return begun
        predict(exchange)
        closing.is_begun = 1
        closing.made = 0
        closing.is_compared = 0
        closing.is_fresh = 0
        closing.learns = 0
        closing.is_under_way = 0
        closing.size = math.inf
    while True:
        if not closing.is_compared:
            outcome: int = evaluate(exchange)
            if outcome != MADE:
                return outcome
            if closing.learns:
                learn(closing.inverse, closing.change, closing.residual, closing.last)
            closing.size_before = closing.size
            closing.size = largest_share(closing)
            closing.is_compared = 1
        if closing.made == closing.maximum:
            return NO_CONVERGENCE
        if closing.size <= 1.0:
            take_multipliers(exchange)
            closing.knows_motions = 1
            closing.is_begun = 0
            return MADE
        is_slow: int = closing.made > 1 and not closing.size < closing.slow * closing.size_before
        if not closing.inverse.is_known or (not closing.is_fresh and is_slow):
            return NO_JACOBIAN
        correct(exchange)
        closing.made += 1
        closing.is_compared = 0
