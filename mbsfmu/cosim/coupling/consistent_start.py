"""Consistent initialization: propagation of connected values, direct dependence and algebraic loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError

Dependencies = Mapping[str, Mapping[str, tuple[str, ...] | None]]


def needed_entries(exchange: CouplingData, column: int, dependencies: Dependencies) -> list[int]:
    """Return which entries of its member an output depends on directly; all of them where its FMU does not say."""
    name, variable = exchange.names[column]
    entries = exchange.member(name).entries.names
    known = dependencies[name].get(variable)
    return [index for index, entry in enumerate(entries) if known is None or entry in known]


def sort_outputs(exchange: CouplingData, dependencies: Dependencies) -> list[list[int]]:
    """Sort all outputs so that each follows those on which it depends directly.

    Parameters
    ----------
    exchange
        The members and their connections.
    dependencies
        By instance and variable, what the variable depends on directly; None or nothing for all.

    Returns
    -------
    list of list of int
        Outputs by their columns. An output that stands alone may depend on itself only if `is_loop` says so; several
        together make an algebraic loop (a strongly connected component).
    """
    count = len(exchange.names)
    needs = _needs(exchange, dependencies)
    pairs = [(source, column) for column, sources in needs.items() for source in sources]
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    groups: dict[int, list[int]] = defaultdict(list)
    for column, label in enumerate(labels):
        groups[int(label)].append(column)
    before = {label: {int(labels[source]) for column in group for source in needs[column]} - {label}
              for label, group in groups.items()}  # fmt: skip
    return [groups[label] for label in TopologicalSorter(before).static_order()]


def is_loop(exchange: CouplingData, group: Sequence[int], dependencies: Dependencies) -> bool:
    """Return whether outputs grouped by `sort_outputs` form an algebraic loop."""
    return len(group) > 1 or group[0] in _sources(exchange, group[0], dependencies)


def loop_names(exchange: CouplingData, group: Sequence[int]) -> str:
    """Return the outputs of a loop in words."""
    return ", ".join(".".join(exchange.names[column]) for column in group)


def _needs(exchange: CouplingData, dependencies: Dependencies) -> dict[int, list[int]]:
    return {column: _sources(exchange, column, dependencies) for column in range(len(exchange.names))}


def _sources(exchange: CouplingData, column: int, dependencies: Dependencies) -> list[int]:
    """Return the sources of the inputs on which an output depends."""
    member = exchange.member(exchange.names[column][0])
    sources = [int(member.sources[entry]) for entry in needed_entries(exchange, column, dependencies)]
    return [source for source in sources if source < len(exchange.names)]


_CONVERGED = 1e-10  # of the greater of nominal value and magnitude
_MOST_ITERATIONS = 50
_PERTURBATION = 1e-6


def initialize_values(exchange: CouplingData, time: float) -> None:
    """Propagate connected values in the order of dependence, and initialize all FMUs.

    An output is read when the inputs that it depends on have their values, so that start values of the FMUs stand
    where nothing is connected. Outputs that determine each other, an algebraic loop, are solved by Newton's method
    with the FMUs' directional derivatives, or with differences: FMI 2.0 lets inputs be set and outputs be read
    again in initialization mode.

    Parameters
    ----------
    exchange
        The members in initialization mode, with the connections to parameters too.
    time
        Start time in s, for signals.

    Raises
    ------
    SimulationError
        When a loop is not solved; the message names it, what is off, and by how much.
    """
    dependencies = {member.instance.name: member.instance.initial_dependencies for member in exchange.members}
    values = np.concatenate([exchange.read(), exchange.driven.after(time)])
    for columns in sort_outputs(exchange, dependencies):
        group = OutputGroup(exchange, columns, dependencies)
        if is_loop(exchange, columns, dependencies):
            _solve(group, values)
        else:
            values[columns] = group.evaluate(values)
    for member in exchange.members:
        if len(member.sources):
            member.entries.values[:] = values[member.sources] * member.factors + member.offsets
            member.entries.write()


def guessed_inputs(exchange: CouplingData) -> set[tuple[str, str]]:
    """Return the connected inputs in algebraic loops at the start, as (instance, variable).

    Their start values are where the solution of the loop begins; those of other connected inputs have no effect. An
    output of which its FMU does not say what it depends on makes no loop here.
    """
    dependencies: Dependencies = {
        member.instance.name: {
            name: member.instance.initial_dependencies.get(name) or () for name in member.outputs.names
        }
        for member in exchange.members
    }
    return {
        (part.member.instance.name, part.inputs.names[entry])
        for columns in sort_outputs(exchange, dependencies)
        if is_loop(exchange, columns, dependencies)
        for part in OutputGroup(exchange, columns, dependencies).parts
        for entry in np.flatnonzero(np.isin(part.sources, columns))
    }


class OutputsOfInstance:
    """The outputs of one member in a group, and the entries that they depend on."""

    def __init__(self, member: CoupledInstance, names: list[str], entries: list[int]) -> None:
        self.member = member
        self.sources, self.factors, self.offsets = (
            array[entries] for array in (member.sources, member.factors, member.offsets)
        )
        self.inputs = member.instance.port([member.entries.names[entry] for entry in entries])
        self.outputs = member.instance.port(names)

    def evaluate(self, values: Floats) -> Floats:
        """Set the inputs from the values of all columns and return the outputs."""
        if len(self.sources):
            self.inputs.values[:] = values[self.sources] * self.factors + self.offsets
            self.inputs.write()
        return self.outputs.read().copy()


class OutputGroup:
    """Outputs as functions of all values, in initialization mode."""

    def __init__(self, exchange: CouplingData, columns: Sequence[int], dependencies: Dependencies) -> None:
        self.exchange = exchange
        self.columns = np.array(sorted(columns), dtype=np.intp)
        self.parts = []
        for member in exchange.members:
            rows = [column for column in self.columns if member.place.start <= column < member.place.stop]
            if rows:
                entries = {entry for row in rows for entry in needed_entries(exchange, row, dependencies)}
                names = [exchange.names[row][1] for row in rows]
                self.parts.append(OutputsOfInstance(member, names, sorted(entries)))

    def evaluate(self, values: Floats) -> Floats:
        """Return the outputs of the group at the values of all columns."""
        return np.concatenate([part.evaluate(values) for part in self.parts])

    def jacobian(self, values: Floats, found: Floats, scales: Floats) -> Floats:
        """Return the derivatives of the group's outputs by themselves, shape (outputs, outputs)."""
        result = np.zeros((len(self.columns), len(self.columns)))
        first = 0
        for part in self.parts:
            rows = slice(first, first + len(part.outputs.names))
            first = rows.stop
            inside = np.flatnonzero(np.isin(part.sources, self.columns))
            try:
                result[rows] = self._by_unit(part, inside)
            except FmuError:
                result[rows] = self._by_differences(part, values, found[rows], scales)
        return result

    def _by_unit(self, part: OutputsOfInstance, inside: NDArray[np.intp]) -> Floats:
        instance = part.member.instance
        if not (instance.gives_directional_derivatives and part.outputs.all_real and part.inputs.all_real):
            raise FmuError(f"{instance.name} gives no directional derivatives", False)
        knowns = [part.inputs.names[entry] for entry in inside]
        block = instance.directional_derivative(part.outputs.names, knowns)
        result = np.zeros((len(part.outputs.names), len(self.columns)))
        for entry, column in zip(inside, block.T, strict=True):
            result[:, np.searchsorted(self.columns, part.sources[entry])] += column * part.factors[entry]
        return result

    def _by_differences(self, part: OutputsOfInstance, values: Floats, found: Floats, scales: Floats) -> Floats:
        result = np.zeros((len(found), len(self.columns)))
        for index, column in enumerate(self.columns):
            if column in part.sources:
                moved = values.copy()
                moved[column] += _PERTURBATION * scales[index]
                result[:, index] = (part.evaluate(moved) - found) / (_PERTURBATION * scales[index])
        return result


def _solve(group: OutputGroup, values: Floats) -> None:
    """Solve y = Y(y) for the outputs of a loop; whole numbers and truth values are passed on as they come."""
    exchange, columns = group.exchange, group.columns
    real = np.flatnonzero(~np.isin(columns, exchange.held))
    nominals = exchange.nominals()[columns]
    names = loop_names(exchange, columns.tolist())
    residual = scales = np.ones(1)
    for _ in range(_MOST_ITERATIONS):
        trial = values[columns].copy()
        found = group.evaluate(values)
        residual = found - trial
        scales = np.maximum(nominals, np.abs(found))
        if np.max(np.abs(residual) / scales) <= _CONVERGED:
            values[columns] = found
            return
        matrix = np.eye(len(real)) - group.jacobian(values, found, scales)[np.ix_(real, real)]
        values[columns] = found
        try:
            values[columns[real]] = trial[real] + np.linalg.solve(matrix, residual[real])
        except np.linalg.LinAlgError:
            raise SimulationError(
                f"the algebraic loop of {names} has no single solution at initialization: its equations are singular"
            ) from None
    worst = int(np.argmax(np.abs(residual) / scales))
    raise SimulationError(
        f"initialization does not converge: in the algebraic loop of {names}, "
        f"{'.'.join(exchange.names[columns[worst]])} still changes by {abs(residual[worst]):.3g} after "
        f"{_MOST_ITERATIONS} iterations"
    )
