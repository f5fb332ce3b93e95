"""Names of parts' variables in the whole that they make."""

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
    """Variables keep their names where these are unique over the parts; elsewhere the part's name stands before.

    It does too where a name would be what another variable is called with its part's name before.

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
        names = Counter(name for _, name in self._owned)
        self._told = {name for name, times in names.items() if times > 1}
        while taken := {self.name(*each) for each in self._owned if each[1] in self._told} & names.keys() - self._told:
            self._told |= taken

    def name(self, part: int, name: str) -> str:
        """Return the name in the whole of what has this one in a part."""
        return f"{self._names[part]}.{name}" if name in self._told else name

    def of(self, part: int, variable: Variable) -> Variable:
        """Return a variable of a part under its name in the whole."""
        return replace(variable, name=self.name(part, variable.name))

    def every(self, kind: str) -> tuple[Variable, ...]:
        """Return all variables of a kind, part by part."""
        return tuple(self.of(index, each) for index, part in enumerate(self._parts) for each in getattr(part, kind))

    def limited(self) -> tuple[Variable, ...]:
        """Return what is limited at the start, part by part; the part's name stands before where several have the name.

        The whole may lack these variables, as lengths of cylinders that mechanisms give.
        """
        times = Counter(each.name for part in self._parts for each in part.limited)
        return tuple(
            replace(each, name=f"{name}.{each.name}") if times[each.name] > 1 else self.of(index, each)
            for index, (name, part) in enumerate(zip(self._names, self._parts, strict=True))
            for each in part.limited
        )

    def qualified(self) -> dict[str, str]:
        """Return all variables of the parts that the whole has as `part.variable`, by their names in the whole."""
        return {self.name(index, name): f"{self._names[index]}.{name}" for index, name in self._owned}

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all inertia tensors; bodies that have the same name get that of their part before it."""
        times = Counter(tensor.body for part in self._parts for tensor in part.tensors)
        return tuple(
            replace(tensor, body=f"{name}.{tensor.body}") if times[tensor.body] > 1 else tensor
            for name, part in zip(self._names, self._parts, strict=True)
            for tensor in part.tensors
        )
