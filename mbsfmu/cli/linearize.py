"""The command `mbsfmu linearize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from mbsfmu.analysis.fmu_linearization import linearize, root_locus_of_fmus
from mbsfmu.analysis.linear_system import SUFFIXES, Mode
from mbsfmu.analysis.modal_analysis import ModalAnalysis, RootLocus
from mbsfmu.base.errors import InputError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_variables, find_model
from mbsfmu.cli.options import (
    SECONDS,
    Reporter,
    assigned,
    assignment,
    is_fmu,
    model_argument,
    report_option,
    values_option,
)
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
from mbsfmu.studies.points import parse_values
from mbsfmu.system_model.coupled_model import CoupledModel

_NAMED = 3
"""Number of states in a row of the table."""

_LEAST = 0.05
"""Least participation of a listed state."""


@click.command("linearize", cls=SectionedCommand)
@model_argument
@values_option
@click.option("--at", type=SECONDS, default=0.0, show_default=True, help="Time of a run in s.")
@click.option("--step", type=SECONDS, help="Step of the run in s; that of the model or the FMUs by default.")
@click.option("--equilibrium", is_flag=True, help="Linearize about the static equilibrium next to the start.")
@click.option(
    "--vary",
    shell_complete=complete_variables("parameter", "="),
    metavar="NAME=A:B:N",
    help="Root locus: N values of a parameter from A to B, in its unit.",
)
@click.option(
    "--inputs",
    shell_complete=complete_variables("input"),
    multiple=True,
    metavar="PATTERN",
    help="Inputs, as 'valve.*'; all that are free by default.",
)
@click.option(
    "--outputs",
    shell_complete=complete_variables("output"),
    multiple=True,
    metavar="PATTERN",
    help="Outputs, as boom.angle; all by default.",
)
@click.option("-o", "--output", callback=output_file(*SUFFIXES), help="JSON or MAT file for the linear system.")
@report_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the linear system and modes.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    assignments: tuple[str, ...],
    at: float,
    step: float | None,
    equilibrium: bool,
    vary: str | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    output: str | None,
    report: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Linearize MODEL about a time of a run, or about an equilibrium: A, B, C, D and modes.

    MODEL may be an FMU or an SSP file, too: its directional derivatives are used, or differences where it has none.

    Matrices are in SI units; the table shows eigenvalues, natural frequencies, damping and participating states.

    \b
    Example: mbsfmu linearize four-bar --equilibrium --outputs boom.angle -o four-bar.mat
    Example: mbsfmu linearize four-bar --equilibrium --vary boom.mass=100:500:9 --report four-bar-modes.html
    Example: mbsfmu linearize out/four-bar.ssp --set circuit.valve.command=2 --outputs mechanism.boom.angle
    """
    log_to_stderr(quiet)
    refuse_same_files(output, report, json_file, inputs=[model, *parts])
    if equilibrium and at:
        raise InputError("--at and --equilibrium name two operating points; give one")
    reporter = Reporter(report)
    point = {"at": at, "step": step, "inputs": inputs, "outputs": outputs}
    varied = None if vary is None else _varied(vary)
    with at_work("linearizing", quiet):
        if not is_fmu(model):
            analysis = _of_model(
                find_model(model, parts), assigned(assignments), point, varied, equilibrium=equilibrium
            )
        elif equilibrium:
            raise InputError("--equilibrium is of models; of FMUs, export the model that starts there")
        else:
            analysis = _of_fmus(model, assigned(assignments), point, varied)
    found = analysis.system
    write_json(json_file, analysis.to_dict())
    if output is not None:
        found.to_file(output)
    reporter.write(analysis)
    sizes = f"{len(found.states)} states, {len(found.inputs)} inputs, {len(found.outputs)} outputs"
    say(f"{found.name} at t = {found.time:g} s: {sizes}")
    columns = ["eigenvalue [1/s]", "frequency [Hz]", "damping ratio", "states that take part most"]
    print_table("modes", columns, [_row(each) for each in found.modes])
    if analysis.locus is not None:
        _print_locus(analysis.locus)
    for sentence in found.sentences:
        say(sentence)


def _of_model(
    model: CoupledModel,
    values: dict[str, str],
    point: dict[str, Any],
    varied: tuple[str, Sequence[float | str]] | None,
    *,
    equilibrium: bool,
) -> ModalAnalysis:
    given = model.with_values(values) if values else model
    subject = given.equilibrium().model if equilibrium else given
    analysis = subject.modal_analysis(**point)
    if varied is None:
        return analysis
    return replace(analysis, locus=given.root_locus(*varied, equilibrium=equilibrium, **point))


def _of_fmus(
    source: str, values: dict[str, str], point: dict[str, Any], varied: tuple[str, Sequence[float | str]] | None
) -> ModalAnalysis:
    given = {**point, "at": point["at"] or None, "parameters": values}
    locus = None if varied is None else root_locus_of_fmus(source, *varied, **given)
    return ModalAnalysis(linearize(source, **given), locus=locus)


def _varied(text: str) -> tuple[str, Sequence[float | str]]:
    """Parse a parameter and its values, such as boom.mass=100:500:20 or pump.pressure=100 bar:200 bar:20."""
    name, values = assignment(text)
    found = parse_values(values)
    if len(found) < 2:
        raise InputError(f"--vary {text} is refused: it must have two values at least")
    return name, found


def _print_locus(locus: RootLocus) -> None:
    """Print the least damped oscillation and the largest real part over the parameter."""
    rows = []
    for value, system, growth in zip(locus.values.tolist(), locus.systems, locus.growth.tolist(), strict=True):
        oscillating = [mode for mode in system.modes if mode.oscillates]
        least = min(oscillating, key=lambda mode: mode.damping, default=None)
        told = ["–", "–"] if least is None else [shown(least.frequency), shown(least.damping)]
        rows.append([shown(value), shown(growth), *told])
    unit = "" if locus.unit in ("", "1") else f" [{locus.unit}]"
    columns = [f"{locus.parameter}{unit}", "greatest real part [1/s]", "least damped: frequency [Hz]", "damping ratio"]
    print_table("root locus", columns, rows)


def _row(mode: Mode) -> list[str]:
    value = mode.eigenvalue
    text = f"{value.real:.6g}" + (f" ± {value.imag:.6g} i" if value.imag else "")
    most = [f"{name} {share:.0%}" for name, share in list(mode.participation.items())[:_NAMED] if share >= _LEAST]
    return [text, shown(mode.frequency), shown(mode.damping), ", ".join(most)]
