"""Coupled runs from start to stop, and their error by a second run with half the steps."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.cosim.coupling.coupling_data import Signal
from mbsfmu.cosim.coupling.graph import Connection, CoupledJoint
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.coupling_options import CouplingKeywords, CouplingOptions
from mbsfmu.cosim.runs.run_recorder import CosimulationResult
from mbsfmu.cosim.runs.scenario import Table
from mbsfmu.io.checkpoints import Checkpoint
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling.parameters import POSITIONS, compared_ranges, percent, vector_sizes, vectors_of

_STILL = 1e-7
"""Relative change of an output below which it is constant, within iteration errors."""
_NOTHING = 1e-9
"""Fraction of an output's nominal value below which it is zero."""
_LARGE = 0.01
"""Fraction of an output's range from which on its error is a warning."""
_LEAST_RATE = 0.5
"""Of the change by halving the step over the whole error of first order, which is a half; others are 3/4 and more."""
NO_ERROR_ESTIMATE = (
    "what coupling costs in accuracy is not estimated: --check-error, in Python check_error=True, runs once more with "
    "half the step; --control error keeps a tolerance"
)


class CouplingError(NamedTuple):
    """Largest error of a coupled run.

    Attributes
    ----------
    fraction
        Of the range of the output; None where it is not known.
    output
        Its name.
    sentence
        The same in words.
    """

    fraction: float | None
    output: str
    sentence: str

    @property
    def is_large(self) -> bool:
        """Whether it is worth a warning."""
        return self.fraction is None or self.fraction > _LARGE


def output_scale(values: Floats, nominal: float) -> float:
    """Return what errors of an output are relative to: its range, or its magnitude, or what is usual, if still."""
    magnitude, extent = float(np.max(np.abs(values))), float(np.ptp(values))
    if magnitude <= _NOTHING * nominal:
        return nominal
    return extent if extent > _STILL * magnitude else magnitude


def output_scales(
    outputs: Mapping[str, Floats], run: Trajectory, nominals: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Return the `output_scale` of outputs of a run, and the sizes of the vectors that they are components of."""
    units = [run.unit(name) for name in outputs]
    ranges = np.array([output_scale(values, nominals[name]) for name, values in outputs.items()])
    moved = zip(outputs.values(), units, strict=True)
    magnitudes = [float(np.ptp(values) if unit in POSITIONS else np.max(np.abs(values))) for values, unit in moved]
    return ranges, vector_sizes(*vectors_of(list(outputs), units), np.array(magnitudes))


def coupling_error(
    first: CosimulationResult, outputs: Collection[str], again: Callable[[float], CosimulationResult]
) -> CouplingError:
    """Return the largest error of a run's outputs, by a second run with half the step.

    The error of first order is twice what changes [Hairer1993, sect. II.4]; of higher orders it is less, so that the
    estimate is too large rather than too small. What the FMUs' own steps do wrong is in it as far as these end with
    communication steps.

    Parameters
    ----------
    first
        The run.
    outputs
        Names of its continuous outputs.
    again
        Makes the run with another step in s.
    """
    step = 0.5 * first.statistics.step
    try:
        with muted():
            second = again(step)
    except (InputError, SimulationError) as error:
        return CouplingError(None, "", f"the error of the coupling is not known: with half the step, {error}")
    if not outputs:
        return CouplingError(None, "", "the error of the coupling is not known: no continuous output is recorded")
    names = list(outputs)
    off = np.array([np.max(np.abs(first[name] - np.interp(first.time, second.time, second[name]))) for name in names])
    off /= _LEAST_RATE
    ranges, sizes = output_scales({name: second[name] for name in names}, second, dict.fromkeys(names, 1.0))
    errors = dict(zip(names, (off / compared_ranges(off, ranges, sizes)).tolist(), strict=True))
    worst = max(errors, key=errors.__getitem__)
    return CouplingError(
        errors[worst],
        worst,
        f"the coupling by steps of {first.statistics.step:.3g} s is off by {percent(errors[worst])} of the range "
        f"of {worst}, the most of all outputs, estimated by a second run with half of them",
    )


logger = logging.getLogger(__name__)


def cosimulate(
    source: str | Path | Sequence[str | Path],
    *,
    options: CouplingOptions | None = None,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    scenario: str | os.PathLike[str] | Table | None = None,
    bonds: Sequence[str] = (),
    joints: Sequence[str | CoupledJoint] = (),
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
    until: float | None = None,
    save: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    checkpoint: Checkpoint | None = None,
    check_error: bool = False,
    **given: Unpack[CouplingKeywords],
) -> CosimulationResult:
    """Run coupled co-simulation FMUs of FMI 2.0 and 3.0.

    Parameters
    ----------
    source
        An SSP file, a folder that holds one, or FMU files; the FMUs of FMU files have the files' names, or the name in
        `name=file.fmu`, so that one file may be several FMUs.
    options, given
        Options, and those of them that are given by name; `CouplingOptions` says what they are.
    connections
        `a.y=b.u`, or pairs as `("a.y", "b.u")`, beside those of the package.
    parameters
        Start values by `unit.variable` or connector of the system, set before initialization.
    inputs
        Functions of time, or signals that know their events (`StepSignal`, `LinearSignal`), by `unit.variable` or
        connector of the system, for inputs that no connection drives. Steps end at events; anything with `events`,
        `before(time)` and `after(time)` has such. Where a plain function jumps is found by `error` control alone, and
        not if it jumps back within a quarter of a step. Held inputs take the value at the beginning of a step.
    scenario
        Values that are set while the run goes on, by time in s and `unit.variable`, or a CSV file of them: see
        `read_scenario`. Steps end at these times.
    bonds
        `a.effort,b.flow`: outputs whose product is a power, beside those that are found by their units.
    joints
        Joints between mechanisms of the FMUs (`CoupledJoint`), or `revolute:a.pin=b.pin:0,0,1` as text, beside those
        of the package; they are closed at each communication point.
    output
        File that the rows go to while the run goes on, in the format of its suffix; the result reads them from there.
    progress
        Called with the share that is done.
    until
        Time in s at which, or at the first communication point after which, the run is left before its stop time.
    save
        File that the run is saved to where it is left, so that another call goes on with it.
    resume
        File of a run that was saved by the same call, to go on from there.
    checkpoint
        File that the run is saved to on its way, at communication points, 256 times at most; `output` must be given. If
        there is a checkpoint of the same call, the run goes on from there; `remove` it when the rows are safe.
    check_error
        Whether a second run with half the step tells the error of the coupling; of whole runs in equal steps.

    Raises
    ------
    InputError
        When the call or a file is wrong, an option has no effect, or an FMU cannot do what is asked.
    SimulationError
        When an FMU fails before the first step, or the start has no solution.
    CosimulationError
        When an FMU fails, an iteration does not converge, an output is not finite or a row cannot be written; the
        message has unit, time and reason, `result` what was recorded.
    """
    call: dict[str, Any] = {
        "connections": connections,
        "parameters": parameters,
        "inputs": inputs,
        "scenario": scenario,
        "bonds": bonds,
        "joints": joints,
    }
    with Cosimulation(
        source,
        options=options,
        output=output,
        progress=progress,
        resume=resume,
        checkpoint=checkpoint,
        **call,
        **given,
    ) as run:
        if check_error:
            _check_repeatable(run.options, until, resume, checkpoint)
        run.run(until)
        if save is not None:
            run.save(save)
        if not run.done:
            run.end()
        result, chosen = run.result(), run.options
        held = set(run.coupling.held)
        names = [".".join(end) for place, end in enumerate(run.coupling.names) if place not in held]
    if check_error:
        recorded = [name for name in names if name in result.names]
        every = 2 * chosen.record_every if chosen.record_every > 1 else None

        def again(step: float) -> CosimulationResult:
            return cosimulate(source, options=chosen, step=step, record_every=every, **call)

        error = coupling_error(result, recorded, again)
        result.statistics.coupling_error, result.statistics.coupling_error_output = error.fraction, error.output
        if error.is_large:
            result.statistics.warn(f"{error.sentence}: {result.statistics.better_coupling}")
        else:
            logger.info("%s", error.sentence)
    return result


def _check_repeatable(options: CouplingOptions, until: float | None, *places: object) -> None:
    """Refuse a second run where there is none."""
    if options.control != "fixed":
        raise InputError(f"check_error is of equal steps; with the control '{options.control}' a tolerance is kept")
    if options.pace is not None:
        raise InputError("check_error has no effect with pace: a second run waits for no clock")
    if until is not None or any(place is not None for place in places):
        raise InputError("check_error is of whole runs; leave out until, resume and checkpoint")
