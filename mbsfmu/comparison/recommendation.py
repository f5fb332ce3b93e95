"""Recommended settings of a coupled run, from the exact error of coupled linear FMUs at the start.

Coupled linear FMUs: the exact map from one communication point to the next, and its error against the exact motion.

Between points each FMU is ẋ = A x + B u + f, y = C x + D u; over a step of length h its inputs run along
u₀ + u₁ θ, θ = 0 to 1, so that

    x(h) = e^{Ah} x(0) + Γ₀ u₀ + Γ₁ u₁ + Γ_f,

with the integrals Γ of one matrix exponential (Van Loan 1978). What FMUs do inside their steps is exact here: the error
is that of the coupling alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.fmu_linearization import FmuPoint, is_exchanged
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.comparison.comparison import ACCURACY
from mbsfmu.comparison.cost import rounded_down
from mbsfmu.comparison.run import CoupledFmus
from mbsfmu.cosim.coupling.algorithms import ITERATED, choice_of, flags_of, parted
from mbsfmu.cosim.coupling.coupling_data import CouplingData, Signal
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, mean
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.runs.load_fmus import load_graph
from mbsfmu.exporting.fmu_export import export
from mbsfmu.system_model.coupled_model import CoupledModel

Floats = NDArray[np.float64]
EXTRAPOLATIONS = (Extrapolation.ZERO, Extrapolation.LINEAR, Extrapolation.QUADRATIC)
"""Extrapolations by their degree."""
_TIMES = 200
"""Number of times at which the error is evaluated, at most."""


@dataclass(frozen=True)
class LinearFmu:
    """A linear FMU about its start: deviations of states x, inputs u and outputs y.

    Attributes
    ----------
    name
        Its name.
    a, b, c, d
        Matrices, with connected inputs and all outputs.
    rates
        Derivatives f of the states at the start.
    interpolates
        Whether inputs run along straight lines; otherwise they are held at their mean.
    """

    name: str
    a: Floats
    b: Floats
    c: Floats
    d: Floats
    rates: Floats
    interpolates: bool = True

    def responses(self, step: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return e^{Ah}, Γ₀, Γ₁ and Γ_f for a step in s, by one exponential."""
        from scipy.linalg import expm  # noqa: PLC0415 - takes long to load

        n, m = self.b.shape
        wide = np.zeros((n + 2 * m + 1, n + 2 * m + 1))
        wide[:n, :n], wide[:n, n : n + m], wide[:n, -1] = self.a * step, self.b * step, self.rates * step
        wide[n : n + m, n + m : n + 2 * m] = np.eye(m)
        power = expm(wide)
        return power[:n, :n], power[:n, n : n + m], power[:n, n + m : n + 2 * m], power[:n, -1]


@dataclass(frozen=True)
class LinearCoupling:
    """Coupled linear FMUs.

    Attributes
    ----------
    fmus
        The FMUs; outputs and inputs of all stand in their order.
    gains
        K of u = K y, shape (inputs, outputs).
    repeats
        Whether steps can be repeated, because all FMUs save their states.
    """

    fmus: Sequence[LinearFmu]
    gains: Floats
    repeats: bool = True

    @property
    def loop(self) -> Floats:
        """K D, the gains of direct feed-through from inputs to inputs."""
        from scipy.linalg import block_diag  # noqa: PLC0415 - takes long to load

        return np.asarray(self.gains @ block_diag(*(fmu.d for fmu in self.fmus)), dtype=float)

    def whole(self) -> tuple[Floats, Floats, Floats]:
        """Return A, f and C of all FMUs together: ẋ = A x + f, y = C x.

        Raises
        ------
        LinAlgError
            When algebraic loops have no single solution.
        """
        from scipy.linalg import block_diag  # noqa: PLC0415 - takes long to load

        a, b, c, d = (np.asarray(block_diag(*(getattr(fmu, each) for fmu in self.fmus))) for each in "abcd")
        shown = np.asarray(np.linalg.solve(np.eye(len(c)) - d @ self.gains, c), dtype=float)
        return a + b @ self.gains @ shown, np.concatenate([fmu.rates for fmu in self.fmus]), shown

    def exact(self, first: float, distance: float, count: int) -> Floats:
        """Return the outputs at equidistant times, shape (count, outputs).

        Parameters
        ----------
        first, distance
            First time, and distance of the others, in s.
        count
            Number of times.
        """
        from scipy.linalg import expm  # noqa: PLC0415 - takes long to load

        a, f, shown = self.whole()
        wide = np.zeros((len(a) + 1, len(a) + 1))
        wide[:-1, :-1], wide[:-1, -1] = a, f
        start = expm(wide * first)[:, -1]
        return np.asarray(_powers(expm(wide * distance), count, start)[:, :-1] @ shown.T, dtype=float)

    def step_map(self, algorithm: str, step: float, order: Sequence[int]) -> Floats:
        """Return the linear map of (states, outputs now, one and two steps before, 1) over a step in s.

        Parameters
        ----------
        algorithm
            One of `CHOICES` without `derivatives`; `fixed-point` is `newton`, which both solve for the end values.
        step
            Communication step in s.
        order
            Indices of the FMUs in which they step one after the other.
        """
        return self._map(algorithm, step, order, degree_of(algorithm))

    def _map(self, algorithm: str, step: float, order: Sequence[int], points: int, again: int = 0) -> Floats:
        """Return `step_map` where fewer earlier points than wanted are known, and with repeated sweeps.

        Parameters
        ----------
        algorithm, step, order
            As for `step_map`.
        points
            Number of earlier points that are known.
        again
            How often the step is made again, with inputs that run to the ends found before.
        """
        name, degree = parted(algorithm)[0], degree_of(algorithm)
        iterates, to_end = name in ITERATED, min(degree, points + 1)
        count, outputs = sum(len(fmu.a) for fmu in self.fmus), len(self.gains.T)
        size = count + 3 * outputs + 1
        identity = np.eye(size, size + outputs)  # the last columns: outputs at the end, where steps are iterated
        now, before, earlier = (identity[count + k * outputs : count + (k + 1) * outputs] for k in range(3))
        guess = np.eye(outputs, size + outputs, size)
        turns = order if name == "gauss-seidel" else ()

        def sweep(given: Floats) -> tuple[Floats, Floats]:
            return self._sweep(
                given, step, turns, lambda place, end: _interpolated(to_end, now[place], before[place], end)
            )

        if iterates:
            states, ends = sweep(_interpolated(to_end, now, before, guess))
            solved = np.linalg.solve(np.eye(outputs) - ends[:, size:], ends[:, :size])
            states, ends = states[:, :size] + states[:, size:] @ solved, solved
        else:
            states, ends = sweep(_extrapolated(min(degree, points), now, before, earlier))
            for _ in range(again):
                states, ends = sweep(_interpolated(to_end, now, before, ends))
        last = np.zeros((1, size))
        last[0, -1] = 1.0
        rows = [states[:, :size], ends[:, :size], now[:, :size], before[:, :size], last]
        return np.asarray(np.concatenate(rows), dtype=float)

    def _sweep(
        self, given: Floats, step: float, turns: Sequence[int], towards: Callable[[slice, Floats], Floats]
    ) -> tuple[Floats, Floats]:
        """Let all FMUs step once; return states and outputs at the end, each a row of factors as the polynomials are.

        Parameters
        ----------
        given
            c₀, c₁, c₂ of the outputs, shape (3, outputs, columns).
        step
            In s.
        turns
            The FMUs in turn, of which later ones take what earlier ones give; none where all step at once.
        towards
            Gives the polynomials of the outputs at a place from their ends.
        """
        shapes = [[len(fmu.a), len(fmu.c), fmu.b.shape[1]] for fmu in self.fmus]
        places = [_places(each) for each in zip(*shapes, strict=True)]
        columns, given = given.shape[2], given.copy()
        states, ends = (np.zeros((sum(each), columns)) for each in list(zip(*shapes, strict=True))[:2])
        begin, one = np.eye(len(states), columns), columns - len(ends) - 1
        for index in turns or range(len(self.fmus)):
            fmu, (x, y, u) = self.fmus[index], (place[index] for place in places)
            value, slope, end = _taken(self.gains[u] @ given, fmu.interpolates)
            free, held, ramp, pushed = fmu.responses(step)
            states[x] = free @ begin[x] + held @ value + ramp @ slope
            states[x, one] += pushed
            ends[y] = fmu.c @ states[x] + fmu.d @ end
            if turns:
                given[:, y] = towards(y, ends[y])
        return states, ends

    def error(self, algorithm: str, step: float, stop: float, order: Sequence[int], scales: Floats) -> float:
        """Return the largest error of any output over time, in shares of scales; infinite where it overflows.

        Parameters
        ----------
        algorithm, step, order
            As for `step_map`.
        stop
            Until when, in s.
        scales
            Of each output; outputs with scale 0 do not count.
        """
        states = self._begun(algorithm, step, order)
        begun = len(states) - 1
        steps = max(round(stop / step) - begun, 1)
        stride = max(steps // _TIMES, 1)
        count = steps // stride + 1
        made = self.step_map(algorithm, step, order)
        outputs = len(self.gains.T)
        first = len(made) - 1 - 3 * outputs
        with np.errstate(all="ignore"):
            later = _powers(np.linalg.matrix_power(made, stride), count, states[-1])
            found = np.concatenate([states[:-1], later])[:, first : first + outputs]
            exact = np.concatenate([self.exact(0.0, step, begun), self.exact(begun * step, stride * step, count)])
            off = np.abs(found - exact)
            counting = scales > 0.0
            worst = float(np.max(off[:, counting] / scales[counting], initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    def _begun(self, algorithm: str, step: float, order: Sequence[int]) -> Floats:
        """Return the states at the start and after each of the first steps, of which too few earlier points are known.

        FMUs that save their states repeat them, once and once more for each with direct feed-through.
        """
        again = 1 + sum(bool(np.any(fmu.d)) for fmu in self.fmus) if self.repeats else 0
        size = sum(len(fmu.a) for fmu in self.fmus) + 3 * len(self.gains.T) + 1
        states = [np.eye(size)[-1]]
        for points in range(degree_of(algorithm)):
            states.append(self._map(algorithm, step, order, points, again) @ states[-1])
        return np.stack(states)

    def ranges(self, stop: float) -> Floats:
        """Return the range of each output of the exact motion until a time in s, shape (outputs,)."""
        return np.ptp(self.exact(0.0, 0.1 * stop / _TIMES, 10 * _TIMES + 1), axis=0)


def _places(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(first, last) for first, last in pairwise(ends)]


def _powers(matrix: Floats, count: int, start: Floats) -> Floats:
    """Return x, M x, M² x, … of a start, shape (count, size)."""
    rows = np.empty((count, len(start)))
    for row in rows:
        row[:] = start
        start = matrix @ start
    return rows


def degree_of(algorithm: str) -> int:
    """Return the degree of the polynomials of one of `CHOICES`."""
    return parted(algorithm)[1].degree


def _extrapolated(degree: int, now: Floats, before: Floats, earlier: Floats) -> Floats:
    """Return c₀, c₁, c₂ of the polynomial through the last points, equidistant."""
    bend = (degree > 1) * 0.5 * (now - 2.0 * before + earlier)
    return np.stack([now, (degree > 0) * (now - before + bend), bend])


def _interpolated(degree: int, now: Floats, before: Floats, end: Floats) -> Floats:
    """Return c₀, c₁, c₂ of the polynomial to a known end."""
    bend = (degree > 1) * 0.5 * (end - 2.0 * now + before)
    return np.stack([now if degree else end, (degree > 0) * (end - now - bend), bend])


def _taken(lines: Floats, interpolates: bool) -> tuple[Floats, Floats, Floats]:
    """Return value at the beginning, slope and end that an FMU is given of a parabola."""
    value, slope, bend = lines
    if not interpolates:
        held = mean(lines)
        return held, 0.0 * held, held
    return value - bend / 3.0, slope + 4.0 / 3.0 * bend, value + slope + bend


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
