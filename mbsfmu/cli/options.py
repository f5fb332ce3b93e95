"""Options and arguments of several commands, and their checks."""

from __future__ import annotations

import inspect
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import names_between_commas, parted
from mbsfmu.base.options import ListOption, Number, Options, StringOption, Switch
from mbsfmu.base.repeated_warnings import KeptWarnings
from mbsfmu.base.times import check_stop
from mbsfmu.cli.found_models import complete_models, complete_variables, complete_words, find_model
from mbsfmu.cli.output import check_place, output_file, report_kept_rows, to_the_end
from mbsfmu.io.checkpoints import RunError, RunInterrupted
from mbsfmu.io.formats import format_of, suffixes
from mbsfmu.io.part_files import load_parts
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling.measurement_units import Bounds
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.system_model.coupled_model import CoupledModel

if TYPE_CHECKING:
    from mbsfmu.view.play.play_page import PlayPage


Command = TypeVar("Command", bound=Callable[..., Any])


class Quantity(click.ParamType[float]):
    """A finite number, or one with a unit of its own, as `200 ms`, which is converted.

    Parameters
    ----------
    unit
        SI unit of the option.
    """

    name = "float"

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return a number in the unit of the option."""
        if not isinstance(value, str):
            return float(value)
        try:
            number = float(Variable("it", unit=self._unit).number(value))
        except InputError as error:
            self.fail(str(error).removeprefix("it: "), param, ctx)
        if not math.isfinite(number):
            self.fail(f"'{value}' is refused: it must be finite", param, ctx)
        return number


SECONDS = Quantity("s")
"""Of times and steps."""


RUN = tuple(name for name in RunOptions.known() if name not in ("jacobian", "tolerances"))
"""Options of a simulation on the command line; others are available in Python only."""
DIFFERENTIATED = tuple(
    name for name in RUN if name not in ("formulation", "check_error", "iterations", "code", "assembly")
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
            of_type: Any = bool if isinstance(option, Switch) else str
            if isinstance(option, Number):
                of_type = int if option.whole else Quantity(option.unit) if option.unit else float
            completion = complete_words(word.among) if isinstance(word, StringOption) else None
            callback = None
            if isinstance(option, ListOption):
                callback = numbers(option.each.unit) if isinstance(option.each, Number) else words
            command = click.option(
                flag, name, type=of_type, default=None, help=help_text, callback=callback, shell_complete=completion
            )(command)
        return command

    return add


def words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Parse words between commas."""
    return None if value is None else names_between_commas(value)


def numbers(unit: str) -> Callable[[click.Context, click.Parameter, str | None], list[float] | None]:
    """Return what parses numbers between commas, such as `2e-3,1e-3`, in a unit where they have none of their own."""

    def parse(context: click.Context, parameter: click.Parameter, value: str | None) -> list[float] | None:
        try:
            return None if value is None else [Quantity(unit).convert(each, None, None) for each in value.split(",")]
        except click.BadParameter as error:
            raise click.BadParameter(
                f"'{value}' is no list of numbers such as 2e-3,1e-3: {error.message}", context, parameter
            ) from None

    return parse


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


FORMATS = f"one of {', '.join(suffixes())}, or a format of --parts"
"""Suffixes of table files, for help texts."""


def table_file(what: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the check of a table file: writable format and existing folder."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is not None:
            format_of(value, what)
            check_place(value)
        return value

    return check


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


def parts_option(command: Command) -> Command:
    """Add the option for files of user-defined parts, which are run first."""

    def load(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
        load_parts(files)
        return files

    help_text = "Python file with user-defined components; repeatable."
    option = click.option("--parts", multiple=True, metavar="FILE", help=help_text, is_eager=True, callback=load)
    return option(command)


def model_argument(command: Command) -> Command:
    """Add the model argument and the option for files of parts."""
    return click.argument("model", shell_complete=complete_models)(parts_option(command))


def is_fmu(argument: str) -> bool:
    """Return whether MODEL is an FMU, a package, or a folder with one."""
    return argument.lower().endswith((".fmu", ".ssp", ".ssd")) or Path(argument).is_dir()


def model_or_fmus(arguments: Sequence[str], parts: Sequence[str], what: str) -> CoupledModel | tuple[str, ...]:
    """Return the model of an argument, or the paths of FMUs.

    Parameters
    ----------
    arguments, parts
        As for `find_model`; FMU files, or an SSP file or a folder that holds one.
    what
        What has one model, for sentences.

    Raises
    ------
    InputError, DataError
        As for `find_model`; when there are several that are not FMUs.
    """
    others = [each for each in arguments if not is_fmu(each.rpartition("=")[2])]
    if not others:
        return tuple(arguments)
    if len(arguments) > 1:
        raise InputError(f"{others[0]} is given with other models; {what} has one model, or FMU files")
    return find_model(others[0], parts)


def values_option(command: Command) -> Command:
    """Add the option for values of parameters, start values and inputs, with optional units."""
    text = "Parameter, start value or input before the run, name=310 or name='200 bar'; repeatable."
    return click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help=text,
        shell_complete=complete_variables("settable", "="),
    )(command)


def assigned(assignments: Sequence[str]) -> dict[str, str]:
    """Return the given values by name.

    Raises
    ------
    InputError
        When an assignment does not read `name=value`, or one name is given twice.
    """
    given: dict[str, str] = {}
    for name, value in map(assignment, assignments):
        if name in given:
            raise InputError(f"{name} is given twice, as {given[name]} and as {value}")
        given[name] = value
    return given


def set_values(simulation: Simulation, assignments: Sequence[str]) -> None:
    """Set variables of a simulation before its first step.

    Raises
    ------
    InputError
        When an assignment does not read `name=value`, one variable is given twice, there is none of this name, or the
        value is refused.
    """
    given: dict[str, str] = {}
    for text in assignments:
        name, value = assignment(text)
        variable = simulation.variable(name)
        if variable.name in given:
            raise InputError(f"{variable.name} is given twice, by {given[variable.name]} and by {text}")
        given[variable.name] = text
        simulation.set(name, value)


def live_option(command: Command) -> Command:
    """Add `--live`."""
    text = "Also put the machine into the page, running, as `mbsfmu play` does."
    return click.option("--live", is_flag=True, help=text)(command)


def live_machine(
    model: CoupledModel,
    argument: str,
    parts: Sequence[str],
    *,
    page: str | None,
    option: str,
    values: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    algorithms: Sequence[str] = (),
    communication_steps: Sequence[float] = (),
) -> PlayPage:
    """Return the running machine of a page.

    Parameters
    ----------
    model, argument, parts
        The model, and how it was typed.
    page, option
        The page, and the option that names it.
    values, options
        Values of variables, and options of the run; of these those that FMUs have.
    algorithms, communication_steps
        Of coupled FMUs that run beside the monolithic model.

    Raises
    ------
    InputError
        When no page is named, or `play` refuses.
    """
    if page is None:
        raise InputError(f"--live is of the page; name it by {option} page.html")
    from mbsfmu.view.play.play_page import play  # noqa: PLC0415 - loads the code of FMUs and pages, which few runs take

    taken = {name: value for name, value in (options or {}).items() if name in OF_FMUS}
    return play(
        model,
        values=values,
        source=typed(argument, parts),
        algorithms=algorithms,
        communication_steps=communication_steps,
        **taken,
    )


def typed(argument: str, parts: Sequence[str]) -> str:
    """Return a model with its files of parts as typed."""
    return shlex.join([argument, *(word for file in parts for word in ("--parts", file))])


Recorded = TypeVar("Recorded", bound=Trajectory)


def report_option(command: Command) -> Command:
    """Add `--report`."""
    return click.option("--report", callback=output_file(".html", ".htm"), help="HTML file for the report page.")(
        command
    )


class Reporter:
    """Writes the report of a command, if requested; it stores warnings from its creation on.

    Attributes
    ----------
    path
        The HTML file; None without a report.
    live
        The running machine that is put into it.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.live: PlayPage | None = None
        self._warnings = KeptWarnings()
        if path is not None:
            self._warnings.__enter__()

    def write(self, result: Any, ended: str = "") -> None:
        """Write the report of a result, if requested; `ended` gives the reason of an early end."""
        if self.path is None:
            return
        from mbsfmu.view.report import Circumstances, write_report  # noqa: PLC0415 - few commands are reported on
        from mbsfmu.view.report.report_sections import command_line  # noqa: PLC0415

        with to_the_end():
            told = Circumstances(command_line(sys.argv[1:]), self._warnings.sentences, ended, self.live)
            write_report(result, self.path, told)

    def write_until(self, ended: RunError | RunInterrupted) -> list[str]:
        """Write the report of a run that ended early, if requested; return its files."""
        self.write(ended.result, str(ended) if isinstance(ended, RunError) else "it was interrupted")
        return [] if self.path is None else [self.path]


def recorded(run: Callable[[], Recorded], output: str | None, reporter: Reporter) -> Recorded:
    """Make a run, write its rows and its report, also for a run that ended early."""
    try:
        result = run()
    except (RunError, RunInterrupted) as ended:
        if output:
            with to_the_end():
                ended.result.to_file(output)
        files = [*([output] if output else []), *reporter.write_until(ended)]
        report_kept_rows(files, float(ended.result.time[-1]))
        raise
    if output:
        with to_the_end():
            result.to_file(output)
    reporter.write(result)
    return result
