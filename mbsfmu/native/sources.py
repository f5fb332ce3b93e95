"""The C files of units and of runs in process: what is generated of a model, and the runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mbsfmu.compiling.platforms import VERSIONS, Fmi
from mbsfmu.native.literals import string
from mbsfmu.native.model_code import ModelCode
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.variables import Exchange

_CORE = {"steps.c": "-O2", "pool.c": "-O2", "unit.c": "-O1"}
FLOW = {"flow.c": "-O2"}
"""What a unit for model exchange has beside: the equations for the solver of its host."""
UNIT: dict[Fmi, dict[str, str]] = {fmi: {**_CORE, f"fmi{fmi}.c": "-O1"} for fmi in VERSIONS}
"""The source files of a unit that are compiled, by the version of the FMI, and how much they are optimized: steps most;
at the start of a run and between steps nothing takes long, and compilers are sooner done with it."""
LOOP = {"steps.c": "-O2", "pool.c": "-O2", "loop.c": "-O2"}
"""The same of the loop for runs in process, which reads all variables at every output."""

_RUNTIME = Path(__file__).parent / "runtime"
_EXCHANGE = ("flow", "exchange", "fmi2_exchange", "fmi3_exchange")
"""How the names of files begin that are for model exchange alone."""
_LAYERS = ("fmi", "component")
"""How the names of files begin that are for units alone, whatever the version of the FMI."""


def step_sources(simulation: Simulation) -> dict[str, str]:
    """Return the C files of steps and readings by name: enough for runs in process, and sooner made than a unit."""
    code = ModelCode(simulation)
    return {
        **_sources(code, lambda name: not name.startswith((*_LAYERS, *_EXCHANGE))),
        **interface_source(exchange=None),
    }


def unit_files(fmi: Fmi, exchanges: bool) -> dict[str, str]:
    """Return the source files of a unit that are compiled, with how much each is optimized."""
    return UNIT[fmi] | FLOW if exchanges else UNIT[fmi]


def unit_sources(
    simulation: Simulation, identity: str, fmi: Fmi = 2, exchange: Exchange | None = None
) -> dict[str, str]:
    """Return the C files of a unit by name: the generated model and the runtime.

    Parameters
    ----------
    simulation
        The simulation; its formulation decides which equations are written.
    identity
        What the unit is instantiated with.
    fmi
        The version of the FMI; what it generates of a description comes beside.
    exchange
        What it has for model exchange; None where it is for co-simulation alone.
    """
    code = ModelCode(simulation, exchange)
    others = {f"fmi{each}" for each in VERSIONS if each != fmi} | (set() if exchange else set(_EXCHANGE))

    def chosen(name: str) -> bool:
        return name not in LOOP.keys() - _CORE.keys() and not name.startswith(tuple(others))

    rest = {"model_rest.c": code.rest()}
    if exchange:
        rest["model_flow.c"] = code.flow()
    return {**_sources(code, chosen), **rest, **interface_source(exchange), **identity_source(identity)}


def interface_source(exchange: Exchange | None) -> dict[str, str]:
    """Return the file, by its name, that says what a unit is for."""
    co_simulation = exchange is None or exchange.beside_steps
    says = {"CO_SIMULATION": int(co_simulation), "MODEL_EXCHANGE": int(exchange is not None)}
    return {"interfaces.h": "".join(f"#define {name} {value}\n" for name, value in says.items())}


def identity_source(identity: str) -> dict[str, str]:
    """Return the file, by its name, that alone says what compiled code is: this follows from all the others."""
    return {"identity.h": f"#define IDENTITY {string(identity)}\n"}


def _sources(code: ModelCode, chosen: Callable[[str], bool]) -> dict[str, str]:
    runtime = {file.name: file.read_text("utf-8") for file in sorted(_RUNTIME.glob("*.[ch]")) if chosen(file.name)}
    written = {"model_steps.c": code.steps(), "model_readings.c": code.readings()}
    return {"model.h": code.header(), **written, **runtime}  # the header knows how much room they need
