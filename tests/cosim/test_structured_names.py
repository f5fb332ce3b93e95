"""Names of the FMI with brackets, commas, signs of equality and quotes, on the roads on which they are written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from cosim.linear_units import change_description
from foreign_fmus import compiler

from mbsfmu import Connection, cosimulate
from mbsfmu.base.name_patterns import means, names_between_commas, parted
from mbsfmu.cli.cosim import command as cosim
from mbsfmu.cli.fit import command as fit
from mbsfmu.cli.sweep import command as sweep
from mbsfmu.io.formats import read_table

Foreign = Callable[[str], Path]
NAMES = {
    "real_in": "u[1,2]", "real_out": "y[1]", "jumping_in": "der(x,2)", "jumping_out": "y1",
    "real_parameter": "'p = q, ä'",
}  # fmt: skip


@pytest.fixture
def unit(foreign: Foreign, tmp_path: Path) -> Path:
    if compiler() is None:
        pytest.skip("needs a C compiler")
    path = Path(shutil.copy(foreign("feed_through"), tmp_path / "t.fmu"))
    for old, new in NAMES.items():
        change_description(path, f'name="{old}"', f'name="{new}"')
    return path


def _done(command: Any, *arguments: str) -> Result:
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_separators_inside_of_names() -> None:
    assert names_between_commas("a.y, b[1,2] ,der(x,2),a.'p, q'") == ["a.y", "b[1,2]", "der(x,2)", "a.'p, q'"]
    assert names_between_commas("x',y'") == ["x'", "y'"]
    assert names_between_commas("a[1,b") == ["a[1", "b"]  # no bracket closes
    assert parted("a.'p=q'=b.u", "=") == ("a.'p=q'", "=", "b.u")
    assert parted("none", "=") == ("none", "", "")
    assert Connection.of(("a.x=y", "b.u")).source == ("a", "x=y")
    assert Connection.parse("a.'y=1'=b.u[1]").target == ("b", "u[1]")


def test_brackets_of_patterns_are_those_of_elements() -> None:
    assert means("*.y[1]", ["a.y[1]"])
    assert not means("y[1]", ["y1"])
    assert means("A[?,2]", ["A[1,2]"])
    assert means("A[*]", ["A[1,2]"])
    assert not means("A[*]", ["A1"])


def test_every_option_takes_such_names(unit: Path, tmp_path: Path) -> None:
    """y[1] = u[1,2], real_shown = p."""
    (tmp_path / "drive.csv").write_text('time,"w[3,4]"\n0,1\n0.5,7\n1,7\n')
    source = [f"a={unit}", f"b={unit}", "--step", "0.5", "--stop", "1", "-o", str(tmp_path / "out.csv")]
    _done(
        cosim, *source, "--connect", "a.y[1]=b.der(x,2)", "--input", f"a.u[1,2]={tmp_path / 'drive.csv'}:w[3,4]",
        "--start", "b.'p = q, ä'=4", "--record", "a.y[1],b.y1,b.real_shown",
    )  # fmt: skip
    table = read_table(tmp_path / "out.csv")
    assert list(table.columns) == ["time", "a.y[1]", "b.y1", "b.real_shown"]
    assert table.columns["b.real_shown"][-1] == 4.0
    assert table.columns["a.y[1]"][-1] == 7.0
    (tmp_path / "later.csv").write_text('time,"a.u[1,2]"\n0,3\n0.5,5\n')
    result = cosimulate([f"a={unit}"], scenario=tmp_path / "later.csv", step=0.5, stop=1.0, record=["a.y[1]"])
    np.testing.assert_array_equal(result["a.y[1]"], [3.0, 3.0, 5.0])
    assert tuple(result.names) == ("a.y[1]",)
    how = ["--step", "0.5", "--stop", "0.5", "-o", str(tmp_path / "rows.csv"), "--workers", "1"]
    _done(sweep, f"a={unit}", "--vary", "a.u[1,2]=2,3", "--vary", "a.'p = q, ä'=8", *how)
    assert read_table(tmp_path / "rows.csv").columns["final.a.y[1]"] == [2, 3]
    (tmp_path / "points.csv").write_text('"a.u[1,2]"\n5\n6\n')
    _done(sweep, f"a={unit}", "--points", str(tmp_path / "points.csv"), *how, "--force", "--fresh")
    assert list(read_table(tmp_path / "rows.csv").columns["final.a.y[1]"]) == [5, 6]


def test_a_fit_takes_such_names(unit: Path, tmp_path: Path) -> None:
    """The parameter is what real_shown is measured as: 3; y[1] is the measured input."""
    change_description(unit, '(name="real_shown"[^>]*variability=)"discrete"', r'\1"continuous"')
    rows = "".join(f"{0.25 * k},{3.0 + 1e-9 * (-1) ** k},{k}\n" for k in range(9))
    (tmp_path / "log.csv").write_text(f'time,real_shown,"u[1,2]"\n{rows}')
    result = _done(
        fit, str(unit), "--measured", str(tmp_path / "log.csv"), "--free", "'p = q, ä'=0.5:5", "--step", "0.5"
    )
    assert "│ 3 " in result.output
