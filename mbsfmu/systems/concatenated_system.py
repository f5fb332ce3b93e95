"""Several systems with connected variables as one system, by block concatenation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from mbsfmu.divide_and_conquer.assembly import BlockDiagonalCorrections
from mbsfmu.equations.rotation import cut
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.systems.connections import At, NonlinearLoop, Wiring, check_feedback, readers_first
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.system import (
    SIZES,
    AccelerationFeedback,
    AlgebraicLoops,
    ArticulatedDynamics,
    CanonicalMomenta,
    ConstraintCorrections,
    ConstraintMotion,
    EventIndicators,
    InertiaTensors,
    JointReactions,
    LoopsInUse,
    LoopSolution,
    MovingReferences,
    SampledUpdates,
    Sampling,
    StartLimits,
    StartPlacement,
    System,
    SystemContext,
    Tensor,
    require_capability,
)
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.symbols import expression, symbolic_array
from mbsfmu.tracing.workspace import Kept

Function = TypeVar("Function", bound=Callable[..., Any])


class Concatenation(Protocol):
    """Protocol of a system whose parts share arguments."""

    name: str
    parts: tuple[System, ...]

    def arguments_of_parts(self, kind: str, given: Any) -> Sequence[Any]:
        """Return the part of an argument for each part."""
        ...


def nothing(*_: object) -> Array:
    """Return an empty vector."""
    return np.zeros(0)


def two_of_nothing(*_: object) -> tuple[Array, Array]:
    """Return two empty vectors."""
    return np.zeros(0), np.zeros(0)


def as_given(coordinates: Array, velocities: Array, _: SystemContext) -> tuple[Array, Array]:
    """Return z and ż unchanged."""
    return coordinates, velocities


def concatenated(
    declared: Function, *kinds: str, required_by: str = "", otherwise: Callable[..., object] = nothing
) -> Function:
    """Return a function of a coupled system: the concatenated results of its parts.

    Parameters
    ----------
    declared
        The function as systems have it.
    kinds
        How each argument is divided: `instant`, `loops`, `same` for all parts, or the variables with one number each.
    required_by
        Variables without which a part needs no such function.
    otherwise
        Replacement for a part without the function.
    """
    name = declared.__name__

    def whole(self: Concatenation, *arguments: object) -> object:
        results: list[Any] = []
        arguments_of_parts = zip(
            *(self.arguments_of_parts(kind, given) for kind, given in zip(kinds, arguments, strict=True)), strict=True
        )
        for part, own in zip(self.parts, arguments_of_parts, strict=True):
            if not hasattr(part, name) and required_by and part.size(required_by):
                raise TypeError(f"system '{part.name}' of '{self.name}' has {required_by}, but no function '{name}'")
            results.append(getattr(part, name, otherwise)(*own))
        if isinstance(results[0], tuple):
            return tuple(map(np.concatenate, zip(*results, strict=True)))
        return np.concatenate(results)

    whole.__name__, whole.__doc__ = name, declared.__doc__
    return cast("Function", whole)


_KINDS = (
    "coordinates",
    "velocities",
    "accelerations",
    "states",
    "discrete",
    "integrals",
    "parameters",
    "outputs",
    "reactions",
)


class PartNames:
    """Variable names in a model of several systems; a further system never renames those of earlier ones.

    A name with a dot, such as `boom.angle`, is unchanged unless an earlier system has it. Other names get the system as
    prefix: `controller.command`, `spare.boom.angle`. Connected inputs of earlier systems count as well. The prefix is
    also added if a name would equal the full name, `system.variable`, of another variable. A model of one system has
    the names of the system.

    Parameters
    ----------
    parts
        Systems by name.
    inputs
        Indices of part and input of the inputs that the whole has.
    """

    def __init__(self, parts: Mapping[str, System], inputs: Sequence[tuple[int, int]]) -> None:
        self._names = tuple(parts)
        self._parts = tuple(parts.values())
        self._owned = [
            (index, each.name)
            for index, part in enumerate(self._parts)
            for each in (
                *(each for kind in _KINDS for each in getattr(part, kind)),
                *(each for each, _ in part.balances),
            )
        ]
        self._owned += [(index, self._parts[index].inputs[entry].name) for index, entry in inputs]
        every_input = [(index, each.name) for index, part in enumerate(self._parts) for each in part.inputs]
        self._prefixed = _later(self._owned) | (_later(every_input) & set(self._owned))
        if len(parts) > 1:
            self._prefixed |= {(index, name) for index, name in self._owned if "." not in name}
        while hidden := {self.name(*each) for each in self._prefixed} & {
            name for index, name in self._owned if (index, name) not in self._prefixed
        }:
            self._prefixed |= {(index, name) for index, name in self._owned if name in hidden}

    def name(self, part: int, name: str) -> str:
        """Return the coupled system's name for a part's variable name."""
        return f"{self._names[part]}.{name}" if (part, name) in self._prefixed else name

    def of(self, part: int, variable: Variable) -> Variable:
        """Return a part's variable with its name in the coupled system."""
        return replace(variable, name=self.name(part, variable.name))

    def every(self, kind: str) -> tuple[Variable, ...]:
        """Return all variables of a kind, part by part."""
        return tuple(self.of(index, each) for index, part in enumerate(self._parts) for each in getattr(part, kind))

    def apart(self, kind: str) -> tuple[Variable, ...]:
        """Return variables of a kind part by part, with the part's name as prefix for repeated names.

        The coupled system may lack these variables among all others, such as cylinder lengths driven by a mechanism.
        """
        times = Counter(each.name for part in self._parts for each in getattr(part, kind))
        return tuple(
            replace(each, name=f"{name}.{each.name}") if times[each.name] > 1 else self.of(index, each)
            for index, (name, part) in enumerate(zip(self._names, self._parts, strict=True))
            for each in getattr(part, kind)
        )

    def qualified(self) -> dict[str, str]:
        """Return all remaining part variables as `part.variable`, by their names in the coupled system."""
        return {self.name(index, name): f"{self._names[index]}.{name}" for index, name in self._owned}

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all inertia tensors, with the part's name as prefix for repeated body names."""
        times = Counter(tensor.body for part in self._parts for tensor in part.tensors)
        return tuple(
            replace(tensor, body=f"{name}.{tensor.body}") if times[tensor.body] > 1 else tensor
            for name, part in zip(self._names, self._parts, strict=True)
            for tensor in part.tensors
        )


def _later(owned: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return the pairs of part and name whose name an earlier part has."""
    first: dict[str, int] = {}
    for index, name in owned:
        first[name] = min(index, first.get(name, index))
    return {(index, name) for index, name in owned if index > first[name]}


class CoupledSystem(
    AccelerationFeedback,
    AlgebraicLoops,
    SampledUpdates,
    InertiaTensors,
    StartLimits,
    EventIndicators,
    JointReactions,
    StartPlacement,
    MovingReferences,
    ArticulatedDynamics,
    CanonicalMomenta,
    ConstraintCorrections,
    ConstraintMotion,
):
    """Systems whose inputs are driven by outputs of other systems.

    Variable names that are unique over the parts are unchanged; others get the part's name as prefix. The coupled
    system has the capabilities of its parts.

    Parameters
    ----------
    name
        Name of the coupled system.
    parts
        Systems by name.
    connections
        Pairs (`part.variable`, `part.variable`): source and target.
    traces
        Has what was traced of it before.

    Attributes
    ----------
    parts
        The systems.
    feeds
        Calculated parameters that other parts take as parameters.

    Raises
    ------
    DataError
        When a connection names what is not there, drives something twice, joins different units, or closes an
        algebraic loop that nothing determines.
    """

    def __init__(
        self,
        name: str,
        parts: dict[str, System],
        connections: Iterable[tuple[str, str]],
        traces: Traces | None = None,
    ) -> None:
        self.name = name
        self._part_names = tuple(parts)
        self.parts = tuple(parts.values())
        self._connections = tuple(connections)
        self._wiring = Wiring(parts, self._connections)
        self._inputs = self._wiring.free
        self.feeds = self._wiring.feeds
        traces = traces or Traces()
        self._levels = self._wiring.levels(traces)
        self.fed_through = tuple(self._wiring.name(wire) for wire in self._wiring.fed_through)
        self.loop_iterates = tuple(guess for level in self._levels for guess in level.loop_iterates)
        self._kept: Kept[list[SystemContext]] = Kept()
        self._names = names = PartNames(parts, self._inputs)
        self.coordinates = names.every("coordinates")
        self.velocities = names.every("velocities")
        self.accelerations = names.every("accelerations")
        self.states = names.every("states")
        self.discrete = names.every("discrete")
        self.integrals = names.every("integrals")
        self.inputs = tuple(names.of(index, self.parts[index].inputs[entry]) for index, entry in self._inputs)
        fed = {self._offset("parameters", feed.target) + feed.parameter for feed in self.feeds}
        self.parameters = tuple(
            replace(variable, causality=Causality.LOCAL) if index in fed else variable
            for index, variable in enumerate(names.every("parameters"))
        )
        self.outputs = names.every("outputs")
        self.reactions = names.every("reactions")
        self.event_indicators = names.apart("event_indicators")
        self.limited = names.apart("limited")
        self.tensors = names.tensors()
        self.constraints = tuple(name for part in self.parts for name in part.constraints)
        self.written = tuple(tuple(each for part in self.parts for each in part.written[kind]) for kind in (0, 1))
        self.aligned = tuple(name for part in self.parts for name in part.aligned)
        self.constraint_units = tuple(unit for part in self.parts for unit in part.constraint_units)
        self.references = sum(part.references for part in self.parts)
        self.weight = sum(part.weight for part in self.parts)
        offsets = [(part, self._offset("parameters", index)) for index, part in enumerate(self.parts)]
        self.orderings = tuple((at + less, at + more) for part, at in offsets for less, more in part.orderings)
        offsets = [(part, self._offset("coordinates", index)) for index, part in enumerate(self.parts)]
        self.turning_angles = tuple(
            (at + first, at + second, at + third)
            for part, at in offsets
            for first, second, third in part.turning_angles
        )
        self.samplings = self._sorted_samplings()
        check_feedback(self, traces)

    @classmethod
    def of(cls, system: System) -> CoupledSystem:
        """Return a single system as a coupled system of one part; a coupled system unchanged."""
        return system if isinstance(system, CoupledSystem) else cls(system.name, {system.name: system}, ())

    # -- structure ------------------------------------------------------------------------------------------

    def _sorted_samplings(self) -> tuple[Sampling, ...]:
        """Return the samplings of all parts."""
        samplings = [
            replace(sampling, first=self._offset("discrete", index) + sampling.first)
            for index, part in enumerate(self.parts)
            for sampling in part.samplings
        ]
        if len(samplings) < 2:
            return tuple(samplings)
        traced = SystemExpressions(self)
        return readers_first(samplings, traced.depends(traced.updates, "discrete"))

    def input_name(self, reference: str) -> str:
        """Return the name in the coupled system of an input given as `part.variable`.

        Raises
        ------
        DataError
            When it is no input, or driven by a connection.
        """
        return self._names.name(*self._wiring.free_input(reference))

    def settable(self) -> dict[str, Variable]:
        """Return unconnected parameters and inputs by `part.variable`, with their names in the coupled system."""
        result = {
            f"{name}.{own.name}": named
            for index, (name, part) in enumerate(zip(self._part_names, self.parts, strict=True))
            for own, named in zip(part.parameters, self.parameters[self.parameters_of(index)], strict=True)
            if named.settable
        }
        for (index, entry), named in zip(self._inputs, self.inputs, strict=True):
            result[f"{self._part_names[index]}.{self.parts[index].inputs[entry].name}"] = named
        return result

    @property
    def connected(self) -> tuple[str, ...]:
        """Connected inputs and parameters, as `part.variable`."""
        return tuple(target for _, target in self._connections)

    def inputs_of(self, part: int) -> tuple[int, ...]:
        """Return the indices of a part's inputs in the coupled system; −1 for connected ones."""
        places = {place: index for index, place in enumerate(self._inputs)}
        return tuple(places.get((part, entry), -1) for entry in range(len(self.parts[part].inputs)))

    def calculated(self, part: int) -> tuple[Variable, ...]:
        """Return the calculated parameters of a part with their names in the coupled system."""
        return tuple(self._names.of(part, variable) for variable, _ in self.parts[part].balances)

    def qualified(self) -> dict[str, str]:
        """Return the variables as `part.variable`, by their names in the coupled system."""
        return self._names.qualified()

    def driving(self) -> dict[str, str]:
        """Return the names in the coupled system of driving outputs, by `part.variable` of the inputs they drive."""
        own = {reference: name for name, reference in self.qualified().items()}
        return {target: own[source] for source, target in self._connections if source in own and target not in own}

    def _offset(self, kind: str, part: int) -> int:
        return sum(each.size(kind) for each in self.parts[:part])

    def parameters_of(self, part: int) -> slice:
        """Return the indices of a part's parameters in the coupled system."""
        start = self._offset("parameters", part)
        return slice(start, start + len(self.parts[part].parameters))

    def inertia_spread(self, parameters: Array) -> float:
        """Return the largest factor of its parts."""
        parts = enumerate(self.parts)
        return max((part.inertia_spread(parameters[self.parameters_of(index)]) for index, part in parts), default=1.0)

    def lightest_body(self, parameters: Array) -> tuple[float, str]:
        """Return the lightest body of its parts."""
        return min(part.lightest_body(parameters[self.parameters_of(index)]) for index, part in enumerate(self.parts))

    @cached_property
    def _start(self) -> System:
        parts = {name: part.start_system for name, part in zip(self._part_names, self.parts, strict=True)}
        if all(part is own for part, own in zip(self.parts, parts.values(), strict=True)):
            return self
        return CoupledSystem(self.name, parts, self._connections)

    @property
    def start_system(self) -> System:
        """System in whose coordinates the start is given."""
        return self._start

    # -- shares ---------------------------------------------------------------------------------------------

    def arguments_of_parts(self, kind: str, given: Any) -> Sequence[Any]:
        """Return the part of an argument for each part; kinds as for `concatenated`."""
        if kind == "same":
            return [given] * len(self.parts)
        if kind == "instant":
            return self._instants(given)
        if kind == "loops":
            return self._loops(given)
        if kind == "loop_iterates":  # loops are between the parts
            return [given[:0]] * len(self.parts)
        owners = [part.start_system for part in self.parts] if kind == "start_coordinates" else self.parts
        return cut(given, [owner.size(kind.removeprefix("start_")) for owner in owners])

    def _loops(self, loops: LoopsInUse) -> list[LoopsInUse]:
        """Return each part's loop equations among the active ones."""
        rows = np.asarray(loops.rows, dtype=int)
        ends = np.cumsum([0, *(len(part.constraints) for part in self.parts)])
        own = [(rows >= first) & (rows < last) for first, last in pairwise(ends)]
        counts = [int(np.count_nonzero(each)) for each in own]
        counting = [None] * len(own) if loops.active is None else cut(loops.active, counts)
        each = zip(own, ends[:-1], counting, cut(loops.multipliers, counts), strict=True)
        return [
            replace(loops, rows=tuple((rows[mine] - first).tolist()), active=active, multipliers=multipliers)
            for mine, first, active, multipliers in each
        ]

    def _instants(self, instant: SystemContext) -> list[SystemContext]:
        """Return the context of each part, with connected inputs from the outputs of other parts.

        All functions of one context use the same; it is kept until the next context.
        """
        given = [getattr(instant, part.name) for part in fields(instant)]
        return self._kept.of(given, lambda: self._connected(instant))

    def _connected(
        self, instant: SystemContext, solve: Callable[[NonlinearLoop, At, Array], Array] | None = None
    ) -> list[SystemContext]:
        """Return the same; nonlinear loops are solved by the given function in numeric contexts."""
        entries: list[list[Array]] = [[np.asarray(0.0)] * len(part.inputs) for part in self.parts]
        for index, (part, entry) in enumerate(self._inputs):
            entries[part][entry] = instant.inputs[index]
        shared = {
            each: self.arguments_of_parts(kind, getattr(instant, each))
            for each, kind in SIZES.items()
            if each != "inputs"
        }

        def at(part: int) -> SystemContext:
            inputs = np.stack(entries[part]) if entries[part] else np.zeros(0)
            return SystemContext(
                inputs=inputs, **{each: arguments_of_parts[part] for each, arguments_of_parts in shared.items()}
            )

        first = 0
        for level in self._levels:
            loop_iterates = instant.loop_iterates[first : first + len(level.loop_iterates)]
            if isinstance(level, NonlinearLoop) and solve is not None:
                loop_iterates = solve(level, at, loop_iterates)
            for wire, value in level.values(self.parts, at, loop_iterates):
                known = wire in self._wiring.fed_through and len(instant.fed_through)
                entries[wire.target][wire.input] = (
                    instant.fed_through[self._wiring.fed_through.index(wire)] if known else value
                )
            first += len(level.loop_iterates)
        return [at(part) for part in range(len(self.parts))]

    def feed_through_values(self, instant: SystemContext) -> Array:
        """Return the acceleration feed-through at the accelerations of the context."""
        parts = self._instants(replace(instant, fed_through=np.zeros(0)))
        return np.stack([parts[wire.target].inputs[wire.input] for wire in self._wiring.fed_through])

    def solved_loops(self, instant: SystemContext) -> list[LoopSolution]:
        """Return the solutions of nonlinear loops from the iterates of a symbolic context."""
        found: list[LoopSolution] = []

        def solve(loop: NonlinearLoop, at: At, loop_iterates: Array) -> Array:
            values, off = map(symbolic_array, loop.solution(at, expression(loop_iterates)))
            found.append(LoopSolution(loop.description, values, off))
            return values

        self._connected(instant, solve)
        return found

    # -- functions ------------------------------------------------------------------------------------------

    residual = concatenated(System.residual, "instant")
    closure = concatenated(System.closure, "instant")
    misalignment = concatenated(System.misalignment, "instant")
    closure_rate = concatenated(ConstraintMotion.closure_rate, "instant", required_by="constraints")
    rates = concatenated(System.rates, "instant")
    integral_rates = concatenated(System.integral_rates, "instant")
    constraint_drifts = concatenated(System.constraint_drifts, "instant")
    constraint_drift_rates = concatenated(System.constraint_drift_rates, "instant")
    driving_powers = concatenated(System.driving_powers, "instant", "loops")
    evaluate_outputs = concatenated(System.evaluate_outputs, "instant")
    initial_coordinates = concatenated(System.initial_coordinates, "parameters")
    initial_states = concatenated(System.initial_states, "parameters")
    initial_integrals = concatenated(System.initial_integrals, "instant")
    updates = concatenated(SampledUpdates.updates, "instant", required_by="discrete")
    initial_discrete = concatenated(SampledUpdates.initial_discrete, "parameters", required_by="discrete")
    inertia_tensors = concatenated(InertiaTensors.inertia_tensors, "parameters", required_by="tensors")
    evaluate_event_indicators = concatenated(
        EventIndicators.evaluate_event_indicators, "instant", required_by="event_indicators"
    )
    start_limits = concatenated(StartLimits.start_limits, "instant", required_by="limited")
    evaluate_reactions = concatenated(JointReactions.evaluate_reactions, "instant", "loops", required_by="reactions")
    start_references = concatenated(MovingReferences.start_references, "start_coordinates", required_by="references")
    place = concatenated(StartPlacement.place, "start_coordinates", "start_coordinates", "instant", otherwise=as_given)
    forward_dynamics = concatenated(
        ArticulatedDynamics.forward_dynamics,
        *("instant", "loops", "same"),
        required_by="coordinates",
        otherwise=two_of_nothing,
    )
    responses = concatenated(
        ArticulatedDynamics.responses,
        *("instant", "loops", "coordinates"),
        required_by="coordinates",
        otherwise=two_of_nothing,
    )
    balance = concatenated(ArticulatedDynamics.balance, "instant", "loops", required_by="coordinates")
    loop_accelerations = concatenated(
        ArticulatedDynamics.loop_accelerations, "instant", "loops", "same", required_by="coordinates"
    )
    initial_momenta = concatenated(CanonicalMomenta.initial_momenta, "instant", required_by="coordinates")
    impulsive_velocities = concatenated(
        CanonicalMomenta.impulsive_velocities,
        *("instant", "loops", "same"),
        required_by="coordinates",
        otherwise=two_of_nothing,
    )
    canonical_momenta = concatenated(CanonicalMomenta.canonical_momenta, "instant", "loops", required_by="coordinates")
    loop_rates = concatenated(CanonicalMomenta.loop_rates, "instant", "loops", "same", required_by="coordinates")
    momentum_rates = concatenated(CanonicalMomenta.momentum_rates, "instant", "loops", required_by="coordinates")
    apparent_inertias = concatenated(CanonicalMomenta.apparent_inertias, "instant", required_by="coordinates")
    own_inertias = concatenated(CanonicalMomenta.own_inertias, "instant", required_by="coordinates")
    carried_inertias = concatenated(CanonicalMomenta.carried_inertias, "instant", required_by="coordinates")
    free_accelerations = concatenated(ConstraintCorrections.free_accelerations, "instant", required_by="coordinates")
    unheld = concatenated(ConstraintCorrections.unheld, "instant", "coordinates", required_by="coordinates")
    constrained_residual = concatenated(
        ConstraintCorrections.constrained_residual, "instant", "constraints", "same", required_by="coordinates"
    )

    @property
    def depths(self) -> list[int]:
        """Number of joints from the ground to each coordinate's own."""
        return [
            each
            for part in self.parts
            if part.coordinates
            for each in require_capability(part, ArticulatedDynamics).depths
        ]

    @property
    def moved_by_constraints(self) -> list[list[int]]:
        """For each constraint the coordinates of the bodies on which it acts."""
        return [
            [self._offset("coordinates", index) + coordinate for coordinate in moved]
            for index, part in enumerate(self.parts)
            for moved in (
                require_capability(part, ConstraintCorrections).moved_by_constraints if part.coordinates else ()
            )
        ]

    def corrections(self, instant: SystemContext, loops: LoopsInUse, penalty: float) -> BlockDiagonalCorrections:
        """Return the block-diagonal corrections of all parts with coordinates."""
        own = [
            (require_capability(part, ConstraintCorrections).corrections(now, closed, penalty), len(part.constraints))
            for part, now, closed in zip(self.parts, self._instants(instant), self._loops(loops), strict=True)
            if part.coordinates
        ]
        return BlockDiagonalCorrections(*zip(*own, strict=True)) if own else BlockDiagonalCorrections((), ())

    def closure_jacobian(self, instant: SystemContext) -> Array:
        """Return Φ_z on the constraint manifold, shape (number of constraints, n), block-diagonal over the parts."""
        return self._block_diagonal(ConstraintMotion.closure_jacobian, instant)

    def misalignment_jacobian(self, instant: SystemContext) -> Array:
        """Return the derivatives of the misalignment by z, block-diagonal over the parts."""
        return self._block_diagonal(ConstraintMotion.misalignment_jacobian, instant)

    def _block_diagonal(self, jacobian: Callable[..., Array], instant: SystemContext) -> Array:
        rows, first, count = [np.zeros((0, len(self.coordinates)))], 0, len(self.coordinates)
        for part, own in zip(self.parts, self._instants(instant), strict=True):
            last = first + len(part.coordinates)
            if len(part.constraints):
                moved = getattr(require_capability(part, ConstraintMotion), jacobian.__name__)(own)
                before, behind = (np.zeros((len(moved), width)) for width in (first, count - last))
                rows.append(np.concatenate([before, moved, behind], axis=1))
            first = last
        return np.concatenate(rows)

    def undefined_forces(self, instant: SystemContext) -> list[str]:
        """Return the names of forces whose loads are not finite, with their part's name."""
        pairs = zip(self.parts, self._instants(instant), strict=True)
        return [f"{part.name}.{force}" for part, own in pairs for force in part.undefined_forces(own)]

    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return the advice of the part to which one of `limited` belongs."""
        first = 0
        for part, own in zip(self.parts, self.arguments_of_parts("parameters", parameters), strict=True):
            index, first = limited - first, first + len(part.limited)
            if isinstance(part, StartLimits) and limited < first:
                return part.start_advice(index, own)
        return ""

    def with_references(self, instant: SystemContext, references: Array | None) -> SystemContext:
        """Return the same motion with other references, shape (8 r,); None for the present orientations."""
        present = [None] * len(self.parts)
        others = present if references is None else self.arguments_of_parts("references", references)
        moved = [
            part.with_references(own, other) if isinstance(part, MovingReferences) else own
            for part, own, other in zip(self.parts, self._instants(instant), others, strict=True)
        ]
        kinds = ("coordinates", "velocities", "accelerations", "momenta", "references")
        concatenated = {kind: np.concatenate([getattr(each, kind) for each in moved]) for kind in kinds}
        return replace(instant, **concatenated)
