"""A run in process as worker processes see it: the outputs that coupled runs are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.trajectory import Trajectory

_CONSTANT = 1e-9
"""An output that changes by less than this share of its magnitude does not change; nor is any smaller than this share
of what is usual for it."""


@dataclass(frozen=True)
class Reference:
    """Outputs over time.

    Attributes
    ----------
    time
        In s, shape (k,).
    outputs
        Each of shape (k,).
    scales
        What errors are shares of: each output's range, or its magnitude where it is constant.
    """

    time: NDArray[np.float64]
    outputs: Mapping[str, NDArray[np.float64]]
    scales: Mapping[str, float]

    @classmethod
    def of(cls, run: Trajectory, nominals: Mapping[str, float]) -> Self:
        """Return the outputs of a run that have a nominal value, with their own ranges."""
        outputs = {name: run[name] for name in nominals}
        scales = {name: _scale(values, nominals[name]) for name, values in outputs.items()}
        return cls(run.time, outputs, scales)

    def save(self, path: Path) -> None:
        """Write it to a NumPy archive."""
        values, scales = np.column_stack(list(self.outputs.values())), np.array(list(self.scales.values()))
        np.savez(path, time=self.time, names=np.array(list(self.outputs)), values=values, scales=scales)

    def errors(self, run: Trajectory) -> dict[str, float]:
        """Return for each output the largest deviation of a run over time, as a share of its scale.

        Between its times the reference runs straight.
        """
        result = {}
        for name, values in self.outputs.items():
            expected = np.interp(run.time, self.time, values)
            result[name] = float(np.max(np.abs(run[name] - expected)) / self.scales[name])
        return result


def _scale(values: NDArray[np.float64], nominal: float) -> float:
    """Return the range of an output, or its magnitude where it is constant but for round-off."""
    magnitude, extent = float(np.max(np.abs(values))), float(np.ptp(values))
    return max(extent if extent > _CONSTANT * magnitude else magnitude, _CONSTANT * nominal)


@lru_cache(maxsize=8)
def load_reference(path: Path) -> Reference:
    """Read what `Reference.save` wrote, once a process."""
    with np.load(path) as archive:
        names = archive["names"].tolist()
        outputs = dict(zip(names, archive["values"].T, strict=True))
        return Reference(archive["time"], outputs, dict(zip(names, archive["scales"].tolist(), strict=True)))
