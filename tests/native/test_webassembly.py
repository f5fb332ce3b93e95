"""FMUs for WebAssembly: the same C, run by Node beside the run in process."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from web_assembly import run_in_node

import mbsfmu

STEP, STEPS = 1e-3, 1200  # to where the valve has opened


@pytest.fixture(scope="session")
def four_bar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked FMU of the four-bar by the trapezoidal rule."""
    folder = tmp_path_factory.mktemp("wasm")
    (path,) = mbsfmu.export(
        mbsfmu.models.four_bar(), folder, layout="monolithic", platforms=["wasm32"], solver="trapezoidal", step=STEP
    )
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "unit")
    return folder / "unit"


def test_it_computes_what_runs_in_process_do(four_bar: Path, tmp_path: Path) -> None:
    """The steps are the same; sines and powers of the two C libraries may differ in the last digit, which grows.

    A state that is saved and restored leads to the same end to the last bit.
    """
    description = fmpy.read_model_description(str(four_bar), validate=False)
    references = {each.name: each.valueReference for each in description.modelVariables}
    names = ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.pressure_piston")
    found = run_in_node(
        tmp_path,
        module=str(four_bar / "binaries/wasm32/four_bar.wasm"),
        identity=description.guid,
        outputs=[references[name] for name in names],
        step=STEP,
        steps=STEPS,
        back=STEPS // 2,
    )
    assert found["fault"] is None
    assert found["rows"][-1] == found["rows"][-2]
    expected = mbsfmu.models.four_bar().simulation(solver="trapezoidal", step=STEP).run(STEP * STEPS)
    rows = np.array(found["rows"][:-1])
    for column, name in zip(rows.T, names, strict=True):
        scale = np.ptp(expected[name])
        assert scale > 0.0
        np.testing.assert_allclose(column, expected[name], rtol=0.0, atol=1e-10 * scale)
        np.testing.assert_allclose(column[:10], expected[name][:10], rtol=1e-13, atol=1e-13 * scale)


def test_a_call_that_fails_says_the_sentence_of_the_log(four_bar: Path, tmp_path: Path) -> None:
    description = fmpy.read_model_description(str(four_bar), validate=False)
    mass = next(each for each in description.modelVariables if each.name == "boom.length")
    found = run_in_node(
        tmp_path,
        module=str(four_bar / "binaries/wasm32/four_bar.wasm"),
        identity=description.guid,
        outputs=[],
        parameters=[mass.valueReference],
        values=[100.0],
        step=STEP,
        steps=1,
    )
    assert "loop" in found["fault"]
