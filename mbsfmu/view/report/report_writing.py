"""Writer of all reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mbsfmu.analysis.fitting import FitResult
from mbsfmu.analysis.linear_system import LinearSystem
from mbsfmu.analysis.modal_analysis import ModalAnalysis
from mbsfmu.base.errors import InputError
from mbsfmu.comparison import Comparison
from mbsfmu.cosim.runs.run_recorder import CosimulationResult
from mbsfmu.simulation.run_result import Result
from mbsfmu.studies import StudyResult
from mbsfmu.view.pages.page import HtmlElement, write_page
from mbsfmu.view.report.comparison_page import comparison_page
from mbsfmu.view.report.linear_page import linear_page
from mbsfmu.view.report.report_sections import Circumstances
from mbsfmu.view.report.run_page import coupled_page, run_page
from mbsfmu.view.report.study_page import fit_page, study_page

_PAGES: dict[type[Any], Callable[[Any, Circumstances], tuple[str, HtmlElement]]] = {
    Comparison: comparison_page,
    Result: run_page,
    CosimulationResult: coupled_page,
    StudyResult: study_page,
    LinearSystem: linear_page,
    ModalAnalysis: linear_page,
    FitResult: fit_page,
}

_ALIVE = (Result, Comparison)
"""Whose reports have a running machine where one is given."""


def write_report(
    result: Comparison | Result | CosimulationResult | StudyResult | LinearSystem | ModalAnalysis | FitResult,
    path: str | os.PathLike[str],
    circumstances: Circumstances = Circumstances(),  # noqa: B008 - it is frozen
) -> Path:
    """Write a report: one self-contained HTML file, atomically.

    Parameters
    ----------
    result
        What `run`, `cosimulate`, `compare`, `sweep`, `linearize`, `modal_analysis` or `fit` gave.
    path
        The HTML file; replaced if it is there.
    circumstances
        What is told beside: the call, warnings, why a run ended before its time, and the running machine.

    Raises
    ------
    InputError
        When there is no report of such a thing, none with a running machine, or the file is not called `.html` or
        `.htm`.
    """
    make = next((make for kind, make in _PAGES.items() if isinstance(result, kind)), None)
    if make is None:
        kinds = ", ".join(kind.__name__ for kind in _PAGES)
        raise InputError(f"there is no report of a {type(result).__name__}; there is one of {kinds}")
    if circumstances.live is not None and not isinstance(result, _ALIVE):
        kinds = " and ".join(kind.__name__ for kind in _ALIVE)
        raise InputError(f"the report of a {type(result).__name__} has no running machine; those of {kinds} have")
    return write_page(*make(result, circumstances), path)
