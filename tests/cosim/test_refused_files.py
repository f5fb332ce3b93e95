"""What is no FMU or package that can be run is refused by one sentence, on every command that reads it."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cosim.ssp_documents import HEAD, TAIL, component, connector, system

from mbsfmu import InputError, cosimulate
from mbsfmu.cli.cosim import command as cosim
from mbsfmu.cli.show import command as show
from mbsfmu.cosim.ssp import STRUCTURE

FMU = '<fmiModelDescription fmiVersion="{}" modelName="m" instantiationToken="x"><CoSimulation modelIdentifier="m"/>'
FMU += "<ModelVariables/><ModelStructure/></fmiModelDescription>"


def _said(command: Any, path: Path) -> str:
    result = CliRunner().invoke(command, [str(path)])
    assert isinstance(result.exception, (InputError, SystemExit))
    return f"{result.output}{result.exception}"


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("3.0-beta.2", "is of FMI '3.0-beta.2', which is not supported; let its tool export it by FMI 3.0"),
        ("4.0", "is of FMI '4.0', which is not supported; it must be 1.0, 2.0 or 3.0"),
        ("", "is of FMI '', which is not supported"),
    ],
)
def test_other_versions_of_fmi(tmp_path: Path, version: str, sentence: str) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", FMU.format(version))
    assert sentence in _said(cosim, path)
    assert sentence in _said(show, path)


def test_a_description_that_is_missing_or_not_at_the_top(tmp_path: Path) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/modelDescription.xml", FMU.format("2.0"))
    for command in (cosim, show):
        assert "it has no modelDescription.xml at its top" in _said(command, path)


def test_a_system_structure_beside_its_fmus(
    foreign: Callable[[str], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Under its name it is the package that it is; under another one it is none, or a variant that is named."""
    (tmp_path / "resources").mkdir()
    shutil.copy(foreign("source"), tmp_path / "resources" / "source.fmu")
    text = HEAD + system(component("s", "source", connector("sine", "output"))) + TAIL
    (tmp_path / "other.ssd").write_text(text)
    for command in (cosim, show):
        assert f"call it {STRUCTURE}" in _said(command, tmp_path / "other.ssd")
    shutil.copy(tmp_path / "other.ssd", tmp_path / STRUCTURE)
    result = cosimulate(tmp_path / STRUCTURE, step=0.1, stop=0.2)
    assert list(result["s.sine"]) == list(cosimulate(tmp_path, step=0.1, stop=0.2)["s.sine"])
    assert [each for each in caplog.messages if f"has the variants other.ssd too; {STRUCTURE} is taken" in each]
    assert CliRunner().invoke(show, [str(tmp_path / STRUCTURE)]).exit_code == 0
