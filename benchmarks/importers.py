"""Our FMUs in importers of others: the largest difference of any output from a tight run in process.

Five machines, FMI 2.0 and 3.0, co-simulation and model exchange. The difference is a share of the output's range in the
tight run, or of a thousandth of its nominal value where it moves less. FMPy and libcosim are always there; fmusim, the
C program of the Reference FMUs, is run where the environment variable FMUSIM names it; CasADi loads FMUs for model
exchange of FMI 3.0, and runs to the first event, as it knows none.

Run: [FMUSIM=FILE] python benchmarks/importers.py [--quick]
"""

from __future__ import annotations

import csv
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import fmpy
import numpy as np
from fmpy.fmi3 import FMU3Model
from numpy.typing import NDArray

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, PlaneContact, Prismatic, RigidBody
from mbsfmu.cli.found_models import find_model
from mbsfmu.parts import JointDrive, JointSpringDamper, SampledPidController

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
INTERVAL, TOLERANCE, TIGHT = 1e-2, 1e-9, 1e-11
"""Communication step or output interval in s, relative tolerance of importers' solvers, and of the tight run."""
Floats = NDArray[np.float64]
Run = Callable[[Path, float, list[str], str], Mapping[str, Floats]]
FORMS = tuple((fmi, kind) for kind in ("cs", "me") for fmi in (2, 3))


def sampled() -> CoupledModel:
    """Return an oscillator with a sampled controller, whose samples meet no output."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="slider", mass=2.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="slider.origin", displacement=0.3, velocity=1.0),),
        forces=(
            JointSpringDamper(name="spring", joint="rail", stiffness=50.0, damping=0.8),
            JointDrive(name="motor", joint="rail"),
        ),
    )
    controller = SampledPidController(
        proportional=40.0, integral=60.0, derivative=2.0, sample_time=0.0137, offset=0.00415,
        measured_unit="m", command_unit="N",
    )  # fmt: skip
    connections = (
        ("mechanism.slider.displacement", "controller.measured"),
        ("controller.command", "mechanism.motor.force"),
    )
    systems = {"mechanism": mechanism, "controller": controller}
    return CoupledModel(name="sampled", systems=systems, connections=connections)


def bouncing() -> CoupledModel:
    """Return a sphere that falls onto a plane, and bounces three times in 2 s."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "floor": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="ball", mass=1.0, inertia=(0.1, 0.1, 0.1)),),
        joints=(
            Prismatic(name="rail", parent="ground.O", child="ball.origin", axis=(0.0, 1.0, 0.0), displacement=1.0),
        ),
        forces=(
            PlaneContact(
                name="touch", sphere="ball.origin", plane="ground.floor", normal=(0.0, 1.0, 0.0), radius=0.1,
                stiffness=1e5, damping=0.1,
            ),
        ),
    )  # fmt: skip
    return CoupledModel(name="bouncing", systems={"mechanism": mechanism})


MODELS: dict[str, tuple[Callable[[], CoupledModel], float]] = {
    "bouncing": (bouncing, 2.0),
    "sampled": (sampled, 2.0),
    "four-bar": (lambda: mbsfmu.models.built_in("four-bar"), 2.0),
    "crane": (lambda: find_model("crane", ()), 2.0),
    "excavator": (lambda: find_model("excavator", ()), 2.0),
}
"""Machines, and until when they run in s."""
KINDS = {"cs": "CoSimulation", "me": "ModelExchange"}


def at_outputs(times: Floats, values: Mapping[str, Floats], stop: float) -> dict[str, Floats]:
    """Return values at multiples of the interval: the last of each time, which is behind an event."""
    grid = INTERVAL * np.arange(round(stop / INTERVAL) + 1)
    rows = np.searchsorted(times, grid + 1e-9) - 1
    if np.max(np.abs(times[rows] - grid)) > 1e-6:
        raise ValueError(f"outputs are missing: {times[-1]:g} s of {stop:g} s were run")
    return {name: np.asarray(column)[rows] for name, column in values.items()}


def by_fmpy(fmu: Path, stop: float, names: list[str], kind: str) -> dict[str, Floats]:
    """Return outputs by FMPy; its solver for model exchange is CVode."""
    found: Any = fmpy.simulate_fmu(
        str(fmu), stop_time=stop, output_interval=INTERVAL, relative_tolerance=TOLERANCE, output=names,
        fmi_type=KINDS[kind],
    )  # fmt: skip
    return at_outputs(found["time"], {name: found[name] for name in names}, stop)


def by_fmusim(fmu: Path, stop: float, names: list[str], kind: str) -> dict[str, Floats]:
    """Return outputs by fmusim, by its CVode for model exchange."""
    file = fmu.with_suffix(".csv")
    command = [os.environ["FMUSIM"], "--interface-type", kind, "--stop-time", f"{stop}", "--output-file", str(file)]
    command += ["--output-interval", f"{INTERVAL}", "--tolerance", f"{TOLERANCE}"]
    command += ["--solver", "cvode"] if kind == "me" else []
    done = subprocess.run([*command, str(fmu)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"fmusim ends with {done.returncode}: {done.stdout[-200:]}{done.stderr[-200:]}")
    with file.open(newline="") as lines:
        header, *rows = csv.reader(lines)
    columns = dict(zip(header, np.array(rows, float).T, strict=True))
    return at_outputs(columns["time"], {name: columns[name] for name in names}, stop)


def by_libcosim(fmu: Path, stop: float, names: list[str], kind: str) -> dict[str, Floats]:  # noqa: ARG001 - of co-simulation
    """Return outputs by libcosim, which gives none at the start."""
    from libcosimpy.CosimExecution import CosimExecution  # noqa: PLC0415 - is not on every platform
    from libcosimpy.CosimObserver import CosimObserver  # noqa: PLC0415
    from libcosimpy.CosimSlave import CosimLocalSlave  # noqa: PLC0415

    references = {each.name: each.valueReference for each in fmpy.read_model_description(str(fmu)).modelVariables}
    execution = CosimExecution.from_step_size(step_size=round(INTERVAL * 1e9))
    slave = execution.add_local_slave(CosimLocalSlave(fmu_path=str(fmu), instance_name="unit"))
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    listed, rows = [references[name] for name in names], []
    for _ in range(round(stop / INTERVAL)):
        execution.step()
        rows.append(observer.last_real_values(slave, listed))
    return dict(zip(names, np.vstack([np.full(len(names), np.nan), rows]).T, strict=True))


def by_casadi(fmu: Path, stop: float, names: list[str], kind: str) -> dict[str, Floats]:  # noqa: ARG001 - of model exchange
    """Return outputs by CasADi's cvodes with the exact Jacobian of the FMU."""
    dae = ca.DaeBuilder("unit", str(fmu))
    begin, inputs = started(fmu, dae.x()), [float(np.ravel(dae.start(name))[0]) for name in dae.u()]
    scale = ca.DM([dae.nominal(name) for name in dae.x()])
    flow, outputs = (dae.create(end, ["x", "u"], [end]) for end in ("ode", "y"))
    state = ca.MX.sym("x", len(begin))
    rates = flow(state * scale, ca.DM(inputs)) / scale
    grid = INTERVAL * np.arange(1, round(stop / INTERVAL) + 1)
    settings = {"reltol": TOLERANCE, "abstol": TOLERANCE, "max_num_steps": 100_000}
    integrator = ca.integrator("run", "cvodes", {"x": state, "ode": rates}, 0.0, grid.tolist(), settings)
    states = ca.horzcat(ca.DM(begin), integrator(x0=ca.DM(begin) / scale)["xf"] * scale)
    rows = np.array([outputs(states[:, k], ca.DM(inputs)).full()[:, 0] for k in range(states.shape[1])])
    return {name: rows[:, dae.y().index(name)] for name in names}


def started(fmu: Path, names: list[str]) -> Floats:
    """Return variables of an FMU of FMI 3.0 after its initialization."""
    description = fmpy.read_model_description(str(fmu))
    with tempfile.TemporaryDirectory() as folder:
        instance = FMU3Model(
            guid=description.guid, unzipDirectory=str(fmpy.extract(str(fmu), unzipdir=folder)),
            modelIdentifier=description.modelExchange.modelIdentifier, instanceName="start",
        )  # fmt: skip
        instance.instantiate()
        instance.enterInitializationMode()
        instance.exitInitializationMode()
        references = {each.name: each.valueReference for each in description.modelVariables}
        values = instance.getFloat64([references[name] for name in names])
        instance.terminate()
        instance.freeInstance()
    return np.array(values)


def outputs_of(fmu: Path) -> dict[str, float]:
    """Return the outputs of an FMU with their nominal values."""
    outputs = [each.variable for each in fmpy.read_model_description(str(fmu)).outputs]
    return {each.name: float(each.nominal or 1.0) for each in outputs}


def difference(
    found: Mapping[str, Floats], expected: Mapping[str, Floats], nominal: Mapping[str, float]
) -> tuple[float, str]:
    """Return the largest difference as a share of the range of the output, and the name of the output."""
    shares = {}
    for name, values in found.items():
        if not np.isfinite(values[1:]).all():
            raise ValueError(f"{name} is not finite")
        size = max(float(np.ptp(expected[name])), 1e-3 * nominal[name])
        shares[name] = float(np.nanmax(np.abs(values - expected[name][: len(values)]))) / size
    name = max(shares, key=shares.__getitem__)
    return shares[name], name


def cell(run: Run, fmu: Path, stop: float, expected: Mapping[str, Floats], kind: str) -> str:
    """Return the entry of an importer in the table."""
    nominal = outputs_of(fmu)
    try:
        share, name = difference(run(fmu, stop, list(nominal), kind), expected, nominal)
    except Exception as error:  # what an importer does not do is a result
        print(f"{run.__name__}, {fmu.stem}, {kind}: {error}", file=sys.stderr)
        return "fails"
    return f"{share:.1e} ({name})"


def rows_of(model: CoupledModel, stop: float, folder: Path) -> dict[str, str]:
    """Return the entries of a machine by importer and form of the FMU."""
    simulation = model.simulation(solver="rodas5p", relative_tolerance=TIGHT)
    simulation.initialize()
    known = {each.name for each in simulation.variables}
    first = simulation.get("next_event") if "next_event" in known else np.inf
    smooth = INTERVAL * np.floor(min(stop, first) / INTERVAL - 1e-6)
    tight = model.simulation(solver="rodas5p", relative_tolerance=TIGHT).run(stop, output_step=INTERVAL)
    expected = at_outputs(tight.time, {name: tight[name] for name in tight.names}, stop)
    own = model.simulation().run(stop, output_step=INTERVAL)
    found = {}
    for fmi, kind in FORMS:
        (fmu,) = mbsfmu.export(model, folder / f"{kind}{fmi}", layout="monolithic", fmi=fmi, kind=kind)
        if not found:
            nominal = outputs_of(fmu)
            values = at_outputs(own.time, {each: own[each] for each in nominal}, stop)
            share, name = difference(values, expected, nominal)
            found["in process, default options"] = f"{share:.1e} ({name})"
        found[f"FMPy {fmpy.__version__}, {fmi}.0 {kind}"] = cell(by_fmpy, fmu, stop, expected, kind)
        if "FMUSIM" in os.environ:
            found[f"fmusim, {fmi}.0 {kind}"] = cell(by_fmusim, fmu, stop, expected, kind)
        if (fmi, kind) == (2, "cs"):
            found[f"libcosim {version('libcosimpy')}, {fmi}.0 {kind}"] = cell(by_libcosim, fmu, stop, expected, kind)
        if (fmi, kind) == (3, "me"):
            run = cell(by_casadi, fmu, smooth, expected, kind) if smooth > INTERVAL else "event at the start"
            until = f", to {smooth:g} s" if INTERVAL < smooth < stop - INTERVAL else ""
            found[f"CasADi {ca.__version__}, {fmi}.0 {kind}"] = run + until
    return found


def main() -> None:
    """Print the table, a column for each machine."""
    logging.disable(logging.WARNING)
    chosen = list(MODELS)[:1] if QUICK else [each for each in sys.argv[1:] if each in MODELS] or list(MODELS)
    columns = {}
    for name in chosen:
        make, stop = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            columns[f"{name}, {stop:g} s"] = rows_of(make(), stop, Path(folder))
        print(f"{name} is done", file=sys.stderr, flush=True)
    print(f"| importer | {' | '.join(columns)} |\n|{' --- |' * (1 + len(columns))}")
    for row in sorted(next(iter(columns.values())), key=str.lower):
        print(f"| {row} | {' | '.join(column[row] for column in columns.values())} |")


if __name__ == "__main__":
    main()
