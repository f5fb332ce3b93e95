"""A member in a coupled step: what its inputs run along, and the steps of its own.

Inputs run along polynomials c0 + c1 θ + c2 θ² over a communication step, θ running from 0 to 1. Their coefficients are
rows of one array, with a column for each output of all members and for each signal.

Written once, in the language of steps (`mbsfmu.stepping.language`), over the structures of `library.py`.
"""

from __future__ import annotations

from mbsfmu.cosim.compiled.library import MADE, STRAIGHT, ExchangeTable, MemberTable
from mbsfmu.cosim.compiled.members import make_unit_step, write_port, write_slopes
from mbsfmu.stepping.language import Flags, Places, Real, Reals, tail

# -- polynomials ------------------------------------------------------------------------------------------------------


def set_weight(exchange: ExchangeTable, weights: Reals, row: int, known: int, weight: Real) -> None:
    """Set what a known row counts in a coefficient, for all outputs."""
    first: int = (row * exchange.known_rows + known) * exchange.outputs
    for j in range(exchange.outputs):
        weights[first + j] = weight


def weigh_points(exchange: ExchangeTable) -> None:
    """Find the weights of polynomials through the last points, as many as are known, and through the end."""
    step: Real = exchange.step
    last: Real = exchange.lengths[0]
    second: Real = exchange.lengths[1]
    for k in range(exchange.output_rows * exchange.known_rows * exchange.outputs):
        exchange.extrapolation[k] = 0.0
        exchange.interpolation[k] = 0.0
    set_weight(exchange, exchange.extrapolation, 0, 1, 1.0)
    set_weight(exchange, exchange.interpolation, 0, 1, 1.0)
    set_weight(exchange, exchange.interpolation, 1, 0, 1.0)
    set_weight(exchange, exchange.interpolation, 1, 1, -1.0)
    if exchange.length_count == 1:
        set_weight(exchange, exchange.extrapolation, 1, 1, step / last)
        set_weight(exchange, exchange.extrapolation, 1, 2, -step / last)
    for k in range(3):  # divided differences of three points, each from the later point to the earlier ones
        later: Real = 1.0 if k == 0 else -1.0 if k == 1 else 0.0
        earlier: Real = 0.0 if k == 0 else 1.0 if k == 1 else -1.0
        if exchange.length_count == 2:
            slope: Real = later / last
            bend: Real = (slope - earlier / second) / (last + second)
            set_weight(exchange, exchange.extrapolation, 1, 1 + k, step * (slope + last * bend))
            set_weight(exchange, exchange.extrapolation, 2, 1 + k, step * step * bend)
        if exchange.output_rows == 3 and exchange.length_count > 0:
            steep: Real = later / step
            bent: Real = (steep - earlier / last) / (step + last)
            set_weight(exchange, exchange.interpolation, 1, k, step * (steep - step * bent))
            set_weight(exchange, exchange.interpolation, 2, k, step * step * bent)


def weigh_rates(exchange: ExchangeTable) -> None:
    """Find the weights for outputs that give their derivatives by time: with these, and parabolas to the end."""
    count: int = exchange.outputs
    rates: int = exchange.known_rows - 1
    for j in range(count):
        if not exchange.unknown[j]:
            for k in range(exchange.known_rows):
                for row in range(1, exchange.output_rows):
                    exchange.extrapolation[(row * exchange.known_rows + k) * count + j] = 0.0
                    exchange.interpolation[(row * exchange.known_rows + k) * count + j] = 0.0
            first: int = exchange.known_rows * count + j
            second: int = first + exchange.known_rows * count
            exchange.extrapolation[first + rates * count] = exchange.step
            exchange.interpolation[first + rates * count] = exchange.step
            exchange.interpolation[second] = 1.0
            exchange.interpolation[second + count] = -1.0
            exchange.interpolation[second + rates * count] = -exchange.step


def weigh(exchange: ExchangeTable) -> None:
    """Find the weights of what is known in polynomials over the step, unless they are those of the last one.

    Coefficients are linear in what is known: a small matrix for each output, which changes with the lengths of the
    steps only.
    """
    known: int = exchange.length_count + 1
    if exchange.output_rows == 1:
        return
    same: int = exchange.weighed_count == known and exchange.weighed[0] == exchange.step
    same = same and (known < 2 or exchange.weighed[1] == exchange.lengths[0])
    if same and (known < 3 or exchange.weighed[2] == exchange.lengths[1]):
        return
    exchange.weighed_count = known
    exchange.weighed[0] = exchange.step
    exchange.weighed[1] = exchange.lengths[0]
    exchange.weighed[2] = exchange.lengths[1]
    weigh_points(exchange)
    if exchange.takes_rates:
        weigh_rates(exchange)


def combine(exchange: ExchangeTable, weights: Reals, begin: int, end: int) -> None:
    """Combine what is known of outputs from one to before another to coefficients, in the order of the known rows."""
    polynomials: Reals = exchange.polynomials
    known: Reals = exchange.known
    count: int = exchange.outputs
    for row in range(exchange.output_rows):
        place: int = row * exchange.columns
        for j in range(begin, end):
            polynomials[place + j] = 0.0
        for k in range(exchange.known_rows):
            first: int = (row * exchange.known_rows + k) * count
            for j in range(begin, end):
                polynomials[place + j] += weights[first + j] * known[k * count + j]


def hold(exchange: ExchangeTable, values: Reals, begin: int, end: int) -> None:
    """Let outputs stay at values where they are held over the step: always, or because lines have missed it lately."""
    polynomials: Reals = exchange.polynomials
    known: Reals = exchange.known
    held: Flags = exchange.held
    by_line: int = (exchange.known_rows - 1) * exchange.outputs
    by_holding: int = by_line - exchange.outputs
    adapts: int = exchange.adapts
    for j in range(begin, end):
        # Written so that missed squares that are no numbers hold the output too.
        if held[j] or (adapts and not known[by_line + j] <= STRAIGHT * known[by_holding + j]):
            polynomials[j] = values[j]
            for row in range(1, exchange.output_rows):
                polynomials[row * exchange.columns + j] = 0.0


def extrapolate(exchange: ExchangeTable) -> None:
    """Let outputs go on as they came."""
    polynomials: Reals = exchange.polynomials
    present: Reals = tail(exchange.known, exchange.outputs)
    if exchange.output_rows == 1:
        for j in range(exchange.outputs):
            polynomials[j] = present[j]
        return
    combine(exchange, exchange.extrapolation, 0, exchange.outputs)
    hold(exchange, present, 0, exchange.outputs)


def interpolate(exchange: ExchangeTable, values: Reals, begin: int, end: int) -> None:
    """Let the outputs from one to before another run to values at the end of the step."""
    polynomials: Reals = exchange.polynomials
    known: Reals = exchange.known
    if exchange.output_rows == 1:
        for j in range(begin, end):
            polynomials[j] = values[j]
        return
    for j in range(begin, end):
        known[j] = values[j]
    combine(exchange, exchange.interpolation, begin, end)
    hold(exchange, values, begin, end)


def follow_signals(exchange: ExchangeTable) -> None:
    """Let the columns behind the outputs follow signals: held, or straight to their values at the end."""
    count: int = exchange.columns - exchange.outputs
    first: int = exchange.made * count
    for row in range(exchange.rows):
        place: int = row * exchange.columns + exchange.outputs
        for j in range(count):
            exchange.polynomials[place + j] = 0.0
            if row == 0:
                exchange.polynomials[place + j] = exchange.signals_after[first + j]
            elif row == 1 and exchange.output_rows > 1:
                exchange.polynomials[place + j] = exchange.signals_before[first + j] - exchange.signals_after[first + j]


def mean(coefficients: Reals, first: int, apart: int, rows: int) -> Real:
    """Return the mean over the step of a polynomial whose coefficients begin at a place, and stand so far apart."""
    result: Real = coefficients[first]
    for power in range(1, rows):
        result += coefficients[first + power * apart] / float(power + 1)
    return result


# -- inputs -----------------------------------------------------------------------------------------------------------


def take(exchange: ExchangeTable, member: MemberTable) -> None:
    """Take what the inputs of a member run along, over the whole step."""
    polynomials: Reals = exchange.polynomials
    taken: Reals = member.taken
    factors: Reals = member.factors
    sources: Places = member.sources
    entries: int = member.entries
    converts: int = member.converts
    for row in range(exchange.rows):
        place: int = row * exchange.columns
        for k in range(entries):
            taken[row * entries + k] = polynomials[place + sources[k]]
            if converts:
                taken[row * entries + k] *= factors[k]
    if converts:
        for k in range(entries):
            taken[k] += member.offsets[k]
    if exchange.has_missed:
        for k in range(entries):
            taken[k] += exchange.missed[member.first_entry + k] / exchange.step


def portion_of(exchange: ExchangeTable, member: MemberTable) -> Reals:
    """Return what the inputs run along in the present one of the member's own steps, in the θ of that."""
    taken: Reals = member.taken
    portion: Reals = member.portion
    if member.rate == 1:
        return taken
    entries: int = member.entries
    begin: Real = float(member.part) / float(member.rate)
    width: Real = float(member.part + 1) / float(member.rate) - begin
    for k in range(exchange.rows * entries):
        portion[k] = taken[k]
    if exchange.rows > 1:
        for k in range(entries):
            portion[k] += begin * taken[entries + k]
            portion[entries + k] *= width
    if exchange.rows > 2:
        for k in range(entries):
            portion[k] += begin * begin * taken[2 * entries + k]
            portion[entries + k] += 2.0 * begin * width * taken[2 * entries + k]
            portion[2 * entries + k] *= width * width
    return portion


def set_inputs(exchange: ExchangeTable, member: MemberTable, step: Real) -> int:
    """Set the inputs for one step of a member's own, in s.

    A member that interpolates gets a straight line, of a parabola the one with the same mean and the same end
    (θ² ≈ 4/3 θ − 1/3): what it integrates stays right to third order, for which the mean must be, and so do outputs
    that depend directly on the input, which show its end. One that holds its inputs gets the mean. An output of it that
    depends directly on the input shows the mean at the end, and is first order: the standard does not allow to set the
    end value and read again without a step.
    """
    entries: int = member.entries
    given: Reals = portion_of(exchange, member)
    values: Reals = member.inputs.values
    slopes: Reals = member.inputs.slopes
    if not member.ramps:
        if not member.shares:
            for k in range(entries):
                values[k] = mean(given, k, entries, exchange.rows)
        return write_port(exchange, member.inputs)
    for k in range(entries):
        start: Real = given[k]
        slope: Real = given[entries + k]
        if exchange.rows > 2:
            start += given[2 * entries + k] * (-1.0 / 3.0)
            slope += given[2 * entries + k] * (4.0 / 3.0)
        values[k] = start
        slopes[k] = slope / step
    outcome: int = write_port(exchange, member.inputs)
    if outcome == MADE:
        return write_slopes(exchange, member.inputs)
    return outcome


def advance(exchange: ExchangeTable, member: MemberTable) -> int:
    """Let a member go over the step; one that was left inside it goes on from there."""
    step: Real = exchange.step / float(member.rate)
    if member.part == 0:
        take(exchange, member)
    while member.part < member.rate:
        outcome: int = set_inputs(exchange, member, step)
        if outcome != MADE:
            return outcome
        begin: Real = exchange.times[exchange.first + exchange.made]
        begin += float(member.part) * exchange.step / float(member.rate)
        member.part += 1
        outcome = make_unit_step(exchange, member, begin, step)
        if outcome != MADE:
            return outcome
    member.part = 0
    return MADE
