"""The report of a coupled run: how far it came, the moving machine, what the coupling did to the energy, signals."""

from __future__ import annotations

from mbsfmu.cosim.runs.coupled_result import LARGE_RESIDUAL, CosimulationResult
from mbsfmu.view.pages.blocks import answer, beside, heading, paragraph, section, stack
from mbsfmu.view.pages.download import download
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.quantity import number, percent, quantity, step_length
from mbsfmu.view.pages.table import Cell, facts, table
from mbsfmu.view.plots.plot import grouped
from mbsfmu.view.report.circumstances import Circumstances
from mbsfmu.view.report.moving import moving
from mbsfmu.view.report.signal_plots import points_told, signals_over_time, table_of_signals


def coupled_page(result: CosimulationResult, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a coupled run."""
    told = result.facts
    title = f"{' and '.join(told.unit_steps) or 'Units'}, coupled"
    notes = [*dict.fromkeys([*told.notes, *circumstances.warnings])]
    kept = Circumstances(circumstances.command, notes, circumstances.ended)
    content = stack(
        heading(title),
        paragraph(f"algorithm {told.algorithm}, extrapolation {told.extrapolation}; {points_told(result)}", "soft"),
        answer(_sentences(result, circumstances.ended)),
        *kept.told(),
        *moving(result.animate),
        *_energy_table(result),
        signals_over_time(result),
        section("The run", facts(_facts(result))),
        section(
            "Numbers",
            table_of_signals(result),
            beside(download("Facts and final values, JSON", "coupled-run.json", result.summary())),
            paragraph(
                "Signals over time: the CSV button of each plot, or -o FILE.csv of the command, in all digits.", "soft"
            ),
        ),
        kept.provenance(),
    )
    return title, content


def _sentences(result: CosimulationResult, ended: str) -> list[tuple[str, str]]:
    told, stop = result.facts, float(result.time[-1])
    sentences = []
    if ended:
        sentences.append((f"The run ended at {quantity(stop, 's', 6)}: {ended}", "bad"))
    else:
        sentences.append(
            (
                f"{len(told.unit_steps)} units ran to {quantity(stop, 's')} in {grouped(told.steps)} steps of "
                f"{_steps(result)}, which took {quantity(told.wall_seconds, 's', 2)}.",
                "",
            )
        )
    sentences.append(_energy(result))
    if told.undriven:
        names = ", ".join(told.undriven)
        sentences.append(
            (f"Nothing drives {names}: each keeps its start value, or follows a signal inside its unit.", "")
        )
    unknown = (
        "Not known from a coupled run alone: how far it is from the machine as one system. Half the step shows how "
        "much changes; mbsfmu compare measures it where the model is at hand."
    )
    return [*sentences, (unknown, "soft")]


def _steps(result: CosimulationResult) -> str:
    told = result.facts
    if told.control == "fixed":
        return step_length(told.step)
    return f"{step_length(told.smallest_step)} to {step_length(told.largest_step)}"


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
    told = result.facts
    if not told.energy_residual:
        return []
    rows: list[list[str | Cell]] = [
        [bond, quantity(told.energy_exchanged[bond], "J"), quantity(end, "J")]
        for bond, end in told.energy_residual.items()
    ]
    caption = "Energy that the exchange of held values brings in (positive) or takes out, beside what goes to and fro."
    return [section("Energy at the coupling", table(("bond", "exchanged", "residual at the end"), rows, caption))]


def _facts(result: CosimulationResult) -> dict[str, str]:
    told = result.facts
    return {
        "algorithm": told.algorithm,
        "extrapolation": told.extrapolation,
        "control of the step": told.control,
        "communication step": _steps(result),
        "communication steps": grouped(told.steps),
        "sweeps over all units": grouped(told.iterations),
        "brought back to an earlier state": f"{grouped(told.rollbacks)} times",
        "steps made again, smaller": grouped(told.rejected_steps),
        "stepping took": quantity(told.wall_seconds, "s"),
        "steps of the units": ", ".join(f"{unit} {grouped(count)}" for unit, count in told.unit_steps.items()),
        "sweeps a step": number(told.iterations / told.steps) if told.steps else "–",
    }
