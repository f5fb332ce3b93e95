"""Parts whose equations cannot read the numbers of their data past what they are given."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any, TypeVar

from mbsfmu.data import DynamicPart, parameter_fields
from mbsfmu.tracing import TracingError

Part = TypeVar("Part", bound=DynamicPart)
_STRUCTURE = ("states", "inputs", "outputs", "limited", "orderings")
"""What a part says of itself, once and for all."""


def with_hidden_numbers(part: Part) -> Part:
    """Return a part whose fields that are parameters raise a `TracingError` where its equations read them.

    They stay as they are in the data, whatever a run, a study or an importer sets.
    """
    hidden = copy(part)
    fields = {name: getattr(part, name) for name in type(part).model_fields}
    structure = {name: getattr(part, name) for name in _STRUCTURE if hasattr(part, name)}
    object.__setattr__(hidden, "__dict__", {**fields, **structure})
    object.__setattr__(hidden, "__class__", _hiding(type(part)))
    return hidden


@cache
def _hiding(kind: type[Part]) -> type[Part]:
    """Return a class that is another one but for the fields that are parameters."""
    hiding: Any = type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__}, abstract=True)
    for field in parameter_fields(kind):
        setattr(hiding, field, _refusal(field))
    return hiding


def _refusal(field: str) -> property:
    def read(_: DynamicPart) -> float:
        raise TracingError(
            f'reads self.{field}, which stays as it is in the data whatever is set; take now["{field}"], the parameter'
        )

    return property(read)
