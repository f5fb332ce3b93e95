"""A crane at the end of two long lines: what a cut through the lines costs, and one at the cylinder.

Lines of 12 m between valve and cylinder, by the method of characteristics. Cut through the lines there are two FMUs,
pump with valve, and cylinder with crane; cut at the cylinder, circuit and crane. Both against one model of the whole.

Run `python benchmarks/coupling/crane_lines.py [--quick]`; what comes of it is in `docs/studies/coupling.md`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mbsfmu
from hydraulics import (
    Circuit,
    Cylinder,
    DirectionalValve,
    Hose,
    LineEnd,
    Oil,
    PressureSource,
    Tank,
    TransmissionLine,
    line_connections,
)
from mbsfmu import Actuator, Beam, CoupledModel, JointSpringDamper, Mechanism, Revolute, StepSignal, Trajectory, along

OIL = Oil(bulk_modulus=1.5e9, density=850.0)
LINE: dict[str, Any] = {
    "diameter": 0.012,
    "length": 12.0,
    "wave_speed": 1200.0,
    "viscosity": 0.04,
    "reaches": 10,
}
PRESSURES = {"A": 8.0e6, "B": 2.0e6}
COMMAND = StepSignal(times=(0.5, 1.5), values=(6.0, 0.0))
STOP = 3.0
READ = ("boom.angle", "lift.force", "lift.pressure_piston")


def mechanism() -> Mechanism:
    """Return the crane of `examples/crane.py`."""
    return Mechanism(
        ground={"pivot": (0.0, 1.5, 0.0), "foot": (0.5, 0.0, 0.0)},
        bodies=(
            Beam(name="boom", length=4.0, mass=300.0, points={"lug": along(0.4)}),
            Beam(name="load", length=1.5, mass=200.0),
        ),
        joints=(
            Revolute(name="pivot", parent="ground.pivot", child="boom.start", angle=np.radians(20.0)),
            Revolute(name="hook", parent="boom.end", child="load.start", angle=np.radians(-110.0)),
        ),
        forces=(
            Actuator(name="lift", start="ground.foot", end="boom.lug"),
            JointSpringDamper(name="hook_friction", joint="hook", damping=40.0),
        ),
    )


def supply() -> tuple[Any, ...]:
    """Return pump, valve, and short hoses behind it."""
    return (
        PressureSource(name="pump", node="P", pressure=18e6),
        Tank(name="tank", node="T"),
        DirectionalValve(name="valve", supply="P", tank="T", a="VA", b="VB", flow_coefficient=1e-8, time_constant=0.01),
        Hose(name="valve_a", node="VA", volume=1e-4, bulk_modulus=3e8),
        Hose(name="valve_b", node="VB", volume=1e-4, bulk_modulus=3e8),
    )


def lift() -> tuple[Any, ...]:
    """Return the cylinder, with short hoses before it."""
    return (
        Hose(name="hose_a", node="A", volume=1e-4, bulk_modulus=3e8),
        Hose(name="hose_b", node="B", volume=1e-4, bulk_modulus=3e8),
        Cylinder(
            name="lift",
            piston="A",
            rod="B",
            piston_diameter=0.08,
            rod_diameter=0.045,
            stroke=1.2,
            retracted_length=1.4,
            bulk_modulus=2e10,
            viscous_friction=2000.0,
        ),
    )


def joined(circuit: str) -> tuple[tuple[str, str], ...]:
    """Return the connections of the cylinder and its actuator."""
    return (
        (f"{circuit}.lift.force", "mechanism.lift.force"),
        ("mechanism.lift.length", f"{circuit}.lift.length"),
        ("mechanism.lift.velocity", f"{circuit}.lift.velocity"),
        ("mechanism.lift.static_force", f"{circuit}.lift.initial_load"),
    )


def whole() -> CoupledModel:
    """Return the machine in one piece."""
    lines = (
        TransmissionLine(name="line_a", inlet="VA", outlet="A", **LINE),
        TransmissionLine(name="line_b", inlet="VB", outlet="B", **LINE),
    )
    pressures = {**PRESSURES, "VA": PRESSURES["A"], "VB": PRESSURES["B"]}
    circuit = Circuit(oil=OIL, components=(*supply(), *lines, *lift()), initial_pressures=pressures)
    return CoupledModel(
        name="whole",
        systems={"mechanism": mechanism(), "circuit": circuit},
        connections=joined("circuit"),
        signals={"circuit.valve.command": COMMAND},
        stop_time=STOP,
    )


def ends(nodes: dict[str, str]) -> tuple[LineEnd, ...]:
    """Return the ends of both lines at two nodes."""
    return tuple(LineEnd(name=name, node=node, **LINE) for name, node in nodes.items())


def halves() -> tuple[CoupledModel, CoupledModel]:
    """Return pump with valve, and cylinder with crane."""
    valve = Circuit(
        oil=OIL,
        components=(*supply(), *ends({"line_a": "VA", "line_b": "VB"})),
        initial_pressures={"VA": PRESSURES["A"], "VB": PRESSURES["B"]},
    )
    crane = Circuit(oil=OIL, components=(*lift(), *ends({"line_a": "A", "line_b": "B"})), initial_pressures=PRESSURES)
    return (
        CoupledModel(name="supply", systems={"supply": valve}, signals={"supply.valve.command": COMMAND}),
        CoupledModel(
            name="crane", systems={"mechanism": mechanism(), "cylinder": crane}, connections=joined("cylinder")
        ),
    )


def error(found: Trajectory, names: dict[str, str], reference: Trajectory) -> list[float]:
    """Largest differences as shares of the range, at common times."""
    times = np.round(found.time, 9)
    common = np.isin(np.round(reference.time, 9), times)
    own = np.isin(times, np.round(reference.time, 9))
    return [
        float(np.max(np.abs(found[names[name]][own] - reference[name][common])) / np.ptp(reference[name]))
        for name in READ
    ]


def run(stop: float, steps: tuple[float, ...]) -> None:
    """Print the table."""
    reference = whole().simulation(solver="rodas5p", relative_tolerance=1e-11).run(stop, output_step=1e-3)
    print("| cut | algorithm | step | " + " | ".join(f"`{name}`" for name in READ) + " |")
    print("|---|---|---|" + "---|" * len(READ))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for model in halves():
            mbsfmu.export(model, folder / model.name, layout="monolithic", solver="rodas5p")
        mbsfmu.export(whole(), folder / "whole", layout="separate", solver="rodas5p")
        units = [f"{name}={folder / name / name}.fmu" for name in ("supply", "crane")]
        connections = [
            (source, target)
            for line in ("line_a", "line_b")
            for source, target in line_connections(f"supply.{line}", f"crane.{line}", reaches=LINE["reaches"])
        ]
        cases: list[tuple[str, str, str, Any, dict[str, str], dict[str, Any]]] = [
            ("lines", "jacobi", "zero", units, {name: f"crane.{name}" for name in READ}, {"connections": connections}),
            *(
                ("cylinder", algorithm, extrapolation, folder / "whole" / "whole.ssp", _at_cylinder(), {})
                for algorithm, extrapolation in (
                    ("jacobi", "zero"),
                    ("gauss-seidel", "zero"),
                    ("gauss-seidel", "linear"),
                    ("newton", "linear"),
                )
            ),
        ]
        for cut, algorithm, extrapolation, source, names, more in cases:
            for step in steps:
                try:
                    found = mbsfmu.cosimulate(
                        source, algorithm=algorithm, extrapolation=extrapolation, step=step, stop=stop, **more
                    )
                    cells = [f"{each:.1e}" for each in error(found, names, reference)]
                except mbsfmu.CosimulationError as failure:
                    cells = [str(failure).split(":")[0]] + [""] * (len(READ) - 1)
                label = algorithm if extrapolation == "zero" else f"{algorithm}-{extrapolation}"
                print(f"| {cut} | {label} | {1e3 * step:g} ms | " + " | ".join(cells) + " |", flush=True)


def _at_cylinder() -> dict[str, str]:
    """Return the names where crane and circuit are an FMU each."""
    return {name: f"{'mechanism' if name.startswith('boom') else 'circuit'}.{name}" for name in READ}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a second, one step")
    quick = parser.parse_args().quick
    run(0.6 if quick else STOP, (5e-3,) if quick else (1e-3, 5e-3, 9e-3))
