"""Reports of runs in process and of coupled runs: end, drift, energies, animation, signals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import number, percent, quantity, step_length
from mbsfmu.cosim.runs.master import NO_ERROR_ESTIMATE
from mbsfmu.cosim.runs.run_recorder import LARGE_RESIDUAL, CosimulationResult
from mbsfmu.integration.error_measure import NOT_ESTIMATED
from mbsfmu.integration.solvers import makes_equal_steps
from mbsfmu.modelling import DataError
from mbsfmu.simulation.run_result import Result
from mbsfmu.view.pages.page import (
    Cell,
    HtmlElement,
    answer,
    as_sentence,
    beside,
    csv_text,
    download,
    heading,
    key_value_table,
    paragraph,
    section,
    stack,
    table,
)
from mbsfmu.view.plots.plot import grouped
from mbsfmu.view.report.report_sections import (
    Circumstances,
    circuit_section,
    moving,
    points_described,
    signals_over_time,
    table_of_signals,
)

CHECK = "--check-error, in Python check_error=True, makes a second run that tells it"
"""Advice for a run without an error estimate."""


def run_page(result: Result, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a run."""
    summary = result.summary()
    title = f"{result.model}: a run of {quantity(summary['stop'], 's')}"
    content = stack(
        heading(title),
        paragraph(f"formulation {result.formulation}, solver {result.solver}; {points_described(result)}", "soft"),
        answer(_sentences(result, summary, circumstances.ended)),
        *circumstances.warning_notes(),
        *moving(result.animate),
        *circumstances.live_machine(),
        *circuit_section(result.machine, result),
        signals_over_time(result),
        section("The run", key_value_table(_facts(result, summary))),
        section("Numbers", table_of_signals(result), *_downloads(result, summary)),
        circumstances.provenance(),
    )
    return title, content


def _sentences(result: Result, summary: Mapping[str, Any], ended: str) -> list[tuple[str, str]]:
    stop, wall = summary["stop"], result.wall_seconds
    sentences = []
    if ended:
        sentences.append((f"The run ended at {quantity(stop, 's', 6)}: {ended}", "bad"))
    else:
        faster = f", {number(stop / wall, 2)} times faster than the machine itself" if 0 < wall < stop else ""
        took = f"{quantity(stop, 's')} of motion took {quantity(wall, 's', 2)} to compute{faster}"
        sentences.append((f"{took}{_interim(result)}.", ""))
    sentences += [(sentence, "") for sentence in (_error(result), _kept(summary), _energy(summary)) if sentence]
    sentences.append((_unknown(result), "soft"))
    return sentences


def _interim(result: Result) -> str:
    """Return the computing time in unoptimized code in words; nothing without any."""
    if not result.interim_seconds:
        return ""
    return (
        f"; {quantity(result.interim_seconds, 's', 2)} of it passed in code that was not optimized yet, which runs are "
        "spared once optimized code is kept"
    )


def _error(result: Result) -> str:
    """Return the error of the run in words; nothing if not estimated."""
    share, variable, note = result.error
    if result.error == NOT_ESTIMATED:
        return ""
    if share is None:
        return f"{note[:1].upper()}{note[1:]}."
    return f"The error is estimated at {percent(share, 2)} of the range of {variable}; no other variable's is larger."


def _kept(summary: Mapping[str, Any]) -> str:
    """Return the constraint drift in words; nothing without loops."""
    opened = summary["constraint_position_max"]
    if opened is None:
        return ""
    return f"Loops of the mechanism opened by {number(opened, 2)} (m and rad together) at most."


def _energy(summary: Mapping[str, Any]) -> str:
    """Return the energy drift relative to the actuators' work in words; nothing if unknown."""
    drift = summary["machine_energy_drift_max"]
    drift = summary["energy_drift_max"] if drift is None else drift
    if drift is None:
        return ""
    bounds = [summary[name] for name in ("actuator_work_max", "actuator_work_min") if summary[name] is not None]
    work = max(map(abs, bounds), default=0.0)
    share = f", {percent(drift / work, 2)} of the {quantity(work, 'J')} that actuators did" if work > drift else ""
    return f"The energy drifted by {quantity(drift, 'J', 2)} at most{share}."


def _unknown(result: Result) -> str:
    """Return the unknowns of a single run."""
    if result.error != NOT_ESTIMATED:
        return (
            "Not known from one run: how far the model is from the machine; the error above is that of its steps alone."
        )
    if makes_equal_steps(result.solver):
        return (
            f"The error is not estimated: what a step of {step_length(result.step)} costs is not known from one run. "
            f"{CHECK}; mbsfmu compare measures it, for machines of several systems."
        )
    return f"The error is not estimated: how far it is from the exact solution is not known from one run. {CHECK}."


def _facts(result: Result, summary: Mapping[str, Any]) -> dict[str, str]:
    newton = f"{number(summary['newton_mean'])} / {summary['newton_max']}" if summary["newton_total"] else ""
    rows = {
        "formulation": result.formulation,
        "solver": result.solver,
        "step": step_length(result.step),
        "simulated time": quantity(summary["stop"], "s", 6),
        "computing time": quantity(result.wall_seconds, "s"),
        "of it in code not optimized yet": quantity(result.interim_seconds or None, "s"),
        "internal steps": grouped(summary["steps"]),
        "Newton iterations a step, mean / most": newton,
        "iteration matrices": grouped(summary["iteration_matrices"]) if summary["iteration_matrices"] else "",
        "steps halved and made again": grouped(summary["retries"]) if summary["newton_total"] else "",
        "evaluations of the right-hand side": grouped(summary["rhs_evaluations"]) if summary["rhs_evaluations"] else "",
        "largest energy drift, mechanism": quantity(summary["energy_drift_max"], "J"),
        "largest energy drift, hydraulics": quantity(summary["hydraulic_energy_drift_max"], "J"),
        "actuator work, least": quantity(summary["actuator_work_min"], "J"),
        "actuator work, greatest": quantity(summary["actuator_work_max"], "J"),
    }
    return {name: text for name, text in rows.items() if text not in ("", quantity(None, ""))}


def _downloads(result: Result, summary: Mapping[str, Any]) -> list[HtmlElement]:
    rows = [
        {"signal": name, "unit": result.unit(name), "start": values[0], "least": values.min()}
        | {"greatest": values.max(), "end": values[-1]}
        for name, values in result.items()
    ]
    columns = ("signal", "unit", "start", "least", "greatest", "end")
    return [
        beside(
            download("Statistics and final values, JSON", f"{result.model}.json", summary),
            download("Table of signals, CSV", f"{result.model}-signals.csv", csv_text(columns, rows)),
        ),
        paragraph(
            "Signals over time: the CSV button of each plot, or -o FILE.csv of the command, in all digits.", "soft"
        ),
    ]


_FLOWS = "No FMU has flows among its outputs, which alone are recorded; mbsfmu export --outputs '*' adds them."


def coupled_page(result: CosimulationResult, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a coupled run."""
    statistics = result.statistics
    title = f"{' and '.join(statistics.unit_steps) or 'FMUs'}, coupled"
    notes = [*dict.fromkeys([*statistics.notes, *circumstances.warnings])]
    kept = Circumstances(circumstances.command, notes, circumstances.ended)
    content = stack(
        heading(title),
        paragraph(
            f"algorithm {statistics.algorithm}, extrapolation {statistics.extrapolation}; {points_described(result)}",
            "soft",
        ),
        answer(_coupled_sentences(result, circumstances.ended)),
        *kept.warning_notes(),
        *moving(result.animate),
        *_circuits(result),
        *_energy_table(result),
        signals_over_time(result),
        section("The run", key_value_table(_coupled_facts(result))),
        section(
            "Numbers",
            table_of_signals(result),
            beside(download("Statistics and final values, JSON", "coupled-run.json", result.summary())),
            paragraph(
                "Signals over time: the CSV button of each plot, or -o FILE.csv of the command, in all digits.", "soft"
            ),
        ),
        kept.provenance(),
    )
    return title, content


def _circuits(result: CosimulationResult) -> list[HtmlElement]:
    """Return the schematics of circuits; empty where FMUs do not tell what they are, as the motion says."""
    try:
        machine = None if result.drawable is None else result.drawable.machine()
    except (InputError, DataError):
        return []
    return circuit_section(machine, result, hint=_FLOWS)


def _coupled_sentences(result: CosimulationResult, ended: str) -> list[tuple[str, str]]:
    statistics, stop = result.statistics, float(result.time[-1])
    sentences = []
    if ended:
        sentences.append((f"The run ended at {quantity(stop, 's', 6)}: {ended}", "bad"))
    else:
        sentences.append(
            (
                f"{len(statistics.unit_steps)} FMUs ran to {quantity(stop, 's')} in {grouped(statistics.steps)} "
                f"steps of {_steps(result)}, which took {quantity(statistics.wall_seconds, 's', 2)}.",
                "",
            )
        )
    sentences.append(_coupling_energy(result))
    if statistics.undriven:
        names = ", ".join(statistics.undriven)
        sentences.append(
            (f"Nothing drives {names}: each keeps its start value, or follows a signal inside its FMU.", "")
        )
    if statistics.coupling_error is not None:
        told = f"The coupling is off by {percent(statistics.coupling_error, 2)} of the range of "
        sentences.append((f"{told}{statistics.coupling_error_output}, the most of all outputs.", ""))
    elif statistics.control == "fixed":
        sentences.append((as_sentence(NO_ERROR_ESTIMATE), "soft"))
    return sentences


def _steps(result: CosimulationResult) -> str:
    statistics = result.statistics
    if statistics.control == "fixed":
        return step_length(statistics.step)
    return f"{step_length(statistics.smallest_step)} to {step_length(statistics.largest_step)}"


def _coupling_energy(result: CosimulationResult) -> tuple[str, str]:
    residual, share = result.energy_residual_max, result.energy_residual_share
    if residual is None:
        return (
            "No pair of connections carries power, so that what the coupling does to the energy is not known.",
            "soft",
        )
    large = share is not None and share > LARGE_RESIDUAL
    return (
        f"The coupling itself brought in or took out {quantity(residual, 'J')} at most, {percent(share, 2)} of the "
        "energy that was exchanged.",
        "warn" if large else "",
    )


def _energy_table(result: CosimulationResult) -> list[HtmlElement]:
    statistics = result.statistics
    if not statistics.energy_residual:
        return []
    rows: list[list[str | Cell]] = [
        [
            bond,
            *(quantity(each, "J") for each in (statistics.energy_exchanged[bond], end)),
            quantity(statistics.energy_residual_largest[bond], "J"),
        ]
        for bond, end in statistics.energy_residual.items()
    ]
    caption = (
        "Energy that the exchange of held values brings in (positive) or takes out, compared with the exchanged energy."
    )
    return [
        section(
            "Energy at the coupling",
            table(("bond", "exchanged", "residual at the end", "largest residual"), rows, caption),
        )
    ]


def _coupled_facts(result: CosimulationResult) -> dict[str, str]:
    statistics = result.statistics
    return {
        "algorithm": statistics.algorithm,
        "extrapolation": statistics.extrapolation,
        "control of the step": statistics.control,
        "communication step": _steps(result),
        "communication steps": grouped(statistics.steps),
        "sweeps over all FMUs": grouped(statistics.iterations),
        "brought back to an earlier state": f"{grouped(statistics.rollbacks)} times",
        "steps made again, smaller": grouped(statistics.rejected_steps),
        "stepping took": quantity(statistics.wall_seconds, "s"),
        "steps of the FMUs": ", ".join(f"{unit} {grouped(count)}" for unit, count in statistics.unit_steps.items()),
        "sweeps a step": number(statistics.iterations / statistics.steps) if statistics.steps else "–",
    }
