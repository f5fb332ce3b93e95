"""Signature of a data class for `help` and `inspect.signature`: fields with types and defaults."""

from __future__ import annotations

from functools import reduce
from inspect import Parameter, Signature
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


class FieldSignature:
    """Signature of a data class, created on demand: keyword fields, required ones first."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        """Return the signature of a class."""
        fields = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.is_required() else field.get_default(call_default_factory=True),
                annotation=plain(field.annotation),
            )
            for name, field in owner.model_fields.items()
            if name != "type"
        ]
        return Signature(sorted(fields, key=lambda each: each.default is not Parameter.empty))


def plain(annotation: Any) -> Any:
    """Return a type without its validation annotations.

    Parameters
    ----------
    annotation
        The type, as `Annotated[float, Gt(0)]` or a tuple of such.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain(arguments[0])
    if not arguments or origin is Literal:
        return annotation
    inner = tuple(plain(each) for each in arguments)
    return reduce(or_, inner) if origin in (Union, UnionType) else origin[inner]
