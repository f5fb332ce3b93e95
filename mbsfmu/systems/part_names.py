"""Names of parts' variables in a coupled system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.system import System, Tensor

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
