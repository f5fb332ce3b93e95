"""Structured names of the variables of FMUs whose names are flat."""

from __future__ import annotations

from typing import Any

from mbsfmu.modelling.variable_names import structured_name


def structured_names(description: Any) -> dict[str, str]:
    """Return the structured name of each variable of a description that FMPy read, by the name that it has there.

    They stand at the beginning of descriptions. Nothing where the FMU has structured names, or where two variables
    would have one name.
    """
    if description.variableNamingConvention != "flat":
        return {}
    names = {each.name: structured_name(each.name, each.description or "") for each in description.modelVariables}
    return names if len(set(names.values())) == len(names) else {}
