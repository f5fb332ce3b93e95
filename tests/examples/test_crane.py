"""The example does what its text says."""

from __future__ import annotations

import numpy as np
import pytest
from crane import crane


def test_crane_lifts_and_conserves_energy() -> None:
    result = crane().simulation().run(2.0)
    # The static force by moments about the boom's pivot and the hook does not depend on the circuit.
    assert result["lift.velocity"][0] == pytest.approx(0.0, abs=1e-12)
    assert result["boom.angle"][-1] > result["boom.angle"][0] + 0.02
    assert result.largest("energy.drift") < 1e-3 * result.largest("energy.work")
    assert np.all(result["lift.pressure_piston"] > 0.0)
