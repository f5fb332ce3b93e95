"""Native units that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from native_units import Exported

import mbsfmu
from mbsfmu.exporting import export
from mbsfmu.native.compiler import has_compiler

collect_ignore_glob = [] if has_compiler() else ["test_*.py"]


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Exported]:
    """Return a function that exports a built-in model monolithically, once."""
    made: dict[tuple[str, str], Exported] = {}

    def unit(name: str, formulation: str) -> Exported:
        if (name, formulation) not in made:
            model = mbsfmu.models.built_in(name)
            folder = tmp_path_factory.mktemp("native")
            path = export(model, folder, layout="monolithic", formulation=formulation, sources=True)[0]
            made[name, formulation] = Exported(path, model.simulation(formulation=formulation))
        return made[name, formulation]

    return unit
