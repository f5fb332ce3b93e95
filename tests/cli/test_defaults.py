"""Commands have the defaults of the functions that they call, and every option is one of theirs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import click
import pytest

import mbsfmu
from mbsfmu.cli.options import OF_FMUS, RUN
from mbsfmu.comparison.comparison import Comparison, ComparisonOptions
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.studies.study_options import StudyOptions

CALLED: dict[str, Callable[..., Any]] = {
    "compare": mbsfmu.compare,
    "cosim": mbsfmu.cosimulate,
    "export": mbsfmu.export,
    "simulate": mbsfmu.CoupledModel.simulation,
    "sweep": mbsfmu.sweep,
}
OF_THE_DATA = {
    "cosim": set(CouplingOptions.known()),
    "export": set(OF_FMUS),
    "simulate": set(RUN),
    "compare": set(ComparisonOptions.known()),
    "sweep": set(StudyOptions.known()) - {"settings"},
}


def given(option: click.Parameter) -> Any:
    """What a command gets where an option is left out; None where the function's own default is left alone."""
    value = option.get_default(click.Context(click.Command("any")), call=True)
    if not isinstance(value, (str, float, int)):
        return None
    return option.process_value(click.Context(click.Command("any")), value)


@pytest.mark.parametrize("name", CALLED)
def test_defaults_are_those_of_the_function(name: str) -> None:
    command = importlib.import_module(f"mbsfmu.cli.{name}").command
    defaults = {each.name: each.default for each in inspect.signature(CALLED[name]).parameters.values()}
    defaults |= dict.fromkeys(OF_THE_DATA.get(name, ()))  # None stands for what the options themselves say
    compared = 0
    for option in command.params:
        if option.name not in defaults or not isinstance(option, click.Option) or option.required or option.multiple:
            continue
        expected = defaults[option.name]
        if expected is inspect.Parameter.empty:
            continue
        found = given(option)
        if found is not None and not (found is False and expected is None):
            assert (tuple(found) if isinstance(found, list) else found) == expected, option.name
        compared += 1
    assert compared >= 3
    assert OF_THE_DATA.get(name, set()) <= {option.name for option in command.params}


def test_public_names_are_listed() -> None:
    assert {"compare", "cosimulate", "export", "sweep", "validate", "__version__"} <= set(dir(mbsfmu))
    assert mbsfmu.__version__.count(".") >= 2
    for name in mbsfmu.__all__:
        assert getattr(mbsfmu, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        mbsfmu.simulate  # noqa: B018


def test_texts_of_results_are_short(tmp_path: Any) -> None:
    simulation = mbsfmu.models.pendulum(1).simulation(compiled=False)
    result = simulation.run(0.01)
    assert repr(simulation) == "<Simulation: pendulum-1, double-step, rodas5p, at t = 0.01 s>"
    assert repr(result).startswith("<Result: pendulum-1, double-step, rodas5p, ")
    assert repr(result).endswith("signals at 11 times from 0 to 0.01 s>")
    unit = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="separate", backend="python")[0]
    coupled = mbsfmu.cosimulate([unit], step=1e-3, stop=0.01)
    assert repr(coupled).startswith("<CosimulationResult: gauss-seidel, adaptive, steps fixed, ")
    made = Comparison("four-bar", "", "penalty", {}, {}, [], {"jacobi": 1.0}, {})
    assert repr(made) == "<Comparison: four-bar, penalty, 0 runs of jacobi>"
