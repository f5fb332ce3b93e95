"""Selection of exposed variables and outputs of an FMU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mbsfmu.base.errors import InputError
from mbsfmu.base.patterns import means, nearest


@dataclass(frozen=True)
class ExposedVariables:
    """Selection of outputs; without one, the system's own outputs.

    Attributes
    ----------
    outputs
        Patterns of names as shells have them: `boom.angle`, `cylinder.*`, `mechanism.boom.*`. A variable is meant by
        its name in the system, by that in the whole, and with its system's name before.
    needed
        Names of outputs that are connected: they are outputs whatever is chosen.
    whole
        Whether each pattern must mean something: what one system of a model lacks, another one may have.
    local_variables
        Whether what is no output is shown too.
    qualified
        `system.variable` by the names of variables.
    driving
        Names of outputs by `system.variable` of the connected inputs that have their values.
    """

    outputs: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    whole: bool = True
    local_variables: bool = True
    qualified: Mapping[str, str] = field(default_factory=dict)
    driving: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_system(self) -> Mapping[str, str]:
        """Names of variables by `system.variable`, which is the same in every layout and formulation."""
        return {reference: name for name, reference in self.qualified.items()}

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Names of variables by `system.variable`, those of connected inputs included."""
        return {**self.driving, **self.by_system}

    def chosen(self, candidates: Iterable[str], others: Mapping[str, str]) -> tuple[str, ...]:
        """Return the selected outputs: in the order of the patterns, then the required ones.

        Parameters
        ----------
        candidates
            What may be an output.
        others
            What may not, and what it is, for sentences.

        Raises
        ------
        InputError
            When a pattern means none of them.
        """
        known = list(candidates)
        found: dict[str, None] = {}
        for pattern in self.outputs:
            matches = [name for name in known if self._means(pattern, name)]
            if self.whole and not matches:
                raise self._nothing(pattern, known, others)
            found |= dict.fromkeys(matches)
        return (*found, *(name for name in known if name in self.needed and name not in found))

    def kept(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return outputs without a matching pattern, as `system.variable`: connections read them."""
        left = [name for name in names if not any(self._means(pattern, name) for pattern in self.outputs)]
        return tuple(self.qualified.get(name, name) for name in left) if self.outputs else ()

    def _means(self, pattern: str, name: str) -> bool:
        return means(pattern, self._names(name))

    def _names(self, name: str) -> tuple[str, ...]:
        whole = self.qualified.get(name, name)
        return name, whole, whole.partition(".")[2]

    def _nothing(self, pattern: str, known: Collection[str], others: Mapping[str, str]) -> InputError:
        """Return the error for a pattern without a match."""
        if name := next((name for name in others if self._means(pattern, name)), None):
            return InputError(f"'{pattern}' cannot be an output: {name} is {others[name]}")
        return InputError(f"there is no variable '{pattern}' to be an output; {nearest(pattern, known, self._names)}")
