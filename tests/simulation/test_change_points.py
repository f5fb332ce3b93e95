"""Where all links of a parallelogram are on a line its equations lose rank: a run that comes there says so."""

from __future__ import annotations

import re
from math import pi, sin, sqrt
from typing import Any

import pytest
from cranks import parallel_cranks
from scipy.integrate import quad

from mbsfmu import CoupledModel
from mbsfmu.models import built_in, slewing_four_bar

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
TOLD = re.compile(r"parallel-cranks: at t = (\S+) s the loop at joint (\w+) comes to a change point")
SPEED = 6.0


def time_of_the_line(begin: float) -> float:
    """When the cranks become horizontal that start at an angle from the vertical, by the energy of a pendulum."""
    inertia, weight = 2.0 * (0.2 + 2.0 * 0.25) + 5.0, 9.81 * (2.0 * 2.0 * 0.5 + 5.0)

    def slowness(angle: float) -> float:
        return 1.0 / sqrt(SPEED**2 + 2.0 * weight / inertia * (sin(begin - 0.5 * pi) - sin(angle - 0.5 * pi)))

    return float(quad(slowness, begin, 0.5 * pi)[0])


def warned(
    caplog: pytest.LogCaptureFixture, model: CoupledModel, stop: float, **options: Any
) -> list[tuple[float, str]]:
    """Times and joints that a run tells."""
    caplog.clear()
    output_step = options.pop("output_step", None)
    model.simulation(compiled=False, **options).run(stop, output_step=output_step)
    matches = [TOLD.search(record.getMessage()) for record in caplog.records if "change point" in record.getMessage()]
    assert all(matches)
    return [(float(match[1]), match[2]) for match in matches if match]


@pytest.mark.parametrize("output_step", [2e-3, 0.05])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_run_tells_where_it_passes(caplog: pytest.LogCaptureFixture, formulation: str, output_step: float) -> None:
    """Once, in every formulation, at points however far apart; it passes the line twice."""
    model = parallel_cranks(0.9, speed=SPEED, count=2)
    ((time, joint),) = warned(caplog, model, 0.8, formulation=formulation, step=2e-3, output_step=output_step)
    assert time == pytest.approx(time_of_the_line(0.9), abs=2e-4)
    assert joint in ("C1", "G1")


def test_the_line_of_redundant_cranks(caplog: pytest.LogCaptureFixture) -> None:
    """The third crank's equation follows from the others; on the line one more does."""
    model = parallel_cranks(0.9, speed=SPEED)
    ((_, joint),) = warned(caplog, model, 0.3, formulation="penalty", step=2e-3)
    assert joint in ("C1", "C2")


def test_a_start_on_the_line_is_told(caplog: pytest.LogCaptureFixture) -> None:
    ((time, _),) = warned(caplog, parallel_cranks(0.5 * pi, speed=SPEED, count=2), 0.01, formulation="penalty")
    assert time == 0.0


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("count", [2, 3])
def test_cranks_that_swing_below_are_no_change_points(
    caplog: pytest.LogCaptureFixture, count: int, formulation: str
) -> None:
    """Up to 3 degrees from the line; two and three cranks, whose redundancy is permanent."""
    assert not warned(caplog, parallel_cranks(0.5 * pi - 0.05, count=count), 1.5, formulation=formulation, step=1e-2)


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        *((name, "double-step") for name in ("four-bar", "quick-return", "bennett", "loop-8", "five-bar")),
        *((name, "hdca") for name in ("loop-4", "double-pentagon")),
        *(("slewing-four-bar", formulation) for formulation in FORMULATIONS),
    ],
)
def test_built_in_models_have_none(caplog: pytest.LogCaptureFixture, name: str, formulation: str) -> None:
    """Also where other equations count than before, as at 90 degrees of slew."""
    assert not warned(caplog, built_in(name), 1.5, formulation=formulation, step=5e-3)


def test_equations_that_others_replace_between_two_points(caplog: pytest.LogCaptureFixture) -> None:
    """The house turns by more than a radian from point to point: those that counted at one do not at the next."""
    for output_step in (0.2, 0.3, 0.4):
        assert not warned(caplog, slewing_four_bar(speed=4.0), 2.4, step=5e-3, output_step=output_step)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_sizes_make_no_change_points(caplog: pytest.LogCaptureFixture, size: float) -> None:
    """In absolute coordinates lengths and angles stand side by side."""
    data = built_in("five-bar").to_dict()
    mechanism = data["systems"]["mechanism"]
    for place in mechanism["ground"]:
        mechanism["ground"][place] = [size * each for each in mechanism["ground"][place]]
    for body in mechanism["bodies"]:
        body["length"] *= size
        body["mass"] *= size**3
        body["inertia"] = [size**5 * each for each in body["inertia"]]
    mechanism["gravity"] = [size * each for each in mechanism["gravity"]]
    model = CoupledModel.from_dict(data)
    assert not warned(caplog, model, 0.2, formulation="dca-alm", step=5e-3)
