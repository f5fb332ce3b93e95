"""The figures of the comparison with the paper are drawn, and small enough to be kept."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from started import run_python

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper_figures.py"


def test_figures_and_tables_are_made(tmp_path: Path) -> None:
    done = run_python(str(SCRIPT), "--quick", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    drawn = sorted(tmp_path.iterdir())
    docs = SCRIPT.parents[1] / "docs" / "studies"
    assert [file.name for file in drawn] == sorted(file.name for file in docs.glob("paper-*.svg"))
    for file in (*drawn, *docs.glob("paper-*.svg")):
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
        assert file.stat().st_size < 150e3
        assert file.name in (docs / "paper-comparison.md").read_text(encoding="utf-8")
    assert "| four-bar, penalty |" in done.stdout
