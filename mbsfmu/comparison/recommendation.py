"""Recommended settings of a coupled run, from the derivatives of its FMUs at the start, before any run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.analysis.fmu_linearization import is_exchanged
from mbsfmu.analysis.fmu_point import FmuPoint
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.comparison.comparison_options import ACCURACY
from mbsfmu.comparison.cost import rounded_down
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.linear_coupling import EXTRAPOLATIONS, Floats, LinearCoupling, LinearFmu
from mbsfmu.cosim.coupling.algorithms import ITERATED, choice_of, flags_of
from mbsfmu.cosim.coupling.coupling_data import CouplingData, Signal
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.runs.load_fmus import load_graph
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.fmu_export import export

ITERATED_COST = 3.0
"""Cost of an iterated step relative to one of jacobi: two sweeps, with states saved and restored (measured 2 to 4)."""
_FIRST, _RATIO, _MOST = 20, 2.0**0.25, 68
"""Number of the largest steps in the run, ratio of successive steps, and number of steps that are tried."""
_LOADED = 0.3
"""Share of the wanted accuracy that the linear system may use up. With 0.5 the recommended settings of two of five
machines were beyond the accuracy, by 1.3 and 1.5 times (`benchmarks/coupling/recommendations.py`)."""
_GROWTH = 1e3
"""Growth of the fastest unstable mode to which the linear system is followed."""
_STILL = 1e-9
"""Share of nominal values below which outputs of the linear motion do not move."""
_STEP = 1e-3  # s, of runs that are not made
_MOST_ORDERS = 4  # FMUs of which all orders are tried


@dataclass(frozen=True)
class CouplingSetting:
    """The largest sufficiently accurate step of one algorithm.

    Attributes
    ----------
    algorithm
        One of `CHOICES`.
    step
        Communication step in s.
    error
        Predicted error of the coupling, in shares of the outputs' ranges.
    cost
        Sweeps over all FMUs per simulated second, an iterated step counted as `ITERATED_COST`.
    order
        Names of the FMUs in the order in which they step one after the other; empty where it does not matter.
    """

    algorithm: str
    step: float
    error: float
    cost: float
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recommendation:
    """Recommended settings, with their reasons.

    Attributes
    ----------
    alternatives
        The best setting of each algorithm, the least expensive first.
    reasons
        Sentences with numbers.
    accuracy
        Wanted of the outputs, in shares of their ranges.
    fastest
        Fastest mode of the coupled system that the interface takes part in, in rad/s; 0 without one.
    """

    alternatives: tuple[CouplingSetting, ...]
    reasons: tuple[str, ...]
    accuracy: float
    fastest: float

    @property
    def best(self) -> CouplingSetting:
        """The least expensive setting."""
        return self.alternatives[0]

    def __str__(self) -> str:
        best = self.best
        order = f" --order {','.join(best.order)}" if best.order else ""
        lines = [
            f"{flags_of(best.algorithm)} --step {best.step:g}{order}",
            *(f"- {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the data that `compare --recommend --json` writes."""
        return {
            "recommended": asdict(self.best),
            "alternatives": [asdict(each) for each in self.alternatives],
            "reasons": list(self.reasons),
            "accuracy": self.accuracy,
            "fastest": self.fastest,
        }


def recommend(
    model: CoupledModel | str | Path | Sequence[str | Path],
    *,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    accuracy: float = ACCURACY,
    stop: float | None = None,
) -> Recommendation:
    """Recommend algorithm, extrapolation, communication step and order of FMUs, from their derivatives at the start.

    The FMUs are linearized at the start. The coupled runs of the linear system have a closed form, as its exact motion
    has, so that the error of every algorithm and step is known without a run. Where nothing moves at the start, it is
    the error after a step of every connected input by its nominal value. Changes of the system during the run,
    discontinuities, and errors inside FMUs are not seen: `compare` measures.

    Parameters
    ----------
    model
        A model, an SSP file, a folder that holds one, or FMU files. FMUs are linearized by model exchange, or by
        directional derivatives where they list their states.
    connections, parameters, inputs, stop
        Of FMUs, as for `cosimulate`.
    accuracy
        Wanted of the outputs, in shares of their ranges.

    Raises
    ------
    InputError
        When FMUs cannot be linearized, nothing or a joint connects them, or an argument is refused.
    SimulationError
        When the start fails, or no step is accurate enough.
    """
    if not accuracy > 0.0:
        raise InputError(f"the accuracy is {accuracy:g}; it must be positive")
    if isinstance(model, CoupledModel):
        if connections or parameters or inputs:
            raise InputError(f"connections, parameters and inputs are of FMUs; {model.name} is a model")
        if len(model.systems) < 2:
            raise InputError(f"{model.name} has one system; there is nothing to couple")
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
            package = export(model, folder, layout="separate", kind=("cs", "me"))[-1]
            return recommend(package, accuracy=accuracy, stop=stop)
    fmus = CoupledFmus(model, connections, parameters or {}, inputs or {})
    return _search(*_linear(fmus, stop), accuracy)


@dataclass(frozen=True)
class _Facts:
    """What is known of the FMUs beside their derivatives: `span` is the length of the run in s."""

    span: float
    nominals: Floats
    without_states: tuple[str, ...]
    held: tuple[str, ...]
    excited: bool


def _linear(fmus: CoupledFmus, stop: float | None) -> tuple[LinearCoupling, _Facts]:
    with ExitStack() as stack:
        graph = load_graph(fmus.source, stack)
        exchanged = [name for name, file in graph.units.items() if is_exchanged(file)]
        if graph.joints:
            raise InputError(
                f"no settings are recommended for FMUs with the joint {graph.joints[0]} between them, which is not "
                "linearized: compare steps instead"
            )
    with fmus.opened(_STEP, stop=stop) as run:
        members = {member.instance.name: member.instance for member in run.coupling.members}
        interpolates = {name: each.interpolates for name, each in members.items()}
        without = tuple(name for name, each in members.items() if not each.saves_state)
        span = run.stop - run.time
    with fmus.opened(_STEP, stop=stop, model_exchange=exchanged or None) as run:
        return _coupled(run.coupling, interpolates, without, span)


def _coupled(
    coupling: CouplingData, interpolates: Mapping[str, bool], without: tuple[str, ...], span: float
) -> tuple[LinearCoupling, _Facts]:
    if not coupling.connections:
        raise InputError("nothing connects the FMUs; there is no coupling to recommend settings for")
    continuous = [end for place, end in enumerate(coupling.names) if place not in set(coupling.held)]
    targets = [each.target for each in coupling.connections if each.source in continuous]
    fmus, kept = [], list[tuple[str, str]]()
    for member in coupling.members:
        instance = member.instance
        outputs = [name for unit, name in continuous if unit == instance.name]
        point = FmuPoint(instance, outputs)
        columns = [point.inputs.index(name) for unit, name in targets if unit == instance.name]
        fmus.append(
            LinearFmu(
                instance.name,
                point.a,
                point.b[:, columns],
                point.c,
                point.d[:, columns],
                point.rates,
                interpolates[instance.name],
            )
        )
        kept += [(instance.name, name) for unit, name in targets if unit == instance.name]
    gains = np.zeros((len(kept), len(continuous)))
    for each in coupling.connections:
        if each.source in continuous:
            gains[kept.index(each.target), continuous.index(each.source)] = each.factor
    names = {member.instance.name: member.instance for member in coupling.members}
    nominals = np.array([abs(names[unit].variables[name].nominal or 1.0) for unit, name in continuous])
    held = tuple(".".join(each.source) for each in coupling.connections if each.source not in continuous)
    linear = LinearCoupling(tuple(fmus), gains, repeats=not without)
    excited = bool(np.any(linear.ranges(_horizon(linear, span)) > _STILL * nominals))
    if not excited:
        linear = replace(linear, fmus=tuple(_pushed(fmu, names[fmu.name], kept) for fmu in fmus))
    return linear, _Facts(span, nominals, without, held, excited)


def _pushed(fmu: LinearFmu, instance: Instance, targets: Sequence[tuple[str, str]]) -> LinearFmu:
    """Return an FMU that the nominal value of every connected input pushes from the start on."""
    sizes = [abs(instance.variables[name].nominal or 1.0) for unit, name in targets if unit == fmu.name]
    return LinearFmu(fmu.name, fmu.a, fmu.b, fmu.c, fmu.d, fmu.b @ np.array(sizes), fmu.interpolates)


def _horizon(linear: LinearCoupling, span: float) -> float:
    """Return how long the linear system is followed, in s: until its fastest unstable mode has grown by `_GROWTH`."""
    growth = float(np.max(np.linalg.eigvals(linear.whole()[0]).real, initial=0.0))
    return min(span, np.log(_GROWTH) / growth) if growth > 0.0 else span


def _search(linear: LinearCoupling, facts: _Facts, accuracy: float) -> Recommendation:
    horizon = _horizon(linear, facts.span)
    ranges = linear.ranges(horizon)
    scales = np.where(ranges > _STILL * facts.nominals, ranges, 0.0)
    if not np.any(scales):
        raise SimulationError("nothing moves in the linear system at the start, so that no step can be recommended")
    names = [fmu.name for fmu in linear.fmus]
    own = tuple(range(len(names)))
    orders = list(permutations(own)) if len(own) <= _MOST_ORDERS else [own, own[::-1]]
    found: list[CouplingSetting] = []
    for name in ("gauss-seidel", "jacobi", "newton"):
        if name in ITERATED and facts.without_states:
            continue
        for extrapolation in EXTRAPOLATIONS:
            algorithm = choice_of(name, extrapolation)
            weight = ITERATED_COST if name in ITERATED else 1.0
            tried: list[CouplingSetting] = []
            for order in orders if name == "gauss-seidel" else [own]:
                step, error = _largest(linear, algorithm, horizon, order, scales, _LOADED * accuracy)
                step = rounded_down(step)
                if step > 0.0:
                    told = tuple(names[index] for index in order) if order != own else ()
                    tried.append(CouplingSetting(algorithm, step, error, weight / step, told))
            if tried:
                found.append(min(tried, key=lambda each: each.cost))
    if not found:
        raise SimulationError(
            f"no algorithm reaches {100 * accuracy:.3g} % of the linear system at the start with steps down to "
            f"{horizon / _FIRST / _RATIO**_MOST:.2g} s; couple the FMUs otherwise, or take one FMU of both"
        )
    ordered = tuple(sorted(found, key=lambda each: each.cost))
    fastest = _fastest(linear)
    return Recommendation(ordered, _reasons(linear, facts, ordered, fastest, horizon, accuracy), accuracy, fastest)


def _largest(
    linear: LinearCoupling, algorithm: str, horizon: float, order: Sequence[int], scales: Floats, accuracy: float
) -> tuple[float, float]:
    """Return the largest step in s such that it and all smaller ones down to a quarter are accurate, and its error."""
    enough = 8
    good: list[tuple[float, float]] = []
    for power in range(_MOST):
        step = horizon / _FIRST / _RATIO**power
        error = linear.error(algorithm, step, horizon, order, scales)
        if error <= accuracy:
            good.append((step, error))
            if len(good) == enough:
                return good[0]
        else:
            good.clear()
    return good[0] if good else (0.0, np.inf)


def _fastest(linear: LinearCoupling) -> float:
    """Return the magnitude of the fastest eigenvalue that differs from those of the FMUs apart, in rad/s."""
    coupled = np.linalg.eigvals(linear.whole()[0])
    apart = np.concatenate([np.linalg.eigvals(fmu.a) for fmu in linear.fmus if len(fmu.a)] or [np.zeros(0)])
    moved = [
        abs(each)
        for each in coupled
        if not len(apart) or np.min(np.abs(apart - each)) > 1e-6 * max(abs(each), np.finfo(float).tiny)
    ]
    return float(max(moved, default=0.0))


def _reasons(
    linear: LinearCoupling,
    facts: _Facts,
    found: Sequence[CouplingSetting],
    fastest: float,
    horizon: float,
    accuracy: float,
) -> tuple[str, ...]:
    best = found[0]
    told = [
        f"Predicted error of the coupling {100 * best.error:.2g} % of the outputs' ranges over {horizon:.3g} s, for "
        f"the FMUs linearized at the start; wanted {100 * accuracy:.3g} %, "
        f"of which {100 * (1 - _LOADED):.0f} % is left to what changes later."
    ]
    if fastest > 0.0:
        told.append(
            f"The fastest mode across the connections has {fastest:.3g} rad/s: the step is "
            f"{fastest * best.step:.2g} rad of it."
        )
    loop = linear.loop
    gain = float(np.max(np.abs(np.linalg.eigvals(loop)), initial=0.0)) if len(loop) else 0.0
    if gain > 0.0:
        told.append(
            f"Direct feed-through closes an algebraic loop with a gain of {gain:.2g}; jacobi and gauss-seidel delay it "
            "by a step."
        )
    others = [f"{each.algorithm} {each.step:g} s ({each.cost / best.cost:.2g} times the cost)" for each in found[1:5]]
    if others:
        told.append(f"Largest steps of others for the same error: {', '.join(others)}.")
    if facts.without_states:
        told.append(f"{', '.join(facts.without_states)} cannot save the state, so that newton is left out.")
    if not facts.excited:
        told.append("Nothing moves at the start; errors are those after a step of every connected input.")
    if facts.held:
        told.append(f"Discrete outputs ({', '.join(facts.held)}) are held between events and left out.")
    return tuple(told)
