"""Direct dependence between outputs, and algebraic loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mbsfmu.cosim.coupling.coupling_data import CouplingData

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
