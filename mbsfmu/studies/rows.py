"""Rows of points: outcome, statistics, final values; also of runs that failed."""

from __future__ import annotations

import hashlib
import math
import tempfile
import time as clock
from collections.abc import Callable, Mapping
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.kept_warnings import KeptWarnings
from mbsfmu.cosim import CosimulationError, CosimulationResult, cosimulate
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.studies.journal import Row


def row_of(run: Callable[[], Row]) -> Row:
    """Return the row of a run with its warnings, one a line; a failure is part of the row."""
    with KeptWarnings() as told:
        try:
            row = run()
        except (InputError, SimulationError) as error:
            row = {"status": "failed", "message": str(error)}
    return {**row, "warnings": "\n".join(told.sentences)}


def coupled_row(
    source: Path | list[str], outputs: Mapping[str, str], **options: Any
) -> tuple[Row, CosimulationResult | None]:
    """Return the row of a coupled run, and its result if it came to its end.

    Parameters
    ----------
    source, options
        As for `cosimulate`.
    outputs
        As for `final_values`.
    """
    message, begin = "", clock.process_time()
    try:
        result = cosimulate(source, **options)
    except CosimulationError as error:
        result, message = error.result, str(error)
    row: Row = {"status": "failed" if message else "ok", "message": message}
    row |= {**numbers_of(result.summary()), "cpu_seconds": clock.process_time() - begin}
    largest = result.energy_residual_max
    row["energy_residual_max"] = largest if largest is not None and math.isfinite(largest) else None
    return (row, None) if message else ({**row, **final_values(result, outputs)}, result)


def final_values(result: Trajectory, outputs: Mapping[str, str]) -> Row:
    """Return the final values of the outputs that a run has: names in the run by names in the rows."""
    return {f"final.{output}": float(result[name][-1]) for output, name in outputs.items() if name in result}


def numbers_of(summary: Mapping[str, Any]) -> Row:
    """Return the numbers of a summary, without those that are settings of the point."""
    own = ("model", "formulation", "solver", "step", "algorithm", "extrapolation")
    return {
        name: value
        for name, value in summary.items()
        if name not in own and isinstance(value, (int, float)) and not isinstance(value, bool)
    }


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="mbsfmu-")
    Finalize(None, folder.cleanup, exitpriority=1)  # where a worker ends, Python's own clean-up is left out
    return folder


def file_of(content: bytes, suffix: str) -> Path:
    """Return a file of the content, written once per process and removed at its end."""
    path = Path(_folder().name) / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    if not path.exists():
        path.write_bytes(content)
    return path
