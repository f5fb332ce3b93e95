"""SUNDIALS' CVODE and IDA as ways to run a machine, called from C.

The libraries are those of the package `scikit-sundae`, without its own interface, which is one to Python.
"""

from __future__ import annotations

import ctypes
import subprocess
import time
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from itertools import pairwise
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from precise_machines import SAMPLES, Machine
from precise_ways import Way

from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.io.signals import DEGREE

NEEDED = ("core", "cvode", "ida", "nvecserial", "sunlinsoldense", "sunmatrixdense")
"""Libraries of SUNDIALS that the host is linked with."""
CLOSE = 1e-9
"""Times that differ by less, in s, are one."""


def libraries() -> dict[str, Path]:
    """Return SUNDIALS' libraries by name; none where the package is not installed."""
    try:
        given = files("scikit-sundae") or []
    except PackageNotFoundError:
        return {}
    paths = [Path(str(each.locate())) for each in given if each.name.startswith("libsundials_")]
    return {path.name.removeprefix("libsundials_").partition("-")[0]: path for path in paths}


@dataclass(frozen=True)
class Stretch:
    """The time between two events.

    Attributes
    ----------
    begin
        In s.
    polynomials
        Coefficients of inputs in the time since then, the highest power first, shape (inputs, powers).
    times
        Ends of communication steps, and its own end.
    counts
        Which of these times are ends of communication steps.
    """

    begin: float
    polynomials: np.ndarray
    times: np.ndarray
    counts: np.ndarray


class Rates:
    """The rates of `dca` and their exact Jacobian, compiled with -O2 into one library with a host for SUNDIALS.

    Parameters
    ----------
    machine
        What is run.
    folder
        Where they are compiled.
    """

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self._simulation = simulation = machine.make().simulation(formulation="dca", compiled=False)
        simulation.initialize()
        place = folder / f"sundials-{machine.name}".replace(" ", "-")
        place.mkdir()
        self._generate(place)
        paths = libraries()
        linked = [str(paths[name]) for name in NEEDED]
        host = Path(__file__).with_name("sundials_host.c")
        call = ["gcc", "-O2", "-fPIC", "-shared", f"-I{place}", str(host), "rates.c", "-o", "host.so", *linked, "-lm"]
        subprocess.run([*call, f"-Wl,-rpath,{paths['core'].parent}"], cwd=place, check=True)
        self.library = place / "host.so"

    def _generate(self, place: Path) -> None:
        """Write rates of scaled states and their Jacobian as C, and keep how the variable follows from the states."""
        simulation, formulation = self._simulation, self._simulation.formulation
        assert isinstance(formulation, FirstOrderFormulation)
        functions, given = simulation.functions, simulation.functions.expressions
        sizes = [len(functions.coordinates), len(functions.velocities), len(functions.states)]
        self.scales = formulation.explicit_scale[: sum(sizes)]
        scaled, inputs = ca.SX.sym("scaled", sum(sizes)), ca.SX.sym("inputs", len(functions.inputs))
        parts = ca.vertsplit(ca.DM(self.scales) * scaled, np.cumsum([0, *sizes]).tolist())
        known = dict(zip(("coordinates", "velocities", "states"), parts, strict=True)) | {"inputs": inputs}

        def of_scaled(function: ca.Function) -> ca.SX:
            arguments = [known.get(name, ca.DM(getattr(functions, name, 0))) for name in function.name_in()]
            return function.call(arguments, True, False)[0]

        system = functions.system
        names = [each.name for each in (*system.coordinates, *system.outputs)]
        values = ca.vertcat(given.symbol_by_part["coordinates"], given.outputs)
        variable = functions.traced("variable", [values[names.index(self.machine.variable)]]).function
        self._variable = ca.Function("variable", [scaled, inputs], [of_scaled(variable)])
        rates = of_scaled(formulation.explicit.function)[: sum(sizes)] / ca.DM(self.scales)
        code = ca.CodeGenerator("rates.c", {"with_header": True})
        code.add(ca.Function("rates", [scaled, inputs], [ca.densify(rates)]))
        code.add(ca.Function("jac_rates", [scaled, inputs], [ca.densify(ca.jacobian(rates, scaled))]))
        code.generate(f"{place}/")
        with (place / "rates.h").open("a", encoding="utf-8") as header:
            header.write(f"\nenum {{ SIZE = {sum(sizes)}, INPUTS = {inputs.numel()}, DEGREE = {DEGREE} }};\n")

    def start(self) -> np.ndarray:
        """Return the scaled states at the start."""
        state = self._simulation._started()
        return np.concatenate([state.coordinates, state.velocities, state.states]) / self.scales

    def variable(self, states: np.ndarray, stretch: Stretch) -> list[float]:
        """Return the variable at the ends of communication steps in a stretch; shape of the states (times, size)."""
        found = []
        for row, instant in zip(states[stretch.counts], stretch.times[stretch.counts], strict=True):
            inputs = [np.polyval(each, instant - stretch.begin) for each in stretch.polynomials]
            found.append(float(self._variable(row, inputs)))
        return found

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The times between events."""
        machine, signals = self.machine, self._simulation.signals
        events = sorted({time for signal in signals.values() for time in signal.events if 0.0 < time < machine.stop})
        samples = machine.communication * np.arange(1, SAMPLES + 1)
        made = []
        for begin, end in pairwise([0.0, *events, machine.stop]):
            inside = [time for time in samples if begin + CLOSE < time < end - CLOSE]
            counts = np.array([*(True for _ in inside), bool(np.any(np.abs(samples - end) < CLOSE))])
            made.append(Stretch(begin, self._polynomials(begin, end), np.array([*inside, end]), counts))
        return made

    def _polynomials(self, begin: float, end: float) -> np.ndarray:
        """Return the inputs between two events as polynomials."""
        inputs = self._simulation.functions.inputs
        found = np.zeros((len(inputs), DEGREE + 1))
        found[:, -1] = inputs
        shares = np.linspace(0.0, 1.0, DEGREE + 3)  # more than coefficients, so that others than polynomials are seen
        for index, signal in self._simulation.signals.items():
            values = np.array([signal.piece(begin)(begin + share * (end - begin)) for share in shares])
            scaled = np.polyfit(shares, values, DEGREE)
            np.testing.assert_allclose(np.polyval(scaled, shares), values, atol=1e-11 * max(1.0, *abs(values)))
            found[index] = scaled / (end - begin) ** np.arange(DEGREE, -1, -1)
        return found


class Sundials(Way):
    """CVODE's BDF or IDA on the rates of `dca`, with dense factors of the exact Jacobian; IDA solves ẏ − f(y, t) = 0.

    Parameters
    ----------
    rates
        Of the machine.
    solver
        `CVODE` or `IDA`.
    settings
        Relative tolerances, and absolute ones of the scaled states.
    """

    def __init__(self, rates: Rates, solver: str, settings: tuple[float, ...]) -> None:
        self.name = f"{solver}, dca"
        self.settings = settings
        self._rates = rates
        self._solver = solver
        self._hosts: dict[float, ctypes.CDLL] = {}

    def _host(self, tolerance: float) -> ctypes.CDLL:
        """Return a library with an integrator of its own."""
        path = self._rates.library
        own = path.with_name(f"{self.name}-{tolerance:g}.so".replace(" ", "-"))
        own.write_bytes(path.read_bytes())
        host = ctypes.CDLL(str(own))
        if not host.make(int(self._solver == "IDA"), ctypes.c_double(tolerance)):
            raise RuntimeError(f"SUNDIALS does not make the integrator {self.name}")
        return host

    def run(self, setting: float) -> tuple[np.ndarray, float]:
        """Integrate from event to event."""
        host = self._hosts.get(setting) or self._hosts.setdefault(setting, self._host(setting))
        y = self._rates.start()
        found, seconds = list[float](), 0.0
        for stretch in self._rates.stretches:
            rows = np.empty((len(stretch.times), len(y)))
            numbers: list[Any] = [stretch.polynomials, y, len(stretch.times), stretch.times, rows]
            given = [each if isinstance(each, int) else ctypes.c_void_p(each.ctypes.data) for each in numbers]
            begin = time.process_time()
            done = host.integrate(ctypes.c_double(stretch.begin), *given)
            seconds += time.process_time() - begin
            if not done:
                raise RuntimeError(f"{self.name} fails after t = {stretch.begin:g} s")
            found += self._rates.variable(rows, stretch)
        return np.array(found), seconds
