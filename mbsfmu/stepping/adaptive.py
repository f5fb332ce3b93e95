"""Steps that are chosen by their error: how large one is, what to begin with, and what follows a try.

Written once, in the language of steps (`mbsfmu.stepping.language`): for linearly implicit and explicit methods, the
interpreter, C of FMUs and of runs in process, and ensembles. A group tries a step of every machine at once, each with a
size and an end of its own; one machine tries until a step is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Protocol

from mbsfmu.base.times import SAME_TIME
from mbsfmu.stepping.language import (
    Mask,
    PassingReals,
    Real,
    Reals,
    Table,
    Text,
    absolute,
    divided,
    is_finite,
    maximum,
    minimum,
    one_machine,
    power,
    root,
    where,
)

SAFETY = 0.9
"""Safety factor of the step size."""
LEAST_FACTOR = 0.2
"""How much smaller than the last one a step may be."""
FIRST_CHANGE = 0.01
"""Relative change of y in the first step, and its relative error."""
STANDING = 1e-5
"""Magnitudes below this, relative to the tolerances, are not used for the first step …"""
FIRST_STEP = 1e-6
"""… which is then this in s."""
SLIGHT = 1e-5
"""Change of all elements of y in a step, relative to their scales, below which the tolerances are smaller in
proportion: what moves little, or has just begun to, is as exact as what moves far …"""
LEAST_TOLERANCE = 1e-13
"""… down to this absolute tolerance, near round-off, and not in the shortest steps: where rates jump, errors decrease
in proportion to steps, as changes do."""
SMALLEST_SHARE = 1e-14
"""Fraction of the interval below which a step has failed: time has some fifty more values in it."""
CRAWLING_STEPS = 1000
"""This number of consecutive steps that together …"""
CRAWLING_SHARE = 1e-7
"""… cover less than this fraction of the interval counts as stagnation."""
NOT_SMOOTH = ": the equations are too stiff or not continuous there"
"""Cause of steps that hardly advance, if no other is found."""
REFUSED_STEPS = 250
"""Where so many of them cannot be evaluated at all …"""
REFUSED_SHARE = 1e-2
"""… it is this fraction: where round-off keeps loops open, steps of any size fail by chance, and runs would not end."""


@dataclass
class Way:
    """An interval without events, and how far steps have come in it."""

    origin: Real = 0.0  # in s, where its times count from: late ones would cost short steps their digits
    whole: Real = 0.0  # how long it is in s
    target: Real = 0.0  # where steps are asked to come to; the last one may end behind
    elapsed: Real = 0.0  # where they are
    suggested: Real = 0.0  # the next step in s; 0 where none is known
    most: Real = 0.0  # the factor by which the one behind it may be larger
    tries: Real = 0.0  # of steps since that was last looked at …
    refused: Real = 0.0  # … those whose equations could not be evaluated, and …
    looked: Real = 0.0  # … where they were then


@dataclass
class Attempt:
    """A step that is tried."""

    start: Annotated[PassingReals, "SIZE"]  # y where it begins …
    rates: Annotated[PassingReals, "SIZE"]  # … y' there …
    drift: Annotated[PassingReals, "SIZE"]  # … and its derivative by time
    end: Annotated[PassingReals, "SIZE"]  # y where it ends
    error: Annotated[PassingReals, "SIZE"]  # of that
    increments: Annotated[PassingReals, "STAGES * SIZE"]  # of all stages, one behind the other
    weights: Annotated[PassingReals, "STAGES"]  # of stages before one for where it is evaluated …
    couples: Annotated[PassingReals, "STAGES"]  # … and for its right side, in 1/s
    time: Real = 0.0  # in s, where it begins
    step: Real = 1.0  # its size in s
    reached: Real = 0.0  # where it ends, in s since the origin of its way


class Motion(Protocol):
    """The state of a machine."""

    tolerance_factor: Real


class Machine(Protocol):
    """A machine, or a group of them."""

    SIZE: int  # elements of y, of which the first …
    WATCHED: int  # … count for the error
    ORDER: float  # of the method
    MOST_FACTOR: float  # how much larger than the last one a step may be
    FOLLOWS_SLIGHT: bool  # whether tolerances follow what moves little
    ABSOLUTE_TOLERANCE: float
    RELATIVE_TOLERANCE: float
    SOLVER_NAME: Text
    explicit_scales: Table
    state: Motion
    refusal: Text  # why the equations could not be evaluated, the last time that this was so

    def find_rates(self, time: Real, values: Reals, rates: PassingReals) -> Mask:
        """Evaluate y'; returns whether it can be, else there is a reason."""
        ...

    def find_end(self, attempt: Attempt) -> Mask:
        """Find where a step ends, and the error there; returns whether it can be, else there is a reason."""
        ...

    def take_end(self, way: Way, attempt: Attempt) -> Mask:
        """Take where a step ends as the state, and what is wanted on the way; returns whether it can be."""
        ...

    def count_refusal(self) -> None:
        """Take notice of a step that is not made, and of the reason."""
        ...

    @one_machine
    def begin_try(self) -> None:
        """Forget the reason."""
        ...

    @one_machine
    def is_stopped(self) -> Mask:
        """Return whether the run is to end."""
        ...

    @one_machine
    def fail(self, sentence: Text, *values: object) -> None:
        """Say why steps fail."""
        ...

    @one_machine
    def fail_because(self, sentence: Text, *values: object) -> None:
        """Say that they fail, and why the last try did, where its equations could not be evaluated."""
        ...


def size_of(machine: Machine, count: int, start: Reals, end: Reals, difference: Reals) -> Real:
    """Return the root mean square of first elements of a difference by the tolerances; infinite if it is not finite."""
    total: Real = 0.0
    for i in range(count):
        largest: Real = maximum(absolute(start[i]), absolute(end[i]))
        tolerance: Real = machine.ABSOLUTE_TOLERANCE * machine.explicit_scales[i] + machine.RELATIVE_TOLERANCE * largest
        share: Real = difference[i] / (machine.state.tolerance_factor * tolerance)
        total += share * share
    return where(is_finite(total), root(total / maximum(count, 1.0)), math.inf)


def slightness(machine: Machine, attempt: Attempt) -> Real:
    """Return the fraction of the tolerances that is allowed in a step, by the change of y in it."""
    change: Real = LEAST_TOLERANCE / (machine.state.tolerance_factor * machine.ABSOLUTE_TOLERANCE)
    for i in range(machine.WATCHED):
        share: Real = absolute(attempt.end[i] - attempt.start[i]) / (SLIGHT * machine.explicit_scales[i])
        change = maximum(share, change)
    return minimum(1.0, change)


def choose_first_step(machine: Machine, way: Way, attempt: Attempt) -> None:
    """Choose the step to begin with, by the rates and how they change [Hairer1993, sect. II.4]."""
    size: Real = size_of(machine, machine.WATCHED, attempt.start, attempt.start, attempt.start)
    speed: Real = size_of(machine, machine.WATCHED, attempt.start, attempt.start, attempt.rates)
    # Of what is at rest rates are round-off, which must not decide on anything: they are compared with no number.
    step: Real = where(size < STANDING, minimum(way.whole, FIRST_STEP), way.whole)
    if size >= STANDING and speed * step > FIRST_CHANGE * size:
        step = FIRST_CHANGE * size / speed
    way.suggested = step
    for i in range(machine.SIZE):
        attempt.end[i] = attempt.start[i] + step * attempt.rates[i]
    if machine.find_rates(attempt.time + step, attempt.end, attempt.error):
        for i in range(machine.SIZE):
            attempt.error[i] -= attempt.rates[i]
        bend: Real = size_of(machine, machine.WATCHED, attempt.start, attempt.start, attempt.error) / step
        fastest: Real = maximum(speed, bend)
        accurate: Real = where(fastest > 0.0, power(divided(FIRST_CHANGE, fastest), 1.0 / machine.ORDER), way.whole)
        way.suggested = minimum(way.whole, minimum(100.0 * step, accurate))


def is_long(way: Way) -> Mask:
    """Return whether the next step is long enough to lead anywhere."""
    return way.suggested >= SMALLEST_SHARE * way.whole


@one_machine
def say_why_it_crawls(machine: Machine, way: Way, made: Real, often: Mask) -> None:
    """Say why steps will not come to the end of the way."""
    time: Real = way.origin + way.elapsed
    if often:
        sentence: Text = "%s fails at t = %.9g s again and again, however short its steps: %s"
        machine.fail(sentence, machine.SOLVER_NAME, time, machine.refusal)
    else:
        machine.fail(
            "%s fails at t = %.9g s: %d steps have come no farther than %.3g s of %.3g s%s",
            machine.SOLVER_NAME,
            time,
            CRAWLING_STEPS,
            made,
            way.whole,
            NOT_SMOOTH,
        )


def is_coming(machine: Machine, way: Way) -> Mask:
    """Count a try; returns whether steps will come to the end of the way, else there is a reason."""
    way.tries += 1.0
    if way.tries < CRAWLING_STEPS:
        return True
    made: Real = way.elapsed - way.looked
    often: Mask = way.refused >= REFUSED_STEPS
    comes: Mask = made >= where(often, REFUSED_SHARE, CRAWLING_SHARE) * way.whole
    if not comes:
        say_why_it_crawls(machine, way, made, often)
    way.tries = 0.0
    way.refused = 0.0
    way.looked = way.elapsed
    return comes


def try_step(machine: Machine, way: Way, attempt: Attempt) -> Mask:
    """Try the step that is suggested; returns whether it is made. The next one is suggested then, or a shorter one."""
    machine.begin_try()
    is_last: Mask = way.elapsed + way.suggested * (1.0 + SAME_TIME) >= way.whole
    attempt.step = where(is_last, way.whole - way.elapsed, way.suggested)
    attempt.reached = where(is_last, way.whole, way.elapsed + way.suggested)
    error: Real = math.inf
    refused: Mask = True
    if machine.find_end(attempt):
        error = size_of(machine, machine.WATCHED, attempt.start, attempt.end, attempt.error)
        refused = False
        if machine.FOLLOWS_SLIGHT:
            slight: Real = slightness(machine, attempt)
            if attempt.step * LEAST_FACTOR >= SMALLEST_SHARE * way.whole:
                error = error / slight
    factor: Real = where(error > 0.0, SAFETY * power(error, -1.0 / machine.ORDER), machine.MOST_FACTOR)
    factor = minimum(machine.MOST_FACTOR, maximum(LEAST_FACTOR, factor))
    made: Mask = error <= 1.0
    if made:
        made = machine.take_end(way, attempt)
        refused = not made
    if made:
        following: Real = minimum(factor, way.most) * attempt.step
        # A step that was cut off at the end of the interval says little about how large the next may be.
        way.suggested = where(is_last, maximum(following, way.suggested), following)
        way.elapsed = attempt.reached
        way.most = machine.MOST_FACTOR
    else:
        machine.count_refusal()
        way.refused += where(refused, 1.0, 0.0)
        way.most = 1.0
        way.suggested = attempt.step * where(error <= 1.0, LEAST_FACTOR, minimum(factor, 1.0))
    return made


@one_machine
def make_step(machine: Machine, way: Way, attempt: Attempt) -> Mask:
    """Try steps from the state until one is made; returns whether it is, else there is a reason."""
    if not is_long(way):
        choose_first_step(machine, way, attempt)
    while True:
        if machine.is_stopped():
            return False
        if not is_coming(machine, way):
            return False
        if try_step(machine, way, attempt):
            return True
        if not is_long(way):
            machine.fail_because(
                "the step of %s at t = %.9g s fails however small it is", machine.SOLVER_NAME, attempt.time
            )
            return False
