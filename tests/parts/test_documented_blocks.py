"""What docs/reference/blocks.md says works as it is written there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "blocks.md").read_text(encoding="utf-8")


def test_lines_of_the_page_do_what_they_say() -> None:
    """The error that is printed is that of the written-out loop."""
    space: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
            exec(block, space)

    def rates(time: float, state: np.ndarray) -> list[float]:
        position, speed, integral, filtered = state
        error = 0.1 * np.sin(np.pi * time) - position
        slope = (error - filtered) / 0.01
        wanted = 4000.0 * error + integral + 500.0 * slope
        held = min(max(wanted, -800.0), 800.0)
        return [speed, held / 20.0, 2000.0 * error + (held - wanted) * 2000.0 / 4000.0, slope]

    motion = solve_ivp(rates, (0.0, 2.0), np.zeros(4), "Radau", np.linspace(0.0, 2.0, 401), rtol=1e-8, atol=1e-10)
    error = np.max(np.abs(0.1 * np.sin(np.pi * motion.t) - motion.y[0]))
    assert printed.getvalue() == f"{1e3 * error:.1f} mm\n"
    chirp = space["chirp"]
    assert chirp.after(1.1) == 0.02 * np.sin(2.0 * np.pi * (0.2 + 0.5))
    times = np.linspace(0.0, 2.0, 333)
    expected = 0.1 * (1.0 - np.cos(times))
    assert (
        max(abs(space["smooth"].after(t) - e) for t, e in zip(times, expected, strict=True))
        < 0.1 * 0.01**2 / 8.0 * 1.01
    )
    assert abs(space["result"]["carriage.displacement"][-1]) < 0.02
