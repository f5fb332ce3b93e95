"""From parameters to a consistent start: calculated parameters, closed loops, states."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.equations.joint_coordinates import MotionState, coordinate_at
from mbsfmu.equations.kinematics import REFERENCE
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space, pivot_columns, pivot_lengths
from mbsfmu.initialization.closing_loops import (
    OnConstraints,
    OwnStarts,
    close_loops,
    closure_at,
    find_loop_equations,
    given_ranks,
    onto_velocity_constraints,
    rank_of,
    refuse_locked_motion,
)
from mbsfmu.model.body import RigidBody
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.checks import check_parameters
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.connections import check_inertia
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.joint_reactions import refuse_massless_motion
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import (
    LoopEquations,
    StartLimits,
    System,
    SystemContext,
    longest_lever_arm,
    require_capability,
    starts,
)
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Assembled:
    """The last assembly.

    Attributes
    ----------
    guess, given
        Start values of coordinates and velocities, each of shape (n,).
    coordinates, velocities
        Those on the constraints.
    closure
        Φ, Φ_z and Φ_t of all constraints at the guess and at the coordinates.
    """

    guess: Floats
    given: Floats
    coordinates: OnConstraints
    velocities: OnConstraints
    closure: list[list[Floats]]

    @cached_property
    def rank(self) -> int:
        """How many constraints are independent at the coordinates."""
        return rank_of(self.closure[1][1])


class Assembly:
    """Coordinates and velocities of a system on its constraints.

    They follow from start values and from the loop equations alone. A parameter or an input that is in these equations
    changes Φ, Φ_z or Φ_t where the search begins or ends; where none of them differs, the last result holds.

    Parameters
    ----------
    functions
        Functions of the system, all constraints in use.

    Attributes
    ----------
    functions
        As given.
    last
        The last assembly; None before the first one.
    own, own_velocities
        Start values of coordinates and velocities of the model as it was made.
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self.functions = functions
        set_now = functions.parameters.copy()
        functions.parameters[:] = starts(functions.system.parameters)
        values, written = functions.start()[:2], functions.system.written
        self.own, self.own_velocities = (OwnStarts.of(*each) for each in zip(values, written, strict=True))
        functions.parameters[:] = set_now
        self.last: Assembled | None = None

    def close(self) -> tuple[Floats, Floats]:
        """Return coordinates and velocities, each of shape (n,), for the parameters and inputs that are set.

        Raises
        ------
        InputError
            When the loops cannot be closed, or a prescribed motion drives a coordinate that is locked.
        """
        functions = self.functions
        guess, given, _ = (part.copy() for part in functions.start())
        if self.last is None or not self._holds(self.last, guess, given):
            refuse_locked_motion(functions, guess)
            coordinates = close_loops(functions, guess, self.own)
            velocities = onto_velocity_constraints(functions, coordinates.values, given, self.own_velocities)
            closure = [closure_at(functions, place) for place in (guess, coordinates.values)]
            self.last = Assembled(guess, given, coordinates, velocities, closure)
        return self.last.coordinates.values.copy(), self.last.velocities.values.copy()

    def _holds(self, last: Assembled, guess: Floats, given: Floats) -> bool:
        """Tell whether start values and loop equations are those of the last assembly."""
        if not (np.array_equal(guess, last.guess) and np.array_equal(given, last.given)):
            return False
        return all(
            all(map(np.array_equal, closure_at(self.functions, place), before))
            for place, before in zip((last.guess, last.coordinates.values), last.closure, strict=True)
        )


logger = logging.getLogger(__name__)

MOVED = 1e-3
"""Change of a coordinate in rad, or relative to a lever arm, above which a warning is given."""
CHANGED = 1e-6
"""Change of a velocity relative to the largest above which a warning is given."""
ROUND_OFF = 1e-12
"""Velocity in rad/s or m/s below which it counts as zero."""


def bounds(coordinates: Sequence[Variable], arm: float) -> Floats:
    """Return the change of each coordinate without a warning, shape (n,); `arm` is a length in m."""
    return np.array([MOVED * arm if each.unit == "m" else MOVED for each in coordinates])


def warn_of_changed_start(
    functions: SystemFunctions, coordinates: Floats, velocities: Floats, arm: float, own: tuple[OwnStarts, OwnStarts]
) -> None:
    """Warn in the log of differences from start values that were set; where none was, from those that the model has.

    The sentence names the coordinate that moves furthest, the loop equation that is violated most, and how many
    others move too.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates, velocities
        On the constraints, each of shape (n,).
    arm
        A length in m that distances are measured by.
    own
        Start values of coordinates and velocities of the model as it was made.
    """
    system = functions.system
    given, given_velocities, _ = functions.start()
    if not system.constraints:
        return
    functions.coordinates[:] = given
    violation, jacobian, drifts = (each.copy() for each in functions.all_closure())
    functions.coordinates[:] = coordinates
    _warn(
        system.name, system.coordinates, given, own[0], coordinates, bounds(system.coordinates, arm),
        f"the start values do not close the loops, least of all at joint {_most(system.constraints, violation)}",
    )  # fmt: skip
    least = max(CHANGED * np.max(np.abs(given_velocities), initial=0.0), ROUND_OFF)
    _warn(
        system.name, system.velocities, given_velocities, own[1], velocities, np.full(len(velocities), least),
        "the start velocities contradict the loops, most of all at joint "
        f"{_most(system.constraints, jacobian @ given_velocities + drifts)}",
    )  # fmt: skip


def _most(names: Sequence[str], violation: Floats) -> str:
    return names[int(np.argmax(np.abs(violation)))]


def _warn(
    name: str, variables: Sequence[Variable], given: Floats, own: OwnStarts, found: Floats, least: Floats, why: str
) -> None:
    ranks = given_ranks(given, own)
    changes = np.where(ranks < max(1, np.max(ranks, initial=0)), 0.0, np.abs(found - given))
    told = np.flatnonzero(changes > least)
    if len(told):
        worst = int(told[np.argmax(changes[told] / least[told])])
        variable = variables[worst]
        others = f"; {len(told) - 1} more start values are changed too" if len(told) > 1 else ""
        logger.warning(
            "%s: %s starts at %.6g instead of %.6g %s: %s%s",
            name,
            variable.name,
            found[worst],
            given[worst],
            variable.unit,
            why,
            others,
        )


def unused_starts(
    mechanism: Mechanism, parts: MechanismParts, motion: MotionState, parameters: Floats, arm: float
) -> Iterator[str]:
    """Yield a clause on each start value of a joint that closes a loop, where it starts elsewhere.

    Defaults are not given, as for other joints. Rates of joints that turn freely are not compared: those of their
    Cardan angles are not the angular velocity that is given.

    Parameters
    ----------
    mechanism
        The mechanism.
    parts
        Its equations.
    motion
        Of its bodies at the start.
    parameters
        Of the mechanism.
    arm
        A length in m that distances are measured by.
    """
    fastest = max((abs(rate) for rate in motion.velocities.tolist()), default=0.0)
    for joint in parts.topology.cuts:
        each = zip(joint.coordinate_names, joint.elements, joint.written_starts, strict=True)
        for name, element, (placed, moved) in each:
            if not placed and not moved:
                continue
            of, unit = f"{joint.name}.{name}", "m" if element.slides else "rad"
            try:
                found = coordinate_at(mechanism, parts.points, of).motion(motion, parameters)
            except DataError:  # a coordinate that cannot be measured
                continue
            place, rate = float(found.coordinate), float(found.rate)
            away = place - element.start
            away = abs(away) if element.slides else abs(math.remainder(away, 2.0 * math.pi))
            if placed and away > (MOVED * arm if element.slides else MOVED):
                yield f"{of} starts at {place:.6g} instead of {element.start:.6g} {unit}"
            least = max(CHANGED * max(fastest, abs(element.start_rate)), ROUND_OFF)
            if moved and not joint.turns_freely and abs(rate - element.start_rate) > least:
                yield f"the rate of {of} starts at {rate:.6g} instead of {element.start_rate:.6g} {unit}/s"


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


SLOW = 1.0 / 30.0
"""Rate of a slow motion in 1/s: a share of the machine's size, or rad, a second."""
MOST_WATCHED = 256
"""Constraint equations in absolute coordinates beyond which nobody looks for change points in kernel loops."""


@dataclass(frozen=True)
class Start:
    """The start of a system.

    Attributes
    ----------
    coordinates, velocities, states
        z, ż and x on the constraints; coordinates of the start system.
    parameters
        All parameters, those included that other parts calculate.
    calculated
        Calculated parameters by name.
    unheld
        What actuators of parts cannot hold there.
    """

    coordinates: Floats
    velocities: Floats
    states: Floats
    parameters: Floats
    calculated: dict[str, float]
    unheld: tuple[Unheld, ...]


@dataclass(frozen=True)
class BalancedPart:
    """A part whose calculated parameters keep it at rest.

    Attributes
    ----------
    functions
        Functions of the part.
    first_parameter
        Where its parameters stand among those of the whole.
    inputs
        Indices of its inputs among those of the whole; −1 where a connection drives one.
    """

    functions: SystemFunctions
    first_parameter: int
    inputs: tuple[int, ...]

    @cached_property
    def assembly(self) -> Assembly:
        """Its assembly."""
        return Assembly(self.functions)


class Initialization:
    """Computes the start of a system from its parameters.

    Parameters
    ----------
    system
        The system; the start is found in the coordinates of its start system.
    traces
        Has what was traced of the system before.
    inputs
        Values of the inputs at the start, which loop equations may depend on; those of the system by default.

    Attributes
    ----------
    system
        The start system, as a whole of its parts.
    traces
        As given.
    functions
        Functions of it.
    calculated
        Variables of the calculated parameters, part by part.
    balanced_parts
        The parts that these belong to.
    feeds
        Pairs of indices: a calculated parameter, and the parameter that takes its value.
    assembly
        The assembly of the whole.

    Raises
    ------
    InputError
        When the loops cannot be closed at the model's own parameters.
    DataError
        When a body can move there without kinetic energy.
    """

    def __init__(self, system: System, traces: Traces | None = None, inputs: Floats | None = None) -> None:
        self.traces = traces = traces or Traces()
        self.system = system = CoupledSystem.of(system.start_system)
        self.functions = SystemFunctions(system, traces=traces.of("start"))
        balanced = [index for index, part in enumerate(system.parts) if part.balances]
        self.balanced_parts = tuple(
            BalancedPart(
                SystemFunctions(system.parts[index], traces=traces.of("part", index)),
                system.parameters_of(index).start,
                system.inputs_of(index),
            )
            for index in balanced
        )
        self.calculated = tuple(variable for index in balanced for variable in system.calculated(index))
        own = [(index, variable.name) for index in balanced for variable, _ in system.parts[index].balances]
        self.feeds = tuple(
            (own.index((feed.source, feed.name)), system.parameters_of(feed.target).start + feed.parameter)
            for feed in system.feeds
        )
        self._inputs = starts(system.inputs) if inputs is None else inputs
        self.assembly = Assembly(self.functions)
        self._checked: Floats | None = None
        self._start = self.run(starts(system.parameters))
        self._refuse_massless_motion()

    def _refuse_massless_motion(self) -> None:
        """Check the mechanisms where they start."""
        functions, system = self.functions, self.system
        functions.coordinates[:] = self._start.coordinates
        jacobian = functions.all_closure()[1]
        references = system.start_references(self._start.coordinates)
        for _, part, own, orientations in self._mechanisms():
            refuse_massless_motion(
                part.mechanism, self._start.coordinates[own], references[orientations], jacobian[:, own]
            )
        check_inertia(functions, jacobian)

    def _mechanisms(self) -> Iterator[tuple[int, MechanismSystem, slice, slice]]:
        """Yield the index of each mechanism among the parts, the mechanism, its coordinates and its references."""
        first = turning = 0
        for index, part in enumerate(self.system.parts):
            own = slice(first, first + len(part.coordinates))
            orientations = slice(turning, turning + REFERENCE * part.references)
            if isinstance(part, MechanismSystem):
                yield index, part, own, orientations
            first, turning = own.stop, orientations.stop

    def warn_unused_starts(self) -> None:
        """Warn in the log of start values of joints that close loops, where these start elsewhere."""
        start, references = self._start, self.system.start_references(self._start.coordinates)
        for index, part, own, orientations in self._mechanisms():
            if not part.parts.topology.cuts:
                continue
            parameters = start.parameters[self.system.parameters_of(index)]
            coordinates, velocities = start.coordinates[own], start.velocities[own]
            kinematics = part.parts.kinematics
            frames = kinematics.frames(coordinates, references[orientations], parameters)
            motion = MotionState(coordinates, velocities, frames, kinematics.velocities(frames, velocities))
            for clause in unused_starts(part.mechanism, part.parts, motion, parameters, self.lever_arm):
                logger.warning(
                    "%s: %s: this joint closes a loop, and start values count for the other joints of the loop only; "
                    "give it to one of these",
                    *(self.system.name, clause),
                )

    @cached_property
    def loops(self) -> LoopEquations:
        """The loop equations at the model's own parameters."""
        return find_loop_equations(self.functions, self._start.coordinates)

    @cached_property
    def locked(self) -> bool:
        """Whether no body can move: loop equations determine all coordinates, without prescribed motion."""
        coordinates = len(self.system.coordinates)
        return bool(coordinates) and self.loops.rank == coordinates and not self.functions.driven

    @property
    def lever_arm(self) -> float:
        """The longest lever arm of a loop in m: how far a distance in it moves with an angle at most."""
        return longest_lever_arm(self.system.constraint_units, self.loops.rows, self.loops.scales)

    @property
    def energy_scales(self) -> tuple[float, ...]:
        """Scale of the energies of each mechanism in J.

        The work of the weights over the longest lever arm, and what bodies have as kinetic energy that move by it, or
        by a radian, in half a minute: a scale for mechanisms without gravity.
        """
        mechanisms = [part.mechanism for part in self.system.parts if isinstance(part, MechanismSystem)]
        return tuple(_energy_scale(each, self.lever_arm) for each in mechanisms)

    @property
    def largest_inertia(self) -> float:
        """The largest element of the mass matrix' diagonal at the model's start, in kg m² or kg; 0 without bodies."""
        functions = self.functions
        functions.parameters[:], functions.coordinates[:] = self._start.parameters, self._start.coordinates
        return float(np.max(functions.equilibrium()[0].diagonal(), initial=0.0))

    @property
    def apparent_inertias(self) -> Floats:
        """1 / (M⁻¹)ᵢᵢ of the coordinates at the model's start, in kg m² or kg, shape (n,)."""
        return self.system.apparent_inertias(self._model_start())

    @property
    def carried_inertias(self) -> Floats:
        """Inertia of outboard masses for each coordinate at the model's start, in kg m² or kg, shape (n,)."""
        return self.system.carried_inertias(self._model_start())

    def _model_start(self) -> SystemContext:
        start = self._start
        references = self.system.start_references(start.coordinates)
        return replace(
            self.functions.numeric_instant(),
            coordinates=start.coordinates, parameters=start.parameters, references=references,
        )  # fmt: skip

    def warn_changes(self, start: Start) -> None:
        """Warn in the log of differences between the start and its parameters."""
        self.functions.parameters[:] = start.parameters
        own = self.assembly.own, self.assembly.own_velocities
        warn_of_changed_start(self.functions, start.coordinates, start.velocities, self.lever_arm, own)
        if not np.array_equal(start.parameters, self._start.parameters):
            self._warn_of_changed_rank(start)

    def _warn_of_changed_rank(self, start: Start) -> None:
        """Warn where parameters that were set make another number of loop equations independent."""
        before, last = self.loops.rank, self.assembly.last
        if not before or last is None or last.rank == before:
            return
        rank = find_loop_equations(self.functions, start.coordinates).rank  # where it starts may be a dead centre
        if rank != before:
            logger.warning(
                "%s: with the parameters that are set %d loop equations are independent instead of %d: a simulation "
                "keeps the mobility that its model has, and results or failures of this one are not to be trusted; "
                "make a model of the values with `with_values`",
                self.system.name, rank, before,
            )  # fmt: skip

    def warn_unbalanced(self, start: Start, velocities: Floats, accelerations: Floats) -> None:
        """Warn in the log of parts without static equilibrium at a consistent start."""
        for each in start.unheld:
            if each.holds(velocities, accelerations):
                logger.warning(each.message)

    def independent_equations(self, functions: SystemFunctions) -> int:
        """Return how many constraints are independent in the coordinates of a formulation's functions."""
        if not functions.rows:
            return 0
        return len(functions.coordinates) - len(self.functions.coordinates) + self.loops.rank

    def watched_equations(self, functions: SystemFunctions) -> int:
        """Return how many of them are independent as long as a mechanism comes to no change point; 0 for no watch.

        The joints of a tree never lose rank. Where all joints are constraints and many, looking would take longer than
        moving: matrices of them all are dense.
        """
        rows = len(functions.rows)
        if not self.loops.rank or (functions.in_loops and functions.system is not self.system and rows > MOST_WATCHED):
            return 0
        return self.independent_equations(functions)

    def run(self, parameters: Floats, inputs: Floats | None = None) -> Start:
        """Return the start for a set of parameters.

        Parameters
        ----------
        parameters
            In the order of the system's parameters.
        inputs
            What the inputs are at the start, which loop equations may depend on; those of the model by default.

        Raises
        ------
        InputError
            When the loops cannot be closed.
        """
        parameters = parameters.copy()
        if self._checked is None or not np.array_equal(parameters, self._checked):
            check_parameters(self.system, parameters)
            self._checked = parameters.copy()
        inputs = self._inputs if inputs is None else inputs
        self.functions.inputs[:] = inputs
        values: list[float] = []
        unheld: list[Unheld] = []
        for part in self.balanced_parts:
            count = len(part.functions.parameters)
            part.functions.parameters[:] = parameters[part.first_parameter : part.first_parameter + count]
            given = np.array([0.0 if index < 0 else inputs[index] for index in part.inputs])
            part.functions.inputs[:] = given
            forces, left = _balance_at_start(part, given)
            values += forces
            unheld += [left] if left else []
            for calculated, parameter in self.feeds:
                if calculated < len(values):
                    parameters[parameter] = values[calculated]
        self.functions.parameters[:] = parameters
        coordinates, velocities = self.assembly.close()
        states = self.functions.start()[2].copy()
        names = (variable.name for variable in self.calculated)
        calculated = dict(zip(names, values, strict=True))
        return Start(coordinates, velocities, states, parameters, calculated, tuple(unheld))


def _energy_scale(mechanism: Mechanism, size: float) -> float:
    """Return the scale of a mechanism's energies in J, from its size in m."""
    mass = sum(body.mass for body in mechanism.bodies)
    moment = sum(max(body.inertia) for body in mechanism.bodies if isinstance(body, RigidBody))
    return mass * size * float(np.linalg.norm(mechanism.gravity)) + SLOW**2 * (mass * size**2 + moment)


def check_limits(functions: SystemFunctions) -> None:
    """Check that limited variables are within their limits at the start.

    Parameters
    ----------
    functions
        Functions of the system, holding the start.

    Raises
    ------
    InputError
        When something does not.
    """
    if (beyond := beyond_start_limits(functions)) is None:
        return
    index, value, allowed = beyond
    variable = functions.system.limited[index]
    advice = require_capability(functions.system, StartLimits).start_advice(index, functions.parameters)
    message = f"{variable.name} starts at {value:.6g} {variable.unit}; it must be {allowed}"
    raise InputError(message + (f": {advice}" if advice else ""))


def beyond_start_limits(functions: SystemFunctions) -> tuple[int, float, str] | None:
    """Return the index of a variable outside its limits, its value, and the limits in words; or None.

    Parameters
    ----------
    functions
        Functions of the system, where it is.
    """
    limits = functions.start_limits()[0].reshape(-1, 3)
    for index, (value, low, high) in enumerate(limits.tolist()):
        if not low < value <= high:
            allowed = f"above {low:g}" if high >= sys.float_info.max else f"between {low:g} and {high:g}"
            return index, value, allowed
    return None


def _balance_at_start(part: BalancedPart, given: Floats) -> tuple[list[float], Unheld | None]:
    functions = part.functions
    functions.coordinates[:] = part.assembly.close()[0]
    functions.states[:] = np.asarray(functions.start()[2])
    return balance(functions, given)


# -- accelerations and multipliers, and balancing inputs of static equilibrium -----------------------------------------

UNBALANCED = 1e-9
"""Unbalanced load relative to the largest load, or to one N or N m, above which a warning is given."""
UNDETERMINED = 1e-2
"""Share of what counts as near a change point, within which errors of velocities decide what multipliers are; further
off they are what a loop with a weak direction transmits."""
AT_REST = 1e-6
"""Share of the motion that a part would begin without them up to which what connections carry holds it."""


@dataclass(frozen=True)
class Unheld:
    """A part that its actuators and given inputs cannot hold at the start.

    Attributes
    ----------
    message
        That in a sentence.
    acceleration
        The largest that would begin, in m/s² or rad/s².
    """

    message: str
    acceleration: float

    def holds(self, velocities: Floats, accelerations: Floats) -> bool:
        """Return whether it is also unbalanced in the whole system, where connections may carry the load.

        Parameters
        ----------
        velocities, accelerations
            Of the whole, where it starts.
        """
        largest = float(np.max(np.abs(accelerations), initial=0.0))
        return bool(velocities.any()) or largest > AT_REST * abs(self.acceleration)


def accelerations(
    functions: SystemFunctions, scales: Floats | None = None, near: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Return z̈, λ and ẋ at the coordinates, velocities, states and inputs that the functions hold.

    Solves M z̈ + Φ_zᵀ λ = Q, Φ_z z̈ = −Φ̇_z ż; least squares where that is singular. Where loop equations are
    redundant, λ is the shortest of all that have the same effect.

    Parameters
    ----------
    functions
        Functions of the system.
    scales
        By which the elements of Φ_z are divided so that they are the same in all units and sizes, shape (m, n). Where
        they are given, equations that nearly follow from others at a change point are left out: multipliers that grow
        without bound as it is neared are of no use to steps that pass it.
    near
        Share by which an equation that is left out stands out of the span of the others at most.
    """
    mass, rest, rates, _ = functions.equilibrium()
    jacobian, quadratic = functions.closure()[1], functions.quadratic()[0]
    if scales is not None and functions.rank:
        columns = (jacobian / scales).T
        lengths = pivot_lengths(columns)
        count = np.count_nonzero(lengths > near * lengths[0])
        if count < functions.rank:
            kept = pivot_columns(columns)[1][:count]
            found, multipliers = _with_rows(kept, mass, jacobian, rest, quadratic)
            if functions.redundant:
                multipliers = shortest(jacobian, jacobian.T @ multipliers)
            return found, multipliers, _rates_at(functions, found, rates)
    solve = _along_free_directions if functions.redundant else _saddle
    found, multipliers = solve(mass, jacobian, rest, quadratic)
    return found, multipliers, _rates_at(functions, found, rates)


def _rates_at(functions: SystemFunctions, found: Floats, rates: Floats) -> Floats:
    """Return ẋ, anew where it depends on the accelerations that have been found; the functions hold these then."""
    if not functions.rates_by_accelerations:
        return rates.copy()
    functions.accelerations[:] = found
    return functions.state_rates()[0].copy()


def shortest(jacobian: Floats, effect: Floats) -> Floats:
    """Return the multipliers of least norm with Φ_zᵀ λ as given, shape (m,)."""
    return np.asarray(np.linalg.lstsq(jacobian.T, effect, rcond=RANK_TOLERANCE)[0], dtype=np.float64)


def _with_rows(
    rows: np.typing.NDArray[np.intp], mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats
) -> tuple[Floats, Floats]:
    """Solve the same with some independent equations alone; the others get no multipliers."""
    found, held = _saddle(mass, jacobian[rows], rest, quadratic[rows])
    multipliers = np.zeros(len(quadratic))
    multipliers[rows] = held
    return found, multipliers


def _saddle(mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats) -> tuple[Floats, Floats]:
    n, m = len(rest), len(quadratic)
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = mass, jacobian.T, jacobian
    right = -np.concatenate([rest, quadratic])
    solution: Floats
    try:
        solution = np.linalg.solve(matrix, right).astype(np.float64)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(matrix, right, rcond=None)[0].astype(np.float64)
    return solution[:n], solution[n:]


def _along_free_directions(mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats) -> tuple[Floats, Floats]:
    """Solve the same with one singular value decomposition, which no choice of equations precedes."""
    left, sizes, turned = np.linalg.svd(jacobian)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes[0]))
    left, sizes, held, free = left[:, :rank], sizes[:rank], turned[:rank].T, turned[rank:].T
    driven = held @ ((quadratic @ left) / -sizes)
    load = rest + mass @ driven
    found = driven - free @ np.linalg.solve(free.T @ mass @ free, load @ free)
    return found, left @ (((rest + mass @ found) @ held) / -sizes)


def _first_accelerations(functions: SystemFunctions, jacobian: Floats, load: Floats) -> Floats:
    """Return the accelerations N (Nᵀ M N)⁻¹ Nᵀ F that a load begins without motion, shape (n,)."""
    if not functions.in_loops:
        free, mass = null_space(jacobian, RANK_TOLERANCE), functions.equilibrium()[0]
        first_motion: Floats = free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ load, rcond=RANK_TOLERANCE)[0]
        return first_motion

    def freed(load: Floats) -> Floats:
        functions.momenta[:] = load
        first_motion = np.array(functions.freed()[0])
        functions.momenta[:] = 0.0
        return first_motion

    first_motion = freed(load)
    if len(jacobian):
        pushed = np.stack([freed(row) for row in jacobian])
        first_motion = (
            first_motion
            - np.linalg.lstsq(jacobian @ pushed.T, jacobian @ first_motion, rcond=RANK_TOLERANCE)[0] @ pushed
        )
    return first_motion


def balance(functions: SystemFunctions, given: Floats) -> tuple[list[float], Unheld | None]:
    """Return the values of the balancing inputs that keep the system at rest, and what they cannot hold.

    At rest, −Q(z, 0, u) + Φ_zᵀ λ = 0, linear in the forces u. In the directions N that the constraints leave
    free (Φ_z N = 0) the multipliers vanish. Of several solutions the one of least forces is taken; where there
    is none (fewer actuators than degrees of freedom), the nearest. Which load then stays depends on the choice of N,
    the motion that it begins does not: N (Nᵀ M N)⁻¹ Nᵀ Q.

    Parameters
    ----------
    functions
        Functions of the system, which hold where it starts.
    given
        What its inputs are there, shape (number of inputs,), zero where that is not known. Those that balance do not
        count.

    Returns
    -------
    tuple
        The values, in the order of `balances`, and what they cannot hold, where the system does not stay at rest.
    """
    system = functions.system
    columns = [[each.name for each in system.inputs].index(name) for _, name in system.balances]
    functions.velocities[:] = 0.0
    others = np.where(np.isin(np.arange(len(given)), columns), 0.0, given)
    functions.inputs[:] = others
    rest, by_inputs = functions.standing()
    jacobian = functions.closure()[1]
    loads = np.column_stack([rest, by_inputs.reshape(len(columns), -1).T])
    # What constraints carry is taken off: what is left lies in the directions N.
    loads = loads - jacobian.T @ np.linalg.lstsq(jacobian.T, loads, rcond=RANK_TOLERANCE)[0]
    matrix, right = loads[:, 1:], -loads[:, 0]
    forces = np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0]
    left, unheld = right - matrix @ forces, None
    if np.linalg.norm(left) > UNBALANCED * max(np.max(np.abs(rest)), 1.0):
        alone = "and inputs as they are given" if others.any() else "alone"
        first_motion = _first_accelerations(functions, jacobian, left)
        first = int(np.argmax(np.abs(first_motion)))
        variable = system.accelerations[first]
        unheld = Unheld(
            f"{system.name}: actuators {alone} cannot keep it in static equilibrium at the start; "
            f"{variable.name} would be {first_motion[first]:.3g} {variable.unit}",
            float(first_motion[first]),
        )
    return [float(force) for force in forces], unheld
