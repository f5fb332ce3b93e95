"""What the description of a unit says of its variables, in our words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mbsfmu.cosim.units import UNIT_ATTRIBUTES, Unit
from mbsfmu.variables import Causality, Variability, Variable


def described_variable(described: Any) -> Variable:
    """Return a described variable as ours."""
    causality = described.causality or "local"
    if causality not in list(Causality):
        causality = "local"
    variability = described.variability
    if variability not in list(Variability):
        variability = "continuous" if described.type == "Real" else "discrete"
    return Variable(
        described.name,
        Causality(causality),
        Variability(variability),
        unit_name(described),
        nominal=float(described.nominal) if described.nominal else None,
        description=described.description or "",
    )


def described_dependencies(unknowns: Any) -> dict[str, tuple[str, ...] | None]:
    """Return what each unknown of a model structure depends on; None where the description does not say."""
    return {
        each.variable.name: None if each.dependencies is None else tuple(known.name for known in each.dependencies)
        for each in unknowns
    }


def described_units(description: Any) -> dict[str, Unit]:
    """Return the unit of each variable of a description that FMPy read, with its definition where that has one."""
    defined = {
        each.name: Unit.of_attributes(each.name, {key: getattr(each.baseUnit, key) for key in UNIT_ATTRIBUTES})
        for each in description.unitDefinitions
        if each.baseUnit is not None
    }
    units = {}
    for each in description.modelVariables:
        name = unit_name(each)
        unit = defined.get(name, Unit(name))
        # The offset of a difference of two values falls out of its conversion.
        units[each.name] = replace(unit, offset=0.0) if _is_difference(each) else unit
    return units


def unit_name(described: Any) -> str:
    """Return the name of a described variable's unit, of its type where it has none itself; `1` for none at all."""
    return described.unit or (described.declaredType.unit if described.declaredType else None) or "1"


def _is_difference(described: Any) -> bool:
    declared = described.declaredType
    return bool(described.relativeQuantity or (declared is not None and declared.relativeQuantity))


ALLOWED = {
    "Real": "a number",
    "Integer": "an integer",
    "Boolean": "true or false",
    "Enumeration": "an item of the enumeration or its integer",
}
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def typed_value(described: Any, value: Any) -> float | int | bool | str:
    """Return a value as the type of a described variable asks for it; integers may be written as `3.0`.

    Raises
    ------
    ValueError
        When it is none of that type.
    """
    kind = described.type
    if kind == "String":
        return str(value)
    if kind == "Real":
        return float(value)
    if kind == "Boolean":
        if str(value).lower() not in _TRUTHS:
            raise ValueError(value)
        return _TRUTHS[str(value).lower()]
    items = described.declaredType.items if kind == "Enumeration" and described.declaredType else None
    for item in items or ():
        if item.name == value:
            return int(item.value)
    if float(value) != int(float(value)):
        raise ValueError(value)
    return int(float(value))
