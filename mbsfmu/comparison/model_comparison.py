"""Comparison runs of a model: monolithic, and coupled over algorithms and communication steps."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.muted import each_once
from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted
from mbsfmu.comparison.comparison_options import ComparisonKeywords, ComparisonOptions
from mbsfmu.comparison.cost import observed_order
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.coupled_runs import coupled_runs, of_coupling
from mbsfmu.comparison.fmu_comparison import compare_fmus
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.tight import tight_run
from mbsfmu.compiling.compiler import optimized
from mbsfmu.cosim.coupling.coupling_data import Signal
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.fmu_export import export
from mbsfmu.modelling.variables import Causality


@each_once()
def compare(
    model: CoupledModel | str | Path | Sequence[str | Path],
    *,
    options: ComparisonOptions | None = None,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    bonds: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    coupling: Mapping[str, Any] | None = None,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[ComparisonKeywords],
) -> Comparison:
    """Run a model monolithically and coupled, with every algorithm and communication step; or coupled FMUs of any tool.

    The monolithic run with the same internal step gives the coupling error; a reference run with an adaptive solver
    gives the error of step and coupling together. FMUs have no monolithic model: their reference is a coupled run whose
    step is halved until its own estimated error is small. Errors inside FMUs with the parameter `solver.step`, as ours
    have it, are told from those of coupling by a second run with internal steps of the reference. Those of others count
    as errors of coupling where their steps end with communication steps, or are not seen, and a sentence says so.

    Parameters
    ----------
    model
        A model of at least two systems; or an SSP file, a folder that holds one, or FMU files as for `cosimulate`.
    options, given
        Options, and those of them that are given by name; `ComparisonOptions` says what they are.
    connections, parameters, inputs, bonds
        Of FMUs, as for `cosimulate`.
    outputs
        Of FMUs: patterns of the outputs to compare, such as `a.*`; by default all that are Real and continuous.
    coupling
        Of FMUs: options of `CouplingOptions` that all runs share, such as `{"model_exchange": ["plant"]}`.
    workers
        Number of processes that runs are shared over; that of the cores by default, no more than there are runs.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When a word or number is wrong, the model has only one system, or FMUs cannot do what is asked.
    SimulationError
        When the monolithic run fails, or no reference run of FMUs succeeds.
    ComparisonInterrupted
        When it is interrupted after the reference run; it has the runs that were done.
    """
    of_fmus = {
        "connections": connections,
        "parameters": parameters,
        "inputs": inputs,
        "bonds": bonds,
        "outputs": outputs,
        "coupling": coupling,
    }
    chosen = ComparisonOptions.of(options, given, ("workers", "progress", *of_fmus))
    if not isinstance(model, CoupledModel):
        fmus = CoupledFmus(model, connections, parameters or {}, inputs or {}, bonds, coupling or {})
        return compare_fmus(fmus, chosen, outputs, workers, progress)
    for name, value in of_fmus.items():
        if value:
            raise InputError(f"{name} = {value!r} has no effect with the model {model.name}; it has with FMUs")
    if len(model.systems) < 2:
        raise InputError(f"{model.name} has one system; there is nothing to couple")
    inner = {name: getattr(chosen, name) for name in ("formulation", "newton_tolerance")}
    inner["step"] = internal = min(chosen.steps)
    whole = _Monolithic(model, chosen.stop, inner)
    inner["formulation"] = formulation = whole.result.formulation
    tight = tight_run(model, formulation, chosen.steps, chosen.accuracy, whole.reference)
    export_fmus = partial(export, model, layout="separate", backend=chosen.backend, **inner)
    runs, limits, interrupted = coupled_runs(
        chosen, lambda folder: CoupledFmus(export_fmus(folder)[-1]), whole.reference, tight, workers, progress
    )
    made = Comparison(
        model.name,
        model.description,
        formulation,
        whole.summary(tight.on(internal)),
        whole.units,
        runs,
        {name: observed_order(of_coupling(runs, name, internal)) for name in chosen.algorithms},
        whole.result,
        chosen.accuracy,
        limits,
        tight,
        whole.simulation.machine,
    )
    if interrupted:
        raise ComparisonInterrupted(made, len(chosen.steps) * len(chosen.algorithms))
    return made


class _Monolithic:
    """The monolithic run for comparison.

    Parameters
    ----------
    model
        The model.
    stop
        End of the run in s; None for the model's own.
    inner
        Options of its steps.

    Attributes
    ----------
    simulation, result
        What ran, and what came of it.
    units
        Units of the outputs by their names.
    reference
        The outputs.
    """

    def __init__(self, model: CoupledModel, stop: float | None, inner: Mapping[str, Any]) -> None:
        with optimized():
            self.simulation = model.simulation(**inner)
            self.result = self.simulation.run(stop)
        names = self.simulation.exposed
        outputs = [
            variable
            for variable in self.simulation.variables
            if variable.causality is Causality.OUTPUT and variable.name in names.qualified
        ]
        self.units = {output.name: output.unit for output in outputs}
        nominal = {output.name: output.nominal or 1.0 for output in outputs}
        self.reference = ReferenceRun.of(self.result, nominal, names.qualified)

    def summary(self, tight: ReferenceRun | None) -> dict[str, Any]:
        """Return its cost, and its errors against a reference run of its step."""
        found = tight.errors(self.result, self.simulation.exposed.by_system) if tight else dict.fromkeys(self.units)
        return {**self.result.summary(), "cost": self._cost(), "error": found, "still": self.reference.still}

    def _cost(self) -> float:
        """Return the cost of steps in s of processor time per simulated second, from a second run without loading."""
        simulation, stop = self.simulation, float(self.result.time[-1])
        simulation.initialize()
        begin = clock.process_time()
        simulation.step(0.0, stop)
        return (clock.process_time() - begin) / stop
