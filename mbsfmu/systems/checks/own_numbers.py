"""Detection of equations that read parameters from the part's data instead of the context."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any, TypeVar

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import DynamicPart, is_table, parameter_fields
from mbsfmu.tracing.symbols import TracingError

Part = TypeVar("Part", bound=DynamicPart)
_STRUCTURE = ("states", "inputs", "outputs", "limited", "orderings")
"""Fields of a part that describe its structure."""


def with_hidden_numbers(part: Part) -> Part:
    """Return a part whose parameter fields raise a `TracingError` when its equations read them.

    Such values would not change with parameters that a run, a study or an importer sets.

    Raises
    ------
    InputError
        When `states` takes from such a field where a state begins.
    """
    if part.states() and not part.gives("initial_states"):
        _check_starts(part)
    hidden = copy(part)
    fields = {name: getattr(part, name) for name in type(part).model_fields}
    structure = {name: getattr(part, name) for name in _STRUCTURE if hasattr(part, name)}
    object.__setattr__(hidden, "__dict__", {**fields, **structure})
    object.__setattr__(hidden, "__class__", _hiding(type(part)))
    return hidden


def _check_starts(part: DynamicPart) -> None:
    """Refuse a part whose initial states depend directly on parameter fields."""
    for field in parameter_fields(type(part)):
        other = copy(part)
        object.__setattr__(other, "__dict__", {**part.__dict__, field: _changed(getattr(part, field))})
        for state, elsewhere in zip(part.states(), other.states(), strict=True):
            if state.start != elsewhere.start:
                raise InputError(
                    f"{part.type} '{part.name}' is refused: states() takes the start of '{state.name}' from the "
                    f"parameter self.{field}, and a value set later would not reach it; give the start in "
                    f'initial_states(now), from now["{field}"]'
                )


def _changed(value: Any) -> Any:
    if value is None:
        return None
    return tuple(map(_changed, value)) if isinstance(value, tuple) else 1.125 * value + 0.5


@cache
def _hiding(kind: type[Part]) -> type[Part]:
    """Return a subclass with inaccessible parameter fields."""
    hiding: Any = type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__}, abstract=True)
    for field in parameter_fields(kind):
        hides = _hidden_values if is_table(kind.model_fields[field].annotation) else _refusal
        setattr(hiding, field, hides(field))
    return hiding


def _refusal(field: str) -> property:
    def read(_: DynamicPart) -> float:
        raise _reads(field, f'now["{field}"], the parameter')

    return property(read)


def _hidden_values(field: str) -> property:
    """Return a property for a table, whose places are structure and whose values are hidden."""

    def read(part: DynamicPart) -> tuple[tuple[float, _Hidden], ...]:
        return tuple((place, _Hidden(field)) for place, _ in vars(part)[field])

    return property(read)


def _reads(field: str, instead: str) -> TracingError:
    return TracingError(f"reads self.{field}, which stays as it is in the data whatever is set; take {instead}")


class _Hidden:
    """A value of a table that no equation may take."""

    def __init__(self, field: str) -> None:
        self._field = field

    def _refuse(self, *_: object) -> Any:
        raise _reads(self._field, f'now["{self._field}_1"] and so on, the parameters, as `tabulated` does')

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __float__ = __neg__ = __array__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
