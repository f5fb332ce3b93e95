"""Validation finds what it says it finds: negative controls on damaged FMUs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import mbsfmu


def damaged(source: Path, target: Path, change: Callable[[str], str]) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "modelDescription.xml":
                text = change(content.decode())
                assert text != content.decode()
                content = text.encode()
            new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'modelIdentifier="four_bar_circuit"',
            'modelIdentifier="other"',
            "no library named after the modelIdentifier other",
        ),
        ('name="oil.density" valueReference="', 'name="oil.density" valueReference="1', "value reference"),
        ('Z" guid', '" guid', "should be in UTC and end in Z"),
        (' stepSize="0.001"', "", "DefaultExperiment has no stepSize"),
        ('<Unit name="kg/m3">', '<Unit name="kg/m4">', "unit kg/m3"),
        ('start="850.0"', 'start="-850.0"', "oil.density starts at -850.0, below its min"),
    ],
)
def test_damage_is_found(four_bar_fmus: dict[str, Path], tmp_path: Path, old: str, new: str, problem: str) -> None:
    def change(text: str) -> str:
        if "valueReference" in old:  # give the density the value reference of another parameter
            first = text.index('name="oil.bulk_modulus" valueReference="') + len(
                'name="oil.bulk_modulus" valueReference="'
            )
            reference = text[first : text.index('"', first)]
            start = text.index(old) + len(old)
            return text[:start] + reference + text[text.index('"', start) :]
        if "guid" in old:
            return text.replace('Z"', '"', 1)
        return text.replace(old, new)

    problems = mbsfmu.validate(damaged(four_bar_fmus["circuit"], tmp_path / "damaged.fmu", change))
    assert any(problem in each.sentence for each in problems)


def test_missing_initial_unknown_is_found(four_bar_fmus: dict[str, Path], tmp_path: Path) -> None:
    def change(text: str) -> str:
        begin, end = text.index("<InitialUnknowns>"), text.index("</InitialUnknowns>")
        return text[:begin] + text[end + len("</InitialUnknowns>") :]

    problems = mbsfmu.validate(damaged(four_bar_fmus["circuit"], tmp_path / "damaged.fmu", change))
    assert any("cylinder.force is missing in ModelStructure/InitialUnknowns" in each.sentence for each in problems)


def test_what_is_no_fmu_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.fmu"
    file.write_text("no archive")
    with pytest.raises(mbsfmu.InputError, match="is no FMU"):
        mbsfmu.validate(file)
    with pytest.raises(mbsfmu.InputError, match="there is no file"):
        mbsfmu.validate(tmp_path / "nothing.fmu")
