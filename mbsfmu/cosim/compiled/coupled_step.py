"""A coupled step: sweeps over the members, iterations until interface values agree, and the end of the step.

Members are run from one communication point to the next. All arrays are those of the master, whose classes say what
they hold. A step may be left where a member or an iteration needs a look, and goes on from there.

Written once, in the language of steps (`mbsfmu.stepping.language`): in process, and in an FMU of coupled FMUs.
"""

from __future__ import annotations

import math

from mbsfmu.cosim.compiled.interface_inverse import apply, update
from mbsfmu.cosim.compiled.joint_step import close_joints, is_joined
from mbsfmu.cosim.compiled.library import (
    FORGETTING,
    MADE,
    NO_CONVERGENCE,
    NO_JACOBIAN,
    NOT_FINITE,
    Bond,
    ExchangeTable,
    IterationTable,
    MemberTable,
    RateSource,
    Side,
)
from mbsfmu.cosim.compiled.member_step import advance, extrapolate, follow_signals, interpolate, mean, weigh
from mbsfmu.cosim.compiled.members import (
    advance_apart,
    correct_outputs,
    integrate_joined,
    read_port,
    read_rates,
    restore_member,
    save_member,
)
from mbsfmu.stepping.language import Real, Reals, absolute, tail

# -- sweeps -----------------------------------------------------------------------------------------------------------


def begin_sweep(exchange: ExchangeTable) -> None:
    """Begin with the first member."""
    exchange.turn = 0
    for k in range(exchange.member_count):
        exchange.members[k].part = 0
    if not exchange.closing:  # which counts its own
        exchange.sweeps += 1


def advance_turn(exchange: ExchangeTable, following: int) -> int:
    """Let the members of the turn go over the step, and read those that later ones take something from."""
    outcome: int = MADE
    if is_joined(exchange, exchange.turn):
        outcome = integrate_joined(exchange) if exchange.closing[0].integrates else close_joints(exchange)
    else:
        member: MemberTable = exchange.members[exchange.turn]
        if exchange.closing and exchange.in_turn and member.part == 0:
            exchange.sweeps += 1
        outcome = advance(exchange, member)
    if exchange.in_turn:
        for k in range(exchange.turn, following):
            if outcome == MADE:
                outcome = read_port(exchange, exchange.members[k].outputs)
    return outcome


def advance_all(exchange: ExchangeTable) -> int:
    """Let all members go over the step: with the same polynomials, or later ones with what earlier ones reached."""
    if exchange.apart and not exchange.in_turn and exchange.turn == 0:
        behind: int = exchange.closing[0].first_member if exchange.closing else exchange.member_count
        apart: int = advance_apart(exchange, 0, behind)
        if apart != MADE:
            return apart
        exchange.turn = behind
    while exchange.turn < exchange.member_count:
        following: int = exchange.turn + 1
        if is_joined(exchange, exchange.turn):
            following = exchange.turn + exchange.closing[0].member_count
        outcome: int = advance_turn(exchange, following)
        if outcome != MADE:
            return outcome
        while exchange.turn < following:
            member: MemberTable = exchange.members[exchange.turn]
            if member.drives_later:
                interpolate(exchange, exchange.values, member.first_output, member.first_output + member.outputs.count)
            exchange.turn += 1
    if not exchange.in_turn:
        for k in range(exchange.member_count):
            read: int = read_port(exchange, exchange.members[k].outputs)
            if read != MADE:
                return read
    if exchange.shown:
        return correct_outputs(exchange)
    return MADE


def save_all(exchange: ExchangeTable) -> int:
    """Save the states of all members, which the step begins with."""
    exchange.saved_at = exchange.times[exchange.first + exchange.made]
    for k in range(exchange.member_count):
        outcome: int = save_member(exchange, exchange.members[k])
        if outcome != MADE:
            return outcome
    return MADE


def restore_all(exchange: ExchangeTable) -> int:
    """Bring all members back to the beginning of the step."""
    exchange.rollbacks += 1
    if exchange.closing:
        exchange.closing[0].knows_motions = 0
    for k in range(exchange.member_count):
        outcome: int = restore_member(exchange, exchange.members[k])
        if outcome != MADE:
            return outcome
    return MADE


def sweep_again(exchange: ExchangeTable) -> int:
    """Make sweeps of a step until all but the last one that is wanted; goes on where it was left.

    Too little is known at first: in the next sweep inputs interpolate to what was found. A single step with held inputs
    would spoil the third order, and make step control begin with tiny ones; so would a second one with straight inputs
    where parabolas are wanted, in outputs that depend directly on inputs. An output that depends directly on inputs is
    as wrong as these were in the sweep before: each member with such outputs asks for one sweep more.
    """
    while exchange.again > 0:
        outcome: int = advance_all(exchange)
        if outcome == MADE:
            outcome = restore_all(exchange)
        if outcome != MADE:
            return outcome
        exchange.again -= 1
        interpolate(exchange, exchange.values, 0, exchange.outputs)
        begin_sweep(exchange)
    return advance_all(exchange)


# -- iterations -------------------------------------------------------------------------------------------------------


def begin_iteration(exchange: ExchangeTable) -> None:
    """Take what extrapolates as the trial."""
    iteration: IterationTable = exchange.iteration[0]
    for j in range(exchange.outputs):
        total: Real = exchange.polynomials[j]
        for row in range(1, exchange.rows):
            total += exchange.polynomials[row * exchange.columns + j]
        iteration.trial[j] = total
    iteration.made = 0
    iteration.is_fresh = 0
    iteration.is_renewed = 0
    iteration.is_compared = 0
    iteration.relaxation = iteration.kept_relaxation
    interpolate(exchange, iteration.trial, 0, exchange.outputs)


def compare(exchange: ExchangeTable) -> Real:
    """Compare what a sweep has reached with the trial; return the largest residual as a share of its scale."""
    iteration: IterationTable = exchange.iteration[0]
    size: Real = 0.0
    for k in range(iteration.count):
        column: int = iteration.columns[k]
        found: Real = exchange.values[column]
        iteration.residual[k] = found - iteration.trial[column]
        # No number counts as larger than every magnitude, and stays the largest residual.
        iteration.scales[k] = absolute(found)
        if absolute(found) <= iteration.magnitudes[k]:
            iteration.scales[k] = iteration.magnitudes[k]
        share: Real = absolute(iteration.residual[k]) / iteration.scales[k]
        if not share <= size and size == size:  # noqa: PLR0124
            size = share
    return size


def correct_by_newton(exchange: ExchangeTable) -> int:
    """Correct the trial by Newton's method; the Jacobian is made by who called, who goes on then."""
    iteration: IterationTable = exchange.iteration[0]
    is_slow: int = iteration.made > 1 and iteration.found > iteration.slow * iteration.size
    is_full: int = iteration.made > 0 and iteration.inverse.updates == iteration.inverse.most
    if iteration.is_renewed:
        iteration.is_renewed = 0
    elif not iteration.inverse.is_known or (not iteration.is_fresh and (is_slow or is_full)):
        return NO_JACOBIAN
    elif iteration.made > 0:
        update(iteration.inverse, iteration.change, iteration.residual, iteration.last, iteration.scales)
    iteration.size = iteration.found
    apply(iteration.inverse, iteration.residual, iteration.change)
    for k in range(iteration.count):
        iteration.change[k] = -iteration.change[k]
        iteration.last[k] = iteration.residual[k]
        iteration.trial[iteration.columns[k]] += iteration.change[k]
    return MADE


def correct_by_relaxation(exchange: ExchangeTable) -> None:
    """Take a share ω of the change over, given or found by Aitken's rule.

    ω ← −ω rᵀ(r' − r)/|r' − r|² from the last two residuals (Küttler and Wall 2008, "Fixed-point fluid–structure
    interaction solvers with dynamic relaxation"), in scaled residuals and kept from one step to the next.
    """
    iteration: IterationTable = exchange.iteration[0]
    squared: Real = 0.0
    product: Real = 0.0
    for k in range(iteration.count):
        scaled: Real = iteration.residual[k] / iteration.scales[k]
        change: Real = scaled - iteration.last[k]
        squared += change * change
        product += iteration.last[k] * change
        iteration.last[k] = scaled
    if iteration.made > 0 and iteration.adapts:
        factor: Real = iteration.relaxation
        if squared > 0.0:
            factor *= -product / squared
        iteration.relaxation = factor
        if factor < iteration.least_relaxation:
            iteration.relaxation = iteration.least_relaxation
        elif factor > iteration.most_relaxation:
            iteration.relaxation = iteration.most_relaxation
    for k in range(iteration.count):
        iteration.trial[iteration.columns[k]] += iteration.relaxation * iteration.residual[k]


def take_interface(exchange: ExchangeTable) -> None:
    """Let scales rise to the magnitudes of accepted interface values."""
    iteration: IterationTable = exchange.iteration[0]
    iteration.kept_relaxation = iteration.relaxation
    for k in range(iteration.count):
        magnitude: Real = absolute(exchange.values[iteration.columns[k]])
        if magnitude > iteration.magnitudes[k]:  # noqa: PLR1730 - so it becomes C
            iteration.magnitudes[k] = magnitude


def iterate(exchange: ExchangeTable) -> int:
    """Sweep until the interface values agree; goes on where it was left."""
    iteration: IterationTable = exchange.iteration[0]
    while True:
        if not iteration.is_compared:
            reached: int = advance_all(exchange)
            if reached != MADE:
                return reached
            iteration.found = compare(exchange)
            iteration.is_compared = 1
        if iteration.found <= iteration.tolerance:
            take_interface(exchange)
            return MADE
        outcome: int = MADE
        if iteration.inverse.columns:
            outcome = correct_by_newton(exchange)
        else:
            correct_by_relaxation(exchange)
        if outcome != MADE:
            return outcome
        iteration.made += 1
        if iteration.made == iteration.maximum:
            return NO_CONVERGENCE
        outcome = restore_all(exchange)
        if outcome != MADE:
            return outcome
        iteration.is_compared = 0
        begin_sweep(exchange)
        interpolate(exchange, iteration.trial, 0, exchange.outputs)


# -- the end of a step ------------------------------------------------------------------------------------------------


def add_missed(exchange: ExchangeTable) -> None:
    """Add to each entry the integral of what it missed in this step; what was made up for in it falls out.

    After Benedikt et al. (2013), "NEPCE: a nearly energy-preserving coupling element for weak-coupled problems and
    co-simulation". Signals that are followed miss nothing.
    """
    if exchange.output_rows > 1:
        interpolate(exchange, exchange.values, 0, exchange.outputs)
    if not exchange.has_missed:
        for k in range(exchange.entry_count):
            exchange.missed[k] = 0.0
    for m in range(exchange.member_count):
        member: MemberTable = exchange.members[m]
        for k in range(member.entries):
            source: int = member.sources[k]
            if exchange.corrected[source]:
                wanted: Real = 0.0
                if exchange.output_rows == 1:
                    wanted = 0.5 * (exchange.known[exchange.outputs + source] + exchange.values[source])
                else:
                    wanted = mean(exchange.polynomials, source, exchange.columns, exchange.output_rows)
                wanted = wanted * member.factors[k] + member.offsets[k]
                applied: Real = mean(member.taken, k, member.entries, exchange.rows)
                exchange.missed[member.first_entry + k] += exchange.step * (wanted - applied)
    exchange.has_missed = 1


def judge(exchange: ExchangeTable) -> None:
    """Record what holding and lines have missed in the step, as squares that fade."""
    count: int = exchange.outputs
    slopes: int = exchange.known_rows * count
    by_holding: int = (exchange.known_rows - 2) * count
    for j in range(count):
        present: Real = exchange.known[count + j]
        line: Real = exchange.extrapolation[slopes + count + j] * present
        line += exchange.extrapolation[slopes + 2 * count + j] * exchange.known[2 * count + j]
        held: Real = exchange.values[j] - present
        straight: Real = held - line
        by_line: int = by_holding + count
        exchange.known[by_holding + j] = FORGETTING * exchange.known[by_holding + j] + held * held
        exchange.known[by_line + j] = FORGETTING * exchange.known[by_line + j] + straight * straight


def take_length(exchange: ExchangeTable) -> None:
    """Take the length of the step as that of the last one."""
    if exchange.points > 1:
        exchange.lengths[1] = exchange.lengths[0]
    if exchange.points > 0:
        exchange.lengths[0] = exchange.step
    if exchange.length_count < exchange.points:
        exchange.length_count += 1


def go_on(exchange: ExchangeTable) -> int:
    """Take the outputs as the present, and what was before as the past, with the lengths of the steps between."""
    count: int = exchange.outputs
    rates: int = (exchange.known_rows - 1) * count
    for k in range(exchange.rate_count):
        source: RateSource = exchange.rate_sources[k]
        outcome: int = read_rates(exchange, source.port)
        if outcome != MADE:
            return outcome
        for j in range(source.port.count):
            exchange.known[rates + source.columns[j]] = source.port.rates[source.port.rate_places[j]]
    if exchange.takes_rates:
        for j in range(count):
            if exchange.unknown[j]:
                exchange.known[rates + j] = 0.0
    if exchange.adapts:
        judge(exchange)
    known: Reals = exchange.known
    values: Reals = exchange.values
    before: Reals = exchange.before
    for back in range(exchange.points):
        place: int = (exchange.points - back) * count  # the earliest first, as each takes the place of the one before
        for j in range(count):
            known[place + count + j] = known[place + j]
    for j in range(count):
        before[j] = known[count + j]
        known[count + j] = values[j]
    take_length(exchange)
    return MADE


def append(exchange: ExchangeTable) -> int:
    """Append outputs that another run of the members has reached as the end of a step."""
    weigh(exchange)
    return go_on(exchange)


def exchanged(exchange: ExchangeTable, side: Side) -> Real:
    """Return the energy in J that a side of a bond has seen in the step.

    By the mean of what it was given, and the trapezoidal rule for its own output.
    """
    total: Real = exchange.before[side.output] + exchange.values[side.output]
    return 0.5 * exchange.step * (mean(side.taken, 0, side.stride, exchange.rows) * total)


def record(exchange: ExchangeTable) -> None:
    """Write the row of the end of the step: outputs, reactions of joints, then the residual energy of each bond."""
    reactions: int = exchange.outputs
    bonds: int = reactions + exchange.reaction_count
    # As an offset of the array: a record has more numbers than an int counts.
    row: Reals = tail(exchange.recorded, (exchange.first_row + exchange.made) * (bonds + exchange.bond_count))
    values: Reals = exchange.values
    for j in range(exchange.outputs):
        row[j] = values[j]
    for k in range(exchange.reaction_count):
        row[reactions + k] = exchange.reactions[k]
    for k in range(exchange.bond_count):
        bond: Bond = exchange.bonds[k]
        got: Real = exchanged(exchange, bond.taker)
        given: Real = exchanged(exchange, bond.giver)
        bond.residual += got - given
        bond.exchanged += 0.5 * (absolute(got) + absolute(given))
        row[bonds + k] = bond.residual


def begin_step(exchange: ExchangeTable) -> int:
    """Begin a step: let inputs go on as they came, and save states where sweeps may be made again."""
    begin_sweep(exchange)
    exchange.saved_at = math.inf
    exchange.again = exchange.sweeps_again if exchange.points > exchange.length_count else 0
    weigh(exchange)
    extrapolate(exchange)
    if exchange.columns > exchange.outputs:
        follow_signals(exchange)
    if exchange.iteration:
        begin_iteration(exchange)
        return save_all(exchange)
    if exchange.again > 0:
        return save_all(exchange)
    return MADE


def make_step(exchange: ExchangeTable) -> int:
    """Make a coupled step; goes on where it was left."""
    outcome: int = MADE
    if not exchange.under_way:
        exchange.under_way = 1
        outcome = begin_step(exchange)
    if outcome == MADE:
        outcome = iterate(exchange) if exchange.iteration else sweep_again(exchange)
    if outcome != MADE:
        return outcome
    if exchange.corrects:
        add_missed(exchange)
    outcome = go_on(exchange)
    if outcome != MADE:
        return outcome
    values: Reals = exchange.values
    for j in range(exchange.outputs):
        if values[j] - values[j] != 0.0:  # infinite, or no number
            return NOT_FINITE
    record(exchange)
    exchange.under_way = 0
    return MADE
