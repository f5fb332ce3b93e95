"""What a refusal advises is not refused in turn."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import mbsfmu
from mbsfmu import InputError, RunOptions

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
SOLVERS = ("trapezoidal", "rodas4", "rodas5p", "rk4", "rk45", "dop853", "adams", "radau")


def advised(sentence: str) -> dict[str, list[str]]:
    """Return the formulations and solvers that a sentence names after its refusal."""
    words = re.findall(r"[\w-]+", sentence.rpartition("; ")[2])
    known = {"formulation": FORMULATIONS, "solver": SOLVERS}
    return {what: [word for word in words if word in names] for what, names in known.items()}


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_advised_formulations_and_solvers_go_with_what_stays(formulation: str, solver: str) -> None:
    chosen = {"formulation": formulation, "solver": solver}
    sentence = refusal(lambda: RunOptions(**chosen).completed())
    for what, names in advised(sentence).items():
        for name in names:
            assert not refusal(lambda: RunOptions(**{**chosen, what: name}).completed()), f"{sentence} -> {name}"  # noqa: B023


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("solver", ["trapezoidal", "rodas5p", "rk45", "bdf2"])
def test_derivatives_advise_what_they_take(formulation: str, solver: str) -> None:
    """To leave out the formulation, or to name another solver: what stays is taken then."""
    model = mbsfmu.models.pendulum(1)

    def refused(**chosen: str) -> str:
        return refusal(lambda: model.differentiated_steps("sensitivities", chosen))

    sentence = refused(formulation=formulation, solver=solver)
    if formulation != "double-step":
        assert sentence.endswith(f"leave out the formulation '{formulation}'")
        sentence = refused(solver=solver)
    if solver in ("trapezoidal", "rodas5p"):
        assert not sentence
        return
    assert f"and not of '{solver}'" in sentence
    for name in ("trapezoidal", "rodas4", "rodas5p"):
        assert name in sentence
        assert not refused(solver=name)


def test_noise_of_small_steps_is_not_to_be_met_by_smaller_ones(caplog: pytest.LogCaptureFixture) -> None:
    """A hinge bears no moment about its axis; the advised solver is right by a second run of a hundredth tolerance."""
    model = mbsfmu.models.built_in("loop-4")
    with caplog.at_level("WARNING", logger="mbsfmu"):
        run = model.simulation(solver="trapezoidal", step=5e-6).run(0.01)
    assert (run.error.share or 1.0) > 0.01
    (told,) = [each for each in caplog.messages if "the error of" in each]
    assert "smaller steps" not in told
    assert told.endswith("take a solver that chooses them, such as rodas5p")
    checked = model.simulation(solver="rodas5p", check_error=True).run(0.02)
    assert checked.error.share is not None
    assert checked.error.share < 1e-3
