"""The command `mbsfmu equilibrium`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.options import SECONDS, assignment, model_argument
from mbsfmu.cli.output import (
    at_work,
    log_to_stderr,
    output_file,
    print_table,
    refuse_same_files,
    say,
    shown,
    write_json,
)
from mbsfmu.equilibrium.model_equilibrium import Equilibrium
from mbsfmu.system_model.coupled_model import CoupledModel


@click.command("equilibrium", cls=SectionedCommand)
@model_argument
@click.option(
    "--hold",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Fixed variable, as system.variable, with its start value by default; 'position' fixes all coordinates.",
)
@click.option(
    "--find",
    multiple=True,
    metavar="NAME[=GUESS]",
    help="Free variable: an input or parameter without a connection, as system.variable, to be found.",
)
@click.option("--horizon", type=SECONDS, help="Time in s: slower changes, as by leakage, count as none.")
@click.option(
    "-o", "--output", callback=output_file(".json"), help="JSON file for the model that starts at the equilibrium."
)
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all values found.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    hold: tuple[str, ...],
    find: tuple[str, ...],
    horizon: float | None,
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Find where MODEL is at rest, or what holds it where it is.

    \b
    Example: mbsfmu equilibrium crane.json --hold position --find crane.cylinder.force -o resting.json
    """
    log_to_stderr(quiet)
    refuse_same_files(output, json_file, inputs=[model, *parts])
    given = find_model(model, parts)
    held = dict(map(_valued, hold))
    sought = [_valued(each) for each in find]
    valued = {name: _start(given, name) if value is None else value for name, value in sought}
    with at_work("searching", quiet):
        found = given.equilibrium("position" if held == {"position": None} else held, valued, horizon=horizon)
    write_json(json_file, _content(found))
    if output is not None:
        found.model.to_file(output)
    say(f"{given.name}: {found.stability}")
    names = [*found.found, *(name for name in found.values if name.split(".")[-1] in _TOLD)]
    print_table("at rest", ["name", "value", "unit"], [[name, shown(found[name]), found.units[name]] for name in names])
    for sentence in found.openness:
        say(sentence)
    for name, rate in found.moving.items():
        say(f"moving: {name} by {rate:.3g} {found.units[name]}/s")


_TOLD = ("angle", "displacement", "length", "pressure", "force", "torque", "command")
"""Last words of the names that are printed; the JSON file has all."""


def _valued(text: str) -> tuple[str, str | None]:
    """Parse `name` or `name=value`."""
    return assignment(text) if "=" in text else (text, None)


def _start(model: CoupledModel, name: str) -> float:
    """Return the start value of a free variable; 0 for an unknown one, which is refused later."""
    variable = model.system().settable().get(name)
    return 0.0 if variable is None or variable.start is None else variable.start


def _content(found: Equilibrium[CoupledModel]) -> dict[str, Any]:
    """Return the content of the `--json` file."""
    return {
        "model": found.model.name,
        "found": found.found,
        "values": found.values,
        "units": found.units,
        "open": found.kept,
        "moved": found.moved,
        "above_sources": found.above_sources,
        "moving": found.moving,
        "unbalanced_load": found.unbalanced_load,
        "stable": found.stable,
        "eigenvalues": [[float(each.real), float(each.imag)] for each in found.eigenvalues],
        "start": dict(found.model.start),
    }
