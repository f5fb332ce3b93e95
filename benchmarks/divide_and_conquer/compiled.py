"""One right-hand side in compiled C, beside Pinocchio's articulated-body algorithm in the same run.

Run: python benchmarks/divide_and_conquer/compiled.py [--quick]

Needs g++; Pinocchio's headers come with the package `pin`, Eigen's with CasADi. Compiling takes some minutes; with
`--quick` Pinocchio's algorithm is left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from engines import articulated_body, compiled_articulated_body
from flow import Flow
from machines import TREES
from rates import QUICK, interleaved, reached, repeated

LINKS = 4 if QUICK else 16
FLAGS = {} if QUICK else {"-O2": ("-O2",), "-O3 -march=native": ("-O3", "-march=native")}


def main() -> None:
    """Print the times of one evaluation and how long the traced functions are."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = {label: compiled_articulated_body(Path(folder), flags) for label, flags in FLAGS.items()}
        for machine in (TREES["planar"](LINKS), TREES["spatial"](LINKS)):
            flows = {name: Flow(machine.model(), name) for name in ("dca", "hdca")}
            functions = {name: repeated(flow) for name, flow in flows.items()}
            for label, library in libraries.items():
                for world in (False, True):
                    engine = articulated_body(library, reached(machine, flows["dca"]), world=world)
                    functions[f"aba, {label}, {'WORLD' if world else 'LOCAL'}"] = engine.run
            times = interleaved(functions)
            reference = times["dca" if QUICK else "aba, -O2, LOCAL"][0]
            print(
                f"\n| {machine.name} | instructions | median [µs] | least [µs] | to aba, -O2, LOCAL |\n|" + " --- |" * 5
            )
            for name, (middle, least) in times.items():
                count = flows[name].formulation.explicit.operations if name in flows else "–"
                print(f"| {name} | {count} | {middle:.2f} | {least:.2f} | {middle / reference:.2f} |", flush=True)


if __name__ == "__main__":
    main()
