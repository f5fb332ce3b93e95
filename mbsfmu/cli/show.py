"""The command `mbsfmu show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.options import (
    SECONDS,
    assigned,
    live_machine,
    live_option,
    model_argument,
    options_of,
    set_values,
    stop_time,
    values_option,
)
from mbsfmu.cli.output import (
    at_work,
    log_to_stderr,
    output_file,
    print_table,
    progress_bar,
    refuse_same_files,
    say,
    shown,
    write_json,
)
from mbsfmu.cosim.runs.load_fmus import is_source
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.model_overview import overview
from mbsfmu.view.pages.page import stack, write_page
from mbsfmu.view.scene.animation import Animation

_SOURCE_COLUMNS = ("name", "type", "variability", "unit", "default", "description")
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
        yield title + of, list(_SOURCE_COLUMNS), [[shown(each[field]) for field in _SOURCE_COLUMNS] for each in listed]


def _counts(content: Mapping[str, Any]) -> Counter[str]:
    return Counter(each["kind"] for each in content["variables"])


_COLUMNS = {
    "input": ("name", "unit", "default", "minimum", "maximum", "driven_by", "description"),
    "output": ("name", "unit", "description"),
    "parameter": ("name", "unit", "default", "tunable", "driven_by", "description"),
    "local": ("name", "unit", "description"),
    "state": ("name", "unit", "description"),
    "reaction": ("name", "unit", "description"),
}
_TITLES = {"cuts": "joints of {} that close loops"}
"""Titles of tables of topology, where they are not the names of the tables."""
_MOST_TIMES = 20


@click.command("show", cls=SectionedCommand)
@model_argument
@click.option("--contents", is_flag=True, help="List all parts with their data, and how they are joined.")
@click.option("--variables", is_flag=True, help="List inputs, outputs, parameters, states and reactions.")
@click.option("--html", "page", callback=output_file(".html", ".htm"), help="HTML file with the mechanism in motion.")
@click.option("--gltf", callback=output_file(".glb"), help="glTF file (.glb) with the mechanism in motion.")
@click.option(
    "--stop",
    type=SECONDS,
    callback=stop_time,
    help="Stop time of the motion in s; the model's by default.",
)
@values_option
@options_of(RunOptions, "formulation", "solver", "step")
@live_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all of it.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    assignments: tuple[str, ...],
    contents: bool,
    variables: bool,
    page: str | None,
    gltf: str | None,
    stop: float | None,
    live: bool,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Show the parts of MODEL, an FMU or an SSP package, its topology, variables and motion.

    An FMU or an SSP package may come from any tool and be for any platform: nothing of it is loaded or run.

    \b
    Example: mbsfmu show four-bar --variables
    Example: mbsfmu show theirs.fmu --variables
    Example: mbsfmu show theirs.fmu --variables --set size=5
    Example: mbsfmu show four-bar --html four-bar.html --stop 2 --live
    """
    moving = page or gltf
    log_to_stderr(quiet or moving is None)  # what notes say of a model is in the tables
    refuse_same_files(json_file, page, gltf, inputs=[model, *parts])
    of_motion = {"stop": stop, "set": assignments or None, **options}
    without = [name for name, value in of_motion.items() if value is not None]
    if is_source(model) and not moving:
        without = [name for name in without if name != "set"]  # sizes of arrays follow structural parameters
    if without and not moving:
        raise InputError(f"--{without[0]} is of the motion; say where that is to be shown, by --html page.html")
    if is_source(model):
        if moving or live:
            given = "--gltf" if gltf and not page else "--html"
            raise InputError(f"{model} is refused with {given}: only models of mbsfmu are shown in motion")
        content = overview(model, assigned(assignments))
        write_json(json_file, content)
        print_source(content, contents, variables)
        return
    found = find_model(model, parts)
    alive = None
    if live:
        alive = live_machine(
            found, model, parts, page=page, option="--html", values=assigned(assignments), options=options
        )
    content = overview(found)
    write_json(json_file, content)
    say(f"{found.name}: {found.description}" if found.description else found.name)
    listed = (_contents(content) if contents else (), _variables(content) if variables else ())
    for title, columns, rows in (*_tables(found, content), *listed[0], *listed[1]):
        if rows:
            print_table(title, columns, rows)
    if moving:
        animation = _motion(found, stop, assignments, options, quiet)
        if gltf:
            animation.save(gltf)
        if page and alive is None:
            animation.save(page)
        elif page and alive:
            write_page(found.name, stack(animation.whole, alive.inside), page)


def _motion(
    model: CoupledModel, stop: float | None, assignments: tuple[str, ...], options: dict[str, Any], quiet: bool
) -> Animation:
    """Return the animation of a run."""
    with at_work("preparing", quiet):
        simulation = model.simulation(**options)
        set_values(simulation, assignments)
    with progress_bar("simulating", quiet) as progress:
        return simulation.run(stop, progress=progress).animate()


Listed = Iterator[tuple[str, list[str], list[list[str]]]]
"""Title, columns and rows of tables."""


def _tables(model: CoupledModel, content: dict[str, Any]) -> Listed:
    """Return the tables that are always printed."""
    kinds = [(name, kind, names) for name, kinds in content["systems"].items() for kind, names in kinds.items()]
    yield "systems", ["system", "has", "names"], [[name, kind, ", ".join(names)] for name, kind, names in kinds]
    yield (
        "motion",
        ["mechanism", "coordinates", "loop equations", "degrees of freedom", "redundant equations"],
        [[name, *_freedom(each)] for name, each in content["freedom"].items()],
    )
    yield "numbers that are hardly meant", ["remark"], [[sentence] for sentence in content["remarks"]]
    yield "connections", ["source", "drives"], [list(each) for each in model.connections]
    signals = [
        [name, signal.type, ", ".join(f"{time:g}" for time in signal.events[:_MOST_TIMES])]
        for name, signal in model.signals.items()
    ]
    yield "signals", ["input", "kind", "times [s]"], signals


def _freedom(warn: dict[str, Any]) -> list[str]:
    """Return the cells of a row on degrees of freedom."""
    counts = [str(warn["coordinates"]), str(warn["loop_equations"])]
    if "problem" in warn:
        return [*counts, "–", warn["problem"]]
    redundant = warn["redundant_equations"]
    named = f"{len(redundant)}: {', '.join(redundant)}" if redundant else "none"
    return [*counts, str(warn["degrees_of_freedom"]), named]


def _contents(content: dict[str, Any]) -> Listed:
    """Return the tables of parts and topology."""
    parts = content["parts"]
    yield (
        "parts",
        ["system", "name", "type", "data"],
        [[each["system"], each["name"], each["type"], _given(each["data"])] for each in parts],
    )
    for name, tables in content["topology"].items():
        for table, found in tables.items():
            rows = found
            if isinstance(found, dict):
                rows = [{table.removesuffix("s"): own, **row} for own, row in found.items()]
            columns = list(dict.fromkeys(column for row in rows for column in row))
            yield (
                _TITLES.get(table, f"{table.replace('_', ' ')} of {{}}").format(name),
                [column.replace("_", " ") for column in columns],
                [[_cell(row.get(column, "")) for column in columns] for row in rows],
            )


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else shown(value)


def _given(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {shown(value)}" for name, value in data.items())


def _variables(content: dict[str, Any]) -> Listed:
    """Return the tables of variables, one per kind."""
    for kind, fields in _COLUMNS.items():
        found = [each for each in content["variables"] if each["kind"] == kind]
        yield (
            f"{kind}s",
            [field.replace("_", " ") for field in fields],
            [[shown(each[field]) for field in fields] for each in found],
        )
