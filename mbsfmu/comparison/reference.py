"""Reference outputs for worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.runs.master import output_scales
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling.ranges import compared_ranges


@dataclass(frozen=True)
class ReferenceRun:
    """Outputs over time.

    Attributes
    ----------
    time
        In s, shape (k,).
    outputs
        Each of shape (k,).
    scales
        What errors are shares of: each output's range; its magnitude where it does not move but for round-off, and what
        is usual for it where it stays at zero.
    sizes
        Sizes of the vectors that outputs are components of, which count where an output hardly varies.
    references
        Each output as `system.variable`, by which every run has it, whatever its own name for it is.
    """

    time: NDArray[np.float64]
    outputs: Mapping[str, NDArray[np.float64]]
    scales: Mapping[str, float]
    sizes: Mapping[str, float]
    references: Mapping[str, str]

    @classmethod
    def of(cls, run: Trajectory, nominals: Mapping[str, float], references: Mapping[str, str]) -> Self:
        """Return the outputs of a run that have a nominal value, with their ranges."""
        outputs = {name: run[name] for name in nominals}
        scales, sizes = (
            dict(zip(outputs, each.tolist(), strict=True)) for each in output_scales(outputs, run, nominals)
        )
        return cls(run.time, outputs, scales, sizes, {name: references[name] for name in nominals})

    @property
    def still(self) -> list[str]:
        """Names of constant outputs, whose errors are not relative to ranges."""
        return [name for name, values in self.outputs.items() if np.ptp(values) < self.scales[name]]

    @property
    def moves(self) -> bool:
        """Whether any output moves."""
        return len(self.still) < len(self.outputs)

    def save(self, path: Path) -> None:
        """Write it to a NumPy archive."""
        values = np.column_stack(list(self.outputs.values()))
        scales, sizes = (np.array(list(each.values())) for each in (self.scales, self.sizes))
        names, references = np.array(list(self.outputs)), np.array([self.references[name] for name in self.outputs])
        np.savez(path, time=self.time, names=names, references=references, values=values, scales=scales, sizes=sizes)

    def same_of(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the same outputs of another run, each of shape (number of its times,).

        Parameters
        ----------
        run
            The run.
        names
            Names of its signals by `system.variable`; None for a coupled run, which calls them so.
        """
        return {
            name: run[reference if names is None else names[reference]] for name, reference in self.references.items()
        }

    def deviations(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the deviation of each output of a run at the run's times, each of shape (number of its times,).

        The reference is interpolated linearly. Arguments as for `same_of`.
        """
        return {
            name: values - np.interp(run.time, self.time, self.outputs[name])
            for name, values in self.same_of(run, names).items()
        }

    def errors(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, float]:
        """Return the largest deviation of each output over time, relative to its scale.

        Arguments as for `same_of`.
        """
        return self.relative(self.deviations(run, names))

    def relative(self, deviations: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
        """Return the largest deviation of each output over time, relative to its scale."""
        largest = np.array([np.max(np.abs(deviations[name])) for name in self.outputs])
        scales, sizes = (np.array(list(each.values())) for each in (self.scales, self.sizes))
        return dict(zip(self.outputs, (largest / compared_ranges(largest, scales, sizes)).tolist(), strict=True))


@lru_cache(maxsize=8)
def load_reference(path: Path) -> ReferenceRun:
    """Return the data of `ReferenceRun.save`, read once per process."""
    with np.load(path) as archive:
        names = archive["names"].tolist()
        outputs = dict(zip(names, archive["values"].T, strict=True))
        scales, sizes, references = (archive[each].tolist() for each in ("scales", "sizes", "references"))
        return ReferenceRun(
            archive["time"],
            outputs,
            dict(zip(names, scales, strict=True)),
            dict(zip(names, sizes, strict=True)),
            dict(zip(names, references, strict=True)),
        )
