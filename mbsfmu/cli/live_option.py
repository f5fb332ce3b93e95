"""The option `--live` of commands that write a page: the running machine in it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.option_types import OF_FMUS
from mbsfmu.coupled.coupled_model import CoupledModel

if TYPE_CHECKING:
    from mbsfmu.view.play.play_page import PlayPage

Command = TypeVar("Command", bound=Callable[..., Any])


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
