"""A disk that is full or a folder that has gone: a sentence names the file and the reason, and nothing is left over."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.base.files import WriteError, complete_file
from mbsfmu.cli.output import write_json
from mbsfmu.studies.point_run import Journal
from mbsfmu.view.report import write_report

resource = pytest.importorskip("resource")
TOO_LARGE = "cannot be written: File too large"


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let the system refuse what would make a file larger than some bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def many_numbers() -> mbsfmu.Trajectory:
    rows = [[float(row * column % 97) / 7.0 for column in range(50)] for row in range(400)]
    return mbsfmu.Trajectory(range(400), rows, [f"signal_{column}" for column in range(50)], ["1"] * 50)


def a_comparison() -> mbsfmu.Comparison:
    model = mbsfmu.models.four_bar()
    return mbsfmu.compare(model, steps=[2e-2, 1e-2], algorithms=["jacobi"], stop=0.1, workers=1)


WRITERS: dict[str, Callable[[Path], object]] = {
    "run.csv": lambda path: many_numbers().to_file(path),
    **{f"run.{each}": lambda path: many_numbers().to_file(path) for each in ("parquet", "h5", "nc", "mat")},
    "model.json": lambda path: mbsfmu.models.four_bar().to_file(path),
    "facts.json": lambda path: write_json(str(path), {"numbers": list(range(4000))}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_named_with_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with no_file_beyond(2000), pytest.raises(WriteError) as refused:
        WRITERS[name](path)
    assert str(refused.value) == f"{path} {TOO_LARGE}"
    assert list(tmp_path.iterdir()) == []
    WRITERS[name](path)
    whole = path.read_bytes()
    assert len(whole) > 2000
    with no_file_beyond(2000), pytest.raises(WriteError):
        WRITERS[name](path)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_is_whole_or_not_there(tmp_path: Path) -> None:
    comparison = a_comparison()
    with no_file_beyond(2000), pytest.raises(WriteError, match=f"page.html {TOO_LARGE}"):
        write_report(comparison, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("layout", "file"), [("separate", "mechanism.fmu"), ("monolithic", "four-bar.fmu")])
def test_an_export_is_whole_or_not_there(layout: str, file: str, tmp_path: Path) -> None:
    with no_file_beyond(2000), pytest.raises(WriteError, match=f"{file} {TOO_LARGE}"):
        mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout=layout, backend="python")
    assert list(tmp_path.iterdir()) == []


def test_units_go_when_their_package_cannot_be_written(tmp_path: Path) -> None:
    model = mbsfmu.models.four_bar()
    *units, package = mbsfmu.export(model, tmp_path / "first", layout="separate", backend="python")
    largest = max(unit.stat().st_size for unit in units)
    assert package.stat().st_size > largest + 2000
    target = tmp_path / "second"
    with no_file_beyond(largest + 2000), pytest.raises(WriteError, match=f"four-bar.ssp {TOO_LARGE}"):
        mbsfmu.export(model, target, layout="separate", backend="python")
    assert list(target.iterdir()) == []


def test_a_folder_that_goes_meanwhile_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()

    def write() -> None:
        with complete_file(folder / "run.csv"):
            shutil.rmtree(folder)

    with pytest.raises(WriteError, match=r"there/run\.csv cannot be written: No such file or directory"):
        write()
    with pytest.raises(WriteError, match=r"run\.csv cannot be written: there is no folder"):
        many_numbers().to_file(folder / "run.csv")


def test_another_file_that_cannot_be_read_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.fmu"), complete_file(tmp_path / "run.ssp"):
        (tmp_path / "none.fmu").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_is_written_or_named(tmp_path: Path) -> None:
    with complete_file(tmp_path / ("a" * 255)) as partial:
        partial.write_text("1")
    assert (tmp_path / ("a" * 255)).read_text() == "1"
    with pytest.raises(WriteError, match="File name too long"), complete_file(tmp_path / ("a" * 256)):
        pass


def test_rows_of_a_study_before_a_full_disk_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rows.parquet")
    row = {"text": "x" * 900}

    def add(keys: str) -> None:
        with journal:
            for key in keys:
                journal.add({"key": key, **row})

    with no_file_beyond(2000), pytest.raises(WriteError, match=f"rows.parquet.journal {TOO_LARGE}"):
        add("0123")
    assert list(journal.known()) == ["0", "1"]
    add("4")
    assert list(journal.known()) == ["0", "1", "4"]


def test_reasons_come_without_numbers() -> None:
    told = WriteError("run.csv", OSError(errno.ENOSPC, "[Errno 28] as some library says it"))
    assert str(told) == "run.csv cannot be written: No space left on device"
