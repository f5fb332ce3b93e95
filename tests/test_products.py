"""The table of products in ARCHITECTURE.md: what it has can be chosen, and what it has not is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mbsfmu
from mbsfmu import InputError
from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.integration.solvers import find_solver, solver_names
from mbsfmu.native.model_tables import native_solver
from mbsfmu.rules import rule_names
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
_, _, *PLACES = re.search(r"^\| where \|.*?(?=^$)", TEXT, re.MULTILINE | re.DOTALL)[0].splitlines()  # pyright: ignore[reportOptionalSubscript]
FMUS = [
    ("native" if where.startswith("native") else "python", formulations, solvers, kinds, versions)
    for where, _, formulations, solvers, _, kinds, versions, _ in (
        [each.strip() for each in row.split("|")[1:-1]] for row in PLACES
    )
    if where in ("native FMU", "Python FMU")
]
"""Backend, formulations, solvers, kinds and versions of exported FMUs."""
INTERFACES = {"co-simulation": "cs", "model exchange": "me"}


def test_the_table_has_all_of_them() -> None:
    """Those of other tests are not ours."""
    formulations = [name for name in FORMULATIONS.names() if FORMULATIONS.find(name).__module__.startswith("mbsfmu.")]
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


@pytest.mark.parametrize("solver", sorted({solver for _, solver in CELLS}))
def test_native_fmus_have_the_solvers_that_the_table_says(solver: str) -> None:
    told = next(solvers for backend, _, solvers, *_ in FMUS if backend == "native")
    named = {*re.findall(r"`([\w-]+)`", told), *rule_names(), *Rosenbrock.names}
    chosen = mbsfmu.models.pendulum(1).simulation(solver=solver, compiled=False).solver
    if solver in named:
        native_solver(chosen)
    else:
        with pytest.raises(InputError, match=f"'{solver}' needs the backend 'python'"):
            native_solver(chosen)


@pytest.mark.parametrize("kind", INTERFACES)
@pytest.mark.parametrize("formulation", dict.fromkeys(formulation for formulation, _ in CELLS))
@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("backend", ["native", "python"])
def test_an_fmu_is_refused_unless_the_table_has_it(
    backend: str, fmi: int, formulation: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is compiled."""
    library = tmp_path / "library"
    library.touch()
    monkeypatch.setattr("mbsfmu.native.native_package.compile_library", lambda *_, **__: library)
    exists = any(
        one == backend and kind in kinds and f"{fmi}.0" in versions and formulations in ("all", formulation)
        for one, told, _, kinds, versions in FMUS
        for formulations in re.findall(r"[\w-]+", told)
    )
    chosen: dict[str, Any] = {"backend": backend, "fmi": fmi, "kind": INTERFACES[kind], "formulation": formulation}
    if exists:
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, **chosen)
    else:
        with pytest.raises(InputError, match=r"FMUs of 'python' are|no rates of states for model exchange"):
            mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, **chosen)
