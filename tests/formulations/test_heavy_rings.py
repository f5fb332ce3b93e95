"""A ring whose masses differ by four orders of magnitude: what formulations are off by is the error of their steps."""

from __future__ import annotations

import numpy as np
import pytest
from rings import ring

STOP, SIDES = 0.1, 6


def test_the_trapezoidal_rule_with_momenta_is_of_second_order() -> None:
    model = ring(SIDES, odd=1e-4)
    names = [f"link_{index}.angle" for index in range(SIDES - 1)]
    tight = {"relative_tolerance": 1e-12, "absolute_tolerance": 1e-12, "stabilisation": 10.0}
    exact = model.simulation(formulation="dca", solver="dop853", **tight).run(stop=STOP)

    def off(step: float) -> float:
        run = model.simulation(formulation="hdca", solver="trapezoidal", step=step).run(stop=STOP)
        return max(abs(float(run[name][-1] - exact[name][-1])) for name in names)

    steps = np.array([4e-3, 2e-3, 1e-3])
    errors = [off(step) for step in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)
