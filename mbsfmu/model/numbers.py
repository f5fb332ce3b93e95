"""Variables of a part in one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mbsfmu.modelling import Array, DataError, closest_match


class Numbers:
    """Parameters, states and inputs of a part by their short names: `now["gain"]`.

    Parameters
    ----------
    owner
        Type and name of the part, for messages.
    numbers
        Return the numbers, by short name.
    """

    def __init__(self, owner: str, numbers: Mapping[str, Callable[[], Array]]) -> None:
        self._owner = owner
        self._numbers = numbers

    def __contains__(self, name: str) -> bool:
        """Return whether a variable exists; a parameter that is None does not."""
        return name in self._numbers

    def __getitem__(self, name: str) -> Array:
        if name not in self._numbers:
            raise DataError(f"{self._owner} has no number '{name}' here; {closest_match(name, self._numbers)}")
        return self._numbers[name]()
