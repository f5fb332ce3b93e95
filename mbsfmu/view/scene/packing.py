"""Numbers in pages: four bytes each."""

from __future__ import annotations

import base64

import numpy as np

from mbsfmu.view.scene.recorded import Floats


def packed(values: Floats) -> str:
    """Return numbers of four bytes each, least significant byte first, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
