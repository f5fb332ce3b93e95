"""Several systems with connected variables as one system again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mbsfmu.data import DataError
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.expressions import SystemExpressions
from mbsfmu.formulations.kept import Kept
from mbsfmu.formulations.system import Instant, Sampling, System
from mbsfmu.formulations.wiring import Wire, Wiring
from mbsfmu.variables import Causality, Variable


class CoupledSystem(System):
    """Systems whose inputs other systems' outputs drive.

    Variables keep their names where these are unique over the parts; elsewhere the part's name stands before.

    Parameters
    ----------
    name
        Name of the whole.
    parts
        Systems by name.
    connections
        Pairs (`part.variable`, `part.variable`): source and target.

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
        algebraic loop.
    """

    def __init__(self, name: str, parts: dict[str, System], connections: Iterable[tuple[str, str]]) -> None:
        self.name = name
        self._part_names = tuple(parts)
        self.parts = tuple(parts.values())
        self._connections = tuple(connections)
        self._wiring = Wiring(parts, self._connections)
        self.feeds = self._wiring.feeds
        self._kept: Kept[list[Instant]] = Kept()
        self._levels = self._sorted_wires()
        self._name_variables()
        self.samplings = self._sorted_samplings()

    # -- structure ------------------------------------------------------------------------------------------

    def _sorted_wires(self) -> list[list[Wire]]:
        """Return the wires by level: what those of one level carry depends on inputs of lower levels alone.

        Raises
        ------
        DataError
            When an output depends on itself through the connections, or on accelerations.
        """
        graph: dict[Wire, list[Wire]] = {}
        traced = [SystemExpressions(part) for part in self.parts]
        wires = self._wiring.wires
        for wire in wires:
            outputs = self.parts[wire.source].outputs
            if wire.output >= len(outputs):
                graph[wire] = []
                continue
            source = traced[wire.source]
            sampled = bool(
                self.parts[wire.target].samplings
            )  # updates know accelerations, and nothing else asks for it
            if not sampled and source.depends(source.outputs, "accelerations")[wire.output].any():
                raise DataError(
                    f"connection: '{outputs[wire.output].name}' depends on accelerations and cannot drive an input"
                )
            needed = source.depends(source.outputs, "inputs")[wire.output]
            graph[wire] = [each for each in wires if each.target == wire.source and needed[each.input]]
        try:
            order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            loop = " → ".join(self._wiring.source(wire).name for wire in error.args[1])
            raise DataError(f"connections close an algebraic loop: {loop}") from None
        depth: dict[Wire, int] = {}
        for wire in order:
            depth[wire] = 1 + max((depth[each] for each in graph[wire]), default=0)
        return [
            [wire for wire in wires if depth[wire] == level] for level in range(1, 1 + max(depth.values(), default=0))
        ]

    def _name_variables(self) -> None:
        self._inputs = self._wiring.free
        kinds = (
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
        listed = [
            (index, variable)
            for index, part in enumerate(self.parts)
            for kind in kinds
            for variable in getattr(part, kind)
        ]
        listed += [(index, variable) for index, part in enumerate(self.parts) for variable, _ in part.balances]
        listed += [(index, self.parts[index].inputs[entry]) for index, entry in self._inputs]
        names = [variable.name for _, variable in listed]
        self._ambiguous = {name for name in names if names.count(name) > 1}
        for kind in kinds:
            variables = [
                self._named(index, variable)
                for index, part in enumerate(self.parts)
                for variable in getattr(part, kind)
            ]
            setattr(self, kind, tuple(variables))
        fed = {self._offset("parameters", feed.target) + feed.parameter for feed in self.feeds}
        self.parameters = tuple(
            replace(variable, causality=Causality.LOCAL) if index in fed else variable
            for index, variable in enumerate(self.parameters)
        )
        self.orderings = tuple(
            (offset + smaller, offset + greater)
            for part, offset in ((part, self._offset("parameters", index)) for index, part in enumerate(self.parts))
            for smaller, greater in part.orderings
        )
        bodies = [tensor.body for part in self.parts for tensor in part.tensors]
        self.tensors = tuple(
            replace(tensor, body=f"{name}.{tensor.body}") if bodies.count(tensor.body) > 1 else tensor
            for name, part in zip(self._part_names, self.parts, strict=True)
            for tensor in part.tensors
        )
        self.limited = tuple(
            self._named(index, variable) for index, part in enumerate(self.parts) for variable in part.limited
        )
        self.inputs = tuple(self._named(index, self.parts[index].inputs[entry]) for index, entry in self._inputs)
        self.references = sum(part.references for part in self.parts)
        self.steep = tuple(
            self._offset("coordinates", index) + coordinate
            for index, part in enumerate(self.parts)
            for coordinate in part.steep
        )
        self.constraints = tuple(name for part in self.parts for name in part.constraints)
        self.constraint_units = tuple(unit for part in self.parts for unit in part.constraint_units)
        self.correction_count = sum(part.correction_count for part in self.parts)

    def _sorted_samplings(self) -> tuple[Sampling, ...]:
        """Return when discrete states are updated: what others read before these, in a loop as parts are listed."""
        samplings = [
            replace(sampling, first=self._offset("discrete", index) + sampling.first)
            for index, part in enumerate(self.parts)
            for sampling in part.samplings
        ]
        if len(samplings) < 2:
            return tuple(samplings)
        traced = SystemExpressions(self)
        reads = traced.depends(traced.updates, "discrete")
        ordered: list[Sampling] = []
        while samplings:
            free = (each for each in samplings if not any(_reads(reads, each, other) for other in samplings))
            ordered.append(next(free, samplings[0]))
            samplings.remove(ordered[-1])
        return tuple(ordered)

    def _named(self, part: int, variable: Variable) -> Variable:
        if variable.name not in self._ambiguous:
            return variable
        return replace(variable, name=f"{self._part_names[part]}.{variable.name}")

    def input_name(self, reference: str) -> str:
        """Return the name in the whole of an input given as `part.variable`.

        Raises
        ------
        DataError
            When it is no input, or driven by a connection.
        """
        part, name = self._wiring.free_input(reference)
        return f"{self._part_names[part]}.{name}" if name in self._ambiguous else name

    def settable(self) -> dict[str, Variable]:
        """Return the parameters and inputs that nothing drives by `part.variable`, under their names in the whole."""
        result = {
            f"{name}.{own.name}": named
            for index, (name, part) in enumerate(zip(self._part_names, self.parts, strict=True))
            for own, named in zip(part.parameters, self.parameters[self.parameters_of(index)], strict=True)
            if named.settable
        }
        for (index, entry), named in zip(self._inputs, self.inputs, strict=True):
            result[f"{self._part_names[index]}.{self.parts[index].inputs[entry].name}"] = named
        return result

    def calculated(self, part: int) -> tuple[Variable, ...]:
        """Return the calculated parameters of a part under their names in the whole."""
        return tuple(self._named(part, variable) for variable, _ in self.parts[part].balances)

    def _offset(self, kind: str, part: int) -> int:
        return sum(len(getattr(each, kind)) for each in self.parts[:part])

    def parameters_of(self, part: int) -> slice:
        """Return where a part's parameters stand among those of the whole."""
        start = self._offset("parameters", part)
        return slice(start, start + len(self.parts[part].parameters))

    # -- equations ------------------------------------------------------------------------------------------

    def _slices(self, vector: Array, kind: str) -> list[Array]:
        bounds = np.cumsum([0, *(len(getattr(part, kind)) for part in self.parts)])
        return [vector[start:end] for start, end in pairwise(bounds.tolist())]

    def _instants(self, instant: Instant) -> list[Instant]:
        """Return each part's instant, with connected inputs from the other parts' outputs.

        All functions of one instant need the same ones: they are kept until another instant comes.
        """
        given = [getattr(instant, part.name) for part in fields(instant)]
        return self._kept.of(given, lambda: self._connected(instant))

    def _connected(self, instant: Instant) -> list[Instant]:
        entries: list[list[Array]] = [[np.asarray(0.0)] * len(part.inputs) for part in self.parts]
        for index, (part, entry) in enumerate(self._inputs):
            entries[part][entry] = instant.inputs[index]
        kinds = ("coordinates", "velocities", "accelerations", "states", "discrete", "integrals")
        kept = [self._slices(getattr(instant, kind), kind) for kind in kinds]
        momenta = self._slices(instant.momenta, "coordinates")
        references = np.split(instant.references, np.cumsum([4 * part.references for part in self.parts])[:-1])
        parameters = self._slices(instant.parameters, "parameters")

        def at(part: int) -> Instant:
            inputs = np.stack(entries[part]) if entries[part] else np.zeros(0)
            own = {kind: group[part] for kind, group in zip(kinds, kept, strict=True)}
            return Instant(
                **own,
                inputs=inputs,
                parameters=parameters[part],
                references=references[part],
                momenta=momenta[part],
            )

        for wires in self._levels:
            readings = {part: _read(self.parts[part], at(part)) for part in {wire.source for wire in wires}}
            for wire in wires:
                entries[wire.target][wire.input] = readings[wire.source][wire.output]
        return [at(part) for part in range(len(self.parts))]

    def _rows(self, rows: Sequence[int]) -> list[tuple[int, ...]]:
        """Return each part's loop equations among those in use."""
        bounds = np.cumsum([0, *(len(part.constraints) for part in self.parts)]).tolist()
        return [tuple(row - start for row in rows if start <= row < end) for start, end in pairwise(bounds)]

    def forward_dynamics(
        self, instant: Instant, rows: Sequence[int], stabilisation: float, active: Array | None = None
    ) -> tuple[Array, Array]:
        """Return z̈ and λ of all parts."""
        each = zip(self.parts, self._instants(instant), self._active_shares(rows, active), strict=True)
        pairs = [part.forward_dynamics(own, used, stabilisation, counting) for part, own, (used, counting) in each]
        return _join(pair[0] for pair in pairs), _join(pair[1] for pair in pairs)

    def initial_momenta(self, instant: Instant) -> Array:
        """Return p = M ż of all parts."""
        return _join(p.initial_momenta(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def impulsive_velocities(
        self, instant: Instant, rows: Sequence[int], stabilisation: float, active: Array | None = None
    ) -> tuple[Array, Array]:
        """Return ż and σ of all parts."""
        each = zip(self.parts, self._instants(instant), self._active_shares(rows, active), strict=True)
        pairs = [part.impulsive_velocities(own, used, stabilisation, counting) for part, own, (used, counting) in each]
        return _join(pair[0] for pair in pairs), _join(pair[1] for pair in pairs)

    def momentum_rates(self, instant: Instant, rows: Sequence[int], impulses: Array) -> Array:
        """Return ṗ of all parts."""
        each = zip(self.parts, self._instants(instant), self._shares(rows, impulses), strict=True)
        return _join(part.momentum_rates(own, *share) for part, own, share in each)

    def evaluate_reactions(self, instant: Instant, rows: Sequence[int], multipliers: Array) -> Array:
        """Return the reactions of all parts."""
        each = zip(self.parts, self._instants(instant), self._shares(rows, multipliers), strict=True)
        return _join(part.evaluate_reactions(own, *share) for part, own, share in each)

    def _shares(self, rows: Sequence[int], values: Array) -> list[tuple[tuple[int, ...], Array]]:
        """Return each part's loop equations among those in use, and its share of values of these."""
        used = self._rows(rows)
        bounds = np.cumsum([0, *(len(own) for own in used)]).tolist()
        return [(own, values[start:end]) for own, (start, end) in zip(used, pairwise(bounds), strict=True)]

    def _active_shares(
        self, rows: Sequence[int], active: Array | None
    ) -> Sequence[tuple[tuple[int, ...], Array | None]]:
        """Return each part's loop equations among those in use, and which of these count."""
        return [(own, None) for own in self._rows(rows)] if active is None else self._shares(rows, active)

    @cached_property
    def start_system(self) -> System:
        """The system in whose coordinates the start is given."""
        parts = {name: part.start_system for name, part in zip(self._part_names, self.parts, strict=True)}
        if all(part is own for part, own in zip(self.parts, parts.values(), strict=True)):
            return self
        return CoupledSystem(self.name, parts, self._connections)

    def _start_slices(self, vector: Array) -> list[Array]:
        """Return each part's share of coordinates or velocities of the start system."""
        bounds = np.cumsum([0, *(len(part.start_system.coordinates) for part in self.parts)]).tolist()
        return [vector[start:end] for start, end in pairwise(bounds)]

    def start_references(self, coordinates: Array) -> Array:
        """Return the references of all parts."""
        shares = self._start_slices(coordinates)
        return _join(part.start_references(own) for part, own in zip(self.parts, shares, strict=True))

    def place(self, coordinates: Array, velocities: Array, instant: Instant) -> tuple[Array, Array]:
        """Return z and ż of all parts."""
        shares = zip(self._start_slices(coordinates), self._start_slices(velocities), strict=True)
        each = zip(self.parts, shares, self._instants(instant), strict=True)
        placed = [part.place(*share, own) for part, share, own in each]
        return _join(pair[0] for pair in placed), _join(pair[1] for pair in placed)

    def free_accelerations(self, instant: Instant) -> Array:
        """Return z̈ of all parts without constraint forces."""
        return _join(p.free_accelerations(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def correction_numbers(self, instant: Instant, penalty: float) -> Array:
        """Return the matrices of all parts."""
        each = zip(self.parts, self._instants(instant), strict=True)
        return _join(part.correction_numbers(own, penalty) for part, own in each)

    def correction(self, numbers: Array, violation: Array) -> tuple[Array, Array]:
        """Return Δz and Δλ of all parts."""
        bounds = np.cumsum([0, *(part.correction_count for part in self.parts)]).tolist()
        rows = self._shares(range(len(violation)), violation)
        each = zip(self.parts, pairwise(bounds), rows, strict=True)
        pairs = [part.correction(numbers[a:b], own) for part, (a, b), (_, own) in each]
        return _join(pair[0] for pair in pairs), _join(pair[1] for pair in pairs)

    def recentred(self, instant: Instant) -> Instant:
        """Return the same motion with all references moved to where it is now."""
        moved = [p.recentred(i) for p, i in zip(self.parts, self._instants(instant), strict=True)]
        kinds = ("coordinates", "velocities", "accelerations", "momenta", "references")
        return replace(instant, **{kind: _join(getattr(each, kind) for each in moved) for kind in kinds})

    def residual(self, instant: Instant) -> Array:
        """Return M z̈ − Q of all parts."""
        return _join(p.residual(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def closure(self, instant: Instant) -> Array:
        """Return Φ of all parts."""
        return _join(p.closure(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def rates(self, instant: Instant) -> Array:
        """Return ẋ of all parts."""
        return _join(p.rates(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def integral_rates(self, instant: Instant) -> Array:
        """Return the integrals' rates of all parts."""
        return _join(p.integral_rates(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return y of all parts."""
        return _join(p.evaluate_outputs(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def updates(self, instant: Instant) -> Array:
        """Return the discrete states of all parts after an update."""
        return _join(p.updates(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states of all parts before their first update."""
        slices = self._slices(parameters, "parameters")
        return _join(part.initial_discrete(each) for part, each in zip(self.parts, slices, strict=True))

    def inertia_tensors(self, parameters: Array) -> Array:
        """Return the tensors of all parts."""
        slices = self._slices(parameters, "parameters")
        return _join(part.inertia_tensors(each) for part, each in zip(self.parts, slices, strict=True))

    def start_limits(self, instant: Instant) -> Array:
        """Return values and limits of all parts."""
        return _join(p.start_limits(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def initial_integrals(self, instant: Instant) -> Array:
        """Return the integrals of all parts at the start."""
        return _join(p.initial_integrals(i) for p, i in zip(self.parts, self._instants(instant), strict=True))

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż of all parts as given."""
        slices = self._slices(parameters, "parameters")
        pairs = [part.initial_coordinates(each) for part, each in zip(self.parts, slices, strict=True)]
        return _join(pair[0] for pair in pairs), _join(pair[1] for pair in pairs)

    def initial_states(self, parameters: Array) -> Array:
        """Return x of all parts at the start."""
        slices = self._slices(parameters, "parameters")
        return _join(part.initial_states(each) for part, each in zip(self.parts, slices, strict=True))


def _join(vectors: Iterable[Array]) -> Array:
    return np.concatenate(list(vectors))


def _read(part: System, instant: Instant) -> Array:
    outputs = part.evaluate_outputs(instant)
    return np.concatenate([outputs, instant.coordinates, instant.velocities, instant.states, instant.discrete])


def _reads(pattern: NDArray[np.bool_], one: Sampling, other: Sampling) -> bool:
    """Tell whether an update of one reads what that of another one changes."""
    rows, columns = (slice(each.first, each.first + each.count) for each in (one, other))
    return one is not other and bool(pattern[rows, columns].any())
