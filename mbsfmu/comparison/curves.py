"""Curves of compared runs, with their extremes preserved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.view.plots.curve import Curve

_MOST = 4000  # points of a curve
_RESIDUAL = "energy_residual."


@dataclass(frozen=True, eq=False)
class RunCurves:
    """Curves of one coupled run over time in s.

    Attributes
    ----------
    outputs, deviations
        Each output, and how far it is from the monolithic run, in its unit.
    energy_residual
        Residual energy of all power bonds together in J; None without bonds.
    """

    outputs: Mapping[str, Curve] = field(default_factory=dict)
    deviations: Mapping[str, Curve] = field(default_factory=dict)
    energy_residual: Curve | None = None


def curves_of(run: Trajectory, reference: ReferenceRun, label: str) -> RunCurves:
    """Return the curves of a coupled run compared with a monolithic one."""

    def curve(values: np.ndarray) -> Curve:
        return Curve.of(label, run.time, values).thinned(_MOST)

    residuals = [run[name] for name in run.names if name.startswith(_RESIDUAL)]
    return RunCurves(
        {name: curve(values) for name, values in reference.same_of(run).items()},
        {name: curve(values) for name, values in reference.deviations(run).items()},
        curve(np.sum(residuals, axis=0)) if residuals else None,
    )
