"""From parameters to a consistent start: calculated parameters, closed loops, states."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.coordinate_charts import REFERENCE
from mbsfmu.equations.loads import MotionState
from mbsfmu.initialization.accelerations import Unheld, balance
from mbsfmu.initialization.assembly import Assembly
from mbsfmu.initialization.changed_start import warn_of_changed_start
from mbsfmu.initialization.closing_joints import unused_starts
from mbsfmu.initialization.closing_loops import find_loop_equations
from mbsfmu.model.body import RigidBody
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.systems.capabilities import StartLimits, require_capability
from mbsfmu.systems.checks.parameter_checks import check_parameters
from mbsfmu.systems.coupled.acceleration_feed_through import check_inertia
from mbsfmu.systems.coupled.coupled_system import CoupledSystem
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.loop_equations import LoopEquations, longest_lever_arm
from mbsfmu.systems.mechanism.massless import refuse_massless_motion
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System, SystemContext, starts
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)


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
