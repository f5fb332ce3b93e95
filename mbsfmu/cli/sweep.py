"""The command `mbsfmu sweep`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Unpack

import click

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_models, complete_variables
from mbsfmu.cli.options import (
    FORMATS,
    Reporter,
    assignment,
    model_or_fmus,
    numbers,
    options_of,
    parts_option,
    report_option,
    table_file,
    words,
)
from mbsfmu.cli.output import log_to_stderr, output_file, print_table, progress_bar, refuse_same_files, say, write_json
from mbsfmu.io.signals import read_signal
from mbsfmu.studies import SobolIndices, StudyResult, sweep
from mbsfmu.studies.points import METHODS, Distribution, draw, parse_values, read_samples
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions

_SHOWN = 8  # outputs whose Sobol indices are printed


@click.command("sweep", cls=SectionedCommand)
@click.argument("model", nargs=-1, required=True, shell_complete=complete_models)
@parts_option
@click.option("--connect", multiple=True, help="Connection of FMUs a.y=b.u, from output to input; repeatable.")
@click.option(
    "--input", "tables", multiple=True, help="Input signal of FMUs: fmu.variable=table.csv:column[:steps]; repeatable."
)
@click.option(
    "--vary",
    shell_complete=complete_variables("parameter", "="),
    multiple=True,
    help="Parameter and its values: name=1,2,3 or name=low:high:count[:log]; with --sample its distribution: "
    "name=low:high[:log] or name=normal:mean:deviation; repeatable.",
)
@click.option("--points", help=f"Table with a column of values for each parameter, {FORMATS}.")
@click.option("--sample", help=f"Draw samples of what is varied, METHOD:COUNT; {', '.join(METHODS)}.")
@click.option("--seed", type=int, help="Of the samples; 0 by default.")
@click.option("--formulation", callback=words, help="Formulations: a,b.")
@click.option("--algorithm", callback=words, help="Coupling algorithms as in compare: a,b. Monolithic without.")
@click.option("--step", callback=numbers("s"), help="Communication steps in s, internal steps of monolithic runs.")
@click.option("--set", "assignments", multiple=True, help="Any other setting: name=a,b; repeatable.")
@options_of(StudyOptions, *(name for name in StudyOptions.known() if name != "settings"))
@click.option("--workers", type=int, help="Processes on this machine; as many as it has cores by default.")
@click.option("--scheduler", help="Address of a Dask cluster that runs the points: tcp://host:8786.")
@click.option("--fresh", is_flag=True, help="Run all points again, also those that the file already has.")
@click.option("--force", is_flag=True, help="Overwrite the file of another study.")
@click.option(
    "-o",
    "--output",
    required=True,
    callback=table_file("the file of a study"),
    help=f"File with one row a point, {FORMATS}.",
)
@report_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all rows.")
@common_options
def command(
    model: tuple[str, ...],
    parts: tuple[str, ...],
    connect: tuple[str, ...],
    tables: tuple[str, ...],
    vary: tuple[str, ...],
    points: str | None,
    sample: str | None,
    seed: int | None,
    formulation: list[str] | None,
    algorithm: list[str] | None,
    step: list[float] | None,
    assignments: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    fresh: bool,
    force: bool,
    output: str,
    report: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **given: Unpack[StudyKeywords],
) -> None:
    """Run MODEL at every combination of parameters and settings.

    MODEL may also be an SSP file, a folder that holds one, or FMU files as [name=]file, ours or others; parameters are
    called fmu.variable then, and settings are those of cosim.

    A study that was ended goes on where it stopped when it is called again; one with more values runs the new ones.

    \b
    Example: mbsfmu sweep four-bar --vary boom.mass=100:400:4 --stop 2 -o masses.parquet
    Example: mbsfmu sweep four-bar --vary boom.mass=100:400 --vary pump.pressure=normal:7.6e6:2e5 \\
        --sample latin-hypercube:100 --stop 2 -o samples.parquet
    Example: mbsfmu sweep four-bar --vary boom.mass=100:400 --vary pump.pressure=7e6:8e6 --sample saltelli:64 \\
        --stop 2 -o indices.parquet
    Example: mbsfmu sweep four-bar --algorithm jacobi,gauss-seidel --step 1e-3,5e-4 --errors -o coupling.parquet
    Example: mbsfmu sweep system.ssp --vary motor.resistance=1:3:5 --step 1e-3 --stop 2 -o resistances.parquet
    Example: mbsfmu sweep a.fmu b.fmu --connect a.y=b.u --points samples.csv -o samples.parquet
    """
    log_to_stderr(quiet)
    read = [text.rpartition("=")[2].partition(":")[0] for text in tables]
    refuse_same_files(output, report, json_file, inputs=[*model, *parts, *read, *([points] if points else [])])
    if scheduler is not None and workers is not None:
        raise InputError(f"workers = {workers} has no effect with a scheduler, which has its own")
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers is {workers}; it must be at least 1")
    lists = {"formulation": formulation, "algorithm": algorithm, "step": step}
    settings: dict[str, list[Any]] = {name: list(values) for name, values in lists.items() if values}
    for name, text in _assigned(assignments, "the setting {} is given twice", settings):
        settings[name] = [_plain(each) for each in text.split(",")]
    varied = dict(_assigned(vary, "the parameter {} is varied twice"))
    samples = _samples(varied, points, sample, seed)
    parameters = {} if sample else {name: parse_values(text) for name, text in varied.items()}
    if not parameters and not settings and not samples:
        raise InputError("nothing is varied; give --vary, --points, --algorithm, --formulation, --step or --set")
    given["settings"] = settings
    reporter = Reporter(report)
    with _executor(scheduler) as executor, progress_bar("running points", quiet) as progress:
        result = sweep(
            model_or_fmus(model, parts, "a study"),
            parameters,
            samples=samples,
            connections=connect,
            inputs={name: read_signal(table) for name, table in map(assignment, tables)},
            output=output,
            fresh=fresh,
            force=force,
            workers=workers,
            executor=executor,
            progress=progress,
            **given,
        )
    indices = result.sobol_indices() if sample and sample.startswith("saltelli:") else []
    write_json(json_file, {"rows": result.rows, **({"sobol_indices": _plain_indices(indices)} if indices else {})})
    reporter.write(result)
    _print_result(result, output)
    for each in indices[:_SHOWN]:
        rows = [list(row) for row in zip(each.parameters, *_with_errors(each), strict=True)]
        left = f", {each.left_out} of {each.samples + each.left_out} base samples left out" if each.left_out else ""
        print_table(f"Sobol indices of {each.output}{left}", ["parameter", "first order", "total"], rows)
    if len(indices) > _SHOWN:
        say(f"{len(indices) - _SHOWN} more outputs vary; --json and --report have them")


def _samples(
    varied: dict[str, str], points: str | None, sample: str | None, seed: int | None
) -> dict[str, list[float]]:
    """Return samples from a table or drawn from distributions; empty without either.

    Raises
    ------
    InputError
        When both are asked for, an option has no effect, or one does not read as it should.
    """
    if points and sample:
        raise InputError("--points and --sample are two ways to choose points; give one of them")
    if seed is not None and not sample:
        raise InputError(f"--seed {seed} has no effect without --sample")
    if points:
        return read_samples(points)
    if not sample:
        return {}
    method, _, count = sample.partition(":")
    if not count.isdecimal():
        raise InputError(f"'{sample}' is refused: samples must read METHOD:COUNT, as latin-hypercube:100")
    distributions = {name: Distribution.parse(text) for name, text in varied.items()}
    return draw(distributions, int(count), method=method, seed=seed or 0)


def _print_result(result: StudyResult, output: str) -> None:
    """Print the status of the points.

    Raises
    ------
    SimulationError
        When all of them failed.
    """
    counts = Counter(result["status"])
    rows = [[status, str(count)] for status, count in sorted(counts.items(), reverse=True)]
    say(f"{_points(len(result.rows))} in {output}")
    print_table("outcome", ["status", "points"], rows)
    for message, count in Counter(filter(None, result["message"])).most_common(3):
        say(f"{_points(count)}: {message}")
    for sentences, count in Counter(filter(None, result["warnings"])).most_common(3):
        say(f"{_points(count)} with a warning: {sentences}")
    if set(counts) == {"failed"}:
        raise SimulationError("every point failed")


def _with_errors(indices: SobolIndices) -> tuple[list[str], list[str]]:
    pairs = (indices.first, indices.first_error), (indices.total, indices.total_error)
    first, total = ([f"{a:.3f} ± {b:.3f}" for a, b in zip(*pair, strict=True)] for pair in pairs)
    return first, total


def _plain_indices(indices: Iterable[SobolIndices]) -> list[dict[str, Any]]:
    """Return Sobol indices as plain data."""
    return [
        {name: value.tolist() if hasattr(value, "tolist") else value for name, value in asdict(each).items()}
        for each in indices
    ]


def _points(count: int) -> str:
    return f"{count} point{'s' if count > 1 else ''}"


def _assigned(texts: Iterable[str], refusal: str, before: Container[str] = ()) -> Iterator[tuple[str, str]]:
    """Parse `name=values` one by one; a repeated name is refused with its position."""
    names: set[str] = set()
    for name, text in map(assignment, texts):
        if name in names or name in before:
            raise InputError(refusal.format(name))
        names.add(name)
        yield name, text


@contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor | None]:
    """Return the executor of a Dask cluster; None without one."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("--scheduler needs Dask: pip install 'mbsfmu[dask]'") from None
    with Client(scheduler) as client:
        yield client.get_executor()


def _plain(word: str) -> Any:
    """Return a number, a truth value or the word, for a setting."""
    word = word.strip()
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
