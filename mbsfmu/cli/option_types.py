"""Common options of commands, and their checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import ListOption, Number, Options, StringOption, Switch
from mbsfmu.base.times import check_stop
from mbsfmu.base.written_names import names_between_commas, parted
from mbsfmu.cli.completion import complete_words
from mbsfmu.io.formats import format_of, suffixes
from mbsfmu.modelling.measured_numbers import Bounds, plain_number
from mbsfmu.simulation.run_options import RunOptions

Command = TypeVar("Command", bound=Callable[..., Any])


RUN = tuple(name for name in RunOptions.known() if name not in ("jacobian", "tolerances"))
"""Options of a simulation on the command line; others are available in Python only."""
DIFFERENTIATED = tuple(
    name for name in RUN if name not in ("formulation", "check_error", "iterations", "code", "unit_threads", "assembly")
)
"""Options of simulations whose runs are differentiated: by double-step, and in steps that converge."""
OF_FMUS = tuple(name for name in RUN if name != "check_error")
"""Options of FMUs, whose runs their hosts make."""


def options_of(kind: type[Options], *names: str) -> Callable[[Command], Command]:
    """Return click options from options as data; omitted ones are None."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            option, help_text = kind.known()[name], kind.help(name)
            word = option.each if isinstance(option, ListOption) else option
            if isinstance(word, StringOption):
                help_text = f"{help_text} {'One of' if word is option else 'Of'} {', '.join(word.among())}."
            flag = option.flag or f"--{name.replace('_', '-')}"
            if isinstance(option, Switch):
                flag = f"{flag}/--no-{flag.removeprefix('--')}"
            number = int if isinstance(option, Number) and option.whole else float
            of_type = number if isinstance(option, Number) else bool if isinstance(option, Switch) else str
            completion = complete_words(word.among) if isinstance(word, StringOption) else None
            callback = None
            if isinstance(option, ListOption):
                callback = numbers if isinstance(option.each, Number) else words
            command = click.option(
                flag, name, type=of_type, default=None, help=help_text, callback=callback, shell_complete=completion
            )(command)
        return command

    return add


def words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Parse words between commas."""
    return None if value is None else names_between_commas(value)


def numbers(_: click.Context, __: click.Parameter, value: str | None) -> list[float] | None:
    """Parse numbers between commas, such as `2e-3,1e-3`."""
    try:
        return None if value is None else [plain_number(each) for each in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{value}' is no list of numbers such as 2e-3,1e-3") from None


def assignment(text: str) -> tuple[str, str]:
    """Parse `name=values`.

    Raises
    ------
    InputError
        When it does not read so.
    """
    name, equals, value = parted(text, "=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"'{text}' is refused: it must read name=values")
    return name.strip(), value.strip()


def bounds_of(given: Iterable[str], option: str) -> dict[str, Bounds]:
    """Parse `name=low:high` of a repeatable option; units of the numbers are converted where the variable is known."""
    found: dict[str, Bounds] = {}
    for text in given:
        name, _, bounds = (part.strip() for part in parted(text, "="))
        low, colon, high = bounds.partition(":")
        if not (name and colon):
            raise InputError(f"{option} {text} is refused: it must read name=low:high")
        if name in found:
            raise InputError(f"{option} names '{name}' twice")
        found[name] = low.strip(), high.strip()
    return found


def output_file(*suffixes: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the check of an output file: suffix and folder."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is None:
            return None
        if Path(value).suffix.lower() not in suffixes:
            raise click.BadParameter(f"{value} is refused: its name must end in {' or '.join(suffixes)}")
        _check_place(value)
        return value

    return check


FORMATS = f"one of {', '.join(suffixes())}, or a format of --parts"
"""Suffixes of table files, for help texts."""


def table_file(what: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the check of a table file: writable format and existing folder."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is not None:
            format_of(value, what)
            _check_place(value)
        return value

    return check


def _check_place(file: str) -> None:
    if not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"the folder of {file} is not there")
    if Path(file).is_dir():
        raise click.BadParameter(f"{file} is a folder")


def stop_time(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Check the stop time in s before a model is made."""
    if value is not None:
        check_stop(value)
    return value


def option_of(function: Callable[..., Any], flag: str, help: str, **settings: Any) -> Callable[[Command], Command]:  # noqa: A002
    """Return an option with the default of the parameter of the same name."""
    name = flag.lstrip("-").replace("-", "_")
    given = inspect.signature(function).parameters[name].default
    if isinstance(given, tuple):
        given = ",".join(each if isinstance(each, str) else f"{each:g}" for each in given)
    return click.option(flag, default=given, show_default=True, help=help, **settings)


def refuse_same_files(*files: str | None, inputs: Iterable[str] = ()) -> None:
    """Refuse two results in one file, and a result that would overwrite an input.

    Raises
    ------
    InputError
        When two of the paths mean one file.
    """
    taken = {Path(each).resolve() for each in inputs}
    for file in files:
        if file is None:
            continue
        if Path(file).resolve() in taken:
            raise InputError(f"{file} is named twice; a result needs a file of its own")
        taken.add(Path(file).resolve())
