"""Numbers of parts that are hardly meant, because they are beyond what is ever met: probably in another unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mbsfmu.modelling.parameters import parameter_fields
from mbsfmu.modelling.part import Part


def unusual_numbers(part: Part, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each parameter of a part that is not usual.

    Parameters
    ----------
    part
        The part, in whose class `Parameter.usual` says what is.
    numbers
        Values by `part.parameter` that are not as in the data.
    """
    for field, parameter in parameter_fields(type(part)).items():
        value = numbers.get(f"{part.name}.{field}", getattr(part, field))
        if parameter.usual is not None and value and not is_usual(value, parameter.usual):
            yield unusual(f"{part.type} '{part.name}': {field}", value, parameter.unit, parameter.usual)


def is_usual(value: float, usual: tuple[float, float]) -> bool:
    """Return whether a number is within what is usual: the least and the most."""
    return usual[0] <= value <= usual[1]


def unusual(what: str, value: float, unit: str, usual: tuple[float, float]) -> str:
    """Return the sentence on a number that is not usual."""
    least, most = usual
    bound = f"less than {least:g}" if value < least else f"more than {most:g}"
    return f"{what} is {value:g} {unit}, {bound} {unit}, which is implausible; numbers are in SI units"
