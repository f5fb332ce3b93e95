"""Native FMUs that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fuzzing import Checked, checked
from native_fmus import TIGHT, Exported, model_of

from mbsfmu.compiling.compiler import Fmi, Interface, has_compiler
from mbsfmu.exporting.fmu_export import export
from mbsfmu.integration.solvers import makes_equal_steps

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
            options = {"formulation": formulation, "solver": solver}
            if not makes_equal_steps(solver):
                options |= {"relative_tolerance": TIGHT, "absolute_tolerance": TIGHT}
            path = export(model, folder, layout="monolithic", fmi=fmi, arrays=fmi == 3, sources=True, **options)[0]
            made[key] = Exported(path, model, options)
        return made[key]

    return unit


@pytest.fixture(scope="session")
def exchanged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Exported]:
    """Return a function that exports a model for both kinds of use, once for each formulation and version.

    For co-simulation it steps by rodas5p at tight tolerances; in absolute coordinates by rk45, in kernel loops, in
    which there are derivatives.
    """
    made: dict[tuple[str, str, Fmi], Exported] = {}

    def unit(name: str, formulation: str, fmi: Fmi = 2) -> Exported:
        key = name, formulation, fmi
        if key not in made:
            options = {"formulation": formulation, "solver": "rodas5p"}
            if formulation == "dca-alm":
                options |= {"solver": "rk45", "code": "loops"}
            options |= {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
            model = model_of(name)
            folder = tmp_path_factory.mktemp("exchanged")
            path = export(
                model, folder, layout="monolithic", kind=("cs", "me"), fmi=fmi, arrays=fmi == 3, sources=True, **options
            )[0]
            made[key] = Exported(path, model, options)
        return made[key]

    return unit


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checked]:
    """Return a function that compiles a model's unit with sanitizers, once for each formulation, solver and version."""
    made: dict[tuple[Any, ...], Checked] = {}

    def unit(
        name: str,
        formulation: str,
        solver: str = "trapezoidal",
        fmi: Fmi = 2,
        kind: tuple[Interface, ...] = ("cs",),
    ) -> Checked:
        key = name, formulation, solver, fmi, kind
        if key not in made:
            simulation = model_of(name).simulation(formulation=formulation, solver=solver, compiled=False)
            folder = tmp_path_factory.mktemp(f"{name}-{formulation}-{solver}-{'-'.join(kind)}")
            made[key] = checked(simulation, folder, fmi, kind)
        return made[key]

    return unit
