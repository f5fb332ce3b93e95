"""A file format of a user's file goes wherever the built-in ones go."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mbsfmu
from mbsfmu import InputError, Trajectory
from mbsfmu.cli.commands import cli

FILE = Path(__file__).with_name("own_format.py")


def called(*arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--quiet"])
    assert done.exit_code == 0, done.output
    return done.output


def test_commands_write_and_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts = ("--parts", str(FILE))
    called("simulate", "pendulum-1", "--stop", "0.05", "-o", "run.npz", *parts)
    expected = mbsfmu.models.pendulum(1).simulation().run(0.05)
    with np.load("run.npz") as file:
        np.testing.assert_allclose(file["link_1.angle"], expected["link_1.angle"], rtol=1e-12)
    assert Trajectory.from_file("run.npz").unit("link_1.angle") == "rad"
    called("sweep", "pendulum-1", "--vary", "link_1.mass=1,2", "--stop", "0.01", "-o", "rows.npz", *parts)
    with np.load("rows.npz") as file:
        np.testing.assert_array_equal(file["mechanism.link_1.mass"], [1.0, 2.0])
    called("sweep", "pendulum-1", "--vary", "link_1.mass=1,2", "--stop", "0.01", "-o", "rows.npz", *parts)


def test_rows_of_a_coupled_run_grow_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the format does not do itself: a file that can be read at any moment."""
    monkeypatch.chdir(tmp_path)
    mbsfmu.load_parts([FILE])
    package = mbsfmu.export(mbsfmu.models.four_bar(), "out", layout="separate", backend="native")[-1]
    with mbsfmu.Cosimulation(package, step=1e-3, stop=0.01, output="run.npz") as cosimulation:
        for _ in range(5):
            cosimulation.step()
        assert Path("run.npz.part").read_text().startswith("time [s],")
        result = cosimulation.run()
    assert not Path("run.npz.part").exists()
    found = Trajectory.from_file("run.npz")
    np.testing.assert_array_equal(found.time, result.time)
    assert found.names == result.names
    assert len(found.time) == 11


def test_two_files_of_one_suffix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = tmp_path / "other.py"
    other.write_text(FILE.read_text())
    with pytest.raises(
        InputError, match=r"the file format '\.npz' is defined twice, in .*own_format\.py and in .*other"
    ):
        mbsfmu.load_parts([FILE, other])
    mbsfmu.load_parts([FILE])
    with caplog.at_level(logging.WARNING):
        mbsfmu.load_parts([other])
    assert "the file format '.npz' is from now on that of" in caplog.text


def test_it_is_unknown_without_the_file() -> None:
    with pytest.raises(InputError, match=r"run\.npz is refused as a file of signals: its name must end in \.csv"):
        Trajectory.from_file("run.npz")


def test_the_page_has_a_format_that_works(tmp_path: Path) -> None:
    """The class in `files.md` writes a run and reads it back."""
    page = (FILE.parents[2] / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    code = next(each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "TableFormat" in each)
    (tmp_path / "numpy_format.py").write_text("from __future__ import annotations\n" + code, encoding="utf-8")
    mbsfmu.load_parts([tmp_path / "numpy_format.py"])
    run = Trajectory(np.arange(3.0), np.eye(3), ["a.b", "c", "d"], ["m", "s", "1"])
    run.to_file(tmp_path / "run.npz")
    found = Trajectory.from_file(tmp_path / "run.npz")
    np.testing.assert_array_equal(found.values_by_column, run.values_by_column)
    assert [found.unit(name) for name in found] == ["m", "s", "1"]
