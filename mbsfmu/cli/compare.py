"""The command `mbsfmu compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_models
from mbsfmu.cli.options import (
    Reporter,
    assigned,
    assignment,
    live_machine,
    live_option,
    model_or_fmus,
    options_of,
    parts_option,
    report_option,
    words,
)
from mbsfmu.cli.output import (
    log_to_stderr,
    output_file,
    print_table,
    progress_bar,
    refuse_same_files,
    say,
    shown,
    to_the_end,
    warn,
    write_json,
)
from mbsfmu.comparison import Comparison, ComparisonInterrupted, compare
from mbsfmu.comparison.comparison import ComparisonOptions
from mbsfmu.comparison.cost import remedy
from mbsfmu.comparison.recommendation import recommend
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.io.signals import read_signal
from mbsfmu.system_model.coupled_model import CoupledModel

if TYPE_CHECKING:
    from mbsfmu.view.play.play_page import PlayPage

SHARED = ("unit_tolerance", "model_exchange", "unit_solver", "isolate")
"""Options of FMUs that all runs share."""


@click.command("compare", cls=SectionedCommand)
@click.argument("model", nargs=-1, required=True, shell_complete=complete_models)
@parts_option
@options_of(ComparisonOptions, *ComparisonOptions.known())
@click.option("--connect", multiple=True, help="Connection of FMUs a.y=b.u, from output to input; repeatable.")
@click.option("--set", "assignments", multiple=True, help="Parameter or start value of FMUs: a.mass=2; repeatable.")
@click.option(
    "--input", "tables", multiple=True, help="Input signal of FMUs: fmu.variable=table.csv:column[:steps]; repeatable."
)
@click.option("--bond", "bonds", multiple=True, help="Power bond of FMUs: a.effort,b.flow; repeatable.")
@click.option("--outputs", callback=words, help="Outputs of FMUs to compare, by patterns: a.*,b.force; all by default.")
@options_of(CouplingOptions, *SHARED)
@click.option(
    "--recommend",
    "advises",
    is_flag=True,
    help="Recommend algorithm, step and order of the FMUs from their derivatives at the start, without a run.",
)
@report_option
@live_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all numbers.")
@common_options
def command(
    model: tuple[str, ...],
    parts: tuple[str, ...],
    connect: tuple[str, ...],
    assignments: tuple[str, ...],
    tables: tuple[str, ...],
    bonds: tuple[str, ...],
    outputs: list[str] | None,
    advises: bool,
    report: str | None,
    live: bool,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **given: Any,
) -> None:
    """Run MODEL monolithically and coupled, and say what coupling and the step cost.

    MODEL may also be an SSP file, a folder that holds one, or FMU files as [name=]file, ours or others; their reference
    is a coupled run with small steps, whose own error is estimated by halving them.

    \b
    Example: mbsfmu compare four-bar --steps 2e-3,1e-3 --algorithms jacobi,gauss-seidel --report four-bar.html
    Example: mbsfmu compare system.ssp --accuracy 0.01
    Example: mbsfmu compare system.ssp --recommend
    Example: mbsfmu compare a.fmu b.fmu --connect a.y=b.u --connect b.y=a.u --steps 2e-3,1e-3 --stop 2
    """
    log_to_stderr(quiet)
    read = [text.rpartition("=")[2].partition(":")[0] for text in tables]
    refuse_same_files(report, json_file, inputs=[*model, *parts, *read])
    reporter = Reporter(report)
    found = model_or_fmus(model, parts, "a comparison")
    shared = {name: value for name in SHARED if (value := given.pop(name)) is not None}
    of_fmus = {
        "connections": connect,
        "parameters": assigned(assignments),
        "inputs": {name: read_signal(table) for name, table in map(assignment, tables)},
        "bonds": bonds,
        "outputs": outputs,
        "coupling": shared,
    }
    if advises:
        _advise(found, of_fmus, given, (report, live), json_file)
        return
    if live:
        if not isinstance(found, CoupledModel):
            raise InputError("--live is of models; FMUs cannot run in a page")
        known = {name: value for name, value in given.items() if name in ComparisonOptions.known()}
        reporter.live = _live(found, model[0], parts, report, ComparisonOptions.of(None, known))
    with progress_bar("comparing", quiet) as progress, _keep_runs(reporter, json_file):
        comparison = compare(found, progress=progress, **of_fmus, **given)
    _write(comparison, reporter, json_file)
    _print_comparison(comparison)
    if all(run.status != "ok" for run in comparison.runs):
        raise SimulationError(f"every coupled run diverged; {remedy(comparison.runs)}")


def _live(
    model: CoupledModel, argument: str, parts: Sequence[str], report: str | None, options: ComparisonOptions
) -> PlayPage:
    """Return the running machine: monolithic, and coupled by those of the algorithms that do not iterate."""
    from mbsfmu.view.play.coupled_machine import RUNNABLE  # noqa: PLC0415 - loads the code of FMUs, as the machine does

    algorithms = [each for each in options.algorithms if each in RUNNABLE]
    if left := [each for each in options.algorithms if each not in RUNNABLE]:
        warn(f"the running machine in the page does not couple by {', '.join(left)}, but by {', '.join(RUNNABLE)}")
    own = {"formulation": options.formulation, "newton_tolerance": options.newton_tolerance, "step": min(options.steps)}
    return live_machine(
        model,
        argument,
        parts,
        page=report,
        option="--report",
        options=own,
        algorithms=algorithms,
        communication_steps=sorted(options.steps, reverse=True),
    )


def _begun_well(live: PlayPage, comparison: Comparison) -> PlayPage:
    """Return the running machine, coupled at first by the setting of the verdict, or else by the most accurate one."""
    offered = {each["called"] for each in live.data["coupled"]["algorithms"]}
    runs = [each for each in comparison.cheapest if each.algorithm in offered]
    if not runs:
        good = [each for each in comparison.runs if each.algorithm in offered and each.judged is not None]
        runs = sorted(good, key=lambda run: run.judged or 0.0)
    return live.coupled_by(runs[0].algorithm, runs[0].step) if runs else live


def _advise(
    found: CoupledModel | tuple[str, ...],
    of_fmus: Mapping[str, Any],
    given: Mapping[str, Any],
    page: tuple[str | None, bool],
    json_file: str | None,
) -> None:
    """Print recommended settings."""
    taken = {name: of_fmus[name] for name in ("connections", "parameters", "inputs") if of_fmus[name]}
    taken |= {name: given[name] for name in ("accuracy", "stop") if given[name] is not None}
    without = {**given, **of_fmus, "report": page[0], "live": page[1]}
    for name, value in without.items():
        if value and name not in taken:
            raise InputError(f"--{name} has no effect with --recommend, which makes no run")
    advice = recommend(found, **taken)
    write_json(json_file, advice.to_dict())
    say(str(advice))


@contextmanager
def _keep_runs(reporter: Reporter, json_file: str | None) -> Iterator[None]:
    """Write the completed runs of an interrupted comparison, and report it."""
    try:
        yield
    except ComparisonInterrupted as ended:
        files = " and ".join(filter(None, (reporter.path, json_file)))
        if files and ended.comparison.runs:
            there = f"{len(ended.comparison.runs)} of {ended.wanted} runs are there"
            _write(ended.comparison, reporter, json_file, f"The comparison was interrupted: {there}.")
            warn(f"{files}: {there}")
        raise


def _write(comparison: Comparison, reporter: Reporter, json_file: str | None, ended: str = "") -> None:
    with to_the_end():
        write_json(json_file, comparison.to_dict())
        if reporter.live and "coupled" in reporter.live.data:
            reporter.live = _begun_well(reporter.live, comparison)
        reporter.write(comparison, ended)


def _print_comparison(comparison: Comparison) -> None:
    rows = [
        [
            run.algorithm,
            shown(run.step),
            run.status,
            shown(run.worst_error),
            shown(run.worst_total),
            shown(run.energy_residual),
            shown(run.energy_residual_share),
            shown(run.cost and 1e3 * run.cost),
            run.message,
        ]
        for run in comparison.runs
    ]
    residual = ["energy residual [J]", "[of exchanged]"]
    columns = ["algorithm", "step [s]", "status", "error [relative]", comparison.total_label, *residual]
    columns += ["cost [ms/s]", ""]
    print_table(f"{comparison.subject}, compared with the {comparison.label} run", columns, rows)
    rows = [[name, shown(order)] for name, order in comparison.order.items() if order is not None]
    if rows:
        print_table("observed order", ["algorithm", "order"], rows)
    rows = [
        [run.algorithm, shown(run.step), name, *map(shown, (bond.exchanged, bond.residual, bond.largest))]
        for run in comparison.runs
        for name, bond in (run.bonds.items() if len(run.bonds) > 1 else ())
    ]
    if rows:
        columns = ["algorithm", "step [s]", "bond", "exchanged [J]", "residual at the end [J]", "largest [J]"]
        print_table("energy at each bond", columns, rows)
    if comparison.stability:
        rows = [[name, shown(limit.stable), shown(limit.diverging)] for name, limit in comparison.stability.items()]
        print_table("stability", ["algorithm", "stable up to [s]", "diverges from [s]"], rows)
    if comparison.step_verdict:
        say(comparison.step_verdict)
    if comparison.same_runs:
        say(comparison.same_runs_sentence)
    if comparison.left_out:
        say(f"Not compared, because they are discrete: {', '.join(comparison.left_out)}.")
    say(comparison.verdict)
