"""Tables of an FMU or SSP package for `mbsfmu show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mbsfmu.cli.standard_output import say
from mbsfmu.cli.terminal import print_table, shown

_COLUMNS = ("name", "type", "variability", "unit", "default", "description")
_EXPERIMENT = {"start": "s", "stop": "s", "step": "s", "tolerance": ""}
Tables = Iterator[tuple[str, list[str], list[list[str]]]]
"""Title, columns and rows of tables."""


def print_source(content: Mapping[str, Any], contents: bool, variables: bool) -> None:
    """Print the tables of an overview of an FMU or a package.

    Parameters
    ----------
    content
        What `source_overview` returns.
    contents
        Whether parameter values of a package are listed, and every component in full.
    variables
        Whether variables are listed.
    """
    of_package = "package" in content
    say(content["package"] if of_package else _heading(content))
    tables = _of_package(content, contents, variables) if of_package else _of_fmu(content, "", variables)
    for title, columns, rows in tables:
        if rows:
            print_table(title, columns, rows)


def _heading(content: Mapping[str, Any]) -> str:
    return f"{content['model']}: {content['description']}" if content["description"] else str(content["model"])


def _of_package(content: Mapping[str, Any], contents: bool, variables: bool) -> Tables:
    components = content["components"]
    yield (
        "components",
        ["component", "model", "FMI", "for", "platforms", "inputs", "outputs", "parameters"],
        [
            [
                name,
                shown(each["model"]),
                shown(each["fmi"]),
                ", ".join(each["interfaces"]),
                ", ".join(each["platforms"]) or "–",
                *(str(_counts(each)[kind]) for kind in ("input", "output", "parameter")),
            ]
            for name, each in components.items()
        ],
    )
    yield (
        "connections",
        ["source", "drives", "by"],
        [[each["source"], each["target"], _map(each)] for each in content["connections"]],
    )
    for kind in ("inputs", "outputs"):
        yield (
            f"{kind} of the package",
            ["name", "variable"],
            [[each["name"], each["variable"]] for each in content[kind]],
        )
    if contents:
        values = content["parameters"].items()
        yield "parameter values of the package", ["parameter", "value"], [[name, shown(each)] for name, each in values]
    if contents or variables:
        for name, each in components.items():
            for title, columns, rows in _of_fmu(each, f" of {name}", variables):
                if contents or title.startswith(_KINDS):
                    yield title, columns, rows


def _map(connection: Mapping[str, Any]) -> str:
    if connection["factor"] is None:
        return "–"
    return f"{connection['factor']:.6g} · value + {connection['offset']:.6g}"


_KINDS = ("inputs", "outputs", "parameters", "states", "other variables")


def _of_fmu(content: Mapping[str, Any], of: str, variables: bool) -> Tables:
    counts = _counts(content)
    experiment = [
        f"{name} {content[name]:g}{' ' * bool(unit)}{unit}"
        for name, unit in _EXPERIMENT.items()
        if content[name] is not None
    ]
    rows = {
        "FMI": shown(content["fmi"]),
        "for": ", ".join(content["interfaces"]) or "–",
        "platforms": ", ".join(content["platforms"]) or "none",
        "source code": shown(content["sources"]),
        "capabilities": ", ".join(content["capabilities"]) or "–",
        "default experiment": ", ".join(experiment) or "–",
        "variables": ", ".join(f"{number} {kind}{'s' * (number > 1)}" for kind, number in counts.items()),
        "made by": shown(content["tool"]),
        "on": shown(content["date"]),
        "size": f"{content['size'] / 1e6:.3g} MB",
    }
    yield f"FMU{of}", ["property", "value"], [list(row) for row in rows.items()]
    if not variables:
        return
    known = dict(zip(("input", "output", "parameter", "state"), _KINDS[:-1], strict=True))
    for title in _KINDS:
        listed = [each for each in content["variables"] if known.get(each["kind"], _KINDS[-1]) == title]
        yield title + of, list(_COLUMNS), [[shown(each[field]) for field in _COLUMNS] for each in listed]


def _counts(content: Mapping[str, Any]) -> Counter[str]:
    return Counter(each["kind"] for each in content["variables"])
