"""Reference results inside FMUs: written, checked, missed."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cosim.linear_units import export_linear, halves

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.cli import main
from mbsfmu.exporting.reference_results import add_reference
from mbsfmu.fmu.validation import FOLDER, MANIFEST

CSV = f"{FOLDER}/reference.csv"


@pytest.fixture(scope="module")
def with_reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = export_linear(halves()[0], tmp_path_factory.mktemp("reference"), "rk4", 1e-3)
    return add_reference(path)


def changed(path: Path, folder: Path, change: Callable[[str], str], name: str = CSV) -> Path:
    """Return an FMU with another text in it."""
    copy = folder / "changed.fmu"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as written:
        for each in archive.namelist():
            content = archive.read(each)
            written.writestr(each, change(content.decode()) if each == name else content)
    return copy


def test_an_fmu_holds_what_it_gives(with_reference: Path) -> None:
    found = mbsfmu.check_reference(with_reference)
    assert {each.file for each in found} == {CSV}
    assert {each.share for each in found} == {0.0}
    assert not [each for each in mbsfmu.validate(with_reference) if each.rule == "reference-manifest"]
    with zipfile.ZipFile(with_reference) as archive:
        rows = archive.read(CSV).decode().splitlines()
    assert rows[0].split(",") == ["time", *(each.name for each in found)]
    assert 100 < len(rows) <= 502


def test_a_difference_is_found_and_told(
    with_reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last value of the first output is larger by ten times its largest magnitude."""

    def add(text: str) -> str:
        *rows, last = text.splitlines()
        size = max(abs(float(row.split(",")[1])) for row in (*rows[1:], last))
        time, first, *others = last.split(",")
        return "\n".join([*rows, ",".join([time, repr(float(first) + 10.0 * size), *others])])

    path = changed(with_reference, tmp_path, add)
    first, *others = mbsfmu.check_reference(path)
    assert 10.0 / 11.0 - 0.1 <= first.share <= 10.0 / 9.0
    assert {each.share for each in others} <= {0.0}
    monkeypatch.setattr(sys, "argv", ["mbsfmu", "validate", str(path), "--reference"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert f"{first.name} is off by" in said.out
    assert "there are outputs that miss their reference" in said.err
    monkeypatch.setattr(sys, "argv", ["mbsfmu", "validate", str(with_reference), "--reference"])
    main()


@pytest.mark.parametrize(
    ("change", "name", "sentence"),
    [
        (lambda text: text.replace("time,", "time,other_", 1), CSV, "which is no output of the FMU"),
        (lambda text: text.replace("time,", "time,more,", 1), CSV, "no table of finite numbers|no table of numbers"),
        (lambda text: text.splitlines()[0], CSV, "no table of finite numbers"),
        (lambda text: "\n".join([*text.splitlines()[:3], *text.splitlines()[6:]]), CSV, "not ascend in equal steps"),
        (lambda text: text.replace("text/csv", "text/plain"), MANIFEST, "has no reference results"),
        (lambda _: "none", MANIFEST, "no manifest of related files that can be read"),
    ],
)
def test_references_that_do_not_read_so(
    change: Callable[[str], str], name: str, sentence: str, with_reference: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.check_reference(changed(with_reference, tmp_path, change, name))


def test_an_fmu_without_reference_says_so(with_reference: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a manifest of related files already"):
        add_reference(with_reference)
    with pytest.raises(InputError, match="there is no file"):
        mbsfmu.check_reference(tmp_path / "none.fmu")
    with pytest.raises(InputError, match="reference results are those of FMUs for co-simulation"):
        mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, kind="me", reference=True)


def test_an_export_writes_the_reference(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="monolithic", reference=True)
    assert max(each.share for each in mbsfmu.check_reference(path)) == 0.0
