"""The monolithic run as worker processes see it: the outputs that coupled runs are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbsfmu.trajectory import Trajectory


@dataclass(frozen=True)
class Reference:
    """Outputs over time.

    Attributes
    ----------
    time
        In s, shape (k,).
    outputs
        Each of shape (k,).
    """

    time: NDArray[np.float64]
    outputs: Mapping[str, NDArray[np.float64]]

    def save(self, path: Path) -> None:
        """Write it to a NumPy archive."""
        values = np.column_stack(list(self.outputs.values()))
        np.savez(path, time=self.time, names=np.array(list(self.outputs)), values=values)

    def errors(self, run: Trajectory) -> dict[str, float]:
        """Return for each output the largest deviation of a run over time, relative to the range of the reference.

        Between its times the reference runs straight.
        """
        result = {}
        for name, values in self.outputs.items():
            expected = np.interp(run.time, self.time, values)
            scale = np.ptp(values) or np.max(np.abs(values)) or 1.0
            result[name] = float(np.max(np.abs(run[name] - expected)) / scale)
        return result


@lru_cache(maxsize=1)
def load_reference(path: Path) -> Reference:
    """Read what `Reference.save` wrote, once a process."""
    with np.load(path) as archive:
        outputs = dict(zip(archive["names"].tolist(), archive["values"].T, strict=True))
        return Reference(archive["time"], outputs)
