"""The table of products in ARCHITECTURE.md: what it has can be chosen, and what it has not is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mbsfmu import InputError
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.integration.solvers import find_solver, solver_names
from mbsfmu.simulation.run_options import RunOptions

TEXT = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
HEAD, _, *ROWS = re.search(r"^\| formulation \|.*?(?=^$)", TEXT, re.MULTILINE | re.DOTALL)[0].splitlines()  # pyright: ignore[reportOptionalSubscript]
CELLS = {
    (formulation.strip("`"), solver): cell
    for formulation, *cells in ([each.strip() for each in row.split("|")[1:-1]] for row in ROWS)
    for heading, cell in zip(HEAD.split("|")[2:6], cells, strict=False)
    for solver in re.findall(r"`([\w-]+)`", heading)
}
"""What the table says of a solver with a formulation."""


def test_the_table_has_all_of_them() -> None:
    """Rules of other tests are not ours."""
    formulations = {"double-step", "penalty", "dca", "hdca", DcaAlm.name}
    kinds = {solver: find_solver(solver) for solver in solver_names()}
    ours = [
        solver
        for solver, (kind, rule) in kinds.items()
        if kind.__module__.startswith("mbsfmu.") and type(rule).__module__.startswith("mbsfmu.")
    ]
    assert set(CELLS) == {(formulation, solver) for formulation in formulations for solver in ours}


@pytest.mark.parametrize(("formulation", "solver"), CELLS, ids="-".join)
def test_a_product_exists_as_the_table_says(formulation: str, solver: str) -> None:
    def chosen(**options: object) -> RunOptions:
        return RunOptions.of(RunOptions(), {"formulation": formulation, "solver": solver, **options}).completed()

    if CELLS[formulation, solver] in ("no", "without projections"):
        with pytest.raises(InputError, match=f"'{solver}'"):
            chosen()
    else:
        chosen()
    if CELLS[formulation, solver] == "without projections":
        chosen(projections=False)
