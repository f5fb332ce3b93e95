"""Help of commands in two sections: options for everybody, and those for experts."""

from __future__ import annotations

import click

EXPERT = frozenset(
    {
        # of simulations and FMUs
        *("jacobian", "absolute_tolerance", "newton_tolerance", "iterations", "penalty", "projections"),
        *("restart_momenta", "stabilisation", "code", "unit_threads", "assembly"),
        # of exports
        *("arrays", "sources", "locals", "no_execution_tool", "reference", "wrapper"),
        # of coupled runs
        *("unit_tolerance", "smallest_step", "largest_step", "iteration_tolerance", "maximum_iterations", "relaxation"),
        *(
            "energy_correction",
            "linear_correction",
            "threads",
            "model_exchange",
            "unit_solver",
            "isolate",
            "strict",
            "rates",
        ),
        *("place", "time_limit"),
        *("record_every", "record_interval", "bonds", "internal_step", "scheduler"),
        # of all commands
        "debug",
    }
)
"""Names of options for those who know the method behind them."""


class SectionedCommand(click.Command):
    """A command whose help lists options for experts behind the others."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what was typed; while a shell completes the value of an option, that option has none yet."""
        typed = args[:-1] if ctx.resilient_parsing and args and args[-1].startswith("-") else args
        return super().parse_args(ctx, typed)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in two sections."""
        for title, expert in (("Options", False), ("Options for experts", True)):
            listed = [each for each in self.get_params(ctx) if (each.name in EXPERT) is expert]
            records = [record for each in listed if (record := each.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
