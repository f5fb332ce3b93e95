"""Linear systems of FMUs, alone and coupled: closed forms, and the linear system of the model that was exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from model_exchange_fmus.runs import VERSIONS, Jumper

import mbsfmu
from mbsfmu import Connection, InputError, linearize, root_locus_of_fmus
from mbsfmu.cli.linearize import command

Foreign = Callable[[str], Path]
_STIFFNESS, _DAMPING, _SWING, _X, _V = 40.0, 0.4, 3.0, 0.5, 0.7
_VALUES = {"x": _X, "v": _V, "stiffness": _STIFFNESS, "damping": _DAMPING, "swing": _SWING}
_RATE_BY_STATES = [-_STIFFNESS - 2.0 * _SWING * _X * _V, -_DAMPING + _SWING * (1.0 - _X**2)]


@VERSIONS
def test_an_fmu_of_others_is_its_equations(jumper: Jumper, version: int) -> None:
    """v' = −k x − d v + s (1 − x²) v + force."""
    system = linearize(jumper(version), parameters=_VALUES, outputs=["x", "acceleration"])
    assert [[each.name for each in kind] for kind in (system.states, system.inputs)] == [["x", "v"], ["force"]]
    np.testing.assert_allclose(system.a, [[0.0, 1.0], _RATE_BY_STATES], rtol=1e-12)
    np.testing.assert_allclose(system.b, [[0.0], [1.0]], rtol=1e-12)
    np.testing.assert_allclose(system.c, [[1.0, 0.0], _RATE_BY_STATES], rtol=1e-12)
    np.testing.assert_allclose(system.d, [[0.0], [1.0]], rtol=1e-12)
    assert system.rates[0] == _V
    assert system.notes == ()


@VERSIONS
def test_differences_are_said_to_be_such(jumper: Jumper, version: int) -> None:
    flag = 'canGetAndSetFMUstate="true"' if version == 2 else 'needsCompletedIntegratorStep="true"'
    system = linearize(
        jumper(version, flags=flag), parameters={f"jumper.{name}": each for name, each in _VALUES.items()}
    )
    np.testing.assert_allclose(system.a, [[0.0, 1.0], _RATE_BY_STATES], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(system.b, [[0.0], [1.0]], rtol=1e-8, atol=1e-8)
    assert system.d[[each.name for each in system.outputs].index("acceleration"), 0] == pytest.approx(1.0, rel=1e-8)
    assert system.notes == ("the derivatives of jumper are found by differences: the FMU provides none",)


def test_a_run_leads_to_the_point(jumper: Jumper) -> None:
    """Of x'' = −k x from x = 1, linear anywhere: the point is cos(√k t), and van der Pol's matrix is that there."""
    oscillating = linearize(jumper(2), parameters={"x": 1.0, "stiffness": 4.0}, at=0.3, step=0.1, outputs=["x"])
    assert oscillating.time == 0.3
    assert oscillating.states[0].value == pytest.approx(np.cos(0.6), rel=1e-5)
    bent = linearize(jumper(2), parameters=_VALUES, at=0.2, step=0.1)
    x, v = (each.value for each in bent.states)
    assert x != _X
    np.testing.assert_allclose(bent.a[1, 0], -_STIFFNESS - 2.0 * _SWING * x * v, rtol=1e-12)


def test_fmus_for_co_simulation_that_give_derivatives_of_states(foreign: Foreign) -> None:
    """In mm: the linear system is in SI units all the same."""
    system = linearize(foreign("damped"), parameters={"damping": 0.8}, outputs=["x", "der(v)"])
    np.testing.assert_allclose(system.a, [[0.0, 1.0], [-40.0, -0.8]], rtol=1e-14)
    np.testing.assert_allclose(system.b, [[0.0], [1.0]], rtol=1e-14)
    np.testing.assert_allclose(system.c, [[1.0, 0.0], [-40.0, -0.8]], rtol=1e-14)
    np.testing.assert_allclose(system.d, [[0.0], [1.0]], rtol=1e-14)
    assert [each.unit for each in (*system.states, *system.inputs)] == ["m", "m.s-1", "N"]
    assert system.states[0].value == pytest.approx(0.1)
    np.testing.assert_allclose(system.rates, [0.0, -4.0])


@pytest.mark.parametrize("gain", [0.5, -3.0, 1.0 - 1e-8])
def test_algebraic_loops_are_solved(jumper: Jumper, gain: float) -> None:
    """Each takes the other's acceleration as its force: a₁ = r₁ + g a₂, a₂ = r₂ + a₁."""
    system = _loop(jumper, gain)
    rows = np.array([[-4.0, 0.0, 0.0, 0.0], [0.0, 0.0, -9.0, 0.0]])
    exact = np.linalg.solve([[1.0, -gain], [-1.0, 1.0]], rows)
    np.testing.assert_allclose(system.a[[1, 3]], exact, rtol=1e-7)
    np.testing.assert_allclose(system.c, exact, rtol=1e-7)
    assert [each.name for each in system.outputs] == ["one.acceleration", "two.acceleration"]


def test_what_passes_directly_goes_through_all_fmus(jumper: Jumper) -> None:
    """A force on one is an acceleration there, the force on two, an acceleration there; also at the end of a run."""
    system = linearize(
        [f"{name}={jumper(2)}" for name in ("two", "one")],
        connections=["one.acceleration=two.force"],
        parameters={"one.stiffness": 4.0, "one.x": 0.3, "two.x": 0.2, "two.stiffness": 9.0},
        outputs=["*.acceleration"],
        at=0.2,
        step=0.1,
    )
    np.testing.assert_allclose(system.b, [[0.0], [1.0], [0.0], [1.0]], rtol=1e-12)
    np.testing.assert_allclose(system.d, [[1.0], [1.0]], rtol=1e-12)
    states = {each.name: each.value for each in system.states}
    exact = -4.0 * states["one.x"] - 9.0 * states["two.x"]
    assert system.outputs[0].value == pytest.approx(exact, rel=1e-12)


def test_loops_without_a_single_solution_are_refused(jumper: Jumper) -> None:
    with pytest.raises(
        InputError, match=r"an algebraic loop over one.force, two.force whose gain is 1: it has no sing"
    ):
        _loop(jumper, 1.0 - 1e-13)


def _loop(jumper: Jumper, gain: float) -> mbsfmu.LinearSystem:
    return linearize(
        [f"{name}={jumper(2)}" for name in ("one", "two")],
        connections=[
            Connection(("two", "acceleration"), ("one", "force"), factor=gain),
            "one.acceleration=two.force",
        ],
        parameters={"one.stiffness": 4.0, "two.stiffness": 9.0},
        outputs=["*.acceleration"],
    )


def test_an_exported_model_is_the_model(four_bar_package: Path, tmp_path: Path) -> None:
    """Eigenvalues and frequency responses of the FMU for model exchange and of the package of two, coupled again."""
    model = mbsfmu.models.four_bar()
    given: dict[str, Any] = {"inputs": ["*valve.command"], "outputs": ["*boom.angle", "*cylinder.pressure_piston"]}
    (alone,) = mbsfmu.export(model, tmp_path, layout="monolithic", kind="me", fmi=3)
    exact = model.linearize(**given)
    response = exact.frequency_response([0.1, 9.0, 50.0])
    for source in (alone, four_bar_package):
        found = linearize(source, **given)
        both = [np.sort_complex(each.eigenvalues) for each in (found, exact)]
        np.testing.assert_allclose(*both, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.frequency_response([0.1, 9.0, 50.0]), response, rtol=1e-8)
        assert not [each.name for each in found.states if "energy" in each.name]
        assert [each.split(".")[-1] for each in found.kinks] == ["spool"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"inputs": ["forse"]}, "there is no input 'forse'"),
        ({"outputs": ["exceleration"]}, "there is no output 'exceleration'"),
        ({"at": -1.0}, "FMUs are linearized at 0 s or later; -1 s is not"),
        ({"parameters": {"stifness": 1.0}}, "jumper has no variable 'stifness'"),
    ],
)
def test_what_means_nothing_is_refused(jumper: Jumper, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        linearize(jumper(2), **given)


def test_what_cannot_be_linearized_is_refused(foreign: Foreign, jumper: Jumper) -> None:
    with pytest.raises(InputError, match="vanderpol is an FMU for co-simulation that lists no states: it cannot"):
        linearize(foreign("vanderpol"))
    with pytest.raises(InputError, match=r"'two.force' is driven by a connection; leave that out for an input"):
        linearize(
            [f"{name}={jumper(2)}" for name in ("one", "two")], connections=["one.v=two.force"], inputs=["two.force"]
        )


def test_the_command_takes_fmus(jumper: Jumper, tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    arguments = [str(jumper(2)), "--set", "stiffness=9", "--outputs", "x", "--json", str(file), "--quiet"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    content = json.loads(file.read_text())
    assert (content["a"], content["model"]) == ([[0.0, 1.0], [-9.0, 0.0]], "jumper")
    varied = [*arguments[:1], "--vary", "stiffness=1:9:3", *arguments[5:], "--report", str(tmp_path / "page.html")]
    done = CliRunner().invoke(command, varied)
    assert done.exit_code == 0, done.output
    assert json.loads(file.read_text())["root_locus"]["values"] == [1.0, 5.0, 9.0]
    assert "Root locus over stiffness" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in ("stiffness=1:9", "stiffness=1:9:1", "stiffness=a:9:3"):
        assert CliRunner().invoke(command, [str(jumper(2)), "--vary", text]).exception is not None
    refused = CliRunner().invoke(command, [str(jumper(2)), "--equilibrium"])
    assert "--equilibrium is of models; of FMUs, export the model that starts there" in str(refused.exception)


def test_root_loci_of_fmus(jumper: Jumper) -> None:
    """λ² + d λ + k = 0 over the damping d."""
    locus = root_locus_of_fmus(jumper(2), "damping", [1.0, 2.0, 12.0], parameters={"stiffness": 9.0})
    for damping, found in zip(locus.values, locus.eigenvalues, strict=True):
        exact = np.roots([1.0, damping, 9.0])
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(exact), rtol=1e-9)
    with pytest.raises(InputError, match="jumper has no variable 'dampin'"):
        root_locus_of_fmus(jumper(2), "dampin", [1.0, 2.0])


@pytest.mark.parametrize("fmi", [2, 3])
def test_states_of_machines_with_loops_are_called_by_their_joints(tmp_path: Path, fmi: int) -> None:
    """As the linear system of the model calls them, whichever coordinates are independent where a run leads."""
    model = mbsfmu.models.slewing_four_bar(speed=4.0)
    (unit,) = mbsfmu.export(model, tmp_path, layout="monolithic", fmi=fmi, kind="me")
    for time in (0.0, 0.3):
        names = [each.name for each in linearize(unit, at=time, step=1e-2).states]
        assert names == [each.name for each in model.linearize(at=time).states]
        assert not [name for name in names if name.startswith("independent")]


def test_a_state_that_no_variable_tells_keeps_its_name(tmp_path: Path) -> None:
    (unit,) = mbsfmu.export(
        mbsfmu.models.four_bar(), tmp_path, layout="monolithic", kind="me", locals="none", outputs=["cylinder.force"]
    )
    names = [each.name for each in linearize(unit).states]
    assert names[:2] == ["independent.position[1]", "independent.velocity[1]"]
