"""Command line: dispatch of commands, help in two sections, one-line errors."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from mbsfmu.base.failures import SimulationError
from mbsfmu.base.files import WriteError, reason
from mbsfmu.cli.loading import INTERRUPTED, interrupted_at_once, interrupted_status, uncollected

EXPERT = frozenset(
    {
        # of simulations and FMUs
        *("jacobian", "absolute_tolerance", "newton_tolerance", "iterations", "penalty", "projections"),
        *("restart_momenta", "stabilisation", "code", "assembly"),
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


Command = TypeVar("Command", bound=Callable[..., Any])


def common_options(command: Command) -> Command:
    """Add the options that every command has."""
    command = click.option("--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)
    return click.option("--debug", is_flag=True, help="Show where an error comes from.")(command)


def checkpoint_option(command: Command) -> Command:
    """Add the option for checkpoints next to the output."""
    return click.option(
        "--checkpoint",
        type=float,
        help="Time in s between saves to OUTPUT.checkpoint, from which the same call goes on after it was killed.",
    )(command)


COMMANDS = {
    "compare": "Run MODEL monolithically and coupled, and say what coupling and the step cost.",
    "cosim": "Run coupled FMUs: SOURCE is an SSP file, a folder that holds one, or FMU files as [name=]file.",
    "equilibrium": "Find where MODEL is at rest, or what holds it where it is.",
    "export": "Export MODEL as FMUs of FMI 2.0 or 3.0, for co-simulation or model exchange.",
    "fit": "Fit parameters of MODEL to measured signals.",
    "linearize": "Linearize MODEL about a time of a run, or about an equilibrium: A, B, C, D and modes.",
    "live": "Run coupled FMUs at real time behind a page on this machine that drives them.",
    "models": "List the built-in models and the examples.",
    "new": "Write a Python file with a machine that runs, to change into one's own.",
    "optimize": "Find parameters of MODEL that minimise a scalar of its run under constraints.",
    "play": "Write a page in which MODEL runs, driven by sliders, keys and gamepads.",
    "schema": "Write the JSON Schema of model files.",
    "show": "Show the parts of MODEL, an FMU or an SSP package, its topology, variables and motion.",
    "simulate": "Simulate MODEL monolithically, in process.",
    "sweep": "Run MODEL at every combination of parameters and settings.",
    "validate": "Check FMU files, ours or not, of FMI 2.0 and 3.0.",
}
"""Commands and their help; each has a module here with the function `command`."""


class _Commands(click.Group):
    """Loads a command on demand, because libraries load slowly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help of the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete the commands without loading them."""
        return [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown command with the closest match."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from mbsfmu.modelling import closest_match  # noqa: PLC0415 - takes longer to load than all that is there until now

            raise click.UsageError(f"there is no command '{args[0]}'; {closest_match(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        with interrupted_at_once(), uncollected():
            return importlib.import_module(f"mbsfmu.cli.{cmd_name}").command


def main() -> None:
    """Run the command line: exit status 0 done, 1 the work failed, 2 the call or the input was wrong, 130 interrupted.

    What the system ends (SIGTERM) is interrupted as by Ctrl-C: results are kept, and what was unpacked is removed. Its
    status is 143.
    """
    interrupted_by = signal.SIGINT

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted_by
        interrupted_by = signal.Signals(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGTERM, end)
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except BrokenPipeError:  # who reads has enough, as `head` has
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - what is still to come goes there, to the very end
        sys.exit(1)
    except ValueError as error:
        _fail(str(error), 2)
    except (SimulationError, WriteError) as error:
        _fail(str(error), 1)
    except MemoryError as error:
        _fail(f"the memory of this machine is too small for it{f': {error}' if str(error) else ''}", 1)
    except OSError as error:
        _fail(f"{error.filename}: {reason(error)}" if error.filename else reason(error), 2)
    except (KeyboardInterrupt, click.Abort):
        _fail(INTERRUPTED, interrupted_status(interrupted_by))
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(message: str, status: int) -> NoReturn:
    """End with a message on stderr, with a traceback for `--debug`."""
    if "--debug" in sys.argv:
        traceback.print_exc()
    click.echo(f"mbsfmu: {message}", err=True)
    sys.exit(status)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mbsfmu")
@common_options
@click.pass_context
def cli(context: click.Context, quiet: bool, debug: bool) -> None:  # noqa: ARG001 - main looks for it
    """Multibody mechanisms and hydraulics: simulate, export as FMUs, co-simulate, compare, sweep.

    MODEL is a built-in name (`mbsfmu models`), a model file (model.json), a robot (robot.urdf) or file.py:factory.
    """
    context.default_map = {name: {"quiet": quiet} for name in COMMANDS}
