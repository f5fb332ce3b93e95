"""The command `mbsfmu models`."""

from __future__ import annotations

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.output import print_table
from mbsfmu.models import BUILT_IN, CIRCUITS
from mbsfmu.models.examples import EXAMPLES, example_description

_OF_ANY_SIZE = [["pendulum-N", "open chain of N links"], ["ladder-N", "ladder of N loops"]]


@click.command("models", cls=SectionedCommand)
@common_options
def command(quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """List the built-in models and the examples.

    Examples are files to copy: mbsfmu new NAME --like crane.

    \b
    Example: mbsfmu models
    """
    rows = [[name, BUILT_IN[name]().description] for name in BUILT_IN]
    others = f"with another circuit: {', '.join(CIRCUITS)}"
    rows += [[f"{name}-CIRCUIT", others] for name in ("four-bar", "quick-return")]
    print_table("built-in models", ["name", "what it is"], [*rows, *_OF_ANY_SIZE])
    print_table("examples", ["name", "what it is"], [[name, example_description(name)] for name in EXAMPLES])
