"""Report of a comparison: cost of coupling and of the step."""

from __future__ import annotations

from mbsfmu.comparison import Comparison
from mbsfmu.view.pages.blocks import answer, beside, heading, paragraph, section, stack
from mbsfmu.view.pages.download import csv_text, download
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.report import comparison_plots as plots
from mbsfmu.view.report import comparison_words as words
from mbsfmu.view.report.circuit_section import circuit_section
from mbsfmu.view.report.circumstances import Circumstances
from mbsfmu.view.report.moving import moving


def comparison_page(comparison: Comparison, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a comparison."""
    title = f"{comparison.model}: what coupling costs"
    formulation = f"formulation {comparison.formulation}" if comparison.formulation else ""
    about = ", ".join(filter(None, (comparison.description, formulation)))
    compared = "coupled FMUs compared with the same model as one system"
    if comparison.coupled_reference is not None:
        compared = "compared with a coupled run of small steps, for there is no model"
    content = stack(
        heading(title),
        paragraph(f"{about}; {compared}", "soft"),
        answer(words.sentences(comparison, circumstances.ended)),
        *circumstances.warning_notes(),
        *moving(
            comparison.animate,
            f"{comparison.label.capitalize()}; ghosts are the coupled runs of the largest step that did not diverge.",
        ),
        *circumstances.live_machine(),
        section("Algorithms", words.algorithms(comparison)),
        *plots.error_over_step(comparison),
        *plots.outputs_over_time(comparison),
        *circuit_section(comparison.machine, comparison.reference_run, label=comparison.label),
        *plots.energy_over_time(comparison),
        *words.energy_of_bonds(comparison),
        *plots.error_over_cost(comparison),
        words.errors_of_outputs(comparison),
        section("All coupled runs", words.all_runs(comparison)),
        *words.stability(comparison),
        words.reference(comparison),
        _downloads(comparison),
        circumstances.provenance(),
    )
    return title, content


def _downloads(comparison: Comparison) -> HtmlElement:
    rows = comparison.rows
    return section(
        "Numbers",
        beside(
            download("All numbers, JSON", f"{comparison.model}.json", comparison.to_dict()),
            download(
                "Coupled runs, CSV", f"{comparison.model}-runs.csv", csv_text(list(rows[0]) if rows else [], rows)
            ),
        ),
    )
