"""Native units that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fuzzing import Checked, checked
from native_units import TIGHT, Exported, model_of

from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.compiling.platforms import Fmi
from mbsfmu.exporting import export
from mbsfmu.simulation.solvers import makes_equal_steps

collect_ignore_glob = [] if has_compiler() else ["test_*.py"]


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Exported]:
    """Return a function that exports a model monolithically, once for each formulation, solver and version."""
    made: dict[tuple[str, str, str, Fmi], Exported] = {}

    def unit(name: str, formulation: str, solver: str = "trapezoidal", fmi: Fmi = 2) -> Exported:
        key = name, formulation, solver, fmi
        if key not in made:
            model = model_of(name)
            folder = tmp_path_factory.mktemp("native")
            options = {"formulation": formulation}
            if solver != "trapezoidal":
                options |= {"solver": solver}
            if not makes_equal_steps(solver):
                options |= {"relative_tolerance": TIGHT, "absolute_tolerance": TIGHT}
            path = export(model, folder, layout="monolithic", fmi=fmi, sources=True, **options)[0]
            made[key] = Exported(path, model.simulation(**options))
        return made[key]

    return unit


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checked]:
    """Return a function that compiles a model's unit with sanitizers, once for each formulation, solver and version."""
    made: dict[tuple[str, str, str, Fmi], Checked] = {}

    def unit(name: str, formulation: str, solver: str = "trapezoidal", fmi: Fmi = 2) -> Checked:
        key = name, formulation, solver, fmi
        if key not in made:
            simulation = model_of(name).simulation(formulation=formulation, solver=solver, compiled=False)
            made[key] = checked(simulation, tmp_path_factory.mktemp(f"{name}-{formulation}-{solver}"), fmi)
        return made[key]

    return unit
