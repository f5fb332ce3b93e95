"""The command `mbsfmu show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.model_argument import find_model, model_argument
from mbsfmu.cli.options import options_of, output_file, refuse_same_files
from mbsfmu.cli.output import log_to_stderr, write_json
from mbsfmu.cli.standard_output import say
from mbsfmu.cli.terminal import at_work, print_table, progress_bar, shown
from mbsfmu.coupled import CoupledModel
from mbsfmu.data import Data
from mbsfmu.errors import InputError
from mbsfmu.simulation.options import RunOptions
from mbsfmu.variables import Causality, Variable

_COLUMNS = {
    "input": ("name", "unit", "default", "driven_by", "description"),
    "output": ("name", "unit", "description"),
    "parameter": ("name", "unit", "default", "driven_by", "description"),
    "reaction": ("name", "unit", "description"),
}
_MOST_TIMES = 20


@click.command("show")
@model_argument
@click.option("--variables", is_flag=True, help="List inputs, outputs, parameters and reactions.")
@click.option("--html", "page", callback=output_file(".html", ".htm"), help="HTML file with the mechanism in motion.")
@click.option("--stop", type=float, help="How far that motion is simulated, in s; by default as the model says.")
@options_of(RunOptions, "formulation", "solver", "step")
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all that there is to show.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    variables: bool,
    page: str | None,
    stop: float | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Show what MODEL is made of, its variables with their units, and how it moves.

    \b
    Example: mbsfmu show four-bar --variables
    Example: mbsfmu show four-bar --html four-bar.html --stop 2
    """
    log_to_stderr(quiet)
    refuse_same_files(json_file, page, inputs=[model, *parts])
    without = [name for name, value in {"stop": stop, **options}.items() if value is not None]
    if without and not page:
        raise InputError(f"--{without[0]} is of the motion; say where that is to be shown, by --html page.html")
    found = find_model(model, parts)
    content = _content(found)
    write_json(json_file, content)
    say(f"{found.name}: {found.description}" if found.description else found.name)
    for title, columns, rows in _tables(found, content, variables):
        if rows:
            print_table(title, columns, rows)
    if page:
        _show_motion(found, page, stop, options, quiet)


def _show_motion(model: CoupledModel, page: str, stop: float | None, options: dict[str, Any], quiet: bool) -> None:
    """Simulate a model and write a page with its mechanisms in motion."""
    with at_work("preparing", quiet):
        simulation = model.simulation(**options)
    with progress_bar("simulating", quiet) as progress:
        result = simulation.run(stop, progress=progress)
    result.animate().save(page)


def _tables(
    model: CoupledModel, content: dict[str, Any], variables: bool
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Give title, columns and rows of each table."""
    kinds = [(name, kind, names) for name, kinds in content["systems"].items() for kind, names in kinds.items()]
    yield "systems", ["system", "has", "names"], [[name, kind, ", ".join(names)] for name, kind, names in kinds]
    yield "connections", ["source", "drives"], [list(each) for each in model.connections]
    signals = [
        [name, signal.type, ", ".join(f"{time:g}" for time in signal.events[:_MOST_TIMES])]
        for name, signal in model.signals.items()
    ]
    yield "signals", ["input", "kind", "times [s]"], signals
    for kind, fields in _COLUMNS.items() if variables else ():
        found = [each for each in content["variables"] if each["kind"] == kind]
        yield (
            f"{kind}s",
            [field.replace("_", " ") for field in fields],
            [[shown(each[field]) for field in fields] for each in found],
        )


def _content(model: CoupledModel) -> dict[str, Any]:
    """Return what there is to show as plain data."""
    return {
        "model": model.name,
        "description": model.description,
        "stop_time": model.stop_time,
        "step": model.step,
        "systems": {name: _parts(system) for name, system in model.systems.items()},
        "connections": [list(each) for each in model.connections],
        "signals": {name: signal.to_dict() for name, signal in model.signals.items()},
        "variables": list(_variables(model)),
    }


def _parts(system: Data) -> dict[str, list[str]]:
    """Return the names of what a system is made of, by the field that holds it."""
    fields = {name: getattr(system, name) for name in type(system).model_fields}
    return {
        name: [each.name for each in value]
        for name, value in fields.items()
        if isinstance(value, tuple) and value and all(isinstance(each, Data) for each in value)
    }


def _variables(model: CoupledModel) -> Iterator[dict[str, Any]]:
    """List the inputs, outputs, parameters and reactions of each system as `system.variable`."""
    sources = {target: source for source, target in model.connections}
    sources |= dict.fromkeys(model.signals, "a signal")
    for name, part in zip(model.systems, model.system().parts, strict=True):
        readable = [*part.coordinates, *part.velocities, *part.outputs]
        for kind, variables in (
            ("input", part.inputs),
            ("output", [each for each in readable if each.causality is Causality.OUTPUT]),
            ("parameter", part.parameters),
            ("reaction", part.reactions),
        ):
            for variable in variables:
                yield _described(kind, f"{name}.{variable.name}", variable, sources)


def _described(kind: str, name: str, variable: Variable, sources: dict[str, str]) -> dict[str, Any]:
    nobody = "nothing" if kind == "input" else None
    return {
        "name": name,
        "kind": kind,
        "unit": variable.unit,
        "default": variable.start,
        "minimum": variable.minimum,
        "driven_by": sources.get(name, nobody),
        "description": variable.description,
    }
