"""Options of simulations that have no effect, do not exist or are no numbers are refused in a sentence."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import numpy as np
import pytest

import mbsfmu
from mbsfmu import InputError, RunOptions
from mbsfmu.base.options import Number
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import FORMULATIONS, FormulationOptions
from mbsfmu.simulation.run_options import RunKeywords
from mbsfmu.stepping.iteration import NewtonTolerances

LOOP = mbsfmu.models.built_in("loop-4")


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(
    ("option", "formulation", "sentence"),
    [
        ("projections", "double-step", "has no effect with the formulation 'double-step'; it has with dca-alm"),
        ("projections", "penalty", "has no effect with the formulation 'penalty'; it has with dca-alm"),
        ("projections", "hdca", "has no effect with the formulation 'hdca'; it has with dca-alm"),
        ("restart_momenta", "dca", "has no effect with the formulation 'dca', which has no momenta; it has with hdca"),
        ("restart_momenta", "dca-alm", "has no effect with the formulation 'dca-alm', which has no momenta"),
    ],
)
def test_either_choice_needs_its_formulation(
    option: str, formulation: str, sentence: str, chosen: bool, tmp_path: Path
) -> None:
    sentence = f"^{option} = {chosen} {sentence}"
    with pytest.raises(InputError, match=sentence):
        LOOP.simulation(formulation=formulation, **{option: chosen})
    with pytest.raises(InputError, match=sentence):
        mbsfmu.export(LOOP, tmp_path, formulation=formulation, **{option: chosen})
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(LOOP, settings={"formulation": [formulation], option: [chosen]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stepp": 1e-3}, "there is no option 'stepp' of a simulation; did you mean 'step'"),
        ({"compile": False}, "there is no option 'compile' of a simulation; did you mean 'compiled'"),
        ({"name": "other"}, "there is no option 'name' of a simulation; there are compiled, formulation, solver"),
        ({"step": "slow"}, "the step: 'slow' is refused: it must be a number, in s, or with a unit as 200 ms"),
        ({"step": np.inf}, "the step is inf; it must be finite"),
        ({"relative_tolerance": "small"}, "the relative tolerance is 'small'; it must be a number"),
        ({"newton_tolerance": True}, "the Newton tolerance is True; it must be a number"),
        (
            {"formulation": "dca", "solver": "rk45", "relative_tolerance": 1e-20},
            "the relative tolerance is 1e-20; it must be at least 1e-13, round-off",
        ),
        ({"formulation": 3}, "there is no formulation '3'; there are double-step"),
        ({"solver": ["rk4"]}, r"there is no solver '\['rk4'\]'; there are trapezoidal"),
        (
            {"formulation": "penalty", "stabilisation": 0.0},
            "stabilisation = 0 has no effect with the formulation 'penalty', which needs none; it",
        ),
        (
            {"formulation": "dca-alm", "jacobian": "forward-difference"},
            "jacobian = forward-difference has no effect with the formulation 'dca-alm'; it has with double-step and",
        ),
        (
            {"formulation": "hdca", "solver": "radau", "restart_momenta": True},
            "restart_momenta = True does not go with the solver 'radau', which remembers earlier steps",
        ),
    ],
)
def test_what_is_no_option_is_told(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        LOOP.simulation(**options)


def test_a_part_refuses_what_the_whole_refuses() -> None:
    with pytest.raises(InputError, match="there is no option 'stepp' of a simulation; did you mean 'step'"):
        LOOP.simulation_of(next(iter(LOOP.systems)), stepp=1e-3)


@pytest.mark.parametrize(
    ("formulation", "options"),
    [
        ("hdca", {"restart_momenta": True}),
        ("dca-alm", {"projections": True}),
    ],
)
def test_the_default_may_be_said(formulation: str, options: dict[str, bool]) -> None:
    """It is the same simulation: the one takes the other's states."""
    said, unsaid = (
        LOOP.simulation(formulation=formulation, compiled=False, **each) for each in (options, dict[str, bool]())
    )
    assert said.identity == unsaid.identity
    said.restore(unsaid.save())


def test_keywords_are_the_options() -> None:
    assert get_type_hints(RunKeywords).keys() == RunOptions.known().keys()


def test_every_option_says_what_it_is() -> None:
    for name in RunOptions.known():
        assert f"{name}\n    {RunOptions.help(name)}\n" in (RunOptions.__doc__ or "")
        assert len(RunOptions.help(name)) > 20


def test_an_object_says_the_same_as_its_keywords() -> None:
    options = RunOptions(formulation="penalty", penalty=1e9, step=1e-4)
    made = LOOP.simulation(options=options, compiled=False)
    named = LOOP.simulation(formulation="penalty", penalty=1e9, step=1e-4, compiled=False)
    assert (made.identity, made.step_size, made.formulation.name) == (named.identity, 1e-4, "penalty")
    assert LOOP.simulation(options=options, step=2e-4, compiled=False).step_size == 2e-4
    assert RunOptions.from_dict(options.to_dict()) == options
    with pytest.raises(InputError, match="the options are a dict; they must be RunOptions"):
        LOOP.simulation(options={"step": 1e-3})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no effect with the formulation 'dca', which has none; it has"):
        LOOP.simulation(options=options, formulation="dca")


@pytest.mark.parametrize(
    "options",
    [
        {"formulation": "penalty"},
        {"formulation": "dca", "stabilisation": 0.5},
        {"formulation": "hdca"},
        {"formulation": "hdca", "restart_momenta": False},
        {"formulation": "dca-alm", "projections": False},
        {"solver": "rk4"},
        {"jacobian": "forward-difference"},
        {"newton_tolerance": 1e-7},
        {"tolerances": NewtonTolerances(opening=0.1)},
    ],
)
def test_what_decides_the_steps_identifies_a_simulation(options: dict[str, Any]) -> None:
    plain, chosen = (
        LOOP.simulation(compiled=False, **each) for each in ({"formulation": options.get("formulation")}, options)
    )
    if set(options) == {"formulation"}:
        plain = LOOP.simulation(compiled=False)
    assert plain.identity != chosen.identity
    with pytest.raises(InputError, match="it is of another model or formulation"):
        chosen.restore(plain.save())


def test_options_are_complete_once() -> None:
    for formulation, solver in (("dca-alm", "rk45"), ("dca-alm", "trapezoidal"), ("hdca", "adams"), ("dca", "rk4")):
        once = RunOptions(formulation=formulation, solver=solver).completed()
        assert once.completed() == once


class SluggishOptions(FormulationOptions):
    share: Annotated[float, Number("Share of the internal step that is made")] = 0.5


def test_a_formulation_of_ones_own_has_options_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name in a simulation, with what it says of itself; the others know nothing of it."""
    monkeypatch.setattr(FORMULATIONS, "_known", dict(FORMULATIONS._known))

    class Sluggish(DoubleStep):
        name: ClassVar[str] = "sluggish"
        Options: ClassVar[type[FormulationOptions]] = SluggishOptions

        def __init__(self, functions, tolerances, rule, options):
            super().__init__(functions, replace(tolerances, coordinates=options.share), rule, options)

    given: dict[str, Any] = {"formulation": "sluggish", "share": 0.25}
    simulation = LOOP.simulation(compiled=False, **given)
    assert simulation.formulation.tolerances.coordinates == 0.25
    assert simulation.run(0.01).formulation == "sluggish"
    assert RunOptions(**given).to_dict()["share"] == 0.25
    assert RunOptions(formulation="sluggish").completed().own == SluggishOptions()
    with pytest.raises(
        InputError, match=r"share = 0\.5 has no effect with the formulation 'dca'; it has with sluggish"
    ):
        LOOP.simulation(formulation="dca", share=0.5)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="the share is 'half'; it must be a number"):
        LOOP.simulation(formulation="sluggish", share="half")  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"there is a formulation 'sluggish' already; .*Other needs a name of its own"):

        class Other(DoubleStep):
            name: ClassVar[str] = "sluggish"


def test_compiled_code_is_kept_by_what_enters_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step does not, but for the penalty factor that follows from it."""
    keys: list[object] = []
    monkeypatch.setattr(
        "mbsfmu.system_model.model_simulation.compile_in_process", lambda simulation, key: keys.append(key)
    )
    made = {
        formulation: [LOOP.simulation(formulation=formulation, step=step) for step in (1e-3, 1e-1)]
        for formulation in ("double-step", "penalty")
    }
    factors = [simulation.formulation.fitted for simulation in made["penalty"]]
    assert factors[0] != factors[1]
    reduced, reduced_again, stiff, soft = keys
    assert reduced == reduced_again
    assert stiff != soft


def test_large_models_have_code_in_loops_where_no_formulation_is_named(caplog: pytest.LogCaptureFixture) -> None:
    small, large = mbsfmu.models.built_in("pendulum-64"), mbsfmu.models.built_in("pendulum-65")
    with caplog.at_level("INFO", logger="mbsfmu"):
        alone = [model.simulation(compiled=False).formulation.name for model in (small, large)]
        assert alone == ["double-step", "dca"]
    assert [each.getMessage() for each in caplog.records] == [
        "pendulum-65: the formulation is dca, as none is named and the model is large"
    ]
    assert large.simulation_of("mechanism").functions.in_loops
    named = large.simulation(options=RunOptions(formulation="hdca"), compiled=False)
    assert (named.formulation.name, named.functions.in_loops) == ("hdca", True)
    # Its options are taken without its name, too, and not those of others.
    assert not large.simulation(code="straight", stabilisation=5.0, compiled=False).functions.in_loops
    with pytest.raises(
        InputError, match="has no effect with the formulation 'dca', which has none; it has with dca-alm and"
    ):
        large.simulation(penalty=1e7)


def test_units_and_studies_of_large_models_take_the_same_formulation(tmp_path: Path) -> None:
    large = mbsfmu.models.built_in("pendulum-65")
    [unit] = mbsfmu.export(large, tmp_path, backend="python")
    with zipfile.ZipFile(unit) as content:
        warned = [content.read(name).decode() for name in content.namelist() if name.endswith(".json")]
    assert any('"formulation": "dca"' in text or '"formulation":"dca"' in text for text in warned)
    study = mbsfmu.sweep(large, {"mechanism.link_65.mass": [1.0, 2.0]}, stop=0.002, workers=1)
    assert study.to_arrow()["formulation"].to_pylist() == ["dca", "dca"]
