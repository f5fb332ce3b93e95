"""The command `mbsfmu schema`."""

from __future__ import annotations

import json

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.options import parts_option
from mbsfmu.cli.output import output_file, refuse_same_files, say, write_json
from mbsfmu.io.part_files import load_parts
from mbsfmu.model.model_data import model_schema


@click.command("schema", cls=SectionedCommand)
@parts_option
@click.option("-o", "--output", callback=output_file(".json"), help="JSON file instead of stdout.")
@common_options
def command(parts: tuple[str, ...], output: str | None, quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """Write the JSON Schema of model files.

    It has all kinds of parts, with their fields, units, bounds and defaults.

    \b
    Example: mbsfmu schema -o model.schema.json
    """
    refuse_same_files(output, inputs=parts)
    with load_parts(parts).given():
        schema = model_schema()
    write_json(output, schema)
    if output is None:
        say(json.dumps(schema, indent=2))
