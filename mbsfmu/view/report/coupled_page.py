"""Report of a coupled run: end, animation, coupling energy, signals."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.runs.master import NO_ERROR_ESTIMATE
from mbsfmu.cosim.runs.run_recorder import LARGE_RESIDUAL, CosimulationResult
from mbsfmu.modelling import DataError
from mbsfmu.view.pages.blocks import answer, as_sentence, beside, heading, paragraph, section, stack
from mbsfmu.view.pages.download import download
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.formatted_quantity import number, percent, quantity, step_length
from mbsfmu.view.pages.html_table import Cell, key_value_table, table
from mbsfmu.view.plots.plot import grouped
from mbsfmu.view.report.circuit_section import circuit_section
from mbsfmu.view.report.circumstances import Circumstances
from mbsfmu.view.report.moving import moving
from mbsfmu.view.report.signal_plots import points_described, signals_over_time, table_of_signals

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
        answer(_sentences(result, circumstances.ended)),
        *kept.warning_notes(),
        *moving(result.animate),
        *_circuits(result),
        *_energy_table(result),
        signals_over_time(result),
        section("The run", key_value_table(_facts(result))),
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


def _sentences(result: CosimulationResult, ended: str) -> list[tuple[str, str]]:
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
    sentences.append(_energy(result))
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


def _energy(result: CosimulationResult) -> tuple[str, str]:
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


def _facts(result: CosimulationResult) -> dict[str, str]:
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
