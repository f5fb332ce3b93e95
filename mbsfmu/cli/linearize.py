"""The command `mbsfmu linearize`."""

from __future__ import annotations

from pathlib import Path

import click

from mbsfmu.analysis.fmu_linearization import linearize
from mbsfmu.analysis.linear_system import SUFFIXES, LinearSystem, Mode
from mbsfmu.base.errors import InputError
from mbsfmu.cli.assigned_values import assigned, values_option
from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.model_argument import find_model, model_argument
from mbsfmu.cli.option_types import output_file, refuse_same_files
from mbsfmu.cli.output import log_to_stderr, write_json
from mbsfmu.cli.standard_output import say
from mbsfmu.cli.terminal import at_work, print_table, shown

_NAMED = 3
"""States that a row of the table names."""
_LEAST = 0.05
"""Of the participation of a state that is named."""


@click.command("linearize")
@model_argument
@values_option
@click.option("--at", type=float, default=0.0, show_default=True, help="Time of a run in s.")
@click.option("--step", type=float, help="Step of the run in s; that of the model or the FMUs by default.")
@click.option("--equilibrium", is_flag=True, help="Linearize about the static equilibrium next to the start.")
@click.option("--inputs", multiple=True, metavar="PATTERN", help="Inputs, as 'valve.*'; all that are free by default.")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Outputs, as boom.angle; all by default.")
@click.option("-o", "--output", callback=output_file(*SUFFIXES), help="JSON or MAT file for the linear system.")
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the linear system.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    assignments: tuple[str, ...],
    at: float,
    step: float | None,
    equilibrium: bool,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Linearize MODEL about a time of a run, or about an equilibrium: A, B, C, D and modes.

    MODEL may be an FMU or an SSP file, too: its directional derivatives are used, or differences where it has none.

    Matrices are in SI units; the table shows eigenvalues, natural frequencies, damping and participating states.

    \b
    Example: mbsfmu linearize four-bar --equilibrium --outputs boom.angle -o four-bar.mat
    Example: mbsfmu linearize out/four-bar.ssp --set circuit.valve.command=2 --outputs mechanism.boom.angle
    """
    log_to_stderr(quiet)
    refuse_same_files(output, json_file, inputs=[model, *parts])
    if equilibrium and at:
        raise InputError("--at and --equilibrium name two operating points; give one")
    values = assigned(assignments)
    with at_work("linearizing", quiet):
        if _is_fmu(model):
            if equilibrium:
                raise InputError("--equilibrium is of models; of FMUs, export the model that starts there")
            found = linearize(model, at=at or None, inputs=inputs, outputs=outputs, parameters=values, step=step)
        else:
            given = find_model(model, parts)
            subject = given.with_values(values) if values else given
            subject = subject.equilibrium().model if equilibrium else subject
            found = subject.linearize(at=at, inputs=inputs, outputs=outputs, step=step)
    write_json(json_file, found.to_dict())
    if output is not None:
        found.to_file(output)
    sizes = f"{len(found.states)} states, {len(found.inputs)} inputs, {len(found.outputs)} outputs"
    say(f"{found.name} at t = {found.time:g} s: {sizes}")
    columns = ["eigenvalue [1/s]", "frequency [Hz]", "damping ratio", "states that take part most"]
    print_table("modes", columns, [_row(each) for each in found.modes])
    for sentence in _notes(found):
        say(sentence)


def _is_fmu(argument: str) -> bool:
    """Tell whether MODEL is an FMU, a package of such, or a folder that holds one."""
    return argument.endswith((".fmu", ".ssp")) or Path(argument).is_dir()


def _row(mode: Mode) -> list[str]:
    value = mode.eigenvalue
    text = f"{value.real:.6g}" + (f" ± {value.imag:.6g} i" if value.imag else "")
    most = [f"{name} {share:.0%}" for name, share in list(mode.participation.items())[:_NAMED] if share >= _LEAST]
    return [text, shown(mode.frequency), shown(mode.damping), ", ".join(most)]


def _notes(found: LinearSystem) -> list[str]:
    """Return what has to be known of the operating point."""
    notes = []
    if found.held:
        notes.append(f"discrete states are fixed variables of the linearization: {', '.join(found.held)}")
    if found.kinks:
        names = ", ".join(found.kinks)
        notes.append(f"the equations have a kink at the values of {names}: derivatives are those of one side, or means")
    if (moving := found.moving) is not None:
        state, rate = moving
        notes.append(
            f"the point is no equilibrium: {state.name} changes by {rate:.3g} {state.unit}/s; eigenvalues "
            "tell how runs that begin next to each other part there"
        )
    return [*notes, *found.notes]
